/* SPDX-License-Identifier: MIT */
/* test_url.c: which URLs and options are refused, and with which words? No server
 * is needed. */
#include "redis/fixture.h"

#include <stdlib.h>

static void
refused(const char *url, const char *words)
{
    wq_queue *q = NULL;

    assert_err(wq_open_redis(url, NULL, &q), WQ_EINVAL);
    last_error_has(words);
    assert_null(strstr(wq_last_error(), "s3cret"));
}

TEST(bad_urls_are_refused_with_the_reason)
{
    (void)state;
    refused("redis:queue", "redis://, rediss://, redis+unix://, redis+sent");
    refused("redis+sentinel://h", "does not name a primary");
    refused("redis+sentinel://h:1,u:s3cret/main", "the port in the URL");
    refused("redis+sentinel://h,/main", "no host");
    refused("redis+sentinel://h/main/x", "number of the database");
    refused("redis+sentinel://u:s3cret@h,[::1/main", "does not end with ']'");
    refused("redis://h?sentinel_user=u", "for redis+sentinel:// only");
    refused("redis+sentinel://h/main?sentinel_password_file=/nonexistent",
            "cannot read sentinel_password_file");
    refused("redis://", "no host");
    refused("redis://:s3cret@", "no host");
    refused("redis://h:0", "the port in the URL");
    refused("redis://u:s3cret", "the port in the URL");
    refused("redis://u:p/s3cret@h/0", "of the URL as %2F");
    refused("redis://u:p/s3cret", "the port in the URL");
    refused("redis://u:p?s3cret@h/0", "of the URL as %2F");
    refused("redis://h:65536", "a number from 1 to 65535");
    refused("redis://u:s3cret%zz@h", "two hexadecimal digits");
    refused("redis://[::1", "does not end with ']'");
    refused("redis://h/x", "number of the database");
    refused("redis://h/2?db=3", "name different databases");
    refused("redis://u@h?user=v", "a user is given twice");
    refused("redis://h?max_expiries=0", "use 1 or more");
    refused("redis+unix://", "redis+unix:///PATH?queue=NAME");
    refused("redis+unix://sock", "redis+unix:///PATH?queue=NAME");
    refused("redis+unix://u:p@/s3cret@/sock", "of the URL as %2F");
    refused("redis://u:s3cret@h?queue=a{b}", "letters, digits");
    refused("redis://h?queue=", "letters, digits");
    refused("redis://h?lease=+30s",
            "lease=+30s in the URL: use a duration such "
            "as 200ms, 5s, 1h30m, or a number of seconds");
    refused("redis://h?lease=1ms", "10ms or longer");
    refused("redis://h?lease", "is not NAME=VALUE");
    refused("redis://h?max_expiries=-1", "use a number");
    refused("redis://h?replicas=x", "use a number");
    refused("redis://h?replicas_timeout=1s", "without replicas");
    refused("redis://h?replicas=1&timeout=1s&replicas_timeout=1s",
            "less than timeout, which is 1000 ms");
    refused("redis://h?nonsense=1", "there is no option 'nonsense'");
    refused("redis://h?queue=a&queue=b", "'queue' is twice in the URL");
    refused("redis://h?db=1&lease=3s&db=2", "'db' is twice in the URL");
    refused("redis://h?partitions=0", "use 1 or more");
    refused("redis://h?ca_file=/x", "the URL is not rediss://");
    refused("rediss://h?cert_file=/x", "without key_file");
    refused("redis://h?password_file=/nonexistent",
            "cannot read password_file");
    refused("redis://u:s3cret@h?password_file=/x", "and a password_file");
}

