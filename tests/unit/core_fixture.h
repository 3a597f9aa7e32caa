/* SPDX-License-Identifier: MIT */
/* core_fixture.h: how do tests drive the core?
 *
 * One core, by functions that check as they go, or by scripts (script.h) with
 * the verbs of act_on_core(). Keys are strings and times are numbers. The
 * auditor runs after every step, and after a test no memory may be missing.
 */
#ifndef WQ_TEST_CORE_FIXTURE_H
#define WQ_TEST_CORE_FIXTURE_H

#include "unit/script.h"

#include "core/core.h"
#include "support/counting.h"
#include "support/plug_in.h"

enum { HELD_MAX = 16 };

struct fixture {
    struct counting mem;
    struct wq__core core;
    struct plug_in  plug_in;
    wq_item        *held[HELD_MAX]; /* what scripts have got and not done */
    uint64_t        turns[8];       /* of the flushes that scripts began */
    int64_t         work;           /* how long the last one was HELD */
    bool            prepared;       /* scripts add by wq__core_add_with() */
};

static struct fixture f;

/* Hashes are cut to the bits of `mask`. */
static inline void
open_masked(uint32_t mask, const wq_order *order)
{
    const struct wq__hash_key secret = {.k0 = 1, .k1 = 2, .mask = mask};

    counting_init(&f.mem);
    wq__core_init(&f.core, secret, order, &f.mem.allocator);
}

static inline void
open_with(const wq_order *order)
{
    open_masked(UINT32_MAX, order);
}

static inline int
open_core(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    open_with(NULL);
    return 0;
}

/* A wq_order decides: the newest key first, no raise, no remove. */
static inline int
open_lifo(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    f.plug_in.newest_first = true;
    const wq_order order = plug_in_order(&f.plug_in);
    open_with(&order);
    return 0;
}

static inline void
expect_sound(void)
{
    const char *broken = wq__core_check(&f.core);
    if (broken)
        fail_msg("%s: \"%s\": %s", script.scene ? script.scene : "",
                 script.step, broken);
}

static inline int
close_core(void **state)
{
    (void)state;
    expect_sound();
    wq__core_fini(&f.core);
    assert_int_equal(f.mem.bytes, 0);
    return 0;
}

#define core_test(name) test_with(name, open_core, close_core)
#define lifo_test(name) test_with(name, open_lifo, close_core)

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
        victims = wq__core_free_victim(&f.core, victims);
}

/* One key. `at` matters for WQ__ADD_AT alone. */
static inline wq_err
try_add(const struct wq__how *how, const char *s, int64_t at, wq_added *added)
{
    const wq_key        key = wq_str(s);
    struct wq__prepared pick = {.hash = hash_of(s), .at = at};
    wq__ref             victims = 0;
    const wq_err        err =
        wq__core_add_with(&f.core, how, &key, &pick, 1, NULL, &victims);

    bury_all(victims);
    *added = pick.added;
    return err;
}

static inline wq_added
add_how(const struct wq__how *how, const char *s, int64_t at)
{
    wq_added added;

    assert_int_equal(try_add(how, s, at, &added), WQ_OK);
    expect_sound();
    return added;
}

#define HOW(...) (&(struct wq__how){__VA_ARGS__})

static inline void
add(const char *s, int priority, wq_added expected)
{
    assert_int_equal(add_how(HOW(.priority = priority), s, 0), expected);
}

/* The group of a key is what is before its '/'. */
static inline void
add_grouped(const char *s, int priority, int64_t now)
{
    const struct wq__how how = {.now = now, .priority = priority};
    const wq_key         key = wq_str(s);
    struct wq__prepared  pick = {.hash = hash_of(s)};

    pick.group = wq_group_before_slash(NULL, key);
    if (pick.group.len)
        pick.group_hash = wq__core_hash(&f.core, pick.group);
    assert_int_equal(
        wq__core_add_with(&f.core, &how, &key, &pick, 1, NULL, NULL), WQ_OK);
    expect_sound();
}

/* ---- the rest of a life ------------------------------------------------- */

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
    assert_null(item);
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

/* ---- looking ------------------------------------------------------------ */

