/* SPDX-License-Identifier: MIT */
/* inspect.h: the state of a queue and of its keys.
 *
 * Stats of the whole queue, key info of one key, a walk over all keys, and a
 * dump of everything in JSON lines. All of it is for people and dashboards:
 * other threads may change the queue before the caller reads the result. Do not
 * check first whether a key must be added: add it, and the queue merges the add
 * if the key is READY already.
 *
 * Ages (for how long a key has been READY or HELD) cost one reading of the
 * clock at every add, get and done. A queue with metrics (metrics.h) always
 * keeps them, any other queue with wq_config.ages. Ages that are not kept are
 * -1.
 */
#ifndef WQ_INSPECT_H
#define WQ_INSPECT_H

#include <wq/wq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------ the whole queue -- */

/* The stats of a queue. uint64_t fields count since the queue was created and
 * never go down; all others describe this moment. At every moment, in a queue
 * that is not shared,
 *
 *     adds = gets + removed + displaced + deferred + ready + dirty
 */
typedef struct wq_stats {
    size_t size; /* sizeof(wq_stats); set by the caller */

    size_t  ready;         /* READY keys: wq_len() minus adds that could not be
                              merged for lack of memory */
    size_t  held;          /* HELD keys */
    size_t  dirty;         /* of these, how many are DIRTY */
    size_t  waiting;       /* WAITING keys, whatever their other states */
    size_t  known;         /* all keys that the queue knows, also those in a
                              cooldown: what max_len bounds */
    size_t  sleeping;      /* threads that sleep in a get */
    int64_t next_ns;       /* until the earliest deadline; WQ_FOREVER: none */
    int64_t unfinished_ns; /* the sum of the HELD keys' ages; -1: not kept */
    int64_t longest_ns;    /* the largest of these ages; -1: not kept */
    bool    shutting_down; /* see wq_shutting_down() */

    uint64_t adds;    /* keys that became READY or DIRTY; a deadline counts when
                         it passes. client-go's adds */
    uint64_t merged;  /* adds that needed no run of their own: the key was
                         READY or DIRTY already, or one deadline covers several
                         adds (for example debounced ones) */
    uint64_t retries; /* calls of wq_add_after() and wq_add_rate_limited(), and
                         adds with a delay: client-go's retries */
    uint64_t gets;    /* keys handed out */
    uint64_t dones;   /* loans that ended */
    uint64_t removed; /* READY or DIRTY keys that wq_remove() removed */
    uint64_t displaced; /* READY keys dropped to admit new keys
                           (WQ_OVERFLOW_DROP_OLDEST) */
    uint64_t deferred;  /* READY or DIRTY keys that were put off to a deadline
                           (WQ_IF_WAITING_REPLACE, WQ_RETRY_RESPECT) */
    uint64_t overdue;   /* keys handed out before their turn, because they had
                           been READY for max_ready_ns */
    bool     paused;    /* see wq_pause() */
    size_t   bytes;     /* of all known keys, if there is a max_bytes; else 0 */
    size_t   groups;    /* groups of the known keys; 0: the queue has none */
    size_t   offered;   /* READY keys that can be handed out now: 0 while
                           paused, no more than group_max_held allows */
    uint64_t drops;     /* keys that needed work and left without it, each once:
                           displaced, WAITING at a shutdown, given up
                           (wq_config.max_retries), dropped by wq_finish(), a
                           worker pool or wq_work_one(), counted by
                           wq_count_drops() */
    /* Shared queues; 0 in others. */
    size_t   dead;     /* DEAD keys: see wq_revive() */
    size_t   holders;  /* handles that hold a key */
    uint64_t lost;     /* loans of this handle that were lost */
    uint64_t expired;  /* holds of others that this handle found expired, and
                          whose keys it gave back */
    uint64_t connects; /* sessions of this handle in the store: one, and one
                          more each time that it has lost its holds */
} wq_stats;

