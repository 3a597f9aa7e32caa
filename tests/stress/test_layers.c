/* SPDX-License-Identifier: MIT */
/* test_layers.c: is a layer ever freed while a call is still inside?
 *
 * O-03, O-18: a layer around a full queue has adds, rate-limited adds and gets
 * (or drains) blocked in it when wq_destroy() is called, again and again. The
 * calls race to leave while the layer is freed; a sanitizer reports one that
 * leaves too late.
 */
#include "stress/crowd.h"

#include <wq/backend.h>
#include <wq/limiter.h>

#include "memory/gate.h"
#include "port/relax.h"

enum { EACH = 2 }; /* threads of a kind */

/* The layers of a round, any of them. */
enum { DELAYING = 1, LIMITING = 2 };

/* ---- a round ------------------------------------------------------------- */

/* A queue with one HELD key, which blocks adds of others. */
static wq_queue *
make_full(void)
{
    wq_queue *q = NULL;
    wq_item  *item;

    expect_err(
        "create", WQ_OK,
        wq_create(WQ_CONFIG(.max_len = 1, .overflow = WQ_OVERFLOW_BLOCK), &q));
    expect_err("add", WQ_OK, wq_add_str(q, "held"));
    expect_err("get", WQ_OK, wq_get_within(q, 0, &item));
    return q;
}

/* With delays there is a key that is due, and `q` has no capacity for it. */
static wq_queue *
wrap(wq_queue *q, unsigned layers)
{
    wq_queue *outer = q;

    if (layers & DELAYING) {
        expect_err("delays", WQ_OK, wq_delaying_wrap(q, NULL, &outer));
        expect_err("due", WQ_OK, wq_add_after(outer, wq_str("due"), 1));
    }
    if (layers & LIMITING)
        expect_err("limits", WQ_OK,
                   wq_rate_limiting_wrap(
                       outer, WQ_CONFIG(.limiter = wq_limiter_bucket(1, 1000)),
                       &outer));
    return outer;
}

/* Wait until `n` threads sleep in the in-memory queue `q`. */
static void
await_blocked(wq_queue *q, size_t n)
{
    struct wq__memory *m = wq__memory_of(q);
    size_t             asleep = 0;

    for (unsigned round = 0; asleep != n; round++) {
        wq__relax(round);
        wq__gate_enter(m);
        asleep = m->producers.len + m->getters.len + m->drainers.len;
        wq__gate_leave(m);
    }
}

/* ---- the threads --------------------------------------------------------- */

static void *
block_in_add(void *q)
{
    expect_err("blocked add", WQ_ESHUTDOWN, wq_add_str(q, "new"));
    return NULL;
}

/* The limiter returns no delay, so that the add blocks. */
static void *
block_in_limited_add(void *q)
{
    expect_err("blocked rate-limited add", WQ_ESHUTDOWN,
               wq_add_rate_limited(q, wq_str("retry")));
    return NULL;
}

static void *
block_in_add_now(void *q)
{
    expect_err("blocked add without delay", WQ_ESHUTDOWN,
               wq_add_after(q, wq_str("now"), 0));
    return NULL;
}

static void *
block_in_get(void *q)
{
    wq_item *item;

    expect_err("blocked get", WQ_ESHUTDOWN, wq_get(q, &item));
    return NULL;
}

static void *
block_in_drain(void *q)
{
    expect_err("blocked drain", WQ_EINTERRUPTED, wq_shutdown_with_drain(q));
    return NULL;
}

static void
block_adds_and_gets(struct crowd *crowd, wq_queue *q, unsigned layers)
{
    crowd_start(crowd, EACH, block_in_add, q);
    crowd_start(crowd, EACH, block_in_get, q);
    crowd_start(crowd, EACH,
                layers & LIMITING ? block_in_limited_add : block_in_add_now, q);
}

static void
destroy_a_layer(unsigned layers, bool drains)
{
    struct crowd crowd = {.n = 0};
    wq_queue    *inner = make_full();
    wq_queue    *q = wrap(inner, layers);

    if (drains)
        crowd_start(&crowd, EACH, block_in_drain, q);
    else
        block_adds_and_gets(&crowd, q, layers);
    await_blocked(inner, crowd.n);
    wq_destroy(q);
    crowd_join(&crowd);
}

static unsigned layers_of_test;

static void
destroy_one(struct dice *dice)
{
    destroy_a_layer(layers_of_test, dice_roll(dice, 8) == 0);
}

static void
destroy_layers(unsigned layers)
{
    layers_of_test = layers;
    print_message("%u layers destroyed\n", repeat(destroy_one));
}

/* O-03 O-18 */
TEST(no_call_is_in_a_freed_delaying_layer)
{
    destroy_layers(DELAYING);
}

/* O-03 O-18 */
TEST(no_call_is_in_a_freed_limiting_layer)
{
    destroy_layers(LIMITING);
}

/* O-03 O-18 */
TEST(no_call_is_in_two_freed_layers)
{
    destroy_layers(DELAYING | LIMITING);
}

WQ_TESTS(test(no_call_is_in_a_freed_delaying_layer),
         test(no_call_is_in_a_freed_limiting_layer),
         test(no_call_is_in_two_freed_layers));
