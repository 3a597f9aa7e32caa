/* SPDX-License-Identifier: MIT */
/* configs.h: which configs does wq_create() accept? And an order that accepts no
 * key, for tests of fields that exclude an order. */
#ifndef WQ_BEHAVIOUR_CONFIGS_H
#define WQ_BEHAVIOUR_CONFIGS_H

#include "fixture.h"

static inline wq_err
try_config(const wq_config *config)
{
    wq_queue    *q = NULL;
    const wq_err err = wq_create(config, &q);

    assert_true(err ? !q : q != NULL);
    wq_destroy(q);
    return err;
}

static inline wq_err
push_nothing(void *self, wq_key key, int priority)
{
    (void)self, (void)key, (void)priority;
    return WQ_EFULL;
}

static inline bool
pop_nothing(void *self, wq_key *out)
{
    (void)self, (void)out;
    return false;
}

static inline size_t
len_of_nothing(void *self)
{
    (void)self;
    return 0;
}

static const wq_order order_of_nothing = {
    .size = sizeof order_of_nothing,
    .push = push_nothing,
    .pop = pop_nothing,
    .len = len_of_nothing,
};

#endif
