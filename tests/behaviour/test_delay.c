/* SPDX-License-Identifier: MIT */
/* test_delay.c: which facts about delays need C to be tested?
 *
 * Huge keys, random delays, allocators and orders that refuse, threads that are
 * stopped at a certain point, and many threads. What needs none of these is in
 * tests/scenarios: delay, sleeping_gets and waiting.
 */
#include "layered.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include <wq/inspect.h>

#include "support/counting.h"
#include "support/plug_in.h"

/* Two kinds of queues have delays. */
enum kind { IN_MEMORY, LAYERED, KINDS };

/* `mem` may be NULL. The inner queue of a layer is in *inner. */
static struct timed *
open_kind(int kind, const wq_allocator *mem, struct bare **inner)
{
    *inner = NULL;
    return kind == LAYERED ? wrap_bare_with(mem, inner)
                           : timed_create(WQ_CONFIG(.allocator = mem));
}

static void
join_all(struct worker *const *all, size_t n, wq_err expected)
{
    for (size_t i = 0; i < n; i++)
        assert_err(worker_join(all[i]), expected);
}

static uint64_t
draw(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return *seed >> 33;
}

/* ---- keys ---------------------------------------------------------------- */

/* Keys are numbered as they arrive. */
static void
check_random_delays(struct timed *t)
{
    enum { KEYS = 2000 };
    uint64_t seed = 1;
    int64_t  delay_ns[KEYS];

    for (uint64_t i = 0; i < KEYS; i++) {
        delay_ns[i] = (int64_t)(draw(&seed) % 600 + 1) * S;
        assert_err(wq_add_after(t->q, wq_u64(&i), delay_ns[i]), WQ_OK);
    }
    assert_none_due(t);
    step(t, 660 * S);
    assert_int_equal(wq_len(t->q), KEYS);

    uint64_t last = 0, now = 0;
    for (int n = 0; n < KEYS; n++, last = now) {
        wq_item *item = take(t->q);

        memcpy(&now, item->key.data, sizeof now);
        assert_true(n == 0 || delay_ns[last] < delay_ns[now] ||
                    (delay_ns[last] == delay_ns[now] && last < now));
        finish(t->q, item);
    }
    assert_none_due(t);
}

static void
check_key_lengths(struct timed *t)
{
    const size_t lengths[] = {1, 113, 5000, WQ_KEY_MAX};
    char        *bytes = malloc(WQ_KEY_MAX);

    assert_non_null(bytes);
    for (size_t i = 0; i < WQ_KEY_MAX; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    for (size_t i = 0; i < 4; i++)
        assert_err(wq_add_after(t->q, (wq_key){bytes, lengths[i]}, MS), WQ_OK);
    step(t, MS);
    for (size_t i = 0; i < 4; i++) {
        wq_item *item = take(t->q);
        assert_int_equal(item->key.len, lengths[i]);
        assert_memory_equal(item->key.data, bytes, lengths[i]);
        finish(t->q, item);
    }
    free(bytes);
}

static void
check_bad_keys(struct timed *t)
{
    char *bytes = calloc(1, WQ_KEY_MAX + 1);

    assert_non_null(bytes);
    for (int64_t delay_ns = -1; delay_ns <= 1; delay_ns++) {
        assert_err(wq_add_after(NULL, wq_str("foo"), delay_ns), WQ_EINVAL);
        assert_err(wq_add_after(t->q, wq_str(""), delay_ns), WQ_EINVAL);
        assert_err(wq_add_after(t->q, (wq_key){NULL, 3}, delay_ns), WQ_EINVAL);
        assert_err(
            wq_add_after(t->q, (wq_key){bytes, WQ_KEY_MAX + 1}, delay_ns),
            WQ_ETOOLONG);
    }
    free(bytes);
    step(t, HOUR);
    assert_none_due(t);
}

static void
check_each_kind(void (*check)(struct timed *t))
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct bare  *inner;
        struct timed *t = open_kind(kind, NULL, &inner);

        check(t);
        timed_destroy(t);
    }
}

/* D-06 D-05 D-12 */
TEST(many_keys_with_random_delays_all_come_in_order)
{
    check_each_kind(check_random_delays);
}

/* D-01 O-04 */
TEST(delayed_keys_of_all_lengths_come_back_whole)
{
    check_each_kind(check_key_lengths);
}

/* D-01 O-14 */
TEST(bad_keys_cannot_wait)
{
    check_each_kind(check_bad_keys);
}

/* ---- memory -------------------------------------------------------------- */