/* Also where a password must not be, or where a separator is wrong. */
TEST(refusals_do_not_quote_what_may_be_a_password)
{
    (void)state;
    refused("redis://h?password=s3cret", "there is no option 'password'");
    refused("redis://h?password=%zzs3cret", "'%' in the value of 'password'");
    refused("redis://h?pwd=s3cret", "there is no option 'pwd'");
    refused("redis://h?Pasword=%zzs3cret", "'%' in the value of 'Pasword'");
    refused("redis://h?s3cret", "an option of the URL is not NAME=VALUE");
    refused("redis://h?password:s3cret", "is not NAME=VALUE");
    refused("redis://h?password:s=3&s3cret", "is not NAME=VALUE");
    refused("redis://h?p%61ssword=s3cret", "is not NAME=VALUE");
    refused("redis://h?password%3Ds3cret", "is not NAME=VALUE");
    refused("redis://h?lease=1x;pwd=s3cret", "a ';' in the value of 'lease'");
    refused("redis://h?queue=q,auth=s3cret", "and %2C stands for a ','");
    refused("redis://h?queue=q?auth=s3cret", "a '?' in the value of 'queue'");
    refused("redis://h?queue=q auth=s3cret", "and %20 stands for a ' '");
    refused("redis://h?ca_file=/no;s3cret", "a ';' in the value of 'ca_file'");
    refused("redis://h?password_file=/no,s3cret",
            "in the value of 'password_f");
    refused("redis://h?queue=q&password=s3cret&password=s3cret", "is twice");
    refused("redis://h&password=s3cret", "the URL follow a '?'");
    refused("redis://h/0&password=s3cret", "the URL follow a '?'");
    refused("redis://h/0,password=s3cret", "the URL follow a '?'");
    refused("redis://h:6379,password=s3cret", "the URL follow a '?'");
    refused("redis+unix:///no/x&s3cret", "a '&' in the path of the socket");
    refused("redis+unix:///no/x;s3cret", "%3B stands for a ';'");
    refused("redis+sentinel://h/main;password=s3cret", "the URL follow a '?'");
    refused("redis://u:12/s3cret", "not the number of the database");
    refused("redis://u:s3cret:h:6379", "write '@' after a password");
    refused("redis://::1", "an IPv6 address as [::1]");
}

TEST(server_that_is_not_there_is_away)
{
    wq_queue *q = NULL;

    (void)state;
    assert_err(wq_open_redis("redis+unix:///nonexistent/socket", NULL, &q),
               WQ_EAWAY);
    last_error_has("cannot connect to '/nonexistent/socket': No such file");
    assert_err(wq_open_redis("redis://u:s3cret@127.0.0.1:1", NULL, &q),
               WQ_EAWAY);
    last_error_has("cannot connect to 127.0.0.1:1: Connection refused");
    assert_err(wq_open_redis("redis://[::1]:1", NULL, &q), WQ_EAWAY);
    last_error_has("cannot connect to [::1]:1: "); /* also without IPv6 */
}

TEST(null_and_unknown_options_are_refused)
{
    wq_queue *q = NULL;

    (void)state;
    assert_err(wq_redis_open(NULL, NULL, NULL, &q), WQ_EINVAL);
    assert_err(wq_redis_open("redis://h", NULL, NULL, NULL), WQ_EINVAL);
    assert_err(
        wq_redis_open("redis://h", WQ_REDIS_OPTIONS(.lease_ns = -1), NULL, &q),
        WQ_EINVAL);
    last_error_has("lease_ns is negative");
}

/* They would end before they began. */
TEST(times_beyond_the_clock_are_refused)
{
    wq_queue *q = NULL;

    (void)state;
    assert_err(wq_redis_open("redis://h",
                             WQ_REDIS_OPTIONS(.lease_ns = INT64_MAX), NULL, &q),
               WQ_EINVAL);
    last_error_has("a lease must not be longer than 36500 days");
    assert_err(wq_redis_open("redis://h",
                             WQ_REDIS_OPTIONS(.timeout_ns = WQ_FOREVER), NULL,
                             &q),
               WQ_EINVAL);
    last_error_has("a timeout must not be longer than 36500 days");
    refused("redis://h?timeout=1000000h", "longer than 36500 days");
    refused("redis://h?lease=40000d", "longer than 36500 days");
    refused("redis://h?lease=0.001", "10ms or longer");
}

/* "rediss:" is found by the name "redis", too. */
TEST(url_with_tls_has_the_same_backend)
{
    wq_queue *q = NULL;

    (void)state;
    assert_err(wq_register_scheme("redis", wq_open_redis), WQ_OK);
    assert_err(wq_open("rediss://h?cert_file=/x", NULL, &q), WQ_EINVAL);
    last_error_has("cert_file is given without key_file");
    assert_err(wq_register_scheme("redis", NULL), WQ_OK);
}

WQ_TESTS(test(url_with_tls_has_the_same_backend),
         test(bad_urls_are_refused_with_the_reason),
         test(refusals_do_not_quote_what_may_be_a_password),
         test(server_that_is_not_there_is_away),
         test(null_and_unknown_options_are_refused),
         test(times_beyond_the_clock_are_refused));
