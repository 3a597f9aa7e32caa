/* SPDX-License-Identifier: MIT */
/* test_inspect.c: which arguments do wq_read_stats(), wq_read_depths(),
 * wq_read_key() and wq_each() accept, and what may a visit do?
 *
 * See scenarios/inspect.scenario for what they report. */
#include "asked.h"

#include <stdio.h>

#include <wq/backend.h>
#include <wq/limiter.h>

#include "support/counting.h"
#include "support/plain_queue.h"

static int
make_aged(void **state)
{
    *state = timed_create(
        WQ_CONFIG(.ages = true,
                  .limiter = wq_limiter_exponential(5 * MS, 1000 * S)));
    return 0;
}

/* An entry of WQ_TESTS() for a test that wants ages. */
#define with_ages(name) test_with(name, make_aged, timed_teardown)

/* ---- sizes, and what is refused ------------------------------------------ */

/* O-30 O-32 */
TEST(struct_of_an_older_program_is_filled_to_its_end)
{
    const struct timed *t = *state;
    wq_stats            counts;
    wq_key_info         info;

    add(t->q, "a");
    memset(&counts, 0xa5, sizeof counts);
    counts.size = offsetof(wq_stats, sleeping);
    assert_err(wq_read_stats(t->q, &counts), WQ_OK);
    assert_int_equal(counts.size, offsetof(wq_stats, sleeping));
    assert_int_equal(counts.ready, 1);
    assert_int_equal(counts.waiting, 0);
    assert_int_equal(counts.sleeping, (size_t)0xa5a5a5a5a5a5a5a5);
    assert_int_equal(counts.drops, UINT64_C(0xa5a5a5a5a5a5a5a5));

    memset(&info, 0xa5, sizeof info);
    info.size = offsetof(wq_key_info, held_ns);
    assert_err(wq_read_key(t->q, wq_str("a"), &info), WQ_OK);
    assert_int_equal(info.size, offsetof(wq_key_info, held_ns));
    assert_int_equal(info.states, WQ_STATE_READY);
    assert_int_equal(info.ready_ns, 0);
    assert_int_equal(info.held_ns, (int64_t)0xa5a5a5a5a5a5a5a5);
    assert_int_equal(info.fence, UINT64_C(0xa5a5a5a5a5a5a5a5));
}

/* O-30 O-32 */
TEST(unknown_fields_of_a_newer_struct_must_be_zero)
{
    const struct timed *t = *state;
    struct {
        wq_stats known;
        uint64_t unknown;
    } counts = {.unknown = 0};
    struct {
        wq_key_info known;
        uint64_t    unknown;
    } info = {.unknown = 0};

    add(t->q, "a");
    counts.known.size = sizeof counts;
    assert_err(wq_read_stats(t->q, &counts.known), WQ_OK);
    assert_int_equal(counts.known.size, sizeof counts);
    assert_int_equal(counts.known.adds, 1);
    assert_int_equal(counts.unknown, 0);
    info.known.size = sizeof info;
    assert_err(wq_read_key(t->q, wq_str("a"), &info.known), WQ_OK);
    assert_int_equal(info.known.size, sizeof info);
    assert_int_equal(info.known.states, WQ_STATE_READY);
    assert_int_equal(info.unknown, 0);
    counts.unknown = info.unknown = 1;
    assert_err(wq_read_stats(t->q, &counts.known), WQ_EINVAL);
    assert_err(wq_read_key(t->q, wq_str("a"), &info.known), WQ_EINVAL);
}

/* O-30 O-32 */
TEST(struct_of_a_wrong_size_is_refused_and_not_written)
{
    const struct timed *t = *state;
    const size_t        word = sizeof(void *);
    const size_t        wrong[] = {0, word / 2, word + word / 2, 4096 + word};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        wq_stats    counts = {.size = wrong[i], .ready = 77};
        wq_key_info info = {.size = wrong[i], .states = 77};
        assert_err(wq_read_stats(t->q, &counts), WQ_EINVAL);
        assert_int_equal(counts.ready, 77);
        assert_err(wq_read_key(t->q, wq_str("a"), &info), WQ_EINVAL);
        assert_int_equal(info.states, 77);
    }
}

