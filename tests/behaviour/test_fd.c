/* SPDX-License-Identifier: MIT */
/* test_fd.c: is the descriptor of a queue readable exactly when a get would not
 * have to wait?
 *
 * poll() is asked, as an event loop would; time is a fake clock's, unless a
 * test is about the clocks of the system.
 */
#include "timed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "support/plain_queue.h"

/* ---- where there is none ------------------------------------------------- */

/* O-70 */
TEST(no_queue_has_no_descriptor)
{
    errno = 0;
    assert_int_equal(wq_fd(NULL), -1);
    assert_int_equal(errno, EINVAL);
}

/* O-70 */
TEST(backend_or_layer_without_one_says_so)
{
    wq_queue *plain = NULL, *q = NULL;

    assert_err(plain_create(PLAIN_BASE, &plain), WQ_OK);
    errno = 0;
    assert_int_equal(wq_fd(plain), -1);
    assert_int_equal(errno, ENOSYS);
    assert_err(wq_delaying_wrap(plain, NULL, &q), WQ_OK);
    errno = 0;
    assert_int_equal(wq_fd(q), -1);
    assert_int_equal(errno, ENOSYS);
    wq_destroy(q);
}

#if defined(__linux__) && !defined(WQ_PORT_POSIX)

#include <sys/resource.h>

static bool
readable_within(wq_queue *q, int timeout_ms)
{
    struct pollfd p = {.fd = wq_fd(q), .events = POLLIN};

    assert_true(p.fd >= 0);
    const int n = poll(&p, 1, timeout_ms);
    assert_true(n == 0 || (n == 1 && p.revents == POLLIN));
    return n == 1;
}

static bool
readable(wq_queue *q)
{
    return readable_within(q, 0);
}

/* A wait that should end by itself. */
static void
await_readable(wq_queue *q)
{
    assert_true(readable_within(q, (int)(LONG_NS / MS)));
}

/* ---- keys ---------------------------------------------------------------- */

/* O-70 */
TEST(empty_queue_is_not_readable)
{
    assert_false(readable(*state));
}

/* O-70: level-triggered; nothing is to be read. */
TEST(queue_is_readable_while_a_key_is_ready)
{
    wq_queue *q = *state;

    assert_false(readable(q));
    add(q, "a");
    assert_true(readable(q));
    assert_true(readable(q));
    add(q, "b");
    work_on(q, "a");
    assert_true(readable(q));
    wq_item *item = take_key(q, "b");
    assert_false(readable(q)); /* held is not ready */
    finish(q, item);
    assert_false(readable(q));
}

/* O-70 */
TEST(dirty_key_is_readable_only_after_done)
{
    wq_queue *q = *state;

    add(q, "a");
    wq_item *item = take(q);
    assert_false(readable(q));
    add(q, "a");
    assert_false(readable(q));
    finish(q, item);
    assert_true(readable(q));
    work_on(q, "a");
    assert_false(readable(q));
}

/* O-70 */
TEST(queue_that_is_asked_late_is_readable_at_once)
{
    wq_queue *q = *state;

    add(q, "a");
    assert_true(readable(q));
    work_on(q, "a");
    assert_false(readable(q));
}

/* O-70: whichever way keys come and go. */
TEST(every_verb_keeps_the_descriptor_right)
{
    wq_queue    *q = *state;
    wq_item     *items[3] = {NULL};
    size_t       n = 0;
    const wq_key keys[] = {wq_str("a"), wq_str("b"), wq_str("c")};

    assert_false(readable(q));
    assert_err(wq_add_with(q, WQ_ADD(.priority = 5), keys, 3), WQ_OK);
    assert_true(readable(q));
    assert_err(wq_get_many(q, items, 3, 0, &n), WQ_OK);
    assert_int_equal(n, 3);
    assert_false(readable(q));
    assert_err(wq_add(q, keys[0]), WQ_OK);
    assert_err(wq_done_many(q, items, 3), WQ_OK);
    assert_true(readable(q));
    assert_err(wq_next(q, 0, &items[0]), WQ_OK);
    assert_false(readable(q));
    assert_err(wq_next(q, 0, &items[0]), WQ_ETIMEDOUT);
    assert_false(readable(q));
    add(q, "a");
    assert_true(readable(q));
    assert_err(wq_remove(q, keys[0]), WQ_OK);
    assert_false(readable(q));
    add(q, "a");
    wq_item *item = take(q);
    add(q, "a");
    assert_err(wq_done_key(q, keys[0]), WQ_OK);
    assert_true(readable(q));
    (void)item;
}