static inline wq_key_info
look_at(const char *s, int64_t now)
{
    wq_key_info info = {.size = sizeof info};
    wq__core_key_info(&f.core, wq_str(s), hash_of(s), now, &info);
    return info;
}

static inline wq_stats
counts_at(int64_t now)
{
    wq_stats counts = {0};
    wq__core_stats(&f.core, now, &counts);
    return counts;
}

/* ---- verbs of scripts --------------------------------------------------- */

/* What stands between the key and the result of an add. False: an option that
 * only wq__core_add_with() knows. */
static inline bool
read_add_option(const char *word, struct wq__how *how, int64_t *at)
{
    static const char *const   policies[] = {"keep", "merge", "replace",
                                             "ignore"};
    static const wq_if_waiting waiting[] = {
        WQ_IF_WAITING_KEEP, WQ_IF_WAITING_MERGE, WQ_IF_WAITING_REPLACE,
        WQ_IF_WAITING_IGNORE};
    const char *const value = word + strcspn(word, "=") + 1; /* after a = */

    if (*word == '@') {
        how->kind = WQ__ADD_AT;
        *at = number(word + 1);
        return true;
    }
    if (is(word, "backoff")) {
        how->backoff = true;
        return true;
    }
    for (size_t i = 0; i < LEN(policies); i++)
        if (is(word, policies[i])) {
            how->waiting = waiting[i];
            return false;
        }
    if (*word == '+' || *word == '-')
        how->priority = (int)number(word);
    else if (is(word, "displace"))
        how->displace = true;
    else if (strncmp(word, "max=", 4) == 0)
        how->max_wait = number(value);
    else if (strncmp(word, "debounce=", 9) == 0) {
        how->kind = WQ__ADD_DEBOUNCE;
        how->span = number(value);
    } else if (strncmp(word, "throttle=", 9) == 0) {
        how->kind = WQ__ADD_THROTTLE;
        how->span = number(value);
    } else {
        expect_word("unknown option", word);
    }
    return false;
}

static const char *const added_names[] = {
    [WQ_ADDED_NEW] = "NEW",
    [WQ_ADDED_MERGED] = "MERGED",
    [WQ_ADDED_DIRTY] = "DIRTY",
    [WQ_ADDED_RAISED] = "RAISED",
    [WQ_ADDED_SCHEDULED] = "SCHEDULED",
    [WQ_ADDED_SOONER] = "SOONER",
    [WQ_ADDED_LATER] = "LATER",
    [WQ_ADDED_KEPT] = "KEPT",
};

/* add KEY [@DEADLINE [backoff]] [debounce=SPAN [max=LONGEST]] [throttle=SPAN]
 *     [+PRIORITY] [keep|merge|replace|ignore] [displace] RESULT
 *
 * RESULT is a wq_added or an error. */
static inline void
verb_add(const char *const *word)
{
    const wq_key   key = wq_str(word[1]);
    const uint32_t hash = hash_of(word[1]);
    struct wq__how how = {.now = script.now};
    bool           plain = !f.prepared;
    int64_t        at = 0;
    wq_added       added = WQ_ADDED_NEW;
    wq_err         err;
    size_t         i = 2;

    for (; *word[i + 1]; i++)
        plain &= read_add_option(word[i], &how, &at);
    if (!plain)
        err = try_add(&how, word[1], at, &added);
    else if (how.kind == WQ__ADD_AT)
        err = wq__core_add_after(&f.core, key, hash, how.now, at, how.backoff,
                                 &added);
    else
        err = wq__core_add(&f.core, key, hash, how.now, &added);
    if (err)
        expect_err(err, word[i]);
    else
        expect_word(added_names[added], word[i]);
}

/* get KEY [+PRIORITY]; get -: there is nothing to get, or the error. */
static inline void
verb_get(const char *const *word)
{
    wq_item     *item = NULL;
    const wq_err err = wq__core_get(&f.core, script.now, &item);
    size_t       i = 0;

    if (is(word[1], "-")) {
        expect_err(err, *word[2] ? word[2] : "ENOTFOUND");
        assert_null(item);
        return;
    }
    expect_err(err, "OK");
    expect_word(item->key.data, word[1]);
    assert_int_equal(item->key.len, strlen(word[1]));
    if (*word[2])
        expect_number(item->priority, word[2]);
    while (i < HELD_MAX - 1 && f.held[i])
        i++;
    f.held[i] = item;
}

