/* SPDX-License-Identifier: MIT */
/* model.h: what should the queue do?
 *
 * The same questions the core answers, answered the slow way: by the facts of
 * docs/semantics.md, the laws of docs/design.md and the words of wq.h, with
 * plain arrays that are searched from end to end. It shares no code with the
 * core and knows no memory: keys are numbers, and whoever drives both gives
 * each number its bytes.
 */
#ifndef WQ_TEST_MODEL_H
#define WQ_TEST_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MODEL_KEYS = 40,
    MODEL_BATCH = 8,
    MODEL_GROUPS = 5,
    MODEL_FLUSHES = 8, /* at a time */
    MODEL_EXACT = 3,   /* flushes with different runs that are exact */
};

/* Of READY keys (of one priority, where that counts), who leaves first? */
enum model_order { MODEL_FIFO, MODEL_LIFO };

/* What a verb answers. */
enum model_answer {
    MODEL_OK,
    MODEL_NOTHING,     /* no key may be handed out; the key, or its deadline, is
                          none; the key is not HELD */
    MODEL_WRONG_STATE, /* the key is not in anyone's hands, or only there */
    MODEL_SHUT,        /* shut down: no more adds */
    MODEL_REFUSED,     /* the ready order refused a key */
    MODEL_FULL,        /* there is no room */
    MODEL_CANNOT,      /* the ready order gives no key back; no key is DEAD */
    MODEL_GIVEN_UP,    /* the key has had all its retries */
    MODEL_DROPPED,     /* buried where no key is DEAD */
};

/* What an add that was accepted did. */
enum model_effect {
    MODEL_NEW,
    MODEL_MERGED,
    MODEL_MADE_DIRTY,
    MODEL_RAISED,
    MODEL_SCHEDULED,
    MODEL_SOONER,
    MODEL_LATER,
    MODEL_KEPT,
    MODEL_STAYS_DEAD,
};

/* What to do with a key that waits. [O-52] */
enum model_policy { MODEL_KEEP, MODEL_MERGE, MODEL_REPLACE, MODEL_DROP };

enum model_kind { MODEL_NOW, MODEL_AT, MODEL_DEBOUNCE, MODEL_THROTTLE };

/* How to add. */
struct model_how {
    enum model_kind   kind;
    enum model_policy policy;
    int64_t           now;
    int64_t           span;     /* of a debounce or a throttle */
    int64_t           max_wait; /* of a debounce; 0: any time */
    int               priority;
    bool              backoff;  /* AT: it failed */
    bool              respect;  /* NOW: a backoff is waited for */
    bool              displace; /* others make room */
};

/* One key of an add. */
struct model_pick {
    int               key;
    bool              skip;    /* it is left alone */
    bool              at_once; /* AT: it is now */
    int64_t           at;      /* AT: when */
    enum model_effect did;     /* out */
};

/* How a hold ends. */
enum model_outcome {
    MODEL_DONE,
    MODEL_RETRY,
    MODEL_AFTER,
    MODEL_DROP_IT,
    MODEL_BACK,
    MODEL_BURY,
};

struct model_result {
    enum model_outcome outcome;
    int64_t            after; /* MODEL_AFTER */
    int                priority;
};

/* Keys, and bytes of keys. */
struct model_space {
    size_t keys, bytes;
};

/* Which READY keys make room for new ones. The words leave a choice: of groups
 * that are equally long, any may lose a key. So the model is given the victims
 * that there were, in order, and answers whether they are right. */
struct model_victims {
    int    keys[MODEL_KEYS];
    size_t n;
    bool   are_right; /* out */
};

/* The run that a key was asked for, by its number; 0: none. A READY or HELD key
 * has one, a DIRTY key one more. */
struct model_runs {
    uint64_t run, next;
};

