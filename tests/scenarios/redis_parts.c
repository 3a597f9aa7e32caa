/* SPDX-License-Identifier: MIT */
/* redis_parts.c: the scenarios, and tests of behaviour/, run over a queue in a
 * Redis server that is spread over partitions. */
#include "support/backend.h"
#include "support/redis_queue.h"

#include "scenarios/redis_skips.h"

/* S-25: why tests are left out that other queues in Redis pass. */
#define ORDER_OF_PARTS "keys of several partitions have no order"
#define BUCKET "each partition has its share of the bucket of all keys"
#define IN_PART "an add is all or nothing in each partition"
#define MAX_LEN "max_len cannot be kept over several partitions"
/* Any shared queue. */
#define FLUSH "wq_wait_idle() is supported, and wq_flush() is not"

static const struct backend_skip skips[] = {
    REDIS_SKIPS
    /* model/test_differential.c */
    {"queue_agrees_with_the_model_within_max_len", MAX_LEN},
    /* conformance/test_conformance.c */
    {"add_with_is_done_or_not_supported", ORDER_OF_PARTS},
    {"flushes_are_done_or_not_supported", FLUSH},
    /* add_with.scenario */
    {"batch_with_a_key_that_is_given_up_adds_nothing", IN_PART},
    {"default_limiter_delays_the_hundred_and_first_failure", BUCKET},
    {"depth_grows_when_deadlines_pass_and_shrinks_again", ORDER_OF_PARTS},
    {"key_named_twice_in_a_batch_is_added_once", ORDER_OF_PARTS},
    {"keys_of_a_batch_become_READY_in_the_order_given", ORDER_OF_PARTS},
    {"keys_that_are_due_together_leave_by_priority", ORDER_OF_PARTS},
    /* ageing.scenario */
    {"low_key_under_a_flood_never_leaves_without_ageing", ORDER_OF_PARTS},
    /* batches.scenario */
    {"DIRTY_items_of_a_batch_become_READY_in_its_order", ORDER_OF_PARTS},
    {"done_many_ends_a_drain", ORDER_OF_PARTS},
    {"get_many_after_shutdown_takes_READY_keys", ORDER_OF_PARTS},
    {"get_many_takes_a_whole_batch_that_wakes_it", ORDER_OF_PARTS},
    {"get_many_takes_all_READY_keys_in_their_order", ORDER_OF_PARTS},
    {"get_many_takes_no_more_than_its_limit", ORDER_OF_PARTS},
    {"next_gives_back_one_item_and_takes_another", ORDER_OF_PARTS},
    {"next_of_an_item_not_HELD_takes_nothing", ORDER_OF_PARTS},
    /* behaviour/test_add_with.c */
    {"batch_may_be_of_any_length", ORDER_OF_PARTS},
    {"options_of_null_or_zero_are_a_plain_add", ORDER_OF_PARTS},
    /* behaviour/test_bad_input.c */
    {"add_after_shutdown_is_refused_and_changes_nothing", ORDER_OF_PARTS},
    {"bad_key_after_shutdown_is_still_a_bad_key", ORDER_OF_PARTS},
    {"bad_keys_are_refused_by_every_verb", ORDER_OF_PARTS},
    {"copy_of_an_item_is_refused", ORDER_OF_PARTS},
    {"done_of_a_key_that_is_not_there_is_refused", ORDER_OF_PARTS},
    {"done_of_a_key_that_is_ready_is_refused", ORDER_OF_PARTS},
    {"done_of_a_key_twice_is_refused_the_second_time", ORDER_OF_PARTS},
    {"invented_items_are_refused", ORDER_OF_PARTS},
    {"item_done_twice_is_refused_the_second_time", ORDER_OF_PARTS},
    {"item_done_twice_leaves_its_dirty_key_ready", ORDER_OF_PARTS},
    {"item_of_another_queue_is_refused", ORDER_OF_PARTS},
    {"item_of_garbage_is_refused", ORDER_OF_PARTS},
    {"key_of_no_bytes_is_an_error", ORDER_OF_PARTS},
    {"key_of_too_many_bytes_is_an_error", ORDER_OF_PARTS},
    {"many_items_done_twice_are_refused_the_second_time", ORDER_OF_PARTS},
    {"negative_time_is_an_error", ORDER_OF_PARTS},
    {"no_item_among_many_is_an_error", ORDER_OF_PARTS},
    {"no_item_is_an_error", ORDER_OF_PARTS},
    {"no_key_is_an_error", ORDER_OF_PARTS},
    {"nothing_to_put_items_in_or_take_them_from_is_an_error", ORDER_OF_PARTS},
    {"nowhere_to_put_an_item_is_an_error", ORDER_OF_PARTS},
    {"options_beyond_the_size_are_not_read", ORDER_OF_PARTS},
    {"options_of_a_wrong_size_are_refused", ORDER_OF_PARTS},
    {"options_that_contradict_each_other_are_refused", ORDER_OF_PARTS},
    {"options_that_only_look_odd_are_accepted", ORDER_OF_PARTS},
    /* behaviour/test_delay.c */
    {"delayed_keys_of_all_lengths_come_back_whole", ORDER_OF_PARTS},
    {"many_keys_with_random_delays_all_come_in_order", ORDER_OF_PARTS},
    /* behaviour/test_inbox.c */
    {"keys_added_in_many_ways_stay_in_order", ORDER_OF_PARTS},
    /* behaviour/test_inspect.c */
    {"visit_can_end_the_walk", ORDER_OF_PARTS},
    {"visit_can_remove_keys", ORDER_OF_PARTS},
    /* behaviour/test_keys.c */
    {"keys_differ_when_one_is_the_beginning_of_the_other", ORDER_OF_PARTS},
    {"keys_of_every_length_come_back_whole", ORDER_OF_PARTS},
    /* behaviour/test_metrics.c */
    {"keys_of_a_large_batch_are_reported_one_by_one", ORDER_OF_PARTS},
    /* behaviour/test_work_one.c */
    {"handler_may_work_on_other_keys", ORDER_OF_PARTS},
    /* behaviour/test_workers_stop.c */
    {"drain_waits_for_ready_held_and_dirty_keys", ORDER_OF_PARTS},
    /* delay.scenario */
    {"equal_deadlines_come_in_order_of_arrival_and_are_copied", ORDER_OF_PARTS},
    {"key_due_before_a_done_comes_before_the_DIRTY_one", ORDER_OF_PARTS},
    {"key_that_is_delayed_again_keeps_its_place_among_equals", ORDER_OF_PARTS},
    /* fd.scenario */
    {"every_function_keeps_the_descriptor_up_to_date", ORDER_OF_PARTS},
    {"queue_is_readable_while_a_key_is_READY", ORDER_OF_PARTS},
    {"queue_with_keys_stays_readable_after_shutdown", ORDER_OF_PARTS},
    /* finish.scenario */
    {"DIRTY_key_that_is_finished_runs_again", ORDER_OF_PARTS},
    {"batch_goes_on_after_an_item_not_on_loan", ORDER_OF_PARTS},
    {"batch_without_errors_returns_OK", ORDER_OF_PARTS},
    {"finish_of_an_item_that_is_done_changes_nothing", ORDER_OF_PARTS},
    {"key_finished_with_no_time_runs_at_the_tail", ORDER_OF_PARTS},
    {"next_with_a_result_finishes_one_key_and_gets_another", ORDER_OF_PARTS},
    {"result_with_a_priority_replaces_that_of_the_loan", ORDER_OF_PARTS},
    /* if_waiting.scenario */
    {"WAITING_key_that_is_made_READY_goes_to_the_tail", ORDER_OF_PARTS},
    /* inspect.scenario */
    {"cooldown_of_a_throttled_key_is_no_deadline", ORDER_OF_PARTS},
    {"depths_count_READY_and_DIRTY_keys_of_each_priority", ORDER_OF_PARTS},
    {"each_visits_the_keys_with_the_states_given", ORDER_OF_PARTS},
    {"every_step_is_counted", ORDER_OF_PARTS},
    /* metrics.scenario */
    {"ages_of_HELD_keys_are_exact_at_any_time", ORDER_OF_PARTS},
    {"delays_of_the_limiter_are_reported", ORDER_OF_PARTS},
    {"depth_counts_DIRTY_keys_and_len_does_not", ORDER_OF_PARTS},
    {"keys_of_a_batch_are_reported_one_by_one", ORDER_OF_PARTS},
    {"latency_does_not_depend_on_calls_after_the_deadline", ORDER_OF_PARTS},
    {"next_reports_work_and_latency", ORDER_OF_PARTS},
    {"sum_of_ages_is_not_below_the_longest", ORDER_OF_PARTS},
    /* pause.scenario */
    {"descriptor_is_not_readable_while_paused", ORDER_OF_PARTS},
    {"next_gives_back_and_gets_nothing_while_paused", ORDER_OF_PARTS},
    {"paused_queue_hands_out_nothing_until_resumed", ORDER_OF_PARTS},
    {"shutdown_ends_the_pause", ORDER_OF_PARTS},
    /* priority.scenario */
    {"DIRTY_key_goes_to_the_tail_of_its_level", ORDER_OF_PARTS},
    {"deadline_raises_the_READY_key", ORDER_OF_PARTS},
    {"due_key_has_the_priority_of_its_deadline", ORDER_OF_PARTS},
    {"key_added_again_with_its_priority_keeps_its_place", ORDER_OF_PARTS},
    {"keys_of_one_priority_leave_in_FIFO_order", ORDER_OF_PARTS},
    {"priorities_are_any_int", ORDER_OF_PARTS},
    {"thousands_of_keys_leave_by_priority_in_FIFO_order", ORDER_OF_PARTS},
    /* queue.scenario */
    {"DIRTY_key_goes_to_the_tail_at_done", ORDER_OF_PARTS},
    {"HELD_keys_do_not_block_the_keys_behind_them", ORDER_OF_PARTS},
    {"items_may_be_done_in_any_order", ORDER_OF_PARTS},
    {"key_added_again_keeps_its_place", ORDER_OF_PARTS},
    {"key_added_twice_is_handed_out_once", ORDER_OF_PARTS},
    {"key_comes_back_with_its_bytes", ORDER_OF_PARTS},
    {"keys_leave_first_come_first_served", ORDER_OF_PARTS},
    {"length_counts_READY_keys_only", ORDER_OF_PARTS},
    {"order_survives_growing_and_shrinking", ORDER_OF_PARTS},
    /* rate_limiting.scenario */
    {"default_limiter_uses_the_clock_of_the_queue", BUCKET},
    {"limiter_uses_the_clock_of_the_queue", BUCKET},
    /* remove.scenario */
    {"removed_key_is_not_handed_out", ORDER_OF_PARTS},
    /* shared.scenario */
    {"each_visits_the_keys_of_all_handles", ORDER_OF_PARTS},
    {"gets_of_a_closed_handle_still_take_READY_keys", ORDER_OF_PARTS},
    {"keys_given_back_keep_their_priority", ORDER_OF_PARTS},
    {"keys_of_one_handle_are_handed_out_by_the_other", ORDER_OF_PARTS},
    {"stats_describe_the_store_and_count_by_handle", ORDER_OF_PARTS},
    /* shutdown.scenario */
    {"destroy_ends_every_blocked_drain", ORDER_OF_PARTS},
    {"destroy_frees_READY_HELD_and_DIRTY_keys", ORDER_OF_PARTS},
    {"drain_waits_for_READY_HELD_and_DIRTY_keys", ORDER_OF_PARTS},
    {"drain_waits_for_READY_keys_when_nothing_is_HELD", ORDER_OF_PARTS},
    {"get_reports_the_shutdown_while_a_drain_waits", ORDER_OF_PARTS},
    {"shutdown_does_not_wait_for_HELD_items", ORDER_OF_PARTS},
    {"shutdown_ends_every_drain", ORDER_OF_PARTS},
    {"shutdown_refuses_adds_of_HELD_READY_and_new_keys", ORDER_OF_PARTS},
    /* work_one.scenario */
    {"key_that_runs_again_now_is_never_given_up", ORDER_OF_PARTS},
    {"key_that_runs_again_now_keeps_its_priority", ORDER_OF_PARTS},
    {"work_one_works_on_one_key_and_leaves_the_rest", ORDER_OF_PARTS},
    {NULL, NULL},
};

static int
part_of(wq_key key)
{
    return (int)redis_queue_partition(key, REDIS_QUEUE_PARTITIONS);
}

const struct backend backend = {.open = redis_queue_open_spread,
                                .again = redis_queue_open_spread_again,
                                .settle = redis_queue_settle,
                                .part = part_of,
                                .on_disk = true,
                                .remote = true,
                                .lacks = SHARED_LACKS " max_len",
                                .skips = skips};
