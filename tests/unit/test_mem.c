/* SPDX-License-Identifier: MIT */
/* test_mem.c: are sizes computed so that they cannot overflow, and addresses so
 * that they fit?
 */
#include "support/wq_test.h"

#include <stdint.h>

#include "core/mem.h"
#include "support/counting.h"

static struct counting mem;

static int
open_mem(void **state)
{
    (void)state;
    counting_init(&mem);
    return 0;
}

static int
close_mem(void **state)
{
    (void)state;
    assert_int_equal(mem.bytes, 0);
    return 0;
}

TEST(array_is_as_large_as_all_its_elements)
{
    void *p = wq__mem_array(&mem.allocator, 7, 24);

    assert_non_null(p);
    assert_int_equal(mem.bytes, 7 * 24);
    wq__mem_free(&mem.allocator, p, 7 * 24);
    wq__mem_free(&mem.allocator, NULL, 10); /* nothing happens */
}

TEST(array_beyond_all_memory_is_not_allocated)
{
    assert_null(wq__mem_array(&mem.allocator, SIZE_MAX / 8 + 1, 8));
    assert_null(wq__mem_array(&mem.allocator, SIZE_MAX, SIZE_MAX));
    assert_int_equal(mem.calls, 0);
}

TEST(aligned_address_is_the_next_multiple_and_fits)
{
    char block[256];

    for (size_t align = 1; align <= 64; align *= 2)
        for (size_t from = 0; from < 64; from++) {
            char *p = wq__mem_align(block + from, align);
            assert_int_equal((uintptr_t)p % align, 0);
            assert_true(p >= block + from);
            assert_true(p + 100 <= block + from + wq__mem_padded(100, align));
        }
}

TEST(default_allocator_allocates_and_frees)
{
    void *p = wq__mem_alloc(&wq__mem_default, 100);

    assert_non_null(p);
    wq__mem_free(&wq__mem_default, p, 100);
}

#define mem_test(name) test_with(name, open_mem, close_mem)

WQ_TESTS(mem_test(array_is_as_large_as_all_its_elements),
         mem_test(array_beyond_all_memory_is_not_allocated),
         mem_test(aligned_address_is_the_next_multiple_and_fits),
         mem_test(default_allocator_allocates_and_frees));
