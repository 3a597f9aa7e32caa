/* SPDX-License-Identifier: MIT */
/* script.h: how does a scene become a row of a table?
 *
 *     static const struct scene scenes[] = {
 *         {"a READY key that is added again runs once",
 *          "add foo NEW; add foo MERGED; run foo; 50: add foo NEW"},
 *     };
 *
 * A script is steps, divided by ';'. A step is words: a verb and what it is
 * about. "50:" before a verb sets the time, which stays. Every test program
 * has its own verbs: a function that gets the words of a step, with empty
 * strings after the last. The name of a scene is printed before it runs; a step
 * that fails names its scene and itself.
 */
#ifndef WQ_TEST_SCRIPT_H
#define WQ_TEST_SCRIPT_H

#include "support/wq_test.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wq/wq.h>

#define LEN(array) (sizeof(array) / sizeof *(array))

struct scene {
    const char *name;
    const char *script;
};

enum { SCRIPT_WORDS = 16, SCRIPT_STEP = 160 };

/* Carries out a step; word[0] is the verb. False: there is no such verb. */
typedef bool (*actor)(const char *const *word);

/* Where the test is. */
static struct {
    const char *scene;
    char        step[SCRIPT_STEP];
    int64_t     now;
} script;

/* "expected N" or "expected name", and what there was instead. */
static inline void
expect_word(const char *actual, const char *expected)
{
    if (strcmp(actual, expected) != 0)
        fail_msg("%s: \"%s\": %s, expected %s", script.scene, script.step,
                 actual, expected);
}

/* A number; WQ_FOREVER is "never". */
static inline int64_t
number(const char *word)
{
    char         *end;
    const int64_t n = strtoll(word, &end, 10);

    if (strcmp(word, "never") == 0)
        return WQ_FOREVER;
    if (*end)
        fail_msg("%s: \"%s\": %s is not a number", script.scene, script.step,
                 word);
    return n;
}

static inline void
expect_number(int64_t actual, const char *expected)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%" PRId64, actual);
    if (actual != number(expected))
        expect_word(text, expected);
}

/* An error as scripts name it: without "WQ_". */
static inline void
expect_err(wq_err actual, const char *expected)
{
    expect_word(wq_err_name(actual) + strlen("WQ_"), expected);
}

static inline bool
is(const char *word, const char *name)
{
    return strcmp(word, name) == 0;
}

/* Calls `act` with every word of `text`. */
static inline void
for_words(const char *text, void (*act)(const char *word))
{
    char copy[SCRIPT_STEP], *rest;

    (void)snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest))
        act(word);
}

static inline void
script_run_step(char *step, actor act)
{
    const char *words[SCRIPT_WORDS + 1];
    size_t      len = 0;
    char       *rest;

    for (size_t i = 0; i <= SCRIPT_WORDS; i++)
        words[i] = "";
    for (char *word = strtok_r(step, " ", &rest); word && len < SCRIPT_WORDS;
         word = strtok_r(NULL, " ", &rest)) {
        const size_t last = strlen(word) - 1;
        if (len == 0 && word[last] == ':') {
            word[last] = '\0';
            script.now = number(word);
        } else {
            words[len++] = word;
        }
    }
    if (!act(words))
        fail_msg("%s: \"%s\": no such verb", script.scene, script.step);
}

/* `check` follows every step; NULL: nothing does. */
static inline void
script_run(const struct scene *scene, actor act, void (*check)(void))
{
    const char *step = scene->script;

    if (*scene->name)
        print_message("%s\n", scene->name);
    script.scene = scene->name;
    script.now = 0;
    while (*step) {
        char words[SCRIPT_STEP];

        step += strspn(step, " ");
        const size_t len = strcspn(step, ";");
        assert_true(len < sizeof words);
        (void)snprintf(words, sizeof words, "%.*s", (int)len, step);
        memcpy(script.step, words, sizeof words);
        script_run_step(words, act);
        if (check)
            check();
        step += len + (step[len] == ';');
    }
}

/* Every scene between a setup and a teardown of its own. */
static inline void
script_run_all(const struct scene *scenes, size_t n, CMFixtureFunction setup,
               actor act, void (*check)(void), CMFixtureFunction teardown)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(setup(NULL), 0);
        script_run(&scenes[i], act, check);
        assert_int_equal(teardown(NULL), 0);
    }
}

#endif
