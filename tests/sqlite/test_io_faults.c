/* SPDX-License-Identifier: MIT */
/* test_io_faults.c: what does each verb of a queue in a file do when the disk
 * fails? [S-18]
 *
 * A sweep fails the first I/O call of a verb, then the second, and so on until
 * the verb makes fewer calls (crash_vfs.h). Each round has a fresh copy of a
 * file with keys in all states:
 *
 *     open; prepare; the verb with the nth call failing;
 *     if it failed: WQ_EAWAY, then nothing has changed; or WQ_EIO;
 *                   call it again: it succeeds, or says that it had;
 *     all keys are as they should be, now and when the file is opened again.
 */
#include "support/wq_test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <wq/limiter.h>
#include <wq/sqlite.h>

#include "sqlite/crash_vfs.h"
#include "sqlite/place.h"
#include "support/audit.h"
#include "support/look.h"

static struct place template, at;
static wq_queue *q;     /* of the verb */
static wq_queue *other; /* changes the file, so that q's cache is old */
static wq_item  *held, *got[8];
static size_t    n_got;

/* ---- what is in the file ------------------------------------------------- */

static const char *const names[] = {"first", "second", "wait",   "failed",
                                    "dead",  "new",    "n1",     "n2",
                                    "n3",    "late",   "limited"};
enum { NAMES = sizeof names / sizeof *names };

struct view {
    unsigned states[NAMES];
    unsigned failures[NAMES];
};

