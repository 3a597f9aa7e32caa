/* SPDX-License-Identifier: MIT */
/* test_groups.c: do groups take turns, and are no more keys of a group HELD than
 * the bound allows? wq_config.group and group_max_held.
 *
 * The group of a key is what stands before its '/', unless a test says so.
 */
#include "asked.h"
#include "configs.h"

#include <poll.h>
#include <stdio.h>

#include <wq/backend.h>
#include <wq/limiter.h>

#include "support/counting.h"

static struct timed *
create_grouped(size_t max_held)
{
    return timed_create(
        WQ_CONFIG(.group = wq_group_before_slash, .group_max_held = max_held,
                  .limiter = wq_limiter_exponential(S, 1000 * S)));
}

static int
grouped_setup(void **state)
{
    *state = create_grouped(0);
    return 0;
}

static int
serial_setup(void **state)
{
    *state = create_grouped(1);
    return 0;
}

#define with_groups(name) test_with(name, grouped_setup, timed_teardown)
#define with_serial(name) test_with(name, serial_setup, timed_teardown)

/* `what` for each of the keys, which are separated by spaces. */
static void
for_each(wq_queue *q, const char *keys, void (*what)(wq_queue *, const char *))
{
    char text[512], *rest = NULL;

    (void)snprintf(text, sizeof text, "%s", keys);
    for (char *key = strtok_r(text, " ", &rest); key;
         key = strtok_r(NULL, " ", &rest))
        what(q, key);
}

static void
add_keys(wq_queue *q, const char *keys)
{
    for_each(q, keys, add);
}

/* These keys leave, in this order, and each is done before the next leaves. */
static void
assert_leave(wq_queue *q, const char *keys)
{
    for_each(q, keys, work_on);
}

/* READY keys there may be, and none of them can be taken. */
static void
assert_none_offered(wq_queue *q)
{
    wq_item *item = NULL;

    assert_err(wq_get_within(q, 0, &item), WQ_ETIMEDOUT);
    assert_null(item);
    assert_int_equal(counts_of(q).offered, 0);
}

/* ---- turns -------------------------------------------------------------- */

/* O-80 */
TEST(groups_take_turns_one_key_each)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 a/2 a/3 b/1 b/2 c/1");
    assert_leave(t->q, "a/1 b/1 c/1 a/2 b/2 a/3");
    assert_none_due(t);
}

/* O-80: also if nobody is done in between. */
TEST(turns_do_not_depend_on_done)
{
    struct timed *t = *state;
    wq_item      *items[6];
    size_t        n = 0;

    add_keys(t->q, "a/1 a/2 a/3 b/1 b/2 c/1");
    assert_err(wq_get_many(t->q, items, 6, 0, &n), WQ_OK);
    assert_int_equal(n, 6);
    assert_key(items[0], "a/1");
    assert_key(items[1], "b/1");
    assert_key(items[2], "c/1");
    assert_key(items[3], "a/2");
    assert_key(items[4], "b/2");
    assert_key(items[5], "a/3");
}

/* O-80 Q-05: inside a group a queue is a queue. */
TEST(group_serves_its_keys_first_come_first_served)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 a/2 a/3");
    add(t->q, "a/1"); /* merges, and keeps its place */
    assert_leave(t->q, "a/1 a/2 a/3");
    assert_none_due(t);
}

/* O-80 Q-12 */
TEST(dirty_key_goes_to_the_end_of_its_group)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 a/2 b/1");
    wq_item *item = take_key(t->q, "a/1");
    add_keys(t->q, "a/1 a/3");
    finish(t->q, item);
    assert_leave(t->q, "b/1 a/2 a/3 a/1");
}

/* O-80: the demonstration that groups exist for. Counted in hand-outs. */
TEST(single_key_passes_a_flood_of_another_group)
{
    struct timed *t = *state;
    char          key[32];

    for (int i = 0; i < 100000; i++) {
        (void)snprintf(key, sizeof key, "flood/%d", i);
        add(t->q, key);
    }
    work_on(t->q, "flood/0");
    add(t->q, "late/1");
    work_on(t->q, "flood/1"); /* one key per group */
    work_on(t->q, "late/1");
    assert_int_equal(wq_len(t->q), 99998);
}

/* O-80: one key per group, however many groups there are. */
TEST(single_key_waits_for_one_key_per_group)
{
    enum { GROUPS = 50, KEYS = 20 };
    struct timed *t = *state;
    char          key[32];
    int           waited = 0;

    for (int i = 0; i < GROUPS * KEYS; i++) {
        (void)snprintf(key, sizeof key, "%d/%d", i % GROUPS, i);
        add(t->q, key);
    }
    for (int i = 0; i < 17; i++) /* in the middle of a round */
        finish(t->q, take(t->q));
    add(t->q, "late/1");
    for (;; waited++) {
        wq_item   *item = take(t->q);
        const bool is_late = !memcmp(item->key.data, "late", 4);
        finish(t->q, item);
        if (is_late)
            break;
    }
    assert_int_equal(waited, GROUPS);
}

