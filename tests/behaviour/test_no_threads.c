/* SPDX-License-Identifier: MIT */
/* test_no_threads.c: does a queue start threads, with or without metrics? */
#include "metered.h"

#include "threads.h"

/* O-01 D-14 D-15 */
TEST(queue_starts_no_thread)
{
    const int     before = count_threads();
    struct timed *t = timed_create(WQ_CONFIG(.order = NULL));

    add(t->q, "foo");
    work_on(t->q, "foo");
    add_after(t, "foo", 10 * MS);
    assert_int_equal(count_threads(), before);
    step(t, 10 * MS);
    work_on(t->q, "foo");
    assert_int_equal(count_threads(), before);
    timed_destroy(t);
}

/* M-01 M-06 */
TEST(metrics_start_no_thread)
{
    const int before = count_threads();
    void     *made = NULL;

    assert_int_equal(metered_setup(&made), 0);
    struct metered *m = made;
    add(m->q, "foo");
    wq_item *item = take(m->q);
    step(m->t, HOUR);
    assert_int_equal(counts_of(m->q).longest_ns, HOUR);
    assert_int_equal(count_threads(), before);
    finish(m->q, item);
    assert_int_equal(metered_teardown(&made), 0);
}

WQ_TESTS(test(queue_starts_no_thread), test(metrics_start_no_thread));
