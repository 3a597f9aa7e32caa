/* SPDX-License-Identifier: MIT */
/* test_limiter_error.c: which sentence does a limiter leave that cannot be made,
 * and how long does the sentence stay with the limiter? */
#include "sentence.h"

#include <math.h>

#include <wq/limiter.h>

#include "support/probe.h"
#include "support/worker.h"

/* E-03 L-31 */
TEST(limiter_says_which_argument_is_wrong)
{
    wq_limiter_ops     odd = {.size = ODD}, empty = {.size = sizeof empty};
    const wq_allocator no_free = {.size = sizeof no_free, .alloc = no_memory};
    wq_limiter *(*const with)(const wq_exponential_options *) =
        wq_limiter_exponential_with;
#define assert_refused(make, ...)                                              \
    assert_says(wq_limiter_error(make), WQ_EINVAL, __VA_ARGS__)

    assert_refused(wq_limiter_exponential(-5, 1),
                   "wq_limiter_exponential: base_ns is negative (-5)");
    assert_refused(wq_limiter_exponential(5, -1),
                   "wq_limiter_exponential: max_ns is negative (-1)");
    assert_refused(with(&(wq_exponential_options){.size = ODD}),
                   "wq_exponential_options.size is 13: use WQ_EXPONENTIAL() or "
                   "sizeof(wq_exponential_options)");
    assert_refused(with(WQ_EXPONENTIAL(.base_ns = -2)),
                   "wq_exponential_options.base_ns is negative (-2)");
    assert_refused(with(WQ_EXPONENTIAL(.max_ns = -2)),
                   "wq_exponential_options.max_ns is negative (-2)");
    assert_refused(with(WQ_EXPONENTIAL(.ttl_ns = -2)),
                   "wq_exponential_options.ttl_ns is negative (-2)");
    assert_refused(with(WQ_EXPONENTIAL(.jitter = (wq_jitter)3)),
                   "wq_exponential_options.jitter is 3: not a wq_jitter");
    assert_refused(with(WQ_EXPONENTIAL(.factor = 0.5)),
                   "wq_exponential_options.factor is 0.5: must be finite and "
                   "at least 1");
    assert_refused(with(WQ_EXPONENTIAL(.factor = HUGE_VAL)),
                   "wq_exponential_options.factor is inf: must be finite and "
                   "at least 1");
    assert_refused(with(WQ_EXPONENTIAL(.allocator = &no_free)),
                   "wq_allocator.free is NULL");
    assert_refused(wq_limiter_fast_slow(-1, 1, 1),
                   "wq_limiter_fast_slow: fast_ns is negative (-1)");
    assert_refused(wq_limiter_fast_slow(1, -1, 1),
                   "wq_limiter_fast_slow: slow_ns is negative (-1)");
    assert_refused(wq_limiter_bucket(NAN, 1),
                   "wq_limiter_bucket: per_second is not a number");
    assert_refused(wq_limiter_item_bucket(HUGE_VAL, 1),
                   "wq_limiter_item_bucket: per_second is infinite: use "
                   "WQ_RATE_INF");
    assert_refused(wq_limiter_max_of(1, NULL),
                   "wq_limiter_max_of: children is NULL");
    wq_limiter *children[] = {wq_limiter_default_item(), NULL};
    assert_refused(wq_limiter_max_of(2, children),
                   "wq_limiter_max_of: children[1] is NULL");
    assert_refused(wq_limiter_with_max_wait(NULL, 1),
                   "wq_limiter_with_max_wait: inner is NULL");
    assert_refused(wq_limiter_with_max_wait(wq_limiter_default_item(), -3),
                   "wq_limiter_with_max_wait: max_ns is negative (-3)");
    assert_refused(wq_limiter_create(NULL, NULL),
                   "wq_limiter_create: ops is NULL");
    assert_refused(wq_limiter_create(&odd, NULL),
                   "wq_limiter_ops.size is 13: use sizeof(wq_limiter_ops)");
    assert_refused(wq_limiter_create(&empty, NULL),
                   "wq_limiter_ops.when is NULL");
#undef assert_refused
    assert_says(wq_limiter_error(with(WQ_EXPONENTIAL(.allocator = &broke))),
                WQ_ENOMEM, "wq_limiter_exponential: out of memory");
}

/* E-03 L-31: whatever was built around the limiter that failed. */
TEST(reason_of_a_failed_limiter_survives_until_create)
{
    wq_queue *q = NULL;

    assert_says(
        wq_create(
            WQ_CONFIG(.limiter = wq_limiter_with_max_wait(
                          wq_limiter_max_of(
                              2, (wq_limiter *[]){wq_limiter_exponential(-5, 1),
                                                  wq_limiter_bucket(10, 100)}),
                          1000)),
            &q),
        WQ_EINVAL,
        "wq_config.limiter: wq_limiter_with_max_wait: inner: "
        "wq_limiter_max_of: children[0]: "
        "wq_limiter_exponential: base_ns is negative (-5)");
    assert_null(q);
}

