/* SPDX-License-Identifier: MIT */
/* test_inspect.c: what do wq_read_stats(), wq_read_depths(), wq_read_key() and wq_each()
 * say of a queue?
 *
 * On a fake clock, and without a sink: ages are kept where the config says so.
 */
#include "metered.h"

#include <stdio.h>

#include <wq/backend.h>
#include <wq/limiter.h>

#include "support/counting.h"

static void
add_how(wq_queue *q, const char *key, const wq_add_options *how)
{
    const wq_key one = wq_str(key);

    assert_err(wq_add_with(q, how, &one, 1), WQ_OK);
}

static int
make_aged(void **state)
{
    *state = timed_create(
        WQ_CONFIG(.ages = true,
                  .limiter = wq_limiter_exponential(5 * MS, 1000 * S)));
    return 0;
}

/* An entry of WQ_TESTS() for a test that wants ages. */
#define with_ages(name) test_with(name, make_aged, timed_teardown)

/* ---- wq_read_stats() --------------------------------------------------------- */

/* O-30 */
TEST(new_queue_has_nothing_to_count)
{
    const struct timed *t = *state;
    const wq_stats      c = stats(t->q);

    assert_int_equal(c.size, sizeof c);
    assert_int_equal(c.ready + c.held + c.dirty + c.waiting + c.sleeping, 0);
    assert_int_equal(c.next_ns, WQ_FOREVER);
    assert_int_equal(c.unfinished_ns, 0);
    assert_int_equal(c.longest_ns, 0);
    assert_false(c.shutting_down);
    assert_int_equal(c.adds + c.merged + c.retries + c.gets + c.dones +
                         c.removed + c.displaced + c.deferred + c.drops,
                     0);
}

/* O-30 */
TEST(every_step_is_counted)
{
    struct timed *t = *state;
    wq_queue     *q = t->q;

    add(q, "a");
    add(q, "b");
    add(q, "b");
    wq_item *item = take_key(q, "a");
    add(q, "a");
    add(q, "a");
    add_after(t, "b", 10);
    add_after(t, "c", 20);
    wq_stats c = stats(q);
    assert_int_equal(c.ready, 1);
    assert_int_equal(c.held, 1);
    assert_int_equal(c.dirty, 1);
    assert_int_equal(c.waiting, 2);
    assert_int_equal(c.next_ns, 10);
    assert_int_equal(c.adds, 3);
    assert_int_equal(c.merged, 2);
    assert_int_equal(c.retries, 2);
    assert_int_equal(c.gets, 1);
    assert_int_equal(c.dones, 0);
    assert_adds_up(&c);

    assert_err(wq_remove(q, wq_str("a")), WQ_OK); /* it was DIRTY */
    finish(q, item);
    assert_err(wq_remove(q, wq_str("c")), WQ_OK); /* it only waited */
    c = stats(q);
    assert_int_equal(c.removed, 1);
    assert_int_equal(c.dones, 1);
    assert_int_equal(c.held, 0);
    assert_int_equal(c.waiting, 1);
    assert_adds_up(&c);
    add_after(t, "d", 30);
    wq_shutdown(q);
    c = stats(q);
    assert_true(c.shutting_down);
    assert_int_equal(c.drops, 1); /* d; b is READY as before */
    assert_int_equal(c.waiting, 0);
    assert_int_equal(c.next_ns, WQ_FOREVER);
    assert_adds_up(&c);
}

/* O-30 */
TEST(deadline_that_has_passed_counts_as_ready)
{
    struct timed *t = *state;

    add_after(t, "a", 10);
    add_after(t, "b", 25);
    step(t, 9);
    assert_int_equal(stats(t->q).ready, 0);
    assert_int_equal(stats(t->q).adds, 0);
    assert_int_equal(stats(t->q).next_ns, 1);
    step(t, 1);
    const wq_stats c = stats(t->q);
    assert_int_equal(c.ready, 1);
    assert_int_equal(c.waiting, 1);
    assert_int_equal(c.adds, 1);
    assert_int_equal(c.next_ns, 15);
    assert_adds_up(&c);
}

