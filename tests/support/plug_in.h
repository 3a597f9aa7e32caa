/* SPDX-License-Identifier: MIT */
/* plug_in.h: which wq_order do the tests plug in?
 *
 *     struct plug_in p = {.newest_first = true};
 *     const wq_order order = plug_in_order(&p);
 *
 * An array of keys in the order they came, searched from end to end. It counts
 * what it is called for, and refuses a push when a test says so. A key that it
 * does not know, or knows already, ends the program.
 */
#ifndef WQ_TEST_PLUG_IN_H
#define WQ_TEST_PLUG_IN_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <wq/wq.h>

enum { PLUG_IN_MAX = 256 };

struct plug_in_entry {
    wq_key key;
    int    priority;
    void  *memory; /* from `mem`; NULL without it */
};

struct plug_in {
    /* What the test chooses. */
    bool                newest_first; /* LIFO instead of FIFO */
    bool                is_full;      /* by priority, with raise and remove */
    const wq_allocator *mem;          /* each push allocates; NULL: none does */
    int                 refuse; /* the push to refuse: 1 is the next; 0: none */
    wq_err              refusal; /* what it returns then; WQ_OK: WQ_ENOMEM */
    char                letter;  /* the keys left at destroy begin with it */

    struct plug_in_entry entries[PLUG_IN_MAX];
    size_t               len;

    /* What happened. */
    bool     refused; /* set by a refused push; the test clears it */
    uint64_t touches, raises, destroys;
    wq_key   touched; /* by the last touch or raise */
    size_t   seen;    /* keys left at destroy that begin with `letter` */
};

static inline void
plug_in_append(struct plug_in *p, struct plug_in_entry entry)
{
    if (p->len == PLUG_IN_MAX)
        abort();
    p->entries[p->len++] = entry;
}

static inline struct plug_in_entry
plug_in_extract(struct plug_in *p, size_t i)
{
    const struct plug_in_entry entry = p->entries[i];

    p->len--;
    memmove(p->entries + i, p->entries + i + 1,
            (p->len - i) * sizeof p->entries[0]);
    return entry;
}

static inline void
plug_in_drop(struct plug_in *p, size_t i)
{
    const struct plug_in_entry entry = plug_in_extract(p, i);

    if (entry.memory)
        p->mem->free(p->mem->ctx, entry.memory, 1);
}

/* By where its bytes are: they stay. */
static inline size_t
plug_in_find(const struct plug_in *p, wq_key key)
{
    for (size_t i = 0; i < p->len; i++)
        if (p->entries[i].key.data == key.data)
            return i;
    abort();
}

static inline wq_err
plug_in_push(void *self, wq_key key, int priority)
{
    struct plug_in      *p = (struct plug_in *)self;
    struct plug_in_entry entry = {key, priority, NULL};

    if (p->refuse > 0 && --p->refuse == 0) {
        p->refused = true;
        return p->refusal ? p->refusal : WQ_ENOMEM;
    }
    if (p->mem)
        entry.memory = p->mem->alloc(p->mem->ctx, 1);
    if (p->mem && !entry.memory)
        return WQ_ENOMEM;
    plug_in_append(p, entry);
    return WQ_OK;
}

static inline void
plug_in_touch(void *self, wq_key key)
{
    struct plug_in *p = (struct plug_in *)self;

    p->touched = p->entries[plug_in_find(p, key)].key;
    p->touches++;
}

static inline void
plug_in_raise(void *self, wq_key key, int priority)
{
    struct plug_in      *p = (struct plug_in *)self;
    struct plug_in_entry entry = plug_in_extract(p, plug_in_find(p, key));

    if (priority <= entry.priority)
        abort(); /* that is no raise */
    entry.priority = priority;
    plug_in_append(p, entry);
    p->touched = key;
    p->raises++;
}

static inline void
plug_in_remove(void *self, wq_key key)
{
    struct plug_in *p = (struct plug_in *)self;

    plug_in_drop(p, plug_in_find(p, key));
}

static inline bool
plug_in_pop(void *self, wq_key *out)
{
    struct plug_in *p = (struct plug_in *)self;
    size_t          next = 0;

    if (p->len == 0)
        return false;
    for (size_t i = 1; i < p->len; i++) {
        const int a = p->entries[i].priority, b = p->entries[next].priority;
        if (!p->is_full || a == b ? p->newest_first : a > b)
            next = i;
    }
    *out = p->entries[next].key;
    plug_in_drop(p, next);
    return true;
}

static inline size_t
plug_in_len(void *self)
{
    return ((const struct plug_in *)self)->len;
}

static inline void
plug_in_destroy(void *self)
{
    struct plug_in *p = (struct plug_in *)self;

    p->destroys++;
    for (; p->len; plug_in_drop(p, p->len - 1))
        p->seen += *(const char *)p->entries[p->len - 1].key.data == p->letter;
}

/* `p` is lent to the queue. */
static inline wq_order
plug_in_order(struct plug_in *p)
{
    return (wq_order){
        .size = sizeof(wq_order),
        .self = p,
        .push = plug_in_push,
        .touch = plug_in_touch,
        .pop = plug_in_pop,
        .len = plug_in_len,
        .destroy = plug_in_destroy,
        .raise = p->is_full ? plug_in_raise : NULL,
        .remove = p->is_full ? plug_in_remove : NULL,
    };
}

#endif