/* Read the stats into *out, as far as out->size reaches: one consistent
 * snapshot. Keys whose deadlines have passed count as READY.
 *
 *     wq_stats stats = {.size = sizeof stats};
 *     wq_err   err = wq_read_stats(q, &stats);
 *
 * Returns WQ_OK;
 *   WQ_EINVAL   NULL, or a wrong `size` (rules: see wq_create());
 *   WQ_ENOTSUP  not supported by the backend.
 * Threads: any.  Blocks: never.  Cost: O(1), plus O(n) of the keys whose
 * cooldown ends before the earliest deadline.  Since: 0.1.  [O-30]
 */
WQ_API wq_err wq_read_stats(wq_queue *q, wq_stats *out);

/* How many keys of one priority are READY or DIRTY. */
typedef struct wq_depth {
    int    priority;
    size_t keys;
} wq_depth;

/* Read the depth of each priority: up to `max` entries into `out`, in no
 * particular order, and the number of priorities in use into *n. Priority 0 is
 * always in use, others are while a key has them.
 *
 * Returns WQ_OK; WQ_EINVAL: NULL (`out` may be NULL if `max` is 0); WQ_ENOTSUP.
 * Threads: any.  Blocks: never.  Cost: O(n) of the most priorities in use at
 * one time since priority 0 was last the only one.  Since: 0.1.  [O-31]
 */
WQ_API wq_err wq_read_depths(wq_queue *q, wq_depth *out, size_t max, size_t *n);

/* -------------------------------------------------------------- one key -- */

/* The states of a key. A key that the queue does not know has none, nor has a
 * key that only has a cooldown. */
enum wq_state {
    WQ_STATE_READY = 1,    /* a get can hand it out */
    WQ_STATE_HELD = 2,     /* a worker holds it, from get until done */
    WQ_STATE_DIRTY = 4,    /* HELD, and it becomes READY at done */
    WQ_STATE_WAITING = 8,  /* it has a deadline */
    WQ_STATE_BACKOFF = 16, /* WAITING; a failure set the deadline */
    WQ_STATE_DEAD = 32     /* not handed out until wq_revive(); alone */
};

/* How many bytes wq_key_info.holder has. */
#define WQ_HOLDER_BYTES 80

/* Key info: what the queue knows about a key. */
typedef struct wq_key_info {
    size_t   size;     /* sizeof(wq_key_info); set by the caller */
    unsigned states;   /* enum wq_state, or'ed; 0: none */
    int      priority; /* READY, DIRTY: that of the next hand-out; else WAITING:
                          that of the deadline; else HELD: that of this
                          hand-out */
    unsigned requeues; /* wq_num_requeues() */
    int64_t  ready_ns; /* READY, DIRTY: for how long, from the first add or the
                          deadline that made it so; -1: neither, or not kept */
    int64_t  held_ns;  /* HELD: for how long; -1: not HELD, or not kept */
    int64_t  wait_ns;  /* WAITING: until its deadline; -1: not WAITING */
    uint64_t fence;    /* HELD: of this hand-out; else 0 */
    wq_key   group;    /* its group: a part of the caller's key, or of the key
                          that is visited; data is NULL: no groups */
    unsigned expiries; /* in a store: holders in a row that died or lost it */
    /* HELD in a store: which process holds it, for people. In a server
     * "HOST:PID", or what that process has chosen
     * (wq_redis_options.client); in a file "PID". Ends with a NUL. "": not
     * HELD, not in a store, or not known. [S-29] */
    char holder[WQ_HOLDER_BYTES];
} wq_key_info;

/* Read the key info of `key` into *out, as far as out->size reaches. A key that
 * the queue does not know is WQ_OK, and has no states.
 *
 * Returns WQ_OK;
 *   WQ_EINVAL    NULL queue or out, NULL or empty key, wrong `size`;
 *   WQ_ETOOLONG  more than WQ_KEY_MAX bytes;
 *   WQ_ENOMEM    out of memory while merging pending adds;
 *   WQ_ENOTSUP   not supported by the backend.
 * Threads: any.  Blocks: never.  Cost: O(1).  Since: 0.1.  [O-32]
 */
