/* SPDX-License-Identifier: MIT */
/* capture.h: how is the output of one run read?
 *
 *     child ──pipe──► read ──► tag ──► store ──────────────► outbox ──► ours
 *                       └──► --results     end of run, or end of line
 *
 * With one slot no other run can print meanwhile. Then output that is large is
 * printed as it comes (`direct`), which spares the file. It is stored again if
 * the reader does not read for a second: a slow reader does not stop a run.
 *
 * Pipes, and not a file for each run as GNU parallel has it: a child that opens
 * /dev/stderr, as `echo oops >/dev/stderr` or `tee /dev/stderr` do, truncates a
 * file and loses earlier output. And a file that is used again would mix runs if
 * a process outlives its run.
 *
 * Internal to output.c and capture.c.
 */
#ifndef WQ_TOOL_CAPTURE_H
#define WQ_TOOL_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/text.h"
#include "options/options.h"
#include "output/order.h"
#include "output/outbox.h"
#include "output/results_dir.h"
#include "output/store.h"
#include "output/tail.h"
#include "process/run.h"

/* Bytes read at a time: the default capacity of a pipe. */
#define CAPTURE_PIECE 65536

/* One of the two pipes of a run. */
struct stream {
    struct capture *capture;     /* it is part of */
    enum target     target;      /* where its output goes */
    int             fd;          /* our end; -1: closed */
    int             child_fd;    /* the child's end; -1: closed */
    struct watch    watch;       /* of fd */
    struct store    store;       /* output that must wait */
    bool            within_line; /* the last byte did not end a line */
    bool            direct;      /* its output is printed at once */
    bool            full;        /* ... but the target has no space */
    int             copy;        /* file of --results; -1: none */
    uint64_t        bytes;       /* read so far */
};

/* Both pipes of a run. */
struct capture {
    struct output  *output;         /* it belongs to */
    struct stream   streams[2];     /* by enum target */
    struct run     *run;            /* NULL: it is over */
    struct tail     tail;           /* of its stderr */
    struct wq__text tag;            /* before each line */
    struct wq__text key;            /* of a run that is over; for messages */
    bool            impatient;      /* it is not direct any more: the reader is
                                       slow */
    uint64_t        over_at;        /* bytes read when the run was over */
    int64_t         await_until_ns; /* 0: its end is not awaited */
    uint64_t        ticket;         /* --keep-order: until its output is
                                       complete; 0: none */
    struct capture *before, *after; /* in a list of struct output */
};

struct captures {
    struct capture *first, *last;
    size_t          len;
};

struct output {
    const struct options *options;
    struct loop          *loop;
    struct outbox        *box;
    struct order         *order; /* --keep-order; NULL: none */
    struct results_dir    results;
    struct captures       running;  /* of runs that are not over */
    struct capture       *owner;    /* has stdout and stderr for itself; NULL:
                                      none */
    struct timer          patience; /* set while the owner waits for space */
    struct captures       late;     /* of runs that are over; oldest first */
    size_t                awaited;  /* of these: their end is awaited */
    struct timer          grace;    /* set while an end is awaited */
    uint64_t              cut;      /* runs whose output was cut */
    struct captures       free;     /* to be used again */
    struct timer          sweep;    /* set while a pipe is not watched */
    unsigned              eager;  /* so many runs are watched from the start */
    bool                  paused; /* some pipes wait for congestion to end */
    bool                  copy_failed;          /* --results, reported once */
    struct wq__text       line;                 /* for output_line() */
    char                  piece[CAPTURE_PIECE]; /* the last one read */

    void (*on_progress)(void *ctx);
    void *ctx;
};

/* Prepare an unused capture for a run: pipes, tag, files of --results. False:
 * reported on stderr, and nothing stays open. */
bool capture_open(struct capture *c, struct output *output,
                  const struct run *run);
/* Close everything that is open. */
void capture_close(struct capture *c);
/* Close the child's ends of the pipes. */
void capture_close_child(struct capture *c);
void capture_free(struct capture *c);

/* Read what is in the pipes now, without waiting. */
void capture_drain(struct capture *c);
/* The bytes read so far. */
uint64_t capture_bytes(const struct capture *c);
/* Are both pipes closed? */
bool capture_is_closed(const struct capture *c);

/* Is its output printed line by line? With --line-buffer; and after the run,
 * unless its end is awaited and it is short. */
bool capture_is_by_line(const struct capture *c);

/* Read a piece; the pipe must be ready. False: the pipe has ended. If `full` is
 * set then, nothing was read. */
bool stream_read(struct stream *s);
void stream_close(struct stream *s);
/* Print what is stored, and end its last line if another line follows. */
void stream_flush(struct stream *s);

#endif
