/* SPDX-License-Identifier: MIT */
/* test_differential.c: does the program's backend do what the model says, on
 * random lives? See differential/differential.h.
 *
 * WQ_SEED=n in the environment plays the one seed n; with WQ_STEPS=m as well,
 * seeds from n on until there were m steps. WQ_STEPS alone begins with seed 1. A
 * failure prints the seed, the step and the last operations.
 */
#include "support/wq_test.h"

#include <stdio.h>
#include <stdlib.h>

#include <wq/wq.h>

#include "model/differential/differential.h"
#include "support/backend.h"
#include "unit/dice.h"

enum {
    LIFE = 300, /* steps of one queue */
    SHORT_LIFE =
        60,        /* over a server with partitions: each step is many calls */
    STEPS = 10000, /* of each kind of queue: more than 100,000 in all */
};

static struct diff_report report;

/* Fewer for a server, and for a store on a disk in a build that is slow already.
 */
static size_t
steps_by_default(void)
{
    if (backend.part)
        return SHORT_LIFE / 2;
    if (backend.remote)
        return STEPS / 25;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    if (backend.on_disk)
        return STEPS / 20;
#endif
    return STEPS;
}

static size_t
steps_wanted(void)
{
    const char *text = getenv("WQ_STEPS");

    if (text)
        return (size_t)strtoull(text, NULL, 0);
    return getenv("WQ_SEED") ? 1 : steps_by_default();
}

static void
play(const struct diff_terms *terms)
{
    const uint64_t first = dice_env_seed(1);
    const size_t   wanted = steps_wanted();
    const size_t   life = wanted < LIFE && backend.part ? SHORT_LIFE : LIFE;
    uint64_t       seed = first;
    size_t         steps = 0;

    do {
        if (!diff_play(terms, seed, life, &report)) {
            (void)fputs(report.text, stderr); /* cmocka would cut it off */
            fail_msg("replay with WQ_SEED=%llu", (unsigned long long)seed);
        }
        steps += report.steps;
        seed++;
    } while (steps < wanted);
    print_message("%zu steps, seeds %llu to %llu\n", steps,
                  (unsigned long long)first, (unsigned long long)seed - 1);
}

TEST(queue_agrees_with_the_model)
{
    play(&(struct diff_terms){0});
}

/* O-30 O-32 */
TEST(queue_agrees_with_the_model_on_ages)
{
    play(&(struct diff_terms){.ages = true});
}

/* O-16 */
TEST(queue_agrees_with_the_model_on_rules_for_retries)
{
    for (unsigned retry = 1; retry < 8; retry++)
        play(&(struct diff_terms){.retry = retry});
}

/* O-17 S-13 */
TEST(queue_agrees_with_the_model_on_keys_given_up)
{
    play(&(struct diff_terms){.max_retries = 3});
}

/* O-16 O-17 */
TEST(queue_agrees_with_the_model_on_failures_given_up)
{
    play(&(struct diff_terms){.max_retries = 2,
                              .retry = WQ_RETRY_ONCE | WQ_RETRY_FAILURES_ONLY});
}

/* O-55 */
TEST(queue_agrees_with_the_model_within_max_len)
{
    play(&(struct diff_terms){.max_len = 5});
    play(&(struct diff_terms){.max_len = 8, .max_retries = 3});
}

/* S-05 S-08 */
TEST(two_handles_agree_with_the_model)
{
    play(&(struct diff_terms){.two_handles = true});
    play(&(struct diff_terms){.two_handles = true,
                              .max_len = diff_lacks("max_len") ? 0 : 8,
                              .max_retries = 3,
                              .retry = WQ_RETRY_RESPECT,
                              .ages = true});
}

WQ_TESTS(test(queue_agrees_with_the_model),
         test(queue_agrees_with_the_model_on_ages),
         test(queue_agrees_with_the_model_on_rules_for_retries),
         test(queue_agrees_with_the_model_on_keys_given_up),
         test(queue_agrees_with_the_model_on_failures_given_up),
         test(queue_agrees_with_the_model_within_max_len),
         test(two_handles_agree_with_the_model));
