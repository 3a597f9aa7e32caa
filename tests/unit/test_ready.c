/* SPDX-License-Identifier: MIT */
/* test_ready.c: do READY records leave in line, or as a plug-in says, and is a
 * plug-in that lies found out?
 */
#include "support/wq_test.h"

#include "core/mem.h"
#include "core/ready.h"
#include "support/counting.h"
#include "unit/records.h"

enum { KEYS = 20 };

/* A plug-in that hands out the last key pushed, and can be told to lie. */
struct stack {
    wq_key keys[KEYS];
    size_t len;
    size_t touches;
    size_t destroys;
    bool   refuses; /* push fails */
    bool   denies;  /* pop says there is nothing */
    wq_key instead; /* pop hands out this, if it has bytes */
    wq_key touched; /* the last one */
    int    pushed;  /* the priority of the last push */
    int    raised;  /* of the last raise */
    size_t raises;
};

static wq_err
stack_push(void *self, wq_key key, int priority)
{
    struct stack *s = self;

    if (s->refuses)
        return WQ_ENOMEM;
    s->pushed = priority;
    s->keys[s->len++] = key;
    return WQ_OK;
}

static void
stack_touch(void *self, wq_key key)
{
    struct stack *s = self;
    s->touches++;
    s->touched = key;
}

static bool
stack_pop(void *self, wq_key *out)
{
    struct stack *s = self;

    if (s->denies)
        return false;
    *out = s->instead.data ? s->instead : s->keys[--s->len];
    return true;
}

static void
stack_raise(void *self, wq_key key, int priority)
{
    struct stack *s = self;
    s->raises++;
    s->raised = priority;
    s->touched = key;
}

static void
stack_remove(void *self, wq_key key)
{
    struct stack *s = self;
    size_t        kept = 0;

    for (size_t i = 0; i < s->len; i++)
        if (s->keys[i].data != key.data)
            s->keys[kept++] = s->keys[i];
    assert_int_equal(kept, s->len - 1);
    s->len = kept;
}

static size_t
stack_len(void *self)
{
    return ((struct stack *)self)->len;
}

static void
stack_destroy(void *self)
{
    ((struct stack *)self)->destroys++;
}

struct fixture {
    struct counting   mem;
    struct wq__slab   recs;
    struct wq__index  index;
    struct wq__ready  ready;
    struct wq__hasher hasher;
    struct stack      stack;
    wq_order          order;
    uint64_t          keys[KEYS];
    wq__ref           refs[KEYS];
};

static struct fixture f;

static void
open_with(const wq_order *order)
{
    f.hasher = wq__hasher_of((struct wq__hash_key){.mask = UINT32_MAX});
    counting_init(&f.mem);
    wq__slab_init(&f.recs, &f.mem.allocator);
    wq__index_init(&f.index, &f.mem.allocator, &f.recs);
    for (size_t i = 0; i < KEYS; i++) {
        f.keys[i] = i;
        const wq_key key = wq_u64(&f.keys[i]);
        f.refs[i] = record_for(&f.recs, &f.hasher, key);
        const uint32_t hash = wq__hash(&f.hasher, key);
        size_t         place;
        (void)wq__index_seek(&f.index, key, hash, &place);
        assert_int_equal(wq__index_reserve(&f.index, hash, &place), WQ_OK);
        wq__index_insert(&f.index, hash, f.refs[i], place);
    }
    wq__ready_init(&f.ready, &f.recs, &f.index, &f.hasher, order,
                   &wq__mem_default);
}

static int
open_list(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    open_with(NULL);
    return 0;
}

static int
open_stack(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    f.order = (wq_order){
        .size = sizeof f.order,
        .self = &f.stack,
        .push = stack_push,
        .touch = stack_touch,
        .pop = stack_pop,
        .len = stack_len,
        .destroy = stack_destroy,
        .raise = stack_raise,
        .remove = stack_remove,
    };
    open_with(&f.order);
    return 0;
}

static int
close_ready(void **state)
{
    (void)state;
    wq__ready_fini(&f.ready);
    wq__index_fini(&f.index);
    wq__slab_fini(&f.recs);
    assert_int_equal(f.mem.bytes, 0);
    return 0;
}

static wq_err
ready_push(wq__ref ref)
{
    return wq__ready_push(&f.ready, ref, wq__slab_at(&f.recs, ref));
}