/* D-01 D-13 Q-11 O-18 */
TEST(nothing_is_kept_of_a_done_or_dropped_key)
{
    char key[5000];

    memset(key, 'x', sizeof key);
    for (int kind = 0; kind < KINDS; kind++) {
        struct counting mem;
        counting_init(&mem);
        struct bare  *inner;
        struct timed *t = open_kind(kind, &mem.allocator, &inner);
        size_t        kept[2];

        for (int i = 0; i < 2; i++) {
            assert_err(wq_add_after(t->q, (wq_key){key, sizeof key}, S), WQ_OK);
            step(t, S);
            finish(t->q, take(t->q));
            kept[i] = mem.bytes;
        }
        assert_int_equal(kept[0], kept[1]);

        assert_err(wq_add_after(t->q, (wq_key){key, sizeof key}, S), WQ_OK);
        const size_t before = mem.bytes;
        wq_shutdown(t->q);
        assert_true(mem.bytes + sizeof key <= before);
        timed_destroy(t);
        assert_int_equal(mem.bytes, 0);
    }
}

/* D-13 */
TEST(destroy_gives_back_what_waits)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct counting mem;
        counting_init(&mem);
        struct bare  *inner;
        struct timed *t = open_kind(kind, &mem.allocator, &inner);

        for (uint64_t i = 0; i < 1000; i++)
            assert_err(wq_add_after(t->q, wq_u64(&i), (int64_t)i * S), WQ_OK);
        timed_destroy(t);
        assert_int_equal(mem.bytes, 0);
    }
}

/* Refuse the `nth` allocation of a delay; true: it needs fewer. */
static bool
refuse_allocation(int kind, uint64_t nth, enum counting_mode mode)
{
    struct counting mem;
    counting_init(&mem);
    struct bare  *inner;
    struct timed *t = open_kind(kind, &mem.allocator, &inner);

    counting_fail(&mem, nth, mode);
    const wq_err err = wq_add_after(t->q, wq_str("foo"), S);
    assert_err(err, err ? WQ_ENOMEM : WQ_OK);
    assert_none_due(t);
    counting_heal(&mem);
    step(t, S);
    if (err)
        assert_none_due(t);
    else
        work_on(t->q, "foo");
    timed_destroy(t);
    assert_int_equal(mem.bytes, 0);
    return !err;
}

/* D-14 O-18 */
TEST(delay_refused_for_lack_of_memory_changes_nothing)
{
    const enum counting_mode modes[] = {COUNTING_ONCE, COUNTING_FROM_NOW};

    for (int i = 0; i < 2 * KINDS; i++) {
        uint64_t nth = 1;

        while (!refuse_allocation(i % KINDS, nth, modes[i / KINDS]))
            nth++;
        assert_true(nth > 1);
    }
}

/* ---- an order that refuses ----------------------------------------------- */

struct refusing {
    struct plug_in fifo; /* first: it is what the order knows */
    int            refuses;
    char           offered[32]; /* the first letters of the keys pushed */
};

static wq_err
refuse_first(void *self, wq_key key, int priority)
{
    struct refusing *r = self;

    r->offered[strlen(r->offered)] = *(const char *)key.data;
    if (r->refuses && r->refuses--)
        return WQ_ENOMEM;
    return plug_in_push(&r->fifo, key, priority);
}

/* O-86 O-15: 10 ms later, in the order of their deadlines. */
TEST(flushed_key_that_an_order_refuses_is_offered_again)
{
    struct refusing r = {.refuses = 3};
    wq_order        order = plug_in_order(&r.fifo);
    wq_key_info     info = {.size = sizeof info};

    order.push = refuse_first;
    struct timed *t = timed_create(
        WQ_CONFIG(.order = &order, .waiting = WQ_WAITING_FLUSH_ALL));
    add_after(t, "never", WQ_FOREVER);
    add_after(t, "d", 4 * S);
    add_after(t, "b", 2 * S);
    add_after(t, "c", 3 * S);
    add_after(t, "a", S);
    wq_shutdown(t->q);
    assert_string_equal(r.offered, "abcdn"); /* each of them once */
    work_on(t->q, "d");                      /* not held up by the others */
    work_on(t->q, "never");
    assert_none_ready(t->q, WQ_ETIMEDOUT);
    assert_err(wq_read_key(t->q, wq_str("a"), &info), WQ_OK);
    assert_int_equal(info.wait_ns, 10 * MS);
    assert_due_in(t, "a", 10 * MS);
    work_on(t->q, "b");
    work_on(t->q, "c");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    timed_destroy(t);
}

