/* SPDX-License-Identifier: MIT */
/* sentence.h: which sentence does a failed call set for wq_last_error()? */
#ifndef WQ_BEHAVIOUR_SENTENCE_H
#define WQ_BEHAVIOUR_SENTENCE_H

#include "fixture.h"

#include <stdio.h>

#include <wq/backend.h>

/* The call fails with this error, and sets this sentence: a format and its
 * arguments. */
#define assert_says(call, expected, ...)                                       \
    do {                                                                       \
        char sentence_[256];                                                   \
        (void)snprintf(sentence_, sizeof sentence_, __VA_ARGS__);              \
        (void)wq_fail(WQ_EIO, "an older sentence");                            \
        assert_err(call, expected);                                            \
        assert_string_equal(wq_last_error(), sentence_);                       \
    } while (0)

/* A size that no struct has, on any machine. */
enum { ODD = 13 };

static inline void *
no_memory(void *ctx, size_t n)
{
    (void)ctx, (void)n;
    return NULL;
}

static inline void
free_nothing(void *ctx, void *p, size_t n)
{
    (void)ctx, (void)p, (void)n;
}

static const wq_allocator broke = {
    .size = sizeof broke, .alloc = no_memory, .free = free_nothing};

#endif
