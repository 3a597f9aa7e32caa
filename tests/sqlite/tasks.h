/* SPDX-License-Identifier: MIT */
/* tasks.h: what do the processes of a test do with a queue in a file, and how
 * does the test direct them?
 *
 * A test directs two or three processes (actor.h). The functions under "tasks"
 * run in these processes; the tests themselves never use SQLite.
 */
#ifndef WQ_TEST_TASKS_H
#define WQ_TEST_TASKS_H

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

#include "sqlite/place.h"
#include "support/actor.h"
#include "support/audit.h"
/* The bounds of the promises, with what a loaded machine adds to them. */
#define KNOWN_WITHIN WQ_SECONDS(2) /* the death of a holder */
#define WOKEN_WITHIN WQ_MS(1500)   /* by the add of another process */

static struct place at;

static inline int
make_place(void **state)
{
    (void)state;
    at = place_make();
    return 0;
}

static inline int
end_all(void **state)
{
    (void)actor_end_all(state);
    place_remove(&at);
    return 0;
}

static inline int64_t
now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * WQ_SECONDS(1) + t.tv_nsec;
}

static inline void
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

static inline void
on_lost(void *ctx, wq_key key, uint64_t fence)
{
    (void)ctx, (void)key, (void)fence;
    lost_calls++;
}

static inline int64_t
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
static inline int64_t
do_open(const char *options)
{
    return open_into(&queue, options);
}

/* With a lease that nobody renews. */
static inline int64_t
do_open_unrenewed(const char *arg)
{
    (void)arg;
    return wq_sqlite_open(at.db,
                          WQ_SQLITE_OPTIONS(.hold = WQ_SQLITE_HOLD_LEASE,
                                            .lease_ns = WQ_MS(300),
                                            .manual_renew = true),
                          NULL, &queue);
}

static inline int64_t
do_open_second(const char *options)
{
    return open_into(&second, options);
}

static inline int64_t
close_of(wq_queue **q)
{
    wq_destroy(*q);
    *q = NULL;
    return 0;
}

static inline int64_t
do_destroy(const char *arg)
{
    (void)arg;
    return close_of(&queue);
}

static inline int64_t
do_destroy_second(const char *arg)
{
    (void)arg;
    return close_of(&second);
}

static inline int64_t
do_add(const char *key)
{
    return wq_add_str(queue, key);
}

/* When the add began. */
static inline int64_t
do_add_at(const char *key)
{
    const int64_t began = now_ns();

    return wq_add_str(queue, key) == WQ_OK ? began : -1;
}

/* "KEY MS" */
static inline int64_t
do_add_after(const char *arg)
{
    char key[ACTOR_ARG];
    long ms = 0;

    MUST(sscanf(arg, "%239s %ld", key, &ms) == 2);
    return wq_add_after_str(queue, key, WQ_MS(ms));
}

/* "KEY PRIORITY"; returns the wq_added. */
static inline int64_t
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
static inline int64_t
do_get(const char *ms)
{
    return wq_get_within(queue, WQ_MS(atol(ms)), &item);
}

static inline int64_t
do_get_second(const char *ms)
{
    return wq_get_within(second, WQ_MS(atol(ms)), &item);
}

/* When a key was there; -1: none. */
static inline int64_t
do_get_at(const char *ms)
{
    return do_get(ms) == WQ_OK ? now_ns() : -1;
}

/* Is it this key? */
static inline int64_t
do_have(const char *key)
{
    return item && strcmp(item->key.data, key) == 0;
}

static inline int64_t
do_fence(const char *arg)
{
    (void)arg;
    return (int64_t)item->fence;
}

static inline wq_result
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

static inline int64_t
do_finish(const char *result)
{
    return wq_finish(queue, item, result_named(result));
}

static inline int64_t
do_finish_second(const char *result)
{
    return wq_finish(second, item, result_named(result));
}

static inline int64_t
do_revive(const char *key)
{
    return wq_revive_str(queue, key);
}

