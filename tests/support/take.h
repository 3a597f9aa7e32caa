/* SPDX-License-Identifier: MIT */
/* take.h: how do tests get a key that they know? */
#ifndef WQ_TEST_TAKE_H
#define WQ_TEST_TAKE_H

#include "support/wq_test.h"

#include <string.h>

#include <wq/wq.h>

/* The next item, which must be there already and have this key. */
static inline wq_item *
take_key(wq_queue *q, const char *key)
{
    wq_item *item = NULL;

    assert_err(wq_get_within(q, 0, &item), WQ_OK);
    assert_int_equal(item->key.len, strlen(key));
    assert_memory_equal(item->key.data, key, strlen(key));
    return item;
}

#endif
