/* SPDX-License-Identifier: MIT */
/* test_bounds.c: what if the queue is full? wq_config.max_len and max_bytes, and
 * the three answers to one key more. */
#include "asked.h"
#include "configs.h"

#include <stdatomic.h>
#include <stdio.h>

#include <wq/backend.h>
#include <wq/limiter.h>
#include <wq/metrics.h>

#include "support/counting.h"
#include "support/stage.h"

static struct timed *
create_bounded(size_t max_len, wq_overflow overflow)
{
    return timed_create(
        WQ_CONFIG(.max_len = max_len, .overflow = overflow,
                  .limiter = wq_limiter_exponential(5 * MS, 1000 * S)));
}

/* ---- the config --------------------------------------------------------- */

static void
ignore(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    (void)ctx, (void)key, (void)retries, (void)why;
}

/* O-20 */
TEST(overflow_policy_needs_a_bound)
{
    assert_err(try_config(WQ_CONFIG(.overflow = WQ_OVERFLOW_BLOCK)), WQ_EINVAL);
    assert_err(try_config(WQ_CONFIG(.overflow = WQ_OVERFLOW_DROP_OLDEST)),
               WQ_EINVAL);
    assert_err(try_config(WQ_CONFIG(.on_drop = ignore)), WQ_OK);
    for (int o = WQ_OVERFLOW_REFUSE; o <= WQ_OVERFLOW_DROP_OLDEST; o++)
        assert_err(
            try_config(WQ_CONFIG(.max_len = 1, .overflow = (wq_overflow)o)),
            WQ_OK);
    assert_err(try_config(WQ_CONFIG(.max_len = 1, .on_drop = ignore,
                                    .overflow = WQ_OVERFLOW_DROP_OLDEST)),
               WQ_OK);
    assert_err(try_config(WQ_CONFIG(.max_len = SIZE_MAX)), WQ_OK);
}

/* O-20 */
TEST(unknown_overflow_policy_is_refused)
{
    assert_err(try_config(WQ_CONFIG(.max_len = 1, .overflow = (wq_overflow)3)),
               WQ_EINVAL);
    assert_err(try_config(WQ_CONFIG(.max_len = 1, .overflow = (wq_overflow)77)),
               WQ_EINVAL);
}

/* O-20 */
TEST(oldest_of_an_order_cannot_be_dropped)
{
    assert_err(try_config(WQ_CONFIG(.max_len = 1, .order = &order_of_nothing,
                                    .overflow = WQ_OVERFLOW_DROP_OLDEST)),
               WQ_ENOTSUP);
    assert_err(try_config(WQ_CONFIG(.max_len = 1, .order = &order_of_nothing,
                                    .overflow = WQ_OVERFLOW_BLOCK)),
               WQ_OK);
    assert_err(try_config(WQ_CONFIG(.max_len = 1, .order = &order_of_nothing)),
               WQ_OK);
}

/* O-20 */
TEST(any_name_is_accepted)
{
    static char longer[5000];

    memset(longer, 'n', sizeof longer - 1);
    assert_err(try_config(WQ_CONFIG(.name = "")), WQ_OK);
    assert_err(try_config(WQ_CONFIG(.name = "pods \"1\"\n\xff")), WQ_OK);
    assert_err(try_config(WQ_CONFIG(.name = longer)), WQ_OK);
}

/* ---- which keys count --------------------------------------------------- */

/* O-55 */
TEST(new_key_is_refused_when_the_queue_is_full)
{
    struct timed *t = create_bounded(2, WQ_OVERFLOW_REFUSE);

    add(t->q, "a");
    add(t->q, "b");
    assert_err(wq_add_str(t->q, "c"), WQ_EFULL);
    assert_err(wq_add_after(t->q, wq_str("c"), S), WQ_EFULL);
    assert_err(wq_add_after(t->q, wq_str("c"), 0), WQ_EFULL);
    assert_err(wq_add_rate_limited(t->q, wq_str("c")), WQ_EFULL);
    assert_err(try_how(t->q, WQ_ADD(.priority = 9), "c"), WQ_EFULL);
    assert_err(try_how(t->q, WQ_ADD(.debounce_ns = 9), "c"), WQ_EFULL);
    assert_err(try_how(t->q, WQ_ADD(.throttle_ns = 9), "c"), WQ_EFULL);
    assert_err(try_how(t->q, WQ_ADD(.max_block_ns = HOUR), "c"), WQ_EFULL);
    assert_int_equal(wq_num_requeues(t->q, wq_str("c")), 0);
    assert_states(t->q, "c", 0);
    assert_counts(t->q, 2, 0);
    work_on(t->q, "a");
    add(t->q, "c");
    work_on(t->q, "b");
    work_on(t->q, "c");
    timed_destroy(t);
}

/* O-55 */
TEST(known_key_is_always_accepted)
{
    struct timed *t = create_bounded(3, WQ_OVERFLOW_REFUSE);

    add(t->q, "held");
    wq_item *held = take_key(t->q, "held");
    add(t->q, "ready");
    add_after(t, "waiting", HOUR);
    assert_err(wq_add_str(t->q, "new"), WQ_EFULL);
    add(t->q, "held");
    add(t->q, "held");
    add(t->q, "ready");
    add(t->q, "waiting");
    add_after(t, "ready", S);
    assert_err(wq_add_rate_limited(t->q, wq_str("held")), WQ_OK);
    assert_err(wq_add_str(t->q, "new"), WQ_EFULL);
    finish(t->q, held);
    assert_err(wq_add_str(t->q, "new"), WQ_EFULL);
    timed_destroy(t);
}

/* O-55: whatever they are, until nothing is known of them. */
TEST(ready_held_and_waiting_keys_take_room_and_give_it_back)
{
    struct timed *t = create_bounded(1, WQ_OVERFLOW_REFUSE);

    add(t->q, "a");
    wq_item *a = take_key(t->q, "a");
    assert_err(wq_add_str(t->q, "b"), WQ_EFULL);
    finish(t->q, a);
    add_after(t, "b", S);
    assert_err(wq_add_str(t->q, "a"), WQ_EFULL);
    assert_err(wq_cancel_after(t->q, wq_str("b")), WQ_OK);
    add(t->q, "a");
    assert_err(wq_remove(t->q, wq_str("a")), WQ_OK);
    add(t->q, "b");
    timed_destroy(t);
}

/* O-55 O-54: the queue remembers it, so it counts, until the time is over. */
TEST(key_in_the_quiet_time_of_a_throttle_takes_room)
{
    struct timed *t = create_bounded(1, WQ_OVERFLOW_REFUSE);
    wq_stats      counts = {.size = sizeof counts};

    (void)add_how(t->q, WQ_ADD(.throttle_ns = S), "a");
    work_on(t->q, "a");
    assert_err(wq_add_str(t->q, "b"), WQ_EFULL);
    assert_err(wq_read_stats(t->q, &counts), WQ_OK);
    assert_int_equal(counts.known, 1); /* though nothing else shows it */
    assert_int_equal(counts.ready + counts.held + counts.waiting, 0);
    step(t, S - 1);
    assert_err(wq_add_str(t->q, "b"), WQ_EFULL);
    step(t, 1);
    add(t->q, "b");
    timed_destroy(t);
}

