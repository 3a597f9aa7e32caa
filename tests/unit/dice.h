/* SPDX-License-Identifier: MIT */
/* dice.h: how does a test roll dice that can be rolled again?
 *
 *     struct dice dice = dice_seeded("what this is for");
 *     dice_roll(&dice, 6)          0 .. 5
 *
 * The seed is printed; WQ_SEED in the environment sets it.
 */
#ifndef WQ_TEST_DICE_H
#define WQ_TEST_DICE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct dice {
    uint64_t seed;  /* what it began with */
    uint64_t state; /* never 0 */
};

static inline struct dice
dice_from(uint64_t seed)
{
    /* Seeds are small numbers; rolls shall differ from the first one on. */
    const uint64_t spread = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (struct dice){.seed = seed, .state = spread ? spread : 1};
}

static inline uint64_t
dice_env_seed(uint64_t otherwise)
{
    const char *text = getenv("WQ_SEED");
    return text ? strtoull(text, NULL, 0) : otherwise;
}

static inline struct dice
dice_seeded(const char *what)
{
    const struct dice dice = dice_from(dice_env_seed(1));
    printf("%s: WQ_SEED=%llu\n", what, (unsigned long long)dice.seed);
    return dice;
}

/* 64 random bits (xorshift: every seed gives all of them in the end). */
static inline uint64_t
dice_bits(struct dice *dice)
{
    dice->state ^= dice->state << 13;
    dice->state ^= dice->state >> 7;
    dice->state ^= dice->state << 17;
    return dice->state;
}

/* 0 .. sides - 1. */
static inline size_t
dice_roll(struct dice *dice, size_t sides)
{
    return (size_t)((dice_bits(dice) >> 11) % sides);
}

#endif
