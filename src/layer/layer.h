/* SPDX-License-Identifier: MIT */
/* layer.h: what do layers around a queue share? */
#ifndef WQ_LAYER_LAYER_H
#define WQ_LAYER_LAYER_H

#include <wq/wq.h>

#include "config/config.h"

/* Check the arguments of the wrapping function `who`, and read `config` into
 * *checked. A layer cannot see what the inner queue knows of a key, so it
 * supports only some fields of a config. WQ_EINVAL, WQ_ENOTSUP: the thread's
 * last sentence says why. */
wq_err wq__layer_check(const char *who, const wq_queue *inner,
                       const wq_config *config, wq_queue **out,
                       struct wq__config *checked);

/* Is `q` a delaying layer? */
bool wq__is_delaying(const wq_queue *q);

/* wq_add_with() of `n` keys that failed to the delaying layer `q`: a deadline
 * that it sets is a backoff, and each key counts as a retry, even without a
 * delay. `options` are checked; `delays` replace their delay. */
wq_err wq__delaying_add_failed(wq_queue *q, const wq_add_options *options,
                               const wq_key *keys, const int64_t *delays,
                               size_t n);

#endif
