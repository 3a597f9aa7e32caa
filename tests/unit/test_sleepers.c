/* SPDX-License-Identifier: MIT */
/* test_sleepers.c: is the right thread woken, with the right reason?
 */
#include "support/wq_test.h"

#include <wq/wq.h>

#include "clock/sleepers.h"
#include "support/worker.h"

enum { N = 5 };

static struct wq__sleepers list;
static struct wq__sleeper  sleepers[N];

static int
open_list(void **state)
{
    (void)state;
    list = (struct wq__sleepers){0};
    for (size_t i = 0; i < N; i++)
        wq__sleeper_enter(&list, &sleepers[i]);
    return 0;
}

static enum wq__wake
leave(size_t who)
{
    return wq__sleeper_leave(&list, &sleepers[who]);
}

TEST(last_to_sleep_is_first_to_wake)
{
    for (size_t i = N; i-- > 0;) {
        struct wq__sleeper *s =
            wq__sleepers_take(&list, list.first, WQ__WAKE_LOOK, NULL);
        assert_ptr_equal(s, &sleepers[i]);
        assert_null(s->next);
        assert_int_equal(list.len, i);
    }
    assert_null(list.first);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(leave(i), WQ__WAKE_LOOK);
}

TEST(sleeper_may_leave_from_any_place)
{
    for (size_t hole = 0; hole < N; hole++) {
        (void)open_list(NULL);
        assert_int_equal(leave(hole), WQ__WAKE_NOT);
        assert_int_equal(list.len, N - 1);
        for (size_t i = N; i-- > 0;)
            if (i != hole)
                assert_ptr_equal(
                    wq__sleepers_take(&list, list.first, WQ__WAKE_LOOK, NULL),
                    &sleepers[i]);
        assert_null(list.first);
    }
}

TEST(sleeper_taken_off_knows_it_is_being_woken)
{
    assert_false(wq__sleeper_is_being_woken(&sleepers[N - 1]));
    wq__wake(wq__sleepers_take(&list, list.first, WQ__WAKE_INTERRUPT, NULL));
    assert_true(wq__sleeper_is_being_woken(&sleepers[N - 1]));
    assert_true(
        wq__sleeper_sleep(&sleepers[N - 1], wq_clock_monotonic(), WQ_FOREVER));
    assert_int_equal(leave(N - 1), WQ__WAKE_INTERRUPT);
    assert_int_equal(list.len, N - 1);
}

TEST(all_are_taken_into_one_collection)
{
    struct wq__sleeper *some =
        wq__sleepers_take(&list, list.first, WQ__WAKE_INTERRUPT, NULL);
    struct wq__sleeper *all = wq__sleepers_take_all(&list, WQ__WAKE_LOOK, some);
    size_t              n = 0;

    for (struct wq__sleeper *s = all; s; s = s->next)
        n++;
    assert_int_equal(n, N);
    assert_int_equal(list.len, 0);
    wq__wake(all);
    for (size_t i = 0; i < N; i++) {
        assert_true(
            wq__sleeper_sleep(&sleepers[i], wq_clock_monotonic(), WQ_FOREVER));
        assert_int_equal(leave(i),
                         i == N - 1 ? WQ__WAKE_INTERRUPT : WQ__WAKE_LOOK);
    }
}

TEST(taking_all_from_an_empty_list_leaves_the_collection)
{
    struct wq__sleepers none = {0};

    assert_null(wq__sleepers_take_all(&none, WQ__WAKE_LOOK, NULL));
    assert_ptr_equal(wq__sleepers_take_all(&none, WQ__WAKE_LOOK, &sleepers[0]),
                     &sleepers[0]);
    wq__wake(NULL);
}

TEST(sleep_ends_at_its_deadline)
{
    assert_false(wq__sleeper_sleep(&sleepers[0], wq_clock_monotonic(), 0));
    assert_int_equal(leave(0), WQ__WAKE_NOT);
}

static int
sleep_long(struct worker *self)
{
    return wq__sleeper_sleep(self->arg, wq_clock_monotonic(), WQ_FOREVER) ? 1
                                                                          : 0;
}

TEST(collection_wakes_every_thread_in_it)
{
    struct worker *workers[N];

    for (size_t i = 0; i < N; i++)
        workers[i] = worker_start(sleep_long, &sleepers[i]);
    worker_await_all_blocked(workers, N);
    wq__wake(wq__sleepers_take_all(&list, WQ__WAKE_LOOK, NULL));
    for (size_t i = 0; i < N; i++)
        assert_int_equal(worker_join(workers[i]), 1);
}

#define list_test(name) test_with(name, open_list, NULL)

WQ_TESTS(list_test(last_to_sleep_is_first_to_wake),
         list_test(sleeper_may_leave_from_any_place),
         list_test(sleeper_taken_off_knows_it_is_being_woken),
         list_test(all_are_taken_into_one_collection),
         list_test(taking_all_from_an_empty_list_leaves_the_collection),
         list_test(sleep_ends_at_its_deadline),
         list_test(collection_wakes_every_thread_in_it));
