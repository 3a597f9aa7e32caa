/* SPDX-License-Identifier: MIT */
/* test_limiter.c: what is left of a queue and its limiter, made in one
 * expression, when one of their allocations is refused?
 *
 * The first allocation is refused, the second, and so on, until all succeed.
 * The constructors are those of <wq/limiter.h>, with an allocator.
 */
#include "support/wq_test.h"

#include <wq/backend.h>

#include "limit/limiter.h"
#include "support/counting.h"

#define MS INT64_C(1000000)

static int64_t
no_delay(void *self, wq_key key)
{
    (void)self, (void)key;
    return 0;
}

static void
count_destroy(void *self)
{
    ++*(int *)self;
}

static const wq_limiter_ops ops = {
    .size = sizeof ops, .when = no_delay, .destroy = count_destroy};

/* As an argument of WQ_CONFIG(): a limiter with all kinds of parts, of which
 * the user's own counts in *destroys. */
#define LIMITER(mem, destroys)                                                 \
    wq__limiter_with_max_wait(                                                 \
        mem,                                                                   \
        wq__limiter_max_of(                                                    \
            mem, 5,                                                            \
            (wq_limiter *[]){wq__limiter_exponential(mem, MS, 9 * MS),         \
                             wq__limiter_create(mem, &ops, destroys),          \
                             wq__limiter_bucket(mem, 10, 100),                 \
                             wq__limiter_item_bucket(mem, 10, 100),            \
                             wq__limiter_fast_slow(mem, 1, 2, 3)}),            \
        MS)

/* Make it with the nth allocation refused. */
typedef wq_err (*maker)(const wq_allocator *mem, int *destroys, wq_queue **out);

static wq_err
make_queue(const wq_allocator *mem, int *destroys, wq_queue **out)
{
    return wq_create(WQ_CONFIG(.name = "q", .allocator = mem,
                               .limiter = LIMITER(mem, destroys)),
                     out);
}

/* Whatever becomes of the limiter, the rest of the config is wrong. */
static wq_err
make_bad_queue(const wq_allocator *mem, int *destroys, wq_queue **out)
{
    const wq_err err =
        wq_create(WQ_CONFIG(.overflow = WQ_OVERFLOW_BLOCK, .allocator = mem,
                            .limiter = LIMITER(mem, destroys)),
                  out);

    assert_int_equal(err, WQ_EINVAL);
    return err;
}

static wq_err
make_nowhere(const wq_allocator *mem, int *destroys, wq_queue **out)
{
    (void)out;
    return wq_create(
        WQ_CONFIG(.allocator = mem, .limiter = LIMITER(mem, destroys)), NULL);
}

/* Around a queue that has memory of its own. */
static wq_err
make_layer(const wq_allocator *mem, int *destroys, wq_queue **out)
{
    wq_queue *inner = NULL;

    assert_int_equal(wq_create(NULL, &inner), WQ_OK);
    const wq_err err = wq_rate_limiting_wrap(
        inner, WQ_CONFIG(.allocator = mem, .limiter = LIMITER(mem, destroys)),
        out);
    if (err)
        wq_destroy(inner);
    return err;
}

/* How many allocations were refused before one run met none. */
static unsigned
sweep(maker make, wq_err without_refusal)
{
    for (unsigned nth = 1;; nth++) {
        struct counting mem;
        wq_queue       *q = NULL;
        int             destroys = 0;

        counting_init(&mem);
        counting_fail(&mem, nth, COUNTING_ONCE);
        const wq_err err = make(&mem.allocator, &destroys, &q);
        const bool   refused = mem.refused > 0;
        if (!err) {
            assert_int_equal(destroys, 0);
            wq_destroy(q);
        } else {
            assert_null(q);
            assert_string_not_equal(wq_last_error(), "");
        }
        assert_int_equal(destroys, 1);
        assert_int_equal(mem.bytes, 0);
        if (!refused) {
            assert_int_equal(err, without_refusal);
            return nth - 1;
        }
        assert_int_not_equal(err, WQ_OK);
    }
}

/* L-24 L-25 L-31: seven limiters, the queue and its name. */
TEST(queue_and_limiter_in_one_expression_leak_nothing)
{
    assert_true(sweep(make_queue, WQ_OK) >= 9);
}

/* L-24 L-25 L-31 */
TEST(limiter_of_a_bad_config_leaks_nothing)
{
    assert_int_equal(sweep(make_bad_queue, WQ_EINVAL), 7);
    assert_int_equal(sweep(make_nowhere, WQ_EINVAL), 7);
}

/* L-24 L-25 L-31 O-18 */
TEST(layer_and_limiter_in_one_expression_leak_nothing)
{
    assert_int_equal(sweep(make_layer, WQ_OK), 8);
}

/* A limiter with every part of a description, and the user's own around it. */
static wq_err
make_from_spec(const wq_allocator *mem, int *destroys, wq_queue **out)
{
    const wq_limiter_spec spec = {.size = sizeof spec, .parts = 31};

    return wq_create(
        WQ_CONFIG(.allocator = mem,
                  .limiter = wq__limiter_max_of(
                      mem, 2,
                      (wq_limiter *[]){
                          wq__limiter_from_spec(mem, &spec),
                          wq__limiter_create(mem, &ops, destroys)})),
        out);
}

/* L-24 L-25 L-31 L-35: four parts, two combinations, and those around. */
TEST(limiter_from_a_description_leaks_nothing)
{
    assert_true(sweep(make_from_spec, WQ_OK) >= 9);
}

WQ_TESTS(test(queue_and_limiter_in_one_expression_leak_nothing),
         test(limiter_of_a_bad_config_leaks_nothing),
         test(layer_and_limiter_in_one_expression_leak_nothing),
         test(limiter_from_a_description_leaks_nothing));
