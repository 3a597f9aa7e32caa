/* SPDX-License-Identifier: MIT */
/* layers_full.c: the scenarios run over the layers of backend.h, both around an
 * in-memory queue, which has all verbs.
 *
 * The inner queue gets the config without what belongs to the layers: the
 * limiter and max_retries.
 */
#include <wq/backend.h>
#include <wq/limiter.h>

#include "support/backend.h"

static wq_err
open_inner(const wq_config *config, wq_queue **out)
{
    wq_config mine = *config;

    mine.limiter = NULL;
    mine.max_retries = 0;
    return wq_create(&mine, out);
}

/* What the layers use of a config. */
static wq_config
config_of_layers(const wq_config *config)
{
    return *WQ_CONFIG(.clock = config->clock, .allocator = config->allocator,
                      .limiter = config->limiter,
                      .max_retries = config->max_retries,
                      .on_drop = config->on_drop, .drop_ctx = config->drop_ctx);
}

static wq_err
wrap_twice(wq_queue *inner, const wq_config *config, wq_queue **out)
{
    wq_queue *delaying = NULL;
    wq_err    err = wq_delaying_wrap(inner, config, &delaying);

    if (err) { /* the delaying layer does not take over the limiter */
        wq_limiter_destroy(config->limiter);
        wq_destroy(inner);
        return err;
    }
    err = wq_rate_limiting_wrap(delaying, config, out);
    if (err)
        wq_destroy(delaying);
    return err;
}

static wq_err
open_layers(const wq_config *config, wq_queue **out)
{
    const wq_config defaults = {.size = sizeof defaults};
    const wq_config mine = config_of_layers(config ? config : &defaults);
    wq_queue       *inner = NULL;
    const wq_err    err = open_inner(config ? config : &defaults, &inner);

    if (err) {
        wq_limiter_destroy(mine.limiter);
        return err;
    }
    return wrap_twice(inner, &mine, out);
}

/* What the layers cannot do exactly (backend.h says so): the inner queue does
 * not know their WAITING keys. */
#define NOT_BOUNDED "WAITING keys do not count for max_len"
#define NOT_ORDERED "groups and priorities of WAITING keys do not count"
#define LATE "a key is READY from the moment a verb passes it on"
#define MEANWHILE "a get that wakes up passes a key on meanwhile"
#define DROPPED "a READY key that loses its deadline at a shutdown is a drop"
#define NO_FINISH "layers have no finish: the library adds the key again"
#define NO_RETRY_RULES "layers refuse wq_config.retry"

static const struct backend_skip skips[] = {
    {"clock_that_goes_back_at_once_keeps_the_deadline",
     "layers pass timeouts as durations: a sleep can miss a step"},
    {"deadlines_come_while_paused", MEANWHILE},
    {"gets_that_sleep_without_limit_share_each_new_deadline", MEANWHILE},
    {"READY_HELD_and_WAITING_keys_count", NOT_BOUNDED},
    {"add_with_nowait_is_refused_at_once", NOT_BOUNDED},
    {"delayed_key_displaces_the_oldest", NOT_BOUNDED},
    {"known_key_is_always_accepted", NOT_BOUNDED},
    {"limiter_does_not_count_what_did_not_fit", NOT_BOUNDED},
    {"only_READY_keys_are_displaced", NOT_BOUNDED},
    {"removal_and_cancellation_wake_a_blocked_add", NOT_BOUNDED},
    {"shutdown_ends_blocked_adds", NOT_BOUNDED},
    {"displaced_key_loses_its_deadline", NOT_BOUNDED},
    {"due_keys_enter_their_groups_in_order_of_deadlines", NOT_ORDERED},
    {"groups_of_known_keys_are_counted", NOT_ORDERED},
    {"depths_count_READY_and_DIRTY_keys_of_each_priority", NOT_ORDERED},
    {"age_of_a_delayed_key_begins_at_its_deadline", LATE},
    {"key_whose_deadline_has_passed_is_READY", LATE},
    {"WAITING_keys_that_a_shutdown_drops_are_counted", DROPPED},
    {"finish_with_back_is_accepted_after_a_shutdown", NO_FINISH},
    /* Of test_differential.c: */
    {"queue_agrees_with_the_model_on_ages", LATE},
    {"queue_agrees_with_the_model_within_max_len", NOT_BOUNDED},
    {"queue_agrees_with_the_model_on_rules_for_retries", NO_RETRY_RULES},
    {"queue_agrees_with_the_model_on_failures_given_up", NO_RETRY_RULES},
    {"two_handles_agree_with_the_model", "layers have one handle"},
    {NULL, NULL},
};

const struct backend backend = {
    .open = open_layers,
    /* `retry`, `waiting` and `sink` concern deadlines, which the inner queue
     * does not have. */
    .lacks = "other throttle exact_waits retry sink not_woken "
             "queue:waiting=KEEP queue:waiting=FLUSH queue:waiting=FLUSH_ALL "
             "own_finish" BACKEND_AND_FD,
    .skips = skips,
};
