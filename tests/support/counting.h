/* SPDX-License-Identifier: MIT */
/* counting.h: how much memory does the code under test hold, and what does it
 * do when there is none?
 *
 *     struct counting mem;
 *     counting_init(&mem);
 *     ... WQ_CONFIG(.allocator = &mem.allocator) ...
 *     counting_fail(&mem, 3, COUNTING_ONCE);    the third from now is refused
 *     ...
 *     assert_int_equal(mem.bytes, 0);           nothing leaked
 *
 * What is handed out is filled with rubbish, and what comes back is too:
 * whoever reads what it did not write, or what it gave away, sees it. A block
 * that comes back with another size than it was asked for with ends the
 * program.
 *
 * counting_sweep() refuses the first, then the second, ... allocation of an
 * operation until the operation no longer gets that far.
 *
 * Threads: the numbers may be read and failures set from any thread.
 */
#ifndef WQ_TEST_COUNTING_H
#define WQ_TEST_COUNTING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

enum counting_mode {
    COUNTING_ONCE,     /* one allocation is refused, the next is not */
    COUNTING_FROM_NOW, /* it and all later ones are */
};

struct counting {
    wq_allocator     allocator; /* to be given to a config or a core */
    _Atomic size_t   bytes;     /* handed out and not given back */
    _Atomic size_t   blocks;    /* in how many pieces */
    _Atomic size_t   peak;      /* the most `bytes` ever was */
    _Atomic uint64_t calls;     /* allocations asked for */
    _Atomic uint64_t refused;   /* how many of them were refused */
    _Atomic uint64_t fail_at;   /* the value of `calls` to refuse; 0: none */
    atomic_bool      for_good;  /* and all later ones */
};

/* `mem` must not be moved afterwards. */
void counting_init(struct counting *mem);

/* Refuse the `nth` allocation from now (1: the next one). */
void counting_fail(struct counting *mem, uint64_t nth, enum counting_mode mode);

/* From now on there is memory again. */
void counting_heal(struct counting *mem);

/* One operation that may be refused memory, and what must hold around it. Every
 * function gets what `setup` returned. A round is
 *
 *     setup, op with the nth allocation refused;
 *     if it failed: unchanged, then op again, which must succeed;
 *     (an operation of which no round fails is no test, and is reported)
 *     done, teardown, and nothing is left allocated.
 */
struct counting_sweep {
    const char *name;
    void *(*setup)(struct counting *mem);
    wq_err (*op)(void *ctx);
    void (*unchanged)(void *ctx); /* asserts that nothing has happened */
    void (*done)(void *ctx);      /* asserts that it has */
    void (*teardown)(void *ctx);
    bool needs_none; /* it must not fail, whatever is refused */
};

/* In both modes. NULL when all went well, else a message that names the
 * operation, the round and both values (a static buffer). */
const char *counting_sweep(const struct counting_sweep *sweep);

#endif
