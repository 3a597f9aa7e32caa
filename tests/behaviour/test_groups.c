/* SPDX-License-Identifier: MIT */
/* test_groups.c: what may wq_config.group return, and who sees the group of a
 * key? scenarios/groups.scenario and groups_held.scenario say what groups do. */
#include "asked.h"

#include <stdio.h>

#include <wq/limiter.h>

#include "support/counting.h"

/* `what` for each of the keys, which are separated by spaces. */
static void
for_each(wq_queue *q, const char *keys, void (*what)(wq_queue *, const char *))
{
    char text[64], *rest = NULL;

    (void)snprintf(text, sizeof text, "%s", keys);
    for (char *key = strtok_r(text, " ", &rest); key;
         key = strtok_r(NULL, " ", &rest))
        what(q, key);
}

/* ---- what a group is ----------------------------------------------------- */

/* O-80 */
TEST(group_before_slash_is_what_stands_before_the_first_slash)
{
    static const struct {
        const char *key;
        size_t      len;
    } rows[] = {{"namespace/name", 9}, {"a/b/c", 1}, {"/name", 0}, {"name", 0}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const wq_key group = wq_group_before_slash(NULL, wq_str(rows[i].key));

        assert_ptr_equal(group.data, rows[i].key);
        assert_int_equal(group.len, rows[i].len);
    }
    assert_int_equal(wq_group_before_slash(NULL, wq_bytes(NULL, 0)).len, 0);
}

/* A group that the test chooses. */
struct choice {
    wq_queue *q;     /* to be called, if not NULL */
    ptrdiff_t from;  /* where the group begins, from the key's first byte on */
    size_t    len;   /* its length */
    bool      none;  /* NULL instead */
    int       calls; /* of choose() */
};

static wq_key
choose(void *ctx, wq_key key)
{
    struct choice *c = ctx;

    c->calls++;
    if (c->q)
        (void)wq_len(c->q);
    return wq_bytes(c->none ? NULL : (const char *)key.data + c->from, c->len);
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

    for_each(t->q, "1:a 2:a 3:b", add);
    for_each(t->q, "1:a 3:b 2:a", work_on);
    c = (struct choice){.from = 0, .len = 3}; /* the whole key */
    for_each(t->q, "1:a 2:a 3:b", add);
    assert_int_equal(counts_of(t->q).groups, 3);
    c = (struct choice){.from = 3, .len = 0}; /* nothing of it */
    for_each(t->q, "4:a 5:a", add);
    assert_int_equal(counts_of(t->q).groups, 4);
    timed_destroy(t);
}

/* O-80 */
TEST(group_of_no_bytes_may_be_null)
{
    struct choice c = {.none = true};
    struct timed *t = create_choosing(&c);

    for_each(t->q, "x y", add);
    assert_int_equal(counts_of(t->q).groups, 1);
    assert_non_null(info_of(t->q, "x").group.data); /* the queue has groups */
    assert_int_equal(info_of(t->q, "x").group.len, 0);
    for_each(t->q, "x y", work_on);
    timed_destroy(t);
}

/* Nothing has happened, not even to the limiter. */
static void
assert_refused(struct timed *t, const char *key)
{
    const wq_stats before = counts_of(t->q);

    assert_err(wq_add_str(t->q, key), WQ_EINVAL);
    assert_string_equal(wq_last_error(),
                        "wq_config.group returned bytes outside the key");
    assert_err(wq_add_after(t->q, wq_str(key), S), WQ_EINVAL);
    assert_err(wq_add_rate_limited(t->q, wq_str(key)), WQ_EINVAL);
    assert_err(try_how(t->q, WQ_ADD(.priority = 5), key), WQ_EINVAL);
    assert_err(try_how(t->q, WQ_ADD(.debounce_ns = 5), key), WQ_EINVAL);
    assert_int_equal(wq_num_requeues(t->q, wq_str(key)), 0);
    assert_states(t->q, key, 0);
    const wq_stats after = counts_of(t->q);
    assert_int_equal(after.adds, before.adds);
    assert_int_equal(after.known, before.known);
    assert_int_equal(after.groups, before.groups);
    assert_int_equal(after.retries, before.retries);
}

