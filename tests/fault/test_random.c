/* SPDX-License-Identifier: MIT */
/* test_random.c: what fails when the system gives no random numbers?
 *
 * getentropy() is the one defined here.
 */
#include "support/wq_test.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <wq/backend.h>
#include <wq/limiter.h>

static bool is_broken;

int getentropy(void *out, size_t n);

int
getentropy(void *out, size_t n)
{
    if (is_broken) {
        errno = EIO;
        return -1;
    }
    memset(out, 1, n);
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

/* E-03 L-31 */
TEST(queues_without_random_numbers_fail)
{
    wq_queue *inner = NULL, *out = NULL;

    assert_int_equal(wq_create(NULL, &inner), WQ_OK);
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
    wq_destroy(inner);
}

WQ_TESTS(test_with(limiters_without_random_numbers_fail, NULL, repair),
         test_with(queues_without_random_numbers_fail, NULL, repair));
