/* SPDX-License-Identifier: MIT */
/* holder.h: how is a key held for another process?
 *
 * A hold belongs to a process. `wq get` ends as soon as it has printed the key;
 * so it gets keys for the process that called it, usually a script. They stay
 * HELD until `wq done`, or until that process ends.
 *
 *   sqlite:  the queue is opened for that process, and knows its end by itself
 *   redis:   a process in the background holds the keys (keeper.h)
 */
#ifndef WQ_TOOL_HOLDER_H
#define WQ_TOOL_HOLDER_H

#include <stdbool.h>

#include <wq/wq.h>

#include "options/options.h"

/* A queue, opened for another process. */
struct holder {
    const struct options *options;
    wq_queue             *q;
    int                   keeper; /* the connection to it; -1: there is none */
};

/* The process that holds the keys: --holder, or our parent. */
int holder_of(const struct options *options);

/* Open the queue to get keys, or, with holder_open_held(), to finish them.
 * Takes over config->limiter. False: reported on stderr. */
bool holder_open(struct holder *h, const struct options *options,
                 const wq_config *config);
bool holder_open_held(struct holder *h, const struct options *options,
                      const wq_config *config);
void holder_close(struct holder *h);

/* The keys that were got are that process's from now on. False: reported; they
 * are given back. */
bool holder_keep(struct holder *h, wq_item **items, size_t n);

/* Nobody knows that the key is held: give it back. */
void holder_give_back(struct holder *h, wq_item *item);

/* A loan of a key that the process holds. WQ_ENOTFOUND: it does not hold it;
 * WQ_ELOST: it did, and the lease has ended; else as wq_sqlite_resume() and
 * wq_redis_take_over(). */
wq_err holder_resume(struct holder *h, wq_key key, wq_item **out);

/* The key was finished. */
void holder_forget(struct holder *h, wq_key key);

#endif
