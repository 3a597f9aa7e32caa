/* SPDX-License-Identifier: MIT */
/* test_gather.c: what does it cost that a leader waits for posts of others?
 *
 * The rule of gather.h by itself; then a leader whose sched_yield() takes as long
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
    struct dice       dice = dice_seeded("gather");
    struct wq__gather g = {.resume_ns = 0};
    const int64_t     begin = 1000000;
    int64_t           now = begin, lost = 0, last = 0;

    for (int i = 0; i < 1000000; i++) {
        now += (int64_t)dice_roll(&dice, 200000); /* a batch */
        if (!wq__gather_may(&g, now))
            continue;
        const size_t  posts = dice_roll(&dice, 8);
        const int64_t free = (int64_t)(posts + 1) * WQ__GATHER_NS;
        const int64_t took = (int64_t)dice_roll(&dice, 10000000);

        wq__gather_note(&g, now, now + took, posts);
        now += took;
        last = took > free ? took - free : 0;
        lost += last;
        assert_true((lost - last) * WQ__GATHER_REST <= now - begin);
        assert_int_equal(wq__gather_may(&g, now), !last);
    }
    assert_true(lost > WQ_SECONDS(1));
}

/* ---- a leader ------------------------------------------------------------ */

static _Thread_local bool is_slow; /* this thread's calls are the test's */
static int64_t            clock_ns, yield_ns;
static char              *posted; /* what another thread adds meanwhile */
static struct worker     *poster;

int
clock_gettime(clockid_t clock, struct timespec *t)
{
    static _Thread_local int (*next)(clockid_t, struct timespec *);

    if (is_slow) {
        *t = wq__time_spec(clock_ns);
        return 0;
    }
    if (!next)
        next_function("clock_gettime", &next);
    return next(clock, t);
}

static int
add_one(struct worker *self)
{
    return (int)wq_add_str(f.a, self->arg);
}

int
sched_yield(void)
{
    static _Thread_local int (*next)(void);

    if (!next)
        next_function("sched_yield", &next);
    if (!is_slow)
        return next();
    clock_ns += yield_ns;
    yield_ns = 0;
    if (posted) {
        is_slow = false;
        poster = worker_start(add_one, posted);
        worker_await_blocked(poster); /* it waits for this thread's batch */
        posted = NULL;
        is_slow = true;
    }
    return 0;
}

/* Add a key; there were two posts in the last batch. Returns until when leaders do
 * without. */
static int64_t
lead_with_yield_of(int64_t ns)
{
    struct wq__shared *s = wq__shared_of(f.a);

    clock_ns = WQ_SECONDS(1000);
    yield_ns = ns;
    s->last_posts = 2;
    is_slow = true;
    const wq_err err = wq_add_str(f.a, "k");
    is_slow = false;
    assert_err(err, WQ_OK);
    return s->gather.resume_ns;
}

TEST(short_yield_costs_nothing)
{
    assert_int_equal(lead_with_yield_of(WQ__GATHER_NS), 0);
    assert_int_equal(yield_ns, 0); /* there was one */
}

TEST(leader_that_lost_its_processor_does_without)
{
    assert_int_equal(lead_with_yield_of(WQ_MS(3)),
                     WQ_SECONDS(1000) + WQ_MS(3) +
                         WQ__GATHER_REST * (WQ_MS(3) - WQ__GATHER_NS));
}

TEST(leader_that_does_without_does_not_yield)
{
    wq__shared_of(f.a)->gather.resume_ns = INT64_MAX;
    assert_int_equal(lead_with_yield_of(WQ_MS(3)), INT64_MAX);
    assert_int_equal(yield_ns, WQ_MS(3)); /* there was none */
}

TEST(process_that_was_stopped_does_without_for_two_seconds)
{
    const int64_t hour = 3600 * WQ_SECONDS(1);

    assert_int_equal(lead_with_yield_of(hour),
                     WQ_SECONDS(1000) + hour + WQ_SECONDS(2));
}

TEST(posts_that_came_meanwhile_make_up_for_a_long_yield)
{
    static char other[] = "other";

    posted = other;
    assert_int_equal(lead_with_yield_of(2 * WQ__GATHER_NS), 0);
    assert_err(worker_join(poster), WQ_OK);
    assert_int_equal(wq_len(f.a), 2);
}

WQ_TESTS(test(losses_are_a_twentieth_of_the_time),
         with_handles(short_yield_costs_nothing),
         with_handles(leader_that_lost_its_processor_does_without),
         with_handles(leader_that_does_without_does_not_yield),
         with_handles(process_that_was_stopped_does_without_for_two_seconds),
         with_handles(posts_that_came_meanwhile_make_up_for_a_long_yield));
