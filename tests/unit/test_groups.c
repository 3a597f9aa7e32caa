/* SPDX-License-Identifier: MIT */
/* test_groups.c: do lanes, rings and the list by age agree with a simpler
 * program?
 *
 * Random walks of a core with groups, priorities, a bound of HELD keys or
 * ageing, beside a model made of plain arrays. Every hand-out must be the same,
 * and the core sound after every step. Then the table of groups by itself.
 */
#include "unit/core_fixture.h"

#include "core/inside.h"
#include "unit/dice.h"

enum { KEYS = 40, GROUPS = 6, LEVELS = 3, STEPS = 4000, BOUND = 60 };

/* ---- the model ---------------------------------------------------------- */

/* A list of numbers, in order. */
struct list {
    int    at[KEYS];
    size_t len;
};

static void
append(struct list *l, int n)
{
    l->at[l->len++] = n;
}

static bool
drop(struct list *l, int n)
{
    for (size_t i = 0; i < l->len; i++)
        if (l->at[i] == n) {
            memmove(&l->at[i], &l->at[i + 1], (--l->len - i) * sizeof l->at[0]);
            return true;
        }
    return false;
}

struct model {
    bool        grouped;       /* else all keys are of one group */
    size_t      max_held;      /* 0: any number */
    int64_t     bound;         /* of ageing; 0: none */
    struct list line;          /* READY keys; those of a lane in order */
    struct list age;           /* READY keys, in the order they became so */
    struct list rings[LEVELS]; /* groups, the next one first */
    size_t      held[GROUPS];
    struct {
        bool     ready, dirty;
        int      level; /* READY, DIRTY */
        int64_t  since;
        wq_item *item; /* HELD */
    } key[KEYS];
    uint64_t overdue;
};

static struct model m;

static int
group_of(int k)
{
    return m.grouped ? k % GROUPS : 0;
}

/* The first key in a lane; -1: it is empty. */
static int
first_in(int group, int level)
{
    for (size_t i = 0; i < m.line.len; i++)
        if (group_of(m.line.at[i]) == group &&
            m.key[m.line.at[i]].level == level)
            return m.line.at[i];
    return -1;
}

static bool
is_blocked(int group)
{
    return m.max_held && m.held[group] >= m.max_held;
}

static void
model_push(int k)
{
    const int  group = group_of(k), level = m.key[k].level;
    const bool begins = first_in(group, level) < 0;

    append(&m.line, k);
    if (begins && !is_blocked(group))
        append(&m.rings[level], group);
}

static void
model_take_out(int k)
{
    assert_true(drop(&m.line, k));
    if (first_in(group_of(k), m.key[k].level) < 0)
        (void)drop(&m.rings[m.key[k].level], group_of(k));
}

static void
model_add(int k, int level, int64_t now)
{
    if (m.key[k].ready && level > m.key[k].level) {
        model_take_out(k);
        m.key[k].level = level;
        model_push(k);
    } else if (m.key[k].dirty && level > m.key[k].level) {
        m.key[k].level = level;
    }
    if (m.key[k].ready || m.key[k].dirty)
        return;
    m.key[k].level = level;
    m.key[k].since = now;
    m.key[k].dirty = m.key[k].item != NULL;
    m.key[k].ready = !m.key[k].dirty;
    if (m.key[k].ready) {
        model_push(k);
        append(&m.age, k);
    }
}

/* Whose turn is it? -1: no key is offered. */
static int
next_turn(void)
{
    for (int level = LEVELS; level-- > 0;)
        if (m.rings[level].len)
            return first_in(m.rings[level].at[0], level);
    return -1;
}

static int
model_get(int64_t now)
{
    int k = next_turn();
    if (k < 0)
        return k;

    if (m.bound && now - m.key[m.age.at[0]].since >= m.bound) {
        m.overdue += k != m.age.at[0];
        k = m.age.at[0];
    } else {
        struct list *ring = &m.rings[m.key[k].level];
        (void)drop(ring, group_of(k));
        append(ring, group_of(k)); /* its turn is over */
    }
    model_take_out(k);
    (void)drop(&m.age, k);
    m.key[k].ready = false;
    m.held[group_of(k)]++;
    for (int level = 0; level < LEVELS && is_blocked(group_of(k)); level++)
        (void)drop(&m.rings[level], group_of(k));
    return k;
}

