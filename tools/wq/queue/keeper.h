/* SPDX-License-Identifier: MIT */
/* keeper.h: which process holds the keys of a script in a server?
 *
 * In a server a hold lasts as long as somebody renews it; but `wq get` ends as
 * soon as it has printed the key. So a process in the background, the keeper,
 * takes over the keys that `wq get` has got (wq_redis_take_over()), and renews
 * them while the script, the holder, lives. `wq done` takes a key over from the
 * keeper, and finishes it.
 *
 *     wq get ── get ──► server            one keeper for each holder and queue,
 *       │ take over "key"                 behind a socket whose name says which:
 *       ▼                                 abstract, so that no file stays behind
 *     keeper ── renews ──► server
 *       ▲ which session?
 *     wq done ── takes over, finishes ──► server
 *
 * When the holder ends, the keeper ends without a word: its keys are READY when
 * the lease ends, and each counts an expiry, as those of a worker that was
 * killed. A keeper without keys ends after a few seconds.
 *
 * Only processes of the same user talk to each other.
 */
#ifndef WQ_TOOL_KEEPER_H
#define WQ_TOOL_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/wq.h>

#include "options/options.h"

/* Connect to the keeper of `holder` for options->queue. -1: there is none. */
int keeper_connect(const struct options *options, int holder);

/* The same; starts one if there is none. Before the process has threads. -1:
 * reported on stderr. */
int keeper_start(const struct options *options, int holder);

/* The session that holds its keys. 0: the keeper has ended. */
uint64_t keeper_session(int fd);

/* It takes over the key from the session. False: it does not, *why says more. */
bool keeper_take(int fd, uint64_t session, wq_key key, const char **why);

/* It gives the key back; or forgets it, if another session has it. */
void keeper_forget(int fd, wq_key key);

/* Its session does not hold the key. Did it once, and has lost it? Then the keeper
 * forgets it. */
bool keeper_has_lost(int fd, wq_key key);

#endif