/* The item that `get KEY` got. */
static inline wq_item **
held_item(const char *key)
{
    for (size_t i = 0; i < HELD_MAX; i++)
        if (f.held[i] && is(f.held[i]->key.data, key))
            return &f.held[i];
    fail_msg("%s: \"%s\": %s is not HELD", script.scene, script.step, key);
    return NULL;
}

/* done KEY [ERROR] */
static inline void
verb_done(const char *const *word)
{
    wq_item **item = held_item(word[1]);

    expect_err(
        wq__core_done(&f.core, *item, script.now, f.core.ages ? &f.work : NULL),
        *word[2] ? word[2] : "OK");
    if (!*word[2])
        *item = NULL;
}

/* run KEY [+PRIORITY] */
static inline void
verb_run(const char *const *word)
{
    const char *const end[] = {"done", word[1], "", ""};

    verb_get(word);
    verb_done(end);
}

/* pass TIME: what is due by then acts. */
static inline void
pass_to(int64_t now)
{
    script.now = now;
    wq__core_promote(&f.core, now);
    expect_sound();
}

/* due KEY TIME: it is not READY one nanosecond before, and is then. */
static inline void
verb_due(const char *const *word)
{
    const int64_t at = number(word[2]);

    pass_to(at - 1);
    if (look_at(word[1], at - 1).states & WQ_STATE_READY)
        expect_word("READY too early", word[2]);
    pass_to(at);
    if (!(look_at(word[1], at).states & WQ_STATE_READY))
        expect_word("not READY", word[2]);
}

/* states KEY STATE...; states KEY -: none. */
static inline void
verb_states(const char *const *word)
{
    static const char *const names[] = {"READY", "HELD", "DIRTY", "WAITING",
                                        "BACKOFF"};
    const unsigned           states = look_at(word[1], script.now).states;
    char                     actual[64] = "", expected[64] = "";

    for (size_t i = 0; i < LEN(names); i++)
        if (states & 1U << i)
            strcat(strcat(actual, *actual ? " " : ""), names[i]);
    for (size_t i = 2; *word[i]; i++)
        strcat(strcat(expected, *expected ? " " : ""), word[i]);
    expect_word(*actual ? actual : "-", expected);
}

/* NAME N: what the core counts; NAME KEY N: what it knows of a key. False:
 * there is no such number. */
static inline bool
verb_number(const char *const *word)
{
    const wq_key_info at_0 = look_at(word[1], 0);
    const wq_key_info info = look_at(word[1], script.now);
    const wq_stats    counts = counts_at(script.now);
    const struct {
        const char *name;
        int64_t     value;
        bool        of_key;
    } numbers[] = {
        {"deadline", at_0.wait_ns, true},
        {"priority", info.priority, true},
        {"ready-for", info.ready_ns, true},
        {"held-for", info.held_ns, true},
        {"waits-for", info.wait_ns, true},
        {"len", (int64_t)wq__core_len(&f.core), false},
        {"next", wq__core_next_deadline(&f.core), false},
        {"next-in", counts.next_ns, false},
        {"idle", wq__core_idle(&f.core), false},
        {"empty", wq__core_empty(&f.core), false},
        {"waiting", (int64_t)wq__core_waiting(&f.core), false},
        {"records", (int64_t)f.core.recs.live, false},
        {"loans", (int64_t)f.core.loans.live, false},
        {"dirty", (int64_t)f.core.dirty, false},
        {"paces", (int64_t)f.core.throttle_states.live, false},
        {"entries", (int64_t)f.core.waiting.len, false},
        {"reserved", (int64_t)f.core.waiting.reserved, false},
        {"levels", (int64_t)f.core.ready.levels.used, false},
        {"flushing", (int64_t)(f.core.flush.epoch - f.core.flush.first), false},
        {"capacity", (int64_t)wq__core_free_capacity(&f.core).keys, false},
        {"adds", (int64_t)counts.adds, false},
        {"merged", (int64_t)counts.merged, false},
        {"deferred", (int64_t)counts.deferred, false},
        {"displaced", (int64_t)counts.displaced, false},
        {"dropped", (int64_t)counts.drops, false},
        {"removed", (int64_t)counts.removed, false},
        {"unfinished", counts.unfinished_ns, false},
        {"longest", counts.longest_ns, false},
        {"work", f.work, false},
        {"touches", (int64_t)f.plug_in.touches, false},
    };

    for (size_t i = 0; i < LEN(numbers); i++)
        if (is(word[0], numbers[i].name)) {
            expect_number(numbers[i].value, word[1 + numbers[i].of_key]);
            return true;
        }
    return false;
}

