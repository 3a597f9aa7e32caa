/* SPDX-License-Identifier: MIT */
/* records.h: where does a key end, and is it one?
 *
 * Bytes of one stream go in, keys come out: each is ended by the delimiter, or
 * is a line of JSON with --input=jsonl.
 */
#ifndef WQ_TOOL_RECORDS_H
#define WQ_TOOL_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "options/options.h"

/* Where keys go. */
struct input_sink {
    /* A key; after_ns is -1 and prioritized false if the input has none. */
    void (*key)(void *ctx, const void *data, size_t len, int64_t after_ns,
                bool prioritized, int priority);
    /* A record that is not a key; already reported on stderr. */
    void (*bad)(void *ctx);
    /* The source has ended. `failed`: by an error, already reported. */
    void (*ended)(void *ctx, bool failed);
    void *ctx; /* first argument of the three */
};

/* Zero is an empty one. */
struct records {
    const struct options    *options; /* delimiter, format */
    const struct input_sink *sink;
    const char              *name;     /* of the source, for messages */
    uint64_t                 line;     /* of the next record, from 1 */
    struct wq__text          part;     /* the beginning of a record */
    bool                     overlong; /* the rest of the record is dropped */
};

void records_init(struct records *records, const struct options *options,
                  const struct input_sink *sink, const char *name);
void records_feed(struct records *records, const char *data, size_t len);
/* Feed it what is in the pipe now, without waiting for more. */
void records_feed_pipe(struct records *records, int fd);
/* Is the beginning of a record there, but not its end? */
bool records_has_part(const struct records *records);
/* The stream begins anew: forget the beginning of a record. */
void records_begin_anew(struct records *records);
/* The stream has ended: a record without a delimiter counts as well. */
void records_end(struct records *records);
void records_fini(struct records *records);

#endif
