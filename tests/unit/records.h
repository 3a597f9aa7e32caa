/* SPDX-License-Identifier: MIT */
/* records.h: where do tests of the structures below the core get records?
 *
 * The index, the heap and the ready order all speak of records in a slab. These
 * are records without a core around them.
 */
#ifndef WQ_TEST_RECORDS_H
#define WQ_TEST_RECORDS_H

#include <string.h>

#include "core/hash.h"
#include "core/record.h"
#include "core/slab.h"

/* A record for `key`, which must be short, in the slab. 0: no memory. */
static inline wq__ref
record_for(struct wq__slab *recs, const struct wq__hasher *hasher, wq_key key)
{
    wq__ref         ref;
    struct wq__rec *rec =
        wq__slab_alloc(recs, offsetof(struct wq__rec, bytes) + key.len, &ref);

    if (!rec)
        return 0;
    *rec = (struct wq__rec){
        .hash = wq__hash(hasher, key),
        .len_less_1 = (uint16_t)(key.len - 1),
    };
    memcpy(rec->bytes, key.data, key.len);
    return ref;
}

#endif
