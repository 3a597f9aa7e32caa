/* SPDX-License-Identifier: MIT */
/* counting.h: how much memory does the code under test hold, and what does it
 * do when it runs out?
 *
 *     struct counting mem;
 *     counting_init(&mem);
 *     ... WQ_CONFIG(.allocator = &mem.allocator) ...
 *     counting_fail(&mem, 3, COUNTING_ONCE);    the third from now fails
 *     ...
 *     assert_int_equal(mem.bytes, 0);           nothing leaked
 *
 * New blocks and freed blocks are filled with garbage, so that code which reads
 * uninitialised or freed memory shows. A block that is freed with another size
 * than it was allocated with aborts the program.
 *
 * support/sweep.h fails each allocation of an operation in turn.
 *
 * Threads: any thread may read the numbers and set failures.
 */
#ifndef WQ_TEST_COUNTING_H
#define WQ_TEST_COUNTING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

enum counting_mode {
    COUNTING_ONCE,     /* one allocation fails, the next does not */
    COUNTING_FROM_NOW, /* this and all later ones fail */
};

struct counting {
    wq_allocator     allocator; /* for a config or a core */
    _Atomic size_t   bytes;     /* allocated and not freed */
    _Atomic size_t   blocks;    /* allocated and not freed */
    _Atomic size_t   peak;      /* maximum of `bytes` */
    _Atomic uint64_t calls;     /* allocations so far */
    _Atomic uint64_t refused;   /* how many of them failed */
    _Atomic uint64_t fail_at;   /* value of `calls` to fail at; 0: none */
    atomic_bool      for_good;  /* fail all later ones, too */
};

/* Do not move `mem` afterwards. */
void counting_init(struct counting *mem);

/* Fail the `nth` allocation from now (1: the next one). */
void counting_fail(struct counting *mem, uint64_t nth, enum counting_mode mode);

/* From now on no allocation fails. */
void counting_heal(struct counting *mem);

#endif