/* O-80 O-51 */
TEST(priorities_decide_before_groups)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 b/1");
    add_at(t->q, 5, "a/2");
    add_at(t->q, 5, "a/3");
    add_at(t->q, 5, "c/1");
    add_at(t->q, -5, "d/1");
    work_on_at(t->q, "a/2", 5);
    work_on_at(t->q, "c/1", 5);
    work_on_at(t->q, "a/3", 5);
    work_on_at(t->q, "a/1", 0);
    work_on_at(t->q, "b/1", 0);
    work_on_at(t->q, "d/1", -5);
}

/* O-80 */
TEST(group_that_becomes_ready_is_served_after_all_others)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 a/2 b/1 b/2");
    work_on(t->q, "a/1");
    add(t->q, "c/1"); /* behind b and a */
    assert_leave(t->q, "b/1 a/2 c/1 b/2");
}

/* O-80: what it had before does not count. */
TEST(group_that_ran_empty_begins_at_the_end)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 b/1 b/2 b/3 c/1 c/2");
    work_on(t->q, "a/1");
    add(t->q, "a/2");
    assert_leave(t->q, "b/1 c/1 a/2 b/2 c/2 b/3");
}

/* O-80 */
TEST(keys_without_a_group_are_one_group)
{
    struct timed *t = *state;

    add_keys(t->q, "x y /z a/1 a/2");
    assert_leave(t->q, "x a/1 y a/2 /z");
    assert_int_equal(counts_of(t->q).groups, 0);
}

/* O-80 O-57: a key that is removed does not use up the turn. */
TEST(group_keeps_its_turn_when_its_key_is_removed)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 a/2 b/1 b/2 b/3 c/1");
    assert_err(wq_remove(t->q, wq_str("a/1")), WQ_OK);
    work_on(t->q, "a/2");
    assert_err(wq_remove(t->q, wq_str("b/2")), WQ_OK); /* from the middle */
    work_on(t->q, "b/1");
    assert_err(wq_remove(t->q, wq_str("c/1")), WQ_OK); /* the only one */
    add(t->q, "b/4");                                  /* and to the end */
    assert_leave(t->q, "b/3 b/4");
    assert_none_due(t);
}

/* O-80 O-51 */
TEST(raised_key_goes_to_its_group_in_the_higher_level)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 a/2 a/3 b/1");
    add_at(t->q, 5, "b/2");
    add_at(t->q, 5, "b/3");
    assert_added(add_how(t->q, WQ_ADD(.priority = 5), "a/2"), WQ_ADDED_RAISED);
    assert_leave(t->q, "b/2 a/2 b/3 a/1 b/1 a/3");
}

/* O-80 D-01 */
TEST(deadlines_that_come_enter_their_groups_in_order)
{
    struct timed *t = *state;

    add_after(t, "a/2", 2 * S);
    add_after(t, "b/1", 3 * S);
    add_after(t, "a/1", S);
    add(t->q, "c/1");
    assert_int_equal(counts_of(t->q).groups, 3);
    step(t, 3 * S);
    assert_leave(t->q, "c/1 a/1 b/1 a/2");
    assert_int_equal(counts_of(t->q).groups, 0);
}

/* O-80 O-50 */
TEST(batch_enters_its_groups_in_the_order_given)
{
    struct timed *t = *state;
    const wq_key  keys[] = {wq_str("b/1"), wq_str("a/1"), wq_str("b/2"),
                            wq_str("b/1"), wq_str("c/1")};

    assert_err(wq_add_with(t->q, NULL, keys, 5), WQ_OK);
    assert_leave(t->q, "b/1 a/1 c/1 b/2");
}

/* ---- what a group is ---------------------------------------------------- */

static void
assert_group(const char *key, size_t len)
{
    const wq_key group = wq_group_before_slash(NULL, wq_str(key));

    assert_ptr_equal(group.data, key);
    assert_int_equal(group.len, len);
}

/* O-80 */
TEST(ready_made_group_is_what_stands_before_the_first_slash)
{
    assert_group("namespace/name", 9);
    assert_group("a/b/c", 1);
    assert_group("/name", 0);
    assert_group("name", 0);
    assert_int_equal(wq_group_before_slash(NULL, (wq_key){NULL, 0}).len, 0);
}

/* A group that the test decides. */
struct choice {
    wq_queue *q;     /* to be called, if not NULL */
    ptrdiff_t from;  /* where the group begins, from the key's first byte on */
    size_t    len;   /* its length */
    bool      none;  /* NULL instead */
    int       calls; /* how often it was called */
};

static wq_key
choose(void *ctx, wq_key key)
{
    struct choice *c = ctx;

    c->calls++;
    if (c->q)
        (void)wq_len(c->q);
    return (wq_key){c->none ? NULL : (const char *)key.data + c->from, c->len};
}

static struct timed *
create_choosing(struct choice *c)
{
    return timed_create(
        WQ_CONFIG(.group = choose, .group_ctx = c,
                  .limiter = wq_limiter_exponential(S, 1000 * S)));
}

