/* SPDX-License-Identifier: MIT */
/* test_ready.c: do READY records leave in line, or as a plug-in decides, and is
 * a plug-in that lies found out?
 */
#include "unit/records.h"
#include "unit/script.h"

#include "core/mem.h"
#include "core/ready.h"
#include "support/plug_in.h"

enum { KEYS = 20 };

static struct wq__index index_of_all;
static struct wq__ready ready;
static struct plug_in   plug_in;

static void
open_with(const wq_order *order)
{
    open_records(UINT32_MAX);
    wq__index_init(&index_of_all, &recs.mem.allocator, &recs.slab);
    for (size_t i = 0; i < KEYS; i++) {
        const wq_key     key = wq_u64(&recs.keys[i]);
        const uint32_t   hash = record(i)->hash;
        struct wq__place place;
        (void)wq__index_seek(&index_of_all, key, hash, &place);
        assert_int_equal(wq__index_reserve(&index_of_all, hash, &place), WQ_OK);
        wq__index_insert(&index_of_all, hash, recs.refs[i], place);
    }
    wq__ready_init(&ready, &recs.slab, &index_of_all, &recs.hasher, order,
                   &wq__mem_default);
}

static int
open_line(void **state)
{
    (void)state;
    open_with(NULL);
    return 0;
}

/* The newest first, with raise and remove. */
static int
open_plug_in(void **state)
{
    (void)state;
    plug_in = (struct plug_in){.newest_first = true, .is_full = true};
    const wq_order order = plug_in_order(&plug_in);
    open_with(&order);
    return 0;
}

static int
close_ready(void **state)
{
    (void)state;
    wq__ready_fini(&ready);
    wq__index_fini(&index_of_all);
    close_records();
    return 0;
}

static bool
is_ready(size_t who)
{
    return record(who)->flags & WQ__READY;
}

static wq_err
try_to_push(size_t who)
{
    return wq__ready_push(&ready, recs.refs[who], record(who));
}

/* The level of `priority`, which is held from now on. */
static uint32_t
level_of(int priority)
{
    uint32_t level;

    assert_int_equal(wq__levels_find(&ready.levels, priority, &level), WQ_OK);
    return level;
}

static void
push(size_t who, int priority)
{
    record(who)->level = level_of(priority);
    assert_int_equal(try_to_push(who), WQ_OK);
    assert_true(is_ready(who));
}

static void
raise_to(size_t who, int priority)
{
    wq__ready_raise(&ready, recs.refs[who], level_of(priority));
}

static wq_err
try_to_pop(wq__ref *ref)
{
    struct wq__rec *rec = NULL;
    const wq_err    err = wq__ready_pop(&ready, 0, ref, &rec);

    if (!err)
        assert_ptr_equal(rec, wq__slab_at(&recs.slab, *ref));
    return err;
}

static void
expect_pop(size_t who)
{
    wq__ref ref = 0;

    assert_int_equal(try_to_pop(&ref), WQ_OK);
    assert_int_equal(ref, recs.refs[who]);
    assert_false(is_ready(who));
}

static void
take_out(size_t who)
{
    wq__ready_remove(&ready, recs.refs[who]);
    assert_false(is_ready(who));
}

/* ---- the line ----------------------------------------------------------- */

/* push WHO [PRIORITY]; pop WHO; pop -; raise WHO PRIORITY; touch WHO;
 * remove WHO */
static bool
act(const char *const *word)
{
    const size_t who = is(word[1], "-") ? 0 : (size_t)number(word[1]);
    wq__ref      ref = 77;

    if (is(word[0], "push"))
        push(who, (int)number(word[2]));
    else if (is(word[0], "pop") && is(word[1], "-")) {
        expect_err(try_to_pop(&ref), "ENOTFOUND");
        assert_int_equal(ref, 77);
    } else if (is(word[0], "pop"))
        expect_pop(who);
    else if (is(word[0], "raise"))
        raise_to(who, (int)number(word[2]));
    else if (is(word[0], "touch"))
        wq__ready_touch(&ready, recs.refs[who]);
    else if (is(word[0], "remove"))
        take_out(who);
    else
        return false;
    return true;
}

static void
check_len(void)
{
    size_t n = 0;

    for (size_t i = 0; i < KEYS; i++)
        n += is_ready(i);
    assert_int_equal(ready.len, n); /* L2 */
}

static const struct scene scenes[] = {
    {"a line that ran empty begins again",
     "push 1; push 0; pop 1; push 2; pop 0; pop 2; pop -; push 1; push 0; "
     "pop 1; push 2; pop 0; pop 2; pop -"},
    {"a touch changes nothing", "push 0; push 1; touch 0; pop 0; pop 1"},
    /* PQ-07 PQ-16: from the middle, the first, the last. */
    {"a raised key goes to the end of the higher line",
     "push 0; push 1; push 2; push 3; push 4 3; raise 1 3; raise 0 3; "
     "raise 3 7; push 5 3; pop 3; pop 4; pop 1; pop 0; pop 5; pop 2"},
    {"the only key of a line is taken out",
     "push 0 4; push 1 2; remove 0; pop 1; push 0 4; pop 0"},
};

