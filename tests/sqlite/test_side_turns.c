/* SPDX-License-Identifier: MIT */
/* test_side_turns.c: does a handle that has had the writer lock for long let the
 * others have it?
 *
 * The tests end a turn by moving its beginning into the past. A handle "wants"
 * the lock without trying to take it if the test says so in its slot: that is
 * what a process looks like that was stopped while it waited.
 */
#include "sqlite/fixture.h"

#include <pthread.h>

static bool
wants(struct wq__side *s)
{
    return atomic_load(&wq__side_slot(s, s->slot)->wants);
}

static void
set_wants(struct wq__side *s, bool yes)
{
    atomic_store(&wq__side_slot(s, s->slot)->wants, yes);
}

static void
end_turn(struct wq__side *s)
{
    s->turn_began_ns = wq__time_now() - s->turn_ns;
}

static void
use(struct wq__side *s)
{
    lock(s);
    unlock(s);
}

static int
open_sessions(void **state)
{
    (void)open_handles(state);
    (void)begin(f.b);
    (void)begin(f.a);
    use(f.a); /* its turn begins */
    return 0;
}

#define with_sessions(name) test_with(name, open_sessions, remove_database)

/* ---- whose turn it is ---------------------------------------------------- */

TEST(turn_begins_when_another_one_had_the_lock)
{
    f.a->turn_began_ns = f.b->turn_began_ns = 7;
    use(f.a);
    assert_int_equal(f.a->turn_began_ns, 7);
    use(f.b);
    assert_true(f.b->turn_began_ns > 7);
    use(f.a);
    assert_true(f.a->turn_began_ns > 7);
}

TEST(handle_that_nobody_waits_for_goes_on)
{
    end_turn(f.a);
    use(f.a);
    assert_false(f.a->yields);
}

TEST(handle_goes_on_until_its_turn_is_over)
{
    set_wants(f.b, true);
    f.a->turn_began_ns = wq__time_now();
    f.a->turn_ns = 3600 * INT64_C(1000000000);
    use(f.a);
    assert_false(f.a->yields);
    end_turn(f.a);
    use(f.a);
    assert_true(f.a->yields);
}

/* ---- handing over -------------------------------------------------------- */

struct other {
    pthread_t   thread;
    atomic_bool had_it;
};

static void *
use_once(void *arg)
{
    struct other *o = arg;

    lock(f.b);
    atomic_store(&o->had_it, true);
    unlock(f.b);
    return NULL;
}

TEST(handle_whose_turn_is_over_lets_one_that_waits_go_first)
{
    f.a->naps = 1 << 20; /* whatever the machine does meanwhile */
    for (int i = 0; i < 20; i++) {
        struct other o = {.had_it = false};

        lock(f.a);
        assert_int_equal(pthread_create(&o.thread, NULL, use_once, &o), 0);
        while (!wants(f.b))
            (void)sched_yield();
        end_turn(f.a);
        unlock(f.a);
        lock(f.a);
        assert_true(atomic_load(&o.had_it));
        unlock(f.a);
        assert_int_equal(pthread_join(o.thread, NULL), 0);
        assert_false(wants(f.b));
    }
}

TEST(handle_without_a_session_ends_a_turn)
{
    lock(f.b);
    wq__side_end(f.b);
    unlock(f.b);
    use(f.a);
    f.a->turn_began_ns = 7;
    use(f.b);
    use(f.a);
    assert_true(f.a->turn_began_ns > 7);
}

/* ---- those that do not take it ------------------------------------------- */

TEST(stopped_process_that_waits_keeps_nobody_from_the_lock)
{
    set_wants(f.b, true);
    for (int64_t times = 1; times <= 64; times *= 2) {
        assert_int_equal(f.a->turn_ns, times * WQ__SIDE_TURN_NS);
        end_turn(f.a);
        use(f.a);
        use(f.a);            /* sleeps in vain */
        f.a->yields = false; /* if the machine was slow */
    }
    assert_int_equal(f.a->turn_ns, INT64_C(64) * WQ__SIDE_TURN_NS);
}

TEST(turns_are_short_again_after_another_one_had_the_lock)
{
    set_wants(f.b, true);
    f.a->turn_ns = INT64_C(64) * WQ__SIDE_TURN_NS;
    end_turn(f.a);
    use(f.a);
    use(f.b);
    use(f.a);
    assert_int_equal(f.a->turn_ns, WQ__SIDE_TURN_NS);
}

