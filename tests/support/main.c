/* SPDX-License-Identifier: MIT */
/* main.c: how does a test program behave?
 *
 *     prog           runs all its tests
 *     prog NAME...   runs these
 *     prog --list    prints their names, one per line
 *
 * Tests that the program's backend leaves out (support/backend.h) do not run.
 * The list has a line that begins with '#' for each of them.
 *
 * Exit status: 0 all passed, 1 some failed, 2 no such test, 77 none failed but
 * some were skipped.
 */
#include "support/wq_test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/backend.h"

enum { EXIT_UNKNOWN = 2, EXIT_SKIPPED = 77 };

static bool some_skipped;

void
wq_test_skip(const char *why)
{
    const char *ci = getenv("CI");
    if (ci && strcmp(ci, "true") == 0)
        fail_msg("skipped, which is a failure with CI=true: %s", why);
    wq_test_leave_out(why);
}

void
wq_test_leave_out(const char *why)
{
    print_message("skipped: %s\n", why);
    some_skipped = true;
    skip();
    abort(); /* skip() does not return */
}

/* Why the backend leaves this test out; NULL: it does not. */
static const char *
why_left_out(const char *name)
{
    const struct backend_skip *skip = backend.skips;

    while (skip && skip->test && strcmp(skip->test, name) != 0)
        skip++;
    return skip && skip->test ? skip->why : NULL;
}

static void
list(const struct CMUnitTest *tests, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *why = why_left_out(tests[i].name);

        if (why)
            printf("# left out: %s: %s\n", tests[i].name, why);
        else
            puts(tests[i].name);
    }
}

static const struct CMUnitTest *
find(const struct CMUnitTest *tests, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(tests[i].name, name) == 0)
            return &tests[i];
    return NULL;
}

/* Returns how many of the `n` tests fail. cmocka's macro for this needs an
 * array of known length; the function that the macro calls does not. */
static int
run(const char *group, const struct CMUnitTest *tests, size_t n)
{
    return _cmocka_run_group_tests(group, tests, n, NULL, NULL);
}

/* Without those that are left out. */
static int
run_all(const char *group, const struct CMUnitTest *tests, size_t n)
{
    struct CMUnitTest *some = calloc(n + 1, sizeof *some);
    size_t             kept = 0;

    if (!some)
        abort();
    for (size_t i = 0; i < n; i++)
        if (!why_left_out(tests[i].name))
            some[kept++] = tests[i];
    const int failed = run(group, some, kept);
    free(some);
    return failed;
}

int
main(int argc, char **argv)
{
    size_t                   n;
    const struct CMUnitTest *tests = wq_tests(&n);

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list(tests, n);
        return EXIT_SUCCESS;
    }

    int failed = argc == 1 ? run_all(argv[0], tests, n) : 0;
    for (int i = 1; i < argc; i++) {
        const struct CMUnitTest *one = find(tests, n, argv[i]);
        if (!one) {
            fprintf(stderr, "%s: no test named %s\n", argv[0], argv[i]);
            return EXIT_UNKNOWN;
        }
        failed += run(argv[i], one, 1);
    }
    if (argc == 2 && some_skipped) /* for cmocka, a setup that skips fails */
        return EXIT_SKIPPED;
    if (failed)
        return EXIT_FAILURE;
    return some_skipped ? EXIT_SKIPPED : EXIT_SUCCESS;
}