/* ---- a thread that cannot run -------------------------------------------- */

/* A thread that is frozen stays in a signal handler until thaw(). The thread
 * sanitizer does not run handlers while a thread sleeps: no thread is frozen
 * there, and what is tested holds, too. */
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define CAN_FREEZE 0
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define CAN_FREEZE 0
#endif
#ifndef CAN_FREEZE
#define CAN_FREEZE 1
#endif

static atomic_bool is_frozen, is_thawed;

static void
stay(int signal_number)
{
    (void)signal_number;
    atomic_store(&is_frozen, true);
    while (!atomic_load(&is_thawed))
        (void)sched_yield();
}

static void
freeze(struct worker *w)
{
    const struct sigaction action = {.sa_handler = stay};
    const int64_t          begin_ns = now_ns();

    if (!CAN_FREEZE)
        return;
    atomic_store(&is_frozen, false);
    atomic_store(&is_thawed, false);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(pthread_kill(w->thread, SIGUSR1), 0);
    while (!atomic_load(&is_frozen))
        assert_true(now_ns() - begin_ns < WORKER_LIMIT_S * S);
}

static void
thaw(void)
{
    atomic_store(&is_thawed, true);
}

/* O-08 D-03 D-16: the timekeeper was interrupted and has not left yet when an
 * earlier deadline comes up. */
TEST(timekeeper_that_leaves_hands_a_new_deadline_over)
{
    struct timed *t = *state;
    wq_item      *item = NULL;

    add_after(t, "later", HOUR);
    struct worker *first = worker_get(t->q, NULL);
    await_sleepers(t, 1);
    worker_await_blocked(first);
    freeze(first);
    wq_interrupt(t->q);
    struct worker *second = worker_get(t->q, &item);
    worker_await_blocked(second);
    add_after(t, "sooner", S);
    worker_await_blocked(second);
    thaw();
    assert_err(worker_join(first), WQ_EINTERRUPTED);
    await_sleepers(t, 1);
    step(t, S);

    assert_err(worker_join(second), WQ_OK);
    assert_key(item, "sooner");
}

/* O-05 D-16: it times out after it was woken up, and before it could run. */
TEST(get_that_times_out_while_woken_takes_the_key)
{
    struct timed *t = *state;

    struct worker *w = get_in_time(t, S);
    await_sleepers(t, 1);
    worker_await_blocked(w);
    freeze(w);
    add(t->q, "foo");
    step(t, S);
    thaw();

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
}

/* ---- many threads -------------------------------------------------------- */

enum { KEYS = 32, PRODUCERS = 3, CONSUMERS = 3, ADDS = 400 };

static int
work_until_shutdown(struct worker *self)
{
    wq_queue *q = self->arg;
    wq_item  *item;

    for (;;) {
        const wq_err err = wq_get(q, &item);

        if (err == WQ_OK)
            (void)wq_done(q, item);
        else if (err != WQ_EINTERRUPTED)
            return (int)err;
    }
}

static void
start_workers(struct worker **all, wq_queue *q)
{
    for (int i = 0; i < CONSUMERS; i++)
        all[i] = worker_start(work_until_shutdown, q);
}

/* O-15 Q-01: the loop that the manual shows ends by itself. */
TEST(workers_and_drain_end_after_the_last_kept_key)
{
    struct timed  *t = timed_create(WQ_CONFIG(.waiting = WQ_WAITING_KEEP));
    struct worker *workers[CONSUMERS];

    for (uint64_t i = 0; i < 10; i++)
        assert_err(wq_add_after(t->q, wq_u64(&i), (int64_t)i * S), WQ_OK);
    start_workers(workers, t->q);
    struct worker *drain = worker_drain(t->q);
    for (int i = 0; i < 9; i++) {
        await_sleepers(t, 1);
        step(t, S);
    }

    assert_err(worker_join(drain), WQ_OK);
    join_all(workers, CONSUMERS, WQ_ESHUTDOWN);
    timed_destroy(t);
}

/* O-08 D-03 D-16: the timekeeper is interrupted while other gets come and the
 * deadline moves; in the end there is a timekeeper. */