/* O-55 O-50 O-56 */
TEST(batch_that_does_not_fit_adds_none)
{
    struct timed *t = create_bounded(3, WQ_OVERFLOW_REFUSE);
    const wq_key  keys[] = {wq_str("a"), wq_str("b"), wq_str("c"), wq_str("a")};
    wq_added      what[4] = {WQ_ADDED_LATER};

    add(t->q, "x");
    assert_err(wq_add_with(t->q, WQ_ADD(.results = what), keys, 4), WQ_EFULL);
    assert_added(what[0], WQ_ADDED_LATER);
    assert_int_equal(wq_len(t->q), 1);
    add(t->q, "b");
    assert_err(wq_add_with(t->q, WQ_ADD(.results = what), keys, 3), WQ_EFULL);
    assert_int_equal(wq_len(t->q), 2);
    work_on(t->q, "x");
    assert_err(wq_add_with(t->q, WQ_ADD(.results = what), keys, 4), WQ_OK);
    assert_added(what[1], WQ_ADDED_MERGED);
    assert_added(what[3], WQ_ADDED_MERGED);
    work_on(t->q, "b");
    work_on(t->q, "a");
    work_on(t->q, "c");
    timed_destroy(t);
}

/* O-55 O-50: a batch that is refused was not asked about. */
TEST(limiter_does_not_count_what_did_not_fit)
{
    struct timed *t = create_bounded(1, WQ_OVERFLOW_REFUSE);
    const wq_key  keys[] = {wq_str("a"), wq_str("b")};

    assert_err(wq_add_rate_limited(t->q, keys[0]), WQ_OK);
    assert_err(wq_add_with(t->q, WQ_ADD(.rate_limited = true), keys, 2),
               WQ_EFULL);
    assert_int_equal(wq_num_requeues(t->q, keys[0]), 1);
    assert_int_equal(wq_num_requeues(t->q, keys[1]), 0);
    assert_int_equal(counts_of(t->q).retries, 1);
    timed_destroy(t);
}

/* O-55: a bound of one. */
TEST(full_queue_hands_out_and_drains_as_ever)
{
    struct timed *t = create_bounded(1, WQ_OVERFLOW_REFUSE);

    for (int i = 0; i < 100; i++) {
        add(t->q, i % 2 ? "a" : "b");
        work_on(t->q, i % 2 ? "a" : "b");
    }
    add(t->q, "a");
    wq_shutdown(t->q);
    assert_err(wq_add_str(t->q, "b"), WQ_ESHUTDOWN);
    work_on(t->q, "a");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    timed_destroy(t);
}

/* ---- dropping the oldest ------------------------------------------------ */

struct seen {
    struct timed *t;
    char          text[64]; /* the keys that made room, one after the other */
    bool          calls;    /* the queue, from inside */
};

static void
note(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    struct seen *s = ctx;
    const size_t at = strlen(s->text);

    assert_err(why, WQ_EFULL);
    assert_int_equal(retries, 0);
    (void)snprintf(s->text + at, sizeof s->text - at, "%.*s", (int)key.len,
                   (const char *)key.data);
    if (!s->calls)
        return;
    s->calls = false;
    assert_states(s->t->q, "new", WQ_STATE_READY);
    assert_err(wq_add(s->t->q, key), WQ_OK); /* takes another one's place */
    (void)wq_len(s->t->q);
}

static void
create_dropping(struct seen *s, size_t max_len)
{
    *s = (struct seen){.text = ""};
    s->t = timed_create(WQ_CONFIG(.max_len = max_len, .on_drop = note,
                                  .drop_ctx = s,
                                  .overflow = WQ_OVERFLOW_DROP_OLDEST));
}

/* O-55 */
TEST(new_key_takes_the_place_of_the_oldest)
{
    struct seen s;

    create_dropping(&s, 3);
    add(s.t->q, "a");
    add(s.t->q, "b");
    add(s.t->q, "c");
    add(s.t->q, "a"); /* does not make it younger */
    add(s.t->q, "d");
    assert_string_equal(s.text, "a");
    assert_int_equal(wq_len(s.t->q), 3);
    assert_int_equal(counts_of(s.t->q).displaced, 1);
    assert_int_equal(counts_of(s.t->q).drops, 1);
    assert_states(s.t->q, "a", 0);
    work_on(s.t->q, "b");
    work_on(s.t->q, "c");
    work_on(s.t->q, "d");
    timed_destroy(s.t);
}

/* O-55 O-51 */
TEST(lowest_priority_makes_room_first)
{
    struct seen s;

    create_dropping(&s, 3);
    add_at(s.t->q, 5, "a");
    add_at(s.t->q, 1, "b");
    add_at(s.t->q, 1, "c");
    add_at(s.t->q, 1, "d"); /* not b's better, but younger */
    assert_string_equal(s.text, "b");
    add_at(s.t->q, 9, "e");
    assert_string_equal(s.text, "bc");
    assert_err(wq_add_str(s.t->q, "f"), WQ_EFULL); /* 0 is below all */
    assert_string_equal(s.text, "bc");
    work_on_at(s.t->q, "e", 9);
    work_on_at(s.t->q, "a", 5);
    work_on_at(s.t->q, "d", 1);
    timed_destroy(s.t);
}

/* O-55: only READY keys make room. */
TEST(held_and_waiting_keys_are_not_dropped)
{
    struct seen s;

    create_dropping(&s, 2);
    add(s.t->q, "held");
    wq_item *held = take_key(s.t->q, "held");
    add(s.t->q, "held");
    add_after(s.t, "waiting", S);
    assert_err(try_how(s.t->q, WQ_ADD(.priority = 9), "new"), WQ_EFULL);
    assert_string_equal(s.text, "");
    finish(s.t->q, held); /* READY now */
    add(s.t->q, "new");
    assert_string_equal(s.text, "held");
    timed_destroy(s.t);
}

/* O-55: what is dropped is dropped with its deadline. */
TEST(ready_key_that_waits_too_is_dropped_as_a_whole)
{
    struct seen s;

    create_dropping(&s, 1);
    add(s.t->q, "a");
    add_after(s.t, "a", S);
    add(s.t->q, "b");
    assert_string_equal(s.text, "a");
    work_on(s.t->q, "b");
    step(s.t, S);
    assert_none_due(s.t);
    timed_destroy(s.t);
}

/* O-55: a key that only waits displaces, too: it is one more to know. */
TEST(delayed_key_takes_the_place_of_the_oldest)
{
    struct seen s;

    create_dropping(&s, 1);
    add(s.t->q, "a");
    add_after(s.t, "b", S);
    assert_string_equal(s.text, "a");
    assert_due_in(s.t, "b", S);
    timed_destroy(s.t);
}

/* O-55 O-50: all or none, and none of its own. */
TEST(batch_displaces_as_many_as_it_needs_and_none_it_names)
{
    struct seen  s;
    const wq_key keys[] = {wq_str("a"), wq_str("x"), wq_str("y")};
    const wq_key more[] = {wq_str("1"), wq_str("2"), wq_str("3"), wq_str("4")};

    create_dropping(&s, 3);
    add(s.t->q, "a");
    add(s.t->q, "b");
    add(s.t->q, "c");
    assert_err(wq_add_with(s.t->q, NULL, keys, 3), WQ_OK);
    assert_string_equal(s.text, "bc");
    assert_err(wq_add_with(s.t->q, NULL, more, 4), WQ_EFULL);
    assert_string_equal(s.text, "bc");
    work_on(s.t->q, "a");
    work_on(s.t->q, "x");
    work_on(s.t->q, "y");
    timed_destroy(s.t);
}

