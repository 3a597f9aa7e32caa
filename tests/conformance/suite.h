/* SPDX-License-Identifier: MIT */
/* suite.h: does a backend keep the contract of wq.h?
 *
 * One suite, any backend. A backend's file says how to make a queue and stamps
 * the suite on it; it becomes the program conformance_<file>:
 *
 *     #include "conformance/suite.h"
 *
 *     static wq_err
 *     open_mine(void *ctx, wq_queue **out) { ... }
 *
 *     const struct suite_backend suite_backend = {.open = open_mine};
 *
 *     SUITE();
 *
 * The cases use wq.h alone. They hold for every backend, so what depends on
 * one (a plug-in order, an allocator, what the memory looks like) is not here
 * but in tests/behaviour.
 */
#ifndef WQ_CONFORMANCE_SUITE_H
#define WQ_CONFORMANCE_SUITE_H

#include "support/wq_test.h"

#include <wq/wq.h>

/* What a backend tells the suite. A backend that can do more (be reopened after
 * its process was killed, be shared by several) will say so by more functions
 * here, NULL where it cannot; cases that need one are skipped then.
 */
struct suite_backend {
    void *ctx; /* first argument of all */
    /* Make a queue that is empty and open, and that nobody else uses. Called
     * for each case, and again for a case that wants a second one. The suite
     * gives it to wq_destroy(). */
    wq_err (*open)(void *ctx, wq_queue **out);
};

/* Defined by the backend's file. */
extern const struct suite_backend suite_backend;

/* The cases, in the order they run. */
#define SUITE_CASES(X)                                                         \
    /* keys */                                                                 \
    X(new_queue_is_empty_and_open)                                             \
    X(key_comes_back_with_its_bytes)                                           \
    X(binary_keys_are_told_apart)                                              \
    X(long_keys_come_back_whole)                                               \
    X(key_is_copied_on_add)                                                    \
    X(bad_keys_are_refused)                                                    \
    /* add, get, done */                                                       \
    X(key_added_twice_is_handed_out_once)                                      \
    X(keys_leave_first_come_first_served)                                      \
    X(key_added_again_keeps_its_place)                                         \
    X(key_added_while_held_is_handed_out_once_after_done)                      \
    X(dirty_key_goes_to_the_tail_at_done)                                      \
    X(len_counts_ready_keys_only)                                              \
    X(held_key_is_nobody_elses)                                                \
    X(fence_grows_with_every_hand_out_of_a_key)                                \
    X(item_may_be_done_by_another_thread)                                      \
    X(item_done_twice_is_refused)                                              \
    X(item_of_another_queue_is_refused)                                        \
    X(copy_of_an_item_is_refused)                                              \
    X(done_by_key_ends_the_loan)                                               \
    X(done_by_key_of_what_is_not_held_is_refused)                              \
    X(missing_arguments_are_refused)                                           \
    /* waiting */                                                              \
    X(get_blocks_until_a_key_is_added)                                         \
    X(get_blocks_until_a_dirty_key_is_done)                                    \
    X(every_blocked_get_is_woken_by_a_key_of_its_own)                          \
    X(get_within_no_time_does_not_wait)                                        \
    X(get_gives_up_when_its_time_is_up_and_not_before)                         \
    X(negative_timeouts_are_refused)                                           \
    X(interrupt_ends_every_blocked_get)                                        \
    X(interrupt_is_remembered_once)                                            \
    X(interrupt_leaves_a_get_that_need_not_block_alone)                        \
    /* batches */                                                              \
    X(get_of_many_takes_what_there_is_up_to_its_limit)                         \
    X(get_of_many_blocks_until_there_is_one)                                   \
    X(get_of_many_says_why_it_got_none)                                        \
    X(done_of_many_ends_their_loans)                                           \
    X(done_of_many_refuses_what_is_not_on_loan)                                \
    X(next_gives_back_and_takes)                                               \
    X(next_of_what_is_not_on_loan_is_refused)                                  \
    X(next_that_gets_none_leaves_no_item)                                      \
    X(worker_that_calls_next_works_on_everything)                              \
    X(batches_refuse_bad_arguments)                                            \
    X(adds_with_a_purpose_are_done_or_not_supported)                           \
    X(drops_are_counted_or_not_supported)                                      \
    X(taking_back_is_done_or_not_supported)                                    \
    X(flushes_are_done_or_not_supported)                                       \
    X(removal_that_waits_is_done_or_not_supported)                             \
    X(pauses_are_done_or_not_supported)                                        \
    /* shutdown */                                                             \
    X(shutdown_refuses_adds_and_hands_out_what_is_ready)                       \
    X(shutdown_wakes_every_blocked_get)                                        \
    X(shutdown_does_not_wait_for_held_items)                                   \
    X(shutdown_keeps_a_dirty_key)                                              \
    X(second_shutdown_is_harmless)                                             \
    X(drain_of_an_idle_queue_returns_at_once)                                  \
    X(drain_waits_for_ready_held_and_dirty_keys)                               \
    X(drain_wakes_every_drainer)                                               \
    X(drain_is_ended_by_shutdown)                                              \
    X(drain_after_shutdown_waits_again)                                        \
    X(drain_gives_up_when_its_time_is_up)                                      \
    X(destroy_sends_blocked_threads_home)                                      \
    /* many threads */                                                         \
    X(no_key_is_in_two_hands_and_no_add_is_lost)

#define SUITE__DECLARE(name) void name(void **state);
SUITE_CASES(SUITE__DECLARE)
#undef SUITE__DECLARE

/* Setup and teardown of every case: *state is a queue of the backend's. */
int suite_open(void **state);
int suite_close(void **state);

/* Ends a backend's file. */
#define SUITE__TEST(name) test_with(name, suite_open, suite_close),
#define SUITE() WQ_TESTS(SUITE_CASES(SUITE__TEST))

#endif
