/* SPDX-License-Identifier: MIT */
/* lifo.h: what does a wq_order look like that hands out the newest key first,
 * and can be told to run out of memory?
 */
#ifndef WQ_TEST_LIFO_H
#define WQ_TEST_LIFO_H

#include <stdbool.h>
#include <stddef.h>

#include <wq/wq.h>

enum { LIFO_MAX = 64 };

struct lifo {
    wq_key keys[LIFO_MAX];
    size_t len;
    size_t touches;  /* how often a READY key was added again */
    size_t destroys; /* how often it was destroyed */
    size_t seen;     /* then: keys in it that begin with the right letter */
    char   letter;   /* that one */
    int    refuse;   /* the push to refuse: 1 is the next; 0: none */
};

static inline wq_err
lifo_push(void *self, wq_key key, int priority)
{
    struct lifo *l = (struct lifo *)self;

    (void)priority;
    if (l->refuse && --l->refuse == 0)
        return WQ_ENOMEM;
    l->keys[l->len++] = key;
    return WQ_OK;
}

static inline void
lifo_touch(void *self, wq_key key)
{
    (void)key;
    ((struct lifo *)self)->touches++;
}

static inline bool
lifo_pop(void *self, wq_key *out)
{
    struct lifo *l = (struct lifo *)self;

    if (l->len == 0)
        return false;
    *out = l->keys[--l->len];
    return true;
}

static inline size_t
lifo_len(void *self)
{
    return ((struct lifo *)self)->len;
}

static inline void
lifo_destroy(void *self)
{
    struct lifo *l = (struct lifo *)self;

    l->destroys++;
    for (size_t i = 0; i < l->len; i++)
        l->seen += *(const char *)l->keys[i].data == l->letter;
}

static inline wq_order
lifo_order(struct lifo *l)
{
    return (wq_order){
        .size = sizeof(wq_order),
        .self = l,
        .push = lifo_push,
        .touch = lifo_touch,
        .pop = lifo_pop,
        .len = lifo_len,
        .destroy = lifo_destroy,
    };
}

#endif
