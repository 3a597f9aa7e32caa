/* SPDX-License-Identifier: MIT */
/* sweep.h: what does an operation do when an allocation fails?
 *
 *     static const struct fixture a_queue = {make_queue, end_queue};
 *
 *     assert_fails_cleanly(&a_queue, "add", op_add, nothing_added, one_added);
 *     assert_needs_no_memory(&a_queue, "done", op_done, one_done);
 *     assert_ends_without_memory(&a_queue);
 *
 * A sweep fails the first allocation of the operation, then the second, and so
 * on until the operation makes fewer allocations than that: first this
 * allocation only, then this one and all later ones. A round is
 *
 *     setup; op with the nth allocation failing;
 *     if it failed: unchanged, then op again, which must succeed;
 *     done; teardown; and nothing is left allocated.
 *
 * `unchanged` asserts that op had no effect, `done` that it took effect; NULL:
 * there is nothing to assert. A failure names the operation, the round, and the
 * expected and actual value.
 */
#ifndef WQ_TEST_SWEEP_H
#define WQ_TEST_SWEEP_H

#include <wq/wq.h>

#include "support/counting.h"

/* What is there before the operation; it is made and ended in each round. */
struct fixture {
    void (*setup)(struct counting *mem);
    void (*teardown)(void);
};

/* `op` returns WQ_ENOMEM in at least one round: otherwise the sweep would test
 * nothing. */
void assert_fails_cleanly(const struct fixture *fixture, const char *name,
                          wq_err (*op)(void), void (*unchanged)(void),
                          void (*done)(void));

/* The same for an operation that needs memory only if tables are small, as in
 * debug builds: in others it may succeed in every round. */
void assert_fails_cleanly_in_small_tables(const struct fixture *fixture,
                                          const char *name, wq_err (*op)(void),
                                          void (*unchanged)(void),
                                          void (*done)(void));

/* `op` succeeds in every round. */
void assert_needs_no_memory(const struct fixture *fixture, const char *name,
                            wq_err (*op)(void), void (*done)(void));

/* The teardown alone. */
void assert_ends_without_memory(const struct fixture *fixture);

#endif
