/* SPDX-License-Identifier: MIT */
/* test_bounds.c: what may a callback do when a key is displaced, and what ends
 * an add that waits for capacity? scenarios/bounds.scenario says when either
 * happens. */
#include "asked.h"
#include "configs.h"

#include <stdatomic.h>
#include <stdio.h>

#include <wq/metrics.h>

#include "support/checkpoint.h"
#include "support/counting.h"

/* ---- DROP_OLDEST --------------------------------------------------------- */

struct drops {
    wq_queue *q;        /* to call once from the callback, or NULL */
    char      text[64]; /* the displaced keys, one after the other */
};

static void
note_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    struct drops *d = ctx;
    const size_t  at = strlen(d->text);
    wq_queue     *q = d->q;

    assert_err(why, WQ_EFULL);
    assert_int_equal(retries, 0);
    (void)snprintf(d->text + at, sizeof d->text - at, "%.*s", (int)key.len,
                   (const char *)key.data);
    if (!q)
        return;
    d->q = NULL;
    assert_states(q, "new", WQ_STATE_READY);
    assert_err(wq_add(q, key), WQ_OK); /* displaces another key */
    (void)wq_len(q);
}

/* Add the keys, of one byte each, and then "new". The callback adds the first
 * displaced key, "a", again. */
static void
add_in_callback(wq_config config, const char *keys, const char *displaced)
{
    struct drops d = {.text = ""};

    config.overflow = WQ_OVERFLOW_DROP_OLDEST;
    config.on_drop = note_drop;
    config.drop_ctx = &d;
    wq_queue *q = open_queue(&config);
    for (; *keys; keys++)
        assert_err(wq_add(q, wq_bytes(keys, 1)), WQ_OK);
    d.q = q;
    add(q, "new");
    assert_string_equal(d.text, displaced);
    assert_int_equal(counts_of(q).bytes, config.max_bytes); /* it is full */
    work_on(q, "new");
    work_on(q, "a");
    assert_none_ready(q, WQ_ETIMEDOUT);
    wq_destroy(q);
}

/* O-55 O-87: no lock is held, and the key can be read. With a bound in bytes the
 * first add has displaced "b", too, and still reports it. */
TEST(callback_of_a_displaced_key_may_call_the_queue)
{
    add_in_callback(*WQ_CONFIG(.max_len = 2), "ab", "ab");
    add_in_callback(*WQ_CONFIG(.max_bytes = 4), "abc", "acb");
}

/* O-55: long keys are outside their records. */
TEST(displaced_keys_of_any_length_are_shown_and_freed)
{
    static char bytes[WQ_KEY_MAX];

    memset(bytes, 'k', sizeof bytes);
    for (int has_callback = 0; has_callback < 2; has_callback++) {
        struct counting mem;
        struct drops    d = {.text = ""};

        counting_init(&mem);
        wq_queue *q =
            open_queue(WQ_CONFIG(.max_len = 2, .allocator = &mem.allocator,
                                 .overflow = WQ_OVERFLOW_DROP_OLDEST,
                                 .on_drop = has_callback ? note_drop : NULL,
                                 .drop_ctx = &d));
        for (size_t len = 1; len <= sizeof bytes; len = len * 3 + 1)
            assert_err(wq_add(q, wq_bytes(bytes, len)), WQ_OK);
        wq_destroy(q);
        assert_int_equal(mem.bytes, 0);
    }
}

/* ---- BLOCK --------------------------------------------------------------- */

/* An add of keys of one byte each in a thread of its own. */
struct adding {
    wq_queue      *q;
    wq_add_options how;
    const char    *keys;
    struct worker *worker;
};

static int
run_add(struct worker *self)
{
    struct adding *a = self->arg;
    wq_key         keys[32];
    size_t         n = 0;

    for (; a->keys[n]; n++)
        keys[n] = wq_bytes(a->keys + n, 1);
    return (int)wq_add_with(a->q, &a->how, keys, n);
}