static bool
never(void *ctx, wq_key key, const wq_key_info *info)
{
    (void)ctx, (void)key, (void)info;
    fail_msg("a key was visited");
    return false;
}

/* O-30 O-31 O-32 O-33 */
TEST(bad_arguments_are_refused)
{
    static const char   too_long[WQ_KEY_MAX + 1];
    const struct timed *t = *state;
    wq_stats            counts = {.size = sizeof counts};
    wq_key_info         info = {.size = sizeof info};
    wq_depth            depth;
    size_t              n = 77;

    assert_err(wq_read_stats(NULL, &counts), WQ_EINVAL);
    assert_err(wq_read_stats(t->q, NULL), WQ_EINVAL);
    assert_err(wq_read_depths(NULL, &depth, 1, &n), WQ_EINVAL);
    assert_err(wq_read_depths(t->q, NULL, 1, &n), WQ_EINVAL);
    assert_err(wq_read_depths(t->q, &depth, 1, NULL), WQ_EINVAL);
    assert_int_equal(n, 77);
    assert_err(wq_read_depths(t->q, NULL, 0, &n), WQ_OK);
    assert_int_equal(n, 1);
    assert_err(wq_read_key(NULL, wq_str("a"), &info), WQ_EINVAL);
    assert_err(wq_read_key(t->q, wq_str("a"), NULL), WQ_EINVAL);
    assert_err(wq_read_key(t->q, wq_str(""), &info), WQ_EINVAL);
    assert_err(wq_read_key(t->q, wq_str(NULL), &info), WQ_EINVAL);
    assert_err(wq_read_key(t->q, (wq_key){too_long, sizeof too_long}, &info),
               WQ_ETOOLONG);
    add(t->q, "a");
    assert_err(wq_each(NULL, 0, never, NULL), WQ_EINVAL);
    assert_err(wq_each(t->q, 0, NULL, NULL), WQ_EINVAL);
    assert_err(wq_each(t->q, 64, never, NULL), WQ_EINVAL);
    assert_err(wq_each(t->q, 1U << 31 | WQ_STATE_READY, never, NULL),
               WQ_EINVAL);
    assert_err(wq_each(t->q, WQ_STATE_DEAD, never, NULL), WQ_OK); /* S-13 */
}

/* O-30 O-31 O-32 O-33 */
TEST(backend_without_these_functions_does_not_support_them)
{
    wq_queue   *q = NULL;
    wq_stats    counts = {.size = sizeof counts};
    wq_key_info info = {.size = sizeof info};
    size_t      n;

    assert_err(plain_create(PLAIN_REQUIRED, &q), WQ_OK);
    assert_err(wq_read_stats(q, &counts), WQ_ENOTSUP);
    assert_err(wq_read_depths(q, NULL, 0, &n), WQ_ENOTSUP);
    assert_err(wq_read_key(q, wq_str("a"), &info), WQ_ENOTSUP);
    assert_err(wq_each(q, 0, never, NULL), WQ_ENOTSUP);
    wq_destroy(q);
}

/* O-31 */
TEST(depths_do_not_write_beyond_the_array)
{
    const struct timed *t = *state;
    wq_depth            depths[3] = {{.keys = 77}, {.keys = 77}, {.keys = 77}};
    size_t              n = 0;

    for (int i = 1; i <= 5; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "%d", i);
        add_at(t->q, i, key);
    }
    assert_err(wq_read_depths(t->q, depths, 2, &n), WQ_OK);
    assert_int_equal(n, 6);
    assert_true(depths[0].keys <= 1 && depths[1].keys <= 1);
    assert_int_equal(depths[2].keys, 77);
}

/* O-32 Q-17 */
TEST(fence_is_that_of_the_loan)
{
    const struct timed *t = *state;

    add(t->q, "a");
    assert_int_equal(info_of(t->q, "a").fence, 0);
    wq_item       *item = take(t->q);
    const uint64_t first = item->fence;
    assert_int_equal(info_of(t->q, "a").fence, first);
    add(t->q, "a");
    finish(t->q, item);
    assert_int_equal(info_of(t->q, "a").fence, 0);
    item = take(t->q);
    assert_true(item->fence > first);
    assert_int_equal(info_of(t->q, "a").fence, item->fence);
    finish(t->q, item);
}

