/* SPDX-License-Identifier: MIT */
/* test_addresses.c: what if a host has several addresses, and some of them do not
 * answer? (S-21)
 *
 * getaddrinfo() of this program gives the host "several" the addresses that the
 * test lists, in their order, and passes all else on to the system's. An address
 * that does not answer is a listener whose queue of connections is full: the kernel
 * drops what comes.
 */
#define _GNU_SOURCE
#include "redis/fixture.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WAITING = 4 };

static struct {
    struct redis_server server;
    char                port[16];
    const char *const  *hosts; /* of "several"; ends with NULL */
    int                 mute;  /* the listener that does not answer */
    int                 waiting[WAITING];
} f;

typedef int  resolver(const char *, const char *, const struct addrinfo *,
                      struct addrinfo **);
typedef void releaser(struct addrinfo *);

/* The nodes of a list may be of several. */
void
freeaddrinfo(struct addrinfo *list)
{
    void     *symbol = dlsym(RTLD_NEXT, "freeaddrinfo");
    releaser *system = NULL;

    memcpy(&system, &symbol, sizeof system);
    while (list) {
        struct addrinfo *next = list->ai_next;
        list->ai_next = NULL;
        system(list);
        list = next;
    }
}

int
getaddrinfo(const char *restrict name, const char *restrict service,
            const struct addrinfo *restrict hints,
            struct addrinfo **restrict out)
{
    void             *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
    resolver         *system = NULL;
    struct addrinfo **end = out;

    memcpy(&system, &symbol, sizeof system);
    if (!system)
        abort();
    if (strcmp(name, "several") != 0 ||
        (hints && hints->ai_flags & AI_NUMERICHOST))
        return system(name, service, hints, out);
    for (size_t i = 0; f.hosts[i]; i++) {
        if (system(f.hosts[i], service, hints, end))
            abort();
        while (*end)
            end = &(*end)->ai_next;
    }
    return 0;
}

/* ---- addresses ------------------------------------------------------------ */

static struct sockaddr_in
address_of(const char *host)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port =
                                htons((uint16_t)strtoul(f.port, NULL, 10))};

    assert_int_equal(inet_pton(AF_INET, host, &a.sin_addr), 1);
    return a;
}

static int
open_tcp(int flags)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    assert_true(fd >= 0);
    return fd;
}

/* From now on 127.0.0.2 does not answer at the server's port. */
static void
fall_silent(void)
{
    const struct sockaddr_in a = address_of("127.0.0.2");
    const struct sockaddr   *addr = (const struct sockaddr *)(const void *)&a;

    f.mute = open_tcp(0);
    assert_int_equal(bind(f.mute, addr, sizeof a), 0);
    assert_int_equal(listen(f.mute, 0), 0);
    for (int i = 0; i < WAITING; i++) {
        f.waiting[i] = open_tcp(SOCK_NONBLOCK);
        (void)connect(f.waiting[i], addr, sizeof a);
    }
    /* All but the first wait for their connections. */
    struct pollfd p = {.fd = f.waiting[WAITING - 1], .events = POLLOUT};
    assert_int_equal(poll(&p, 1, 50), 0);
}

static int
set_up(void **state)
{
    (void)state;
    need_server();
    redis_server_start_tcp(&f.server, f.port, NULL);
    f.mute = -1;
    for (int i = 0; i < WAITING; i++)
        f.waiting[i] = -1;
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < WAITING; i++)
        if (f.waiting[i] >= 0)
            (void)close(f.waiting[i]);
    if (f.mute >= 0)
        (void)close(f.mute);
    redis_server_stop(&f.server);
    return 0;
}

static wq_err
open_several(const char *const *hosts, const char *timeout, wq_queue **q)
{
    char url[200];

    f.hosts = hosts;
    (void)snprintf(url, sizeof url, "redis://several:%s?queue=q&timeout=%s",
                   f.port, timeout);
    return wq_redis_open(url, WQ_REDIS_OPTIONS(.manual_renew = true), NULL, q);
}

/* ---- tests ---------------------------------------------------------------- */

TEST(address_that_does_not_answer_leaves_time_for_the_others)
{
    static const char *const hosts[] = {"127.0.0.2", "127.0.0.1", NULL};
    wq_queue                *q = NULL;

    (void)state;
    fall_silent();
    assert_err(open_several(hosts, "2s", &q), WQ_OK);
    assert_err(wq_add_str(q, "k"), WQ_OK);
    assert_err(wq_done(q, take_key(q, "k")), WQ_OK);
    wq_destroy(q);
}

TEST(address_that_refuses_is_followed_by_the_next_at_once)
{
    static const char *const hosts[] = {"127.0.0.3", "::1", "127.0.0.1", NULL};
    wq_queue                *q = NULL;
    const int64_t            begin_ns = now_ns();

    (void)state;
    assert_err(open_several(hosts, "60s", &q), WQ_OK);
    assert_true(now_ns() - begin_ns < WQ_SECONDS(15));
    wq_destroy(q);
}

/* The last one has all the time that is left. */
TEST(host_of_which_no_address_answers_is_given_up_in_time)
{
    static const char *const hosts[] = {"127.0.0.2", "127.0.0.2", NULL};
    wq_queue                *q = NULL;

    (void)state;
    fall_silent();
    const int64_t begin_ns = now_ns();
    assert_err(open_several(hosts, "400ms", &q), WQ_EAWAY);
    last_error_has("several");
    last_error_has("timed out");
    assert_true(now_ns() - begin_ns >= WQ_MS(400));
    assert_true(now_ns() - begin_ns < WQ_SECONDS(20));
}

#define with_server(name)                                                      \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down)

WQ_TESTS(with_server(address_that_does_not_answer_leaves_time_for_the_others),
         with_server(address_that_refuses_is_followed_by_the_next_at_once),
         with_server(host_of_which_no_address_answers_is_given_up_in_time));