/* O-55: not half of what it needs. */
TEST(batch_that_cannot_displace_enough_displaces_none)
{
    struct seen  s;
    const wq_key keys[] = {wq_str("x"), wq_str("y")};

    create_dropping(&s, 3);
    add_at(s.t->q, 1, "high");
    add_at(s.t->q, 1, "higher");
    add(s.t->q, "a");
    assert_err(wq_add_with(s.t->q, NULL, keys, 2), WQ_EFULL);
    assert_string_equal(s.text, "");
    assert_int_equal(wq_len(s.t->q), 3);
    timed_destroy(s.t);
}

/* O-55: no lock is held, and the key can be read. */
TEST(whoever_is_told_of_a_dropped_key_may_call_the_queue)
{
    struct seen s;

    create_dropping(&s, 2);
    s.calls = true;
    add(s.t->q, "a");
    add(s.t->q, "b");
    add(s.t->q, "new"); /* drops a; a takes b's place */
    assert_string_equal(s.text, "ab");
    work_on(s.t->q, "new");
    work_on(s.t->q, "a");
    timed_destroy(s.t);
}

/* O-55: long keys are outside their record, told or not. */
TEST(dropped_keys_of_any_length_are_shown_and_given_back)
{
    static char bytes[WQ_KEY_MAX];

    memset(bytes, 'k', sizeof bytes);
    for (int told = 0; told < 2; told++) {
        struct counting mem;
        wq_queue       *q = NULL;
        struct seen     s = {.text = ""};

        counting_init(&mem);
        assert_err(
            wq_create(WQ_CONFIG(.max_len = 2, .allocator = &mem.allocator,
                                .overflow = WQ_OVERFLOW_DROP_OLDEST,
                                .on_drop = told ? note : NULL, .drop_ctx = &s),
                      &q),
            WQ_OK);
        for (size_t len = 1; len <= sizeof bytes; len = len * 3 + 1)
            assert_err(wq_add(q, (wq_key){bytes, len}), WQ_OK);
        wq_destroy(q);
        assert_int_equal(mem.bytes, 0);
    }
}

/* O-55: nobody need want to know. */
TEST(keys_are_dropped_without_a_word)
{
    struct timed *t = create_bounded(1, WQ_OVERFLOW_DROP_OLDEST);

    add(t->q, "a");
    add(t->q, "b");
    work_on(t->q, "b");
    assert_none_due(t);
    timed_destroy(t);
}

/* ---- blocking ----------------------------------------------------------- */

enum { SEVERAL = 3 };

/* An add in a thread of its own. */
struct adding {
    wq_queue      *q;
    wq_add_options how;
    wq_key         keys[40];
    size_t         n;
    wq_added       what[40];
};

static int
run_add(struct worker *self)
{
    struct adding *a = self->arg;

    return (int)wq_add_with(a->q, &a->how, a->keys, a->n);
}

static struct adding
adding_of(wq_queue *q, const char *keys)
{
    struct adding a = {.q = q, .how = {.size = sizeof a.how}};

    for (; *keys; keys++)
        a.keys[a.n++] = (wq_key){keys, 1};
    return a;
}

/* Begin, and see it blocked. */
static struct worker *
block(struct adding *a)
{
    a->how.results = a->what;
    struct worker *w = worker_start(run_add, a);
    worker_await_blocked(w);
    return w;
}

static int
run_plain_add(struct worker *self)
{
    return (int)wq_add_str(self->arg, "p");
}

/* O-55 */
TEST(add_to_a_full_queue_waits_until_a_key_has_gone)
{
    struct timed *t = create_bounded(1, WQ_OVERFLOW_BLOCK);

    add(t->q, "a");
    struct worker *w = worker_start(run_plain_add, t->q);
    worker_await_blocked(w);
    wq_item *a = take_key(t->q, "a"); /* held: not gone */
    worker_await_blocked(w);
    add(t->q, "a");
    finish(t->q, a); /* READY again: not gone */
    worker_await_blocked(w);
    work_on(t->q, "a");
    assert_err(worker_join(w), WQ_OK);
    work_on(t->q, "p");
    timed_destroy(t);
}

/* O-55: every way in which room comes. */
TEST(room_that_comes_by_a_remove_or_a_cancel_wakes_too)
{
    struct timed *t = create_bounded(1, WQ_OVERFLOW_BLOCK);

    for (int round = 0; round < 4; round++) {
        struct adding  x = adding_of(t->q, "x");
        struct worker *w;
        wq_item       *item;

        if (round == 1)
            add_after(t, "a", HOUR);
        else
            add(t->q, "a");
        if (round < 2) {
            w = block(&x);
            assert_err(round ? wq_cancel_after(t->q, wq_str("a"))
                             : wq_remove(t->q, wq_str("a")),
                       WQ_OK);
        } else {
            item = take_key(t->q, "a");
            w = block(&x);
            if (round == 2)
                assert_err(wq_done_many(t->q, &item, 1), WQ_OK);
            else
                assert_err(wq_next(t->q, 0, &item), WQ_ETIMEDOUT);
        }
        assert_err(worker_join(w), WQ_OK);
        assert_added(x.what[0], WQ_ADDED_NEW);
        work_on(t->q, "x");
    }
    timed_destroy(t);
}

/* O-55 O-05 */
TEST(add_gives_up_when_its_time_is_up_and_not_before)
{
    struct timed *t = create_bounded(1, WQ_OVERFLOW_BLOCK);

    add(t->q, "a");
    struct adding x = adding_of(t->q, "x");
    x.how.max_block_ns = S;
    struct worker *w = block(&x);
    await_sleepers(t, 1);
    step(t, S - 1);
    worker_await_blocked(w);
    step(t, 1);
    assert_err(worker_join(w), WQ_ETIMEDOUT);
    assert_states(t->q, "x", 0);
    assert_counts(t->q, 1, 0);
    timed_destroy(t);
}

/* O-55: nobody is woken for nothing, and nobody forgotten, when one gives up.
 */
TEST(add_that_gives_up_leaves_the_room_to_the_others)
{
    struct timed *t = create_bounded(1, WQ_OVERFLOW_BLOCK);

    add(t->q, "a");
    struct adding x = adding_of(t->q, "x"), y = adding_of(t->q, "y");
    x.how.max_block_ns = S;
    struct worker *first = block(&x);
    struct worker *second = block(&y);
    step(t, S);
    assert_err(worker_join(first), WQ_ETIMEDOUT);
    work_on(t->q, "a");
    assert_err(worker_join(second), WQ_OK);
    work_on(t->q, "y");
    timed_destroy(t);
}

/* O-55 */
TEST(add_that_shall_not_wait_is_refused_at_once)
{
    struct timed *t = create_bounded(1, WQ_OVERFLOW_BLOCK);

    add(t->q, "a");
    assert_err(try_how(t->q, WQ_ADD(.nowait = true), "b"), WQ_EFULL);
    assert_err(try_how(t->q, WQ_ADD(.nowait = true, .rate_limited = true), "b"),
               WQ_EFULL);
    assert_int_equal(wq_num_requeues(t->q, wq_str("b")), 0);
    add(t->q, "a"); /* known: need not wait */
    timed_destroy(t);
}

