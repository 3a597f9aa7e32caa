/* SPDX-License-Identifier: MIT */
/* test_model.c: do the core and the model agree on random lives, and on those
 * that were once found to be interesting?
 *
 * WQ_SEED=n in the environment plays the one seed n, in all worlds. A failure
 * prints the seed, the step, both values and the last operations.
 */
#define _FILE_OFFSET_BITS 64 /* else readdir() fails where numbers are larger */

#include "support/wq_test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/core_prop.h"
#include "unit/dice.h"

enum {
    EPISODE_MIN = 200, /* bytes: about half as many steps */
    EPISODE_MAX = 4000,

    /* Steps in each of the worlds below; two million in all. */
    STEPS_LINE = 350000,
    STEPS_ALL_EQUAL = 50000,
    STEPS_FOUR = 50000,
    STEPS_FIFO = 100000,
    STEPS_LIFO = 50000,
    STEPS_FULL_FIFO = 100000,
    STEPS_FULL_LIFO = 50000,
    STEPS_RESPECT = 100000,
    STEPS_RESPECT_PLUG_IN = 50000,
    STEPS_AGES = 100000,
    STEPS_BOUNDED = 150000,
    STEPS_BOUNDED_RESPECT = 50000,
    STEPS_BOUNDED_PLUG_IN = 50000,
    STEPS_GROUPS = 100000,
    STEPS_BOUNDED_GROUPS = 100000,
    STEPS_SERIAL = 100000,
    STEPS_PAIRS = 50000,
    STEPS_BOUNDED_SERIAL = 50000,
    STEPS_AGEING = 100000,
    STEPS_AGEING_GROUPS = 50000,
    STEPS_BYTES = 100000,
    STEPS_BYTES_GROUPS = 100000,
    STEPS_BYTES_AGEING = 50000,
    STEPS_REBUILT = 40000,
    STEPS_REBUILT_RESPECT = 40000,
    STEPS_REBUILT_BOUNDED = 20000,
};

static struct core_prop_report report;

/* One random life in the world that `kind` and `special` stand for. */
static void
play(uint64_t seed, uint8_t kind, uint8_t special)
{
    static uint8_t bytes[EPISODE_MAX];
    struct dice    dice = dice_from(seed);
    const size_t   len =
        EPISODE_MIN + dice_roll(&dice, EPISODE_MAX - EPISODE_MIN);

    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)dice_roll(&dice, 256);
    bytes[0] = kind;
    bytes[2] = (uint8_t)((bytes[2] & ~CORE_PROP_SPECIAL) | special);
    if (core_prop(bytes, len, &report) != 0) {
        (void)fputs(report.text, stderr); /* cmocka would cut it off */
        fail_msg("replay with WQ_SEED=%llu, world %u, special %u",
                 (unsigned long long)seed, kind, special);
    }
}

/* A step takes a sanitizer three times as long. What the steps show does not
 * depend on it, and fuzz_core takes them with both sanitizers, too. */
#ifdef __SANITIZE_ADDRESS__
#define SHARE 4
#else
#define SHARE 1
#endif

/* Lives until there were so many steps: those of seeds 1, 2, 3, ... */
static void
play_special(uint8_t kind, uint8_t special, size_t least)
{
    const uint64_t first = dice_env_seed(1);
    uint64_t       seed = first;
    size_t         steps = 0;

    do {
        play(seed++, kind, special);
        steps += report.steps;
    } while (steps < least / SHARE && !getenv("WQ_SEED"));
    print_message("%zu steps, seeds %llu to %llu\n", steps,
                  (unsigned long long)first, (unsigned long long)seed - 1);
}

static void
play_many(uint8_t kind, size_t least)
{
    play_special(kind, 0, least);
}

/* L1 to L6 */
TEST(core_agrees_with_the_model)
{
    play_many(CORE_PROP_SPREAD | CORE_PROP_LINE, STEPS_LINE);
}

/* O-11 */
TEST(core_agrees_with_the_model_when_all_hashes_are_equal)
{
    play_many(CORE_PROP_ALL_EQUAL | CORE_PROP_LINE, STEPS_ALL_EQUAL);
}

TEST(core_agrees_with_the_model_when_hashes_have_two_bits)
{
    play_many(CORE_PROP_FOUR | CORE_PROP_LINE | CORE_PROP_AGES, STEPS_FOUR);
}

/* */
TEST(core_agrees_with_the_model_behind_a_fifo_plug_in)
{
    play_many(CORE_PROP_SPREAD | CORE_PROP_FIFO_PLUG_IN, STEPS_FIFO);
}

TEST(core_agrees_with_the_model_behind_a_lifo_plug_in)
{
    play_many(CORE_PROP_TWO | CORE_PROP_LIFO_PLUG_IN, STEPS_LIFO);
}

/* Q-24 O-57: it knows priorities, and gives keys back. */
TEST(core_agrees_with_the_model_behind_a_full_plug_in)
{
    play_many(CORE_PROP_FIFO_PLUG_IN | CORE_PROP_FULL, STEPS_FULL_FIFO);
    play_many(CORE_PROP_LIFO_PLUG_IN | CORE_PROP_FULL | CORE_PROP_AGES,
              STEPS_FULL_LIFO);
}