/* The verbs above, and
 *
 *     remove KEY ERROR       bound N: of keys       shutdown
 *     cancel KEY ERROR       respect: backoffs      drop-waiting
 *     done-key KEY ERROR     ages: they are kept    latency KEY N: if HELD
 *     refuse N: which push the wq_order refuses
 *     mark KEY ERROR: to be removed at done         unmark KEY ERROR
 *     flush N: begin it     flushed N: it is over   unflushed N
 */
static inline bool
act_on_core(const char *const *word)
{
    const wq_key   key = wq_str(word[1]);
    const uint32_t hash = hash_of(word[1]);

    if (is(word[0], "add"))
        verb_add(word);
    else if (is(word[0], "get"))
        verb_get(word);
    else if (is(word[0], "done"))
        verb_done(word);
    else if (is(word[0], "run"))
        verb_run(word);
    else if (is(word[0], "pass"))
        pass_to(number(word[1]));
    else if (is(word[0], "due"))
        verb_due(word);
    else if (is(word[0], "states"))
        verb_states(word);
    else if (is(word[0], "remove"))
        expect_err(wq__core_remove(&f.core, key, hash, script.now), word[2]);
    else if (is(word[0], "cancel"))
        expect_err(wq__core_cancel(&f.core, key, hash, script.now), word[2]);
    else if (is(word[0], "done-key"))
        expect_err(wq__core_done_key(&f.core, key, hash, script.now, NULL),
                   word[2]);
    else if (is(word[0], "latency"))
        expect_number(wq__core_latency(*held_item(word[1])), word[2]);
    else if (is(word[0], "ages"))
        wq__core_keep_ages(&f.core);
    else if (is(word[0], "bound"))
        f.core.max_len = (size_t)number(word[1]);
    else if (is(word[0], "respect"))
        f.core.respect = true;
    else if (is(word[0], "refuse"))
        f.plug_in.refuse = (int)number(word[1]);
    else if (is(word[0], "shutdown"))
        wq__core_shut_down(&f.core);
    else if (is(word[0], "mark") || is(word[0], "unmark"))
        expect_err(
            wq__core_remove_at_done(&f.core, key, hash, is(word[0], "mark")),
            word[2]);
    else if (is(word[0], "flush"))
        f.turns[number(word[1])] = wq__core_begin_flush(&f.core);
    else if (is(word[0], "flushed") || is(word[0], "unflushed"))
        expect_word(wq__core_has_flushed(&f.core, f.turns[number(word[1])])
                        ? "flushed"
                        : "unflushed",
                    word[0]);
    else if (is(word[0], "drop-waiting"))
        wq__core_drop_waiting(&f.core);
    else
        return verb_number(word);
    return true;
}

/* Steps in the middle of a test. */
static inline void
play(const char *steps)
{
    script_run(&(struct scene){"", steps}, act_on_core, expect_sound);
}

/* Every scene runs twice: adds without options go through wq__core_add() and
 * wq__core_add_after(), then through wq__core_add_with() as all others do. */
static inline void
run_scenes(const struct scene *scenes, size_t n, int (*open)(void **))
{
    for (size_t i = 0; i < 2 * n; i++) {
        (void)open(NULL);
        f.prepared = i % 2;
        script_run(&scenes[i / 2], act_on_core, expect_sound);
        (void)close_core(NULL);
    }
}

#endif