/* O-70 */
TEST(interrupt_is_for_threads_and_does_not_show)
{
    wq_queue *q = *state;

    assert_false(readable(q));
    wq_interrupt(q);
    assert_false(readable(q));
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* ---- deadlines ----------------------------------------------------------- */

/* O-70 */
TEST(queue_is_readable_from_the_deadline_on)
{
    struct timed *t = *state;

    assert_false(readable(t->q));
    add_after(t, "a", 50 * MS);
    assert_false(readable(t->q));
    step(t, 50 * MS - 1);
    assert_false(readable(t->q));
    step(t, 1);
    assert_true(readable(t->q));
    work_on(t->q, "a");
    assert_false(readable(t->q));
    step(t, HOUR);
    assert_false(readable(t->q));
}

/* O-70 */
TEST(earlier_deadline_takes_the_place_of_a_later_one)
{
    struct timed *t = *state;

    assert_false(readable(t->q));
    add_after(t, "late", HOUR);
    add_after(t, "early", MS);
    step(t, MS);
    assert_true(readable(t->q));
    work_on(t->q, "early");
    assert_false(readable(t->q));
    step(t, HOUR - MS);
    assert_true(readable(t->q));
    work_on(t->q, "late");
}

/* O-70 */
TEST(later_deadline_leaves_the_earlier_one_alone)
{
    struct timed *t = *state;

    assert_false(readable(t->q));
    add_after(t, "a", MS);
    add_after(t, "a", HOUR);
    add_after(t, "b", HOUR);
    step(t, MS);
    assert_true(readable(t->q));
    work_on(t->q, "a");
    assert_false(readable(t->q));
}

/* O-70 */
TEST(deadline_that_is_taken_back_does_not_show)
{
    struct timed *t = *state;

    assert_false(readable(t->q));
    add_after(t, "a", MS);
    assert_err(wq_cancel_after(t->q, wq_str("a")), WQ_OK);
    add_after(t, "b", MS);
    assert_err(wq_remove(t->q, wq_str("b")), WQ_OK);
    step(t, HOUR);
    assert_false(readable(t->q));
}

/* O-70 */
TEST(queue_with_a_deadline_that_is_asked_late_is_readable_in_time)
{
    struct timed *t = *state;

    add_after(t, "a", MS);
    step(t, MS - 1);
    assert_false(readable(t->q));
    step(t, 1);
    assert_true(readable(t->q));
}

/* O-70 */
TEST(deadline_that_passed_before_the_first_question_shows)
{
    struct timed *t = *state;

    add_after(t, "a", MS);
    step(t, HOUR);
    assert_true(readable(t->q));
    work_on(t->q, "a");
    assert_false(readable(t->q));
}

/* O-70: its time comes while it is held: it is dirty then, and no more. */
TEST(deadline_of_a_held_key_shows_until_somebody_looks)
{
    struct timed *t = *state;

    assert_false(readable(t->q));
    add(t->q, "a");
    wq_item *item = take(t->q);
    add_after(t, "a", MS);
    step(t, MS);
    assert_true(readable(t->q));
    assert_none_due(t);
    assert_false(readable(t->q));
    finish(t->q, item);
    assert_true(readable(t->q));
    work_on(t->q, "a");
}

/* O-70, C-02 */
TEST(clock_that_goes_back_takes_the_deadline_away_again)
{
    struct timed *t = *state;

    assert_false(readable(t->q));
    add_after(t, "a", MS);
    step(t, MS);
    assert_true(readable(t->q));
    step(t, -1);
    assert_false(readable(t->q));
    assert_none_due(t);
}

static void
expect_in_time(wq_clock *clock)
{
    wq_queue *q = NULL;

    assert_err(wq_create(WQ_CONFIG(.clock = clock), &q), WQ_OK);
    assert_false(readable(q));
    assert_err(wq_add_after(q, wq_str("later"), HOUR), WQ_OK);
    assert_false(readable(q));
    const int64_t start = wq_clock_now(clock);
    assert_err(wq_add_after(q, wq_str("soon"), 3 * MS), WQ_OK);
    await_readable(q);
    assert_true(wq_clock_now(clock) - start >= 3 * MS);
    work_on(q, "soon");
    assert_false(readable(q));
    wq_destroy(q);
}

/* O-70 */
TEST(clocks_of_the_system_wake_a_loop_in_time)
{
    expect_in_time(wq_clock_monotonic());
    expect_in_time(wq_clock_boottime());
}

/* ---- shutdown ------------------------------------------------------------ */

/* O-70 */
TEST(queue_that_is_shut_down_and_empty_stays_readable)
{
    wq_queue *q = *state;

    assert_false(readable(q));
    wq_shutdown(q);
    assert_true(readable(q));
    assert_none_ready(q, WQ_ESHUTDOWN);
    assert_true(readable(q));
}

/* O-70 */
TEST(queue_that_is_shut_down_with_keys_is_readable_to_the_end)
{
    wq_queue *q = *state;

    add(q, "a");
    add(q, "b");
    wq_shutdown(q);
    assert_true(readable(q));
    work_on(q, "a");
    assert_true(readable(q));
    wq_item *item = take_key(q, "b");
    assert_true(readable(q)); /* a get says WQ_ESHUTDOWN */
    finish(q, item);
    assert_none_ready(q, WQ_ESHUTDOWN);
    assert_true(readable(q));
}

/* O-70 */
TEST(queue_that_was_shut_down_before_the_first_question_is_readable)
{
    wq_queue *q = *state;

    wq_shutdown(q);
    assert_true(readable(q));
}

/* O-70, D-13 */
TEST(shutdown_that_drops_what_waits_shows_at_once)
{
    struct timed *t = *state;

    assert_false(readable(t->q));
    add_after(t, "a", HOUR);
    wq_shutdown(t->q);
    assert_true(readable(t->q));
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* O-70, O-15 */
TEST(shutdown_that_keeps_what_waits_shows_when_that_is_due)
{
    struct timed *t = timed_create(WQ_CONFIG(.waiting = WQ_WAITING_KEEP));

    assert_false(readable(t->q));
    add_after(t, "a", HOUR);
    wq_shutdown(t->q);
    assert_false(readable(t->q));
    assert_none_ready(t->q, WQ_ETIMEDOUT);
    step(t, HOUR);
    assert_true(readable(t->q));
    work_on(t->q, "a");
    assert_true(readable(t->q));
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    timed_destroy(t);
}

/* ---- all together -------------------------------------------------------- */

/* A walk through all that can happen to three keys. */
struct walk {
    struct timed *t;
    unsigned      seed;
    wq_item      *held[3];
    size_t        n_held;
};

static unsigned
draw(struct walk *w, unsigned n)
{
    w->seed = w->seed * 1664525U + 1013904223U;
    return (w->seed >> 16) % n;
}

static wq_key
some_key(struct walk *w)
{
    static const char *const names[] = {"a", "b", "c"};

    return wq_str(names[draw(w, 3)]);
}

static void
change_something(struct walk *w)
{
    wq_queue *q = w->t->q;

    switch (draw(w, 8)) {
    case 0:
        (void)!wq_add(q, some_key(w));
        break;
    case 1:
        (void)!wq_add_after(q, some_key(w), draw(w, 4));
        break;
    case 2:
        (void)wq_remove(q, some_key(w));
        break;
    case 3:
        (void)wq_cancel_after(q, some_key(w));
        break;
    case 4:
        if (w->n_held)
            finish(q, w->held[--w->n_held]);
        break;
    case 5:
        if (draw(w, 50) == 0)
            wq_shutdown(q);
        break;
    case 6:
        (void)wq_len(q);
        break;
    default:
        step(w->t, (int)draw(w, 4) - 1); /* back, too */
    }
}

/* A deadline that finds its key held wakes a loop in vain, once. */
static void
look(struct walk *w)
{
    const bool   lit = readable(w->t->q);
    wq_item     *item = NULL;
    const wq_err err = wq_get_within(w->t->q, 0, &item);
    const bool   in_vain = lit && err == WQ_ETIMEDOUT && w->n_held;

    if (lit != (err != WQ_ETIMEDOUT) && !in_vain)
        fail_msg("%sreadable, and a get says %s; seed %u", lit ? "" : "not ",
                 wq_err_name(err), w->seed);
    if (in_vain)
        assert_false(readable(w->t->q));
    if (!err)
        w->held[w->n_held++] = item;
}

static void
take_a_walk(unsigned seed, wq_waiting waiting)
{
    struct walk w = {.seed = seed};

    w.t = timed_create(WQ_CONFIG(.waiting = waiting));
    for (int i = 0; i < 200; i++) {
        change_something(&w);
        if (draw(&w, 2))
            look(&w);
        if (w.n_held && draw(&w, 2))
            finish(w.t->q, w.held[--w.n_held]);
    }
    timed_destroy(w.t);
}

/* O-70 */
TEST(queue_is_readable_exactly_when_a_get_would_answer)
{
    for (unsigned seed = 0; seed < 500; seed++)
        take_a_walk(seed, seed % 2 ? WQ_WAITING_DROP : WQ_WAITING_KEEP);
}

/* ---- other threads ------------------------------------------------------- */

static int
poll_the_queue(struct worker *self)
{
    struct pollfd p = {.fd = wq_fd(self->arg), .events = POLLIN};

    return poll(&p, 1, -1);
}

/* O-70 */
TEST(add_and_shutdown_wake_a_loop_that_sleeps)
{
    wq_queue      *q = *state;
    struct worker *w = worker_start(poll_the_queue, q);

    worker_await_blocked(w);
    add(q, "a");
    assert_int_equal(worker_join(w), 1);
    work_on(q, "a");

    w = worker_start(poll_the_queue, q);
    worker_await_blocked(w);
    wq_shutdown(q);
    assert_int_equal(worker_join(w), 1);
}

/* O-70, O-12 */
TEST(loop_sleeps_through_what_is_not_for_it)
{
    wq_queue *q = *state;

    add(q, "a");
    wq_item       *item = take(q);
    struct worker *w = worker_start(poll_the_queue, q);
    worker_await_blocked(w);
    const int64_t before_ns = worker_cpu_ns(w);
    for (int i = 0; i < 100; i++) {
        add(q, "a"); /* dirty */
        assert_err(wq_add_after(q, wq_str("b"), HOUR + i), WQ_OK);
        wq_interrupt(q);
    }
    worker_await_blocked(w);
    assert_int_equal(worker_cpu_ns(w), before_ns);
    finish(q, item);
    assert_int_equal(worker_join(w), 1);
}

/* O-70 */
TEST(threads_and_a_loop_share_a_queue)
{
    wq_queue *q = *state;
    wq_item  *item = NULL;

    assert_false(readable(q));
    struct worker *w = worker_get(q, &item);
    worker_await_blocked(w);
    add(q, "a");
    assert_err(worker_join(w), WQ_OK); /* the thread was faster */
    assert_false(readable(q));
    finish(q, item);
}

/* ---- the descriptor ------------------------------------------------------ */

/* O-70 */
TEST(descriptor_is_the_same_at_every_call_and_closes_on_exec)
{
    wq_queue *q = *state;
    const int fd = wq_fd(q);

    assert_true(fd >= 0);
    assert_int_equal(wq_fd(q), fd);
    add(q, "a");
    wq_shutdown(q);
    assert_int_equal(wq_fd(q), fd);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

static int
count_open(void)
{
    int n = 0;

    for (int fd = 0; fd < 64; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

/* O-70 */
TEST(destroy_closes_the_descriptor)
{
    const int     open = count_open();
    struct timed *t = timed_create(WQ_CONFIG(.order = NULL));

    assert_int_equal(count_open(), open); /* who does not ask has none */
    const int fd = wq_fd(t->q);
    add_after(t, "a", MS);
    timed_destroy(t);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(count_open(), open);
}

/* O-70 */
TEST(fake_clock_moves_on_after_a_queue_with_a_deadline_is_gone)
{
    struct timed *t = *state;
    wq_queue     *q = NULL;

    assert_err(
        wq_create(WQ_CONFIG(.clock = t->clock, .waiting = WQ_WAITING_KEEP), &q),
        WQ_OK);
    assert_false(readable(q));
    assert_err(wq_add_after(q, wq_str("a"), MS), WQ_OK);
    wq_destroy(q);
    step(t, HOUR);
    assert_false(readable(t->q));
}

/* O-70: until there are descriptors again. */
TEST(too_few_descriptors_are_told_and_nothing_is_lost)
{
    wq_queue     *q = *state;
    const int     open = count_open();
    struct rlimit usual;

    add(q, "a");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    const struct rlimit none = {0, usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    errno = 0;
    const int fd = wq_fd(q), cause = errno;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_int_equal(fd, -1);
    assert_int_equal(cause, EMFILE);
    assert_int_equal(count_open(), open);
    assert_true(readable(q));
    work_on(q, "a");
    assert_false(readable(q));
}

WQ_TESTS(
    test(no_queue_has_no_descriptor),
    test(backend_or_layer_without_one_says_so),
    with_queue(empty_queue_is_not_readable),
    with_queue(queue_is_readable_while_a_key_is_ready),
    with_queue(dirty_key_is_readable_only_after_done),
    with_queue(queue_that_is_asked_late_is_readable_at_once),
    with_queue(every_verb_keeps_the_descriptor_right),
    with_queue(interrupt_is_for_threads_and_does_not_show),
    with_time(queue_is_readable_from_the_deadline_on),
    with_time(earlier_deadline_takes_the_place_of_a_later_one),
    with_time(later_deadline_leaves_the_earlier_one_alone),
    with_time(deadline_that_is_taken_back_does_not_show),
    with_time(queue_with_a_deadline_that_is_asked_late_is_readable_in_time),
    with_time(deadline_that_passed_before_the_first_question_shows),
    with_time(deadline_of_a_held_key_shows_until_somebody_looks),
    with_time(clock_that_goes_back_takes_the_deadline_away_again),
    test(clocks_of_the_system_wake_a_loop_in_time),
    with_queue(queue_that_is_shut_down_and_empty_stays_readable),
    with_queue(queue_that_is_shut_down_with_keys_is_readable_to_the_end),
    with_queue(queue_that_was_shut_down_before_the_first_question_is_readable),
    with_time(shutdown_that_drops_what_waits_shows_at_once),
    test(shutdown_that_keeps_what_waits_shows_when_that_is_due),
    test(queue_is_readable_exactly_when_a_get_would_answer),
    with_queue(add_and_shutdown_wake_a_loop_that_sleeps),
    with_queue(loop_sleeps_through_what_is_not_for_it),
    with_queue(threads_and_a_loop_share_a_queue),
    with_queue(descriptor_is_the_same_at_every_call_and_closes_on_exec),
    test(destroy_closes_the_descriptor),
    with_time(fake_clock_moves_on_after_a_queue_with_a_deadline_is_gone),
    with_queue(too_few_descriptors_are_told_and_nothing_is_lost));

#else

/* O-70 */
TEST(system_without_one_says_so)
{
    wq_queue *q = *state;

    errno = 0;
    assert_int_equal(wq_fd(q), -1);
    assert_int_equal(errno, ENOSYS);
    add(q, "a");
    work_on(q, "a");
}

WQ_TESTS(test(no_queue_has_no_descriptor),
         test(backend_or_layer_without_one_says_so),
         with_queue(system_without_one_says_so));

#endif
