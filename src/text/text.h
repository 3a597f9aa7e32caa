/* SPDX-License-Identifier: MIT */
/* text.h: where does text go while it is being written?
 *
 * Into a buffer, which either grows, or spills what it holds to a wq_write().
 * An error is kept and ends the writing, so that only the last line of a
 * function that writes a text must look at it:
 *
 *     struct wq__text t;
 *     wq__text_init(&t, mem);
 *     wq__text_str(&t, "depth ");
 *     wq__text_u64(&t, 7);
 *     return t.err;
 *
 * Cost: O(bytes), amortised.
 */
#ifndef WQ_TEXT_TEXT_H
#define WQ_TEXT_TEXT_H

#include <string.h>

#include <wq/inspect.h>

struct wq__text {
    char  *data; /* what was written and not spilled */
    size_t len;
    size_t cap;
    wq_err err; /* the first one; nothing is written any more */
    /* The buffer is full: make room for at least one byte, or say why not. */
    wq_err (*make_room)(struct wq__text *t);
    const wq_allocator *mem;   /* of one that grows; not owned */
    wq_write            write; /* of one that spills */
    void               *ctx;   /* first argument of write() */
};

/* One that grows; what it holds comes from `mem`: `cap` bytes at `data`. */
void wq__text_init(struct wq__text *t, const wq_allocator *mem);

/* Give that back. */
void wq__text_fini(struct wq__text *t);

/* One that spills from a buffer of `cap` bytes, the caller's: no memory is
 * asked for. wq__text_flush() writes the rest. */
void wq__text_spill(struct wq__text *t, char *buffer, size_t cap,
                    wq_write write, void *ctx);
void wq__text_flush(struct wq__text *t);

void wq__text_add(struct wq__text *t, const char *bytes, size_t n);

static inline void
wq__text_str(struct wq__text *t, const char *s)
{
    wq__text_add(t, s, strlen(s));
}

static inline void
wq__text_char(struct wq__text *t, char c)
{
    wq__text_add(t, &c, 1);
}

#endif
