/* SPDX-License-Identifier: MIT */
/* input.h: where do keys come from, and where does one end?
 *
 * Each source is read when it has something, a bounded piece at a time, so that
 * the loop has its turn; regular files in the same pieces.
 */
#ifndef WQ_TOOL_INPUT_H
#define WQ_TOOL_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop.h"
#include "options.h"

/* Who takes what is read. */
struct input_sink {
    /* A key; after_ns -1 and prioritized false: not said. */
    void (*key)(void *ctx, const void *data, size_t len, int64_t after_ns,
                bool prioritized, int priority);
    /* Something that is no key; told on stderr already. */
    void (*bad)(void *ctx);
    /* The source has ended; `failed`: by an error, told on stderr already. */
    void (*ended)(void *ctx, bool failed);
    void *ctx;
};

/* Records of one stream: bytes go in, keys come out. Zero is an empty one. */
struct records {
    const struct options    *options; /* delimiter, jsonl */
    const struct input_sink *sink;
    const char              *name; /* of the source, for messages */
    uint64_t                 line; /* of what comes next, from 1 */
    char                    *part; /* the beginning of a record */
    size_t                   len, room;
    bool                     overlong; /* the rest of it is left out */
};

void records_init(struct records *records, const struct options *options,
                  const struct input_sink *sink, const char *name);
void records_feed(struct records *records, const char *data, size_t len);
/* What was not ended by a delimiter is a record, too. */
void records_end(struct records *records);
void records_fini(struct records *records);

struct input; /* opaque: one source */

/* Open `file` ("-": stdin) and read. False: told on stderr. sink->ended() is
 * called once, unless options->follow. `sink` must outlive it. */
bool input_open(const struct options *options, struct loop *loop,
                const char *file, const struct input_sink *sink,
                struct input **out);
/* Stop reading, and free. NULL is allowed. */
void input_close(struct input *input);

#endif
