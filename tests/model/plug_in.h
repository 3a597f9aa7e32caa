/* SPDX-License-Identifier: MIT */
/* plug_in.h: what does a wq_order look like that can do everything, or next to
 * nothing, and refuses a push when told to?
 *
 * An array of keys in the order they came, searched from end to end. The full
 * one goes by priority, hears of raises and gives keys back; the other one
 * knows neither.
 */
#ifndef WQ_TEST_MODEL_PLUG_IN_H
#define WQ_TEST_MODEL_PLUG_IN_H

#include <stdlib.h>
#include <string.h>

#include <wq/wq.h>

#include "model/model.h"

struct plug_in {
    enum model_order order;
    bool             is_full; /* by priority, with raise and remove */
    wq_key           keys[MODEL_KEYS];
    int              priorities[MODEL_KEYS];
    size_t           len;
    int              refuse;  /* as the model's */
    bool             refused; /* during this operation */
    uint64_t         touches, raises;
};

static inline void
plug_in_append(struct plug_in *p, wq_key key, int priority)
{
    if (p->len == MODEL_KEYS)
        abort(); /* pushed twice */
    p->keys[p->len] = key;
    p->priorities[p->len++] = priority;
}

static inline void
plug_in_take(struct plug_in *p, size_t i)
{
    p->len--;
    memmove(p->keys + i, p->keys + i + 1, (p->len - i) * sizeof p->keys[0]);
    memmove(p->priorities + i, p->priorities + i + 1,
            (p->len - i) * sizeof p->priorities[0]);
}

/* By where its bytes are: they stay. */
static inline size_t
plug_in_find(const struct plug_in *p, wq_key key)
{
    for (size_t i = 0; i < p->len; i++)
        if (p->keys[i].data == key.data)
            return i;
    abort(); /* told of a key it does not have */
}

static inline wq_err
plug_in_push(void *self, wq_key key, int priority)
{
    struct plug_in *p = self;

    if (p->refuse > 0 && --p->refuse == 0) {
        p->refused = true;
        return WQ_ENOMEM;
    }
    plug_in_append(p, key, priority);
    return WQ_OK;
}

static inline void
plug_in_touch(void *self, wq_key key)
{
    struct plug_in *p = self;

    (void)plug_in_find(p, key);
    p->touches++;
}

static inline void
plug_in_raise(void *self, wq_key key, int priority)
{
    struct plug_in *p = self;
    const size_t    i = plug_in_find(p, key);

    if (priority <= p->priorities[i])
        abort(); /* that is no raise */
    plug_in_take(p, i);
    plug_in_append(p, key, priority);
    p->raises++;
}

static inline void
plug_in_remove(void *self, wq_key key)
{
    struct plug_in *p = self;
    plug_in_take(p, plug_in_find(p, key));
}

static inline bool
plug_in_pop(void *self, wq_key *out)
{
    struct plug_in *p = self;
    size_t          next = 0;

    if (p->len == 0)
        return false;
    for (size_t i = 1; i < p->len; i++) {
        const int a = p->priorities[i], b = p->priorities[next];
        if (!p->is_full || a == b ? p->order == MODEL_LIFO : a > b)
            next = i;
    }
    *out = p->keys[next];
    plug_in_take(p, next);
    return true;
}

static inline size_t
plug_in_len(void *self)
{
    return ((const struct plug_in *)self)->len;
}

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
        .raise = p->is_full ? plug_in_raise : NULL,
        .remove = p->is_full ? plug_in_remove : NULL,
    };
}

#endif
