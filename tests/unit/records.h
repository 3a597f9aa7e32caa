/* SPDX-License-Identifier: MIT */
/* records.h: where do tests of the structures below the core get records?
 *
 * The index, the heap and the ready order all refer to records in a slab. These
 * are records without a core around them: number n has the key n, as wq_u64()
 * makes it. All memory is counted.
 */
#ifndef WQ_TEST_RECORDS_H
#define WQ_TEST_RECORDS_H

#include "support/wq_test.h"

#include <string.h>

#include "core/hash.h"
#include "core/record.h"
#include "core/slab.h"
#include "support/counting.h"

#ifndef RECORDS /* a test may need more */
#define RECORDS 200
#endif

static struct {
    struct counting   mem;
    struct wq__slab   slab;
    struct wq__hasher hasher;
    uint64_t          keys[RECORDS];
    wq__ref           refs[RECORDS];
} recs;

/* Hashes are cut to the bits of `mask`. */
static inline void
open_records(uint32_t mask)
{
    memset(&recs, 0, sizeof recs);
    counting_init(&recs.mem);
    recs.hasher =
        wq__hasher_of((struct wq__hash_key){.k0 = 3, .k1 = 4, .mask = mask});
    wq__slab_init(&recs.slab, &recs.mem.allocator);
    for (size_t i = 0; i < RECORDS; i++) {
        const size_t size =
            offsetof(struct wq__rec, bytes) + sizeof recs.keys[i];
        struct wq__rec *rec = wq__slab_alloc(&recs.slab, size, &recs.refs[i]);

        assert_non_null(rec);
        recs.keys[i] = i;
        *rec = (struct wq__rec){
            .hash = wq__hash(&recs.hasher, wq_u64(&recs.keys[i])),
            .len_less_1 = sizeof recs.keys[i] - 1,
        };
        memcpy(rec->bytes, &recs.keys[i], sizeof recs.keys[i]);
    }
}

static inline void
close_records(void)
{
    wq__slab_fini(&recs.slab);
    assert_int_equal(recs.mem.bytes, 0);
}

static inline struct wq__rec *
record(size_t who)
{
    return wq__slab_at(&recs.slab, recs.refs[who]);
}

#endif