static inline wq_key_info
look_at(const char *key)
{
    wq_key_info info = {.size = sizeof info};

    MUST(wq_read_key(queue, wq_str(key), &info) == WQ_OK);
    return info;
}

static inline int64_t
do_states(const char *key)
{
    return look_at(key).states;
}

static inline int64_t
do_failures(const char *key)
{
    return look_at(key).requeues;
}

static inline int64_t
do_wait_ns(const char *key)
{
    return look_at(key).wait_ns;
}

static inline int64_t
do_held_fence(const char *key)
{
    return (int64_t)look_at(key).fence;
}

static inline int64_t
do_expired(const char *arg)
{
    wq_stats s = {.size = sizeof s};

    (void)arg;
    MUST(wq_read_stats(queue, &s) == WQ_OK);
    return (int64_t)s.expired;
}

static inline int64_t
do_lost_calls(const char *arg)
{
    (void)arg;
    return lost_calls;
}

static inline int64_t
do_hold_left(const char *arg)
{
    (void)arg;
    return wq_hold_left(queue, item);
}

static inline bool
is_key(void *name, wq_key key, const wq_key_info *info)
{
    const char **wanted = name;

    (void)info;
    if (key.len == strlen(*wanted) && !memcmp(key.data, *wanted, key.len))
        *wanted = "";
    return true;
}

/* Does a walk over DEAD keys visit it? */
static inline int64_t
do_list_dead(const char *key)
{
    MUST(wq_each(queue, WQ_STATE_DEAD, is_key, &key) == WQ_OK);
    return !*key;
}

static inline int64_t
do_check(const char *arg)
{
    (void)arg;
    return audit_is_clean(queue);
}

static inline int64_t
do_has_message(const char *arg)
{
    (void)arg;
    return wq_last_error()[0] != '\0';
}

/* Does the last error of this process say it? */
static inline int64_t
do_says(const char *word)
{
    return strstr(wq_last_error(), word) != NULL;
}

/* Runs SQL in the file; false: an error. */
static inline int64_t
do_sql(const char *sql)
{
    const char *answer = place_sql(at.db, sql);
    const bool  failed = strncmp(answer, "error", 5) == 0;

    if (failed)
        (void)fprintf(stderr, "%s: %s\n", sql, answer);
    return !failed;
}

/* Keeps the connection. */
static inline int64_t
do_raw(const char *sql)
{
    if (!raw)
        MUST(sqlite3_open(at.db, &raw) == SQLITE_OK);
    return sqlite3_exec(raw, sql, NULL, NULL, NULL);
}

/* Becomes a user without rights. */
static inline int64_t
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

static inline struct actor *
opener(const char *options)
{
    struct actor *a = actor_start();

    assert_err(actor_do(a, do_open, options), WQ_OK);
    return a;
}

/* A process that holds `key`. */
static inline struct actor *
holder(const char *options, const char *key)
{
    struct actor *a = opener(options);

    assert_err(actor_do(a, do_add, key), WQ_OK);
    assert_err(actor_do(a, do_get, "5000"), WQ_OK);
    assert_true(actor_do(a, do_have, key));
    return a;
}

static inline void
expect_states(struct actor *a, const char *key, unsigned states)
{
    assert_int_equal(actor_do(a, do_states, key), states);
}

/* The same, as soon as the death of a process is known. */
static inline void
await_states(struct actor *a, const char *key, unsigned states)
{
    const int64_t limit = now_ns() + KNOWN_WITHIN;

    while (actor_do(a, do_states, key) != states && now_ns() < limit)
        sleep_ms(10);
    expect_states(a, key, states);
}

static inline void
expect_gets(struct actor *a, const char *key)
{
    assert_err(actor_do(a, do_get, "5000"), WQ_OK);
    assert_true(actor_do(a, do_have, key));
}

static inline void
expect_clean(struct actor *a)
{
    assert_true(actor_do(a, do_check, ""));
}

#endif