/* A flush waits for these runs. */
struct model_flush {
    bool     is_under_way;
    bool     is_exact; /* else it may finish later, when idle at last */
    uint64_t set;      /* flushes of the same runs have the same */
    struct model_runs runs[MODEL_KEYS];
};

/* The READY keys of a priority and a group. */
struct model_lane {
    int priority, group;
};

struct model_key {
    bool ready, held, dirty, waiting;
    int  priority; /* while READY or DIRTY */

    struct model_runs runs;   /* what is owed */
    uint64_t          became; /* READY: grows with every key that becomes so */
    bool              removing; /* HELD: nothing that is asked for it stays */

    /* While waiting: */
    int64_t  at;
    uint64_t arrival;       /* when it got that deadline */
    int      wait_priority; /* what it will be READY with */
    bool     backoff;       /* because it failed, */
    bool     expected;      /* and for an add that was no failure, too */
    bool     debounced;     /* it may be put off, up to */
    int64_t  latest;        /* this time */

    /* Throttled: how long it is left alone after a run; 0: not. */
    int64_t next_cooldown; /* READY or DIRTY: after the next hand-out */
    int64_t wait_cooldown; /* while waiting: after the run of the deadline */
    bool    quiet;         /* it is left alone, */
    int64_t until;         /* until this time */

    /* Ages: */
    int64_t since;    /* READY or DIRTY: since when */
    int64_t ready_at; /* READY: since when it is that */

    /* While held: */
    int64_t got;           /* since when */
    int     held_priority; /* what it was handed out with */

    bool dead; /* S-13: alone; `held_priority` stays */
};

struct model {
    enum model_order order;
    bool             is_flat;   /* priorities do not decide who leaves first */
    bool             gives;     /* READY keys can be taken back */
    bool             respect;   /* every add respects a backoff */
    size_t           max_len;   /* keys there may be; 0: any number */
    size_t           max_bytes; /* bytes of keys there may be; 0: any number */
    bool             grouped;   /* groups take turns */
    size_t           max_held;  /* keys of a group that may be HELD; 0: any */
    int64_t          max_ready; /* READY for so long, a key is next; 0: never */
    size_t           lens[MODEL_KEYS];   /* the bytes of each key */
    int              groups[MODEL_KEYS]; /* the group of each key */
    int              parts[MODEL_KEYS];  /* S-25: the partition of each, or 0 */
    int              only; /* the next get takes a key of this one; 0: any */

    /* The limiter, which is exponential, and what comes before it. */
    int64_t  first_delay, max_delay;
    unsigned max_retries;         /* 0: any number */
    bool     once, failures_only; /* enum wq_retry */
    bool     buries;              /* S-13: there are DEAD keys */
    unsigned failures[MODEL_KEYS];

    struct model_key keys[MODEL_KEYS];
    int    ready[MODEL_KEYS]; /* in the order they became so, or were raised */
    size_t ready_len;
    struct model_lane  lanes[MODEL_KEYS]; /* that may be served, by turns */
    size_t             lanes_len;
    struct model_flush flushes[MODEL_FLUSHES];
    uint64_t           sets;      /* of runs that flushes waited for, so far */
    uint64_t           runs;      /* asked for so far */
    uint64_t           becomings; /* how often a key became READY so far */
    uint64_t           arrivals;  /* deadlines given so far */
    bool               shut, paused;
    int refuse; /* the push the ready order refuses: 1 is the next; 0: none */

    /* What was counted, as inspect.h says; and how often a READY key was
     * added again, with a higher priority or without. */
    uint64_t adds, merged, gets, dones, removed, displaced, deferred, drops;
    uint64_t overdue;
    uint64_t touches, raises;
    uint64_t retries;
};

void model_init(struct model *m, enum model_order order);

/* An add, and one that was accepted before the shutdown. [Q-03 Q-04 Q-16] */
enum model_answer model_add(struct model *m, int key, int64_t now,
                            enum model_effect *did);
enum model_answer model_admit(struct model *m, int key, int64_t now,
                              enum model_effect *did);

