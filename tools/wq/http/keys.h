/* SPDX-License-Identifier: MIT */
/* keys.h: which keys are there, and in which state is each?
 *
 * For the table of the page: the first KEYS_SHOWN keys that match a search.
 * Running keys come first, by slot; then retrying and waiting keys, by deadline;
 * then ready keys in the order of hand-out (by priority, then the oldest).
 *
 * Cost: a walk over all keys, O(n), during which the loop does nothing else:
 * about 150 ms for a million keys. So walks are limited: after one, there is none
 * for KEYS_REST times as long; meanwhile its result is shown again.
 */
#ifndef WQ_TOOL_KEYS_H
#define WQ_TOOL_KEYS_H

#include "base/text.h"
#include "run/view.h"

#define KEYS_SHOWN 500
#define KEYS_CUT 200 /* bytes of a key that are shown */
#define KEYS_REST 20 /* walks take at most 1/21 of the time */

/* The state of a key; a query has a set of them. */
enum keys_state {
    KEYS_RUNNING = 1,
    KEYS_RETRYING = 2,
    KEYS_WAITING = 4,
    KEYS_READY = 8,
};

struct keys_row {
    char            key[KEYS_CUT]; /* its beginning */
    size_t          len;           /* of the whole key */
    enum keys_state state;
    bool            again;    /* running: DIRTY, it runs once more */
    unsigned        attempt;  /* the current one, or the next */
    unsigned        slot;     /* running */
    int             priority; /* higher is sooner */
    int64_t         since_ns; /* running, ready: CLOCK_MONOTONIC; -1: unknown */
    int64_t         due_ns;   /* retrying, waiting: likewise */
};

/* What to look for. */
struct keys_query {
    char     search[1024]; /* bytes; ASCII letters match in either case */
    size_t   search_len;   /* 0: all keys match */
    unsigned wanted;       /* enum keys_state, or'ed; not 0 */
};

/* A query and its result. */
struct keys {
    struct keys_query query;

    struct keys_row rows[KEYS_SHOWN];
    uint16_t        order[KEYS_SHOWN]; /* of rows; during a walk, a heap with
                                          the last row on top */
    size_t          n;
    uint64_t        matched;  /* matching keys, shown or not */
    int64_t         taken_ns; /* when it was looked up */
};

/* Limits the walks of all queries together; zero at first. */
struct keys_ration {
    int64_t until_ns; /* no walk before */
};

/* Is a walk allowed now? */
bool keys_may_look(const struct keys_ration *ration, const struct view *view);

/* Run the query. False: out of memory for a walk; only runs were found. */
bool keys_look(struct keys *keys, struct runner *runner,
               const struct view *view, struct keys_ration *ration);

/* Add {"rows":[...],"matched":...,...} as JSON. Times are as of `view`. */
void keys_add(const struct keys *keys, const struct view *view,
              struct wq__text *out);

/* The state with this name; all states for "all" and ""; 0: no such state. */
unsigned keys_state_named(const char *name);

#endif