/* O-30: that a key is left alone is no deadline. */
TEST(throttled_key_is_not_mistaken_for_a_deadline)
{
    struct timed *t = *state;

    add_how(t->q, "a", WQ_ADD(.throttle_ns = 10));
    add_how(t->q, "b", WQ_ADD(.throttle_ns = 20));
    assert_int_equal(stats(t->q).next_ns, WQ_FOREVER);
    work_on(t->q, "a");
    work_on(t->q, "b");
    assert_int_equal(stats(t->q).waiting, 0);
    assert_int_equal(stats(t->q).next_ns, WQ_FOREVER);
    assert_int_equal(look(t->q, "a").states, 0);
    assert_int_equal(look(t->q, "a").wait_ns, -1);
    for (int i = 0; i < 30; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "%d", i);
        add_after(t, key, 60 - i);
    }
    assert_int_equal(stats(t->q).waiting, 30);
    assert_int_equal(stats(t->q).next_ns, 31);
    add_how(t->q, "b", WQ_ADD(.throttle_ns = 20)); /* now it is one */
    assert_int_equal(stats(t->q).waiting, 31);
    assert_int_equal(stats(t->q).next_ns, 20);
    assert_int_equal(look(t->q, "b").wait_ns, 20);
}

/* O-30 */
TEST(backoff_that_puts_a_key_off_is_counted)
{
    struct timed *t = timed_create(
        WQ_CONFIG(.retry = WQ_RETRY_RESPECT,
                  .limiter = wq_limiter_exponential(5 * MS, 1000 * S)));

    add(t->q, "a");
    wq_item *item = take(t->q);
    add(t->q, "a");
    assert_err(wq_add_rate_limited(t->q, wq_str("a")), WQ_OK);
    finish(t->q, item); /* not READY: it backs off */
    wq_stats c = stats(t->q);
    assert_int_equal(c.deferred, 1);
    assert_int_equal(c.displaced, 0);
    assert_int_equal(c.drops, 0);
    assert_int_equal(c.ready + c.dirty, 0);
    assert_int_equal(c.waiting, 1);
    assert_adds_up(&c);
    step(t, 5 * MS);
    c = stats(t->q);
    assert_int_equal(c.ready, 1);
    assert_adds_up(&c);
    timed_destroy(t);
}

/* O-30 */
TEST(sleeping_gets_are_counted)
{
    struct timed  *t = *state;
    struct worker *w = get_in_time(t, 1 * S);

    await_sleepers(t, 1);
    assert_int_equal(stats(t->q).sleeping, 1);
    step(t, 1 * S);
    assert_err(worker_join(w), WQ_ETIMEDOUT);
    assert_int_equal(stats(t->q).sleeping, 0);
}

/* ---- sizes, and what is refused ----------------------------------------- */

/* O-30 O-32 */
TEST(struct_of_an_older_program_is_filled_as_far_as_it_goes)
{
    const struct timed *t = *state;
    wq_stats            counts;
    wq_key_info         info;

    add(t->q, "a");
    memset(&counts, 0xa5, sizeof counts);
    counts.size = offsetof(wq_stats, sleeping);
    assert_err(wq_read_stats(t->q, &counts), WQ_OK);
    assert_int_equal(counts.size, offsetof(wq_stats, sleeping));
    assert_int_equal(counts.ready, 1);
    assert_int_equal(counts.waiting, 0);
    assert_int_equal(counts.sleeping, (size_t)0xa5a5a5a5a5a5a5a5);
    assert_int_equal(counts.drops, UINT64_C(0xa5a5a5a5a5a5a5a5));

    memset(&info, 0xa5, sizeof info);
    info.size = offsetof(wq_key_info, held_ns);
    assert_err(wq_read_key(t->q, wq_str("a"), &info), WQ_OK);
    assert_int_equal(info.size, offsetof(wq_key_info, held_ns));
    assert_int_equal(info.states, WQ_STATE_READY);
    assert_int_equal(info.ready_ns, 0);
    assert_int_equal(info.held_ns, (int64_t)0xa5a5a5a5a5a5a5a5);
    assert_int_equal(info.fence, UINT64_C(0xa5a5a5a5a5a5a5a5));
}