/* O-55 */
TEST(batch_larger_than_the_bound_is_refused_at_once)
{
    struct timed *t = create_bounded(2, WQ_OVERFLOW_BLOCK);
    const wq_key  keys[] = {wq_str("a"), wq_str("b"), wq_str("c")};

    assert_err(wq_add_with(t->q, NULL, keys, 3), WQ_EFULL);
    assert_int_equal(wq_len(t->q), 0);
    add(t->q, "b");
    assert_err(wq_add_with(t->q, WQ_ADD(.nowait = true), keys, 3),
               WQ_EFULL); /* two are new: they could fit, but not now */
    timed_destroy(t);
}

/* O-55: a key it counted on has gone meanwhile. */
TEST(batch_that_can_no_longer_fit_is_refused)
{
    struct timed *t = create_bounded(2, WQ_OVERFLOW_BLOCK);

    add(t->q, "a");
    add(t->q, "x");
    struct adding  batch = adding_of(t->q, "abc");
    struct worker *w = block(&batch); /* b and c are new */
    work_on(t->q, "a");
    work_on(t->q, "x");
    assert_err(worker_join(w), WQ_EFULL);
    assert_int_equal(wq_len(t->q), 0);
    timed_destroy(t);
}

/* O-55: all or none, at one moment. */
TEST(batch_waits_until_all_of_it_fits)
{
    struct timed *t = create_bounded(3, WQ_OVERFLOW_BLOCK);

    add(t->q, "a");
    add(t->q, "b");
    add(t->q, "c");
    struct adding  batch = adding_of(t->q, "xcy");
    struct worker *w = block(&batch);
    work_on(t->q, "a");
    worker_await_blocked(w);
    assert_int_equal(wq_len(t->q), 2);
    work_on(t->q, "b");
    assert_err(worker_join(w), WQ_OK);
    assert_added(batch.what[1], WQ_ADDED_MERGED);
    work_on(t->q, "c");
    work_on(t->q, "x");
    work_on(t->q, "y");
    timed_destroy(t);
}

/* O-55 */
TEST(add_that_needs_more_room_does_not_hold_up_one_that_needs_less)
{
    struct timed *t = create_bounded(2, WQ_OVERFLOW_BLOCK);

    add(t->q, "a");
    add(t->q, "b");
    struct adding  large = adding_of(t->q, "xy"), small = adding_of(t->q, "z");
    struct worker *first = block(&large);
    struct worker *second = block(&small);
    work_on(t->q, "a");
    assert_err(worker_join(second), WQ_OK);
    worker_await_blocked(first);
    work_on(t->q, "b");
    worker_await_blocked(first);
    work_on(t->q, "z");
    assert_err(worker_join(first), WQ_OK);
    timed_destroy(t);
}

/* O-55 */
TEST(those_who_wait_for_room_come_in_the_order_they_came)
{
    struct timed  *t = create_bounded(1, WQ_OVERFLOW_BLOCK);
    struct adding  all[] = {adding_of(t->q, "x"), adding_of(t->q, "y"),
                            adding_of(t->q, "z")};
    struct worker *w[SEVERAL];

    add(t->q, "a");
    for (int i = 0; i < SEVERAL; i++)
        w[i] = block(&all[i]);
    work_on(t->q, "a");
    for (int i = 0; i < SEVERAL; i++) {
        assert_err(worker_join(w[i]), WQ_OK);
        for (int k = i + 1; k < SEVERAL; k++)
            worker_await_blocked(w[k]);
        finish(t->q, take(t->q));
    }
    timed_destroy(t);
}

/* O-55: also if one has been awake in between, in vain. */
TEST(who_has_slept_twice_for_room_keeps_its_place)
{
    struct timed *t = create_bounded(1, WQ_OVERFLOW_BLOCK);
    struct adding one = adding_of(t->q, "x"), two = adding_of(t->q, "y");

    (void)add_how(t->q, WQ_ADD(.throttle_ns = S), "a");
    wq_item       *a = take_key(t->q, "a");
    struct worker *first = block(&one);
    struct worker *second = block(&two);
    step(t, S); /* its rest is over, and it is held still */
    wq_clock_fake_step(t->clock, 1);
    worker_await_blocked(first);
    worker_await_blocked(second);
    finish(t->q, a);
    assert_err(worker_join(first), WQ_OK);
    worker_await_blocked(second);
    work_on(t->q, "x");
    assert_err(worker_join(second), WQ_OK);
    timed_destroy(t);
}

/* O-55: as many as fit are woken, at once. */
TEST(much_room_wakes_many)
{
    struct timed  *t = create_bounded(3, WQ_OVERFLOW_BLOCK);
    struct adding  all[] = {adding_of(t->q, "x"), adding_of(t->q, "y"),
                            adding_of(t->q, "z")};
    struct worker *w[SEVERAL];
    wq_item       *items[3];
    size_t         n;

    add(t->q, "a");
    add(t->q, "b");
    add(t->q, "c");
    for (int i = 0; i < SEVERAL; i++)
        w[i] = block(&all[i]);
    assert_err(wq_get_many(t->q, items, 3, 0, &n), WQ_OK);
    assert_err(wq_done_many(t->q, items, 3), WQ_OK);
    for (int i = 0; i < SEVERAL; i++)
        assert_err(worker_join(w[i]), WQ_OK);
    assert_int_equal(wq_len(t->q), 3);
    timed_destroy(t);
}

/* O-55 O-12: nobody wakes those who wait for room, without any. */
TEST(add_that_waits_uses_no_time_and_is_not_woken_in_vain)
{
    struct timed *t = create_bounded(2, WQ_OVERFLOW_BLOCK);

    add(t->q, "a");
    add(t->q, "b");
    struct adding  batch = adding_of(t->q, "xy");
    struct worker *w = block(&batch);
    work_on(t->q, "a"); /* room for one */
    worker_await_blocked(w);
    const int64_t before = worker_cpu_ns(w);
    for (int i = 0; i < 2000; i++) {
        add(t->q, "b");
        assert_err(wq_add_after(t->q, wq_str("b"), HOUR), WQ_OK);
        assert_err(wq_cancel_after(t->q, wq_str("b")), WQ_OK);
        (void)wq_len(t->q);
    }
    worker_await_blocked(w);
    assert_int_equal(worker_cpu_ns(w), before);
    wq_shutdown(t->q);
    assert_err(worker_join(w), WQ_ESHUTDOWN);
    timed_destroy(t);
}

/* O-55 Q-19 */
TEST(shutdown_sends_adds_that_wait_home)
{
    for (int drain = 0; drain < 2; drain++) {
        struct timed  *t = create_bounded(1, WQ_OVERFLOW_BLOCK);
        struct adding  all[] = {adding_of(t->q, "x"), adding_of(t->q, "y"),
                                adding_of(t->q, "z")};
        struct worker *w[SEVERAL];

        all[1].how.rate_limited = true;
        all[2].how.max_block_ns = HOUR;
        add(t->q, "a");
        for (int i = 0; i < SEVERAL; i++)
            w[i] = block(&all[i]);
        if (drain)
            assert_err(wq_shutdown_with_drain_within(t->q, 0), WQ_ETIMEDOUT);
        else
            wq_shutdown(t->q);
        for (int i = 0; i < SEVERAL; i++)
            assert_err(worker_join(w[i]), WQ_ESHUTDOWN);
        assert_int_equal(wq_num_requeues(t->q, wq_str("y")), 0);
        work_on(t->q, "a");
        assert_none_ready(t->q, WQ_ESHUTDOWN);
        timed_destroy(t);
    }
}

