/* SPDX-License-Identifier: MIT */
/* main.c: how does a test program behave?
 *
 *     prog           runs all its tests
 *     prog NAME...   runs these
 *     prog --list    prints their names, one a line
 *
 * Exit status: 0 all passed, 1 some failed, 2 no such test, 77 none failed but
 * some were skipped.
 */
#include "support/wq_test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_UNKNOWN = 2, EXIT_SKIPPED = 77 };

static bool some_skipped;

void
wq_test_skip(const char *why)
{
    const char *ci = getenv("CI");
    if (ci && strcmp(ci, "true") == 0)
        fail_msg("skipped, which CI does not allow: %s", why);
    print_message("skipped: %s\n", why);
    some_skipped = true;
    skip();
    abort(); /* skip() does not return */
}

static const struct CMUnitTest *
find(const char *name)
{
    for (size_t i = 0; i < wq_tests_len; i++)
        if (strcmp(wq_tests[i].name, name) == 0)
            return &wq_tests[i];
    return NULL;
}

/* How many of the `n` tests fail. cmocka's macro for this counts an array
 * whose length the compiler must know; the function below it does not.
 */
static int
run(const char *group, const struct CMUnitTest *tests, size_t n)
{
    return _cmocka_run_group_tests(group, tests, n, NULL, NULL);
}

int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < wq_tests_len; i++)
            puts(wq_tests[i].name);
        return EXIT_SUCCESS;
    }

    int failed = argc == 1 ? run(argv[0], wq_tests, wq_tests_len) : 0;
    for (int i = 1; i < argc; i++) {
        const struct CMUnitTest *one = find(argv[i]);
        if (!one) {
            fprintf(stderr, "%s: no test named %s\n", argv[0], argv[i]);
            return EXIT_UNKNOWN;
        }
        failed += run(argv[i], one, 1);
    }
    if (failed)
        return EXIT_FAILURE;
    return some_skipped ? EXIT_SKIPPED : EXIT_SUCCESS;
}