WQ_API wq_err wq_read_key(wq_queue *q, wq_key key, wq_key_info *out);

/* ------------------------------------------------------------- all keys -- */

/* A callback that wq_each() calls for a key; false ends the walk. `key` and
 * `info` are valid until it returns. It is called without a lock: it may call
 * the queue, remove the key, and block. */
typedef bool (*wq_visit)(void *ctx, wq_key key, const wq_key_info *info);

/* Call visit(ctx, ...) for every key that has one of `states` (enum wq_state,
 * or'ed; 0: every key that has one).
 *
 * Other threads can use the queue meanwhile: the walk copies a bounded number
 * of keys at a time, and visits the copies without the lock. So it is not a
 * snapshot. A key that the queue knows from the beginning of the walk to its
 * end is copied exactly once, and is visited if it has one of the states at
 * that moment. A key that enters or leaves the queue meanwhile may be visited
 * or not; one that leaves and enters again may be visited twice. Adds that
 * could not be merged for lack of memory are not visited. The order is
 * unspecified.
 *
 * Returns WQ_OK      also when visit() ended it;
 *         WQ_EINVAL  NULL queue or visit, unknown states;
 *         WQ_ENOMEM  out of memory for the copies (about 140 KiB); no key was
 *                    visited;
 *         WQ_ENOTSUP  not supported by the backend.
 * Threads: any.  Blocks: no longer than visit() does.  Cost: O(n); it takes the
 * lock for O(1) at a time.  Since: 0.1.  [O-33]
 */
WQ_API wq_err wq_each(wq_queue *q, unsigned states, wq_visit visit, void *ctx);

/* ---------------------------------------------------------------- check -- */

/* A callback that wq_check() calls for each problem: a sentence, valid until it
 * returns. It is called without a lock. */
typedef void (*wq_problem)(void *ctx, const char *text);

/* Check that all that the queue knows agrees: the states of every key, orders,
 * counts; of a shared queue the whole store (`wq fsck` prints it). A problem is
 * a defect of wq, or damage done to the store from outside. Changes nothing.
 *
 * Returns WQ_OK      the check was made; problem(ctx, ...) was called for each
 *                    problem, so never if there is none;
 *         WQ_EINVAL  NULL queue or problem;
 *         WQ_ENOMEM  out of memory; shared queues: WQ_EIO, WQ_EAWAY;
 *         WQ_ENOTSUP  not supported by the backend.
 * Threads: any.  Blocks: other calls, for as long as it takes.  Cost: O(n).
 * Since: 0.1.  [O-35]
 */
WQ_API wq_err wq_check(wq_queue *q, wq_problem problem, void *ctx);

/* A callback that writes `len` bytes of text, and returns WQ_OK or an error
 * (for example WQ_EIO). */
typedef wq_err (*wq_write)(void *ctx, const char *text, size_t len);

/* A wq_write for stdio: `file` is a FILE *. WQ_EIO if fwrite() fails. */
WQ_API wq_err wq_write_file(void *file, const char *text, size_t len);

/* Write the stats of the queue and the key info of all its keys, for debugging:
 * one JSON object a line. The first has the stats, each other one the key info
 * of a key that wq_each() visits:
 *
 *     {"queue":"pods","ready":2,"held":1,"dirty":0,"waiting":1,...}
 *     {"key":"default/nginx","states":["READY"],"priority":0,"ready_ns":1500}
 *
 * A key that is not UTF-8 has replacement characters (U+FFFD) in "key", and all
 * its bytes in "key_base64" (RFC 4648, with padding), as in the output of the
 * command wq.
 *
 *     wq_dump(q, wq_write_file, stderr);
 *
 * Returns as wq_each(). If write() fails, the dump ends with its error.
 * Threads: any.  Blocks: no longer than write() does.  Since: 0.1.  [O-34]
 */
WQ_API wq_err wq_dump(wq_queue *q, wq_write write, void *ctx);

#ifdef __cplusplus
}
#endif

#endif
