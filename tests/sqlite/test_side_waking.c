/* SPDX-License-Identifier: MIT */
/* test_side_waking.c: who wakes up when something happens in another session?
 *
 * Children wait by themselves. The test sees in the mapped file that a session
 * sleeps, so it does not sleep itself.
 */
#include "sqlite/fixture.h"

#include <poll.h>
#include <pthread.h>

#define MS INT64_C(1000000)

/* What takes so long was not woken. */
#define STALL_NS (LOOK_NS - WQ__SIDE_LOOK_NS)

static int64_t
wait_until(struct wq__side *s, wq_clock *clock, int64_t until_ns)
{
    const int64_t from = wq__time_now();

    wq__side_wait(s, QUEUE, clock, until_ns);
    return wq__time_now() - from;
}

/* How long it took. */
static int64_t
wait_once(struct wq__side *s)
{
    s->look_ns = LOOK_NS;
    return wait_until(s, wq_clock_monotonic(), WQ_FOREVER);
}

/* Does nothing wake it but a look, which is soon? */
static bool
sleeps_on(struct wq__side *s)
{
    s->look_ns = 100 * MS;
    return wait_until(s, wq_clock_monotonic(), WQ_FOREVER) >= s->look_ns;
}

static unsigned
sleep_of(int slot)
{
    return atomic_load(&f.a->m->slots[slot].sleeping);
}

static void
await_sleeping(int slot)
{
    const int64_t from = wq__time_now();

    while (sleep_of(slot) != WQ__SLEEPING) {
        if (wq__time_now() - from > STALL_NS)
            fail_msg("slot %d does not sleep", slot);
        (void)usleep(100);
    }
}

static bool
is_readable(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};

    return poll(&one, 1, 0) == 1;
}

/* ---- children that wait -------------------------------------------------- */

/* Waits, and reports how long it took, until it hears no more. */
static void
wait_and_report(struct child *self, void *arg)
{
    struct wq__side *s = open_side();

    (void)begin_of(s, arg ? OTHER_QUEUE : QUEUE, WQ_FOREVER);
    say_byte(self->to);
    for (;;) {
        s->look_ns = arg ? 100 * MS : LOOK_NS;
        const int64_t from = wq__time_now();
        wq__side_wait(s, s->queue, wq_clock_monotonic(), WQ_FOREVER);
        const int64_t took = wq__time_now() - from;
        lock(s);
        wq__side_catch_up(s, s->queue);
        unlock(s);
        say(self->to, &took, sizeof took);
        hear_byte(self->from);
    }
}

static struct child
start_waiter(void *other_queue)
{
    struct child c = start(wait_and_report, other_queue);

    hear_byte(c.from);
    return c;
}

static int64_t
report_of(const struct child *c)
{
    int64_t took;

    hear(c->from, &took, sizeof took);
    return took;
}

TEST(news_wakes_a_sleeper_in_another_process)
{
    struct child c = start_waiter(NULL);

    await_sleeping(0);
    publish_of(f.a, QUEUE, WQ__NEWS_OTHER, 0);
    assert_in_range(report_of(&c), 0, STALL_NS);
    kill_child(&c);
}

TEST(news_of_another_queue_wakes_nobody)
{
    struct child c = start_waiter(&f);

    await_sleeping(0);
    publish_of(f.a, QUEUE, WQ__NEWS_OTHER, 0);
    assert_int_equal(sleep_of(0), WQ__SLEEPING);
    assert_true(report_of(&c) >= 100 * MS);
    kill_child(&c);
}

/* ---- whom it wakes ------------------------------------------------------- */

enum { SLEEPERS = 3 };

static int
count_rung(void)
{
    int n = 0;

    for (int i = 0; i < SLEEPERS; i++)
        n += sleep_of(i) == WQ__RUNG;
    return n;
}

static void
sleep_for_ever(struct child *self, void *arg)
{
    struct wq__side *s = open_side();

    (void)arg;
    (void)begin(s);
    say_byte(self->to);
    for (;;) {
        (void)wait_once(s);
        lock(s);
        wq__side_catch_up(s, QUEUE);
        unlock(s);
    }
}