/* O-16 */
TEST(core_agrees_with_the_model_when_adds_respect_a_backoff)
{
    play_many(CORE_PROP_LINE | CORE_PROP_RESPECT, STEPS_RESPECT);
    play_many(CORE_PROP_FIFO_PLUG_IN | CORE_PROP_RESPECT,
              STEPS_RESPECT_PLUG_IN);
}

/* O-30 O-32 */
TEST(core_agrees_with_the_model_on_ages)
{
    play_many(CORE_PROP_LINE | CORE_PROP_AGES, STEPS_AGES);
}

/* O-55 */
TEST(core_agrees_with_the_model_within_bounds)
{
    play_many(CORE_PROP_LINE | CORE_PROP_BOUNDED, STEPS_BOUNDED);
    play_many(CORE_PROP_LINE | CORE_PROP_BOUNDED | CORE_PROP_AGES |
                  CORE_PROP_RESPECT,
              STEPS_BOUNDED_RESPECT);
    play_many(CORE_PROP_FIFO_PLUG_IN | CORE_PROP_FULL | CORE_PROP_BOUNDED,
              STEPS_BOUNDED_PLUG_IN);
}

/* O-80 */
TEST(core_agrees_with_the_model_on_groups)
{
    play_special(CORE_PROP_LINE, CORE_PROP_GROUPS, STEPS_GROUPS);
    play_special(CORE_PROP_LINE | CORE_PROP_FOUR | CORE_PROP_BOUNDED,
                 CORE_PROP_GROUPS, STEPS_BOUNDED_GROUPS);
}

TEST(core_agrees_with_the_model_on_serial_groups)
{
    play_special(CORE_PROP_LINE, CORE_PROP_SERIAL, STEPS_SERIAL);
    play_special(CORE_PROP_LINE | CORE_PROP_RESPECT | CORE_PROP_AGES,
                 CORE_PROP_PAIRS, STEPS_PAIRS);
    play_special(CORE_PROP_LINE | CORE_PROP_BOUNDED,
                 CORE_PROP_SERIAL | CORE_PROP_BYTES, STEPS_BOUNDED_SERIAL);
}

TEST(core_agrees_with_the_model_on_overdue_keys)
{
    play_special(CORE_PROP_LINE, CORE_PROP_AGEING, STEPS_AGEING);
    play_special(CORE_PROP_LINE | CORE_PROP_RESPECT,
                 CORE_PROP_AGEING | CORE_PROP_GROUPS, STEPS_AGEING_GROUPS);
}

/* O-55 */
TEST(core_agrees_with_the_model_within_bytes)
{
    play_special(CORE_PROP_LINE, CORE_PROP_BYTES, STEPS_BYTES);
    play_special(CORE_PROP_LINE | CORE_PROP_BOUNDED,
                 CORE_PROP_BYTES | CORE_PROP_GROUPS, STEPS_BYTES_GROUPS);
    play_special(CORE_PROP_LINE | CORE_PROP_BOUNDED,
                 CORE_PROP_BYTES | CORE_PROP_GROUPS | CORE_PROP_AGEING,
                 STEPS_BYTES_AGEING);
}

/* S-12 */
TEST(core_agrees_with_the_model_when_rebuilt_from_images)
{
    play_many(CORE_PROP_REBUILT, STEPS_REBUILT);
    play_many(CORE_PROP_REBUILT | CORE_PROP_AGES | CORE_PROP_RESPECT,
              STEPS_REBUILT_RESPECT);
    play_special(CORE_PROP_REBUILT | CORE_PROP_FOUR | CORE_PROP_AGES |
                     CORE_PROP_BOUNDED,
                 CORE_PROP_BYTES, STEPS_REBUILT_BOUNDED);
}

/* ---- the corpus --------------------------------------------------------- */

/* fuzz/corpus/core, seen from where this file lies. The compiler may know that
 * by a path from the directory it was started in (ccache sees to it), which is
 * the one above this program's. */
static const char *
corpus(void)
{
    static char path[1000];
    const char *slash = strrchr(__FILE__, '/');

    (void)snprintf(path, sizeof path, "../%.*s/../../fuzz/corpus/core",
                   slash ? (int)(slash - __FILE__) : 1, slash ? __FILE__ : ".");
    return access(path + 3, R_OK) == 0 ? path + 3 : path;
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
         test(core_agrees_with_the_model_behind_a_full_plug_in),
         test(core_agrees_with_the_model_when_adds_respect_a_backoff),
         test(core_agrees_with_the_model_on_ages),
         test(core_agrees_with_the_model_within_bounds),
         test(core_agrees_with_the_model_on_groups),
         test(core_agrees_with_the_model_on_serial_groups),
         test(core_agrees_with_the_model_on_overdue_keys),
         test(core_agrees_with_the_model_within_bytes),
         test(core_agrees_with_the_model_when_rebuilt_from_images),
         test(every_kept_case_holds), test(no_bytes_at_all_are_a_life_too));