/* O-30 O-32 */
TEST(struct_of_a_newer_program_is_filled_as_far_as_we_know)
{
    const struct timed *t = *state;
    struct {
        wq_stats known;
        uint64_t unknown;
    } counts = {.unknown = 0};
    struct {
        wq_key_info known;
        uint64_t    unknown;
    } info = {.unknown = 0};

    add(t->q, "a");
    counts.known.size = sizeof counts;
    assert_err(wq_read_stats(t->q, &counts.known), WQ_OK);
    assert_int_equal(counts.known.size, sizeof counts);
    assert_int_equal(counts.known.adds, 1);
    assert_int_equal(counts.unknown, 0);
    info.known.size = sizeof info;
    assert_err(wq_read_key(t->q, wq_str("a"), &info.known), WQ_OK);
    assert_int_equal(info.known.states, WQ_STATE_READY);
    assert_int_equal(info.unknown, 0);
    counts.unknown = info.unknown = 1;
    assert_err(wq_read_stats(t->q, &counts.known), WQ_EINVAL);
    assert_err(wq_read_key(t->q, wq_str("a"), &info.known), WQ_EINVAL);
}

/* O-30 O-32 */
TEST(wrong_size_is_refused_and_nothing_is_written)
{
    const struct timed *t = *state;
    const size_t        word = sizeof(void *);
    const size_t        wrong[] = {0, word / 2, word + word / 2, 4096 + word};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        wq_stats    counts = {.size = wrong[i], .ready = 77};
        wq_key_info info = {.size = wrong[i], .states = 77};
        assert_err(wq_read_stats(t->q, &counts), WQ_EINVAL);
        assert_int_equal(counts.ready, 77);
        assert_err(wq_read_key(t->q, wq_str("a"), &info), WQ_EINVAL);
        assert_int_equal(info.states, 77);
    }
}

static bool
never(void *ctx, wq_key key, const wq_key_info *info)
{
    (void)ctx;
    (void)key;
    (void)info;
    fail_msg("nothing was to be visited");
    return false;
}

/* O-30 O-31 O-32 O-33 */
TEST(bad_arguments_are_refused)
{
    static const char   too_long[WQ_KEY_MAX + 1];
    const struct timed *t = *state;
    wq_stats            counts = {.size = sizeof counts};
    wq_key_info         info = {.size = sizeof info};
    wq_depth            depth;
    size_t              n = 77;

    assert_err(wq_read_stats(NULL, &counts), WQ_EINVAL);
    assert_err(wq_read_stats(t->q, NULL), WQ_EINVAL);
    assert_err(wq_read_depths(NULL, &depth, 1, &n), WQ_EINVAL);
    assert_err(wq_read_depths(t->q, NULL, 1, &n), WQ_EINVAL);
    assert_err(wq_read_depths(t->q, &depth, 1, NULL), WQ_EINVAL);
    assert_int_equal(n, 77);
    assert_err(wq_read_depths(t->q, NULL, 0, &n), WQ_OK);
    assert_int_equal(n, 1);
    assert_err(wq_read_key(NULL, wq_str("a"), &info), WQ_EINVAL);
    assert_err(wq_read_key(t->q, wq_str("a"), NULL), WQ_EINVAL);
    assert_err(wq_read_key(t->q, wq_str(""), &info), WQ_EINVAL);
    assert_err(wq_read_key(t->q, wq_str(NULL), &info), WQ_EINVAL);
    assert_err(wq_read_key(t->q, (wq_key){too_long, sizeof too_long}, &info),
               WQ_ETOOLONG);
    add(t->q, "a");
    assert_err(wq_each(NULL, 0, never, NULL), WQ_EINVAL);
    assert_err(wq_each(t->q, 0, NULL, NULL), WQ_EINVAL);
    assert_err(wq_each(t->q, 32, never, NULL), WQ_EINVAL);
    assert_err(wq_each(t->q, 1U << 31 | WQ_STATE_READY, never, NULL),
               WQ_EINVAL);
}

static wq_err
no_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    (void)q;
    (void)timeout_ns;
    (void)out;
    return WQ_ENOTSUP;
}

static wq_err
no_add(wq_queue *q, wq_key key)
{
    (void)q;
    (void)key;
    return WQ_ENOTSUP;
}

static wq_err
no_done(wq_queue *q, wq_item *item)
{
    (void)q;
    (void)item;
    return WQ_ENOTSUP;
}

static wq_err
no_len(wq_queue *q, size_t *out)
{
    (void)q;
    (void)out;
    return WQ_ENOTSUP;
}

static void
no_verb(wq_queue *q)
{
    (void)q;
}

static bool
no_shutdown(const wq_queue *q)
{
    (void)q;
    return false;
}