/* O-80 */
TEST(any_part_of_a_key_can_be_its_group)
{
    struct choice c = {.from = 2, .len = 1};
    struct timed *t = create_choosing(&c);

    add_keys(t->q, "1:a 2:a 3:b");
    assert_leave(t->q, "1:a 3:b 2:a");
    c = (struct choice){.from = 0, .len = 3}; /* the whole key */
    add_keys(t->q, "1:a 2:a 3:b");
    assert_int_equal(counts_of(t->q).groups, 3);
    c = (struct choice){.from = 3, .len = 0}; /* nothing of it */
    add_keys(t->q, "4:a 5:a");
    assert_int_equal(counts_of(t->q).groups, 4);
    timed_destroy(t);
}

/* O-80 */
TEST(group_of_no_bytes_may_be_null)
{
    struct choice c = {.none = true};
    struct timed *t = create_choosing(&c);

    add_keys(t->q, "x y");
    assert_int_equal(counts_of(t->q).groups, 1);
    assert_non_null(info_of(t->q, "x").group.data); /* the queue has groups */
    assert_int_equal(info_of(t->q, "x").group.len, 0);
    assert_leave(t->q, "x y");
    timed_destroy(t);
}

/* O-80 L6: nothing has happened, not even to the limiter. */
static void
assert_refused(struct timed *t, const char *key)
{
    const wq_stats before = counts_of(t->q);
    const wq_key   keys[] = {wq_str(key)};

    assert_err(wq_add(t->q, keys[0]), WQ_EINVAL);
    assert_string_equal(wq_last_error(),
                        "wq_config.group returned bytes outside the key");
    assert_err(wq_add_after(t->q, keys[0], S), WQ_EINVAL);
    assert_err(wq_add_rate_limited(t->q, keys[0]), WQ_EINVAL);
    assert_err(try_how(t->q, WQ_ADD(.priority = 5), key), WQ_EINVAL);
    assert_err(try_how(t->q, WQ_ADD(.debounce_ns = 5), key), WQ_EINVAL);
    assert_int_equal(wq_num_requeues(t->q, keys[0]), 0);
    assert_states(t->q, key, 0);
    assert_int_equal(counts_of(t->q).adds, before.adds);
    assert_int_equal(counts_of(t->q).known, before.known);
    assert_int_equal(counts_of(t->q).groups, before.groups);
    assert_int_equal(counts_of(t->q).retries, before.retries);
}

/* O-80 */
TEST(group_outside_its_key_is_refused)
{
    static const struct choice wrong[] = {
        {.from = 0, .len = 4},              /* longer than the key */
        {.from = 1, .len = 3},              /* beyond its end */
        {.from = 3, .len = 1},              /* behind it */
        {.from = -1, .len = 2},             /* before it */
        {.from = 0, .len = SIZE_MAX},       /* around the world */
        {.from = 1, .len = SIZE_MAX},       /* the same */
        {.from = -1, .len = SIZE_MAX},      /* the same */
        {.none = true, .from = 0, .len = 1} /* nowhere */
    };
    static const char text[] = " key";
    struct choice     c = {.len = 1};
    struct timed     *t = create_choosing(&c);

    add(t->q, "there");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        c = wrong[i];
        assert_refused(t, &text[1]);
    }
    work_on(t->q, "there");
    timed_destroy(t);
}

static wq_key
group_or_nonsense(void *ctx, wq_key key)
{
    static const char elsewhere[] = "bad";

    (void)ctx;
    return memcmp(key.data, "bad", 3) ? key : wq_str(elsewhere);
}

/* O-80 O-50 */
TEST(batch_with_one_wrong_group_adds_none)
{
    struct timed *t = timed_create(WQ_CONFIG(.group = group_or_nonsense));
    const wq_key  keys[] = {wq_str("one"), wq_str("bad"), wq_str("two")};

    assert_err(wq_add_with(t->q, NULL, keys, 3), WQ_EINVAL);
    assert_int_equal(counts_of(t->q).known, 0);
    assert_int_equal(counts_of(t->q).groups, 0);
    assert_err(wq_add_with(t->q, NULL, keys, 1), WQ_OK);
    timed_destroy(t);
}

/* O-80: without the lock. */
TEST(group_function_may_call_the_queue)
{
    struct choice c = {.len = 1};
    struct timed *t = create_choosing(&c);
    const wq_key  keys[] = {wq_str("b1"), wq_str("b2")};

    c.q = t->q;
    add(t->q, "a1");
    add_after(t, "a2", S);
    assert_err(wq_add_with(t->q, NULL, keys, 2), WQ_OK);
    assert_int_equal(c.calls, 4);
    step(t, S);
    assert_leave(t->q, "a1 b1 a2 b2");
    assert_int_equal(c.calls, 4); /* gets and dones know it */
    timed_destroy(t);
}

static bool
see_group(void *ctx, wq_key key, const wq_key_info *info)
{
    size_t *seen = ctx;

    assert_ptr_equal(info->group.data, key.data); /* a part of this copy */
    assert_int_equal(info->group.len, wq_group_before_slash(NULL, key).len);
    ++*seen;
    return true;
}