/* All keys or none; if the order refuses one, those before it. [O-50 to O-56
 * PQ-07 PQ-08 PQ-16 PQ-42 PQ-44 D-02 D-03 D-11 L5 O-16] */
enum model_answer model_add_with(struct model *m, const struct model_how *how,
                                 struct model_pick *picks, size_t n,
                                 struct model_victims *victims);

/* What the keys of an add that are new take; and could that ever fit? */
struct model_space model_needs(const struct model      *m,
                               const struct model_pick *picks, size_t n);
bool model_ever_fits(const struct model *m, struct model_space needs);

/* [O-57 O-58] */
enum model_answer model_remove(struct model *m, int key, int64_t now);
enum model_answer model_cancel(struct model *m, int key, int64_t now);

/* [O-84] From now on, or no longer, what is asked for a HELD key ends at
 * done. */
enum model_answer model_remove_at_done(struct model *m, int key, bool on);

/* The time is `now`; what the order refuses waits for `again` more. [D-05 D-08
 * D-10 L4 O-15] */
void model_pass(struct model *m, int64_t now, int64_t again);

/* [Q-17 L1] */
enum model_answer model_get(struct model *m, int64_t now, int *key);

/* [Q-18 Q-21] */
enum model_answer model_done(struct model *m, int key, int64_t now);

/* A rate-limited add: the delay is the limiter's, or `after` if that is less and
 * not 0. No key may be named twice if `once`. [R-01 O-16 O-17] */
enum model_answer model_add_limited(struct model *m, struct model_how how,
                                    struct model_pick *picks, size_t n,
                                    int64_t after);

/* [PQ-47 S-12 S-13 S-14] */
enum model_answer model_finish(struct model *m, int key,
                               struct model_result result, int64_t now);

/* [S-13] */
enum model_answer model_revive(struct model *m, int key, int64_t now);

/* [O-85] */
void model_pause(struct model *m, bool paused);

/* [O-81] A flush, by its number; -1: there are too many. It is over when all of
 * its runs are, and is under way until its end is reported. */
int  model_begin_flush(struct model *m);
bool model_flush_is_over(const struct model *m, int flush);
void model_end_flush(struct model *m, int flush);

/* [O-83] Is one of these runs of a key still owed? */
bool model_owes(const struct model *m, int key, struct model_runs runs);

/* */
void model_shut_down(struct model *m);

/* [D-13] */
void model_drop_waiting(struct model *m);

/* After the shutdown: all deadlines come now, in order; those of backoffs are
 * dropped unless `backoffs`. What the order refuses waits for `again`. */
void model_hasten(struct model *m, int64_t now, int64_t again, bool backoffs);

/* How many keys are in each state. */
struct model_counts {
    size_t held, dirty, waiting, dead;
};
struct model_counts model_counts(const struct model *m);

/* What can be seen from outside. */
bool    model_is_ready(const struct model *m, int key);
bool    model_is_wanted(const struct model *m, int key); /* READY or DIRTY */
bool    model_is_known(const struct model *m, int key);
bool    model_throttles(const struct model *m); /* is any key left alone? */
size_t  model_known(const struct model *m);
size_t  model_offers(const struct model *m); /* keys that gets would hand out */
size_t  model_bytes(const struct model *m);  /* of the known keys */
size_t  model_groups(const struct model *m); /* of the known keys */
bool    model_idle(const struct model *m);   /* nothing READY, held: O-07 */
int64_t model_first_deadline(const struct model *m); /* INT64_MAX: none */
int64_t model_next_event(const struct model *m);     /* ... or end of quiet */
int     model_priority(const struct model *m, int key);

/* How many priorities are in use, and how many READY or DIRTY keys have
 * `priority`; -1: it is not in use. */
size_t model_levels(const struct model *m);
int    model_depth(const struct model *m, int priority);

#endif
