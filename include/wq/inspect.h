/* SPDX-License-Identifier: MIT */
/* inspect.h: what is a queue doing, and why is my key stuck?
 *
 * Numbers of the whole queue, the state of one key, a walk over all keys, and a
 * dump of everything in JSON lines. All of it is for people and dashboards: by
 * the time an answer is looked at, other threads have moved on. To decide
 * whether to add a key, add it; the queue knows best.
 *
 * Ages (how long has this key been READY, how long held?) need a clock to be
 * read at every add, get and done. A queue that has metrics (metrics.h) keeps
 * them anyway; another one does if wq_config.ages says so. Where they are not
 * kept, they are -1.
 */
#ifndef WQ_INSPECT_H
#define WQ_INSPECT_H

#include <wq/wq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------ the whole queue -- */

/* Numbers of a queue. The first group is about this moment, the second counts
 * since the queue was made and never goes down.
 *
 *     adds = gets + removed + displaced + ready + dirty
 */
typedef struct wq_stats {
    size_t size; /* sizeof(wq_stats); set by the caller */

    size_t  ready;         /* keys that wait for a worker: wq_len(), but for
                              those there is no memory to take in */
    size_t  held;          /* keys in workers' hands */
    size_t  dirty;         /* of these, how many come once more */
    size_t  waiting;       /* keys that have a deadline, whatever else */
    size_t  known;         /* all keys, those left alone after a throttled run
                              too: what max_len bounds */
    size_t  sleeping;      /* threads asleep in a get */
    int64_t next_ns;       /* until the earliest deadline; WQ_FOREVER: none */
    int64_t unfinished_ns; /* the held keys' ages, added up; -1: not kept */
    int64_t longest_ns;    /* the age of the key held longest; -1: not kept */
    bool    shutting_down;

    uint64_t adds;    /* keys that became READY or DIRTY; a deadline that comes
                         counts when it comes. client-go's adds */
    uint64_t merged;  /* adds that found the key READY or DIRTY already */
    uint64_t retries; /* calls of wq_add_after() and wq_add_rate_limited(), and
                         adds with a delay: client-go's retries */
    uint64_t gets;    /* keys handed out */
    uint64_t dones;   /* loans that ended */
    uint64_t removed; /* READY or DIRTY keys that wq_remove() took out */
    uint64_t displaced; /* READY or DIRTY keys that made room for others
                           (WQ_OVERFLOW_DROP_OLDEST), or were put off
                           (WQ_IF_WAITING_REPLACE, WQ_RETRY_RESPECT) */
    uint64_t drops;     /* keys that needed work and left without it, each once:
                       displaced, WAITING when a shutdown came, given up
                       (wq_config.max_retries), dropped by a worker pool or
                       wq_work_one(), counted by wq_count_drops() */
} wq_stats;

/* Fill in *out, as far as out->size reaches: one snapshot, consistent in
 * itself. Deadlines that have passed are counted as READY.
 *
 *     wq_stats counts = {.size = sizeof counts};
 *
 * Returns WQ_OK;
 *   WQ_EINVAL   NULL, or a wrong `size` (rules: see wq_create());
 *   WQ_ENOTSUP  the backend cannot tell.
 * Threads: any.  Blocks: never.  Cost: O(1), and O(n) of throttled keys that
 * are left alone for less long than the earliest deadline.  Since: 0.1.  [O-30]
 */
WQ_API wq_err wq_read_stats(wq_queue *q, wq_stats *out);

/* How many keys of one priority are READY or DIRTY. */
typedef struct wq_depth {
    int    priority;
    size_t keys;
} wq_depth;

/* The depth by priority: fills in up to `max` entries of `out`, in no
 * particular order, and *n with how many priorities are in use. 0 is always
 * among them; others are while a key has them.
 *
 * Returns WQ_OK; WQ_EINVAL: NULL (`out` may be NULL if `max` is 0); WQ_ENOTSUP.
 * Threads: any.  Blocks: never.  Cost: O(priorities that were in use at one
 * time, since 0 was the only one).  Since: 0.1.  [O-31]
 */
WQ_API wq_err wq_read_depths(wq_queue *q, wq_depth *out, size_t max, size_t *n);

/* -------------------------------------------------------------- one key -- */