/* O-32 O-33 */
TEST(group_of_a_key_can_be_read)
{
    struct timed *t = *state;
    size_t        seen = 0;
    const char    key[] = "tenant/1";
    wq_key_info   info = {.size = sizeof info};

    add_keys(t->q, "tenant/1 b/1 nobody");
    assert_err(wq_read_key(t->q, wq_str(key), &info), WQ_OK);
    assert_ptr_equal(info.group.data, key);
    assert_int_equal(info.group.len, 6);
    assert_int_equal(info_of(t->q, "unknown/1").group.len, 7);
    assert_int_equal(info_of(t->q, "nobody").group.len, 0);
    assert_non_null(info_of(t->q, "nobody").group.data);
    assert_err(wq_each(t->q, 0, see_group, &seen), WQ_OK);
    assert_int_equal(seen, 3);
}

/* O-32 */
TEST(queue_without_groups_shows_none)
{
    struct timed *t = *state;

    add(t->q, "a/1");
    assert_null(info_of(t->q, "a/1").group.data);
    assert_int_equal(counts_of(t->q).groups, 0);
    assert_int_equal(counts_of(t->q).offered, 1);
}

/* O-80 O-30: those of the keys that are known, whatever their states. */
TEST(groups_of_known_keys_are_counted)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 a/2 b/1");
    add_after(t, "c/1", S);
    assert_int_equal(counts_of(t->q).groups, 3);
    wq_item *item = take_key(t->q, "a/1");
    work_on(t->q, "b/1");
    assert_int_equal(counts_of(t->q).groups, 2);
    work_on(t->q, "a/2");
    assert_int_equal(counts_of(t->q).groups, 2);
    finish(t->q, item);
    assert_int_equal(counts_of(t->q).groups, 1);
    assert_err(wq_cancel_after(t->q, wq_str("c/1")), WQ_OK);
    assert_int_equal(counts_of(t->q).groups, 0);
}

/* O-80 L6: and nothing is left of them. */
TEST(groups_come_and_go_with_their_keys)
{
    struct counting mem;
    wq_queue       *q = NULL;
    char            key[32];

    counting_init(&mem);
    assert_err(wq_create(WQ_CONFIG(.allocator = &mem.allocator,
                                   .group = wq_group_before_slash),
                         &q),
               WQ_OK);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2000; i++) {
            (void)snprintf(key, sizeof key, "group %d/%d", i % 1000, i);
            add(q, key);
        }
        assert_int_equal(counts_of(q).groups, 1000);
        for (int i = 0; i < 2000; i++) {
            (void)snprintf(key, sizeof key, "group %d/%d", i % 1000, i);
            work_on(q, key);
        }
        assert_int_equal(counts_of(q).groups, 0);
    }
    add_keys(q, "a/1 a/2 b/1");
    (void)take(q);
    wq_destroy(q);
    assert_int_equal(mem.bytes, 0);
}

/* ---- serial groups, and bounds ------------------------------------------ */

/* O-80 */
TEST(serial_group_hands_out_one_key_at_a_time)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 a/2 a/3 b/1");
    wq_item *a1 = take_key(t->q, "a/1");
    wq_item *b1 = take_key(t->q, "b/1");
    assert_none_offered(t->q);
    assert_int_equal(wq_len(t->q), 2);
    finish(t->q, a1);
    wq_item *a2 = take_key(t->q, "a/2");
    assert_none_offered(t->q);
    finish(t->q, b1);
    assert_none_offered(t->q);
    finish(t->q, a2);
    work_on(t->q, "a/3");
    assert_none_due(t);
}

/* O-80 */
TEST(bound_of_several_holds_so_many)
{
    struct timed *t = create_grouped(3);

    add_keys(t->q, "a/1 a/2 a/3 a/4 a/5");
    wq_item *first = take_key(t->q, "a/1");
    assert_int_equal(counts_of(t->q).offered, 2);
    (void)take_key(t->q, "a/2");
    (void)take_key(t->q, "a/3");
    assert_none_offered(t->q);
    finish(t->q, first);
    assert_int_equal(counts_of(t->q).offered, 1);
    (void)take_key(t->q, "a/4");
    assert_none_offered(t->q);
    timed_destroy(t);
}

/* O-80 O-30 */
TEST(offered_keys_are_those_that_could_be_handed_out)
{
    struct timed *t = create_grouped(2);

    assert_int_equal(counts_of(t->q).offered, 0);
    add_keys(t->q, "a/1 a/2 a/3 b/1");
    assert_int_equal(counts_of(t->q).ready, 4);
    assert_int_equal(counts_of(t->q).offered, 3);
    assert_err(wq_pause(t->q), WQ_OK);
    assert_int_equal(counts_of(t->q).offered, 0);
    assert_err(wq_resume(t->q), WQ_OK);
    wq_item *item = take_key(t->q, "a/1");
    assert_int_equal(counts_of(t->q).offered, 2);
    add(t->q, "a/1"); /* DIRTY: it is not READY */
    assert_int_equal(counts_of(t->q).offered, 2);
    finish(t->q, item);
    assert_int_equal(counts_of(t->q).offered, 3);
    assert_err(wq_remove(t->q, wq_str("b/1")), WQ_OK);
    assert_int_equal(counts_of(t->q).offered, 2);
    timed_destroy(t);
}