/* ---- those that are dead ------------------------------------------------- */

/* Waits for the lock, in a session of a queue that nobody else uses. */
static void
wait_for_lock(struct child *self, void *arg)
{
    struct wq__side *s = open_side();

    (void)arg;
    (void)begin_of(s, OTHER_QUEUE, WQ_FOREVER);
    say_byte(self->to);
    hear_byte(self->from);
    lock(s);
}

static bool
is_wanted_by_any(void)
{
    for (int i = 0; i < WQ__SIDE_SESSIONS; i++)
        if (atomic_load(&wq__side_slot(f.a, i)->wants))
            return true;
    return false;
}

/* How often a handle that is alone sleeps before it takes the lock. */
static int
count_yields(void)
{
    int n = 0;

    f.a->yields = false;
    for (int i = 0; i < 5; i++) {
        end_turn(f.a);
        use(f.a);
        n += f.a->yields;
    }
    return n;
}

TEST(killed_process_that_waited_is_asked_for_once)
{
    struct child c = start(wait_for_lock, NULL);

    hear_byte(c.from);
    lock(f.a);
    say_byte(c.to);
    while (!is_wanted_by_any())
        (void)sched_yield();
    kill_child(&c);
    unlock(f.a);
    assert_true(is_wanted_by_any());
    assert_int_equal(count_yields(), 1);
    assert_false(is_wanted_by_any());
}

TEST(session_that_has_ended_wants_nothing)
{
    const int slot = f.b->slot;

    set_wants(f.b, true);
    lock(f.b);
    wq__side_end(f.b);
    unlock(f.b);
    assert_false(atomic_load(&wq__side_slot(f.a, slot)->wants));
}

/* Its owner was killed after others had ended its session, by time. */
TEST(session_does_not_want_what_the_one_before_wanted)
{
    const int slot = f.b->slot;

    lock(f.b);
    wq__side_end(f.b);
    unlock(f.b);
    atomic_store(&wq__side_slot(f.a, slot)->wants, 1);
    (void)begin(f.b);
    assert_int_equal(f.b->slot, slot);
    assert_false(wants(f.b));
}

/* ---- a file that is cut -------------------------------------------------- */

static void
cut_state(void)
{
    assert_int_equal(truncate(f.state, 0), 0);
}

/* Else it is no memory that a handle can be closed with. */
static void
lengthen_state(void)
{
    assert_int_equal(truncate(f.state, sizeof *f.a->m), 0);
}

TEST(cut_file_is_noticed_by_one_whose_turn_is_over)
{
    set_wants(f.b, true);
    end_turn(f.a);
    use(f.a);
    assert_true(f.a->yields);
    cut_state();
    assert_err(wq__side_lock(f.a), WQ_EAWAY);
    lengthen_state();
}

static void *
lock_b(void *arg)
{
    *(wq_err *)arg = wq__side_lock(f.b);
    return NULL;
}

TEST(cut_file_is_noticed_by_one_that_waits)
{
    pthread_t thread;
    wq_err    err = WQ_OK;

    lock(f.a);
    assert_int_equal(pthread_create(&thread, NULL, lock_b, &err), 0);
    while (!wants(f.b))
        (void)sched_yield();
    cut_state();
    wq__side_unlock_byte(f.a, WQ__SIDE_WRITER);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_err(err, WQ_EAWAY);
    lengthen_state();
}

WQ_TESTS(with_sessions(turn_begins_when_another_one_had_the_lock),
         with_sessions(handle_that_nobody_waits_for_goes_on),
         with_sessions(handle_goes_on_until_its_turn_is_over),
         with_sessions(handle_whose_turn_is_over_lets_one_that_waits_go_first),
         with_sessions(handle_without_a_session_ends_a_turn),
         with_sessions(stopped_process_that_waits_keeps_nobody_from_the_lock),
         with_sessions(turns_are_short_again_after_another_one_had_the_lock),
         with_sessions(session_that_has_ended_wants_nothing),
         with_sessions(session_does_not_want_what_the_one_before_wanted),
         with_sessions(killed_process_that_waited_is_asked_for_once),
         with_sessions(cut_file_is_noticed_by_one_whose_turn_is_over),
         with_sessions(cut_file_is_noticed_by_one_that_waits));