/* ---- what a visit may do ------------------------------------------------- */

/* What wq_each() has visited. */
struct walk {
    wq_queue *q;
    char      seen[64]; /* the keys' first letters, sorted */
    size_t    len;
    size_t    end_after; /* end the walk; 0: never */
    bool      removes;   /* each key it visits */
};

static bool
note(void *ctx, wq_key key, const wq_key_info *info)
{
    struct walk *walk = ctx;
    const char   letter = *(const char *)key.data;
    wq_key_info  again = {.size = sizeof again};
    size_t       i = walk->len++;

    assert_true(walk->len < sizeof walk->seen);
    for (; i > 0 && walk->seen[i - 1] > letter; i--)
        walk->seen[i] = walk->seen[i - 1];
    walk->seen[i] = letter;
    /* No other thread changes the key: both functions report the same. */
    assert_err(wq_read_key(walk->q, key, &again), WQ_OK);
    assert_int_equal(again.size, info->size);
    expect_same(&again, info);
    if (walk->removes)
        (void)wq_remove(walk->q, key);
    return walk->len != walk->end_after;
}

static void
assert_walk(wq_queue *q, unsigned states, const char *letters)
{
    struct walk walk = {.q = q};

    assert_err(wq_each(q, states, note, &walk), WQ_OK);
    assert_string_equal(walk.seen, letters);
}

/* r is READY, h HELD, d DIRTY, w WAITING, b in BACKOFF, x READY and WAITING. */
static void
make_all_kinds(struct timed *t)
{
    add(t->q, "h");
    add(t->q, "d");
    (void)take_key(t->q, "h");
    (void)take_key(t->q, "d");
    add(t->q, "d");
    add(t->q, "r");
    add(t->q, "x");
    add_after(t, "x", 1 * S);
    add_after(t, "w", 1 * S);
    assert_err(wq_add_rate_limited(t->q, wq_str("b")), WQ_OK);
    step(t, 1);
}

/* O-33 */
TEST(visit_can_end_the_walk)
{
    struct timed *t = *state;

    make_all_kinds(t);
    for (size_t n = 1; n <= 6; n++) {
        struct walk walk = {.q = t->q, .end_after = n};
        assert_err(wq_each(t->q, 0, note, &walk), WQ_OK);
        assert_int_equal(walk.len, n);
    }
}

static bool
count_down(void *ctx, wq_key key, const wq_key_info *info)
{
    size_t *left = ctx;

    (void)key, (void)info;
    assert_true(*left > 0);
    return --*left > 0;
}

/* O-33: more keys than are copied at a time. */
TEST(visit_can_end_a_long_walk)
{
    const struct timed *t = *state;

    for (uint64_t i = 0; i < 1000; i++)
        assert_err(wq_add(t->q, wq_u64(&i)), WQ_OK);
    for (size_t n = 1; n <= 1000; n += 37) {
        size_t left = n;
        assert_err(wq_each(t->q, 0, count_down, &left), WQ_OK);
        assert_int_equal(left, 0);
    }
}

/* O-33 */
TEST(visit_can_remove_keys)
{
    struct timed *t = *state;
    struct walk   walk = {.q = t->q, .removes = true};

    make_all_kinds(t);
    assert_err(wq_each(t->q, 0, note, &walk), WQ_OK);
    assert_string_equal(walk.seen, "bdhrwx");
    assert_walk(t->q, 0, "dh"); /* HELD keys stay HELD */
    assert_walk(t->q, WQ_STATE_DIRTY, "");
}

static bool
work_on_it(void *ctx, wq_key key, const wq_key_info *info)
{
    wq_queue *q = ctx;
    wq_item  *item = take(q);

    (void)info;
    assert_err(wq_add(q, key), WQ_OK);
    finish(q, item);
    assert_err(wq_each(q, WQ_STATE_HELD, never, NULL), WQ_OK);
    return true;
}

/* O-33: with gets, adds and dones, and a walk within the walk. */
TEST(visit_can_use_the_queue)
{
    const struct timed *t = *state;

    for (uint64_t i = 0; i < 300; i++)
        assert_err(wq_add(t->q, wq_u64(&i)), WQ_OK);
    assert_err(wq_each(t->q, 0, work_on_it, t->q), WQ_OK);
}