/* O-55 O-03: whatever they have to give back after the wait. */
TEST(destroy_sends_adds_that_wait_home)
{
    struct counting mem;
    struct timed   *t = timed_begin(0);
    struct worker  *w[SEVERAL];

    counting_init(&mem);
    assert_err(wq_create(WQ_CONFIG(.max_len = 35, .clock = t->clock,
                                   .allocator = &mem.allocator,
                                   .overflow = WQ_OVERFLOW_BLOCK),
                         &t->q),
               WQ_OK);
    struct adding all[] = {adding_of(t->q, "x"),
                           adding_of(t->q, "abcdefghijklmnopqrstuvwxyzABCDEF"),
                           adding_of(t->q, "0123456789abcdefghijklmnopqrstuv")};
    all[0].how.rate_limited = true;
    all[1].how.priority = 3;
    all[2].how.rate_limited = true;
    for (uint64_t i = 0; i < 35; i++)
        assert_err(wq_add(t->q, wq_u64(&i)), WQ_OK);
    for (int i = 0; i < SEVERAL; i++)
        w[i] = block(&all[i]);
    wq_destroy(t->q);
    for (int i = 0; i < SEVERAL; i++)
        assert_err(worker_join(w[i]), WQ_ESHUTDOWN);
    assert_int_equal(mem.bytes, 0);
    t->q = NULL;
    timed_destroy(t);
}

/* Where a sink holds up the second who reports an add. */
struct held_up {
    struct stage stage;
    atomic_int   adds;
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
        stage_pass(&h->stage);
}

static int
run_destroy(struct worker *self)
{
    wq_destroy(self->arg);
    return 0;
}

/* O-55 O-03: an add that slept, and got its room, reports that; the queue does
 * not go before. */
TEST(destroy_waits_for_a_woken_add_that_reports)
{
    struct held_up   h = {.stage = STAGE_INIT};
    const wq_metrics sink = {.size = sizeof sink,
                             .self = &h,
                             .open = open_held_up,
                             .changed = hold_up};
    struct timed    *t =
        timed_create(WQ_CONFIG(.name = "test", .metrics = &sink, .max_len = 1,
                               .overflow = WQ_OVERFLOW_BLOCK));
    struct adding x = adding_of(t->q, "x");

    add(t->q, "a");
    struct worker *producer = block(&x);
    work_on(t->q, "a");
    tally_await(&h.stage.begun, 1);
    struct worker *destroyer = worker_start(run_destroy, t->q);
    worker_await_blocked(destroyer);
    tally_add(&h.stage.allowed, 1);
    assert_err(worker_join(producer), WQ_OK);
    assert_int_equal(worker_join(destroyer), 0);
    t->q = NULL;
    timed_destroy(t);
}

/* O-55 O-54: room comes by time, too, and nobody else may be there to notice.
 */
TEST(add_that_waits_is_woken_when_a_quiet_time_is_over)
{
    struct timed *t = create_bounded(1, WQ_OVERFLOW_BLOCK);

    (void)add_how(t->q, WQ_ADD(.throttle_ns = S), "a");
    work_on(t->q, "a");
    struct adding  x = adding_of(t->q, "x");
    struct worker *w = block(&x);
    await_sleepers(t, 1);
    step(t, S - 1);
    worker_await_blocked(w);
    step(t, 1);
    assert_err(worker_join(w), WQ_OK);
    work_on(t->q, "x");
    timed_destroy(t);
}

/* O-55 O-54: the same when the time begins only after it fell asleep, and with
 * adds that were told the time before. */
TEST(adds_that_wait_learn_of_quiet_times_that_begin_later)
{
    struct timed *t = create_bounded(2, WQ_OVERFLOW_BLOCK);

    (void)add_how(t->q, WQ_ADD(.throttle_ns = 5 * S), "a");
    (void)add_how(t->q, WQ_ADD(.throttle_ns = S), "b");
    struct adding x = adding_of(t->q, "x"), y = adding_of(t->q, "y");
    x.how.after_ns = 9 * S;
    y.how.throttle_ns = S;
    struct worker *both[] = {block(&x), block(&y)};
    work_on(t->q, "a"); /* until 5 s */
    await_sleepers(t, 1);
    work_on(t->q, "b"); /* until 1 s: sooner */
    worker_await_all_blocked(both, 2);
    await_sleepers(t, 1);
    step(t, S);
    const size_t one = worker_await_any_ended(both, 2);
    assert_err(worker_join(both[one]), WQ_OK);
    worker_await_blocked(both[!one]);
    await_sleepers(t, 1);
    step(t, 4 * S);
    assert_err(worker_join(both[!one]), WQ_OK);
    work_on(t->q, "y");
    assert_int_equal(info_of(t->q, "x").wait_ns, 4 * S);
    timed_destroy(t);
}

/* O-55 Q-24: full is what the bound says; an order that says so is not waited
 * for. */
TEST(order_that_says_full_is_not_waited_for)
{
    wq_queue *q = NULL;

    assert_err(wq_create(WQ_CONFIG(.max_len = 4, .order = &order_of_nothing,
                                   .overflow = WQ_OVERFLOW_BLOCK),
                         &q),
               WQ_OK);
    struct worker *w = worker_start(run_plain_add, q);
    assert_err(worker_join(w), WQ_EFULL);
    wq_destroy(q);
}

/* O-55: a worker that retries its key is never held up. */
TEST(worker_that_retries_its_key_does_not_wait)
{
    struct timed *t = create_bounded(1, WQ_OVERFLOW_BLOCK);

    add(t->q, "a");
    wq_item *a = take_key(t->q, "a");
    assert_err(wq_add_rate_limited(t->q, a->key), WQ_OK);
    assert_err(wq_add_with(t->q, WQ_ADD(.rate_limited = true), &a->key, 1),
               WQ_OK);
    assert_err(wq_add_after(t->q, a->key, MS), WQ_OK);
    assert_err(wq_add(t->q, a->key), WQ_OK);
    finish(t->q, a);
    work_on(t->q, "a");
    timed_destroy(t);
}

/* ---- the bound in bytes ------------------------------------------------- */

static struct timed *
create_sized(size_t max_bytes, wq_overflow overflow)
{
    return timed_create(WQ_CONFIG(.max_bytes = max_bytes, .overflow = overflow,
                                  .limiter = wq_limiter_exponential(S, S)));
}

/* O-87 O-20 O-18 */
TEST(bound_in_bytes_is_a_bound)
{
    wq_queue *inner = NULL, *out = NULL;

    for (int o = WQ_OVERFLOW_REFUSE; o <= WQ_OVERFLOW_DROP_OLDEST; o++)
        assert_err(
            try_config(WQ_CONFIG(.max_bytes = 1, .overflow = (wq_overflow)o)),
            WQ_OK);
    assert_err(try_config(WQ_CONFIG(.max_bytes = 1, .on_drop = ignore)), WQ_OK);
    assert_err(
        try_config(WQ_CONFIG(.max_bytes = 1, .order = &order_of_nothing)),
        WQ_ENOTSUP);
    assert_err(wq_create(NULL, &inner), WQ_OK);
    assert_err(wq_delaying_wrap(inner, WQ_CONFIG(.max_bytes = 1), &out),
               WQ_ENOTSUP);
    assert_err(wq_rate_limiting_wrap(inner, WQ_CONFIG(.max_bytes = 1), &out),
               WQ_ENOTSUP);
    wq_destroy(inner);
}

