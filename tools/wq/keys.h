/* SPDX-License-Identifier: MIT */
/* keys.h: which keys are there, and what is each at?
 *
 * For the table of the page: the first KEYS_SHOWN that match a search. Those
 * that run come first, by slot; then those that retry and those that wait, by
 * when they are due; then those that are ready, as they will be handed out (by
 * priority, then the longest in line).
 *
 * Cost: a walk over all keys, O(n), while the loop stands still: some 150 ms
 * for a million. So walks are rationed: after one, there is none for KEYS_REST
 * times as long; meanwhile what it found is shown again.
 */
#ifndef WQ_TOOL_KEYS_H
#define WQ_TOOL_KEYS_H

#include "json.h"
#include "view.h"

#define KEYS_SHOWN 500
#define KEYS_CUT 200 /* bytes of a key that are shown */
#define KEYS_REST 20 /* walks take at most 1/21 of the time */

/* What a key is at; a set of them is what to look for. */
enum keys_state {
    KEYS_RUNNING = 1,
    KEYS_RETRYING = 2,
    KEYS_WAITING = 4,
    KEYS_READY = 8,
};

struct keys_row {
    char            key[KEYS_CUT]; /* its beginning */
    size_t          len;           /* all of it */
    enum keys_state state;
    bool            again;    /* running: and once more then */
    unsigned        attempt;  /* the one under way, or the next */
    unsigned        slot;     /* running */
    int             priority; /* higher is sooner */
    int64_t         since_ns; /* running, ready: on the view's clock; -1: no */
    int64_t         due_ns;   /* retrying, waiting: likewise */
};

/* What to look for, and what was found. Zero, with `wanted` set, is one that
 * looks for all. */
struct keys {
    char     search[1024]; /* bytes; ASCII letters in either case */
    size_t   search_len;
    unsigned wanted; /* enum keys_state, or'ed */

    struct keys_row rows[KEYS_SHOWN];
    uint16_t        order[KEYS_SHOWN]; /* rows in order; while a walk lasts, a
                                          heap with the last of them on top */
    size_t          n;
    uint64_t        matched;  /* all that do, shown or not */
    int64_t         taken_ns; /* when */
};

/* How the walks of all searches together are rationed; zero at first. */
struct keys_ration {
    int64_t until_ns; /* no walk before */
};

/* May there be a walk now? */
bool keys_may_look(const struct keys_ration *ration, const struct view *view);

/* Look. False: no memory for a walk; only runs were found. */
bool keys_look(struct keys *keys, struct runner *runner,
               const struct view *view, struct keys_ration *ration);

/* Add {"rows":[...],"matched":...,...} as JSON. Times are as of `view`. */
void keys_add(const struct keys *keys, const struct view *view,
              struct text *out);

/* One of them by its name, all of them for ""; 0: no such state. */
unsigned keys_state_named(const char *name);

#endif
