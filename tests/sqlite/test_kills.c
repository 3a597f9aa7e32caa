/* SPDX-License-Identifier: MIT */
/* test_kills.c: what does a process leave behind that is killed in the middle of
 * a verb? [S-15]
 *
 * A sweep kills a process before the first call that a verb makes to the disk,
 * then before the second, and so on, locks included (crash_vfs_kill_at()). A
 * second process, which had the file open all the time, looks at what is left:
 *
 *   - the verb has happened or it has not, and the keys of the dead are READY;
 *   - fences go on growing;
 *   - an add that merges with that of the dead is on disk when it returns.
 */
#include "support/wq_test.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wq/limiter.h>
#include <wq/sqlite.h>

#include "sqlite/crash_vfs.h"
#include "sqlite/place.h"
#include "support/actor.h"
#include "support/audit.h"

static struct place at;

/* ---- tasks --------------------------------------------------------------- */

static wq_queue *queue;
static wq_item  *item;

static int64_t
do_open(const char *sync)
{
    crash_vfs_install();
    return wq_sqlite_open(at.db,
                          WQ_SQLITE_OPTIONS(.max_expiries = UINT_MAX,
                                            .sync = strcmp(sync, "all") == 0
                                                        ? WQ_SQLITE_SYNC_ALL
                                                        : WQ_SQLITE_SYNC_ADDS),
                          WQ_CONFIG(.limiter = wq_limiter_exponential(
                                        WQ_SECONDS(3600), WQ_SECONDS(3600))),
                          &queue);
}

/* The file is as new. */
static int64_t
do_clear(const char *arg)
{
    wq_item *next;

    (void)arg;
    (void)wq_remove_str(queue, "dead");
    (void)wq_remove_str(queue, "wait");
    (void)wq_remove_str(queue, "late");
    (void)wq_remove_str(queue, "k");
    while (wq_get_within(queue, 0, &next) == WQ_OK)
        MUST(wq_finish(queue, next, wq_result_done()) == WQ_OK);
    MUST(wq_add_str(queue, "dead") == WQ_OK);
    MUST(wq_get_within(queue, 0, &next) == WQ_OK);
    MUST(wq_finish(queue, next, wq_result_bury()) == WQ_OK);
    MUST(wq_add_after_str(queue, "wait", WQ_SECONDS(3600)) == WQ_OK);
    return wq_add_str(queue, "k");
}

static int64_t
do_kill_at(const char *nth)
{
    crash_vfs_kill_at(atol(nth));
    return 0;
}

static int64_t
do_get(const char *arg)
{
    (void)arg;
    return wq_get_within(queue, WQ_SECONDS(5), &item);
}

/* A sleeping get learns of a death at once. */
static int64_t
do_listen(const char *arg)
{
    wq_item *next;

    (void)arg;
    if (wq_get_within(queue, WQ_MS(30), &next) == WQ_OK)
        MUST(wq_finish(queue, next, wq_result_back()) == WQ_OK);
    return 0;
}

static int64_t
do_fence(const char *arg)
{
    (void)arg;
    return (int64_t)item->fence;
}

static int64_t
do_nothing(const char *arg)
{
    (void)arg;
    return 0;
}

static int64_t
do_add(const char *arg)
{
    (void)arg;
    return wq_add_str(queue, "new");
}

static int64_t
do_add_many(const char *arg)
{
    const wq_key keys[] = {wq_str("new"), wq_str("new2"), wq_str("k")};

    (void)arg;
    return wq_add_with(queue, NULL, keys, 3);
}

static int64_t
do_add_after(const char *arg)
{
    (void)arg;
    return wq_add_after_str(queue, "late", WQ_SECONDS(3600));
}

static int64_t
do_finish(const char *result)
{
    return wq_finish(queue, item,
                     *result == 'd'   ? wq_result_done()
                     : *result == 'r' ? wq_result_retry()
                     : *result == 'a' ? wq_result_after(WQ_SECONDS(3600))
                     : *result == 'B' ? wq_result_bury()
                                      : wq_result_back());
}

static int64_t
do_remove(const char *arg)
{
    (void)arg;
    return wq_remove_str(queue, "k");
}