/* Sleepers that are stopped: those that are rung stay so. */
static void
start_stopped_sleepers(struct child c[])
{
    for (int i = 0; i < SLEEPERS; i++) {
        c[i] = start(sleep_for_ever, NULL);
        hear_byte(c[i].from);
    }
    for (int i = 0; i < SLEEPERS; i++)
        do { /* not between two sleeps */
            assert_int_equal(kill(c[i].pid, SIGCONT), 0);
            await_sleeping(i);
            stop_child(&c[i]);
        } while (sleep_of(i) != WQ__SLEEPING || wq__side_is_locked(f.a, 0, 1));
}

static void
kill_all(struct child c[])
{
    for (int i = 0; i < SLEEPERS; i++)
        kill_child(&c[i]);
}

/* Also, one that does not answer is not rung again. */
TEST(ready_keys_wake_as_many_sleepers)
{
    struct child c[SLEEPERS];

    start_stopped_sleepers(c);
    publish_of(f.a, QUEUE, WQ__NEWS_READY, 0);
    assert_int_equal(count_rung(), 0);
    publish_of(f.a, QUEUE, WQ__NEWS_READY, 1);
    assert_int_equal(count_rung(), 1);
    publish_of(f.a, QUEUE, WQ__NEWS_READY, 1);
    assert_int_equal(count_rung(), 2);
    publish_of(f.b, QUEUE, WQ__NEWS_READY, 9);
    assert_int_equal(count_rung(), 3);
    kill_all(c);
}

TEST(other_news_wake_all_sleepers)
{
    struct child c[SLEEPERS];

    start_stopped_sleepers(c);
    publish_of(f.a, QUEUE, WQ__NEWS_READY | WQ__NEWS_OTHER, 1);
    assert_int_equal(count_rung(), 3);
    kill_all(c);
}

/* As if the one that was rung had looked, and slept again. */
TEST(sleepers_are_woken_in_turn)
{
    struct child c[SLEEPERS];

    start_stopped_sleepers(c);
    f.a->m->queues[QUEUE - 1].turn = 0;
    for (int k = 0; k < 3 * SLEEPERS; k++) {
        publish_of(k % 2 ? f.a : f.b, QUEUE, WQ__NEWS_READY, 1);
        assert_int_equal(count_rung(), 1);
        assert_int_equal(sleep_of(k % SLEEPERS), WQ__RUNG);
        atomic_store(&f.a->m->slots[k % SLEEPERS].sleeping, WQ__SLEEPING);
    }
    kill_all(c);
}

/* ---- no news is missed --------------------------------------------------- */

TEST(news_before_the_wait_is_not_missed)
{
    (void)begin(f.a);
    (void)begin(f.b);
    catch_up(f.a);
    publish_of(f.b, QUEUE, WQ__NEWS_READY, 1); /* rings nobody */
    assert_in_range(wait_once(f.a), 0, STALL_NS);
    assert_in_range(wait_once(f.a), 0, STALL_NS); /* until it is known */
    catch_up(f.a);
    assert_true(sleeps_on(f.a));
}

TEST(own_news_is_known)
{
    (void)begin(f.a);
    catch_up(f.a);
    publish_of(f.a, QUEUE, WQ__NEWS_OTHER, 0);
    assert_true(sleeps_on(f.a));
}

/* A turn is an even or an odd number. Returns how many waits were stalls. */
static int
play(struct wq__side *s, int64_t me, int64_t turns)
{
    int stalls = 0;

    for (;;) {
        if (wq__side_lock(s))
            return 1000;
        int64_t *ball = wq__side_last_number(s);
        if (*ball < turns && *ball % 2 == me) {
            ++*ball;
            wq__side_publish(s, QUEUE, WQ__NEWS_READY, 1);
        }
        const bool over = *ball >= turns;
        wq__side_catch_up(s, QUEUE);
        wq__side_unlock(s);
        if (over)
            return stalls;
        stalls += wait_once(s) > STALL_NS;
    }
}

enum { TURNS = 20000 };

static void
play_odd(struct child *self, void *arg)
{
    struct wq__side *s = open_side();

    (void)self, (void)arg;
    (void)begin(s);
    const int stalls = play(s, 1, TURNS);
    _exit(stalls < 100 ? stalls : 100);
}

static void
report_speed(int64_t from_ns)
{
    print_message("%.1f us a turn\n",
                  (double)(wq__time_now() - from_ns) / 1e3 / TURNS);
}

