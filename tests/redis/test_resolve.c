/* SPDX-License-Identifier: MIT */
/* test_resolve.c: what if the system's resolver takes long?
 *
 * getaddrinfo() of this program holds names that end with ".slow" back until the
 * test lets them go, and passes all else on to the system's.
 */
#define _GNU_SOURCE
#include "redis/fixture.h"

#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "port/time.h"
#include "resolve.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    bool            holds;
    int             begun, ended; /* lookups of slow names */
} slow = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .changed = PTHREAD_COND_INITIALIZER};

static void
wait_for_release(void)
{
    (void)pthread_mutex_lock(&slow.lock);
    slow.begun++;
    while (slow.holds)
        (void)pthread_cond_wait(&slow.changed, &slow.lock);
    slow.ended++;
    (void)pthread_cond_broadcast(&slow.changed);
    (void)pthread_mutex_unlock(&slow.lock);
}

int
getaddrinfo(const char *restrict name, const char *restrict service,
            const struct addrinfo *restrict hints,
            struct addrinfo **restrict out)
{
    typedef int resolver(const char *, const char *, const struct addrinfo *,
                         struct addrinfo **);
    void       *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
    resolver   *system = NULL;
    const char *end = name ? strstr(name, ".slow") : NULL;

    memcpy(&system, &symbol, sizeof system);
    if (!system)
        abort();
    if (!end || (hints && hints->ai_flags & AI_NUMERICHOST))
        return system(name, service, hints, out);
    wait_for_release();
    return system("127.0.0.1", service, hints, out);
}

static int
set_up(void **state)
{
    (void)state;
    slow.holds = true;
    slow.begun = slow.ended = 0;
    return 0;
}

/* Lookups that nobody waits for end, too: the next test begins without them. */
static int
tear_down(void **state)
{
    (void)state;
    (void)pthread_mutex_lock(&slow.lock);
    slow.holds = false;
    (void)pthread_cond_broadcast(&slow.changed);
    while (slow.ended < slow.begun)
        (void)pthread_cond_wait(&slow.changed, &slow.lock);
    (void)pthread_mutex_unlock(&slow.lock);
    return 0;
}

static int
resolve(struct wq__lookup **pending, const char *host, int64_t within_ns,
        struct addrinfo **out)
{
    return wq__resolve(pending, host, "6379", wq__time_now() + within_ns, out);
}

TEST(numbers_need_no_lookup)
{
    static const char *const hosts[] = {"127.0.0.1", "::1"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct wq__lookup *pending = NULL;
        struct addrinfo   *list = NULL;
        assert_int_equal(resolve(&pending, hosts[i], 0, &list), 0);
        assert_null(pending);
        freeaddrinfo(list);
    }
}

TEST(lookup_that_takes_long_goes_on_and_is_used)
{
    struct wq__lookup *pending = NULL;
    struct addrinfo   *list = NULL;

    (void)state;
    assert_int_equal(resolve(&pending, "a.slow", WQ_MS(20), &list), EAI_AGAIN);
    assert_int_equal(resolve(&pending, "a.slow", WQ_MS(20), &list), EAI_AGAIN);
    assert_non_null(pending);
    (void)tear_down(NULL);
    assert_int_equal(resolve(&pending, "a.slow", WQ_SECONDS(60), &list), 0);
    assert_null(pending);
    assert_int_equal(slow.begun, 1);
    freeaddrinfo(list);
}

TEST(lookup_of_another_host_does_not_wait_for_the_first)
{
    struct wq__lookup *pending = NULL;
    struct addrinfo   *list = NULL;

    (void)state;
    assert_int_equal(resolve(&pending, "a.slow", WQ_MS(20), &list), EAI_AGAIN);
    assert_int_equal(resolve(&pending, "127.0.0.1", 0, &list), 0);
    freeaddrinfo(list);
    assert_int_equal(resolve(&pending, "b.slow", WQ_MS(20), &list), EAI_AGAIN);
    wq__resolve_abandon(&pending);
}

TEST(call_does_not_wait_for_the_resolver)
{
    wq_queue *q = NULL;

    (void)state;
    assert_err(wq_open_redis("redis://a.slow?timeout=50ms", NULL, &q),
               WQ_EAWAY);
    last_error_has("cannot find the host of a.slow:6379");
}

#define with_resolver(name)                                                    \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down)

WQ_TESTS(with_resolver(numbers_need_no_lookup),
         with_resolver(lookup_that_takes_long_goes_on_and_is_used),
         with_resolver(lookup_of_another_host_does_not_wait_for_the_first),
         with_resolver(call_does_not_wait_for_the_resolver));