static wq_err
ready_pop(wq__ref *ref)
{
    struct wq__rec *rec = NULL;
    const wq_err    err = wq__ready_pop(&f.ready, 0, ref, &rec);

    if (!err)
        assert_ptr_equal(rec, wq__slab_at(&f.recs, *ref));
    return err;
}

static void
push(size_t who)
{
    assert_int_equal(ready_push(f.refs[who]), WQ_OK);
}

static void
expect_pop(size_t who)
{
    wq__ref ref = 0;
    assert_int_equal(ready_pop(&ref), WQ_OK);
    assert_int_equal(ref, f.refs[who]);
}

static bool
is_ready(size_t who)
{
    const struct wq__rec *rec = wq__slab_at(&f.recs, f.refs[who]);
    return rec->flags & WQ__READY;
}

/* L4, Q-23 */
TEST(first_come_is_first_served)
{
    for (size_t i = 0; i < KEYS; i++)
        push(i);
    for (size_t i = 0; i < KEYS; i++)
        expect_pop(i);
    assert_int_equal(f.ready.len, 0);
}

TEST(line_that_ran_empty_begins_again)
{
    for (int round = 0; round < 3; round++) {
        push(1);
        push(0);
        expect_pop(1);
        push(2);
        expect_pop(0);
        expect_pop(2);
    }
}

TEST(pop_from_an_empty_line_finds_nothing)
{
    wq__ref ref = 77;
    assert_int_equal(ready_pop(&ref), WQ_ENOTFOUND);
    assert_int_equal(ref, 77);
}

/* L2 */
TEST(flag_says_who_is_in_line)
{
    push(4);
    assert_true(is_ready(4));
    assert_false(is_ready(5));
    expect_pop(4);
    assert_false(is_ready(4));
}

/* */
TEST(plug_in_decides_the_order)
{
    for (size_t i = 0; i < KEYS; i++)
        push(i);
    for (size_t i = KEYS; i-- > 0;)
        expect_pop(i);
}

TEST(touch_in_the_plain_line_is_harmless)
{
    push(0);
    push(1);
    wq__ready_touch(&f.ready, f.refs[0]);
    expect_pop(0);
    expect_pop(1);
}

/* */
TEST(plug_in_is_told_of_a_touch)
{
    push(0);
    wq__ready_touch(&f.ready, f.refs[0]);
    assert_int_equal(f.stack.touches, 1);
    assert_memory_equal(f.stack.touched.data, &f.keys[0], sizeof f.keys[0]);
}

TEST(plug_in_without_touch_is_not_asked)
{
    f.ready.plug_in.touch = NULL;
    push(0);
    wq__ready_touch(&f.ready, f.refs[0]);
    expect_pop(0);
}

/* Into the line of `priority`, whose level is held for it. */
static void
push_with(size_t who, int priority)
{
    struct wq__rec *rec = wq__slab_at(&f.recs, f.refs[who]);
    uint32_t        level;

    assert_int_equal(wq__levels_find(&f.ready.levels, priority, &level), WQ_OK);
    rec->level = level;
    push(who);
}

static void
raise_to(size_t who, int priority)
{
    uint32_t level;

    assert_int_equal(wq__levels_find(&f.ready.levels, priority, &level), WQ_OK);
    wq__ready_raise(&f.ready, f.refs[who], level);
}

static void
take_out(size_t who)
{
    wq__ready_remove(&f.ready, f.refs[who]);
    assert_false(is_ready(who));
}

/* PQ-07 PQ-16 */
TEST(raised_key_goes_to_the_end_of_the_higher_line)
{
    for (size_t i = 0; i < 4; i++)
        push_with(i, 0);
    push_with(4, 3);
    raise_to(1, 3); /* from the middle */
    raise_to(0, 3); /* the first */
    raise_to(3, 7); /* the last */
    push_with(5, 3);
    assert_int_equal(f.ready.len, 6);
    expect_pop(3);
    expect_pop(4);
    expect_pop(1);
    expect_pop(0);
    expect_pop(5);
    expect_pop(2);
}

/* O-57 */
TEST(key_is_taken_out_from_anywhere_in_its_line)
{
    for (size_t gone = 0; gone < 4; gone++) {
        for (size_t i = 0; i < 5; i++)
            push(i);
        expect_pop(0); /* what the new first says of the one before is old */
        take_out(1 + gone);
        push(7);
        for (size_t i = 1; i < 5; i++)
            if (i != 1 + gone)
                expect_pop(i);
        expect_pop(7);
        assert_int_equal(f.ready.len, 0);
    }
}