static void
model_done(int k, int64_t now)
{
    const int  group = group_of(k);
    const bool was_blocked = is_blocked(group);

    if (m.key[k].dirty) {
        m.key[k].dirty = false;
        m.key[k].ready = true;
        m.key[k].since = now;
        model_push(k);
        append(&m.age, k);
    }
    m.key[k].item = NULL;
    m.held[group]--;
    for (int level = 0; level < LEVELS && was_blocked; level++)
        if (first_in(group, level) >= 0)
            append(&m.rings[level], group);
}

static void
model_remove(int k)
{
    if (m.key[k].ready) {
        model_take_out(k);
        (void)drop(&m.age, k);
    }
    m.key[k].ready = m.key[k].dirty = false;
}

static size_t
model_offers(void)
{
    size_t ready[GROUPS] = {0}, sum = 0;

    for (size_t i = 0; i < m.line.len; i++)
        ready[group_of(m.line.at[i])]++;
    for (int g = 0; g < GROUPS; g++) {
        const size_t more = m.max_held ? m.max_held - m.held[g] : KEYS;
        sum += ready[g] < more ? ready[g] : more;
    }
    return sum;
}

/* ---- the core beside it ------------------------------------------------- */

/* Keys of group 0 have none. */
static const char *
name_of(int k)
{
    static char text[32];

    (void)snprintf(text, sizeof text, k % GROUPS ? "group%d/%d" : "key%d-%d",
                   k % GROUPS, k);
    return text;
}

static void
step_get(int64_t now)
{
    const int k = model_get(now);

    if (k < 0) {
        expect_nothing_to_get();
        return;
    }
    m.key[k].item = get_at(now, name_of(k));
    assert_int_equal(m.key[k].item->priority, m.key[k].level - 1);
}

static void
step_done(struct dice *dice, int64_t now)
{
    const int k = (int)dice_roll(dice, KEYS);

    if (!m.key[k].item)
        return;
    done_at(now, m.key[k].item);
    model_done(k, now);
}

static void
step_remove(struct dice *dice, int64_t now)
{
    const int    k = (int)dice_roll(dice, KEYS);
    const wq_err expected = m.key[k].ready || m.key[k].dirty ? WQ_OK
                            : m.key[k].item                  ? WQ_ESTATE
                                                             : WQ_ENOTFOUND;

    assert_int_equal(take_back(name_of(k), now), expected);
    model_remove(k);
}

/* `bias`: how many of ten steps are adds. */
static void
step(struct dice *dice, int64_t now, size_t bias)
{
    const size_t what = dice_roll(dice, 10);

    if (what < bias) {
        const int k = (int)dice_roll(dice, KEYS);
        const int level = (int)dice_roll(dice, LEVELS);
        add_grouped(name_of(k), level - 1, now);
        model_add(k, level, now);
    } else if (what == 9) {
        step_remove(dice, now);
    } else if (what % 2) {
        step_get(now);
    } else {
        step_done(dice, now);
        step_done(dice, now);
    }
}

static void
walk(uint64_t seed, size_t max_held, int64_t bound, bool grouped)
{
    struct dice dice = dice_from(seed);

    m = (struct model){
        .grouped = grouped, .max_held = max_held, .bound = bound};
    open_masked(seed % 2 ? UINT32_MAX : 3, NULL);
    if (grouped)
        wq__core_have_groups(&f.core, max_held);
    if (bound)
        wq__core_serve_after(&f.core, bound);
    for (int64_t i = 0; i < STEPS; i++) {
        step(&dice, i, i % 400 < 200 ? 5 : 2); /* fills, runs empty */
        expect_sound();
        assert_int_equal(wq__core_offers(&f.core), model_offers());
        assert_int_equal(f.core.ready.overdue, m.overdue);
    }
    (void)close_core(NULL);
}