static size_t
number_of(const char *name)
{
    for (size_t i = 0; i < NAMES; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    fail_msg("no key %s", name);
    return 0;
}

static struct view
look(wq_queue *queue)
{
    struct view v;

    for (size_t i = 0; i < NAMES; i++) {
        const wq_key_info info = info_of(queue, names[i]);

        v.states[i] = info.states;
        v.failures[i] = info.requeues;
    }
    return v;
}

static void
expect_view(const char *when, const struct view *actual,
            const struct view *expected)
{
    for (size_t i = 0; i < NAMES; i++)
        if (actual->states[i] != expected->states[i] ||
            actual->failures[i] != expected->failures[i])
            fail_msg("%s: key %s has states %u and %u failures, not %u and %u",
                     when, names[i], actual->states[i], actual->failures[i],
                     expected->states[i], expected->failures[i]);
}

static wq_err
open_file(wq_queue **out)
{
    return wq_sqlite_open(at.db, WQ_SQLITE_OPTIONS(.max_expiries = UINT_MAX),
                          WQ_CONFIG(.limiter = wq_limiter_exponential(
                                        WQ_SECONDS(3600), WQ_SECONDS(3600))),
                          out);
}

static void
add_ok(wq_queue *queue, const char *key, int priority)
{
    assert_err(wq_add_one_str(queue, key, WQ_ADD(.priority = priority)), WQ_OK);
}

static void
finish_next(const char *key, wq_result result)
{
    wq_item *item;

    add_ok(q, key, 100);
    assert_err(wq_get_within(q, 0, &item), WQ_OK);
    assert_err(wq_finish(q, item, result), WQ_OK);
}

/* A file with keys in all states but HELD. */
static int
make_template(void **state)
{
    (void)state;
    crash_vfs_install();
    at = place_make();
    assert_err(open_file(&q), WQ_OK);
    finish_next("failed", wq_result_retry());
    finish_next("dead", wq_result_bury());
    add_ok(q, "first", 2);
    add_ok(q, "second", 1);
    assert_err(wq_add_after_str(q, "wait", WQ_SECONDS(3600)), WQ_OK);
    wq_destroy(q);
    template = at;
    at = place_make();
    return 0;
}

static int
remove_template(void **state)
{
    (void)state;
    crash_vfs_reset();
    place_remove(&template);
    place_remove(&at);
    return 0;
}

static void
clear_place(void)
{
    place_remove(&at);
    at = place_make();
    crash_vfs_reset();
}

static void
start_round(void)
{
    clear_place();
    place_copy(&template, &at);
    assert_err(open_file(&q), WQ_OK);
    assert_err(open_file(&other), WQ_OK);
    held = NULL;
    n_got = 0;
    memset(got, 0, sizeof got);
}

/* ---- verbs --------------------------------------------------------------- */

/* What becomes of a key. */
struct becomes {
    const char *key;
    unsigned    states;
    unsigned    failures;
};

struct verb {
    const char *name;
    void (*prepare)(void);
    /* One of three: a call; the finish of `held`; a call about a key. */
    wq_err (*call)(void);
    wq_result (*result)(void);
    wq_err (*of_key)(wq_queue *q, const char *key);
    const char    *key;
    struct becomes becomes[4]; /* when the verb has succeeded */
    /* What a second call may say if the first one, WQ_EIO, took effect. */
    wq_err again;
    bool   counts_again; /* and what a second call may count twice */
};

static wq_err
call_add_many(void)
{
    const wq_key keys[] = {wq_str("n1"), wq_str("n2"), wq_str("n3")};

    return wq_add_with(q, NULL, keys, 3);
}

static wq_err
call_add_after(void)
{
    return wq_add_after_str(q, "late", WQ_SECONDS(3600));
}

static wq_err
call_get(void)
{
    return wq_get_within(q, 0, &held);
}

static wq_err
call_get_many(void)
{
    return wq_get_many(q, got, 8, 0, &n_got);
}

static void
hold(void)
{
    assert_err(wq_get_within(q, 0, &held), WQ_OK);
}

/* The key is added again meanwhile. */
static void
hold_dirty(void)
{
    hold();
    add_ok(q, "first", 0);
}

static wq_err
call_done(void)
{
    return wq_done(q, held);
}

static wq_err
call_next(void)
{
    return wq_next_with(q, wq_result_done(), 0, &held);
}

static wq_err
call_stats(void)
{
    wq_stats s = {.size = sizeof s};

    return wq_read_stats(q, &s);
}

static wq_err
call_depths(void)
{
    wq_depth out[8];
    size_t   n;

    return wq_read_depths(q, out, 8, &n);
}

static wq_err
call_each(void)
{
    size_t n = 0;

    return wq_each(q, 0, count_visit, &n);
}

static wq_err
call_read_key(void)
{
    wq_key_info info = {.size = sizeof info};

    return wq_read_key(q, wq_str("failed"), &info);
}

static void
ignore_problem(void *ctx, const char *text)
{
    (void)ctx, (void)text;
}

static wq_err
call_check(void)
{
    return wq_check(q, ignore_problem, NULL);
}

static wq_result
result_after(void)
{
    return wq_result_after(WQ_SECONDS(3600));
}

static wq_err
call(const struct verb *v)
{
    if (v->result)
        return wq_finish(q, held, v->result());
    return v->of_key ? v->of_key(q, v->key) : v->call();
}

enum {
    READY = WQ_STATE_READY,
    HELD = WQ_STATE_HELD,
    WAITING = WQ_STATE_WAITING,
    BACKOFF = WQ_STATE_WAITING | WQ_STATE_BACKOFF,
    DEAD = WQ_STATE_DEAD,
};

/* The end of a loan of "first". */
#define FINISH(text, how, ...)                                                 \
    {                                                                          \
        .name = (text), .prepare = hold, .result = (how),                      \
        .becomes = {{"first", __VA_ARGS__}}, .again = WQ_ELOST                 \
    }

#define OF_KEY(text, verb, which) .name = (text), .of_key = (verb), .key = which

static const struct verb verbs[] = {
    {OF_KEY("add", wq_add_str, "new"), .becomes = {{"new", READY, 0}}},
    {OF_KEY("add again", wq_add_str, "second")},
    {.name = "add many",
     .call = call_add_many,
     .becomes = {{"n1", READY, 0}, {"n2", READY, 0}, {"n3", READY, 0}}},
    {.name = "add after",
     .call = call_add_after,
     .becomes = {{"late", WAITING, 0}}},
    {OF_KEY("add rate limited", wq_add_rate_limited_str, "limited"),
     .becomes = {{"limited", BACKOFF, 1}}, .counts_again = true},
    {.name = "get", .call = call_get, .becomes = {{"first", HELD, 0}}},
    {.name = "get many",
     .call = call_get_many,
     .becomes = {{"first", HELD, 0}, {"second", HELD, 0}}},
    {.name = "done",
     .prepare = hold,
     .call = call_done,
     .becomes = {{"first", 0, 0}},
     .again = WQ_ELOST},
    {.name = "done, DIRTY",
     .prepare = hold_dirty,
     .call = call_done,
     .becomes = {{"first", READY, 0}},
     .again = WQ_ELOST},
    FINISH("finish: done", wq_result_done, 0, 0),
    FINISH("finish: retry", wq_result_retry, BACKOFF, 1),
    FINISH("finish: after", result_after, WAITING, 0),
    FINISH("finish: drop", wq_result_drop, 0, 0),
    FINISH("finish: back", wq_result_back, READY, 0),
    FINISH("finish: bury", wq_result_bury, DEAD, 0),
    {.name = "next",
     .prepare = hold,
     .call = call_next,
     .becomes = {{"first", 0, 0}, {"second", HELD, 0}}},
    {OF_KEY("remove", wq_remove_str, "second"), .becomes = {{"second", 0, 0}},
     .again = WQ_ENOTFOUND},
    {OF_KEY("cancel", wq_cancel_after_str, "wait"), .becomes = {{"wait", 0, 0}},
     .again = WQ_ENOTFOUND},
    {OF_KEY("forget", wq_forget_str, "failed"),
     .becomes = {{"failed", BACKOFF, 0}}},
    {OF_KEY("revive", wq_revive_str, "dead"), .becomes = {{"dead", READY, 0}},
     .again = WQ_ENOTFOUND},
    {.name = "stats", .call = call_stats},
    {.name = "depths", .call = call_depths},
    {.name = "each", .call = call_each},
    {.name = "read key", .call = call_read_key},
    {.name = "check", .call = call_check},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

/* ---- a round ------------------------------------------------------------- */

struct fault {
    const char        *name;
    unsigned           calls;
    enum crash_vfs_how how;
    bool               for_good;
};

static char round_name[256];

static void
expect_documented(wq_err err)
{
    if (err != WQ_EAWAY && err != WQ_EIO && err != WQ_ENOMEM)
        fail_msg("%s: %s: %s", round_name, wq_err_name(err), wq_last_error());
    if (!wq_last_error()[0])
        fail_msg("%s: %s without a message", round_name, wq_err_name(err));
}

static struct view
apply(const struct verb *v, struct view view)
{
    for (const struct becomes *b = v->becomes; b < v->becomes + 4 && b->key;
         b++) {
        view.states[number_of(b->key)] = b->states;
        view.failures[number_of(b->key)] = b->failures;
    }
    return view;
}

/* What others find when this handle is closed: its keys are READY. */
static struct view
release(struct view view)
{
    for (size_t i = 0; i < NAMES; i++)
        if (view.states[i] & HELD)
            view.states[i] = READY;
    return view;
}

/* A second call may count a failure twice. */
static void
allow_two(const struct verb *v, struct view *expected,
          const struct view *actual)
{
    const size_t i = v->counts_again ? number_of(v->becomes[0].key) : 0;

    if (v->counts_again && actual->failures[i] == expected->failures[i] + 1)
        expected->failures[i]++;
}

static void
retry(const struct verb *v, wq_err first)
{
    const wq_err err = call(v);

    if (err == WQ_OK || (first == WQ_EIO && v->again && err == v->again))
        return;
    fail_msg("%s: %s, then %s: %s", round_name, wq_err_name(first),
             wq_err_name(err), wq_last_error());
}

static void
expect_intact(wq_queue *queue)
{
    if (!audit_is_clean(queue))
        fail_msg("%s: the file is not consistent", round_name);
}

/* Returns whether the fault was reached. */
static bool
run_round(const struct verb *v, const struct fault *f, long nth)
{
    start_round();
    if (v->prepare)
        v->prepare();
    const struct view before = look(other);
    struct view       after = apply(v, before);
    add_ok(other, "noise", -1); /* q reads the file anew */

    crash_vfs_fail(f->calls, nth, f->how, f->for_good);
    const wq_err err = call(v);
    const bool   reached = crash_vfs_heal() > 0;
    (void)snprintf(round_name, sizeof round_name, "%s, %s, call %ld (%s)",
                   v->name, f->name, nth, reached ? crash_vfs_failed() : "-");
    if (!reached)
        assert_err(err, WQ_OK);
    if (err) {
        expect_documented(err);
        if (err == WQ_EAWAY) {
            const struct view now = look(other);
            expect_view(round_name, &now, &before);
        }
        expect_intact(other);
        retry(v, err);
    }
    const struct view now = look(other);
    allow_two(v, &after, &now);
    expect_view(round_name, &now, &after);
    expect_intact(q);
    wq_destroy(q);
    wq_destroy(other);
    assert_err(open_file(&q), WQ_OK);
    const struct view later = look(q), expected = release(after);
    expect_view(round_name, &later, &expected);
    expect_intact(q);
    wq_destroy(q);
    return reached;
}

/* A verb that does no I/O of this kind has a sweep of one round. */
static long
sweep(const struct verb *v, const struct fault *f)
{
    long nth = 1;

    while (run_round(v, f, nth))
        assert_true(++nth < 1000);
    return nth - 1;
}

static void
sweep_all(const struct fault *f)
{
    long sum = 0;

    for (size_t i = 0; i < VERBS; i++)
        sum += sweep(&verbs[i], f);
    print_message("%s: %ld failures\n", f->name, sum);
    assert_true(sum > 0);
}

TEST(each_io_call_of_each_verb_fails_once)
{
    const struct fault f = {"an I/O error", CRASH_VFS_ANY, CRASH_VFS_IOERR,
                            false};

    sweep_all(&f);
}

TEST(each_change_fails_after_it_was_made)
{
    const struct fault f = {"made, but failed",
                            CRASH_VFS_WRITE | CRASH_VFS_SYNC |
                                CRASH_VFS_TRUNCATE | CRASH_VFS_DELETE,
                            CRASH_VFS_DONE_ONLY, false};

    sweep_all(&f);
}

TEST(each_write_is_cut_short)
{
    const struct fault f = {"a short write", CRASH_VFS_WRITE, CRASH_VFS_SHORT,
                            false};

    sweep_all(&f);
}

TEST(disk_is_full_from_each_write_on)
{
    const struct fault f = {"a full disk", CRASH_VFS_WRITE, CRASH_VFS_FULL,
                            true};

    sweep_all(&f);
}

/* ---- opening and closing ------------------------------------------------- */

/* Returns whether the fault was reached. */
static bool
open_round(bool is_new, const struct fault *f, long nth)
{
    clear_place();
    if (!is_new)
        place_copy(&template, &at);
    q = NULL;
    crash_vfs_fail(f->calls, nth, f->how, f->for_good);
    const wq_err err = open_file(&q);
    const bool   reached = crash_vfs_heal() > 0;
    (void)snprintf(round_name, sizeof round_name, "open, %s, call %ld (%s)",
                   f->name, nth, reached ? crash_vfs_failed() : "-");
    if (!reached)
        assert_err(err, WQ_OK);
    if (err) {
        expect_documented(err);
        assert_null(q);
        if (open_file(&q))
            fail_msg("%s: again: %s", round_name, wq_last_error());
    }
    expect_intact(q);
    add_ok(q, "new", 0);
    wq_destroy(q);
    assert_err(open_file(&q), WQ_OK);
    const struct view now = look(q);
    assert_int_equal(now.states[number_of("new")], READY);
    if (!is_new)
        assert_int_equal(now.states[number_of("first")], READY);
    wq_destroy(q);
    return reached;
}

static void
sweep_open(bool is_new)
{
    const struct fault faults[] = {
        {"an I/O error", CRASH_VFS_ANY, CRASH_VFS_IOERR, false},
        {"made, but failed",
         CRASH_VFS_WRITE | CRASH_VFS_SYNC | CRASH_VFS_TRUNCATE |
             CRASH_VFS_DELETE,
         CRASH_VFS_DONE_ONLY, false},
        {"a full disk", CRASH_VFS_WRITE, CRASH_VFS_FULL, true},
    };
    long sum = 0;

    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        for (long nth = 1; open_round(is_new, &faults[i], nth); nth++)
            assert_true(++sum < 2000);
    print_message("%ld failures\n", sum);
}

TEST(each_io_call_of_an_open_fails_once)
{
    sweep_open(false);
}

TEST(each_io_call_of_the_first_open_fails_once)
{
    sweep_open(true);
}

TEST(each_io_call_of_a_destroy_fails_once)
{
    const struct fault f = {"an I/O error", CRASH_VFS_ANY, CRASH_VFS_IOERR,
                            false};
    bool               reached = true;

    for (long nth = 1; reached; nth++) {
        start_round();
        hold();
        wq_destroy(other);
        const struct view before = look(q), expected = release(before);
        crash_vfs_fail(f.calls, nth, f.how, false);
        wq_destroy(q);
        reached = crash_vfs_heal() > 0;
        (void)snprintf(round_name, sizeof round_name, "destroy, call %ld (%s)",
                       nth, reached ? crash_vfs_failed() : "-");
        assert_err(open_file(&q), WQ_OK);
        const struct view now = look(q);
        expect_view(round_name, &now, &expected);
        expect_intact(q);
        wq_destroy(q);
        assert_true(nth < 1000);
    }
}

/* ---- a hold that ended, and the next ------------------------------------- */

/* The finish of the first hold took effect, but says WQ_EIO. Its handle has the
 * key again, in the same session, when the first worker calls again. */
TEST(finish_that_is_repeated_does_not_end_a_later_hold)
{
    wq_item *again;

    start_round();
    hold();
    crash_vfs_fail(CRASH_VFS_SYNC, 1, CRASH_VFS_DONE_ONLY, false);
    assert_err(wq_finish(q, held, wq_result_back()), WQ_EIO);
    assert_int_equal(crash_vfs_heal(), 1);
    assert_err(wq_get_within(q, 0, &again), WQ_OK);
    assert_string_equal(again->key.data, "first");
    assert_true(again->fence > held->fence);
    const wq_err err = wq_finish(q, held, wq_result_back());
    if (err != WQ_ELOST) /* or it says what it had done */
        assert_err(err, WQ_OK);
    const struct view now = look(other);
    assert_int_equal(now.states[number_of("first")], HELD);
    assert_err(wq_finish(q, again, wq_result_done()), WQ_OK);
    expect_intact(q);
    wq_destroy(q);
    wq_destroy(other);
}

/* ---- syncs that fail ----------------------------------------------------- */

/* The store says that there is nothing to end: it is on disk only if a sync says
 * so. */
TEST(finish_that_is_repeated_after_a_failed_sync_is_synced)
{
    start_round();
    hold();
    crash_vfs_fail(CRASH_VFS_SYNC, 1, CRASH_VFS_IOERR, true);
    assert_err(wq_finish(q, held, wq_result_retry()), WQ_EIO);
    assert_err(wq_finish(q, held, wq_result_retry()), WQ_EIO);
    assert_true(crash_vfs_heal() > 1);
    assert_err(wq_finish(q, held, wq_result_retry()), WQ_OK);
    expect_intact(q);
    wq_destroy(q);
    wq_destroy(other);
}

static off_t
log_bytes(void)
{
    char        path[PATH_MAX + 8];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s-wal", at.db);
    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

/* What the log has may be lost, although it can be read. */
TEST(commits_before_a_failed_sync_are_not_durable_by_a_later_one)
{
    start_round();
    crash_vfs_fail(CRASH_VFS_SYNC, 1, CRASH_VFS_IOERR, false);
    assert_err(wq_add_str(q, "new"), WQ_EIO);
    assert_int_equal(crash_vfs_heal(), 1);
    assert_true(log_bytes() > 0);
    assert_err(wq_add_str(other, "new"), WQ_OK); /* another handle knows it */
    assert_int_equal(log_bytes(), 0); /* all of it is in the database */
    assert_err(wq_add_str(q, "n1"), WQ_OK);
    assert_true(log_bytes() > 0);
    expect_intact(q);
    wq_destroy(q);
    wq_destroy(other);
}

/* ---- a small disk -------------------------------------------------------- */

static size_t
drain(void)
{
    size_t   n = 0;
    wq_item *item;

    while (wq_get_within(q, 0, &item) == WQ_OK) {
        assert_err(wq_finish(q, item, wq_result_done()), WQ_OK);
        n++;
    }
    return n;
}

/* Keys that were accepted before the disk was full are all there. */
TEST(small_disk_fills_up_and_loses_no_key)
{
    enum { LIMIT = 1 << 20, LEN = 5000 };
    char   key[LEN + 1];
    size_t accepted = 0;
    wq_err err = WQ_OK;

    clear_place();
    crash_vfs_set_capacity(LIMIT);
    assert_err(open_file(&q), WQ_OK);
    memset(key, 'x', LEN);
    while (!err) {
        (void)snprintf(key, 16, "%zu", accepted);
        key[strlen(key)] = '/';
        err = wq_add(q, wq_bytes(key, LEN));
        accepted += !err;
        assert_true(accepted < 1000);
        assert_true(crash_vfs_bytes() <= LIMIT);
    }
    (void)snprintf(round_name, sizeof round_name, "a disk of 1 MB");
    expect_documented(err);
    assert_true(accepted > 20);
    assert_int_equal(wq_len(q), accepted);
    expect_intact(q);
    wq_destroy(q); /* still full */
    crash_vfs_set_capacity(0);
    assert_err(open_file(&q), WQ_OK);
    expect_intact(q);
    assert_int_equal(drain(), accepted);
    expect_intact(q);
    wq_destroy(q);
    print_message("%zu keys of %d bytes on a disk of 1 MB\n", accepted, LEN);
}

#define FAULT(name) test_with(name, make_template, remove_template)

WQ_TESTS(FAULT(each_io_call_of_each_verb_fails_once),
         FAULT(each_change_fails_after_it_was_made),
         FAULT(each_write_is_cut_short), FAULT(disk_is_full_from_each_write_on),
         FAULT(each_io_call_of_an_open_fails_once),
         FAULT(each_io_call_of_the_first_open_fails_once),
         FAULT(each_io_call_of_a_destroy_fails_once),
         FAULT(finish_that_is_repeated_does_not_end_a_later_hold),
         FAULT(finish_that_is_repeated_after_a_failed_sync_is_synced),
         FAULT(commits_before_a_failed_sync_are_not_durable_by_a_later_one),
         FAULT(small_disk_fills_up_and_loses_no_key));
