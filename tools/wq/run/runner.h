/* SPDX-License-Identifier: MIT */
/* runner.h: which key runs when, and what happens then?
 *
 *                     add             slot, token            exit
 *     input, list ────────► queue ──────────────────► run ─────────► outcome
 *                             ▲                        │                │
 *                             │ add=                   │                │
 *                             ├────────────────────────┘                │
 *                             └─────────────────────────────────────────┘
 *                               retry, requeue-after, added meanwhile
 *
 * runner.c creates everything and decides what starts next; add.c, start.c and
 * finish.c are the arrows of the picture; store.c is for shared queues; slots.c
 * keeps the runs; failures.c remembers why keys failed, durations.c how long
 * things took; ending.c decides when the program stops. They share the struct
 * below. Files in other directories of tools/wq include only view.h, failures.h
 * and durations.h.
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

#include "base/distinct.h"
#include "base/loop.h"
#include "display/progress.h"
#include "http/listen.h"
#include "input/input.h"
#include "input/keymap.h"
#include "input/list.h"
#include "log/events.h"
#include "log/joblog.h"
#include "options/options.h"
#include "output/output.h"
#include "process/command.h"
#include "process/run.h"
#include "queue/batch.h"
#include "queue/groups.h"
#include "queue/place.h"
#include "run/durations.h"
#include "run/failures.h"
#include "run/notes.h"
#include "run/outage.h"
#include "run/pressure.h"
#include "run/view.h"

/* One run at a time executes in a slot. */
struct slot {
    struct run       run;
    struct arguments arguments; /* the memory of run.argv */
    struct wq__text  key;       /* the bytes of run.key */
    struct wq__text  line;   /* the bytes of run.line, if it is not the key */
    struct slot    **more;   /* --max-args: further keys; each is allocated when
                                first needed, and owned */
    size_t           n_more; /* of them */
};

enum { SLOT_ENDED = -1 };

/* A slot, and what searches need of it. */
struct slot_entry {
    pid_t        pid;  /* of its run; 0: the slot is free; SLOT_ENDED: the
                          queue does not know the result yet */
    struct slot *slot; /* allocated when first needed, then reused; owned */
};

/* Pointers are owned unless a comment says otherwise. */
struct runner {
    const struct options *options; /* not owned */
    struct loop          *loop;
    wq_registry          *registry;
    wq_queue             *q;
    struct groups        *groups;  /* --group-by; NULL: none */
    wq_limiter           *backoff; /* owned by q: counts failures of keys; NULL:
                                      the queue is shared */
    wq_bucket            *bucket;  /* --rate; NULL: none */
    struct command       *command;
    struct output        *output;
    struct joblog         joblog;
    struct events         events;
    struct progress      *progress;
    struct listener      *listener;

    /* Input. */
    struct input_sink sink;
    struct input    **inputs; /* one for each file, or stdin */
    size_t            n_inputs;
    struct list      *list;
    struct keymap     keymap;
    struct notes      notes;
    size_t            open;         /* sources that have not ended */
    bool              input_failed; /* a source ended by an error */
    bool              add_failed;   /* a key could not be added */
    bool              unread;       /* input was left unread */

    /* Runs. Slot number n is at index n - 1. */
    struct slot_entry *slots;
    struct run       **listed;      /* the result of view_runs() */
    size_t             n_slots;     /* used in both arrays */
    size_t             capacity;    /* of both arrays */
    size_t             free_from;   /* no slot below is free */
    size_t             running;     /* runs */
    size_t             max_running; /* --max-procs, SIGUSR1, SIGUSR2 */
    struct result_sink result_sink;
    /* The descriptor number of the result pipe in every child; this process
     * keeps it reserved. */
    int result_fd;

    struct timer    wake;         /* for the next deadline or token */
    bool            token;        /* taken from the bucket, not used yet */
    bool            reserved;     /* `reservation` is valid */
    wq_reservation  reservation;  /* of the next token */
    bool            rate_limited; /* a key is READY, and there is no token */
    struct pressure pressure;
    bool            pressed; /* a key is READY, and the pressure is high */

    /* A shared queue; see store.c. */
    struct watch  ready;    /* of wq_fd() */
    bool          watching; /* ... for EPOLLIN */
    struct watch  lost;     /* of an eventfd: a hold was lost */
    struct batch  batch;    /* keys that are not added yet */
    struct timer  retry;    /* set: the store is away until then */
    struct place  place;    /* where its files are, if it has files */
    int64_t       delay_ns; /* of that timer; 0: the last call was answered */
    struct outage outage;   /* what was reported of the store that is away */
    wq_stats      stats;    /* the last that it told */

    /* Ending. */
    enum phase   phase;
    int          signal;      /* the first stop signal received; 0: none */
    bool         halted;      /* --halt was met, or a run exited with 255 */
    bool         succeeded;   /* --halt was met by enough keys that succeeded */
    bool         overdue;     /* --drain-timeout has passed */
    bool         gone;        /* the file of the queue was deleted, replaced */
    int          fatal;       /* exit status of a fatal error; 0: none */
    struct timer drain_limit; /* --drain-timeout */

