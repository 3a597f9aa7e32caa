/* SPDX-License-Identifier: MIT */
/* test_deaths.c: what becomes of a queue in a file when its processes die, stop
 * or fork, and when its files are not what they should be?
 *
 * Each test directs two or three processes (actor.h). The functions under
 * "tasks" run in these processes; the tests themselves never use SQLite.
 */
#define _DEFAULT_SOURCE /* setgroups() */

#include "support/wq_test.h"

#include <grp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <wq/limiter.h>
#include <wq/sqlite.h>

#include "sqlite/actor.h"
#include "sqlite/audit.h"
#include "sqlite/place.h"

/* The bounds of the promises, with what a loaded machine adds to them. */
#define KNOWN_WITHIN WQ_SECONDS(2) /* the death of a holder */
#define WOKEN_WITHIN WQ_MS(1500)   /* by the add of another process */

static struct place at;

static int
make_place(void **state)
{
    (void)state;
    at = place_make();
    return 0;
}

static int
end_all(void **state)
{
    (void)actor_end_all(state);
    place_remove(&at);
    return 0;
}

static int64_t
now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * WQ_SECONDS(1) + t.tv_nsec;
}

static void
sleep_ms(long ms)
{
    const struct timespec t = {.tv_sec = ms / 1000,
                               .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

/* ---- tasks --------------------------------------------------------------- */

/* Of this process. */
static wq_queue *queue, *second;
static wq_item  *item;
static sqlite3  *raw;
static int       lost_calls;

static void
on_lost(void *ctx, wq_key key, uint64_t fence)
{
    (void)ctx, (void)key, (void)fence;
    lost_calls++;
}

static int64_t
open_into(wq_queue **q, const char *options)
{
    char url[PLACE_PATH + ACTOR_ARG + 16];

    (void)snprintf(url, sizeof url, "sqlite:%s%s%s", at.db, *options ? "?" : "",
                   options);
    return wq_open_sqlite(
        url,
        WQ_CONFIG(.on_lost = on_lost,
                  .limiter = wq_limiter_exponential(WQ_MS(1), WQ_MS(10))),
        q);
}

/* Opens the queue; `options` as in a URL. */
static int64_t
do_open(const char *options)
{
    return open_into(&queue, options);
}

/* With a lease that nobody renews. */
static int64_t
do_open_unrenewed(const char *arg)
{
    (void)arg;
    return wq_sqlite_open(at.db,
                          WQ_SQLITE_OPTIONS(.hold = WQ_SQLITE_HOLD_LEASE,
                                            .lease_ns = WQ_MS(300),
                                            .manual_renew = true),
                          NULL, &queue);
}

static int64_t
do_open_second(const char *options)
{
    return open_into(&second, options);
}

static int64_t
do_destroy(const char *arg)
{
    (void)arg;
    wq_destroy(queue);
    queue = NULL;
    return 0;
}

static int64_t
do_destroy_second(const char *arg)
{
    (void)arg;
    wq_destroy(second);
    second = NULL;
    return 0;
}

static int64_t
do_add(const char *key)
{
    return wq_add_str(queue, key);
}

/* When the add began. */
static int64_t
do_add_at(const char *key)
{
    const int64_t began = now_ns();

    return wq_add_str(queue, key) == WQ_OK ? began : -1;
}

/* "KEY MS" */
static int64_t
do_add_after(const char *arg)
{
    char key[ACTOR_ARG];
    long ms = 0;

    MUST(sscanf(arg, "%239s %ld", key, &ms) == 2);
    return wq_add_after_str(queue, key, WQ_MS(ms));
}

/* "KEY PRIORITY"; returns the wq_added. */
static int64_t
do_add_priority(const char *arg)
{
    char     key[ACTOR_ARG];
    int      priority = 0;
    wq_added added = WQ_ADDED_NEW;

    MUST(sscanf(arg, "%239s %d", key, &priority) == 2);
    MUST(wq_add_one_str(queue, key,
                        WQ_ADD(.priority = priority, .results = &added)) ==
         WQ_OK);
    return added;
}

/* Waits for so many milliseconds. */
static int64_t
do_get(const char *ms)
{
    return wq_get_within(queue, WQ_MS(atol(ms)), &item);
}

static int64_t
do_get_second(const char *ms)
{
    return wq_get_within(second, WQ_MS(atol(ms)), &item);
}

/* When a key was there; -1: none. */
static int64_t
do_get_at(const char *ms)
{
    return do_get(ms) == WQ_OK ? now_ns() : -1;
}

/* Is it this key? */
static int64_t
do_have(const char *key)
{
    return item && strcmp(item->key.data, key) == 0;
}

static int64_t
do_fence(const char *arg)
{
    (void)arg;
    return (int64_t)item->fence;
}

static wq_result
result_named(const char *name)
{
    switch (*name) {
    case 'd':
        return wq_result_done();
    case 'r':
        return wq_result_retry();
    case 'a':
        return wq_result_after(WQ_SECONDS(3600));
    default:
        return strcmp(name, "bury") == 0 ? wq_result_bury() : wq_result_back();
    }
}

static int64_t
do_finish(const char *result)
{
    return wq_finish(queue, item, result_named(result));
}

static int64_t
do_finish_second(const char *result)
{
    return wq_finish(second, item, result_named(result));
}

static int64_t
do_revive(const char *key)
{
    return wq_revive_str(queue, key);
}

static wq_key_info
look_at(const char *key)
{
    wq_key_info info = {.size = sizeof info};

    MUST(wq_read_key(queue, wq_str(key), &info) == WQ_OK);
    return info;
}

static int64_t
do_states(const char *key)
{
    return look_at(key).states;
}

static int64_t
do_failures(const char *key)
{
    return look_at(key).requeues;
}

static int64_t
do_wait_ns(const char *key)
{
    return look_at(key).wait_ns;
}

static int64_t
do_held_fence(const char *key)
{
    return (int64_t)look_at(key).fence;
}

static int64_t
do_expired(const char *arg)
{
    wq_stats s = {.size = sizeof s};

    (void)arg;
    MUST(wq_read_stats(queue, &s) == WQ_OK);
    return (int64_t)s.expired;
}

static int64_t
do_lost_calls(const char *arg)
{
    (void)arg;
    return lost_calls;
}

static int64_t
do_hold_left(const char *arg)
{
    (void)arg;
    return wq_hold_left(queue, item);
}

static bool
is_key(void *name, wq_key key, const wq_key_info *info)
{
    const char **wanted = name;

    (void)info;
    if (key.len == strlen(*wanted) && !memcmp(key.data, *wanted, key.len))
        *wanted = "";
    return true;
}

/* Does a walk over DEAD keys visit it? */
static int64_t
do_list_dead(const char *key)
{
    MUST(wq_each(queue, WQ_STATE_DEAD, is_key, &key) == WQ_OK);
    return !*key;
}

static int64_t
do_check(const char *arg)
{
    (void)arg;
    return audit_is_clean(queue);
}

static int64_t
do_has_message(const char *arg)
{
    (void)arg;
    return wq_last_error()[0] != '\0';
}

/* Runs SQL in the file; false: an error. */
static int64_t
do_sql(const char *sql)
{
    const char *answer = place_sql(at.db, sql);
    const bool  failed = strncmp(answer, "error", 5) == 0;

    if (failed)
        (void)fprintf(stderr, "%s: %s\n", sql, answer);
    return !failed;
}

/* Keeps the connection. */
static int64_t
do_raw(const char *sql)
{
    if (!raw)
        MUST(sqlite3_open(at.db, &raw) == SQLITE_OK);
    return sqlite3_exec(raw, sql, NULL, NULL, NULL);
}

/* Becomes a user without rights. */
static int64_t
do_become_nobody(const char *arg)
{
    (void)arg;
    if (geteuid() != 0)
        return 0;
    MUST(setgroups(0, NULL) == 0);
    MUST(setgid(65534) == 0);
    return setuid(65534);
}

/* ---- directing ----------------------------------------------------------- */

static struct actor *
opener(const char *options)
{
    struct actor *a = actor_start();

    assert_err(actor_do(a, do_open, options), WQ_OK);
    return a;
}

/* A process that holds `key`. */
static struct actor *
holder(const char *options, const char *key)
{
    struct actor *a = opener(options);

    assert_err(actor_do(a, do_add, key), WQ_OK);
    assert_err(actor_do(a, do_get, "5000"), WQ_OK);
    assert_true(actor_do(a, do_have, key));
    return a;
}

static void
expect_states(struct actor *a, const char *key, unsigned states)
{
    assert_int_equal(actor_do(a, do_states, key), states);
}

/* The same, as soon as the death of a process is known. */
static void
await_states(struct actor *a, const char *key, unsigned states)
{
    const int64_t limit = now_ns() + KNOWN_WITHIN;

    while (actor_do(a, do_states, key) != states && now_ns() < limit)
        sleep_ms(10);
    expect_states(a, key, states);
}

static void
expect_gets(struct actor *a, const char *key)
{
    assert_err(actor_do(a, do_get, "5000"), WQ_OK);
    assert_true(actor_do(a, do_have, key));
}

static void
expect_clean(struct actor *a)
{
    assert_true(actor_do(a, do_check, ""));
}

/* ---- deaths: S-16 -------------------------------------------------------- */

TEST(key_of_a_killed_process_goes_to_another)
{
    struct actor *a = holder("", "k");
    struct actor *b = opener("");

    actor_post(b, do_get_at, "10000");
    sleep_ms(50);
    actor_signal(a, SIGKILL);
    const int64_t killed = now_ns(), got = actor_await(b);
    assert_true(got >= 0);
    assert_true(got - killed < KNOWN_WITHIN);
    print_message("got %lld us after the death\n",
                  (long long)(got - killed) / 1000);
    assert_true(actor_do(b, do_have, "k"));
    assert_int_equal(actor_do(b, do_expired, ""), 1);
    assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    expect_states(b, "k", 0);
    expect_clean(b);
}

TEST(key_of_a_killed_process_is_found_by_the_next_open)
{
    struct actor *a = holder("", "k");

    actor_signal(a, SIGKILL);
    struct actor *b = opener("");
    expect_gets(b, "k");
    expect_clean(b);
}

TEST(killed_holder_of_a_dirty_key_loses_no_add)
{
    struct actor *a = holder("", "k");
    struct actor *b = opener("");

    assert_err(actor_do(b, do_add, "k"), WQ_OK);
    assert_err(actor_do(b, do_add_after, "k 3600000"), WQ_OK);
    expect_states(b, "k", WQ_STATE_HELD | WQ_STATE_DIRTY | WQ_STATE_WAITING);
    actor_signal(a, SIGKILL);
    expect_gets(b, "k");
    expect_states(b, "k", WQ_STATE_HELD | WQ_STATE_WAITING);
    assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    expect_states(b, "k", WQ_STATE_WAITING);
    expect_clean(b);
}

TEST(key_that_kills_its_processes_becomes_dead)
{
    struct actor *b = opener("max_expiries=3");

    assert_err(actor_do(b, do_add, "k"), WQ_OK);
    for (int i = 0; i < 3; i++) {
        struct actor *a = opener("max_expiries=3");

        expect_states(b, "k", WQ_STATE_READY);
        expect_gets(a, "k");
        actor_signal(a, SIGKILL);
        if (i == 2)
            break;
        expect_gets(b, "k"); /* which is neither success nor failure: */
        assert_err(actor_do(b, do_finish, "back"), WQ_OK);
    }
    await_states(b, "k", WQ_STATE_DEAD);
    assert_true(actor_do(b, do_list_dead, "k"));
    assert_int_equal(actor_do(b, do_add_priority, "k 1"), WQ_ADDED_DEAD);
    assert_err(actor_do(b, do_get, "0"), WQ_ETIMEDOUT);
    expect_clean(b);
    assert_err(actor_do(b, do_revive, "k"), WQ_OK);
    expect_gets(b, "k");
    assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    expect_states(b, "k", 0);
    expect_clean(b);
}

TEST(keys_of_the_dead_keep_their_order_behind_others)
{
    static const char *const order[] = {"x", "k1", "k2", "k3"};
    struct actor            *a = holder("", "k1");
    struct actor            *b = opener("");

    assert_err(actor_do(a, do_add, "k2"), WQ_OK);
    expect_gets(a, "k2");
    assert_err(actor_do(a, do_add, "k3"), WQ_OK);
    expect_gets(a, "k3");
    assert_err(actor_do(b, do_add, "x"), WQ_OK);
    actor_signal(a, SIGKILL);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        expect_gets(b, order[i]);
    assert_int_equal(actor_do(b, do_expired, ""), 3);
    expect_clean(b);
}

TEST(success_between_deaths_keeps_a_key_alive)
{
    struct actor *b = opener("max_expiries=2");

    for (int i = 0; i < 3; i++) {
        struct actor *a = holder("max_expiries=2", "k");

        actor_signal(a, SIGKILL);
        expect_gets(b, "k");
        assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    }
    expect_clean(b);
}

TEST(closing_a_holder_is_no_expiry)
{
    struct actor *a = holder("max_expiries=1", "k");
    struct actor *b = opener("max_expiries=1");

    actor_post(b, do_get, "10000");
    sleep_ms(50);
    (void)actor_do(a, do_destroy, "");
    assert_err(actor_await(b), WQ_OK);
    assert_int_equal(actor_do(b, do_expired, ""), 0);
    assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    expect_clean(b);
}

/* ---- stops: S-16 --------------------------------------------------------- */

TEST(stopped_process_keeps_its_key)
{
    struct actor *a = holder("", "k");
    struct actor *b = opener("");

    actor_signal(a, SIGSTOP);
    assert_err(actor_do(b, do_get, "1500"), WQ_ETIMEDOUT);
    expect_states(b, "k", WQ_STATE_HELD);
    actor_signal(a, SIGCONT);
    assert_err(actor_do(a, do_finish, "done"), WQ_OK);
    expect_states(b, "k", 0);
    expect_clean(b);
}

TEST(process_killed_while_stopped_loses_its_key)
{
    struct actor *a = holder("", "k");
    struct actor *b = opener("");

    actor_signal(a, SIGSTOP);
    actor_post(b, do_get, "10000");
    sleep_ms(50);
    actor_signal(a, SIGKILL);
    assert_err(actor_await(b), WQ_OK);
}

/* Long enough for a loaded machine to renew it, and short to wait for. */
#define LEASE "hold=lease&lease=700ms"

/* `result` of the holder that has lost its lease changes nothing. */
static void
expect_lost(const char *result)
{
    struct actor *a = holder(LEASE, "k");
    struct actor *b = opener(LEASE);
    const int64_t fence = actor_do(a, do_fence, "");

    assert_true(actor_do(a, do_hold_left, "") > 0);
    actor_signal(a, SIGSTOP);
    expect_gets(b, "k");
    const int64_t later = actor_do(b, do_fence, "");
    assert_true(later > fence);
    assert_int_equal(actor_do(b, do_expired, ""), 1);
    actor_signal(a, SIGCONT);
    assert_int_equal(actor_do(a, do_hold_left, ""), 0);
    assert_err(actor_do(a, do_finish, result), WQ_ELOST);
    assert_int_equal(actor_do(a, do_lost_calls, ""), 1);
    expect_states(b, "k", WQ_STATE_HELD);
    assert_int_equal(actor_do(b, do_held_fence, "k"), later);
    assert_int_equal(actor_do(b, do_failures, "k"), 0);
    assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    expect_states(b, "k", 0);
    /* The first one works again. */
    assert_err(actor_do(a, do_add, "k"), WQ_OK);
    expect_gets(a, "k");
    expect_clean(b);
}

TEST(stopped_process_loses_its_lease_and_cannot_say_done)
{
    expect_lost("done");
}

TEST(stopped_process_loses_its_lease_and_cannot_retry)
{
    expect_lost("retry");
}

TEST(stopped_process_loses_its_lease_and_cannot_bury)
{
    expect_lost("bury");
}

/* No thread tells the handle of its loss before the store does. */
TEST(store_refuses_a_finish_after_the_lease)
{
    struct actor *a = actor_start();
    struct actor *b = opener(LEASE);

    assert_err(actor_do(a, do_open_unrenewed, ""), WQ_OK);
    assert_err(actor_do(a, do_add, "k"), WQ_OK);
    assert_err(actor_do(a, do_get, "5000"), WQ_OK);
    expect_gets(b, "k");
    assert_int_equal(actor_do(a, do_hold_left, ""), 0);
    assert_err(actor_do(a, do_finish, "done"), WQ_ELOST);
    expect_states(b, "k", WQ_STATE_HELD);
    assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    expect_clean(b);
}

TEST(lost_holder_that_gets_its_key_again_has_a_new_fence)
{
    struct actor *a = holder(LEASE, "k");
    struct actor *b = opener(LEASE);

    actor_signal(a, SIGSTOP);
    expect_gets(b, "k");
    assert_err(actor_do(b, do_finish, "back"), WQ_OK);
    actor_signal(a, SIGCONT);
    assert_err(actor_do(a, do_finish, "done"), WQ_ELOST);
    expect_states(b, "k", WQ_STATE_READY);
    expect_gets(a, "k");
    assert_err(actor_do(a, do_finish, "done"), WQ_OK);
    expect_states(b, "k", 0);
}

TEST(lease_is_renewed_while_the_process_works)
{
    /* A busy disk can delay a renewal for a second. */
    struct actor *a = holder("hold=lease&lease=3s", "k");
    struct actor *b = opener("hold=lease&lease=3s");

    assert_err(actor_do(b, do_get, "4500"), WQ_ETIMEDOUT);
    assert_err(actor_do(a, do_finish, "done"), WQ_OK);
}

TEST(key_with_a_lease_is_free_when_its_process_dies)
{
    struct actor *a = holder("hold=lease&lease=30s", "k");
    struct actor *b = opener("hold=lease&lease=30s");

    actor_signal(a, SIGKILL);
    expect_gets(b, "k");
}

/* ---- forks: S-09, S-16 --------------------------------------------------- */

/* Forks a child that only sleeps; returns its process id. */
static int64_t
do_fork(const char *arg)
{
    const pid_t child = fork();

    (void)arg;
    if (child == 0) {
        sleep_ms(ACTOR_LIMIT_S * 1000L);
        _exit(0);
    }
    return child;
}

TEST(child_of_a_killed_holder_does_not_keep_its_key)
{
    struct actor *a = holder("", "k");
    struct actor *b = opener("");
    const pid_t   child = (pid_t)actor_do(a, do_fork, "");

    assert_true(child > 0);
    actor_post(b, do_get_at, "10000");
    sleep_ms(50);
    actor_signal(a, SIGKILL);
    const int64_t killed = now_ns(), got = actor_await(b);
    (void)kill(child, SIGKILL);
    assert_true(got >= 0);
    assert_true(got - killed < KNOWN_WITHIN);
}

/* The number of the first call that the child may make; 0: none. */
static int
try_all(void)
{
    wq_item     *other;
    wq_stats     s = {.size = sizeof s};
    const wq_err all[] = {
        wq_add_str(queue, "x"),    wq_get_within(queue, 0, &other),
        wq_done(queue, item),      wq_finish(queue, item, wq_result_back()),
        wq_remove_str(queue, "k"), wq_forget_str(queue, "k"),
        wq_revive_str(queue, "k"), wq_renew(queue),
        wq_read_stats(queue, &s),
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] != WQ_ESTATE)
            return (int)i + 1;
    return 0;
}

static int64_t
do_fork_and_try(const char *destroy)
{
    const pid_t child = fork();
    int         status = -1;

    if (child == 0) {
        (void)alarm(10);
        const int refused = try_all();
        if (*destroy)
            wq_destroy(queue);
        _exit(refused);
    }
    MUST(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(verbs_of_a_forked_child_are_refused)
{
    struct actor *a = holder("", "k");
    struct actor *b = opener("");

    assert_int_equal(actor_do(a, do_fork_and_try, ""), 0);
    assert_int_equal(actor_do(a, do_fork_and_try, "destroy"), 0);
    assert_err(actor_do(b, do_get, "1200"), WQ_ETIMEDOUT);
    expect_states(b, "k", WQ_STATE_HELD);
    assert_err(actor_do(a, do_finish, "done"), WQ_OK);
    assert_err(actor_do(a, do_add, "again"), WQ_OK);
    expect_gets(b, "again");
    expect_clean(b);
}

/* ---- files: S-18 --------------------------------------------------------- */

static void
path_of(char out[PLACE_PATH + 8], const char *suffix)
{
    (void)snprintf(out, PLACE_PATH + 8, "%s%s", at.db, suffix);
}

static void
remove_beside(const char *suffix)
{
    char path[PLACE_PATH + 8];

    path_of(path, suffix);
    place_remove_file(path);
}

static void
remove_files(void)
{
    remove_beside("");
    remove_beside("-wal");
    remove_beside("-shm");
    remove_beside("-wq");
}

/* An add that is acknowledged into a file that nobody will open again would be
 * lost. */
static void
expect_refused(struct actor *a)
{
    const wq_err err = (wq_err)actor_do(a, do_add, "late");

    assert_err(err, WQ_EAWAY);
    assert_true(actor_do(a, do_has_message, ""));
}

TEST(add_to_a_deleted_file_is_refused)
{
    struct actor *a = holder("", "k");

    remove_files();
    expect_refused(a);
    (void)actor_do(a, do_finish, "done");
    (void)actor_do(a, do_destroy, "");
    assert_err(actor_do(a, do_open, ""), WQ_OK);
    assert_err(actor_do(a, do_add, "k"), WQ_OK);
    expect_clean(a);
}

/* Its processes still know each other. */
TEST(add_to_a_file_that_was_deleted_alone_is_refused)
{
    struct actor *a = holder("", "k");

    remove_beside("");
    remove_beside("-wal");
    remove_beside("-shm");
    expect_refused(a);
    (void)actor_do(a, do_destroy, "");
}

TEST(add_to_a_replaced_file_is_refused)
{
    struct actor *a = holder("", "k");
    struct actor *b = actor_start();

    remove_files();
    assert_err(actor_do(b, do_open, ""), WQ_OK);
    assert_err(actor_do(b, do_add, "new"), WQ_OK);
    expect_refused(a);
    (void)actor_do(a, do_destroy, "");
    expect_gets(b, "new");
    expect_clean(b);
}

TEST(deleted_directory_of_the_processes_loses_no_key)
{
    struct actor *a = holder("", "held");

    assert_err(actor_do(a, do_add, "k"), WQ_OK);
    remove_beside("-wq");
    expect_refused(a);
    struct actor *b = opener("");
    (void)actor_do(a, do_destroy, "");
    (void)actor_do(b, do_destroy, "");
    assert_err(actor_do(b, do_open, ""), WQ_OK);
    expect_states(b, "k", WQ_STATE_READY);
    expect_states(b, "held", WQ_STATE_READY);
    expect_states(b, "late", 0);
    expect_clean(b);
}

/* The open of the file is refused, and its bytes stay. */
static void
expect_untouched(struct actor *a, wq_err expected)
{
    const uint64_t sum = place_checksum(at.db);
    char           log[PLACE_PATH + 8];

    assert_err(actor_do(a, do_open, ""), expected);
    assert_true(actor_do(a, do_has_message, ""));
    assert_true(place_checksum(at.db) == sum);
    path_of(log, "-wal");
    assert_false(place_has(log));
}

TEST(file_that_is_no_database_is_refused_and_untouched)
{
    struct actor *a = actor_start();
    char          text[8192];

    memset(text, 'x', sizeof text);
    place_write(at.db, text, sizeof text);
    expect_untouched(a, WQ_EINVAL);
    place_write(at.db, "short", 5);
    expect_untouched(a, WQ_EINVAL);
}

TEST(database_of_another_program_is_refused_and_untouched)
{
    struct actor *a = actor_start();

    assert_true(actor_do(a, do_sql, "CREATE TABLE t(n)"));
    expect_untouched(a, WQ_EINVAL);
    assert_true(actor_do(a, do_sql, "PRAGMA application_id = 305419896"));
    expect_untouched(a, WQ_EINVAL);
}

TEST(file_of_a_newer_release_is_refused_and_untouched)
{
    struct actor *a = opener("");

    assert_err(actor_do(a, do_add, "k"), WQ_OK);
    (void)actor_do(a, do_destroy, "");
    /* Ends the log, so that its end is no change of the test below. */
    assert_true(actor_do(a, do_sql, "PRAGMA journal_mode = DELETE"));
    assert_true(actor_do(a, do_sql, "PRAGMA user_version = 1000"));
    expect_untouched(a, WQ_EVERSION);
}

TEST(file_or_directory_that_cannot_be_written_is_reported)
{
    struct actor *a = opener("");

    assert_err(actor_do(a, do_add, "k"), WQ_OK);
    (void)actor_do(a, do_destroy, "");
    struct actor *b = actor_start();
    assert_int_equal(actor_do(b, do_become_nobody, ""), 0);
    assert_int_equal(chmod(at.dir, 0755), 0);
    assert_int_equal(chmod(at.db, 0444), 0);
    assert_err(actor_do(b, do_open, ""), WQ_EAWAY);
    assert_true(actor_do(b, do_has_message, ""));
    assert_int_equal(chmod(at.db, 0666), 0);
    assert_int_equal(chmod(at.dir, 0555), 0);
    remove_beside("-wal");
    remove_beside("-shm");
    remove_beside("-wq");
    assert_err(actor_do(b, do_open, ""), WQ_EAWAY);
    assert_true(actor_do(b, do_has_message, ""));
    assert_int_equal(chmod(at.dir, 0755), 0);
}

TEST(directory_that_does_not_exist_is_reported)
{
    (void)snprintf(at.db, sizeof at.db, "%s/none/queue.db", at.dir);
    struct actor *a = actor_start();
    assert_err(actor_do(a, do_open, ""), WQ_EAWAY);
    assert_true(actor_do(a, do_has_message, ""));
    assert_err(actor_do(a, do_open, "create=no"), WQ_ENOTFOUND);
}

TEST(database_locked_by_another_program_is_away_for_a_while)
{
    struct actor *a = opener("busy=300ms");
    struct actor *outsider = actor_start();

    assert_err(actor_do(a, do_add, "k"), WQ_OK);
    assert_int_equal(actor_do(outsider, do_raw, "BEGIN IMMEDIATE"), SQLITE_OK);
    const int64_t began = now_ns();
    assert_err(actor_do(a, do_add, "late"), WQ_EAWAY);
    const int64_t took = now_ns() - began;
    assert_true(actor_do(a, do_has_message, ""));
    assert_true(took >= WQ_MS(250));
    assert_true(took < WQ_SECONDS(5));
    assert_int_equal(actor_do(outsider, do_raw, "COMMIT"), SQLITE_OK);
    assert_err(actor_do(a, do_add, "late"), WQ_OK);
    expect_gets(a, "k");
    expect_clean(a);
}

TEST(blocked_get_goes_on_after_another_programs_lock)
{
    struct actor *a = opener("busy=200ms");
    struct actor *b = opener("busy=200ms");
    struct actor *outsider = actor_start();

    actor_post(a, do_get, "15000");
    sleep_ms(50);
    assert_int_equal(actor_do(outsider, do_raw, "BEGIN IMMEDIATE"), SQLITE_OK);
    sleep_ms(1500); /* the getter looks at the store meanwhile */
    assert_int_equal(actor_do(outsider, do_raw, "COMMIT"), SQLITE_OK);
    assert_err(actor_do(b, do_add, "k"), WQ_OK);
    const wq_err err = (wq_err)actor_await(a);
    if (err == WQ_EAWAY) /* allowed: nothing was changed, call again */
        expect_gets(a, "k");
    else
        assert_err(err, WQ_OK);
}

/* ---- several handles and queues: S-15, S-17 ------------------------------ */

TEST(handles_of_one_process_share_a_queue)
{
    struct actor *a = opener("");

    assert_err(actor_do(a, do_open_second, ""), WQ_OK);
    assert_err(actor_do(a, do_add, "k"), WQ_OK);
    assert_err(actor_do(a, do_get_second, "5000"), WQ_OK);
    expect_states(a, "k", WQ_STATE_HELD);
    assert_err(actor_do(a, do_get, "0"), WQ_ETIMEDOUT);
    assert_err(actor_do(a, do_finish_second, "back"), WQ_OK);
    assert_err(actor_do(a, do_get_second, "5000"), WQ_OK);
    /* The end of one handle does not end the locks of the other. */
    (void)actor_do(a, do_destroy, "");
    struct actor *b = opener("");
    expect_states(b, "k", WQ_STATE_HELD);
    assert_err(actor_do(b, do_get, "1200"), WQ_ETIMEDOUT);
    assert_err(actor_do(a, do_finish_second, "done"), WQ_OK);
    expect_states(b, "k", 0);
    (void)actor_do(a, do_destroy_second, "");
    expect_clean(b);
}

TEST(queues_of_one_file_do_not_see_each_other)
{
    struct actor *a = opener("queue=one");
    struct actor *b = opener("queue=two");

    assert_err(actor_do(a, do_add, "k"), WQ_OK);
    assert_err(actor_do(b, do_get, "0"), WQ_ETIMEDOUT);
    expect_states(b, "k", 0);
    assert_err(actor_do(b, do_add, "k"), WQ_OK);
    expect_gets(a, "k");
    expect_gets(b, "k");
    assert_err(actor_do(a, do_finish, "bury"), WQ_OK);
    assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    expect_states(a, "k", WQ_STATE_DEAD);
    expect_states(b, "k", 0);
    assert_false(actor_do(b, do_list_dead, "k"));
    expect_clean(a);
    expect_clean(b);
}

TEST(failures_count_what_all_processes_do)
{
    struct actor *a = holder("", "k");
    struct actor *b = opener("");

    assert_err(actor_do(a, do_finish, "retry"), WQ_OK);
    expect_gets(b, "k");
    assert_int_equal(actor_do(b, do_failures, "k"), 1);
    assert_err(actor_do(b, do_finish, "retry"), WQ_OK);
    expect_gets(a, "k");
    assert_int_equal(actor_do(a, do_failures, "k"), 2);
    assert_err(actor_do(a, do_finish, "done"), WQ_OK);
    assert_int_equal(actor_do(b, do_failures, "k"), 0);
    expect_clean(b);
}

static void
fill(struct actor *a)
{
    assert_int_equal(actor_do(a, do_add_priority, "failed 9"), WQ_ADDED_NEW);
    for (int i = 0; i < 2; i++) {
        expect_gets(a, "failed");
        assert_err(actor_do(a, do_finish, "retry"), WQ_OK);
    }
    expect_gets(a, "failed");
    assert_int_equal(actor_do(a, do_add_priority, "dead 9"), WQ_ADDED_NEW);
    assert_err(actor_do(a, do_finish, "back"), WQ_OK);
    expect_gets(a, "dead");
    assert_err(actor_do(a, do_finish, "bury"), WQ_OK);
    assert_int_equal(actor_do(a, do_add_priority, "low 1"), WQ_ADDED_NEW);
    assert_int_equal(actor_do(a, do_add_priority, "high 5"), WQ_ADDED_NEW);
    assert_int_equal(actor_do(a, do_add_priority, "next 5"), WQ_ADDED_NEW);
    assert_err(actor_do(a, do_add_after, "later 3600000"), WQ_OK);
}

TEST(queue_is_as_it_was_when_it_is_opened_again)
{
    struct actor *a = opener("");

    fill(a);
    (void)actor_do(a, do_destroy, "");
    struct actor *b = opener("");
    expect_states(b, "dead", WQ_STATE_DEAD);
    assert_int_equal(actor_do(b, do_failures, "failed"), 2);
    expect_states(b, "later", WQ_STATE_WAITING);
    const int64_t wait = actor_do(b, do_wait_ns, "later");
    assert_true(wait > WQ_SECONDS(3500) && wait <= WQ_SECONDS(3600));
    static const char *const order[] = {"failed", "high", "next", "low"};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        expect_gets(b, order[i]);
        assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    }
    assert_err(actor_do(b, do_get, "0"), WQ_ETIMEDOUT);
    expect_clean(b);
}

/* Gets and gives back the only key; 0: fences do not grow. */
static int64_t
do_watch_fences(const char *times)
{
    uint64_t last = 0;

    for (long i = atol(times); i > 0; i--) {
        MUST(wq_get_within(queue, WQ_SECONDS(5), &item) == WQ_OK);
        if (item->fence <= last)
            return 0;
        last = item->fence;
        MUST(wq_finish(queue, item, wq_result_back()) == WQ_OK);
    }
    return 1;
}

static int64_t
do_open_often(const char *times)
{
    for (long i = atol(times); i > 0; i--) {
        MUST(do_open("") == WQ_OK);
        (void)do_destroy("");
    }
    return 0;
}

TEST(fences_grow_while_others_open_and_close)
{
    struct actor *a = opener("");
    struct actor *b = actor_start();

    assert_err(actor_do(a, do_add, "k"), WQ_OK);
    actor_post(b, do_open_often, "100");
    const int64_t grow = actor_do(a, do_watch_fences, "1000");
    (void)actor_await(b);
    assert_true(grow);
    expect_clean(a);
}

/* ---- waking up ----------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

TEST(add_of_another_process_wakes_a_get)
{
    enum { TIMES = 31 };
    struct actor *a = opener("");
    struct actor *b = opener("");
    int64_t       took[TIMES];

    for (int i = 0; i < TIMES; i++) {
        actor_post(b, do_get_at, "10000");
        sleep_ms(20);
        const int64_t began = actor_do(a, do_add_at, "k");
        const int64_t got = actor_await(b);
        assert_true(began >= 0 && got >= 0);
        took[i] = got - began;
        assert_true(took[i] < WOKEN_WITHIN);
        assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    }
    qsort(took, TIMES, sizeof *took, compare);
    print_message("from add to get: median %lld us, longest %lld us\n",
                  (long long)took[TIMES / 2] / 1000,
                  (long long)took[TIMES - 1] / 1000);
}

TEST(deadline_of_one_process_passes_in_another)
{
    struct actor *a = opener("");
    struct actor *b = opener("");

    actor_post(b, do_get_at, "10000");
    sleep_ms(20);
    const int64_t began = now_ns();
    assert_err(actor_do(a, do_add_after, "k 300"), WQ_OK);
    actor_signal(a, SIGKILL); /* whoever is left keeps the time */
    const int64_t got = actor_await(b);
    assert_true(got - began >= WQ_MS(300));
    assert_true(got - began < WQ_MS(300) + WOKEN_WITHIN);
    assert_true(actor_do(b, do_have, "k"));
}

#define DEATH(name) test_with(name, make_place, end_all)

WQ_TESTS(DEATH(key_of_a_killed_process_goes_to_another),
         DEATH(key_of_a_killed_process_is_found_by_the_next_open),
         DEATH(killed_holder_of_a_dirty_key_loses_no_add),
         DEATH(key_that_kills_its_processes_becomes_dead),
         DEATH(keys_of_the_dead_keep_their_order_behind_others),
         DEATH(success_between_deaths_keeps_a_key_alive),
         DEATH(closing_a_holder_is_no_expiry),
         DEATH(stopped_process_keeps_its_key),
         DEATH(process_killed_while_stopped_loses_its_key),
         DEATH(stopped_process_loses_its_lease_and_cannot_say_done),
         DEATH(stopped_process_loses_its_lease_and_cannot_retry),
         DEATH(stopped_process_loses_its_lease_and_cannot_bury),
         DEATH(store_refuses_a_finish_after_the_lease),
         DEATH(lost_holder_that_gets_its_key_again_has_a_new_fence),
         DEATH(lease_is_renewed_while_the_process_works),
         DEATH(key_with_a_lease_is_free_when_its_process_dies),
         DEATH(child_of_a_killed_holder_does_not_keep_its_key),
         DEATH(verbs_of_a_forked_child_are_refused),
         DEATH(add_to_a_deleted_file_is_refused),
         DEATH(add_to_a_file_that_was_deleted_alone_is_refused),
         DEATH(add_to_a_replaced_file_is_refused),
         DEATH(deleted_directory_of_the_processes_loses_no_key),
         DEATH(file_that_is_no_database_is_refused_and_untouched),
         DEATH(database_of_another_program_is_refused_and_untouched),
         DEATH(file_of_a_newer_release_is_refused_and_untouched),
         DEATH(file_or_directory_that_cannot_be_written_is_reported),
         DEATH(directory_that_does_not_exist_is_reported),
         DEATH(database_locked_by_another_program_is_away_for_a_while),
         DEATH(blocked_get_goes_on_after_another_programs_lock),
         DEATH(handles_of_one_process_share_a_queue),
         DEATH(queues_of_one_file_do_not_see_each_other),
         DEATH(failures_count_what_all_processes_do),
         DEATH(queue_is_as_it_was_when_it_is_opened_again),
         DEATH(fences_grow_while_others_open_and_close),
         DEATH(add_of_another_process_wakes_a_get),
         DEATH(deadline_of_one_process_passes_in_another));