TEST(ball_between_processes_never_rests)
{
    const int64_t from = wq__time_now();

    (void)begin(f.a);
    struct child c = start(play_odd, NULL);
    assert_int_equal(play(f.a, 0, TURNS), 0);
    assert_int_equal(end_of(&c), 0);
    report_speed(from);
}

static pthread_t
start_thread(void *(*run)(void *arg), void *arg)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, run, arg), 0);
    return thread;
}

static void
begin_both(void)
{
    (void)begin(f.a);
    (void)begin(f.b);
}

static void *
play_odd_in_thread(void *arg)
{
    *(int *)arg = play(f.b, 1, TURNS);
    return NULL;
}

TEST(ball_between_threads_never_rests)
{
    const int64_t from = wq__time_now();
    int           stalls = -1;

    begin_both();
    const pthread_t thread = start_thread(play_odd_in_thread, &stalls);
    assert_int_equal(play(f.a, 0, TURNS), 0);
    (void)pthread_join(thread, NULL);
    assert_int_equal(stalls, 0);
    report_speed(from);
}

enum { ROUNDS = 50000, SPREAD = 500 };

static struct {
    struct meeting meeting;
    int            stalls;
} race;

static void *
fall_asleep_in_each_round(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        catch_up(f.a);
        meet(&race.meeting);
        meet(&race.meeting);
        race.stalls += wait_once(f.a) > STALL_NS;
    }
    return NULL;
}

/* The one publishes in all moments in which the other one may fall asleep. */
TEST(news_in_the_moment_of_falling_asleep_is_not_missed)
{
    memset(&race, 0, sizeof race);
    begin_both();
    const pthread_t thread = start_thread(fall_asleep_in_each_round, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        meet(&race.meeting);
        lock(f.b);
        meet(&race.meeting);
        spin(i % SPREAD);
        wq__side_publish(f.b, QUEUE, WQ__NEWS_READY, 1);
        unlock(f.b);
    }
    (void)pthread_join(thread, NULL);
    assert_int_equal(race.stalls, 0);
}

/* ---- beside other threads ------------------------------------------------ */

static void *
wait_in_thread(void *arg)
{
    *(int64_t *)arg = wait_once(f.a);
    return NULL;
}

static pthread_t
start_wait(int64_t *took)
{
    const pthread_t thread = start_thread(wait_in_thread, took);

    await_sleeping(f.a->slot);
    return thread;
}

static struct {
    _Atomic bool     stop;
    _Atomic unsigned returns;
} listener;

static void *
listen_on(void *arg)
{
    while (!atomic_load(&listener.stop)) {
        wq__side_wait(f.a, QUEUE, wq_clock_monotonic(), WQ_FOREVER);
        atomic_fetch_add(&listener.returns, 1);
    }
    return arg;
}

/* A thread that catches up may take the byte that was for the listener. The
 * handle knows the news then; but the listener must be woken by the next. */
TEST(listener_is_woken_after_another_thread_caught_up)
{
    memset(&listener, 0, sizeof listener);
    begin_both();
    const pthread_t thread = start_thread(listen_on, NULL);
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 20; i++) {
            publish_of(f.b, QUEUE, WQ__NEWS_READY, 1);
            spin(round);
            catch_up(f.a);
        }
        const unsigned before = atomic_load(&listener.returns);
        const int64_t  from = wq__time_now();
        publish_of(f.b, QUEUE, WQ__NEWS_READY, 1);
        while (atomic_load(&listener.returns) == before)
            (void)usleep(10);
        assert_in_range(wq__time_now() - from, 0, STALL_NS);
        catch_up(f.a);
    }
    atomic_store(&listener.stop, true);
    wq__side_kick(f.a);
    (void)pthread_join(thread, NULL);
}

TEST(thread_sleeps_on_with_the_next_session)
{
    int64_t took;

    begin_both();
    pthread_t thread = start_wait(&took);
    (void)begin(f.a);
    assert_int_equal(f.a->slot, 2);
    assert_int_equal(sleep_of(2), WQ__SLEEPING);
    publish_of(f.b, QUEUE, WQ__NEWS_READY, 1);
    (void)pthread_join(thread, NULL);
    assert_in_range(took, 0, STALL_NS);
}

TEST(session_that_was_found_ended_does_not_sleep)
{
    const int64_t id = begin_of(f.a, QUEUE, 10);

    assert_int_equal(find_ended(f.b, 10, false), id);
    assert_in_range(wait_once(f.a), 0, STALL_NS);
    bury(f.b, id);
    assert_in_range(wait_once(f.a), 0, STALL_NS);
}

