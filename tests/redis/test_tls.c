/* SPDX-License-Identifier: MIT */
/* test_tls.c: is a handle as safe, and as robust, over TLS? (S-21)
 *
 * Certificates are made by the command openssl. TLS needs a port: one that was
 * free a moment ago, on the loopback address. The proxy damages what is encrypted.
 */
#define _GNU_SOURCE
#include "redis/fixture.h"

#include <netdb.h>
#include <poll.h>
#include <unistd.h>

#include "redis/proxy.h"
#include "support/entries.h"

static struct {
    struct redis_server server;
    struct proxy       *proxy;
    wq_queue           *q;
    char                port[16], cert[200], key[200];
} f;

/* Skips the test where the name has no address, for want of /etc/hosts. */
static void
need_localhost(void)
{
    struct addrinfo *found;

    if (getaddrinfo("localhost", NULL, NULL, &found) != 0)
        wq_test_skip("localhost has no address");
    freeaddrinfo(found);
}

/* `asks`: for a certificate of the client, too. */
static void
start_server(const char *asks)
{
    const char *args[] = {"--tls-port",
                          f.port,
                          "--tls-cert-file",
                          f.cert,
                          "--tls-key-file",
                          f.key,
                          "--tls-auth-clients",
                          asks,
                          "--tls-ca-cert-file",
                          f.cert,
                          NULL};

    need_server();
    need_localhost();
    redis_server_start(&f.server, NULL); /* for its directory */
    redis_server_kill(&f.server);
    make_certificate(f.server.dir, "DNS:localhost");
    (void)snprintf(f.port, sizeof f.port, "%u", redis_server_free_port());
    (void)snprintf(f.cert, sizeof f.cert, "%s/cert.pem", f.server.dir);
    (void)snprintf(f.key, sizeof f.key, "%s/key.pem", f.server.dir);
    start_tls(&f.server, args);
}

static int
stop(void **state)
{
    (void)state;
    wq_destroy(f.q);
    if (f.proxy)
        proxy_stop(f.proxy);
    redis_server_stop(&f.server);
    memset(&f, 0, sizeof f);
    return 0;
}

static wq_err
open_at_port(const char *host, const char *port, const char *options)
{
    char url[1000];

    (void)snprintf(url, sizeof url, "rediss://%s:%s?queue=q%s", host, port,
                   options);
    return wq_redis_open(url, WQ_REDIS_OPTIONS(.manual_renew = true), NULL,
                         &f.q);
}

static void
refused(const char *host, const char *options, wq_err err, const char *words)
{
    assert_err(open_at_port(host, f.port, options), err);
    last_error_has(words);
}

/* A handle, through the proxy. */
static void
open_through_proxy(void)
{
    char port[16], options[300];

    start_server("no");
    f.proxy = proxy_start_tcp(f.port, port);
    (void)snprintf(options, sizeof options, "&lease=60s&timeout=10s&ca_file=%s",
                   f.cert);
    assert_err(open_at_port("localhost", port, options), WQ_OK);
}

static void
work_on(const char *key)
{
    assert_err(wq_add(f.q, wq_str(key)), WQ_OK);
    assert_err(wq_done(f.q, take_key(f.q, key)), WQ_OK);
}

/* ---- certificates --------------------------------------------------------- */

TEST(server_is_known_by_its_certificate)
{
    char options[300];

    (void)state;
    start_server("no");
    (void)snprintf(options, sizeof options, "&ca_file=%s", f.cert);
    assert_err(open_at_port("localhost", f.port, options), WQ_OK);
    work_on("k");
    wq_destroy(f.q);
    f.q = NULL;
    refused("127.0.0.1", options, WQ_EINVAL,
            "not trusted: IP address mismatch; use a host in the URL");
    /* nobody vouches for it */
    refused("localhost", "", WQ_EINVAL, "name the authority by ca_file");
    /* the server speaks TLS, and the client does not */
    char url[200];
    (void)snprintf(url, sizeof url, "redis://localhost:%s?queue=q", f.port);
    assert_err(wq_open_redis(url, NULL, &f.q), WQ_EAWAY);
    last_error_has("if it is a server with TLS, use rediss://");
}

TEST(server_with_the_certificate_of_another_authority_is_not_trusted)
{
    char options[300], command[600];

    (void)state;
    start_server("no");
    (void)snprintf(command, sizeof command,
                   "mkdir '%s/other' && cp '%s' '%s/other/server.pem'",
                   f.server.dir, f.cert, f.server.dir);
    assert_int_equal(system(command), 0);
    (void)snprintf(options, sizeof options, "%s/other", f.server.dir);
    make_certificate(options, "DNS:localhost");
    (void)snprintf(options, sizeof options, "&ca_file=%s/other/cert.pem",
                   f.server.dir);
    refused("localhost", options, WQ_EINVAL, "is the authority that");
    (void)snprintf(command, sizeof command, "rm -r '%s/other'", f.server.dir);
    assert_int_equal(system(command), 0);
}

TEST(server_may_ask_for_a_certificate)
{
    char options[900];

    (void)state;
    start_server("yes");
    (void)snprintf(options, sizeof options, "&ca_file=%s", f.cert);
    refused("localhost", options, WQ_EAWAY, "use cert_file and key_file");
    (void)snprintf(options, sizeof options,
                   "&ca_file=%s&cert_file=%s&key_file=%s", f.cert, f.cert,
                   f.key);
    assert_err(open_at_port("localhost", f.port, options), WQ_OK);
    work_on("k");
}

