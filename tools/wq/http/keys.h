/* SPDX-License-Identifier: MIT */
/* keys.h: which keys are there, and in which state is each?
 *
 * For the table of the page: the first KEYS_SHOWN keys that match a search.
 * Running keys come first, by slot; then retrying and waiting keys, by deadline;
 * then ready keys in the order of hand-out (by priority, then the oldest); then
 * the DEAD keys of a shared queue.
 *
 * Cost: running keys cost O(runs) and are looked up each time. The others need a
 * walk over all keys, O(n), during which the loop does nothing else: about 150 ms
 * for a million keys. So walks are limited, for all streams together: they take
 * at most 1 / (KEYS_REST + 1) of the time. Meanwhile the result of the last walk
 * is shown again. The stream with the oldest result walks first.
 */
#ifndef WQ_TOOL_KEYS_H
#define WQ_TOOL_KEYS_H

#include "base/short_key.h"
#include "base/text.h"
#include "run/view.h"

#define KEYS_SHOWN 500
#define KEYS_REST 20
/* So much rest may be owed when a walk begins. It lets all streams walk at the
 * same moment if walks are short, and adds up to 10 ms of walks to those of a
 * long one. */
#define KEYS_OWED_NS INT64_C(200000000)

/* The state of a key; a query has a set of them. */
enum keys_state {
    KEYS_RUNNING = 1,
    KEYS_RETRYING = 2,
    KEYS_WAITING = 4,
    KEYS_READY = 8,
    KEYS_DEAD = 16,
};

struct keys_row {
    struct short_key key;
    enum keys_state  state;
    bool             again;    /* running: DIRTY, it runs once more */
    unsigned         attempt;  /* the current one, or the next */
    unsigned         slot;     /* running */
    int              priority; /* higher is sooner */
    int64_t  since_ns; /* running, ready: CLOCK_MONOTONIC; -1: unknown */
    int64_t  due_ns;   /* retrying, waiting: likewise */
    uint64_t found;    /* 1, 2, ... in the order of the walk */
};

/* What to look for. */
struct keys_query {
    char     search[1024]; /* bytes; ASCII letters match in either case */
    size_t   search_len;   /* 0: all keys match */
    unsigned wanted;       /* enum keys_state, or'ed; not 0 */
};

/* A query and the result of its walk: keys that did not run then. */
struct keys {
    struct keys_query query;

    struct keys_row rows[KEYS_SHOWN];
    uint16_t        order[KEYS_SHOWN]; /* of rows; during a walk, a heap with
                                          the last row on top */
    size_t          n;
    uint64_t        matched;  /* matching keys, shown or not */
    int64_t         taken_ns; /* when it was looked up; 0: never */
};

/* Limits the walks of all streams together; zero at first. */
struct keys_ration {
    int64_t rest_until_ns; /* when all rest that is owed will be over */
};

/* Is a walk allowed now? */
bool keys_may_look(const struct keys_ration *ration, const struct view *view);

/* Walk. `ration` pays for it; NULL: none does. False: out of memory; nothing was
 * found. */
bool keys_look(struct keys *keys, struct runner *runner,
               const struct view *view, struct keys_ration *ration);

/* Add {"rows":[...],"matched":...,...} as JSON, with the keys that run now.
 * Times are as of `view`. */
void keys_add(const struct keys *keys, struct runner *runner,
              const struct view *view, struct wq__text *out);

/* The state with this name; all states for "all" and ""; 0: no such state. */
unsigned keys_state_named(const char *name);

#endif
