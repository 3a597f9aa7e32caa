/* SPDX-License-Identifier: MIT */
/* differential.h: does a queue do what the model says, whatever comes?
 *
 * A life is a queue of the program's backend (support/backend.h) on a fake
 * clock, and a model of it (model/model.h). Random operations go to both, by
 * wq.h alone. After each of them the results, all keys, the priorities, the
 * stats and a walk must agree; at the end everything is taken out, and must come
 * in the model's order.
 *
 *   world.h  what the files share
 *   life.c   how does a life begin and end, and what does a report say?
 *   adds.c   adds, and taking them back
 *   gets.c   hand-outs, and how holds end
 *   view.c   what can be seen from outside
 *   play.c   which operations are there?
 */
#ifndef WQ_TEST_DIFFERENTIAL_H
#define WQ_TEST_DIFFERENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The queue of a life. */
struct diff_terms {
    unsigned retry;       /* enum wq_retry */
    unsigned max_retries; /* 0: any number */
    size_t   max_len;     /* 0: any number */
    bool     ages;
    bool     two_handles; /* on one store: backend.again */
};

struct diff_report {
    size_t steps; /* operations performed */
    /* Empty, or what went wrong and the last operations, in the language of
     * scenarios (scenarios/README.md); with WQ_TRACE in the environment all of
     * them, which a scenario can repeat. */
    char text[100000];
};

/* Is `word` one of those that the program's backend lacks (support/backend.h)?
 */
bool diff_lacks(const char *word);

/* True: they agree. The seed decides about everything. */
bool diff_play(const struct diff_terms *terms, uint64_t seed, size_t steps,
               struct diff_report *report);

#endif
