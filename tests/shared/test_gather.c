/* SPDX-License-Identifier: MIT */
/* test_gather.c: what does it cost that a leader waits for posts of others?
 *
 * The rule of yields.h by itself; then a leader whose sched_yield() takes as long
 * as the test says: the clock of its thread stands still otherwise.
 */
#define _GNU_SOURCE
#include "shared/fixture.h"

#include "port/time.h"
#include "shared/shared.h"
#include "unit/dice.h"
#include "unit/interpose.h"

/* ---- the rule ------------------------------------------------------------ */

/* S-26 */
TEST(losses_are_a_twentieth_of_the_time)
{
    struct dice       dice = dice_seeded("yields");
    struct wq__yields y = {.resume_ns = 0};
    const int64_t     begin = 1000000;
    int64_t           now = begin, lost = 0, last = 0;

    for (int i = 0; i < 1000000; i++) {
        now += (int64_t)dice_roll(&dice, 200000); /* a batch */
        if (!wq__yields_may(&y, now))
            continue;
        const int64_t free = (int64_t)dice_roll(&dice, 4000000);
        const int64_t took = (int64_t)dice_roll(&dice, 10000000);

        wq__yields_note(&y, now, now + took, free);
        now += took;
        last = took > free ? took - free : 0;
        lost += last;
        assert_true((lost - last) * WQ__YIELDS_REST <= now - begin);
        assert_int_equal(wq__yields_may(&y, now), !last);
    }
    assert_true(lost > WQ_SECONDS(1));
}

/* ---- a leader ------------------------------------------------------------ */

enum { POSTERS = 16 };

static _Thread_local bool is_slow; /* this thread's calls are the test's */

/* What happens while a thread leads. */
static struct {
    int64_t        now_ns;
    int64_t        first_ns, later_ns; /* how long a yield takes */
    unsigned       post_in; /* the first yield in which another thread posts */
    size_t         posters; /* so many do, each in a yield of its own */
    unsigned       yields;  /* so far */
    size_t         posts;
    struct worker *at[POSTERS];
} scene;

int
clock_gettime(clockid_t clock, struct timespec *t)
{
    static _Thread_local int (*next)(clockid_t, struct timespec *);

    if (is_slow) {
        *t = wq__time_spec(scene.now_ns);
        return 0;
    }
    if (!next)
        next_function("clock_gettime", &next);
    return next(clock, t);
}

static int
add_one(struct worker *self)
{
    (void)self;
    return (int)wq_add_str(f.a, "other");
}

int
sched_yield(void)
{
    static _Thread_local int (*next)(void);

    if (!next)
        next_function("sched_yield", &next);
    if (!is_slow)
        return next();
    scene.now_ns += scene.yields++ ? scene.later_ns : scene.first_ns;
    if (scene.yields > scene.post_in && scene.posts < scene.posters) {
        is_slow = false;
        scene.at[scene.posts] = worker_start(add_one, NULL);
        worker_await_blocked(scene.at[scene.posts++]); /* for our batch */
        is_slow = true;
    }
    return 0;
}

/* Add a key; so many threads were there lately, and shared the last batch. Returns
 * how many posts were in this one. */
static size_t
lead(size_t threads)
{
    struct wq__shared *s = wq__shared_of(f.a);

    scene.now_ns = WQ_SECONDS(1000);
    scene.yields = 0;
    scene.posts = 0;
    s->threads = s->last_posts = threads;
    const uint64_t batches = s->batches;
    is_slow = true;
    const wq_err err = wq_add_str(f.a, "k");
    is_slow = false;
    assert_err(err, WQ_OK);
    const size_t posts = s->batches == batches + 1 ? s->last_posts : 0;
    for (size_t i = 0; i < scene.posts; i++)
        assert_err(worker_join(scene.at[i]), WQ_OK);
    return posts;
}

/* The first yield of two threads takes so long. Returns until when leaders do
 * without. */
static int64_t
lead_with_yield_of(int64_t ns)
{
    scene.first_ns = ns;
    (void)lead(2);
    return wq__shared_of(f.a)->yields.resume_ns;
}

/* The same where a batch is a round trip; each yield takes a microsecond. */
static size_t
lead_afar(size_t threads)
{
    f.engines[0]->distant = true;
    scene.first_ns = scene.later_ns = 1000;
    return lead(threads);
}

static int
set_the_scene(void **state)
{
    memset(&scene, 0, sizeof scene);
    return open_handles(state);
}

TEST(short_yield_costs_nothing)
{
    assert_int_equal(lead_with_yield_of(WQ__YIELDS_FREE), 0);
    assert_int_equal(scene.yields, 1);
}

