/* SPDX-License-Identifier: MIT */
/* text.c: where does text go while it is being written? See text.h. */
#include "text/text.h"

#include <stdint.h>
#include <stdlib.h>

enum {
#if WQ_DEBUG
    CAP_FIRST = 2, /* so that every test grows it */
#else
    CAP_FIRST = 4096,
#endif
};

static void *
allocate(const wq_allocator *mem, size_t size)
{
    return mem ? mem->alloc(mem->ctx, size) : malloc(size);
}

static void
release(const wq_allocator *mem, void *data, size_t size)
{
    if (mem && data)
        mem->free(mem->ctx, data, size);
    else
        free(data);
}

static wq_err
grow(struct wq__text *t)
{
    if (t->cap > SIZE_MAX / 2)
        return WQ_ENOMEM;
    const size_t cap = t->cap ? t->cap * 2 : CAP_FIRST;
    char        *data = allocate(t->mem, cap);
    if (!data)
        return WQ_ENOMEM;

    if (t->len)
        memcpy(data, t->data, t->len);
    release(t->mem, t->data, t->cap);
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
    *t = (struct wq__text){.mem = mem};
}

void
wq__text_fini(struct wq__text *t)
{
    if (!t->write)
        release(t->mem, t->data, t->cap);
    *t = (struct wq__text){.mem = t->mem};
}

void
wq__text_spill(struct wq__text *t, char *buffer, size_t cap, wq_write write,
               void *ctx)
{
    *t = (struct wq__text){.cap = cap, .write = write, .ctx = ctx};
    t->data = buffer;
}

void
wq__text_flush(struct wq__text *t)
{
    if (!t->err)
        t->err = spill(t);
}

void
wq__text_add(struct wq__text *t, const void *bytes, size_t n)
{
    const char *from = bytes;

    while (n && !t->err) {
        const size_t left = t->cap - t->len;
        const size_t part = n < left ? n : left;
        if (part == 0) {
            t->err = t->write ? spill(t) : grow(t);
            continue;
        }
        memcpy(t->data + t->len, from, part);
        t->len += part;
        from += part;
        n -= part;
    }
}