/* ---- large walks -------------------------------------------------------- */

enum { MANY = 100000 };

struct census {
    unsigned char times[MANY]; /* how often each number was visited */
    size_t        visits;
};

static bool
count(void *ctx, wq_key key, const wq_key_info *info)
{
    struct census *census = ctx;
    uint64_t       number;

    (void)info;
    assert_int_equal(key.len, sizeof number);
    memcpy(&number, key.data, sizeof number);
    assert_true(number < MANY);
    census->times[number]++;
    census->visits++;
    return true;
}

/* O-33 */
TEST(walk_visits_each_of_many_keys_once)
{
    static struct census census;
    struct timed        *t = *state;

    for (uint64_t i = 0; i < MANY; i++)
        assert_err(i % 3 ? wq_add(t->q, wq_u64(&i))
                         : wq_add_after(t->q, wq_u64(&i), 1 * S),
                   WQ_OK);
    assert_err(wq_each(t->q, 0, count, &census), WQ_OK);
    assert_int_equal(census.visits, MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(census.times[i], 1);

    memset(&census, 0, sizeof census);
    assert_err(wq_each(t->q, WQ_STATE_WAITING, count, &census), WQ_OK);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(census.times[i], i % 3 == 0);
}

enum { LONG = 20 }; /* so many of the longest keys */

struct long_walk {
    unsigned char times[LONG];
};

static bool
check_long(void *ctx, wq_key key, const wq_key_info *info)
{
    struct long_walk    *walk = ctx;
    const unsigned char *bytes = key.data;
    const unsigned       which = bytes[0];

    (void)info;
    assert_true(which < LONG);
    assert_int_equal(key.len, WQ_KEY_MAX - which);
    for (size_t i = 1; i < key.len; i++)
        if (bytes[i] != (unsigned char)(which + i))
            fail_msg("byte %zu of key %u", i, which);
    walk->times[which]++;
    return true;
}

/* O-33 */
TEST(walk_visits_long_keys_whole)
{
    static unsigned char bytes[WQ_KEY_MAX];
    struct long_walk     walk = {{0}};
    const struct timed  *t = *state;

    for (unsigned which = 0; which < LONG; which++) {
        bytes[0] = (unsigned char)which;
        for (size_t i = 1; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)(which + i);
        assert_err(wq_add(t->q, (wq_key){bytes, WQ_KEY_MAX - which}), WQ_OK);
    }
    assert_err(wq_each(t->q, 0, check_long, &walk), WQ_OK);
    for (unsigned which = 0; which < LONG; which++)
        assert_int_equal(walk.times[which], 1);
}

/* O-33: however it ends. */
TEST(walk_frees_its_memory)
{
    struct counting mem;

    counting_init(&mem);
    wq_queue *q = open_queue(WQ_CONFIG(.allocator = &mem.allocator));
    add(q, "a");
    add(q, "b");
    const size_t before = mem.bytes;
    for (size_t n = 0; n < 3; n++) {
        struct walk walk = {.q = q, .end_after = n};
        assert_err(wq_each(q, 0, note, &walk), WQ_OK);
        assert_int_equal(mem.bytes, before);
    }
    wq_destroy(q);
    assert_int_equal(mem.bytes, 0);
}

WQ_TESTS(with_ages(struct_of_an_older_program_is_filled_to_its_end),
         with_ages(unknown_fields_of_a_newer_struct_must_be_zero),
         with_ages(struct_of_a_wrong_size_is_refused_and_not_written),
         with_ages(bad_arguments_are_refused),
         test(backend_without_these_functions_does_not_support_them),
         with_ages(depths_do_not_write_beyond_the_array),
         with_ages(fence_is_that_of_the_loan),
         with_ages(visit_can_end_the_walk),
         with_ages(visit_can_end_a_long_walk), with_ages(visit_can_remove_keys),
         with_ages(visit_can_use_the_queue),
         with_ages(walk_visits_each_of_many_keys_once),
         with_ages(walk_visits_long_keys_whole), test(walk_frees_its_memory));
