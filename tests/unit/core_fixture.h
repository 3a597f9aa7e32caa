/* SPDX-License-Identifier: MIT */
/* core_fixture.h: how do tests of the core speak?
 *
 * One core, in words that check as they go: keys are strings, times are
 * numbers, and what an add did is said with it. After every test the auditor
 * must be content and no memory lost.
 */
#ifndef WQ_TEST_CORE_FIXTURE_H
#define WQ_TEST_CORE_FIXTURE_H

#include "support/wq_test.h"

#include <string.h>

#include "core/core.h"
#include "support/counting.h"

struct fixture {
    struct counting mem;
    struct wq__core core;
};

static struct fixture f;

static inline void
open_with(const wq_order *order)
{
    const struct wq__hash_key secret = {.k0 = 1, .k1 = 2, .mask = UINT32_MAX};

    counting_init(&f.mem);
    wq__core_init(&f.core, secret, order, &f.mem.allocator);
}

static int
open_core(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    open_with(NULL);
    return 0;
}

static inline void
expect_sound(void)
{
    const char *broken = wq__core_check(&f.core);
    if (broken)
        fail_msg("%s", broken);
}

static int
close_core(void **state)
{
    (void)state;
    expect_sound();
    wq__core_fini(&f.core);
    assert_int_equal(f.mem.bytes, 0);
    return 0;
}

#define core_test(name) test_with(name, open_core, close_core)

/* ---- adds --------------------------------------------------------------- */

static inline uint32_t
hash_of(const char *s)
{
    return wq__core_hash(&f.core, wq_str(s));
}

static inline void
bury_all(wq__ref victims)
{
    while (victims)
        victims = wq__core_bury(&f.core, victims);
}

/* One key, which must be accepted. `at` matters for WQ__ADD_AT alone. */
static inline wq_added
add_how(const struct wq__how *how, const char *s, int64_t at)
{
    const wq_key    key = wq_str(s);
    struct wq__pick pick = {.hash = hash_of(s), .at = at};
    wq__ref         victims;

    assert_int_equal(
        wq__core_add_with(&f.core, how, &key, &pick, 1, NULL, &victims), WQ_OK);
    bury_all(victims);
    expect_sound();
    return pick.added;
}

#define HOW(...) (&(struct wq__how){__VA_ARGS__})

static inline void
add(const char *s, int priority, wq_added expected)
{
    assert_int_equal(add_how(HOW(.priority = priority), s, 0), expected);
}

static inline void
add_at(const char *s, int64_t at, wq_added expected)
{
    assert_int_equal(add_how(HOW(.kind = WQ__ADD_AT), s, at), expected);
}

/* Because it failed. */
static inline void
back_off(const char *s, int64_t at)
{
    (void)add_how(HOW(.kind = WQ__ADD_AT, .backoff = true), s, at);
}

/* ---- the rest of a life ------------------------------------------------- */

static inline void
pass_to(int64_t now)
{
    wq__core_promote(&f.core, now);
    expect_sound();
}

static inline wq_item *
get_at(int64_t now, const char *expected)
{
    wq_item *item = NULL;

    assert_int_equal(wq__core_get(&f.core, now, &item), WQ_OK);
    assert_int_equal(item->key.len, strlen(expected));
    assert_memory_equal(item->key.data, expected, strlen(expected));
    expect_sound();
    return item;
}

static inline wq_item *
get(const char *expected)
{
    return get_at(0, expected);
}

static inline void
expect_nothing_to_get(void)
{
    wq_item *item = NULL;
    assert_int_equal(wq__core_get(&f.core, 0, &item), WQ_ENOTFOUND);
}

static inline void
done_at(int64_t now, wq_item *item)
{
    int64_t work;
    assert_int_equal(wq__core_done(&f.core, item, now, &work), WQ_OK);
    expect_sound();
}

static inline void
done(wq_item *item)
{
    done_at(0, item);
}

static inline wq_err
take_back(const char *s, int64_t now)
{
    return wq__core_remove(&f.core, wq_str(s), hash_of(s), now);
}

static inline wq_err
cancel(const char *s, int64_t now)
{
    return wq__core_cancel(&f.core, wq_str(s), hash_of(s), now);
}

/* ---- looking ------------------------------------------------------------ */

static inline wq_key_info
look_at(const char *s, int64_t now)
{
    wq_key_info info;
    wq__core_look(&f.core, wq_str(s), hash_of(s), now, &info);
    return info;
}

static inline void
expect_states(const char *s, unsigned states)
{
    assert_int_equal(look_at(s, 0).states, states);
}

/* It waits until `at`. */
static inline void
expect_deadline(const char *s, int64_t at)
{
    assert_int_equal(look_at(s, 0).wait_ns, at);
}

static inline wq_stats
counts_at(int64_t now)
{
    wq_stats counts = {0};
    wq__core_stats(&f.core, now, &counts);
    return counts;
}

#endif