/* O-87 O-30 */
TEST(keys_are_refused_when_their_bytes_do_not_fit)
{
    struct timed *t = create_sized(10, WQ_OVERFLOW_REFUSE);

    add(t->q, "12345");
    add(t->q, "1234");
    assert_int_equal(counts_of(t->q).bytes, 9);
    assert_err(wq_add_str(t->q, "ab"), WQ_EFULL);
    assert_err(wq_add_after(t->q, wq_str("ab"), S), WQ_EFULL);
    assert_err(wq_add_rate_limited(t->q, wq_str("ab")), WQ_EFULL);
    assert_err(try_how(t->q, WQ_ADD(.throttle_ns = S), "ab"), WQ_EFULL);
    assert_int_equal(wq_num_requeues(t->q, wq_str("ab")), 0);
    assert_states(t->q, "ab", 0);
    add(t->q, "a"); /* exactly */
    add(t->q, "12345");
    assert_int_equal(counts_of(t->q).bytes, 10);
    work_on(t->q, "12345");
    add(t->q, "54321");
    assert_int_equal(counts_of(t->q).bytes, 10);
    timed_destroy(t);
}

/* O-87 O-54: whatever they are, until nothing is known of them. */
TEST(bytes_of_all_known_keys_count)
{
    struct timed *t = create_sized(12, WQ_OVERFLOW_REFUSE);

    add(t->q, "abc");
    wq_item *item = take_key(t->q, "abc");
    add_after(t, "def", S);
    (void)add_how(t->q, WQ_ADD(.throttle_ns = S), "ghi");
    work_on(t->q, "ghi"); /* quiet */
    add(t->q, "jkl");
    assert_int_equal(counts_of(t->q).bytes, 12);
    assert_err(wq_add_str(t->q, "x"), WQ_EFULL);
    finish(t->q, item);
    assert_int_equal(counts_of(t->q).bytes, 9);
    assert_err(wq_remove(t->q, wq_str("jkl")), WQ_OK);
    assert_int_equal(counts_of(t->q).bytes, 6);
    assert_err(wq_cancel_after(t->q, wq_str("def")), WQ_OK);
    assert_int_equal(counts_of(t->q).bytes, 3);
    step(t, S);
    assert_int_equal(counts_of(t->q).bytes, 0);
    timed_destroy(t);
}

/* O-87 O-30 */
TEST(bytes_are_counted_only_for_a_bound)
{
    struct timed *t = create_bounded(3, WQ_OVERFLOW_REFUSE);

    add(t->q, "abc");
    assert_int_equal(counts_of(t->q).bytes, 0);
    timed_destroy(t);
}

/* O-87 O-50 */
TEST(batch_whose_bytes_do_not_fit_adds_none)
{
    struct timed *t = create_sized(6, WQ_OVERFLOW_REFUSE);
    const wq_key  keys[] = {wq_str("ab"), wq_str("abc"), wq_str("ab"),
                            wq_str("x")};

    add(t->q, "x");
    add(t->q, "y");
    assert_err(wq_add_with(t->q, NULL, keys, 4), WQ_EFULL);
    assert_int_equal(counts_of(t->q).bytes, 2);
    assert_int_equal(wq_len(t->q), 2);
    work_on(t->q, "x");
    work_on(t->q, "y");
    assert_err(wq_add_with(t->q, NULL, keys, 4), WQ_OK); /* 2 + 3 + 0 + 1 */
    assert_int_equal(counts_of(t->q).bytes, 6);
    timed_destroy(t);
}

/* O-87 O-55 */
TEST(both_bounds_hold_at_once)
{
    struct timed *t = timed_create(WQ_CONFIG(.max_len = 3, .max_bytes = 10));

    add(t->q, "1234567");
    add(t->q, "ab");
    assert_err(wq_add_str(t->q, "cd"), WQ_EFULL); /* bytes */
    add(t->q, "c");
    assert_err(wq_add_str(t->q, "d"), WQ_EFULL); /* both */
    work_on(t->q, "1234567");
    add(t->q, "d");
    assert_err(wq_add_str(t->q, "e"), WQ_EFULL); /* keys */
    timed_destroy(t);
}

/* ---- bytes: dropping ---------------------------------------------------- */

static void
create_dropping_bytes(struct seen *s, size_t max_len, size_t max_bytes)
{
    *s = (struct seen){.text = ""};
    s->t = timed_create(WQ_CONFIG(.max_len = max_len, .max_bytes = max_bytes,
                                  .on_drop = note, .drop_ctx = s,
                                  .overflow = WQ_OVERFLOW_DROP_OLDEST));
}

/* O-87 */
TEST(long_key_takes_the_place_of_several)
{
    struct seen s;

    create_dropping_bytes(&s, 0, 8);
    add(s.t->q, "a");
    add(s.t->q, "bb");
    add(s.t->q, "ccc");
    add(s.t->q, "dd");
    add(s.t->q, "12345"); /* 13: a, bb and ccc go */
    assert_string_equal(s.text, "abbccc");
    assert_int_equal(counts_of(s.t->q).displaced, 3);
    assert_int_equal(counts_of(s.t->q).drops, 3);
    assert_int_equal(counts_of(s.t->q).bytes, 7);
    add(s.t->q, "e"); /* fits: none goes */
    assert_string_equal(s.text, "abbccc");
    work_on(s.t->q, "dd");
    work_on(s.t->q, "12345");
    work_on(s.t->q, "e");
    timed_destroy(s.t);
}

/* O-87 O-55: keys that are not below it do not go, nor any other then. */
TEST(key_that_cannot_displace_enough_bytes_displaces_none)
{
    struct seen s;

    create_dropping_bytes(&s, 0, 8);
    add(s.t->q, "gone");
    work_on(s.t->q, "gone"); /* does not count any more */
    add_at(s.t->q, 5, "high5");
    add(s.t->q, "aa");
    assert_err(wq_add_str(s.t->q, "1234"), WQ_EFULL);
    assert_string_equal(s.text, "");
    add_at(s.t->q, 5, "1234"); /* aa is not enough: the oldest of 5 goes */
    assert_string_equal(s.text, "aahigh5");
    work_on(s.t->q, "1234");
    timed_destroy(s.t);
}

/* O-87 O-55: the lowest first, and there the oldest. */
TEST(bytes_of_the_lowest_priority_go_first)
{
    struct seen s;

    create_dropping_bytes(&s, 0, 9);
    add_at(s.t->q, 1, "aaa");
    add_at(s.t->q, -1, "b");
    add_at(s.t->q, -1, "cc");
    add_at(s.t->q, 0, "ddd");
    add_at(s.t->q, 1, "raise");
    assert_string_equal(s.text, "bccddd");
    (void)add_how(s.t->q, WQ_ADD(.priority = 9), "aaa");
    add_at(s.t->q, 5, "12345");
    assert_string_equal(s.text, "bccdddraise");
    work_on_at(s.t->q, "aaa", 9);
    work_on_at(s.t->q, "12345", 5);
    timed_destroy(s.t);
}

