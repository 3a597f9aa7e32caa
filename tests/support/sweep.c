/* SPDX-License-Identifier: MIT */
/* sweep.c: an operation with each of its allocations failing; see sweep.h. */
#include "support/sweep.h"

#include "support/wq_test.h"

enum { ROUNDS_MAX = 1000 }; /* no operation allocates so often */

/* Does the operation need memory? */
enum need { NEEDS_SOME, MAY_NEED_SOME, NEEDS_NONE };

struct sweep {
    const struct fixture *fixture;
    const char           *name;
    wq_err (*op)(void);
    void (*unchanged)(void);
    void (*done)(void);
    enum need need;
};

struct round {
    uint64_t           nth; /* the allocation that fails */
    enum counting_mode mode;
    bool               reached; /* out: it was made */
    bool               failed;  /* out: and the operation returned an error */
};

static void
expect(const struct sweep *s, const struct round *r, const char *what,
       long long expected, long long got)
{
    if (expected != got)
        fail_msg("%s, allocation %llu failed %s: %s: expected %lld, got %lld",
                 s->name, (unsigned long long)r->nth,
                 r->mode == COUNTING_ONCE ? "once" : "and all later ones", what,
                 expected, got);
}

static void
call(void (*check)(void))
{
    if (check)
        check();
}

static void
play(const struct sweep *s, struct round *r)
{
    struct counting mem;

    counting_init(&mem);
    s->fixture->setup(&mem);
    counting_fail(&mem, r->nth, r->mode);
    const wq_err err = s->op();
    counting_heal(&mem);
    r->reached = mem.refused > 0;
    r->failed = err != WQ_OK;
    if (r->failed) {
        expect(s, r, "error", r->reached ? WQ_ENOMEM : WQ_OK, err);
        call(s->unchanged);
        expect(s, r, "retry", WQ_OK, s->op());
    }
    call(s->done);
    s->fixture->teardown();
    expect(s, r, "bytes leaked", 0, (long long)mem.bytes);
}

static void
sweep_in_mode(const struct sweep *s, enum counting_mode mode)
{
    bool some_failed = false;

    for (uint64_t nth = 1; nth <= ROUNDS_MAX; nth++) {
        struct round r = {.nth = nth, .mode = mode};

        play(s, &r);
        some_failed |= r.failed;
        if (s->need == NEEDS_NONE || (s->need == NEEDS_SOME && !r.reached))
            expect(s, &r, "some round fails", s->need == NEEDS_SOME,
                   some_failed);
        if (!r.reached)
            return;
    }
    fail_msg("%s makes more than %d allocations", s->name, ROUNDS_MAX);
}

static void
sweep(const struct sweep *s)
{
    sweep_in_mode(s, COUNTING_ONCE);
    sweep_in_mode(s, COUNTING_FROM_NOW);
}

void
assert_fails_cleanly(const struct fixture *fixture, const char *name,
                     wq_err (*op)(void), void (*unchanged)(void),
                     void (*done)(void))
{
    sweep(&(struct sweep){fixture, name, op, unchanged, done, NEEDS_SOME});
}

void
assert_fails_cleanly_in_small_tables(const struct fixture *fixture,
                                     const char *name, wq_err (*op)(void),
                                     void (*unchanged)(void),
                                     void (*done)(void))
{
    sweep(&(struct sweep){fixture, name, op, unchanged, done,
                          WQ_DEBUG ? NEEDS_SOME : MAY_NEED_SOME});
}

void
assert_needs_no_memory(const struct fixture *fixture, const char *name,
                       wq_err (*op)(void), void (*done)(void))
{
    sweep(&(struct sweep){fixture, name, op, NULL, done, NEEDS_NONE});
}

void
assert_ends_without_memory(const struct fixture *fixture)
{
    struct counting mem;

    counting_init(&mem);
    fixture->setup(&mem);
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    fixture->teardown();
    assert_int_equal(mem.bytes, 0);
}
