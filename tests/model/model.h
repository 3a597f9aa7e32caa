/* SPDX-License-Identifier: MIT */
/* model.h: what should the queue do?
 *
 * The same questions the core answers, answered the slow way: by the facts of
 * docs/semantics.md and the laws of docs/design.md, with plain arrays that are
 * searched from end to end. It shares no code with the core and knows no
 * memory: keys are numbers, and whoever drives both gives each number its
 * bytes.
 */
#ifndef WQ_TEST_MODEL_H
#define WQ_TEST_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_KEYS = 40 };

/* In which order READY keys leave. */
enum model_order { MODEL_FIFO, MODEL_LIFO };

/* What a verb answers. */
enum model_answer {
    MODEL_OK,
    MODEL_NOTHING,  /* no key is READY */
    MODEL_NOT_HELD, /* the key is not in anyone's hands */
    MODEL_SHUT,     /* shut down: no more adds */
    MODEL_REFUSED,  /* the ready order refused the key: nothing changed */
};

/* What an add that was accepted did. */
enum model_effect {
    MODEL_NEW,
    MODEL_MERGED,
    MODEL_MADE_DIRTY,
    MODEL_SCHEDULED,
    MODEL_SOONER,
    MODEL_LATER,
};

struct model_key {
    bool     held, dirty, waiting;
    bool     backoff; /* while waiting: because it failed */
    int64_t  at;      /* while waiting */
    uint64_t arrival; /* when it got that deadline */
};

struct model {
    enum model_order order;
    struct model_key keys[MODEL_KEYS];
    int              ready[MODEL_KEYS]; /* in the order they became so */
    size_t           ready_len;
    uint64_t         arrivals; /* deadlines given so far */
    bool             shut;
    bool             respect; /* every add respects a backoff */
    int refuse; /* the push the ready order refuses: 1 is the next; 0: none */
};

void model_init(struct model *m, enum model_order order);

/* An add, and one that was accepted before the shutdown. [Q-03 Q-04 Q-16] */
enum model_answer model_add(struct model *m, int key, enum model_effect *did);
enum model_answer model_admit(struct model *m, int key, enum model_effect *did);

/* An add that respects a backoff, whatever others do. [O-16] */
enum model_answer model_add_respecting(struct model *m, int key,
                                       enum model_effect *did);

/* [D-02 D-03 D-11 L5 O-16] */
enum model_answer model_add_after(struct model *m, int key, int64_t at,
                                  bool backoff, enum model_effect *did);

/* The time is `now`; what the order refuses waits for `again` more. [D-05 D-08
 * D-10 L4 O-15] */
void model_pass(struct model *m, int64_t now, int64_t again);

/* [Q-17 L1] */
enum model_answer model_get(struct model *m, int *key);

/* [Q-18 Q-21] */
enum model_answer model_done(struct model *m, int key);

/* */
void model_shut_down(struct model *m);

/* [D-13] */
void model_drop_waiting(struct model *m);

/* What can be seen from outside. */
bool   model_is_ready(const struct model *m, int key);
size_t model_held(const struct model *m);
size_t model_dirty(const struct model *m);
size_t model_waiting(const struct model *m);
bool   model_idle(const struct model *m); /* nothing READY, held, dirty: O-07 */
int64_t model_next_deadline(const struct model *m); /* INT64_MAX: none */

#endif
