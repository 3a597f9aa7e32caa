/* SPDX-License-Identifier: MIT */
/* runner.h: the heart of `wq run`: which key runs when, and what then?
 *
 *                     add             slot, token            exit
 *     input, list ────────► queue ──────────────────► run ─────────► outcome
 *                             ▲                        │                │
 *                             │ add=                   │                │
 *                             ├────────────────────────┘                │
 *                             └─────────────────────────────────────────┘
 *                               retry, requeue-after, came again meanwhile
 *
 * runner.c does what the picture shows, ending.c decides when it stops, view.c
 * tells others about it. The struct is theirs; others see view.h.
 */
#ifndef WQ_TOOL_RUNNER_H
#define WQ_TOOL_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <wq/limiter.h>
#include <wq/metrics.h>
#include <wq/wq.h>

#include "command.h"
#include "events.h"
#include "input.h"
#include "joblog.h"
#include "list.h"
#include "listen.h"
#include "loop.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "run.h"
#include "view.h"

/* A place for one run; made when it is first needed, and used again. */
struct place {
    struct run       run;
    struct arguments arguments; /* behind run.argv */
};

/* Where keys and counts are. Pointers are owned where not said otherwise. */
struct runner {
    const struct options *options; /* not owned */
    struct loop          *loop;
    wq_registry          *registry;
    wq_queue             *q;
    wq_limiter           *backoff; /* q's: counts the failures of keys */
    wq_bucket            *bucket;  /* --rate; NULL: none */
    struct command       *command;
    struct output        *output;
    struct joblog        *joblog;
    struct events        *events;
    struct progress      *progress;
    struct listener      *listener;

    /* Input. */
    struct input_sink sink;
    struct input    **inputs; /* as many as options say, or one */
    size_t            n_inputs;
    struct list      *list;
    size_t            open;         /* sources that have not ended */
    bool              input_failed; /* one ended by an error */

    /* Runs. Slot n is at n - 1. */
    struct place     **places;    /* NULL: never used */
    pid_t             *pids;      /* of the runs; 0: the place is free */
    size_t             n_places;  /* of both arrays */
    size_t             room;      /* what they have room for */
    size_t             free_from; /* no place below is free */
    size_t             running;
    size_t             slots; /* runs allowed at the same time */
    struct run       **shown; /* view_runs()'s */
    struct result_sink result_sink;
    int                result_fd; /* its number in children; reserved here */

    struct timer   wake;     /* a key's time comes, or a token's */
    bool           token;    /* taken from the bucket, not used yet */
    bool           reserved; /* one that is still to come */
    bool           paced;    /* a key is ready, and there is no token */
    wq_reservation promise;  /* of it */

    /* Ending. */
    enum phase   phase;
    int          signal;      /* that told us to stop; 0: none */
    bool         halted;      /* --halt, 255 */
    bool         overdue;     /* --drain-timeout */
    int          fatal;       /* the exit status, whatever else; 0: none */
    struct timer drain_limit; /* --drain-timeout */

    /* Since the beginning: see struct view. */
    int64_t  started_ns;
    uint64_t adds, merged, skipped, bad;
    uint64_t runs, ok, failed, retries, tempfails, timeouts;
    size_t   retrying;
    uint64_t number; /* of the last run */
};

/* Run all there is to run. Returns the exit status; or, below 0, the signal
 * with which the program should kill itself, for its parent to see. */
int runner_main(const struct options *options);

/* -------------------------------------------------- ending.c, for runner.c -- */

/* Start nothing more, let runs finish. `why` is for events. */
void ending_drain(struct runner *runner, const char *why);
/* wq cannot go on: as above, and exit with `status`. */
void ending_fatal(struct runner *runner, int status);
/* A key was settled: is that enough? */
void ending_check_halt(struct runner *runner);
/* Tell a run to stop, and kill it if it does not. */
void ending_stop_run(struct runner *runner, struct run *run);
/* INT, TERM, HUP, TSTP, CONT. */
void ending_signal(struct runner *runner, int number);
/* Is all done? */
bool ending_is_here(struct runner *runner);
/* What to exit with, as runner_main(). */
int ending_status(struct runner *runner);

#endif