    /* Since the start. */
    int64_t                started_ns;
    struct counts          counts;
    struct distinct        settled;    /* keys that were settled */
    size_t                 retrying;   /* see struct view */
    struct failures        failures;   /* which keys, and why */
    struct queue_durations durations;  /* of the queue; it is its sink */
    unsigned               reports;    /* of failures that will be retried, that
                                          may be printed now */
    int64_t                reports_ns; /* when `reports` last grew */
    uint64_t               unreported; /* failures that were not printed */
    uint64_t               number;     /* of the last run */
};

/* Run all keys. Returns the exit status (0 or more). A negative value -N means:
 * end the program with signal N, so that the parent process sees that signal.
 */
int runner_main(const struct options *options);

/* ---- add.c: keys come in ------------------------------------------------- */

/* Set `sink` and `result_sink`: keys of input, --list and `add=` are added. */
void add_connect(struct runner *runner);
/* A key was added: count and log it. `ctx` is the runner. */
void add_done(void *ctx, wq_key key, wq_added added, const wq_add_options *how);

/* ---- store.c: a shared queue --------------------------------------------- */

/* Open it. False: reported on stderr. Call store_close() in both cases. */
bool store_open(struct runner *runner);
void store_close(struct runner *runner);
/* Did it fail to answer, so that it is left alone for a moment? */
bool store_is_away(const struct runner *runner);
/* Can a get take a key now? Sometimes true although there is none. */
bool store_has_key(const struct runner *runner);
/* Get a key. WQ_ETIMEDOUT: there is none, or the store is away. */
wq_err store_get(struct runner *runner, wq_item **out);
/* Wake up when there is a key? */
void store_watch(struct runner *runner, bool wanted);
/* Add the keys of the batch. */
void store_flush(struct runner *runner);
/* Store the result of a run that is over. False: not now; try again later. */
bool store_result(struct runner *runner, struct run *run);

/* ---- slots.c: where runs are kept ---------------------------------------- */

/* The free slot with the lowest number, for a run of the item; NULL: out of
 * memory. */
struct slot *slot_take(struct runner *runner, wq_item *item);
/* --max-args: get further keys for the process of this slot. */
void slot_take_more(struct runner *runner, struct slot *slot);
/* The process has ended; the slot is still taken. */
void slot_end(struct runner *runner, const struct run *run);
/* The run in it is over. */
void slot_release(struct runner *runner, const struct run *run);
/* The run with this process id; NULL: none. */
struct run *slot_find(struct runner *runner, pid_t pid);
/* The run of this key whose process has started; NULL: none. */
struct run *slot_find_key(struct runner *runner, wq_key key);
/* Call `f` for each run whose process has started. */
void slots_each(struct runner *runner,
                void (*f)(struct runner *runner, struct run *run));
/* Call `f`, which may release the slot, for each run that slot_end() ended. */
void slots_each_ended(struct runner *runner,
                      void (*f)(struct runner *runner, struct run *run));
void slots_free(struct runner *runner);

/* ---- start.c: a run begins ----------------------------------------------- */

/* Run COMMAND for the item in the slot. */
void start_run(struct runner *runner, struct slot *slot);
/* --dry-run: print the command; the key has succeeded. */
void start_dry_run(struct runner *runner, struct slot *slot);

/* ---- finish.c: a run is over --------------------------------------------- */

/* The run is over, or could not be started: decide what happens to its key. */
void finish_run(struct runner *runner, struct run *run);
/* The store answers again: store the results that are left. */
void finish_recorded(struct runner *runner);
/* Give up the results that could not be stored. */
void finish_abandoned(struct runner *runner);
/* SIGCHLD: finish all runs whose process has ended. */
void finish_reaped(struct runner *runner);

/* ---- ending.c: when the program stops ------------------------------------ */

/* Start nothing more, let runs finish. `why` is for events. */
void ending_drain(struct runner *runner, const char *why);
/* A fatal error: likewise, and exit with `status`. */
void ending_fatal(struct runner *runner, int status);
/* A key was settled: is the condition of --halt met? */
void ending_check_halt(struct runner *runner);
/* Stop a run; kill it after --kill-after. */
void ending_stop_run(struct runner *runner, struct run *run);
/* INT, TERM, HUP, TSTP, CONT. */
void ending_signal(struct runner *runner, int number);
/* Close the inputs. With --pending-file, first read what they have without
 * waiting; unless `all`, regular files stay open, and are read to their end. */
void ending_close_inputs(struct runner *runner, bool all);
/* Is everything over? */
bool ending_is_over(struct runner *runner);
/* The exit status, as of runner_main(). */
int ending_status(struct runner *runner);

#endif
