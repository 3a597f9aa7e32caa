/* SPDX-License-Identifier: MIT */
/* counting.c: an allocator that counts and fails on request; see counting.h. */
#include "support/counting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD = 16,       /* before each block: its size; keeps malloc's alignment */
    NEW_BYTE = 0xa5, /* what a block is full of that nobody has written yet */
    OLD_BYTE = 0xdb, /* and one that was given back */
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
        fprintf(stderr, "counting: the machine itself has no memory\n");
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
    size_t           asked;

    memcpy(&asked, block, sizeof asked);
    if (asked != n) {
        fprintf(stderr, "counting: asked for %zu bytes, gave back %zu\n", asked,
                n);
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

/* ---- the sweep ---------------------------------------------------------- */

enum { ROUNDS_MAX = 1000 }; /* an operation that asks more often has gone mad */

struct round {
    bool        reached; /* the allocation to refuse was asked for */
    bool        failed;  /* and the operation said so */
    const char *broken;
};

static const char *
message(const struct counting_sweep *sweep, uint64_t nth,
        enum counting_mode mode, const char *what, long long expected,
        long long got)
{
    static char text[256];

    (void)snprintf(
        text, sizeof text,
        "%s, allocation %llu refused %s: %s: expected %lld, got %lld",
        sweep->name, (unsigned long long)nth,
        mode == COUNTING_ONCE ? "once" : "and all later ones", what, expected,
        got);
    return text;
}

static struct round
play_round(const struct counting_sweep *sweep, uint64_t nth,
           enum counting_mode mode)
{
    struct counting mem;
    struct round    round = {0};

    counting_init(&mem);
    void *ctx = sweep->setup(&mem);
    counting_fail(&mem, nth, mode);
    wq_err err = sweep->op(ctx);
    counting_heal(&mem);
    round.reached = mem.refused > 0;
    round.failed = err != WQ_OK;
    if (err && (err != WQ_ENOMEM || !round.reached))
        round.broken = message(sweep, nth, mode, "error", WQ_ENOMEM, err);
    if (err) {
        sweep->unchanged(ctx);
        err = sweep->op(ctx);
        if (err && !round.broken)
            round.broken = message(sweep, nth, mode, "retry", WQ_OK, err);
    }
    sweep->done(ctx);
    sweep->teardown(ctx);
    if (mem.bytes && !round.broken)
        round.broken =
            message(sweep, nth, mode, "bytes leaked", 0, (long long)mem.bytes);
    return round;
}

static const char *
sweep_mode(const struct counting_sweep *sweep, enum counting_mode mode)
{
    bool some_failed = false;

    for (uint64_t nth = 1; nth <= ROUNDS_MAX; nth++) {
        const struct round round = play_round(sweep, nth, mode);
        if (round.broken)
            return round.broken;
        some_failed |= round.failed;
        if (some_failed == sweep->needs_none && (some_failed || !round.reached))
            return message(sweep, nth, mode, "some round fails",
                           !sweep->needs_none, some_failed);
        if (!round.reached)
            return NULL;
    }
    return message(sweep, ROUNDS_MAX, mode, "an end", 1, 0);
}

const char *
counting_sweep(const struct counting_sweep *sweep)
{
    const char *broken = sweep_mode(sweep, COUNTING_ONCE);
    return broken ? broken : sweep_mode(sweep, COUNTING_FROM_NOW);
}