TEST(interrupts_and_earlier_deadlines_may_meet)
{
    struct timed  *t = *state;
    struct worker *all[CONSUMERS];

    start_workers(all, t->q);
    for (int round = 0; round < 1000; round++) {
        const uint64_t key = (uint64_t)round;
        const int64_t  delay_ns = HOUR - round * S;

        assert_err(wq_add_after(t->q, wq_u64(&key), delay_ns), WQ_OK);
        wq_interrupt(t->q);
        assert_err(wq_add_after(t->q, wq_u64(&key), delay_ns - 1), WQ_OK);
    }
    step(t, HOUR);
    worker_await_all_blocked(all, CONSUMERS);

    assert_none_due(t);
    wq_shutdown(t->q);
    join_all(all, CONSUMERS, WQ_ESHUTDOWN);
}

/* `wanted` is raised before each add, and copied to `seen` by the thread that
 * works on the key. So an add is lost if `seen` is behind in the end. */
struct run {
    struct timed *t;
    struct bare  *inner; /* refuses an add now and then; NULL: no layer */
    atomic_int    wanted[KEYS];
    atomic_int    seen[KEYS];
    atomic_int    hands[KEYS]; /* that hold it at the moment */
    atomic_int    overlaps;    /* times there were two */
};

static int
produce(struct worker *self)
{
    struct run *run = self->arg;
    uint64_t    seed = (uint64_t)(uintptr_t)self;

    for (int i = 0; i < ADDS; i++) {
        const uint64_t key = draw(&seed) % KEYS;
        /* An add without a delay would be refused to its caller. */
        const int64_t delay_ns =
            (int64_t)(draw(&seed) % 20) + (run->inner ? 1 : -2);

        atomic_fetch_add(&run->wanted[key], 1);
        if (wq_add_after(run->t->q, wq_u64(&key), delay_ns) != WQ_OK)
            return 1;
        if (run->inner && i % 16 == 0)
            atomic_store(&run->inner->refuse_next, 1);
    }
    return 0;
}

static int
consume(struct worker *self)
{
    struct run *run = self->arg;
    wq_item    *item;
    wq_err      err;

    while ((err = wq_get(run->t->q, &item)) == WQ_OK) {
        uint64_t key;

        memcpy(&key, item->key.data, sizeof key);
        if (atomic_fetch_add(&run->hands[key], 1) != 0)
            atomic_fetch_add(&run->overlaps, 1);
        atomic_store(&run->seen[key], atomic_load(&run->wanted[key]));
        atomic_fetch_sub(&run->hands[key], 1);
        (void)wq_done(run->t->q, item);
    }
    return (int)err;
}

/* D-06 D-10 D-11 O-18: one more step makes everything due, so from then on only
 * a lost wake-up can keep the consumers from it. Keys that the inner queue
 * refused need more steps: a get offers them again after 10 ms. */
TEST(no_delayed_add_is_lost_while_threads_meet)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct bare   *inner;
        struct timed  *t = open_kind(kind, NULL, &inner);
        struct run     run = {.t = t, .inner = inner};
        struct worker *producers[PRODUCERS], *consumers[CONSUMERS];

        for (int i = 0; i < CONSUMERS; i++)
            consumers[i] = worker_start(consume, &run);
        for (int i = 0; i < PRODUCERS; i++)
            producers[i] = worker_start(produce, &run);
        for (size_t left = PRODUCERS; left;) {
            step(t, 1);
            if (worker_has_ended(producers[left - 1]))
                assert_int_equal(worker_join(producers[--left]), 0);
        }
        for (int i = 0; i < (inner ? 5 : 1); i++) {
            step(t, 10 * MS);
            worker_await_all_blocked(consumers, CONSUMERS);
        }

        for (int i = 0; i < KEYS; i++)
            assert_int_equal(run.seen[i], run.wanted[i]);
        assert_int_equal(run.overlaps, 0);
        wq_shutdown(t->q);
        join_all(consumers, CONSUMERS, WQ_ESHUTDOWN);
        timed_destroy(t);
    }
}

WQ_TESTS(test(many_keys_with_random_delays_all_come_in_order),
         test(delayed_keys_of_all_lengths_come_back_whole),
         test(bad_keys_cannot_wait),
         test(nothing_is_kept_of_a_done_or_dropped_key),
         test(destroy_gives_back_what_waits),
         test(delay_refused_for_lack_of_memory_changes_nothing),
         test(flushed_key_that_an_order_refuses_is_offered_again),
         with_time(timekeeper_that_leaves_hands_a_new_deadline_over),
         with_time(get_that_times_out_while_woken_takes_the_key),
         test(workers_and_drain_end_after_the_last_kept_key),
         with_time(interrupts_and_earlier_deadlines_may_meet),
         test(no_delayed_add_is_lost_while_threads_meet));
