/* SPDX-License-Identifier: MIT */
/* output.h: where does the output of a run go?
 *
 * GROUP_RUN: to memory (or a file, when it is much) until the run is over, then
 * to our stdout and stderr in one piece. GROUP_LINE: line by line. GROUP_NONE:
 * children have our stdout and stderr. --tag puts text before each line (not
 * with GROUP_NONE). --results=DIR keeps a copy of each run's output.
 *
 * The loop is never blocked by a reader that is slow: what cannot be written
 * waits in memory, output_congested() asks to start no more runs, and
 * output_idle() tells when all is out. O_NONBLOCK must not be set on our stdout
 * and stderr (others share them); ask poll(), and write PIPE_BUF at a time.
 */
#ifndef WQ_TOOL_OUTPUT_H
#define WQ_TOOL_OUTPUT_H

#include <stdbool.h>

#include "loop.h"
#include "options.h"
#include "run.h"

struct output; /* opaque */

/* False: told on stderr. `options` must outlive it. on_progress(ctx) is called
 * when congestion ends, all is out, or stdout has gone. */
bool output_create(const struct options *options, struct loop *loop,
                   void (*on_progress)(void *ctx), void       *ctx,
                   struct output **out);
/* Writes what can be written without waiting, and frees. NULL is allowed. */
void output_destroy(struct output *output);

/* Before the child is started: fds[0] and fds[1] become what it gets as stdout
 * and stderr (-1: it has ours). They stay output's. The run's key, number,
 * slot, attempt are set. False: told on stderr; the run does not start. */
bool output_begin(struct output *output, struct run *run, int fds[2]);
/* The child has its copies now (or could not be started: then finish follows):
 * close fds[]. */
void output_started(struct output *output, struct run *run);
/* The child is gone: take what is in the pipes now, without waiting for
 * others that may hold them, let it out, and free run->capture. The outcome of
 * the run is set (for --results). */
void output_finish(struct output *output, struct run *run);

/* A line of our own on stdout, after what is there: --dry-run, --json. */
void output_line(struct output *output, const char *text, size_t len);

/* So much waits to be written that no more runs should be started. */
bool output_congested(const struct output *output);
/* Nothing waits. */
bool output_idle(const struct output *output);
/* Nothing can be written to our stdout any more: nobody reads it (EPIPE), or an
 * error that was told on stderr. */
bool output_broken(const struct output *output);
/* Output was lost by such an error (not by EPIPE): exit with STATUS_ERROR. */
bool output_failed(const struct output *output);

#endif
