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
 * A test's name is a sentence of at most ten words. A setup (or teardown) is
 * cmocka's: it takes `void **state` and returns 0; the test finds `state` under
 * the same name. A test missing from WQ_TESTS() is an unused function, which
 * the compiler reports.
 *
 * The program (support/main.c) runs all its tests, or those named on its
 * command line; CTest runs them one by one.
 */
#ifndef WQ_TEST_H
#define WQ_TEST_H

/* cmocka.h requires these four. */
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

/* Errors are compared by name, so that a failure can be read. */
#define assert_err(actual, expected)                                           \
    assert_string_equal(wq_err_name((wq_err)(actual)), wq_err_name(expected))

/* Ends a test file: the tests it holds, in the order they run. */
#define WQ_TESTS(...)                                                          \
    static const struct CMUnitTest the_tests[] = {__VA_ARGS__};                \
    const struct CMUnitTest       *wq_tests(size_t *n)                         \
    {                                                                          \
        *n = sizeof the_tests / sizeof the_tests[0];                           \
        return the_tests;                                                      \
    }                                                                          \
    struct CMUnitTest /* a semicolon follows */

/* The tests of the program, and how many there are. */
const struct CMUnitTest *wq_tests(size_t *n);

static inline size_t
wq_tests_count(void)
{
    size_t n;

    (void)wq_tests(&n);
    return n;
}

/* Skip this test: the machine lacks what it needs; `why` says what. With
 * CI=true in the environment a skipped test counts as failed. Does not return.
 * Call it from the test itself, not from a thread it started. */
_Noreturn void wq_test_skip(const char *why);

/* The same where nothing that could be installed would help, for example because
 * of the kernel: not a failure with CI=true. */
_Noreturn void wq_test_leave_out(const char *why);

#endif
