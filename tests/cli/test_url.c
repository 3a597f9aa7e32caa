/* SPDX-License-Identifier: MIT */
/* test_url.c: which URLs mean the same queue?
 *
 * test_redis.py asks `wq done`, with a server; here are the URLs of servers that
 * no test has.
 */
#include "support/wq_test.h"

#include <stdlib.h>

#include "options/url.h"

static void
expect(const char *url, const char *expected)
{
    char *identity = url_identity(url);

    assert_non_null(identity);
    assert_string_equal(identity, expected);
    free(identity);
}

TEST(server_is_its_hosts_with_their_ports)
{
    static const char *const urls[] = {
        "redis://h",
        "redis://h/",
        "redis://h:6379",
        "redis://h:6379/0",
        "redis://h/00?queue=default",
        "rediss://h?ca_file=/etc/h.pem",
        "redis://user@h",
        "redis://user:p%40ss@h:6379/?lease=1s&queue=%64efault",
        "redis://h?lease=1s&partitions=2&client=me&db=0",
        "redis://%68",
    };

    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        expect(urls[i], "0 default h:6379");
    expect("redis://h:6380", "0 default h:6380");
    expect("redis://[::1]", "0 default [::1]:6379");
    expect("redis://:pw@[::1]:1/2", "2 default [::1]:1");
    expect("redis://a,b:1,[::1]?queue=q", "0 q a:6379,b:1,[::1]:6379");
}

TEST(database_is_the_path_or_an_option)
{
    expect("redis://h/3", "3 default h:6379");
    expect("redis://h?db=3", "3 default h:6379");
    expect("redis://h/1?db=3&queue=q", "3 q h:6379");
    expect("redis+unix:///s?db=3", "3 default /s");
}

TEST(socket_is_its_path)
{
    expect("redis+unix:///run/s", "0 default /run/s");
    expect("redis+unix://user:pw@/run/%73?queue=q", "0 q /run/s");
    expect("redis+unix:///run/a@b?lease=1s&queue=q", "0 q /run/a@b");
}

TEST(sentinels_have_a_port_and_a_primary)
{
    expect("redis+sentinel://a,b:1/mail", "0 default a:26379,b:1/mail");
    expect("rediss+sentinel://u:p@a/m%61il/2?queue=q", "2 q a:26379/mail");
    expect("redis+sentinel://a/mail/", "0 default a:26379/mail");
}

TEST(url_with_a_mistake_has_an_identity)
{
    static const char *const urls[] = {"redis:",
                                       "redis://",
                                       "redis://@",
                                       "redis://,",
                                       "redis://[",
                                       "redis://[::1",
                                       "redis://h:",
                                       "redis://h:x/y?db=z",
                                       "redis://h?",
                                       "redis://h?queue",
                                       "redis://%",
                                       "redis://h?queue=%zz",
                                       "redis+unix:",
                                       "redis+unix://",
                                       "redis+unix:/",
                                       "redis+unix://u@",
                                       "rediss+sentinel://a",
                                       "redis+sentinel://a/?db=1",
                                       "redis://?@h/",
                                       "redis+sentinel:///"};

    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        char *identity = url_identity(urls[i]);
        assert_non_null(identity);
        free(identity);
    }
}

WQ_TESTS(test(server_is_its_hosts_with_their_ports),
         test(database_is_the_path_or_an_option), test(socket_is_its_path),
         test(sentinels_have_a_port_and_a_primary),
         test(url_with_a_mistake_has_an_identity));
