/* SPDX-License-Identifier: MIT */
/* text.c: a buffer for text; see text.h. */
#include "text/text.h"

#include <stdint.h>

enum {
#if WQ_DEBUG
    CAP_FIRST = 2, /* rare paths become daily ones */
#else
    CAP_FIRST = 4096,
#endif
};

static wq_err
grow(struct wq__text *t)
{
    if (t->cap > SIZE_MAX / 2)
        return WQ_ENOMEM;
    const size_t cap = t->cap ? t->cap * 2 : CAP_FIRST;
    char        *data = t->mem->alloc(t->mem->ctx, cap);
    if (!data)
        return WQ_ENOMEM;

    if (t->data) {
        memcpy(data, t->data, t->len);
        t->mem->free(t->mem->ctx, t->data, t->cap);
    }
    t->data = data;
    t->cap = cap;
    return WQ_OK;
}

static wq_err
spill(struct wq__text *t)
{
    const size_t len = t->len;

    t->len = 0;
    return len ? t->write(t->ctx, t->data, len) : WQ_OK;
}

void
wq__text_init(struct wq__text *t, const wq_allocator *mem)
{
    *t = (struct wq__text){.make_room = grow, .mem = mem};
}

void
wq__text_fini(struct wq__text *t)
{
    if (t->data)
        t->mem->free(t->mem->ctx, t->data, t->cap);
    *t = (struct wq__text){0};
}

void
wq__text_spill(struct wq__text *t, char *buffer, size_t cap, wq_write write,
               void *ctx)
{
    *t = (struct wq__text){
        .cap = cap, .make_room = spill, .write = write, .ctx = ctx};
    t->data = buffer;
}

void
wq__text_flush(struct wq__text *t)
{
    if (!t->err)
        t->err = spill(t);
}

void
wq__text_add(struct wq__text *t, const char *bytes, size_t n)
{
    while (n && !t->err) {
        const size_t room = t->cap - t->len;
        const size_t part = n < room ? n : room;
        if (part == 0) {
            t->err = t->make_room(t);
            continue;
        }
        memcpy(t->data + t->len, bytes, part);
        t->len += part;
        bytes += part;
        n -= part;
    }
}