/* O-80 O-59 */
TEST(get_many_takes_no_more_than_the_bound_allows)
{
    struct timed *t = create_grouped(2);
    wq_item      *items[10];
    size_t        n = 0;

    add_keys(t->q, "a/1 a/2 a/3 a/4 b/1 c/1 c/2 c/3");
    assert_err(wq_get_many(t->q, items, 10, 0, &n), WQ_OK);
    assert_int_equal(n, 5);
    assert_key(items[0], "a/1");
    assert_key(items[1], "b/1");
    assert_key(items[2], "c/1");
    assert_key(items[3], "a/2");
    assert_key(items[4], "c/2");
    assert_err(wq_get_many(t->q, items + 5, 5, 0, &n), WQ_ETIMEDOUT);
    assert_err(wq_done_many(t->q, items, 5), WQ_OK);
    assert_err(wq_get_many(t->q, items, 10, 0, &n), WQ_OK);
    assert_int_equal(n, 3);
    timed_destroy(t);
}

/* O-80 O-60 O-06 */
TEST(every_done_lets_the_next_key_go)
{
    struct timed *t = *state;
    wq_item      *items[2];
    size_t        n = 0;

    add_keys(t->q, "a/1 a/2 a/3 a/4 b/1 b/2");
    assert_err(wq_get_many(t->q, items, 2, 0, &n), WQ_OK);
    assert_none_offered(t->q);
    assert_err(wq_done_many(t->q, items, 2), WQ_OK);
    assert_err(wq_get_many(t->q, items, 2, 0, &n), WQ_OK);
    assert_key(items[0], "a/2");
    assert_key(items[1], "b/2");
    assert_err(wq_done_key(t->q, wq_str("a/2")), WQ_OK);
    assert_leave(t->q, "a/3 a/4");
}

/* O-80 O-61 */
TEST(next_hands_out_the_next_key_of_a_serial_group)
{
    struct timed *t = *state;
    wq_item      *item = NULL;

    add_keys(t->q, "a/1 a/2 b/1");
    assert_err(wq_next(t->q, 0, &item), WQ_OK);
    assert_key(item, "a/1");
    assert_err(wq_next(t->q, 0, &item), WQ_OK);
    assert_key(item, "b/1"); /* it was its turn */
    assert_err(wq_next(t->q, 0, &item), WQ_OK);
    assert_key(item, "a/2");
    assert_err(wq_next(t->q, 0, &item), WQ_ETIMEDOUT);
    assert_null(item);
}

/* O-80 Q-12 */
TEST(dirty_key_of_a_serial_group_lets_others_go_first)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 a/2");
    wq_item *item = take_key(t->q, "a/1");
    add(t->q, "a/1");
    assert_none_offered(t->q);
    finish(t->q, item);
    assert_leave(t->q, "a/2 a/1");
    assert_none_due(t);
}

/* O-80 Q-12: there is no other key. */
TEST(dirty_key_alone_in_a_serial_group_comes_back)
{
    struct timed *t = *state;

    add(t->q, "a/1");
    wq_item *item = take_key(t->q, "a/1");
    add(t->q, "a/1");
    assert_none_offered(t->q);
    finish(t->q, item);
    assert_int_equal(counts_of(t->q).offered, 1);
    work_on(t->q, "a/1");
    assert_int_equal(counts_of(t->q).groups, 0);
}

/* O-80: the bound is the group's, not that of a level. */
TEST(blocked_group_hands_out_no_urgent_key_either)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 b/1");
    wq_item *item = take_key(t->q, "a/1");
    add_at(t->q, 9, "a/2");
    add_at(t->q, 5, "a/3");
    work_on(t->q, "b/1");
    assert_none_offered(t->q);
    add(t->q, "b/2");
    finish(t->q, item);
    work_on_at(t->q, "a/2", 9);
    work_on_at(t->q, "a/3", 5);
    work_on(t->q, "b/2");
    assert_none_due(t);
}

/* O-80 O-51 */
TEST(key_of_a_blocked_group_is_raised_for_later)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 a/2 a/3 a/4 b/1");
    wq_item *item = take_key(t->q, "a/1");
    assert_added(add_how(t->q, WQ_ADD(.priority = 5), "a/3"), WQ_ADDED_RAISED);
    assert_added(add_how(t->q, WQ_ADD(.priority = 5), "a/2"), WQ_ADDED_RAISED);
    work_on(t->q, "b/1");
    assert_none_offered(t->q);
    finish(t->q, item);
    work_on_at(t->q, "a/3", 5);
    work_on_at(t->q, "a/2", 5);
    work_on_at(t->q, "a/4", 0);
}

/* O-80 O-57 */
TEST(key_of_a_blocked_group_can_be_removed)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 a/2 a/3 a/4");
    wq_item *item = take_key(t->q, "a/1");
    assert_err(wq_remove(t->q, wq_str("a/3")), WQ_OK); /* the middle */
    assert_err(wq_remove(t->q, wq_str("a/2")), WQ_OK); /* the first */
    assert_none_offered(t->q);
    assert_err(wq_remove(t->q, wq_str("a/4")), WQ_OK); /* the last */
    assert_none_offered(t->q);
    add(t->q, "a/5");
    finish(t->q, item);
    work_on(t->q, "a/5");
    assert_none_due(t);
}