/* O-80 */
TEST(random_walk_of_groups_agrees_with_the_model)
{
    for (uint64_t seed = 1; seed <= 8; seed++)
        walk(seed, 0, 0, true);
}

/* O-80 */
TEST(random_walk_of_bounded_groups_agrees_with_the_model)
{
    for (uint64_t seed = 1; seed <= 12; seed++)
        walk(seed, (size_t)(1 + seed % 3), 0, true);
}

/* O-89 O-80 */
TEST(random_walk_of_ageing_groups_agrees_with_the_model)
{
    for (uint64_t seed = 1; seed <= 8; seed++)
        walk(seed, 0, BOUND, true);
}

/* O-89 */
TEST(random_walk_of_an_ageing_queue_agrees_with_the_model)
{
    for (uint64_t seed = 1; seed <= 8; seed++)
        walk(seed, 0, BOUND, false);
}

/* ---- the table ---------------------------------------------------------- */

static const struct wq__groups *const groups = &f.core.ready.groups;

static int
open_groups(void **state)
{
    (void)open_core(state);
    wq__core_have_groups(&f.core, 0);
    return 0;
}

static void
add_key(const char *key)
{
    add_grouped(key, 0, 0);
}

static void
remove_key(const char *key)
{
    assert_int_equal(take_back(key, 0), WQ_OK);
    expect_sound();
}

/* The key of group number n. */
static const char *
key_in(int n)
{
    static char text[32];

    (void)snprintf(text, sizeof text, "%d/1", n);
    return text;
}

/* Whatever their hashes. */
TEST(groups_differ_by_their_bytes)
{
    for (int collide = 0; collide <= 1; collide++) {
        open_masked(collide ? 0 : UINT32_MAX, NULL);
        wq__core_have_groups(&f.core, 0);
        for_words("a/1 ab/1 b/1 none /1", add_key);
        assert_int_equal(groups->live, 4);
        for_words("a/2 ab/2", add_key);
        assert_int_equal(groups->live, 4);
        for_words("ab/1 none", remove_key);
        assert_int_equal(groups->live, 4);
        for_words("/1 b/1", remove_key);
        assert_int_equal(groups->live, 2);
        (void)close_core(NULL);
    }
}

/* So that the table does not grow when groups come and go. */
TEST(places_and_numbers_of_groups_are_used_again)
{
    add_key("stays/1");
    for (int i = 0; i < 1000; i++) {
        add_key(key_in(i));
        remove_key(key_in(i));
    }
    assert_int_equal(groups->fresh, 3);
    for (int i = 0; i < 100; i++)
        add_key(key_in(i));
    const uint32_t cap = groups->cap;
    for (int i = 0; i < 1000; i++) {
        remove_key(key_in(i));
        add_key(key_in(i + 100));
    }
    assert_int_equal(groups->live, 101);
    assert_int_equal(groups->cap, cap);
}

/* Of the table; a small one stays, for the next key. */
TEST(memory_of_groups_goes_back_with_the_last_one)
{
    for (int i = 0; i < 500; i++)
        add_key(key_in(i));
    for (int i = 0; i < 500; i++)
        remove_key(key_in(i));
    assert_int_equal(groups->live, 0);
    assert_int_equal(groups->cap, 0);
    assert_null(groups->at);
    add_key("a/1");
    remove_key("a/1");
    assert_int_not_equal(groups->cap, 0);
}

#define groups_test(name) test_with(name, open_groups, close_core)

WQ_TESTS(test(random_walk_of_groups_agrees_with_the_model),
         test(random_walk_of_bounded_groups_agrees_with_the_model),
         test(random_walk_of_ageing_groups_agrees_with_the_model),
         test(random_walk_of_an_ageing_queue_agrees_with_the_model),
         test(groups_differ_by_their_bytes),
         groups_test(places_and_numbers_of_groups_are_used_again),
         groups_test(memory_of_groups_goes_back_with_the_last_one));
