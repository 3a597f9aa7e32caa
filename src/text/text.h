/* SPDX-License-Identifier: MIT */
/* text.h: where does text go while it is being written?
 *
 * Into a buffer, which either grows, or spills its bytes to a wq_write(). An
 * error is kept and ends the writing, so that only the last line of a function
 * that writes a text must check it:
 *
 *     struct wq__text t;
 *     wq__text_init(&t, mem);
 *     wq__text_str(&t, "depth ");
 *     wq__text_u64(&t, 7);
 *     return t.err;
 *
 * Cost: O(bytes), amortised.
 *
 * The command compiles this room into itself, so text/ depends on no other room.
 */
#ifndef WQ_TEXT_TEXT_H
#define WQ_TEXT_TEXT_H

#include <string.h>

#include <wq/inspect.h>

/* Zero is an empty text that grows by malloc(). */
struct wq__text {
    char               *data; /* bytes written and not yet spilled */
    size_t              len;  /* of them */
    size_t              cap;  /* bytes at `data` */
    wq_err              err; /* the first error; then nothing more is written */
    const wq_allocator *mem; /* where it grows; NULL: malloc(). Not owned */
    wq_write            write; /* where it spills; NULL: it grows */
    void               *ctx;   /* first argument of write() */
};

/* A text that grows; `data` is allocated from `mem`. */
void wq__text_init(struct wq__text *t, const wq_allocator *mem);

/* Free what it allocated; a text that grows is empty then. */
void wq__text_fini(struct wq__text *t);

/* A text that spills from the caller's buffer of `cap` bytes; allocates nothing.
 * wq__text_flush() writes the rest. */
void wq__text_spill(struct wq__text *t, char *buffer, size_t cap,
                    wq_write write, void *ctx);
void wq__text_flush(struct wq__text *t);

void wq__text_add(struct wq__text *t, const void *bytes, size_t n);

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