/* O-30 O-31 O-32 O-33 */
TEST(backend_that_cannot_tell_says_so)
{
    static const wq_backend least = {
        .size = sizeof least,
        .name = "least",
        .destroy = no_verb,
        .add = no_add,
        .get = no_get,
        .done = no_done,
        .len = no_len,
        .shutdown = no_verb,
        .shutting_down = no_shutdown,
    };
    wq_queue    q;
    wq_stats    counts = {.size = sizeof counts};
    wq_key_info info = {.size = sizeof info};
    size_t      n;

    assert_err(wq_backend_init(&q, &least), WQ_OK);
    assert_err(wq_read_stats(&q, &counts), WQ_ENOTSUP);
    assert_err(wq_read_depths(&q, NULL, 0, &n), WQ_ENOTSUP);
    assert_err(wq_read_key(&q, wq_str("a"), &info), WQ_ENOTSUP);
    assert_err(wq_each(&q, 0, never, NULL), WQ_ENOTSUP);
}

/* ---- wq_read_depths() -------------------------------------------------------- */

/* The depth of `priority`; -1: it is not in use. */
static int64_t
depth_of(wq_queue *q, int priority)
{
    wq_depth depths[16];
    size_t   n = 0;
    int64_t  found = -1;

    assert_err(wq_read_depths(q, depths, 16, &n), WQ_OK);
    assert_true(n <= 16);
    for (size_t i = 0; i < n; i++)
        if (depths[i].priority == priority) {
            assert_int_equal(found, -1); /* it is told once */
            found = (int64_t)depths[i].keys;
        }
    return found;
}

static size_t
priorities(wq_queue *q)
{
    size_t n = 0;

    assert_err(wq_read_depths(q, NULL, 0, &n), WQ_OK);
    return n;
}

/* O-31 */
TEST(depth_is_told_by_priority)
{
    struct timed *t = *state;
    wq_queue     *q = t->q;

    assert_int_equal(priorities(q), 1);
    assert_int_equal(depth_of(q, 0), 0);
    add(q, "a");
    add_how(q, "b", WQ_ADD(.priority = 5));
    add_how(q, "c", WQ_ADD(.priority = 5));
    add_how(q, "d", WQ_ADD(.priority = -7, .after_ns = 10));
    assert_int_equal(priorities(q), 3);
    assert_int_equal(depth_of(q, 0), 1);
    assert_int_equal(depth_of(q, 5), 2);
    assert_int_equal(depth_of(q, -7), 0); /* it waits: in use, not in line */
    step(t, 10);
    assert_int_equal(depth_of(q, -7), 1);
    add_how(q, "a", WQ_ADD(.priority = 5)); /* raised */
    assert_int_equal(depth_of(q, 0), 0);
    assert_int_equal(depth_of(q, 5), 3);

    wq_item *item = take_key(q, "b");
    assert_int_equal(depth_of(q, 5), 2);
    add_how(q, "b", WQ_ADD(.priority = 9)); /* DIRTY counts */
    assert_int_equal(depth_of(q, 9), 1);
    assert_int_equal(priorities(q), 4);
    finish(q, item);
    assert_int_equal(depth_of(q, 9), 1);
    work_on(q, "b");
    assert_int_equal(depth_of(q, 9), -1);
    work_on(q, "c");
    work_on(q, "a");
    assert_err(wq_remove(q, wq_str("d")), WQ_OK);
    assert_int_equal(priorities(q), 1);
    assert_int_equal(depth_of(q, 0), 0);
}

/* O-31 */
TEST(depths_fill_in_no_more_than_there_is_room_for)
{
    const struct timed *t = *state;
    wq_depth            depths[3] = {{.keys = 77}, {.keys = 77}, {.keys = 77}};
    size_t              n = 0;

    for (int i = 1; i <= 5; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "%d", i);
        add_how(t->q, key, WQ_ADD(.priority = i));
    }
    assert_err(wq_read_depths(t->q, depths, 2, &n), WQ_OK);
    assert_int_equal(n, 6);
    assert_true(depths[0].keys <= 1 && depths[1].keys <= 1);
    assert_int_equal(depths[2].keys, 77);
}

/* ---- wq_read_key() ----------------------------------------------------- */

static void
assert_state(const wq_key_info *info, unsigned states, int64_t ready_ns,
             int64_t held_ns, int64_t wait_ns)
{
    assert_int_equal(info->size, sizeof *info);
    assert_int_equal(info->states, states);
    assert_int_equal(info->ready_ns, ready_ns);
    assert_int_equal(info->held_ns, held_ns);
    assert_int_equal(info->wait_ns, wait_ns);
}