TEST(only_key_of_a_line_is_taken_out)
{
    push_with(0, 4);
    push_with(1, 2);
    take_out(0);
    expect_pop(1);
    push_with(0, 4);
    expect_pop(0);
}

TEST(plug_in_is_told_of_priorities_and_raises)
{
    push_with(0, 4);
    assert_int_equal(f.stack.pushed, 4);
    raise_to(0, 9);
    assert_int_equal(f.stack.raises, 1);
    assert_int_equal(f.stack.raised, 9);
    assert_int_equal(f.stack.touches, 0);
    assert_memory_equal(f.stack.touched.data, &f.keys[0], sizeof f.keys[0]);
}

TEST(plug_in_without_raise_is_touched_instead)
{
    f.ready.plug_in.raise = NULL;
    push_with(0, 4);
    raise_to(0, 9);
    assert_int_equal(f.stack.raises, 0);
    assert_int_equal(f.stack.touches, 1);
    f.ready.plug_in.touch = NULL;
    raise_to(0, 10);
    assert_int_equal(f.stack.touches, 1);
}

/* O-57 */
TEST(plug_in_gives_a_key_back_if_it_can)
{
    push(0);
    push(1);
    assert_true(wq__ready_can_remove(&f.ready));
    take_out(0);
    assert_int_equal(f.ready.len, 1);
    expect_pop(1);
    f.ready.plug_in.remove = NULL;
    assert_false(wq__ready_can_remove(&f.ready));
}

/* L6 */
TEST(push_that_the_plug_in_refuses_changes_nothing)
{
    f.stack.refuses = true;
    assert_int_equal(ready_push(f.refs[0]), WQ_ENOMEM);
    assert_false(is_ready(0));
    assert_int_equal(f.ready.len, 0);
    f.stack.refuses = false;
    push(0);
    expect_pop(0);
}

TEST(plug_in_that_denies_its_keys_is_found_out)
{
    wq__ref ref = 77;

    push(0);
    f.stack.denies = true;
    assert_int_equal(ready_pop(&ref), WQ_ESTATE);
    assert_int_equal(ref, 77);
    assert_int_equal(f.ready.len, 1);
    assert_true(is_ready(0));
}

TEST(plug_in_that_hands_out_a_key_not_ready_is_found_out)
{
    wq__ref ref = 77;

    push(0);
    f.stack.instead = wq_u64(&f.keys[1]);
    assert_int_equal(ready_pop(&ref), WQ_ESTATE);
    assert_int_equal(f.ready.len, 1);
}

TEST(plug_in_that_hands_out_an_unknown_key_is_found_out)
{
    wq__ref ref = 77;

    push(0);
    f.stack.instead = wq_str("nobody's");
    assert_int_equal(ready_pop(&ref), WQ_ESTATE);
    assert_int_equal(f.ready.len, 1);
}

TEST(plug_in_is_destroyed_with_the_line_once)
{
    push(0);
    wq__ready_fini(&f.ready);
    assert_int_equal(f.stack.destroys, 1);
    wq__ready_fini(&f.ready); /* zeroed by now */
    assert_int_equal(f.stack.destroys, 1);
}

#define list_test(name) test_with(name, open_list, close_ready)
#define stack_test(name) test_with(name, open_stack, close_ready)

WQ_TESTS(list_test(first_come_is_first_served),
         list_test(line_that_ran_empty_begins_again),
         list_test(pop_from_an_empty_line_finds_nothing),
         list_test(flag_says_who_is_in_line),
         list_test(touch_in_the_plain_line_is_harmless),
         list_test(raised_key_goes_to_the_end_of_the_higher_line),
         list_test(key_is_taken_out_from_anywhere_in_its_line),
         list_test(only_key_of_a_line_is_taken_out),
         stack_test(plug_in_is_told_of_priorities_and_raises),
         stack_test(plug_in_without_raise_is_touched_instead),
         stack_test(plug_in_gives_a_key_back_if_it_can),
         stack_test(plug_in_decides_the_order),
         stack_test(plug_in_is_told_of_a_touch),
         stack_test(plug_in_without_touch_is_not_asked),
         stack_test(push_that_the_plug_in_refuses_changes_nothing),
         stack_test(plug_in_that_denies_its_keys_is_found_out),
         stack_test(plug_in_that_hands_out_a_key_not_ready_is_found_out),
         stack_test(plug_in_that_hands_out_an_unknown_key_is_found_out),
         stack_test(plug_in_is_destroyed_with_the_line_once));
