/* SPDX-License-Identifier: MIT */
/* shared_skips.h: which tests can no shared queue pass, and why? */
#ifndef WQ_SCENARIOS_SHARED_SKIPS_H
#define WQ_SCENARIOS_SHARED_SKIPS_H

#include "support/backend.h"

/* Words of scenarios. */
#define SHARED_LACKS                                                           \
    "remove_wait flush flush_key max_bytes overflow queue:waiting group "      \
    "group_max_held max_ready real_time another_getter limiter=probe when "    \
    "undo drop_waiting no_listener no_dead" BACKEND_AND_FD

/* Why tests of behaviour/ are left out. */
#define ORDER "S-10: a shared queue has no wq_order"
#define ALLOCATOR "S-10: a shared queue has no allocator"
#define GROUP "S-10: a shared queue has no groups"
#define WAITING "S-10: a shared queue leaves its WAITING keys in the store"
#define OVERFLOW "S-10: a shared queue refuses what does not fit"
#define LIMITER "S-10: the limiter has functions of the test"
#define FORK "S-09: a child cannot use a handle of its parent"
#define LEFT "S-05 S-07: WAITING keys stay, and are not dropped"
#define NO_FLUSH "not supported: wq_flush_key(), wq_remove_wait()"
#define ONE_STEP "O-59: get_many takes all keys in one step, also with metrics"
/* The destroy begins while the get reports what it found when its time was up. */
#define LOOKS_AGAIN "O-03: the get notices the destroy, and is not timed out"
#define REPORTER "Q-25: the get may report the change of the add, too"
#define LISTENER "the thread that listens to the store next may not sleep yet"
#define KEPT "S-14: a shared queue keeps a key that must run again"
#define NO_QUEUE "the test opens no queue of the backend"