#define assert_key_info(q, key, states, ready_ns, held_ns, wait_ns)            \
    do {                                                                       \
        const wq_key_info info_ = look(q, key);                                \
        assert_state(&info_, states, ready_ns, held_ns, wait_ns);              \
    } while (0)

/* Through all combinations of states; ages that are not kept are -1. */
static void
walk_through_states(struct timed *t, bool ages)
{
    const int64_t no = -1;
    wq_queue     *q = t->q;

    assert_key_info(q, "a", 0, no, no, no);
    add_after(t, "a", 1000);
    step(t, 1);
    assert_key_info(q, "a", WQ_STATE_WAITING, no, no, 999);
    add(q, "a");
    step(t, 1);
    assert_key_info(q, "a", WQ_STATE_WAITING | WQ_STATE_READY, ages ? 1 : no,
                    no, 998);
    wq_item *item = take(q);
    step(t, 1);
    assert_key_info(q, "a", WQ_STATE_WAITING | WQ_STATE_HELD, no, ages ? 1 : no,
                    997);
    add(q, "a");
    step(t, 1);
    assert_key_info(q, "a", WQ_STATE_WAITING | WQ_STATE_HELD | WQ_STATE_DIRTY,
                    ages ? 1 : no, ages ? 2 : no, 996);
    step(t, 996); /* the deadline merges into what is DIRTY */
    assert_key_info(q, "a", WQ_STATE_HELD | WQ_STATE_DIRTY, ages ? 997 : no,
                    ages ? 998 : no, no);
    finish(q, item);
    assert_key_info(q, "a", WQ_STATE_READY, ages ? 997 : no, no, no);
    item = take(q);
    step(t, 2);
    assert_key_info(q, "a", WQ_STATE_HELD, no, ages ? 2 : no, no);
    finish(q, item);
    assert_key_info(q, "a", 0, no, no, no);
}

/* O-32 */
TEST(state_of_a_key_is_told_in_all_its_states)
{
    walk_through_states(*state, true);
}

/* O-32 M-06 */
TEST(state_of_a_key_is_told_without_ages_where_they_are_not_kept)
{
    walk_through_states(*state, false);
}

/* O-32 */
TEST(backoff_is_a_state_of_a_deadline)
{
    struct timed *t = *state;
    wq_queue     *q = t->q;

    assert_err(wq_add_rate_limited(q, wq_str("a")), WQ_OK);
    assert_key_info(q, "a", WQ_STATE_WAITING | WQ_STATE_BACKOFF, -1, -1,
                    5 * MS);
    assert_int_equal(look(q, "a").requeues, 1);
    assert_err(wq_add_rate_limited(q, wq_str("a")), WQ_OK);
    assert_int_equal(look(q, "a").requeues, 2);
    add(q, "a");
    assert_key_info(q, "a",
                    WQ_STATE_WAITING | WQ_STATE_BACKOFF | WQ_STATE_READY, 0, -1,
                    5 * MS);
    (void)take(q);
    add(q, "a");
    assert_key_info(q, "a",
                    WQ_STATE_WAITING | WQ_STATE_BACKOFF | WQ_STATE_HELD |
                        WQ_STATE_DIRTY,
                    0, 0, 5 * MS);
    add_after(t, "a", 1); /* an earlier one that is no backoff */
    assert_key_info(q, "a", WQ_STATE_WAITING | WQ_STATE_HELD | WQ_STATE_DIRTY,
                    0, 0, 1);
    assert_err(wq_cancel_after(q, wq_str("a")), WQ_OK);
    assert_key_info(q, "a", WQ_STATE_HELD | WQ_STATE_DIRTY, 0, 0, -1);
    assert_int_equal(look(q, "a").requeues, 2);
    assert_err(wq_forget(q, wq_str("a")), WQ_OK);
    assert_int_equal(look(q, "a").requeues, 0);
}

/* O-32: what the limiter knows of a key does not depend on the queue. */
TEST(absent_key_may_have_failures)
{
    struct timed *t = *state;

    assert_err(wq_add_rate_limited(t->q, wq_str("a")), WQ_OK);
    assert_err(wq_remove(t->q, wq_str("a")), WQ_OK);
    const wq_key_info info = look(t->q, "a");
    assert_state(&info, 0, -1, -1, -1);
    assert_int_equal(info.requeues, 1);
    assert_int_equal(info.priority, 0);
    assert_int_equal(info.fence, 0);
}

