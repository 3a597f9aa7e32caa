/* SPDX-License-Identifier: MIT */
/* test_idle.c: what does a queue cost while nothing happens? */
#include "fixture.h"

#include <dirent.h>

#include "support/worker.h"

/* Something else for the machine to do, for a while. */
static void
be_busy_elsewhere(void)
{
    wq_queue *q = NULL;

    assert_err(wq_create(NULL, &q), WQ_OK);
    for (int i = 0; i < 20000; i++) {
        add(q, "foo");
        work_on(q, "foo");
    }
    wq_destroy(q);
}

static void
assert_uses_no_time(struct worker *w)
{
    worker_await_blocked(w);
    const int64_t before_ns = worker_cpu_ns(w);
    be_busy_elsewhere();
    worker_await_blocked(w);

    assert_int_equal(worker_cpu_ns(w), before_ns);
}

/* O-12 */
TEST(blocked_get_uses_no_processor_time)
{
    wq_queue *q = *state;

    struct worker *w = worker_get(q, NULL);
    assert_uses_no_time(w);
    wq_shutdown(q);
    assert_err(worker_join(w), WQ_ESHUTDOWN);
}

/* O-12 */
TEST(blocked_drain_uses_no_processor_time)
{
    wq_queue *q = *state;

    add(q, "foo");
    struct worker *w = worker_drain(q);
    assert_uses_no_time(w);
    work_on(q, "foo");
    assert_err(worker_join(w), WQ_OK);
}

/* O-12: what is of no use to a get does not wake it. */
TEST(blocked_get_sleeps_through_what_is_not_for_it)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item       *item = take(q);
    struct worker *w = worker_get(q, NULL);
    worker_await_blocked(w);
    const int64_t before_ns = worker_cpu_ns(w);
    for (int i = 0; i < 100; i++) {
        add(q, "foo"); /* held: dirty, not ready */
        assert_err(wq_done_key(q, wq_str("bar")), WQ_ESTATE);
        assert_int_equal(wq_len(q), 0);
    }
    worker_await_blocked(w);
    assert_int_equal(worker_cpu_ns(w), before_ns);

    finish(q, item);
    assert_err(worker_join(w), WQ_OK);
}

static int
count_threads(void)
{
    int  n = 0;
    DIR *tasks = opendir("/proc/self/task");

    if (!tasks)
        wq_test_skip("the system does not tell which threads there are");
    while (readdir(tasks))
        n++;
    (void)closedir(tasks);
    return n;
}

/* O-01 */
TEST(queue_starts_no_thread)
{
    const int before = count_threads();
    wq_queue *q = NULL;

    assert_err(wq_create(NULL, &q), WQ_OK);
    add(q, "foo");
    work_on(q, "foo");

    assert_int_equal(count_threads(), before);
    wq_destroy(q);
}

WQ_TESTS(with_queue(blocked_get_uses_no_processor_time),
         with_queue(blocked_drain_uses_no_processor_time),
         with_queue(blocked_get_sleeps_through_what_is_not_for_it),
         test(queue_starts_no_thread));
