/* SPDX-License-Identifier: MIT */
/* wq_test.h: how is a test written here?
 *
 *     #include "support/wq_test.h"
 *
 *     TEST(key_added_twice_is_handed_out_once)
 *     {
 *         ...
 *         assert_int_equal(wq_len(q), 1);
 *     }
 *
 *     WQ_TESTS(test(key_added_twice_is_handed_out_once),
 *              test_with(queue_starts_empty, make_queue, drop_queue));
 *
 * A test's name is a sentence. A setup (or teardown) is cmocka's: it takes
 * `void **state` and returns 0; the test finds `state` under the same name. A
 * test missing from WQ_TESTS() is an unused function: the compiler tells.
 *
 * The program (support/main.c) runs all its tests, or those it is given by
 * name; CTest runs them one by one.
 */
#ifndef WQ_TEST_H
#define WQ_TEST_H

/* What cmocka.h wants to be included before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Opens the definition of a test. */
#define TEST(name) static void name(void **state __attribute__((unused)))

/* Entries of WQ_TESTS(). */
#define test(name) cmocka_unit_test(name)
#define test_with(name, setup, teardown)                                       \
    cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Ends a test file: the tests it holds, in the order they run. */
#define WQ_TESTS(...)                                                          \
    const struct CMUnitTest wq_tests[] = {__VA_ARGS__};                        \
    const size_t            wq_tests_len = sizeof wq_tests / sizeof wq_tests[0]

extern const struct CMUnitTest wq_tests[];
extern const size_t            wq_tests_len;

/* This test cannot be asked here, because `why`. Ends the test, which counts
 * as skipped; with CI=true in the environment, as failed. To be called by the
 * test itself, not by a thread it started.
 */
_Noreturn void wq_test_skip(const char *why);

#endif