/* Tests of behaviour/, for a table of struct backend_skip. */
#define SHARED_SKIPS                                                           \
    /* behaviour/test_add_with.c */                                            \
    {"limiter_is_called_for_each_key_and_undone_on_failure",                   \
     LIMITER}, /* behaviour/test_bad_input.c */                                \
        {"no_queue_is_an_error_and_no_crash", NO_QUEUE},                       \
        {"no_queue_is_empty_and_open_and_cannot_be_woken", NO_QUEUE},          \
        {"no_queue_is_an_error_for_batches_too",                               \
         NO_QUEUE}, /* behaviour/test_batches.c */                             \
        {"destroy_waits_for_a_woken_get_that_reports", LOOKS_AGAIN},           \
        {"order_that_refuses_one_of_many_ends_the_call_there", ORDER},         \
        {"next_whose_done_the_order_refuses_keeps_the_item",                   \
         ORDER}, /* behaviour/test_clock.c */                                  \
        {"each_sleeper_wakes_exactly_at_its_deadline", LISTENER},              \
        {"fake_clock_shows_the_time_it_was_created_with", NO_QUEUE},           \
        {"monotonic_clock_is_always_there_and_never_goes_back", NO_QUEUE},     \
        {"monotonic_clock_is_that_of_the_system", NO_QUEUE},                   \
        {"NULL_is_the_monotonic_clock", NO_QUEUE},                             \
        {"boottime_clock_is_not_behind_the_monotonic_one", NO_QUEUE},          \
        {"fake_functions_do_not_change_other_clocks", NO_QUEUE},               \
        {"clocks_of_the_system_are_not_destroyed",                             \
         NO_QUEUE}, /* behaviour/test_delay.c */                               \
        {"nothing_is_kept_of_a_done_or_dropped_key", ALLOCATOR},               \
        {"destroy_gives_back_what_waits", ALLOCATOR},                          \
        {"delay_refused_for_lack_of_memory_changes_nothing", ALLOCATOR},       \
        {"flushed_key_that_an_order_refuses_is_offered_again", ORDER},         \
        {"workers_and_drain_end_after_the_last_kept_key",                      \
         WAITING}, /* behaviour/test_fd.c */                                   \
        {"queue_is_readable_exactly_when_a_get_returns_at_once", WAITING},     \
        {"fake_clock_moves_on_after_a_queue_is_destroyed", WAITING},           \
        {"null_queue_has_no_descriptor", NO_QUEUE},                            \
        {"backend_or_layer_without_descriptor_fails_with_ENOSYS",              \
         NO_QUEUE}, /* behaviour/test_fork_signals.c */                        \
        {"child_has_a_queue_of_its_own", FORK},                                \
        {"child_can_finish_an_item_of_the_parent", FORK},                      \
        {"child_can_use_threads", FORK},                                       \
        {"child_that_takes_keys_leaves_the_descriptor_of_the_parent", FORK},   \
        {"child_that_adds_keys_does_not_wake_the_parent", FORK},               \
        {"child_that_ends_a_deadline_leaves_the_timer_of_the_parent",          \
         FORK}, /* behaviour/test_inbox.c */                                   \
        {"accepted_key_survives_a_lack_of_memory",                             \
         ALLOCATOR}, /* behaviour/test_inspect.c */                            \
        {"walk_frees_its_memory", ALLOCATOR},                                  \
        {"backend_without_these_functions_does_not_support_them",              \
         NO_QUEUE}, /* behaviour/test_key_end.c */                             \
        {"nul_follows_the_key_of_an_item", GROUP}, /* behaviour/test_keys.c */ \
        {"verbs_with_a_string_mean_its_bytes", NO_FLUSH},                      \
        {"nul_follows_the_key_an_order_gets", ORDER},                          \
        {"nul_follows_the_key_of_an_overflow", OVERFLOW},                      \
        {"key_words_make_the_key_they_say", NO_QUEUE},                         \
        {"times_are_whole_nanoseconds",                                        \
         NO_QUEUE}, /* behaviour/test_pause.c */                               \
        {"pause_in_the_middle_of_a_batch_ends_it", ONE_STEP},                  \
        {"pause_without_a_queue_is_refused",                                   \
         NO_QUEUE}, /* behaviour/test_rate_limiting.c */                       \
        {"limiter_gets_the_clock_of_the_queue", LIMITER},                      \
        {"bad_arguments_do_not_reach_the_limiter", LIMITER},                   \
        {"retry_without_memory_is_undone", ALLOCATOR},                         \
        {"limiter_needs_no_function_but_when", LIMITER},                       \
        {"limiter_may_call_the_queue", LIMITER},                               \
        {"queue_destroys_its_limiter_once", LIMITER},                          \
        {"limiter_of_a_queue_is_refused_by_another", LIMITER},                 \
        {"ONCE_undoes_a_retry_that_lost_a_race", LIMITER},                     \
        {"nul_follows_a_key_that_was_given_up", ALLOCATOR},                    \
        {"key_is_not_given_up_without_memory_for_the_callback", ALLOCATOR},    \
        {"limiter_that_is_part_of_another_is_refused", NO_QUEUE},              \
        {"create_that_fails_destroys_the_limiter", NO_QUEUE},                  \
        {"config_too_short_for_a_limiter_has_none", NO_QUEUE},                 \
        {"create_without_memory_destroys_the_limiter", NO_QUEUE},              \
        {"create_with_a_failed_limiter_returns_its_error", NO_QUEUE},          \
        {"unknown_options_are_refused",                                        \
         NO_QUEUE}, /* behaviour/test_sinks.c */                               \
        {"destroy_reports_drops_before_it_closes_the_sink", LEFT},             \
        {"sink_may_call_the_queue_from_open", ALLOCATOR},                      \
        {"destroy_waits_for_a_get_that_reports_to_a_sink", LOOKS_AGAIN},       \
        {"slow_sink_does_not_delay_a_wakeup", REPORTER},                       \
        {"open_that_fails_makes_create_fail_without_a_leak", NO_QUEUE},        \
        {"open_that_fails_leaves_no_descriptor", NO_QUEUE},                    \
        {"sink_of_a_wrong_size_is_refused_before_any_is_opened",               \
         NO_QUEUE}, /* behaviour/test_threads.c */                             \
        {"destroy_of_NULL_does_nothing",                                       \
         NO_QUEUE}, /* behaviour/test_workers.c */                             \
        {"key_that_fails_after_shutdown_is_dropped", KEPT},                    \
        {"null_pools_are_refused",                                             \
         NO_QUEUE}, /* behaviour/test_workers_stop.c */                        \
        {"resize_is_refused_while_a_stop_waits_for_failing_done", ORDER},

/* Over a store that is not in the memory of the process, these are left out as
 * well. */
#define STORE_LOOKS                                                            \
    "the listener looks once a second, in case a wake-up was lost"
#define STORE_DESCRIPTORS "a queue in a store has descriptors of its own"
#define STORE_COUNTS                                                           \
    "the listener counts as a sleeper until it has left the engine"

#define STORE_SKIPS                                                            \
    SHARED_SKIPS /* behaviour/test_fd.c */                                     \
        {"destroy_closes_the_descriptor",                                      \
         STORE_DESCRIPTORS}, /* behaviour/test_clock.c, clock.scenario */      \
        {"wait_for_sleepers_lasts_until_an_added_key_ran", STORE_COUNTS},      \
        {"wait_for_sleepers_lasts_until_one_watches_an_earlier_deadline",      \
         STORE_COUNTS},                                                        \
        {"sleeper_does_not_count_once_a_call_has_woken_it",                    \
         STORE_COUNTS}, /* idle.scenario */                                    \
        {"blocked_get_uses_no_processor_time", STORE_LOOKS},                   \
        {"blocked_drain_uses_no_processor_time", STORE_LOOKS},

#endif