/* O-32 */
TEST(priority_is_that_of_the_next_hand_out)
{
    struct timed *t = *state;
    wq_queue     *q = t->q;

    add_how(q, "a", WQ_ADD(.priority = 3, .after_ns = 10));
    assert_int_equal(look(q, "a").priority, 3); /* of the deadline */
    add_how(q, "a", WQ_ADD(.priority = 1));
    assert_int_equal(look(q, "a").priority, 1); /* of what is READY */
    wq_item *item = take(q);
    assert_int_equal(item->priority, 1);
    assert_int_equal(look(q, "a").priority, 3); /* held: of the deadline */
    add_how(q, "a", WQ_ADD(.priority = -2));
    assert_int_equal(look(q, "a").priority, -2); /* of what is DIRTY */
    add_how(q, "a", WQ_ADD(.priority = 8));
    assert_int_equal(look(q, "a").priority, 8);
    assert_err(wq_remove(q, wq_str("a")), WQ_OK);
    assert_int_equal(look(q, "a").priority, 1); /* the one it is held with */
    finish(q, item);
    assert_int_equal(look(q, "a").priority, 0);
}

/* O-32 Q-17 */
TEST(fence_is_that_of_the_loan)
{
    const struct timed *t = *state;

    add(t->q, "a");
    assert_int_equal(look(t->q, "a").fence, 0);
    wq_item       *item = take(t->q);
    const uint64_t first = item->fence;
    assert_int_equal(look(t->q, "a").fence, first);
    add(t->q, "a");
    finish(t->q, item);
    assert_int_equal(look(t->q, "a").fence, 0);
    item = take(t->q);
    assert_true(item->fence > first);
    assert_int_equal(look(t->q, "a").fence, item->fence);
    finish(t->q, item);
}

/* O-32 */
TEST(deadline_that_has_passed_shows_as_ready)
{
    struct timed *t = *state;

    add_after(t, "a", 10);
    step(t, 12);
    assert_key_info(t->q, "a", WQ_STATE_READY, 2, -1, -1);
}

/* ---- wq_each() ---------------------------------------------------------- */

/* What a walk has seen. */
struct walk {
    wq_queue *q;
    char      seen[64]; /* the keys' first letters, sorted */
    size_t    len;
    size_t    end_after; /* end the walk; 0: never */
    bool      removes;   /* each key it visits */
};

static void
assert_same(const wq_key_info *a, const wq_key_info *b)
{
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->states, b->states);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->requeues, b->requeues);
    assert_int_equal(a->ready_ns, b->ready_ns);
    assert_int_equal(a->held_ns, b->held_ns);
    assert_int_equal(a->wait_ns, b->wait_ns);
    assert_int_equal(a->fence, b->fence);
}

static bool
note(void *ctx, wq_key key, const wq_key_info *info)
{
    struct walk *walk = ctx;
    const char   letter = *(const char *)key.data;
    wq_key_info  again = {.size = sizeof again};
    size_t       i = walk->len++;

    assert_true(walk->len < sizeof walk->seen);
    for (; i > 0 && walk->seen[i - 1] > letter; i--)
        walk->seen[i] = walk->seen[i - 1];
    walk->seen[i] = letter;
    /* Nobody else is there: one look says what the other does. */
    assert_err(wq_read_key(walk->q, key, &again), WQ_OK);
    assert_same(&again, info);
    if (walk->removes)
        (void)wq_remove(walk->q, key);
    return walk->len != walk->end_after;
}

static void
assert_walk(wq_queue *q, unsigned states, const char *letters)
{
    struct walk walk = {.q = q};

    assert_err(wq_each(q, states, note, &walk), WQ_OK);
    assert_string_equal(walk.seen, letters);
}

/* r is READY, h held, d DIRTY, w waits, b backs off, x is READY and waits. */
static void
make_all_kinds(struct timed *t)
{
    add(t->q, "h");
    add(t->q, "d");
    (void)take_key(t->q, "h");
    (void)take_key(t->q, "d");
    add(t->q, "d");
    add(t->q, "r");
    add(t->q, "x");
    add_after(t, "x", 1 * S);
    add_after(t, "w", 1 * S);
    assert_err(wq_add_rate_limited(t->q, wq_str("b")), WQ_OK);
    step(t, 1);
}