TEST(files_of_TLS_that_cannot_be_used_are_named)
{
    char options[900];

    (void)state;
    start_server("no");
    refused("localhost", "&ca_file=/nonexistent/ca", WQ_EINVAL,
            "cannot read ca_file '/nonexistent/ca': No such file");
    (void)snprintf(options, sizeof options, "&ca_file=%s", f.key);
    refused("localhost", options, WQ_EINVAL, "cannot use ca_file '");
    (void)snprintf(options, sizeof options,
                   "&ca_file=%s&cert_file=%s&key_file=/nonexistent/key", f.cert,
                   f.cert);
    refused("localhost", options, WQ_EINVAL,
            "cannot read key_file '/nonexistent/key': No such file");
    (void)snprintf(options, sizeof options,
                   "&ca_file=%s&cert_file=%s&key_file=%s", f.cert, f.cert,
                   f.cert);
    refused("localhost", options, WQ_EINVAL, "cannot use key_file '");
}

/* It waits for the end of a line, or complains of one. */
TEST(port_without_TLS_is_named_as_the_cause)
{
    wq_queue *q = NULL;
    char      url[200];

    (void)state;
    need_server();
    redis_server_start_tcp(&f.server, f.port, NULL);
    (void)snprintf(url, sizeof url, "rediss://127.0.0.1:%s?timeout=200ms",
                   f.port);
    assert_err(wq_open_redis(url, NULL, &q), WQ_EAWAY);
    last_error_has("is this a port for TLS?");
}

/* ---- connections that end ------------------------------------------------- */

/* The end of TLS comes as bytes, before that of the connection. */
TEST(call_after_the_server_has_closed_the_connection_succeeds)
{
    char options[300];

    (void)state;
    start_server("no");
    (void)snprintf(options, sizeof options, "&lease=60s&ca_file=%s", f.cert);
    assert_err(open_at_port("localhost", f.port, options), WQ_OK);
    for (uint64_t i = 0; i < 20; i++) {
        work_on("k");
        assert_err(wq_renew(f.q), WQ_OK);
        assert_int_equal(server_of(f.q).reconnects, 2 * i);
        assert_string_equal(
            redis_server_say(&f.server, "CLIENT KILL TYPE normal"), "2");
    }
    work_on("k");
}

TEST(bytes_one_by_one_are_put_together)
{
    (void)state;
    open_through_proxy();
    proxy_set(f.proxy, PROXY_SPLIT);
    for (int i = 0; i < 3; i++)
        work_on("k");
    check(f.q);
}

TEST(lost_reply_is_in_doubt_and_its_key_given_back)
{
    wq_item *item = NULL;

    (void)state;
    open_through_proxy();
    assert_err(wq_add(f.q, wq_str("k")), WQ_OK);
    proxy_set(f.proxy, PROXY_LOSE);
    assert_err(wq_get_within(f.q, 0, &item), WQ_EIO);
    work_on("k");
    check(f.q);
}

TEST(connection_that_ends_in_between_is_made_again)
{
    static const enum proxy_mode modes[] = {PROXY_CUT, PROXY_HALF};

    (void)state;
    open_through_proxy();
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        proxy_set(f.proxy, modes[i]);
        assert_true(is_for_now(wq_add(f.q, wq_str("k"))));
        proxy_set(f.proxy, PROXY_PASS);
        assert_err(add_in_the_end(f.q, "k"), WQ_OK);
        assert_err(wq_done(f.q, take_key(f.q, "k")), WQ_OK);
    }
    check(f.q);
}

/* The shutdown of TLS writes to a connection that is gone. */
TEST(reconnects_leave_no_descriptor)
{
    (void)state;
    open_through_proxy();
    work_on("k");
    const size_t before = entries_of("/proc/self/fd");
    for (int i = 0; i < 100; i++) {
        proxy_set(f.proxy, PROXY_CUT);
        assert_true(is_for_now(wq_renew(f.q)));
        proxy_set(f.proxy, PROXY_PASS);
        assert_err(add_in_the_end(f.q, "k"), WQ_OK);
        wq_err err = WQ_EAWAY;
        while (is_for_now(err))
            err = wq_renew(f.q);
        assert_err(err, WQ_OK);
    }
    work_on("k");
    assert_in_range(entries_of("/proc/self/fd"), 1, before);
}

#define with_server(name) cmocka_unit_test_teardown(name, stop)

WQ_TESTS(with_server(server_is_known_by_its_certificate),
         with_server(
             server_with_the_certificate_of_another_authority_is_not_trusted),
         with_server(server_may_ask_for_a_certificate),
         with_server(files_of_TLS_that_cannot_be_used_are_named),
         with_server(port_without_TLS_is_named_as_the_cause),
         with_server(call_after_the_server_has_closed_the_connection_succeeds),
         with_server(bytes_one_by_one_are_put_together),
         with_server(lost_reply_is_in_doubt_and_its_key_given_back),
         with_server(connection_that_ends_in_between_is_made_again),
         with_server(reconnects_leave_no_descriptor));