TEST(leader_that_lost_its_processor_does_without)
{
    assert_int_equal(lead_with_yield_of(WQ_MS(3)),
                     WQ_SECONDS(1000) + WQ_MS(3) +
                         WQ__YIELDS_REST * (WQ_MS(3) - WQ__YIELDS_FREE));
}

TEST(leader_that_does_without_does_not_yield)
{
    wq__shared_of(f.a)->yields.resume_ns = INT64_MAX;
    assert_int_equal(lead_with_yield_of(WQ_MS(3)), INT64_MAX);
    assert_int_equal(scene.yields, 0);
}

TEST(process_that_was_stopped_does_without_for_two_seconds)
{
    const int64_t hour = 3600 * WQ_SECONDS(1);

    assert_int_equal(lead_with_yield_of(hour),
                     WQ_SECONDS(1000) + hour + WQ_SECONDS(2));
}

TEST(posts_that_came_meanwhile_make_up_for_a_long_yield)
{
    scene.posters = 1;
    assert_int_equal(lead_with_yield_of(2 * WQ__YIELDS_FREE), 0);
    assert_int_equal(scene.posts, 1);
    assert_int_equal(wq_len(f.a), 2);
}

TEST(thread_that_is_alone_does_not_yield)
{
    assert_int_equal(lead_afar(1), 1);
    assert_int_equal(scene.yields, 0);
    f.engines[0]->distant = false;
    assert_int_equal(lead(1), 1);
    assert_int_equal(scene.yields, 0);
}

/* S-26 */
TEST(leader_waits_for_posts_where_a_batch_is_a_round_trip)
{
    scene.posters = 1;
    scene.post_in = 12;
    assert_int_equal(lead_afar(2), 2);
    assert_int_equal(scene.yields, 13);
    assert_int_equal(wq__shared_of(f.a)->in_vain, 0);
}

TEST(leader_of_a_store_of_this_process_yields_once)
{
    scene.posters = 1;
    scene.post_in = 12;
    assert_int_equal(lead(2), 1);
    assert_int_equal(scene.yields, 1);
}

/* S-26: the leader and 13 others are seven eighths of 16. */
TEST(leader_waits_until_most_threads_have_posted)
{
    scene.posters = POSTERS;
    assert_int_equal(lead_afar(16), 14);
    assert_int_equal(scene.yields, 13);
    assert_int_equal(wq__shared_of(f.a)->in_vain, 0);
}

/* S-26: and the next four leaders do not wait. */
TEST(leader_waits_in_vain_for_20_us)
{
    struct wq__shared *s = wq__shared_of(f.a);

    assert_int_equal(lead_afar(2), 1);
    assert_int_equal(scene.yields, 1 + 20);
    for (unsigned left = 4; left > 0; left--) {
        assert_int_equal(s->in_vain, left);
        assert_int_equal(lead_afar(2), 1);
        assert_int_equal(scene.yields, 1);
    }
    assert_int_equal(s->in_vain, 0);
    (void)lead_afar(2);
    assert_int_equal(scene.yields, 1 + 20);
}

TEST(wait_in_which_some_posted_was_not_in_vain)
{
    scene.posters = 1;
    scene.post_in = 5;
    assert_int_equal(lead_afar(3), 2);
    assert_int_equal(scene.yields, 1 + 20);
    assert_int_equal(wq__shared_of(f.a)->in_vain, 0);
}

/* S-26 */
TEST(leader_that_lost_its_processor_does_not_wait_for_posts)
{
    f.engines[0]->distant = true;
    scene.later_ns = WQ_MS(3);
    (void)lead_with_yield_of(WQ_MS(3));
    assert_int_equal(scene.yields, 1);
    assert_int_equal(wq__shared_of(f.a)->in_vain, 0);
}

#define LEADING(name) test_with(name, set_the_scene, close_all)

WQ_TESTS(test(losses_are_a_twentieth_of_the_time),
         LEADING(short_yield_costs_nothing),
         LEADING(leader_that_lost_its_processor_does_without),
         LEADING(leader_that_does_without_does_not_yield),
         LEADING(process_that_was_stopped_does_without_for_two_seconds),
         LEADING(posts_that_came_meanwhile_make_up_for_a_long_yield),
         LEADING(thread_that_is_alone_does_not_yield),
         LEADING(leader_waits_for_posts_where_a_batch_is_a_round_trip),
         LEADING(leader_of_a_store_of_this_process_yields_once),
         LEADING(leader_waits_until_most_threads_have_posted),
         LEADING(leader_waits_in_vain_for_20_us),
         LEADING(wait_in_which_some_posted_was_not_in_vain),
         LEADING(leader_that_lost_its_processor_does_not_wait_for_posts));