/* The states of a key; none: the queue does not know it. */
enum wq_state {
    WQ_STATE_READY = 1,   /* it waits for a worker */
    WQ_STATE_HELD = 2,    /* it is in a worker's hands */
    WQ_STATE_DIRTY = 4,   /* it will be READY again at done */
    WQ_STATE_WAITING = 8, /* it has a deadline */
    WQ_STATE_BACKOFF = 16 /* ... which was set because it failed */
};

/* What the queue knows about a key. */
typedef struct wq_key_info {
    size_t   size;     /* sizeof(wq_key_info); set by the caller */
    unsigned state;    /* enum wq_state; 0: absent */
    int      priority; /* READY, DIRTY: it will be handed out with; else that of
                          its deadline; else the one it is held with */
    unsigned requeues; /* wq_num_requeues() */
    int64_t  ready_ns; /* READY, DIRTY: for how long: since the first add, or
                          the deadline, that made it so; -1: not, or not
                          known */
    int64_t  held_ns;  /* HELD: for how long; -1: not, or not known */
    int64_t  wait_ns;  /* WAITING: how much longer; -1: not */
    uint64_t fence;    /* HELD: of this hand-out; else 0 */
} wq_key_info;

/* Fill in *out, as far as out->size reaches. A key that the queue does not know
 * is WQ_OK: no state.
 *
 * Returns WQ_OK;
 *   WQ_EINVAL    NULL queue or out, NULL or empty key, wrong `size`;
 *   WQ_ETOOLONG  more than WQ_KEY_MAX bytes;
 *   WQ_ENOMEM    no memory to take in what producers handed over;
 *   WQ_ENOTSUP   the backend cannot tell.
 * Threads: any.  Blocks: never.  Cost: O(1).  Since: 0.1.  [O-32]
 */
WQ_API wq_err wq_read_key(wq_queue *q, wq_key key, wq_key_info *out);

/* ------------------------------------------------------------- all keys -- */

/* Called for a key; false ends the walk. `key` and `info` are valid until it
 * returns. No lock is held: it may call the queue, remove the key, sleep. */
typedef bool (*wq_visit)(void *ctx, wq_key key, const wq_key_info *info);

/* Call visit(ctx, ...) for every key that has one of `states` (enum wq_state,
 * or'ed; 0: every key).
 *
 * The queue is not stopped: the walk looks at a bounded number of keys at a
 * time, copies them, and visits the copies without the lock. So it is not a
 * snapshot. A key that the queue knows from the beginning of the walk to its
 * end is looked at exactly once, and is visited if it had one of the states
 * at that moment. A key that comes or goes meanwhile may be visited or not;
 * one that goes and comes again may be visited twice. Keys there is no memory
 * to take in are not seen. The order is that of memory: none.
 *
 * Returns WQ_OK      also when visit() ended it;
 *         WQ_EINVAL  NULL queue or visit, unknown states;
 *         WQ_ENOMEM  no memory for the copies (some 140 KiB), before anything
 *                    was visited;
 *         WQ_ENOTSUP the backend cannot walk.
 * Threads: any.  Blocks: no longer than visit() does.  Cost: O(n); the lock is
 * held for O(1) at a time.  Since: 0.1.  [O-33]
 */
WQ_API wq_err wq_each(wq_queue *q, unsigned states, wq_visit visit, void *ctx);

/* Where text goes: write `len` bytes, return WQ_OK or what went wrong
 * (WQ_EIO). */
typedef wq_err (*wq_write)(void *ctx, const char *text, size_t len);

/* A wq_write() for stdio: `file` is a FILE *. WQ_EIO when fwrite() fails. */
WQ_API wq_err wq_write_file(void *file, const char *text, size_t len);

/* Everything, for debugging: one JSON object a line. The first is about the
 * queue, each other one about a key, by wq_each():
 *
 *     {"queue":"pods","ready":2,"held":1,"dirty":0,"waiting":1,...}
 *     {"key":"default/nginx","states":["ready"],"priority":0,"ready_ns":1500}
 *
 * A key that is not UTF-8 has replacement characters in "key", and all its
 * bytes in "key_hex".
 *
 *     wq_dump(q, wq_write_file, stderr);
 *
 * Returns as wq_each(); what write() returned ends it.
 * Threads: any.  Blocks: no longer than write() does.  Since: 0.1.  [O-34]
 */
WQ_API wq_err wq_dump(wq_queue *q, wq_write write, void *ctx);

#ifdef __cplusplus
}
#endif

#endif