TEST(line_is_served_by_priority_and_arrival)
{
    script_run_all(scenes, LEN(scenes), open_line, act, check_len, close_ready);
}

/* L4 Q-23 */
TEST(first_come_is_first_served)
{
    for (size_t i = 0; i < KEYS; i++)
        push(i, 0);
    for (size_t i = 0; i < KEYS; i++)
        expect_pop(i);
    assert_int_equal(ready.len, 0);
}

/* O-57 */
TEST(key_is_taken_out_from_anywhere_in_its_line)
{
    for (size_t gone = 1; gone < 5; gone++) {
        for (size_t i = 0; i < 5; i++)
            push(i, 0);
        expect_pop(0); /* the new first has an old reference to it */
        take_out(gone);
        push(7, 0);
        for (size_t i = 1; i < 5; i++)
            if (i != gone)
                expect_pop(i);
        expect_pop(7);
        assert_int_equal(ready.len, 0);
    }
}

/* ---- a plug-in ---------------------------------------------------------- */

/* */
TEST(plug_in_decides_the_order)
{
    for (size_t i = 0; i < KEYS; i++)
        push(i, 0);
    for (size_t i = KEYS; i-- > 0;)
        expect_pop(i);
}

/* */
TEST(plug_in_hears_of_touches_priorities_and_raises)
{
    push(0, 4);
    assert_int_equal(plug_in.entries[0].priority, 4);
    wq__ready_touch(&ready, recs.refs[0]);
    assert_int_equal(plug_in.touches, 1);
    assert_memory_equal(plug_in.touched.data, &recs.keys[0], sizeof(uint64_t));
    push(1, 0);
    raise_to(1, 9);
    assert_int_equal(plug_in.raises, 1);
    assert_int_equal(plug_in.entries[1].priority, 9);
    assert_int_equal(plug_in.touches, 1);
    assert_memory_equal(plug_in.touched.data, &recs.keys[1], sizeof(uint64_t));
}

TEST(plug_in_need_not_have_raise_and_touch)
{
    push(0, 4);
    ready.plug_in.raise = NULL;
    raise_to(0, 9); /* a touch instead */
    assert_int_equal(plug_in.raises, 0);
    assert_int_equal(plug_in.touches, 1);
    ready.plug_in.touch = NULL;
    raise_to(0, 10);
    wq__ready_touch(&ready, recs.refs[0]);
    assert_int_equal(plug_in.touches, 1);
    expect_pop(0);
}

/* O-57 */
TEST(plug_in_gives_a_key_back_if_it_can)
{
    push(0, 0);
    push(1, 0);
    assert_true(wq__ready_can_remove(&ready));
    take_out(0);
    assert_int_equal(ready.len, 1);
    expect_pop(1);
    ready.plug_in.remove = NULL;
    assert_false(wq__ready_can_remove(&ready));
}

/* L6 */
TEST(push_that_the_plug_in_refuses_changes_nothing)
{
    plug_in.refuse = 1;
    assert_int_equal(try_to_push(0), WQ_ENOMEM);
    assert_false(is_ready(0));
    assert_int_equal(ready.len, 0);
    push(0, 0);
    expect_pop(0);
}

static wq_key lie; /* what pop hands out; without bytes: it denies its keys */

static bool
pop_lie(void *self, wq_key *out)
{
    (void)self;
    *out = lie;
    return lie.data;
}

TEST(plug_in_that_lies_is_found_out)
{
    const wq_key lies[] = {
        {NULL, 0}, wq_u64(&recs.keys[1]), wq_str("nobody's")};

    push(0, 0);
    ready.plug_in.pop = pop_lie;
    for (size_t i = 0; i < LEN(lies); i++) {
        wq__ref ref = 77;

        lie = lies[i];
        assert_int_equal(try_to_pop(&ref), WQ_ESTATE);
        assert_int_equal(ref, 77);
        assert_int_equal(ready.len, 1);
        assert_true(is_ready(0));
    }
}

TEST(plug_in_is_destroyed_with_the_line_once)
{
    push(0, 0);
    wq__ready_fini(&ready);
    assert_int_equal(plug_in.destroys, 1);
    wq__ready_fini(&ready); /* zeroed by now */
    assert_int_equal(plug_in.destroys, 1);
}

#define line_test(name) test_with(name, open_line, close_ready)
#define plug_in_test(name) test_with(name, open_plug_in, close_ready)

WQ_TESTS(test(line_is_served_by_priority_and_arrival),
         line_test(first_come_is_first_served),
         line_test(key_is_taken_out_from_anywhere_in_its_line),
         plug_in_test(plug_in_decides_the_order),
         plug_in_test(plug_in_hears_of_touches_priorities_and_raises),
         plug_in_test(plug_in_need_not_have_raise_and_touch),
         plug_in_test(plug_in_gives_a_key_back_if_it_can),
         plug_in_test(push_that_the_plug_in_refuses_changes_nothing),
         plug_in_test(plug_in_that_lies_is_found_out),
         plug_in_test(plug_in_is_destroyed_with_the_line_once));