static int64_t
do_revive(const char *arg)
{
    (void)arg;
    return wq_revive_str(queue, "dead");
}

static int64_t
do_destroy(const char *arg)
{
    (void)arg;
    wq_destroy(queue);
    crash_vfs_reset();
    return 0;
}

static int64_t
do_states(const char *key)
{
    wq_key_info info = {.size = sizeof info};

    MUST(wq_read_key(queue, wq_str(key), &info) == WQ_OK);
    return info.states;
}

static int64_t
do_check(const char *arg)
{
    (void)arg;
    return audit_is_clean(queue);
}

/* Add a key; how often is the log synced? */
static int64_t
do_add_and_count_syncs(const char *key)
{
    const long before = crash_vfs_log_syncs();

    MUST(wq_add_str(queue, key) == WQ_OK);
    return crash_vfs_log_syncs() - before;
}

/* ---- a round ------------------------------------------------------------- */

static struct actor *survivor;

struct verb {
    const char *name;
    actor_task  prepare, call;
    const char *arg;
    const char *key;           /* what the verb is about */
    unsigned    before, after; /* its states when the holder is dead */
};

/* As soon as the death is known. */
static void
expect_either(const struct verb *v, long nth)
{
    int64_t states = 0;

    for (int i = 0; i < 100; i++) {
        states = actor_do(survivor, do_states, v->key);
        if (states == v->before || states == v->after)
            return;
        (void)actor_do(survivor, do_listen, "");
    }
    fail_msg("%s, call %ld: %s has states %lld", v->name, nth, v->key,
             (long long)states);
}

static void
expect_clean(const struct verb *v, long nth)
{
    if (!actor_do(survivor, do_check, ""))
        fail_msg("%s, call %ld: the file is not consistent", v->name, nth);
}

/* Fences of later hand-outs are larger than that of the dead. */
static void
expect_larger_fences(const struct verb *v, long nth, int64_t fence)
{
    assert_err(actor_do(survivor, do_add, ""), WQ_OK);
    assert_err(actor_do(survivor, do_get, ""), WQ_OK);
    const int64_t later = actor_do(survivor, do_fence, "");
    if (later <= fence)
        fail_msg("%s, call %ld: fence %lld after %lld", v->name, nth,
                 (long long)later, (long long)fence);
    assert_err(actor_do(survivor, do_finish, "back"), WQ_OK);
}

/* The highest fence that was seen of any hand-out. */
static int64_t
probe_fence(void)
{
    assert_err(actor_do(survivor, do_get, ""), WQ_OK);
    const int64_t fence = actor_do(survivor, do_fence, "");
    assert_err(actor_do(survivor, do_finish, "back"), WQ_OK);
    return fence;
}

/* Is the victim killed in its `nth` call of SQLite, in `call`? If not, the call
 * succeeds, and the victim is killed after it. */
static bool
is_killed(struct actor *victim, long nth, actor_task call, const char *arg)
{
    char    number[24];
    int64_t answer;

    (void)snprintf(number, sizeof number, "%ld", nth);
    (void)actor_do(victim, do_kill_at, number);
    actor_post(victim, call, arg);
    if (!actor_answers(victim, &answer))
        return true;
    assert_err(answer, WQ_OK);
    actor_signal(victim, SIGKILL);
    return false;
}

/* Returns whether the process was killed. */
static bool
run_round(const struct verb *v, long nth)
{
    struct actor *victim = actor_start();

    assert_err(actor_do(survivor, do_clear, ""), WQ_OK);
    int64_t fence = probe_fence();
    assert_err(actor_do(victim, do_open, ""), WQ_OK);
    assert_err(actor_do(victim, v->prepare, ""), WQ_OK);
    if (v->prepare == do_get)
        fence = actor_do(victim, do_fence, "");
    const bool killed = is_killed(victim, nth, v->call, v->arg);
    expect_either(v, nth);
    expect_clean(v, nth);
    expect_larger_fences(v, nth, fence);
    expect_clean(v, nth);
    return killed;
}

static void
sweep(const struct verb *v)
{
    long nth = 1;

    while (run_round(v, nth))
        assert_true(++nth < 500);
    assert_true(nth > 5); /* else the sweep tests nothing */
}

