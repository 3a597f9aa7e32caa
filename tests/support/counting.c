/* SPDX-License-Identifier: MIT */
/* counting.c: an allocator that counts and fails on request; see counting.h. */
#include "support/counting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD = 16,       /* before each block: its size; keeps malloc's alignment */
    NEW_BYTE = 0xa5, /* fills a new block */
    OLD_BYTE = 0xdb, /* fills a freed block */
};

static bool
is_refused(struct counting *mem, uint64_t call)
{
    const uint64_t at = atomic_load(&mem->fail_at);
    return at && (call == at || (atomic_load(&mem->for_good) && call > at));
}

static void
note_peak(struct counting *mem, size_t bytes)
{
    size_t peak = atomic_load(&mem->peak);
    while (bytes > peak &&
           !atomic_compare_exchange_weak(&mem->peak, &peak, bytes))
        ;
}

static void *
allocate(void *ctx, size_t n)
{
    struct counting *mem = ctx;

    if (is_refused(mem, atomic_fetch_add(&mem->calls, 1) + 1)) {
        atomic_fetch_add(&mem->refused, 1);
        return NULL;
    }
    char *block = malloc(HEAD + n);
    if (!block) {
        fprintf(stderr, "counting: out of memory on this machine\n");
        abort();
    }
    memcpy(block, &n, sizeof n);
    memset(block + HEAD, NEW_BYTE, n);
    atomic_fetch_add(&mem->blocks, 1);
    note_peak(mem, atomic_fetch_add(&mem->bytes, n) + n);
    return block + HEAD;
}

static void
release(void *ctx, void *p, size_t n)
{
    struct counting *mem = ctx;
    char            *block = (char *)p - HEAD;
    size_t           allocated;

    memcpy(&allocated, block, sizeof allocated);
    if (allocated != n) {
        fprintf(stderr, "counting: allocated with %zu bytes, freed with %zu\n",
                allocated, n);
        abort();
    }
    memset(block, OLD_BYTE, HEAD + n);
    free(block);
    atomic_fetch_sub(&mem->blocks, 1);
    atomic_fetch_sub(&mem->bytes, n);
}

void
counting_init(struct counting *mem)
{
    memset(mem, 0, sizeof *mem);
    mem->allocator = (wq_allocator){
        .size = sizeof mem->allocator,
        .ctx = mem,
        .alloc = allocate,
        .free = release,
    };
}

void
counting_fail(struct counting *mem, uint64_t nth, enum counting_mode mode)
{
    atomic_store(&mem->for_good, mode == COUNTING_FROM_NOW);
    atomic_store(&mem->fail_at, atomic_load(&mem->calls) + nth);
}

void
counting_heal(struct counting *mem)
{
    atomic_store(&mem->fail_at, 0);
}
