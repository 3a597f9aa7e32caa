/* SPDX-License-Identifier: MIT */
/* test_fd.c: what is the descriptor of a queue, and is it always right?
 *
 * scenarios/fd.scenario tests case by case when it is readable. Here are random
 * cases, and what a scenario cannot see: errno and open descriptors.
 */
#include "timed.h"

#include <errno.h>
#include <sys/resource.h>

#include "descriptors.h"
#include "support/plain_queue.h"

/* ---- queues without a descriptor ----------------------------------------- */

static void
assert_no_descriptor(wq_queue *q, int why)
{
    errno = 0;
    assert_int_equal(wq_fd(q), -1);
    assert_int_equal(errno, why);
}

/* O-70 */
TEST(null_queue_has_no_descriptor)
{
    assert_no_descriptor(NULL, EINVAL);
}

/* O-70 */
TEST(backend_or_layer_without_descriptor_fails_with_ENOSYS)
{
    wq_queue *plain = NULL, *q = NULL;

    assert_err(plain_create(PLAIN_BASE, &plain), WQ_OK);
    assert_no_descriptor(plain, ENOSYS);
    assert_err(wq_delaying_wrap(plain, NULL, &q), WQ_OK);
    assert_no_descriptor(q, ENOSYS);
    wq_destroy(q);
}

#if HAS_WQ_FD

/* ---- random cases -------------------------------------------------------- */

/* Random calls with three keys. */
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
call_at_random(struct walk *w)
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

/* The deadline of a HELD key makes the queue readable once, although a get
 * times out. */
static void
compare_with_get(struct walk *w)
{
    const bool   was_readable = readable(w->t->q);
    wq_item     *item = NULL;
    const wq_err err = wq_get_within(w->t->q, 0, &item);
    const bool   is_held_key = was_readable && err == WQ_ETIMEDOUT && w->n_held;

    if (was_readable != (err != WQ_ETIMEDOUT) && !is_held_key)
        fail_msg("%sreadable, and a get returns %s; seed %u",
                 was_readable ? "" : "not ", wq_err_name(err), w->seed);
    if (is_held_key)
        assert_false(readable(w->t->q));
    if (!err)
        w->held[w->n_held++] = item;
}

static void
run_walk(unsigned seed, wq_waiting waiting)
{
    struct walk w = {.seed = seed};

    w.t = timed_create(WQ_CONFIG(.waiting = waiting));
    for (int i = 0; i < 200; i++) {
        call_at_random(&w);
        if (draw(&w, 2))
            compare_with_get(&w);
        if (w.n_held && draw(&w, 2))
            finish(w.t->q, w.held[--w.n_held]);
    }
    timed_destroy(w.t);
}

/* O-70 */
TEST(queue_is_readable_exactly_when_a_get_returns_at_once)
{
    for (unsigned seed = 0; seed < 500; seed++)
        run_walk(seed, seed % 2 ? WQ_WAITING_DROP : WQ_WAITING_KEEP);
}

/* ---- the descriptor ------------------------------------------------------ */

/* O-70 */
TEST(descriptor_stays_the_same_and_closes_on_exec)
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

/* O-70: a queue opens descriptors at the first wq_fd(), not before. */
TEST(destroy_closes_the_descriptor)
{
    const uint64_t before = open_descriptors();
    struct timed  *t = timed_create(WQ_CONFIG(.order = NULL));

    assert_int_equal(open_descriptors(), before);
    const int fd = wq_fd(t->q);
    add_after(t, "a", MS);
    timed_destroy(t);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(open_descriptors(), before);
}

/* O-70: the clock outlives a queue with a deadline. */
TEST(fake_clock_moves_on_after_a_queue_is_destroyed)
{
    struct timed *t = *state;
    wq_queue     *q =
        open_queue(WQ_CONFIG(.clock = t->clock, .waiting = WQ_WAITING_KEEP));

    assert_false(readable(q));
    assert_err(wq_add_after(q, wq_str("a"), MS), WQ_OK);
    wq_destroy(q);
    step(t, HOUR);
    assert_false(readable(t->q));
}

/* O-70 */
TEST(failed_wq_fd_can_be_repeated)
{
    wq_queue      *q = *state;
    const uint64_t before = open_descriptors();
    struct rlimit  usual;

    add(q, "a");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    const struct rlimit none = {0, usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    errno = 0;
    const int fd = wq_fd(q), cause = errno;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_int_equal(fd, -1);
    assert_int_equal(cause, EMFILE);
    assert_int_equal(open_descriptors(), before);
    assert_true(readable(q));
    work_on(q, "a");
    assert_false(readable(q));
}

WQ_TESTS(test(null_queue_has_no_descriptor),
         test(backend_or_layer_without_descriptor_fails_with_ENOSYS),
         test(queue_is_readable_exactly_when_a_get_returns_at_once),
         with_queue(descriptor_stays_the_same_and_closes_on_exec),
         test(destroy_closes_the_descriptor),
         with_time(fake_clock_moves_on_after_a_queue_is_destroyed),
         with_queue(failed_wq_fd_can_be_repeated));

#else

/* O-70 */
TEST(system_without_descriptors_fails_with_ENOSYS)
{
    wq_queue *q = *state;

    assert_no_descriptor(q, ENOSYS);
    add(q, "a");
    work_on(q, "a");
}

WQ_TESTS(test(null_queue_has_no_descriptor),
         test(backend_or_layer_without_descriptor_fails_with_ENOSYS),
         with_queue(system_without_descriptors_fails_with_ENOSYS));

#endif