/* O-80 D-10 */
TEST(deadline_that_comes_in_a_blocked_group_waits_for_done)
{
    struct timed *t = *state;

    add(t->q, "a/1");
    wq_item *item = take_key(t->q, "a/1");
    add_after(t, "a/2", S);
    add_after(t, "a/1", S); /* of the held key itself */
    add_after(t, "b/1", 2 * S);
    step(t, 2 * S);
    work_on(t->q, "b/1");
    assert_none_offered(t->q);
    finish(t->q, item);
    assert_leave(t->q, "a/2 a/1");
}

/* O-80 R-01: a failed key gives its place up while it waits. */
TEST(group_goes_on_while_a_failed_key_waits)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 a/2");
    wq_item *item = take_key(t->q, "a/1");
    assert_err(wq_add_rate_limited(t->q, item->key), WQ_OK);
    finish(t->q, item);
    work_on(t->q, "a/2");
    assert_due_in(t, "a/1", S);
}

static int
run_remove_wait(struct worker *self)
{
    return (int)wq_remove_wait(self->arg, wq_str("a/1"), WQ_FOREVER);
}

/* O-80 O-84 */
TEST(removal_that_waits_leaves_the_group_to_the_others)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 a/2");
    wq_item       *item = take_key(t->q, "a/1");
    struct worker *w = worker_start(run_remove_wait, t->q);
    worker_await_blocked(w);
    add(t->q, "a/1"); /* is taken back at done */
    assert_none_offered(t->q);
    finish(t->q, item);
    assert_err(worker_join(w), WQ_OK);
    work_on(t->q, "a/2");
    assert_none_due(t);
}

/* ---- getters and event loops -------------------------------------------- */

/* O-80 O-12 */
TEST(getter_is_not_woken_while_a_group_is_blocked)
{
    struct timed *t = *state;
    char          key[32];

    add(t->q, "a/1");
    wq_item       *item = take_key(t->q, "a/1");
    wq_item       *got = NULL;
    struct worker *w = worker_get(t->q, &got);
    worker_await_blocked(w);
    const int64_t before = worker_cpu_ns(w);
    for (int i = 2; i < 2000; i++) {
        (void)snprintf(key, sizeof key, "a/%d", i);
        add(t->q, key);
    }
    worker_await_blocked(w);
    assert_int_equal(worker_cpu_ns(w), before);
    finish(t->q, item);
    assert_err(worker_join(w), WQ_OK);
    assert_key(got, "a/2");
}

/* O-80: as many as there are groups. */
TEST(done_wakes_a_getter_for_each_group_it_unblocks)
{
    struct timed  *t = *state;
    wq_item       *items[3], *got[3];
    struct worker *w[3];
    size_t         n = 0;

    add_keys(t->q, "a/1 b/1 c/1 a/2 b/2 c/2 a/3");
    assert_err(wq_get_many(t->q, items, 3, 0, &n), WQ_OK);
    for (size_t i = 0; i < 3; i++)
        w[i] = worker_get(t->q, &got[i]);
    worker_await_all_blocked(w, 3);
    assert_err(wq_done_many(t->q, items, 3), WQ_OK);
    for (size_t i = 0; i < 3; i++)
        assert_err(worker_join(w[i]), WQ_OK);
    assert_none_offered(t->q);
    assert_err(wq_done_many(t->q, got, 3), WQ_OK);
    work_on(t->q, "a/3");
}

/* O-80 O-70 */
TEST(descriptor_is_readable_while_a_key_is_offered)
{
    struct timed *t = *state;
    struct pollfd p = {.fd = wq_fd(t->q), .events = POLLIN};

    if (p.fd < 0)
        return; /* test_fd.c says where there is none */
    add_keys(t->q, "a/1 a/2");
    assert_int_equal(poll(&p, 1, 0), 1);
    wq_item *item = take_key(t->q, "a/1");
    assert_int_equal(poll(&p, 1, 0), 0);
    add(t->q, "a/3");
    assert_int_equal(poll(&p, 1, 0), 0);
    wq_shutdown(t->q);
    assert_int_equal(poll(&p, 1, 0), 0);
    finish(t->q, item);
    assert_int_equal(poll(&p, 1, 0), 1);
    assert_leave(t->q, "a/2 a/3");
    assert_int_equal(poll(&p, 1, 0), 1); /* all has ended */
}

/* ---- shutdown ----------------------------------------------------------- */

/* O-80 Q-07 */
TEST(keys_of_a_blocked_group_leave_after_a_shutdown)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 a/2");
    wq_item *item = take_key(t->q, "a/1");
    wq_shutdown(t->q);
    assert_none_offered(t->q); /* not WQ_ESHUTDOWN: a key is to come */
    finish(t->q, item);
    work_on(t->q, "a/2");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* O-80 Q-20 */
