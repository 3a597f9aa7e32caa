/* SPDX-License-Identifier: MIT */
/* layers.c: the scenarios run over the layers of backend.h, both around a queue
 * that has only the verbs a backend must have (support/bare_queue.h).
 */
#include <wq/backend.h>
#include <wq/limiter.h>

#include "support/backend.h"
#include "support/bare_queue.h"

static wq_err
open_layers(const wq_config *config, wq_queue **out)
{
    wq_clock    *clock = config ? config->clock : NULL;
    struct bare *b = bare_create(WQ_CONFIG(.clock = clock));
    wq_queue    *delaying = NULL;
    wq_err       err = wq_delaying_wrap(&b->base, config, &delaying);

    if (err) { /* the delaying layer does not take over the limiter */
        wq_limiter_destroy(config ? config->limiter : NULL);
        wq_destroy(&b->base);
        return err;
    }
    err = wq_rate_limiting_wrap(delaying, config, out);
    if (err)
        wq_destroy(delaying);
    return err;
}

static const struct backend_skip skips[] = {
    {"finish_with_back_is_accepted_after_a_shutdown",
     "layers have no finish: the library adds the key again"},
    {"clock_that_goes_back_at_once_keeps_the_deadline",
     "layers pass timeouts as durations: a sleep can miss a step"},
    {NULL, NULL},
};

const struct backend backend = {
    .open = open_layers,
    .lacks = "other add_with remove cancel_after done_key count_drops stats "
             "depths key states each readable remove_wait flush flush_key "
             "wait_idle pause resume max_len max_bytes overflow queue:waiting "
             "retry group group_max_held max_ready ages real_time sink "
             "not_woken own_finish",
    .skips = skips,
};