/* Begin, and wait until it is blocked. */
static void
block(struct adding *a)
{
    a->worker = worker_start(run_add, a);
    worker_await_blocked(a->worker);
}

/* O-55 O-03: the adds free what they allocated before they waited. */
TEST(destroy_ends_blocked_adds)
{
    enum { KEYS = 35, ADDS = 3 };
    struct counting mem;

    counting_init(&mem);
    wq_queue *q =
        open_queue(WQ_CONFIG(.max_len = KEYS, .allocator = &mem.allocator,
                             .overflow = WQ_OVERFLOW_BLOCK));
    struct adding all[ADDS] = {
        {q, *WQ_ADD(.rate_limited = true), "x", NULL},
        {q, *WQ_ADD(.priority = 3), "abcdefghijklmnopqrstuvwxyzABCDEF", NULL},
        {q, *WQ_ADD(.rate_limited = true), "0123456789abcdefghijklmnopqrstuv",
         NULL},
    };
    for (uint64_t i = 0; i < KEYS; i++)
        assert_err(wq_add(q, wq_u64(&i)), WQ_OK);
    for (int i = 0; i < ADDS; i++)
        block(&all[i]);
    wq_destroy(q);
    for (int i = 0; i < ADDS; i++)
        assert_err(worker_join(all[i].worker), WQ_ESHUTDOWN);
    assert_int_equal(mem.bytes, 0);
}

/* A sink that holds up the second report of an add. */
struct held_up {
    struct checkpoint checkpoint;
    atomic_int        adds;
};

static wq_err
open_held_up(void *self, wq_queue *q, const char *name, void **handle)
{
    (void)q, (void)name;
    *handle = self;
    return WQ_OK;
}

static void
hold_up(void *handle, const wq_change *change)
{
    struct held_up *h = handle;

    if (change->adds && atomic_fetch_add(&h->adds, 1) == 1)
        checkpoint_pass(&h->checkpoint);
}

/* O-55 O-03: an add that waited, and found capacity, reports that to the sink;
 * until then the queue exists. */
TEST(destroy_waits_for_a_woken_add_that_reports)
{
    struct held_up   h = {.checkpoint = CHECKPOINT_INIT};
    const wq_metrics sink = {.size = sizeof sink,
                             .self = &h,
                             .open = open_held_up,
                             .changed = hold_up};
    wq_queue        *q =
        open_queue(WQ_CONFIG(.name = "test", .metrics = &sink, .max_len = 1,
                             .overflow = WQ_OVERFLOW_BLOCK));
    struct adding x = {q, *WQ_ADD(.priority = 0), "x", NULL};

    add(q, "a");
    block(&x);
    work_on(q, "a");
    tally_await(&h.checkpoint.begun, 1);
    struct worker *destroyer = worker_destroy(q);
    worker_await_blocked(destroyer);
    tally_add(&h.checkpoint.allowed, 1);
    assert_err(worker_join(x.worker), WQ_OK);
    assert_int_equal(worker_join(destroyer), 0);
}

/* O-55 Q-24: an add waits for the bound of the queue, not for that of an
 * order. */
TEST(add_does_not_wait_for_an_order_that_is_full)
{
    wq_queue *q = open_queue(WQ_CONFIG(.max_len = 4, .order = &order_of_nothing,
                                       .overflow = WQ_OVERFLOW_BLOCK));
    struct adding p = {q, *WQ_ADD(.priority = 0), "p", NULL};

    assert_err(worker_join(worker_start(run_add, &p)), WQ_EFULL);
    wq_destroy(q);
}

WQ_TESTS(test(callback_of_a_displaced_key_may_call_the_queue),
         test(displaced_keys_of_any_length_are_shown_and_freed),
         test(destroy_ends_blocked_adds),
         test(destroy_waits_for_a_woken_add_that_reports),
         test(add_does_not_wait_for_an_order_that_is_full));