static int
begin(void **state)
{
    (void)state;
    at = place_make();
    survivor = actor_start();
    assert_err(actor_do(survivor, do_open, ""), WQ_OK);
    return 0;
}

static int
end(void **state)
{
    (void)actor_end_all(state);
    place_remove(&at);
    return 0;
}

/* ---- the tests ----------------------------------------------------------- */

enum {
    READY = WQ_STATE_READY,
    WAITING = WQ_STATE_WAITING,
    BACKOFF = WQ_STATE_WAITING | WQ_STATE_BACKOFF,
    DEAD = WQ_STATE_DEAD,
};

#define SWEEP(...)                                                             \
    do {                                                                       \
        const struct verb v = {__VA_ARGS__};                                   \
        sweep(&v);                                                             \
    } while (0)

TEST(adds_may_be_killed_at_every_call)
{
    SWEEP("add", do_nothing, do_add, "", "new", 0, READY);
    SWEEP("add many", do_nothing, do_add_many, "", "new2", 0, READY);
    SWEEP("add after", do_nothing, do_add_after, "", "late", 0, WAITING);
}

TEST(gets_may_be_killed_at_every_call)
{
    SWEEP("get", do_nothing, do_get, "", "k", READY, READY);
}

TEST(finishes_may_be_killed_at_every_call)
{
    SWEEP("finish: done", do_get, do_finish, "done", "k", READY, 0);
    SWEEP("finish: retry", do_get, do_finish, "retry", "k", READY, BACKOFF);
    SWEEP("finish: after", do_get, do_finish, "after", "k", READY, WAITING);
    SWEEP("finish: back", do_get, do_finish, "back", "k", READY, READY);
    SWEEP("finish: bury", do_get, do_finish, "Bury", "k", READY, DEAD);
}

TEST(other_verbs_may_be_killed_at_every_call)
{
    SWEEP("remove", do_nothing, do_remove, "", "k", READY, 0);
    SWEEP("revive", do_nothing, do_revive, "", "dead", DEAD, READY);
    SWEEP("destroy", do_get, do_destroy, "", "k", READY, READY);
}

/* Process, and its queue, is new each time. */
TEST(opens_may_be_killed_at_every_call)
{
    bool killed = true;

    for (long nth = 1; killed; nth++) {
        struct actor *victim = actor_start();

        (void)actor_do(survivor, do_destroy, "");
        place_clear(&at);
        killed = is_killed(victim, nth, do_open, "");
        assert_err(actor_do(survivor, do_open, ""), WQ_OK);
        assert_err(actor_do(survivor, do_add, ""), WQ_OK);
        assert_true(actor_do(survivor, do_check, ""));
        assert_true(nth < 1000);
    }
}

/* The dead had not synced its add, however far it got. */
static void
expect_sync_after_unsynced(void)
{
    bool killed = true;

    for (long nth = 1; killed; nth++) {
        struct actor *victim = actor_start();

        assert_err(actor_do(survivor, do_clear, ""), WQ_OK);
        assert_err(actor_do(victim, do_open, ""), WQ_OK);
        killed = is_killed(victim, nth, do_add, "");
        if (killed && actor_do(survivor, do_add_and_count_syncs, "new") < 1)
            fail_msg("call %ld: an add that is not synced", nth);
        assert_true(nth < 500);
    }
}

TEST(add_after_an_unsynced_one_of_the_dead_syncs)
{
    expect_sync_after_unsynced();
}

TEST(add_with_sync_all_after_an_unsynced_one_syncs)
{
    (void)actor_do(survivor, do_destroy, "");
    assert_err(actor_do(survivor, do_open, "all"), WQ_OK);
    expect_sync_after_unsynced();
}

#define KILL(name) test_with(name, begin, end)

WQ_TESTS(KILL(adds_may_be_killed_at_every_call),
         KILL(gets_may_be_killed_at_every_call),
         KILL(finishes_may_be_killed_at_every_call),
         KILL(other_verbs_may_be_killed_at_every_call),
         KILL(opens_may_be_killed_at_every_call),
         KILL(add_after_an_unsynced_one_of_the_dead_syncs),
         KILL(add_with_sync_all_after_an_unsynced_one_syncs));
