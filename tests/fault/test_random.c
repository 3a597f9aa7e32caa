/* SPDX-License-Identifier: MIT */
/* test_random.c: what fails when the system gives no random numbers?
 *
 * getentropy() is the one defined here.
 */
#include "support/wq_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <wq/backend.h>
#include <wq/limiter.h>

#include "limit/secret.h"

static bool     is_broken;
static unsigned calls; /* of getentropy() */

int getentropy(void *out, size_t n);

int
getentropy(void *out, size_t n)
{
    if (is_broken) {
        errno = EIO;
        return -1;
    }
    calls++;
    memset(out, (int)calls, n);
    return 0;
}

static int
repair(void **state)
{
    (void)state;
    is_broken = false;
    return 0;
}

#define assert_says(call, sentence)                                            \
    do {                                                                       \
        assert_int_equal(call, WQ_EIO);                                        \
        assert_string_equal(wq_last_error(), sentence);                        \
    } while (0)

/* A thread of its own has no seed yet. */
static void
in_new_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, run, arg), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* E-03 L-31 */
TEST(limiters_without_random_numbers_fail)
{
    is_broken = true;
    assert_says(wq_limiter_error(wq_limiter_exponential(1, 2)),
                "wq_limiter_exponential: the system gave no random numbers");
    assert_says(wq_limiter_error(wq_limiter_fast_slow(1, 2, 3)),
                "wq_limiter_fast_slow: the system gave no random numbers");
    assert_says(wq_limiter_error(wq_limiter_item_bucket(1, 2)),
                "wq_limiter_item_bucket: the system gave no random numbers");
    assert_says(wq_limiter_error(wq_limiter_from_spec(&(wq_limiter_spec){
                    .size = sizeof(wq_limiter_spec),
                    .parts = WQ_PART_EXPONENTIAL | WQ_PART_BUCKET})),
                "wq_limiter_max_of: children[0]: wq_limiter_exponential: "
                "the system gave no random numbers");
    assert_says(wq_limiter_error(wq_limiter_default()),
                "wq_limiter_max_of: children[0]: wq_limiter_exponential: "
                "the system gave no random numbers");
}

static void *
fail_queues(void *inner)
{
    wq_queue *out = NULL;

    is_broken = true;
    assert_says(wq_create(NULL, &out),
                "wq_create: the system gave no random numbers");
    assert_says(wq_delaying_wrap(inner, NULL, &out),
                "wq_delaying_wrap: the system gave no random numbers");
    assert_says(wq_rate_limiting_wrap(inner, NULL, &out),
                "the default limiter: wq_limiter_max_of: children[0]: "
                "wq_limiter_exponential: the system gave no random numbers");
    wq_limiter *failed = wq_limiter_default_item();
    is_broken = false;
    assert_says(wq_create(WQ_CONFIG(.limiter = failed), &out),
                "wq_config.limiter: wq_limiter_exponential: the system gave no "
                "random numbers");
    assert_null(out);
    return NULL;
}

/* E-03 L-31 */
TEST(queues_without_random_numbers_fail)
{
    wq_queue *inner = NULL;

    assert_int_equal(wq_create(NULL, &inner), WQ_OK);
    in_new_thread(fail_queues, inner);
    wq_destroy(inner);
}

static struct wq__hash_key
new_secret(void)
{
    struct wq__hash_key secret;

    assert_true(wq__secret_new(&secret));
    return secret;
}

static bool
are_equal(struct wq__hash_key a, struct wq__hash_key b)
{
    return a.k0 == b.k0 || a.k1 == b.k1 || a.k0 == b.k1 || a.k1 == b.k0;
}

TEST(secrets_differ_and_need_one_system_call)
{
    enum { SECRETS = 100 };
    struct wq__hash_key all[SECRETS];

    (void)new_secret(); /* now the thread has a seed */
    calls = 0;
    for (size_t i = 0; i < SECRETS; i++) {
        all[i] = new_secret();
        assert_true(all[i].k0 != all[i].k1);
        for (size_t k = 0; k < i; k++)
            assert_false(are_equal(all[i], all[k]));
    }
    assert_int_equal(calls, 0);
}

static void *
draw(void *secret)
{
    *(struct wq__hash_key *)secret = new_secret();
    return NULL;
}

TEST(threads_draw_seeds_of_their_own)
{
    struct wq__hash_key a, b;

    in_new_thread(draw, &a);
    in_new_thread(draw, &b);
    assert_false(are_equal(a, b));
}

TEST(child_process_draws_a_seed_of_its_own)
{
    int       status;
    const int seen = (int)calls;

    (void)new_secret();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct wq__hash_key secret;
        calls = (unsigned)seen;
        _exit(wq__secret_new(&secret) && (int)calls == seen + 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

WQ_TESTS(test_with(limiters_without_random_numbers_fail, NULL, repair),
         test_with(queues_without_random_numbers_fail, NULL, repair),
         test_with(secrets_differ_and_need_one_system_call, NULL, repair),
         test_with(threads_draw_seeds_of_their_own, NULL, repair),
         test_with(child_process_draws_a_seed_of_its_own, NULL, repair));