/* E-03 L-31: only the last one still has its reason. */
TEST(failed_limiter_does_not_get_the_reason_of_another)
{
    wq_limiter *bad[2];

    bad[0] = wq_limiter_exponential(-5, 1);
    bad[1] = wq_limiter_bucket(NAN, 1);
    assert_err(wq_limiter_error(wq_limiter_max_of(2, bad)), WQ_EINVAL);
    assert_string_equal(wq_last_error(),
                        "wq_limiter_max_of: children[0] is a failed limiter: "
                        "invalid argument");

    bad[0] = wq_limiter_exponential(-5, 1);
    bad[1] = wq_limiter_bucket(NAN, 1);
    assert_err(wq_limiter_error(wq_limiter_max_of(1, bad + 1)), WQ_EINVAL);
    assert_string_equal(wq_last_error(),
                        "wq_limiter_max_of: children[0]: "
                        "wq_limiter_bucket: per_second is not a number");
}

static void
destroy_and_fail(void *self)
{
    probe_ops.destroy(self);
    assert_err(wq_limiter_error(wq_limiter_exponential(-7, 1)), WQ_EINVAL);
    (void)wq_fail(WQ_EIO, "a sentence of destroy()");
}

static wq_limiter *failed_in_destroy;

static void
destroy_and_keep(void *self)
{
    probe_ops.destroy(self);
    failed_in_destroy = wq_limiter_exponential(-7, 1);
}

/* A limiter with another destroy(). */
static wq_limiter *
probe_with(void (*destroy)(void *self), struct probe *p)
{
    wq_limiter_ops ops = probe_ops;

    ops.destroy = destroy;
    return wq_limiter_create(&ops, p);
}

/* E-03 L-24: of a queue, a layer, another limiter. */
TEST(limiter_that_fails_in_destroy_changes_no_sentence)
{
    struct probe p = {0};
    wq_queue    *q = NULL;

    assert_says(
        wq_create(
            WQ_CONFIG(.retry = 8, .limiter = probe_with(destroy_and_fail, &p)),
            &q),
        WQ_EINVAL,
        "wq_config.retry is 0x8: has bits that are not in enum wq_retry");
    assert_says(
        wq_rate_limiting_wrap(
            NULL, WQ_CONFIG(.limiter = probe_with(destroy_and_fail, &p)), &q),
        WQ_EINVAL, "wq_rate_limiting_wrap: inner is NULL");
    assert_says(
        wq_create(WQ_CONFIG(.limiter = wq_limiter_with_max_wait(
                                probe_with(destroy_and_fail, &p), -3)),
                  &q),
        WQ_EINVAL,
        "wq_config.limiter: wq_limiter_with_max_wait: max_ns is negative (-3)");
    assert_int_equal(p.destroys, 3);
    (void)wq_fail(WQ_EIO, "before");
    wq_limiter_destroy(probe_with(destroy_and_fail, &p));
    assert_string_equal(wq_last_error(), "before");
    assert_null(q);
}

/* E-03 L-31: the sentence that destroy() set is not that of a later failure. */
TEST(limiter_that_failed_in_destroy_has_no_reason_left)
{
    struct probe p = {0};

    (void)wq_fail(WQ_EIO, "before");
    wq_limiter_destroy(probe_with(destroy_and_keep, &p));
    assert_int_equal(p.destroys, 1);
    assert_err(wq_limiter_error(wq_limiter_max_of(1, &failed_in_destroy)),
               WQ_EINVAL);
    assert_string_equal(wq_last_error(),
                        "wq_limiter_max_of: children[0] is a failed limiter: "
                        "invalid argument");
}

static int
make_in_another_thread(struct worker *self)
{
    *(wq_limiter **)self->arg = wq_limiter_exponential(-1, 1);
    return 0;
}

/* E-03 L-31: the reason is in another thread, or was overwritten. */
TEST(failed_limiter_without_its_reason_is_named)
{
    wq_limiter *failed = wq_limiter_exponential(-1, 1);
    wq_queue   *q = NULL;

    assert_says(wq_create(WQ_CONFIG(.limiter = failed), &q), WQ_EINVAL,
                "wq_config.limiter is a failed limiter: invalid argument");
    assert_int_equal(worker_join(worker_start(make_in_another_thread, &failed)),
                     0);
    assert_says(
        wq_limiter_error(wq_limiter_max_of(1, (wq_limiter *[]){failed})),
        WQ_EINVAL,
        "wq_limiter_max_of: children[0] is a failed limiter: invalid argument");
}

/* E-03 L-24 */
TEST(sentence_names_the_limiter_that_has_an_owner)
{
    wq_limiter *part = wq_limiter_default_item();
    wq_limiter *whole = wq_limiter_with_max_wait(part, 1);
    wq_queue   *q = NULL;

    assert_says(wq_create(WQ_CONFIG(.limiter = part), &q), WQ_EINVAL,
                "wq_config.limiter has an owner already");
    wq_limiter_destroy(whole);
}

WQ_TESTS(test(limiter_says_which_argument_is_wrong),
         test(reason_of_a_failed_limiter_survives_until_create),
         test(failed_limiter_does_not_get_the_reason_of_another),
         test(limiter_that_fails_in_destroy_changes_no_sentence),
         test(limiter_that_failed_in_destroy_has_no_reason_left),
         test(failed_limiter_without_its_reason_is_named),
         test(sentence_names_the_limiter_that_has_an_owner));