TEST(drain_waits_for_the_keys_of_a_blocked_group)
{
    struct timed *t = *state;

    add_keys(t->q, "a/1 a/2");
    wq_item       *item = take_key(t->q, "a/1");
    wq_item       *got = NULL;
    struct worker *drain = worker_drain(t->q);
    struct worker *getter = worker_get(t->q, &got);
    struct worker *both[] = {drain, getter};
    worker_await_all_blocked(both, 2);
    finish(t->q, item);
    assert_err(worker_join(getter), WQ_OK);
    assert_key(got, "a/2");
    worker_await_blocked(drain);
    finish(t->q, got);
    assert_err(worker_join(drain), WQ_OK);
}

/* O-80 Q-13: the last done sends all others home. */
TEST(getters_of_a_blocked_group_end_after_its_last_key)
{
    struct timed  *t = *state;
    struct worker *w[3];
    wq_item       *got[3] = {NULL, NULL, NULL};

    add_keys(t->q, "a/1 a/2");
    wq_item *item = take_key(t->q, "a/1");
    for (size_t i = 0; i < 3; i++)
        w[i] = worker_get(t->q, &got[i]);
    wq_shutdown(t->q);
    worker_await_all_blocked(w, 3);
    finish(t->q, item);
    size_t served = 0;
    for (size_t i = 0; i < 3; i++) {
        const wq_err err = (wq_err)worker_join(w[i]);
        assert_err(err, got[i] ? WQ_OK : WQ_ESHUTDOWN);
        served += got[i] != NULL;
    }
    assert_int_equal(served, 1);
}

/* O-80 O-86 */
TEST(flushed_keys_of_a_blocked_group_wait_for_done)
{
    struct timed *t = timed_create(WQ_CONFIG(.group = wq_group_before_slash,
                                             .group_max_held = 1,
                                             .waiting = WQ_WAITING_FLUSH));

    add(t->q, "a/1");
    wq_item *item = take_key(t->q, "a/1");
    add_after(t, "a/3", 2 * S);
    add_after(t, "a/2", S);
    add_after(t, "b/1", 3 * S);
    wq_shutdown(t->q);
    work_on(t->q, "b/1");
    assert_none_offered(t->q);
    finish(t->q, item);
    assert_leave(t->q, "a/2 a/3");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    timed_destroy(t);
}

/* ---- bounds ------------------------------------------------------------- */

static struct timed *
create_dropping(size_t max_len, size_t max_held)
{
    return timed_create(
        WQ_CONFIG(.group = wq_group_before_slash, .group_max_held = max_held,
                  .max_len = max_len, .overflow = WQ_OVERFLOW_DROP_OLDEST));
}

/* O-80 O-55 */
TEST(group_that_has_most_keys_makes_room)
{
    struct timed *t = create_dropping(6, 0);

    add_keys(t->q, "a/1 b/1 b/2 b/3 a/2 c/1");
    add(t->q, "d/1"); /* b has three */
    assert_states(t->q, "b/1", 0);
    add(t->q, "e/1"); /* a and b have two: the group that was there first */
    assert_states(t->q, "a/1", 0);
    add(t->q, "f/1");
    assert_states(t->q, "b/2", 0);
    assert_leave(t->q, "a/2 b/3 c/1 d/1 e/1 f/1");
    timed_destroy(t);
}

/* O-80 O-55 O-51 */
TEST(most_keys_of_the_lowest_priority_count)
{
    struct timed *t = create_dropping(6, 0);

    add_at(t->q, 5, "a/1");
    add_at(t->q, 5, "a/2");
    add_at(t->q, 5, "a/3");
    add_keys(t->q, "b/1 c/1 c/2");
    add(t->q, "d/1");
    assert_states(t->q, "c/1", 0); /* not a, which has more of a higher one */
    assert_leave(t->q, "a/1 a/2 a/3 b/1 c/2 d/1");
    timed_destroy(t);
}

/* O-80 O-55: READY is READY. */
TEST(blocked_group_makes_room_too)
{
    struct timed *t = create_dropping(5, 1);

    add_keys(t->q, "a/1 a/2 a/3 a/4 b/1");
    wq_item *item = take_key(t->q, "a/1");
    add(t->q, "c/1");
    assert_states(t->q, "a/2", 0);
    assert_states(t->q, "a/1", WQ_STATE_HELD);
    finish(t->q, item);
    assert_leave(t->q, "b/1 c/1 a/3 a/4");
    timed_destroy(t);
}

/* O-80 O-55 O-50 */
TEST(batch_takes_its_room_from_the_largest_groups)
{
    struct timed *t = create_dropping(6, 0);
    const wq_key  keys[] = {wq_str("b/1"), wq_str("c/1"), wq_str("c/2"),
                            wq_str("c/3"), wq_str("b/2")};
    const wq_key  all[] = {wq_str("a/1"), wq_str("b/1")};

    add_keys(t->q, "a/1 b/1 b/2 b/3 b/4 a/2");
    assert_err(wq_add_with(t->q, NULL, keys, 5), WQ_OK);
    assert_states(t->q, "b/3", 0); /* b had most; b/1 and b/2 are named */
    assert_states(t->q, "b/4", 0);
    assert_states(t->q, "a/1", 0);
    assert_leave(t->q, "a/2 b/1 c/1 b/2 c/2 c/3");
    timed_destroy(t);

    t = create_dropping(2, 0); /* there is nobody else to drop */
    assert_err(wq_add_with(t->q, NULL, all, 2), WQ_OK);
    const wq_key more[] = {all[0], all[1], wq_str("a/2")};
    assert_err(wq_add_with(t->q, NULL, more, 3), WQ_EFULL);
    assert_leave(t->q, "a/1 b/1");
    timed_destroy(t);
}

