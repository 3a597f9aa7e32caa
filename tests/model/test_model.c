/* SPDX-License-Identifier: MIT */
/* test_model.c: do the core and the model agree on random lives, and on those
 * that were once found to be interesting?
 *
 * WQ_SEED=n in the environment plays the one seed n, in all worlds. A failure
 * prints the seed, the step, both values and the last operations.
 */
#include "support/wq_test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/dice.h"

/* The property brings no library of its own. */
#include "model/core_prop.c"
#include "model/model.c"

enum {
    EPISODE_MIN = 200, /* bytes: about half as many steps */
    EPISODE_MAX = 4000,
    STEPS = 260000, /* in each of the worlds below */
};

static struct core_prop_report report;

/* One random life in the world that the byte `kind` stands for. */
static void
play(uint64_t seed, uint8_t kind)
{
    static uint8_t bytes[EPISODE_MAX];
    struct dice    dice = dice_from(seed);
    const size_t   len =
        EPISODE_MIN + dice_roll(&dice, EPISODE_MAX - EPISODE_MIN);

    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)dice_roll(&dice, 256);
    bytes[0] = kind;
    if (core_prop(bytes, len, &report) != 0)
        fail_msg("replay with WQ_SEED=%llu, world %u\n%s",
                 (unsigned long long)seed, kind, report.text);
}

/* Lives until there were STEPS steps: those of seeds 1, 2, 3, ... */
static void
play_many(uint8_t kind)
{
    const uint64_t first = dice_env_seed(1);
    uint64_t       seed = first;
    size_t         steps = 0;

    do {
        play(seed++, kind);
        steps += report.steps;
    } while (steps < STEPS && !getenv("WQ_SEED"));
    print_message("%zu steps, seeds %llu to %llu\n", steps,
                  (unsigned long long)first, (unsigned long long)seed - 1);
}

/* The world's byte: mask of the hash, four times the order, and whether every
 * add respects a backoff. */
enum { SPREAD = 0, ALL_EQUAL = 1, TWO = 2, FOUR = 3 };
enum { LINE = 0, FIFO_PLUG_IN = 8, LIFO_PLUG_IN = 12 };
enum { RESPECT = 16 };

/* L1 to L6 */
TEST(core_agrees_with_the_model)
{
    play_many(SPREAD | LINE);
}

/* O-11 */
TEST(core_agrees_with_the_model_when_all_hashes_are_equal)
{
    play_many(ALL_EQUAL | LINE);
}

TEST(core_agrees_with_the_model_when_hashes_have_two_bits)
{
    play_many(FOUR | LINE);
}

/* */
TEST(core_agrees_with_the_model_behind_a_fifo_plug_in)
{
    play_many(SPREAD | FIFO_PLUG_IN);
}

TEST(core_agrees_with_the_model_behind_a_lifo_plug_in)
{
    play_many(TWO | LIFO_PLUG_IN);
}

/* O-16 */
TEST(core_agrees_with_the_model_when_adds_respect_a_backoff)
{
    play_many(SPREAD | LINE | RESPECT);
    play_many(SPREAD | FIFO_PLUG_IN | RESPECT);
}

/* ---- the corpus --------------------------------------------------------- */

/* fuzz/corpus/core, seen from where this file lies. */
static const char *
corpus(void)
{
    static char path[1000];
    const char *slash = strrchr(__FILE__, '/');

    (void)snprintf(path, sizeof path, "%.*s/../../fuzz/corpus/core",
                   slash ? (int)(slash - __FILE__) : 1, slash ? __FILE__ : ".");
    return path;
}

static void
replay(const char *directory, const char *name)
{
    static uint8_t bytes[1 << 20];
    char           path[1500];

    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    const size_t len = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    if (core_prop(bytes, len, &report) != 0)
        fail_msg("%s\n%s", path, report.text);
}

TEST(every_kept_case_holds)
{
    const char *directory = corpus();
    DIR        *dir = opendir(directory);
    size_t      cases = 0;

    if (!dir)
        wq_test_skip("the corpus is not where this test was compiled");
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.') {
            replay(directory, entry->d_name);
            cases++;
        }
    (void)closedir(dir);
    print_message("%zu cases\n", cases);
    assert_true(cases > 0);
}

TEST(no_bytes_at_all_are_a_life_too)
{
    assert_int_equal(core_prop(NULL, 0, &report), 0);
    assert_int_equal(report.steps, 0);
}

WQ_TESTS(test(core_agrees_with_the_model),
         test(core_agrees_with_the_model_when_all_hashes_are_equal),
         test(core_agrees_with_the_model_when_hashes_have_two_bits),
         test(core_agrees_with_the_model_behind_a_fifo_plug_in),
         test(core_agrees_with_the_model_behind_a_lifo_plug_in),
         test(core_agrees_with_the_model_when_adds_respect_a_backoff),
         test(every_kept_case_holds), test(no_bytes_at_all_are_a_life_too));