/* O-87 O-51 */
TEST(bytes_of_a_raised_key_go_to_its_new_level)
{
    struct seen s;

    create_dropping_bytes(&s, 0, 6);
    add(s.t->q, "aaa");
    (void)add_how(s.t->q, WQ_ADD(.priority = 5), "aaa");
    assert_err(wq_add_str(s.t->q, "12345"), WQ_EFULL);
    add_at(s.t->q, 5, "12345");
    assert_string_equal(s.text, "aaa");
    work_on_at(s.t->q, "12345", 5);
    timed_destroy(s.t);
}

/* O-87 O-50 */
TEST(batch_does_not_count_on_the_bytes_it_names)
{
    struct seen  s;
    const wq_key keys[] = {wq_str("aaa"), wq_str("12345")};

    create_dropping_bytes(&s, 0, 6);
    add(s.t->q, "aaa");
    assert_err(wq_add_with(s.t->q, NULL, keys, 2), WQ_EFULL);
    assert_string_equal(s.text, "");
    work_on(s.t->q, "aaa");
    timed_destroy(s.t);
}

/* O-87: one bound is enough. */
TEST(keys_go_until_both_bounds_hold)
{
    struct seen s;

    create_dropping_bytes(&s, 3, 9);
    add(s.t->q, "aaaa");
    add(s.t->q, "b");
    add(s.t->q, "c");
    add(s.t->q, "d"); /* keys */
    assert_string_equal(s.text, "aaaa");
    add(s.t->q, "12345678"); /* bytes: b and c; the keys alone: b */
    assert_string_equal(s.text, "aaaabc");
    assert_int_equal(wq_len(s.t->q), 2);
    timed_destroy(s.t);
}

/* O-87 O-50 */
TEST(batch_displaces_bytes_and_none_it_names)
{
    struct seen  s;
    const wq_key keys[] = {wq_str("aa"), wq_str("xxx"), wq_str("yy")};

    create_dropping_bytes(&s, 0, 8);
    add(s.t->q, "aa");
    add(s.t->q, "bb");
    add(s.t->q, "cc");
    add(s.t->q, "d");
    assert_err(wq_add_with(s.t->q, NULL, keys, 3), WQ_OK);
    assert_string_equal(s.text, "bbcc");
    work_on(s.t->q, "aa");
    work_on(s.t->q, "d");
    work_on(s.t->q, "xxx");
    work_on(s.t->q, "yy");
    timed_destroy(s.t);
}

/* O-87 O-55: the callback adds the first victim again, which displaces more;
 * those of the first add are shown all the same. */
TEST(callback_may_add_again_while_victims_are_left_to_show)
{
    struct seen s;

    create_dropping_bytes(&s, 0, 5);
    s.calls = true;
    add(s.t->q, "a");
    add(s.t->q, "b");
    add(s.t->q, "cc");
    add(s.t->q, "new"); /* drops a and b; then a displaces cc */
    assert_string_equal(s.text, "accb");
    assert_int_equal(counts_of(s.t->q).bytes, 4);
    work_on(s.t->q, "new");
    work_on(s.t->q, "a");
    timed_destroy(s.t);
}

/* O-87 O-80 */
TEST(bytes_come_from_the_group_that_has_most_keys)
{
    struct timed *t = timed_create(
        WQ_CONFIG(.max_bytes = 15, .overflow = WQ_OVERFLOW_DROP_OLDEST,
                  .group = wq_group_before_slash));

    add(t->q, "a/long1");
    add(t->q, "b/1");
    add(t->q, "b/2");
    add(t->q, "c");
    add(t->q, "d/1");
    assert_states(t->q, "b/1", 0);
    add(t->q, "e/123"); /* all have one: the first group */
    assert_states(t->q, "a/long1", 0);
    assert_int_equal(counts_of(t->q).bytes, 12);
    timed_destroy(t);
}

/* O-80 O-55: of the others, if the add names all keys of that group. */
TEST(group_with_the_next_most_keys_makes_room)
{
    struct timed *t = timed_create(
        WQ_CONFIG(.max_len = 9, .overflow = WQ_OVERFLOW_DROP_OLDEST,
                  .group = wq_group_before_slash));
    const wq_key keys[] = {wq_str("a/1"), wq_str("a/2"), wq_str("a/3"),
                           wq_str("a/4"), wq_str("n/1"), wq_str("n/2")};

    for (size_t i = 0; i < 4; i++)
        assert_err(wq_add(t->q, keys[i]), WQ_OK);
    add(t->q, "b/1");
    add(t->q, "c/1");
    add(t->q, "c/2");
    add(t->q, "c/3");
    add(t->q, "d/1");
    assert_err(wq_add_with(t->q, NULL, keys, 6), WQ_OK);
    assert_states(t->q, "c/1", 0);
    assert_states(t->q, "c/2", 0);
    assert_int_equal(wq_len(t->q), 9);
    timed_destroy(t);
}

/* ---- bytes: blocking ---------------------------------------------------- */

/* The whole of `key` in one add. */
static struct adding
adding_key(wq_queue *q, const char *key)
{
    struct adding a = {.q = q, .how = {.size = sizeof a.how}, .n = 1};

    a.keys[0] = wq_str(key);
    return a;
}

/* O-87: no add waits for room that never comes. */
TEST(key_longer_than_the_bound_never_fits)
{
    for (int o = WQ_OVERFLOW_REFUSE; o <= WQ_OVERFLOW_DROP_OLDEST; o++) {
        struct timed *t = create_sized(4, (wq_overflow)o);
        struct adding key = adding_key(t->q, "12345");
        struct adding batch = adding_of(t->q, "bcdef");

        add(t->q, "a");
        assert_err(worker_join(worker_start(run_add, &key)), WQ_EFULL);
        assert_err(worker_join(worker_start(run_add, &batch)), WQ_EFULL);
        assert_int_equal(counts_of(t->q).bytes, 1);
        assert_int_equal(counts_of(t->q).drops, 0);
        work_on(t->q, "a");
        add(t->q, "1234");
        timed_destroy(t);
    }
}

/* O-87 O-55 */
TEST(long_key_waits_until_enough_short_ones_have_gone)
{
    struct timed *t = create_sized(6, WQ_OVERFLOW_BLOCK);

    add(t->q, "aa");
    add(t->q, "bb");
    add(t->q, "c");
    struct adding  x = adding_key(t->q, "12345");
    struct worker *w = block(&x);
    work_on(t->q, "aa");
    worker_await_blocked(w);
    assert_int_equal(counts_of(t->q).bytes, 3);
    work_on(t->q, "bb");
    assert_err(worker_join(w), WQ_OK);
    work_on(t->q, "c");
    work_on(t->q, "12345");
    timed_destroy(t);
}

/* O-87 O-55 */
TEST(long_key_does_not_hold_up_a_short_one)
{
    struct timed *t = create_sized(6, WQ_OVERFLOW_BLOCK);

    add(t->q, "aaa");
    add(t->q, "bbb");
    struct adding  x = adding_key(t->q, "12345"), y = adding_key(t->q, "yy");
    struct worker *first = block(&x);
    struct worker *second = block(&y);
    work_on(t->q, "aaa");
    assert_err(worker_join(second), WQ_OK);
    worker_await_blocked(first);
    work_on(t->q, "bbb");
    worker_await_blocked(first);
    work_on(t->q, "yy");
    assert_err(worker_join(first), WQ_OK);
    timed_destroy(t);
}