/* O-33 */
TEST(walk_visits_the_keys_with_the_states_asked_for)
{
    struct timed *t = *state;

    assert_walk(t->q, 0, "");
    make_all_kinds(t);
    assert_walk(t->q, 0, "bdhrwx");
    assert_walk(t->q, WQ_STATE_READY, "rx");
    assert_walk(t->q, WQ_STATE_HELD, "dh");
    assert_walk(t->q, WQ_STATE_DIRTY, "d");
    assert_walk(t->q, WQ_STATE_WAITING, "bwx");
    assert_walk(t->q, WQ_STATE_BACKOFF, "b");
    assert_walk(t->q, WQ_STATE_DIRTY | WQ_STATE_WAITING, "bdwx");
    add_how(t->q, "q", WQ_ADD(.throttle_ns = 1 * S));
    wq_item *item = NULL;
    while (wq_get_within(t->q, 0, &item) == WQ_OK)
        finish(t->q, item); /* what is left alone is not there */
    assert_walk(t->q, 0, "bdhwx");
}

/* O-33 */
TEST(walk_sees_deadlines_that_have_passed_as_ready)
{
    struct timed *t = *state;

    add_after(t, "a", 10);
    add_after(t, "b", 11);
    step(t, 10);
    assert_walk(t->q, WQ_STATE_READY, "a");
    assert_walk(t->q, WQ_STATE_WAITING, "b");
}

/* O-33 */
TEST(visit_can_end_the_walk)
{
    struct timed *t = *state;

    make_all_kinds(t);
    for (size_t n = 1; n <= 6; n++) {
        struct walk walk = {.q = t->q, .end_after = n};
        assert_err(wq_each(t->q, 0, note, &walk), WQ_OK);
        assert_int_equal(walk.len, n);
    }
}

static bool
count_down(void *ctx, wq_key key, const wq_key_info *info)
{
    size_t *left = ctx;

    (void)key;
    (void)info;
    assert_true(*left > 0);
    return --*left > 0;
}

/* O-33: more keys than are copied at a time. */
TEST(visit_can_end_a_long_walk)
{
    const struct timed *t = *state;

    for (uint64_t i = 0; i < 1000; i++)
        assert_err(wq_add(t->q, wq_u64(&i)), WQ_OK);
    for (size_t n = 1; n <= 1000; n += 37) {
        size_t left = n;
        assert_err(wq_each(t->q, 0, count_down, &left), WQ_OK);
        assert_int_equal(left, 0);
    }
}

/* O-33 */
TEST(visit_can_remove_keys)
{
    struct timed *t = *state;
    struct walk   walk = {.q = t->q, .removes = true};

    make_all_kinds(t);
    assert_err(wq_each(t->q, 0, note, &walk), WQ_OK);
    assert_string_equal(walk.seen, "bdhrwx");
    assert_walk(t->q, 0, "dh"); /* what is held stays so */
    assert_walk(t->q, WQ_STATE_DIRTY, "");
}

static bool
work_on_it(void *ctx, wq_key key, const wq_key_info *info)
{
    wq_queue *q = ctx;
    wq_item  *item = take(q);

    (void)info;
    assert_err(wq_add(q, key), WQ_OK);
    finish(q, item);
    assert_err(wq_each(q, WQ_STATE_HELD, never, NULL), WQ_OK);
    return true;
}

/* O-33: gets, adds and dones, and a walk within. */
TEST(visit_can_use_the_queue)
{
    const struct timed *t = *state;

    for (uint64_t i = 0; i < 300; i++)
        assert_err(wq_add(t->q, wq_u64(&i)), WQ_OK);
    assert_err(wq_each(t->q, 0, work_on_it, t->q), WQ_OK);
}

/* ---- large walks -------------------------------------------------------- */

enum { MANY = 100000 };

struct census {
    unsigned char times[MANY]; /* how often each number was visited */
    size_t        visits;
};

static bool
count(void *ctx, wq_key key, const wq_key_info *info)
{
    struct census *census = ctx;
    uint64_t       number;

    (void)info;
    assert_int_equal(key.len, sizeof number);
    memcpy(&number, key.data, sizeof number);
    assert_true(number < MANY);
    census->times[number]++;
    census->visits++;
    return true;
}