/* O-80 L6 */
TEST(group_outside_its_key_is_refused)
{
    static const struct choice rows[] = {
        {.from = 0, .len = 4},              /* longer than the key */
        {.from = 1, .len = 3},              /* beyond its end */
        {.from = 3, .len = 1},              /* behind it */
        {.from = -1, .len = 2},             /* before it */
        {.from = 0, .len = SIZE_MAX},       /* the end overflows */
        {.from = 1, .len = SIZE_MAX},       /* the same */
        {.from = -1, .len = SIZE_MAX},      /* the same */
        {.none = true, .from = 0, .len = 1} /* NULL */
    };
    static const char text[] = " key";
    struct choice     c = {.len = 1};
    struct timed     *t = create_choosing(&c);

    add(t->q, "there");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("from %td, len %zu\n", rows[i].from, rows[i].len);
        c = rows[i];
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
    wq_queue    *q = open_queue(WQ_CONFIG(.group = group_or_nonsense));
    const wq_key keys[] = {wq_str("one"), wq_str("bad"), wq_str("two")};

    assert_err(wq_add_with(q, NULL, keys, 3), WQ_EINVAL);
    assert_int_equal(counts_of(q).known, 0);
    assert_int_equal(counts_of(q).groups, 0);
    assert_err(wq_add_with(q, NULL, keys, 1), WQ_OK);
    wq_destroy(q);
}

/* O-80: the lock is not held. Gets and dones do not call it. */
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
    for_each(t->q, "a1 b1 a2 b2", work_on);
    assert_int_equal(c.calls, 4);
    timed_destroy(t);
}

/* ---- who sees it --------------------------------------------------------- */

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
    wq_queue   *q = open_queue(WQ_CONFIG(.group = wq_group_before_slash));
    size_t      seen = 0;
    const char  key[] = "tenant/1";
    wq_key_info info = {.size = sizeof info};

    for_each(q, "tenant/1 b/1 nobody", add);
    assert_err(wq_read_key(q, wq_str(key), &info), WQ_OK);
    assert_ptr_equal(info.group.data, key);
    assert_int_equal(info.group.len, 6);
    assert_int_equal(info_of(q, "unknown/1").group.len, 7);
    assert_int_equal(info_of(q, "nobody").group.len, 0);
    assert_non_null(info_of(q, "nobody").group.data);
    assert_err(wq_each(q, 0, see_group, &seen), WQ_OK);
    assert_int_equal(seen, 3);
    wq_destroy(q);
}

/* O-32 */
TEST(queue_without_groups_shows_none)
{
    wq_queue *q = *state;

    add(q, "a/1");
    assert_null(info_of(q, "a/1").group.data);
    assert_int_equal(counts_of(q).groups, 0);
    assert_int_equal(counts_of(q).offered, 1);
}

/* O-80 L6 */
TEST(groups_come_and_go_with_their_keys)
{
    enum { GROUPS = 1000, KEYS = 2 * GROUPS };
    struct counting mem;
    char            key[32];

    counting_init(&mem);
    wq_queue *q = open_queue(
        WQ_CONFIG(.allocator = &mem.allocator, .group = wq_group_before_slash));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2 * KEYS; i++) { /* add all, then work on all */
            (void)snprintf(key, sizeof key, "group %d/%d", i % GROUPS,
                           i % KEYS);
            (i < KEYS ? add : work_on)(q, key);
            if (i == KEYS - 1)
                assert_int_equal(counts_of(q).groups, GROUPS);
        }
        assert_int_equal(counts_of(q).groups, 0);
    }
    for_each(q, "a/1 a/2 b/1", add);
    (void)take(q);
    wq_destroy(q);
    assert_int_equal(mem.bytes, 0);
}

WQ_TESTS(test(group_before_slash_is_what_stands_before_the_first_slash),
         test(any_part_of_a_key_can_be_its_group),
         test(group_of_no_bytes_may_be_null),
         test(group_outside_its_key_is_refused),
         test(batch_with_one_wrong_group_adds_none),
         test(group_function_may_call_the_queue),
         test(group_of_a_key_can_be_read),
         test_with(queue_without_groups_shows_none, make_queue, drop_queue),
         test(groups_come_and_go_with_their_keys));