/* ---- kicks and clocks ---------------------------------------------------- */

TEST(kick_before_the_wait_ends_it)
{
    (void)begin(f.a);
    wq__side_kick(f.a);
    wq__side_kick(f.a);
    assert_in_range(wait_once(f.a), 0, STALL_NS);
    assert_true(sleeps_on(f.a));
}

TEST(kick_ends_the_wait_of_another_thread)
{
    int64_t took;

    (void)begin(f.a);
    pthread_t thread = start_wait(&took);
    wq__side_kick(f.a);
    (void)pthread_join(thread, NULL);
    assert_in_range(took, 0, STALL_NS);
}

TEST(wait_without_a_session_is_kicked)
{
    wq__side_kick(f.a);
    assert_in_range(wait_once(f.a), 0, STALL_NS);
}

TEST(wait_ends_in_time)
{
    wq_clock *clock = wq_clock_monotonic();

    (void)begin(f.a);
    for (int i = 0; i < 3; i++) {
        const int64_t until = wq_clock_now(clock) + 20 * MS;
        assert_in_range(wait_until(f.a, clock, until), 0, STALL_NS);
        assert_true(wq_clock_now(clock) >= until);
    }
    assert_in_range(wait_until(f.a, clock, 0), 0, STALL_NS);
}

struct fake_wait {
    wq_clock *clock;
    int64_t   took;
};

static void *
wait_for_fake_clock(void *arg)
{
    struct fake_wait *w = arg;

    w->took = wait_until(f.a, w->clock, 100);
    return NULL;
}

TEST(fake_clock_ends_the_wait)
{
    struct fake_wait w = {.clock = wq_clock_fake_create(0)};
    pthread_t        thread;

    (void)begin(f.a);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_fake_clock, &w), 0);
    await_sleeping(0);
    wq_clock_fake_set(w.clock, 99);
    wq_clock_fake_set(w.clock, 100);
    (void)pthread_join(thread, NULL);
    assert_in_range(w.took, 0, STALL_NS);
    wq__side_close(f.a, false);
    f.a = NULL;
    wq_clock_destroy(w.clock);
}

/* ---- death --------------------------------------------------------------- */

TEST(death_ends_the_wait)
{
    int64_t      id, took;
    struct child c = start_session(&id);

    (void)begin(f.a);
    assert_int_equal(f.a->slot, 1);
    pthread_t thread = start_wait(&took);
    assert_int_equal(find_ended(f.a, 0, true), 0);
    const int64_t from = wq__time_now();
    kill_child(&c);
    (void)pthread_join(thread, NULL);
    assert_in_range(wq__time_now() - from, 0, STALL_NS);
    /* Without probe: the wait has seen it. */
    assert_int_equal(find_ended(f.a, 0, false), id);
}

/* Has the thread that waits looked at all sessions that there are? */
static bool
knows_all_sessions(struct wq__side *s)
{
    wq__lock_take(&s->lock);
    const bool all =
        s->members == atomic_load(&s->m->queues[QUEUE - 1].members);
    wq__lock_release(&s->lock);
    return all;
}

/* The session begins while the other one sleeps. */
TEST(death_of_a_later_session_ends_the_wait)
{
    int64_t id, took;

    (void)begin(f.a);
    pthread_t     thread = start_wait(&took);
    struct child  c = start_session(&id);
    const int64_t from = wq__time_now();
    while (!knows_all_sessions(f.a) && wq__time_now() - from < STALL_NS)
        (void)usleep(100);
    const int64_t killed = wq__time_now();
    kill_child(&c);
    (void)pthread_join(thread, NULL);
    assert_in_range(wq__time_now() - killed, 0, STALL_NS - (killed - from));
    assert_int_equal(find_ended(f.a, 0, false), id);
}

/* Nobody buries it; the others sleep all the same. */
TEST(dead_session_does_not_keep_others_awake)
{
    int64_t      id;
    struct child c = start_session(&id);

    (void)begin(f.a);
    catch_up(f.a);
    kill_child(&c);
    assert_in_range(wait_once(f.a), 0, STALL_NS);
    assert_true(sleeps_on(f.a));
    (void)begin(f.b); /* the watched sessions are chosen anew */
    assert_true(sleeps_on(f.a));
    assert_int_equal(find_ended(f.a, 0, false), id);
}

