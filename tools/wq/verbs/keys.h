/* SPDX-License-Identifier: MIT */
/* keys.h: which keys does a verb act on?
 *
 * Its operands, then the keys of -a; `wq add` without either: those of stdin.
 * Every file is read to its end before the next one, piece by piece.
 */
#ifndef WQ_TOOL_VERB_KEYS_H
#define WQ_TOOL_VERB_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

#include "options/options.h"

struct keys_sink {
    /* A key. after_ns is -1 if the input gives no delay. False: stop. */
    bool (*key)(void *ctx, wq_key key, int64_t after_ns, int priority);
    /* A piece of the input has ended: more may take long. False: stop. */
    bool (*pause)(void *ctx);
    void *ctx; /* first argument of both */
};

/* Pass all keys on. Returns STATUS_OK; STATUS_FAILED: something was not a key;
 * STATUS_ERROR: a file cannot be read, or the sink has stopped it. All but the
 * last is reported. */
int keys_read(const struct options *options, const struct keys_sink *sink);

#endif
