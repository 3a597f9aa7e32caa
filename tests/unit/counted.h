/* SPDX-License-Identifier: MIT */
/* counted.h: how does a test get a structure whose memory is counted?
 *
 *     COUNTED(slab);      struct wq__slab slab, with the allocator of `mem`
 *     ...
 *     WQ_TESTS(counted_test(slab, objects_keep_their_bytes), ...);
 *
 * Every test begins with a new one; after it, no memory may be missing.
 */
#ifndef WQ_TEST_COUNTED_H
#define WQ_TEST_COUNTED_H

#include "support/wq_test.h"

#include <string.h>

#include "support/counting.h"

#define COUNTED(kind)                                                          \
    static struct counting   mem;                                              \
    static struct wq__##kind kind;                                             \
    static int               open_##kind(void **state)                         \
    {                                                                          \
        (void)state;                                                           \
        memset(&kind, 0, sizeof kind);                                         \
        counting_init(&mem);                                                   \
        wq__##kind##_init(&kind, &mem.allocator);                              \
        return 0;                                                              \
    }                                                                          \
    static int close_##kind(void **state)                                      \
    {                                                                          \
        (void)state;                                                           \
        wq__##kind##_fini(&kind);                                              \
        assert_int_equal(mem.bytes, 0);                                        \
        return 0;                                                              \
    }                                                                          \
    static struct wq__##kind kind

#define counted_test(kind, name) test_with(name, open_##kind, close_##kind)

#endif