/* O-33 */
TEST(walk_visits_each_of_many_keys_once)
{
    static struct census census;
    struct timed        *t = *state;

    for (uint64_t i = 0; i < MANY; i++)
        assert_err(i % 3 ? wq_add(t->q, wq_u64(&i))
                         : wq_add_after(t->q, wq_u64(&i), 1 * S),
                   WQ_OK);
    assert_err(wq_each(t->q, 0, count, &census), WQ_OK);
    assert_int_equal(census.visits, MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(census.times[i], 1);

    memset(&census, 0, sizeof census);
    assert_err(wq_each(t->q, WQ_STATE_WAITING, count, &census), WQ_OK);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(census.times[i], i % 3 == 0);
}

enum { LONG = 20 }; /* keys as long as can be */

struct long_walk {
    unsigned char times[LONG];
};

static bool
check_long(void *ctx, wq_key key, const wq_key_info *info)
{
    struct long_walk    *walk = ctx;
    const unsigned char *bytes = key.data;
    const unsigned       which = bytes[0];

    (void)info;
    assert_true(which < LONG);
    assert_int_equal(key.len, WQ_KEY_MAX - which);
    for (size_t i = 1; i < key.len; i++)
        if (bytes[i] != (unsigned char)(which + i))
            fail_msg("byte %zu of key %u", i, which);
    walk->times[which]++;
    return true;
}

/* O-33 */
TEST(walk_shows_long_keys_whole)
{
    static unsigned char bytes[WQ_KEY_MAX];
    struct long_walk     walk = {{0}};
    const struct timed  *t = *state;

    for (unsigned which = 0; which < LONG; which++) {
        bytes[0] = (unsigned char)which;
        for (size_t i = 1; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)(which + i);
        assert_err(wq_add(t->q, (wq_key){bytes, WQ_KEY_MAX - which}), WQ_OK);
    }
    assert_err(wq_each(t->q, 0, check_long, &walk), WQ_OK);
    for (unsigned which = 0; which < LONG; which++)
        assert_int_equal(walk.times[which], 1);
}

/* O-33: a walk gives back what it takes, however it ends. */
TEST(walk_leaves_no_memory_behind)
{
    struct counting mem;
    wq_queue       *q = NULL;

    counting_init(&mem);
    assert_err(wq_create(WQ_CONFIG(.allocator = &mem.allocator), &q), WQ_OK);
    add(q, "a");
    add(q, "b");
    const size_t before = mem.bytes;
    for (size_t n = 0; n < 3; n++) {
        struct walk walk = {.q = q, .end_after = n};
        assert_err(wq_each(q, 0, note, &walk), WQ_OK);
        assert_int_equal(mem.bytes, before);
    }
    wq_destroy(q);
    assert_int_equal(mem.bytes, 0);
}

WQ_TESTS(with_ages(new_queue_has_nothing_to_count),
         with_ages(every_step_is_counted),
         with_ages(deadline_that_has_passed_counts_as_ready),
         with_ages(throttled_key_is_not_mistaken_for_a_deadline),
         test(backoff_that_puts_a_key_off_is_counted),
         with_ages(sleeping_gets_are_counted),
         with_ages(struct_of_an_older_program_is_filled_as_far_as_it_goes),
         with_ages(struct_of_a_newer_program_is_filled_as_far_as_we_know),
         with_ages(wrong_size_is_refused_and_nothing_is_written),
         with_ages(bad_arguments_are_refused),
         test(backend_that_cannot_tell_says_so),
         with_ages(depth_is_told_by_priority),
         with_ages(depths_fill_in_no_more_than_there_is_room_for),
         with_ages(state_of_a_key_is_told_in_all_its_states),
         with_time(state_of_a_key_is_told_without_ages_where_they_are_not_kept),
         with_ages(backoff_is_a_state_of_a_deadline),
         with_ages(absent_key_may_have_failures),
         with_ages(priority_is_that_of_the_next_hand_out),
         with_ages(fence_is_that_of_the_loan),
         with_ages(deadline_that_has_passed_shows_as_ready),
         with_ages(walk_visits_the_keys_with_the_states_asked_for),
         with_ages(walk_sees_deadlines_that_have_passed_as_ready),
         with_ages(visit_can_end_the_walk),
         with_ages(visit_can_end_a_long_walk), with_ages(visit_can_remove_keys),
         with_ages(visit_can_use_the_queue),
         with_ages(walk_visits_each_of_many_keys_once),
         with_ages(walk_shows_long_keys_whole),
         test(walk_leaves_no_memory_behind));
