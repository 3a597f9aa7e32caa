/* SPDX-License-Identifier: MIT */
/* output.h: where does the output of a run go?
 *
 * GROUP_RUN: to memory (or a file, if it is large) until the run is over, then
 * to our stdout and stderr in one piece. GROUP_LINE: line by line. GROUP_NONE:
 * children write to our stdout and stderr. --tag puts text before each line (not
 * with GROUP_NONE). --results=DIR keeps a copy of each run's output.
 *
 * A slow reader never blocks the loop: output that cannot be written waits in
 * memory. output_congested() means that no more runs should start;
 * output_idle() that everything is written.
 */
#ifndef WQ_TOOL_OUTPUT_H
#define WQ_TOOL_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "options/options.h"
#include "process/run.h"

struct output; /* opaque */

/* False: reported on stderr. `options` must outlive it. Calls on_progress(ctx)
 * when congestion ends, everything is written, or stdout is closed. */
bool output_create(const struct options *options, struct loop *loop,
                   void (*on_progress)(void *ctx), void       *ctx,
                   struct output **out);
/* Write what can be written without blocking, and free. NULL is allowed. */
void output_destroy(struct output *output);

/* Before the start of the child: fds[0] and fds[1] are its stdout and stderr
 * (-1: it shares ours); do not close them. Needs the run's key, number, slot and
 * attempt. False: reported on stderr; the run does not start. */
bool output_begin(struct output *output, struct run *run, int fds[2]);
/* After the start, whether it succeeded or not: closes fds[]. */
void output_started(struct output *output, struct run *run);
/* The child has ended: read what is in the pipes, print it, and free
 * run->capture. If other processes have the pipes open, the output is read and
 * printed later; the run need not wait for that. */
void output_finish(struct output *output, struct run *run);

/* --keep-order: the next ticket; 0: out of memory. Output is printed in the
 * order of the tickets of its runs, each until output_settle(). */
uint64_t output_expect(struct output *output);
/* No run of this ticket follows. */
void output_settle(struct output *output, uint64_t ticket);
/* No run follows at all. Also without --keep-order. */
void output_settle_all(struct output *output);

/* Print a line of our own on stdout: --dry-run, --json. */
void output_line(struct output *output, const char *text, size_t len);

/* Does so much wait to be written that no more runs should start? */
bool output_congested(const struct output *output);
/* Is everything written, and no more output awaited? */
bool output_idle(const struct output *output);
/* Runs write to stdout themselves, and its reader has closed it: then
 * output_broken() is true, and the runs that fail are not to blame. */
bool output_lost_reader(struct output *output);
/* Is stdout unusable: its reader has closed it (EPIPE), or an error was reported
 * on stderr? */
bool output_broken(const struct output *output);
/* Was output lost by such an error, not by EPIPE? Exit with STATUS_ERROR. */
bool output_failed(const struct output *output);

#endif
