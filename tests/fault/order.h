/* SPDX-License-Identifier: MIT */
/* order.h: what does a wq_order look like that needs memory for every key?
 *
 * First come, first served, in a list of nodes from the allocator under test: a
 * push can fail like any other allocation.
 */
#ifndef WQ_TEST_ORDER_H
#define WQ_TEST_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include <wq/wq.h>

struct order_node {
    struct order_node *next;
    wq_key             key;
};

struct order {
    const wq_allocator *mem;
    struct order_node  *first, *last;
    size_t              len;
};

static inline wq_err
order_push(void *self, wq_key key, int priority)
{
    struct order      *o = self;
    struct order_node *node = o->mem->alloc(o->mem->ctx, sizeof *node);

    (void)priority;
    if (!node)
        return WQ_ENOMEM;
    *node = (struct order_node){.key = key};
    *(o->last ? &o->last->next : &o->first) = node;
    o->last = node;
    o->len++;
    return WQ_OK;
}

static inline bool
order_pop(void *self, wq_key *out)
{
    struct order      *o = self;
    struct order_node *node = o->first;

    if (!node)
        return false;
    *out = node->key;
    o->first = node->next;
    if (!o->first)
        o->last = NULL;
    o->len--;
    o->mem->free(o->mem->ctx, node, sizeof *node);
    return true;
}

static inline size_t
order_len(void *self)
{
    return ((const struct order *)self)->len;
}

static inline void
order_destroy(void *self)
{
    wq_key ignored;
    while (order_pop(self, &ignored))
        ;
}

static inline wq_order
order_of(struct order *o)
{
    return (wq_order){
        .size = sizeof(wq_order),
        .self = o,
        .push = order_push,
        .pop = order_pop,
        .len = order_len,
        .destroy = order_destroy,
    };
}

#endif
