/* SPDX-License-Identifier: MIT */
/* test_registry_default.c: which sink does a new queue find? */
#include "support/wq_test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "metrics/default.h"

/* Its first and its last function, which is never called, say the same. */
static wq_metrics
sink_of(uintptr_t self)
{
    return (wq_metrics){.size = sizeof(wq_metrics),
                        .self = (void *)self,
                        .limited = (void (*)(void *, int64_t))self};
}

/* M-07 */
TEST(default_is_copied_and_the_first_one_stays)
{
    wq_metrics first = sink_of(1);
    wq_metrics second = sink_of(2);
    wq_metrics found = sink_of(3);

    assert_false(wq__metrics_default(&found));
    assert_ptr_equal(found.self, (void *)3);
    assert_int_equal(wq_metrics_set_default(&first), WQ_OK);
    first = second;
    assert_int_equal(wq_metrics_set_default(&second), WQ_ESTATE);
    assert_true(wq__metrics_default(&found));
    assert_ptr_equal(found.self, (void *)1);
    assert_int_equal(found.size, sizeof found);

    assert_int_equal(wq_metrics_set_default(NULL), WQ_OK);
    assert_false(wq__metrics_default(&found));
    assert_int_equal(wq_metrics_set_default(NULL), WQ_OK);
    assert_int_equal(wq_metrics_set_default(&second), WQ_OK);
    assert_true(wq__metrics_default(&found));
    assert_ptr_equal(found.self, (void *)2);
    assert_int_equal(wq_metrics_set_default(NULL), WQ_OK);
}

/* M-07: an older program's ends earlier; what is beyond is not read. */
TEST(default_of_another_size_is_read_as_a_config_is)
{
    struct {
        wq_metrics known;
        size_t     more;
    } newer = {.known = sink_of(1)};
    wq_metrics found;

    newer.known.size = 0;
    assert_int_equal(wq_metrics_set_default(&newer.known), WQ_EINVAL);
    newer.known.size = sizeof(wq_metrics) - 1;
    assert_int_equal(wq_metrics_set_default(&newer.known), WQ_EINVAL);
    newer.known.size = sizeof newer;
    newer.more = 1;
    assert_int_equal(wq_metrics_set_default(&newer.known), WQ_EINVAL);
    assert_false(wq__metrics_default(&found));

    newer.more = 0;
    assert_int_equal(wq_metrics_set_default(&newer.known), WQ_OK);
    assert_true(wq__metrics_default(&found));
    assert_int_equal(found.size, sizeof found);
    assert_int_equal(wq_metrics_set_default(NULL), WQ_OK);

    newer.known.size = offsetof(wq_metrics, next);
    assert_int_equal(wq_metrics_set_default(&newer.known), WQ_OK);
    assert_true(wq__metrics_default(&found));
    assert_null(found.next);
    assert_int_equal(wq_metrics_set_default(NULL), WQ_OK);
}

static atomic_bool over;

static void *
look(void *unused)
{
    uintptr_t  torn = 0;
    wq_metrics found;

    (void)unused;
    while (!atomic_load(&over))
        if (wq__metrics_default(&found) &&
            (uintptr_t)found.self != (uintptr_t)found.limited)
            torn++;
    return (void *)torn;
}

/* M-07 */
TEST(default_that_changes_is_seen_whole)
{
    pthread_t  thread;
    void      *torn;
    wq_metrics sink;

    assert_int_equal(pthread_create(&thread, NULL, look, NULL), 0);
    for (uintptr_t i = 1; i < 20000; i++) {
        sink = sink_of(i);
        assert_int_equal(wq_metrics_set_default(&sink), WQ_OK);
        assert_int_equal(wq_metrics_set_default(NULL), WQ_OK);
    }
    atomic_store(&over, true);
    assert_int_equal(pthread_join(thread, &torn), 0);
    assert_null(torn);
}

WQ_TESTS(test(default_is_copied_and_the_first_one_stays),
         test(default_of_another_size_is_read_as_a_config_is),
         test(default_that_changes_is_seen_whole));