TEST(stopped_process_does_not_end_the_wait)
{
    int64_t      id;
    struct child c = start_session(&id);

    (void)begin(f.a);
    stop_child(&c);
    assert_true(sleeps_on(f.a));
    assert_int_equal(find_ended(f.a, 0, true), 0);
    kill_child(&c);
}

/* ---- descriptors --------------------------------------------------------- */

TEST(descriptor_is_readable_while_news_is_unread)
{
    begin_both();
    catch_up(f.a);
    const int fd = wq__side_fd(f.a);
    assert_true(fd >= 0);
    assert_false(is_readable(fd));
    for (int i = 0; i < 3; i++) {
        publish_of(f.b, QUEUE, WQ__NEWS_READY, 1);
        assert_true(is_readable(fd));
        assert_in_range(wait_once(f.a), 0, STALL_NS); /* reads nothing */
        assert_true(is_readable(fd));
        catch_up(f.a);
        assert_false(is_readable(fd));
    }
    assert_int_equal(wq__side_fd(f.a), fd);
}

TEST(descriptor_is_readable_for_earlier_news)
{
    begin_both();
    catch_up(f.a);
    publish_of(f.b, QUEUE, WQ__NEWS_READY, 1);
    const int fd = wq__side_fd(f.a);
    assert_true(is_readable(fd));
    catch_up(f.a);
    assert_false(is_readable(fd));
}

TEST(descriptor_stays_the_same_in_the_next_session)
{
    const int fd = wq__side_fd(f.a); /* before the first one */

    assert_true(fd >= 0);
    (void)begin(f.b);
    for (int i = 0; i < 3; i++) {
        const int64_t id = begin(f.a);
        assert_int_equal(wq__side_fd(f.a), fd);
        assert_false(is_readable(fd));
        publish_of(f.b, QUEUE, WQ__NEWS_READY, 1);
        assert_true(is_readable(fd));
        lock(f.a);
        wq__side_bury(f.a, i % 2 ? id : 0);
        unlock(f.a);
    }
}

TEST(descriptor_is_readable_after_a_death)
{
    (void)begin(f.a);
    const int fd = wq__side_fd(f.a);
    for (int i = 0; i < 3; i++) {
        int64_t      id;
        struct child c = start_session(&id);

        assert_true(is_readable(fd)); /* a session has begun */
        catch_up(f.a);
        assert_false(is_readable(fd));
        kill_child(&c);
        assert_true(is_readable(fd));
        assert_int_equal(find_ended(f.a, 0, false), id);
        if (i % 2)
            bury(f.a, id);
        catch_up(f.a);
        assert_false(is_readable(fd));
        bury(f.a, id);
    }
}

WQ_TESTS(with_handles(news_wakes_a_sleeper_in_another_process),
         with_handles(news_of_another_queue_wakes_nobody),
         with_handles(ready_keys_wake_as_many_sleepers),
         with_handles(other_news_wake_all_sleepers),
         with_handles(sleepers_are_woken_in_turn),
         with_handles(news_before_the_wait_is_not_missed),
         with_handles(own_news_is_known),
         with_handles(ball_between_processes_never_rests),
         with_handles(ball_between_threads_never_rests),
         with_handles(news_in_the_moment_of_falling_asleep_is_not_missed),
         with_handles(listener_is_woken_after_another_thread_caught_up),
         with_handles(thread_sleeps_on_with_the_next_session),
         with_handles(session_that_was_found_ended_does_not_sleep),
         with_handles(kick_before_the_wait_ends_it),
         with_handles(kick_ends_the_wait_of_another_thread),
         with_handles(wait_without_a_session_is_kicked),
         with_handles(wait_ends_in_time),
         with_handles(fake_clock_ends_the_wait),
         with_handles(death_ends_the_wait),
         with_handles(death_of_a_later_session_ends_the_wait),
         with_handles(dead_session_does_not_keep_others_awake),
         with_handles(stopped_process_does_not_end_the_wait),
         with_handles(descriptor_is_readable_while_news_is_unread),
         with_handles(descriptor_is_readable_for_earlier_news),
         with_handles(descriptor_stays_the_same_in_the_next_session),
         with_handles(descriptor_is_readable_after_a_death));
