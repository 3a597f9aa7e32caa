/* SPDX-License-Identifier: MIT */
/* input.h: how are keys read from a file, a pipe or stdin?
 *
 * A source is read when it is ready, a bounded piece at a time, so that the
 * event loop stays responsive.
 */
#ifndef WQ_TOOL_INPUT_H
#define WQ_TOOL_INPUT_H

#include <stdbool.h>

#include "base/loop.h"
#include "input/records.h"
#include "options/options.h"

struct input; /* opaque: one source */

/* Open `file` ("-": stdin) and read it. False: reported on stderr. Calls
 * sink->ended() once, unless options->follow. `sink` must outlive it. */
bool input_open(const struct options *options, struct loop *loop,
                const char *file, const struct input_sink *sink,
                struct input **out);
/* wq will start no more runs: read only what is needed to know which keys are
 * left. Of a pipe, that is what is in it now; of a regular file all: the loop
 * reads it until input_is_over(). */
void input_read_rest(struct input *input);
/* Is there nothing more to read, now that input_read_rest() was called? */
bool input_is_over(const struct input *input);
/* Were bytes left unread, as far as is known? */
bool input_is_unread(const struct input *input);
/* Stop reading, and free. NULL is allowed. */
void input_close(struct input *input);

#endif