/* ---- the config --------------------------------------------------------- */

/* O-20 O-80 */
TEST(bound_of_groups_needs_groups)
{
    int ctx;

    assert_err(try_config(WQ_CONFIG(.group_max_held = 1)), WQ_EINVAL);
    assert_err(try_config(WQ_CONFIG(.group_ctx = &ctx)), WQ_OK);
    assert_err(
        try_config(WQ_CONFIG(.group = wq_group_before_slash, .group_ctx = &ctx,
                             .group_max_held = SIZE_MAX)),
        WQ_OK);
}

/* O-20 O-80 */
TEST(groups_cannot_be_combined_with_an_order)
{
    assert_err(try_config(WQ_CONFIG(.group = wq_group_before_slash,
                                    .order = &order_of_nothing)),
               WQ_ENOTSUP);
}

/* O-18 */
TEST(layer_has_no_groups)
{
    wq_queue *inner = NULL, *out = NULL;

    assert_err(wq_create(NULL, &inner), WQ_OK);
    assert_err(wq_delaying_wrap(
                   inner, WQ_CONFIG(.group = wq_group_before_slash), &out),
               WQ_ENOTSUP);
    assert_err(wq_rate_limiting_wrap(
                   inner, WQ_CONFIG(.group = wq_group_before_slash), &out),
               WQ_ENOTSUP);
    assert_err(wq_delaying_wrap(inner, WQ_CONFIG(.group_max_held = 1), &out),
               WQ_EINVAL);
    assert_null(out);
    wq_destroy(inner);
}

WQ_TESTS(with_groups(groups_take_turns_one_key_each),
         with_groups(turns_do_not_depend_on_done),
         with_groups(group_serves_its_keys_first_come_first_served),
         with_groups(dirty_key_goes_to_the_end_of_its_group),
         with_groups(single_key_passes_a_flood_of_another_group),
         with_groups(single_key_waits_for_one_key_per_group),
         with_groups(priorities_decide_before_groups),
         with_groups(group_that_becomes_ready_is_served_after_all_others),
         with_groups(group_that_ran_empty_begins_at_the_end),
         with_groups(keys_without_a_group_are_one_group),
         with_groups(group_keeps_its_turn_when_its_key_is_removed),
         with_groups(raised_key_goes_to_its_group_in_the_higher_level),
         with_groups(deadlines_that_come_enter_their_groups_in_order),
         with_groups(batch_enters_its_groups_in_the_order_given),
         test(ready_made_group_is_what_stands_before_the_first_slash),
         test(any_part_of_a_key_can_be_its_group),
         test(group_of_no_bytes_may_be_null),
         test(group_outside_its_key_is_refused),
         test(batch_with_one_wrong_group_adds_none),
         test(group_function_may_call_the_queue),
         with_groups(group_of_a_key_can_be_read),
         with_time(queue_without_groups_shows_none),
         with_groups(groups_of_known_keys_are_counted),
         test(groups_come_and_go_with_their_keys),
         with_serial(serial_group_hands_out_one_key_at_a_time),
         test(bound_of_several_holds_so_many),
         test(offered_keys_are_those_that_could_be_handed_out),
         test(get_many_takes_no_more_than_the_bound_allows),
         with_serial(every_done_lets_the_next_key_go),
         with_serial(next_hands_out_the_next_key_of_a_serial_group),
         with_serial(dirty_key_of_a_serial_group_lets_others_go_first),
         with_serial(dirty_key_alone_in_a_serial_group_comes_back),
         with_serial(blocked_group_hands_out_no_urgent_key_either),
         with_serial(key_of_a_blocked_group_is_raised_for_later),
         with_serial(key_of_a_blocked_group_can_be_removed),
         with_serial(deadline_that_comes_in_a_blocked_group_waits_for_done),
         with_serial(group_goes_on_while_a_failed_key_waits),
         with_serial(removal_that_waits_leaves_the_group_to_the_others),
         with_serial(getter_is_not_woken_while_a_group_is_blocked),
         with_serial(done_wakes_a_getter_for_each_group_it_unblocks),
         with_serial(descriptor_is_readable_while_a_key_is_offered),
         with_serial(keys_of_a_blocked_group_leave_after_a_shutdown),
         with_serial(drain_waits_for_the_keys_of_a_blocked_group),
         with_serial(getters_of_a_blocked_group_end_after_its_last_key),
         test(flushed_keys_of_a_blocked_group_wait_for_done),
         test(group_that_has_most_keys_makes_room),
         test(most_keys_of_the_lowest_priority_count),
         test(blocked_group_makes_room_too),
         test(batch_takes_its_room_from_the_largest_groups),
         test(bound_of_groups_needs_groups),
         test(groups_cannot_be_combined_with_an_order),
         test(layer_has_no_groups));
