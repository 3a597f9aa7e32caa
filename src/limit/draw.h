/* SPDX-License-Identifier: MIT */
/* draw.h: which random number is next, from a seed? */
#ifndef WQ_LIMIT_DRAW_H
#define WQ_LIMIT_DRAW_H

#include <stdint.h>

/* What a draw adds to the state. */
#define WQ__DRAW_STEP UINT64_C(0x9e3779b97f4a7c15)

/* The number of a state: SplitMix64 (Steele, Lea and Flood). */
static inline uint64_t
wq__draw_from(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* The next number; begins with the seed as the state. */
static inline uint64_t
wq__draw(uint64_t *state)
{
    return wq__draw_from(*state += WQ__DRAW_STEP);
}

#endif