/* O-87 O-55: of those that fit, the one that came first. */
TEST(bytes_go_to_those_that_waited_longest)
{
    struct timed *t = create_sized(4, WQ_OVERFLOW_BLOCK);

    add(t->q, "aaaa");
    struct adding  all[] = {adding_key(t->q, "xx"), adding_key(t->q, "yyy"),
                            adding_key(t->q, "zz")};
    struct worker *w[SEVERAL];
    for (int i = 0; i < SEVERAL; i++)
        w[i] = block(&all[i]);
    work_on(t->q, "aaaa"); /* enough for xx and zz */
    assert_err(worker_join(w[0]), WQ_OK);
    assert_err(worker_join(w[2]), WQ_OK);
    worker_await_blocked(w[1]);
    assert_int_equal(counts_of(t->q).bytes, 4);
    finish(t->q, take(t->q));
    worker_await_blocked(w[1]);
    finish(t->q, take(t->q));
    assert_err(worker_join(w[1]), WQ_OK);
    timed_destroy(t);
}

/* O-87 O-12: the other one is not woken in vain. */
TEST(bytes_are_promised_to_one_add_only)
{
    struct timed *t = create_sized(4, WQ_OVERFLOW_BLOCK);

    add(t->q, "aaaa");
    struct adding  x = adding_key(t->q, "xxx"), y = adding_key(t->q, "yyy");
    struct worker *first = block(&x);
    struct worker *second = block(&y);
    const int64_t  before = worker_cpu_ns(second);
    work_on(t->q, "aaaa");
    assert_err(worker_join(first), WQ_OK);
    worker_await_blocked(second);
    assert_int_equal(worker_cpu_ns(second), before);
    work_on(t->q, "xxx");
    assert_err(worker_join(second), WQ_OK);
    timed_destroy(t);
}

/* O-87: a place without bytes is no room, nor are bytes without a place. */
TEST(blocked_adds_wait_for_both_bounds)
{
    struct timed *t = timed_create(
        WQ_CONFIG(.max_len = 2, .max_bytes = 6, .overflow = WQ_OVERFLOW_BLOCK));

    add(t->q, "aaaaa");
    add(t->q, "b");
    struct adding  x = adding_key(t->q, "xx");
    struct worker *w = block(&x);
    wq_item       *a = take_key(t->q, "aaaaa");
    work_on(t->q, "b"); /* a place, but one byte */
    worker_await_blocked(w);
    finish(t->q, a);
    assert_err(worker_join(w), WQ_OK);
    add(t->q, "y");
    struct adding z = adding_key(t->q, "z");
    w = block(&z); /* bytes, but no place */
    work_on(t->q, "xx");
    assert_err(worker_join(w), WQ_OK);
    timed_destroy(t);
}

/* O-87 O-55 */
TEST(add_that_waits_for_bytes_can_time_out)
{
    struct timed *t = create_sized(3, WQ_OVERFLOW_BLOCK);

    add(t->q, "abc");
    assert_err(try_how(t->q, WQ_ADD(.nowait = true), "x"), WQ_EFULL);
    struct adding x = adding_key(t->q, "x");
    x.how.max_block_ns = S;
    struct worker *w = block(&x);
    await_sleepers(t, 1);
    step(t, S);
    assert_err(worker_join(w), WQ_ETIMEDOUT);
    struct adding y = adding_key(t->q, "y");
    w = block(&y);
    wq_shutdown(t->q);
    assert_err(worker_join(w), WQ_ESHUTDOWN);
    assert_int_equal(counts_of(t->q).bytes, 3);
    timed_destroy(t);
}

WQ_TESTS(test(overflow_policy_needs_a_bound),
         test(unknown_overflow_policy_is_refused),
         test(oldest_of_an_order_cannot_be_dropped), test(any_name_is_accepted),
         test(new_key_is_refused_when_the_queue_is_full),
         test(known_key_is_always_accepted),
         test(ready_held_and_waiting_keys_take_room_and_give_it_back),
         test(key_in_the_quiet_time_of_a_throttle_takes_room),
         test(batch_that_does_not_fit_adds_none),
         test(limiter_does_not_count_what_did_not_fit),
         test(full_queue_hands_out_and_drains_as_ever),
         test(new_key_takes_the_place_of_the_oldest),
         test(lowest_priority_makes_room_first),
         test(held_and_waiting_keys_are_not_dropped),
         test(ready_key_that_waits_too_is_dropped_as_a_whole),
         test(delayed_key_takes_the_place_of_the_oldest),
         test(batch_displaces_as_many_as_it_needs_and_none_it_names),
         test(batch_that_cannot_displace_enough_displaces_none),
         test(whoever_is_told_of_a_dropped_key_may_call_the_queue),
         test(dropped_keys_of_any_length_are_shown_and_given_back),
         test(keys_are_dropped_without_a_word),
         test(add_to_a_full_queue_waits_until_a_key_has_gone),
         test(room_that_comes_by_a_remove_or_a_cancel_wakes_too),
         test(add_gives_up_when_its_time_is_up_and_not_before),
         test(add_that_gives_up_leaves_the_room_to_the_others),
         test(add_that_shall_not_wait_is_refused_at_once),
         test(batch_larger_than_the_bound_is_refused_at_once),
         test(batch_that_can_no_longer_fit_is_refused),
         test(batch_waits_until_all_of_it_fits),
         test(add_that_needs_more_room_does_not_hold_up_one_that_needs_less),
         test(those_who_wait_for_room_come_in_the_order_they_came),
         test(who_has_slept_twice_for_room_keeps_its_place),
         test(much_room_wakes_many),
         test(add_that_waits_uses_no_time_and_is_not_woken_in_vain),
         test(shutdown_sends_adds_that_wait_home),
         test(destroy_sends_adds_that_wait_home),
         test(destroy_waits_for_a_woken_add_that_reports),
         test(add_that_waits_is_woken_when_a_quiet_time_is_over),
         test(adds_that_wait_learn_of_quiet_times_that_begin_later),
         test(order_that_says_full_is_not_waited_for),
         test(worker_that_retries_its_key_does_not_wait),
         test(bound_in_bytes_is_a_bound),
         test(keys_are_refused_when_their_bytes_do_not_fit),
         test(bytes_of_all_known_keys_count),
         test(bytes_are_counted_only_for_a_bound),
         test(key_longer_than_the_bound_never_fits),
         test(batch_whose_bytes_do_not_fit_adds_none),
         test(both_bounds_hold_at_once),
         test(long_key_takes_the_place_of_several),
         test(key_that_cannot_displace_enough_bytes_displaces_none),
         test(bytes_of_the_lowest_priority_go_first),
         test(bytes_of_a_raised_key_go_to_its_new_level),
         test(batch_does_not_count_on_the_bytes_it_names),
         test(keys_go_until_both_bounds_hold),
         test(batch_displaces_bytes_and_none_it_names),
         test(callback_may_add_again_while_victims_are_left_to_show),
         test(bytes_come_from_the_group_that_has_most_keys),
         test(group_with_the_next_most_keys_makes_room),
         test(long_key_waits_until_enough_short_ones_have_gone),
         test(long_key_does_not_hold_up_a_short_one),
         test(bytes_go_to_those_that_waited_longest),
         test(bytes_are_promised_to_one_add_only),
         test(blocked_adds_wait_for_both_bounds),
         test(add_that_waits_for_bytes_can_time_out));
