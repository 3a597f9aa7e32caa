/* SPDX-License-Identifier: MIT */
/* test_holder.c: what becomes of keys that a handle gets for another process?
 * (S-19) The other process only exists: it is the script that runs `wq get` and
 * `wq done`. */
#include "support/wq_test.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <wq/inspect.h>
#include <wq/sqlite.h>

#include "sqlite/place.h"
#include "support/look.h"

static struct {
    struct place at;
    pid_t        script;
} f;

static pid_t
start_script(void)
{
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        for (;;)
            (void)pause();
    return pid;
}

static void
end_script(void)
{
    (void)kill(f.script, SIGKILL);
    (void)waitpid(f.script, NULL, 0);
    f.script = 0;
}

static int
set_up(void **state)
{
    (void)state;
    f.script = start_script();
    f.at = place_make();
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    if (f.script)
        end_script();
    place_remove(&f.at);
    return 0;
}

static wq_queue *
open_for(pid_t pid)
{
    wq_queue    *q = NULL;
    const wq_err err = wq_sqlite_open(
        f.at.db, WQ_SQLITE_OPTIONS(.holder_pid = (int)pid), NULL, &q);

    if (err)
        fail_msg("%s", wq_last_error());
    return q;
}

/* As `wq add a; wq get` in the script; returns a handle for `pid`. */
static wq_queue *
open_after_get(pid_t pid)
{
    wq_queue *q = open_for(f.script);
    wq_item  *item;

    assert_int_equal(wq_add_str(q, "a"), WQ_OK);
    assert_int_equal(wq_get_within(q, 0, &item), WQ_OK);
    wq_destroy(q);
    return open_for(pid);
}

/* S-19 */
TEST(key_stays_HELD_when_the_handle_is_destroyed)
{
    wq_queue *q = open_after_get(0);
    wq_item  *item;

    assert_int_equal(info_of(q, "a").states, WQ_STATE_HELD);
    assert_int_equal(wq_get_within(q, 0, &item), WQ_ETIMEDOUT);
    wq_destroy(q);
}

/* S-19 S-29 */
TEST(holder_is_the_process_that_is_named)
{
    wq_queue *q = open_after_get(0);
    wq_item  *item;
    char      pid[16];

    (void)snprintf(pid, sizeof pid, "%d", (int)f.script);
    assert_string_equal(info_of(q, "a").holder, pid);
    assert_int_equal(wq_add_str(q, "b"), WQ_OK);
    assert_string_equal(info_of(q, "b").holder, "");
    assert_int_equal(wq_get_within(q, 0, &item), WQ_OK);
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    assert_string_equal(info_of(q, "b").holder, pid);
    assert_int_equal(wq_done(q, item), WQ_OK);
    wq_destroy(q);
}

/* S-19 */
TEST(another_handle_of_the_process_finishes_the_key)
{
    wq_queue *q = open_after_get(f.script);
    wq_item  *item;

    assert_int_equal(wq_sqlite_resume(q, wq_str("a"), &item), WQ_OK);
    assert_string_equal(item->key.data, "a");
    assert_int_equal(wq_sqlite_resume(q, wq_str("a"), &item), WQ_ESTATE);
    assert_int_equal(wq_finish(q, item, wq_result_done()), WQ_OK);
    assert_int_equal(info_of(q, "a").states, 0);
    assert_int_equal(wq_sqlite_resume(q, wq_str("a"), &item), WQ_ENOTFOUND);
    wq_destroy(q);
}

/* S-19: a key that was added meanwhile runs once more. */
TEST(key_added_while_the_process_holds_it_is_READY_after_its_finish)
{
    wq_queue *q = open_after_get(f.script);
    wq_item  *item;

    assert_int_equal(wq_add_str(q, "a"), WQ_OK);
    assert_int_equal(wq_sqlite_resume(q, wq_str("a"), &item), WQ_OK);
    assert_int_equal(wq_finish(q, item, wq_result_done()), WQ_OK);
    assert_int_equal(info_of(q, "a").states, WQ_STATE_READY);
    wq_destroy(q);
}

/* S-19 */
TEST(other_processes_cannot_resume_the_key)
{
    const pid_t other = start_script();
    wq_queue   *q = open_after_get(other);
    wq_item    *item;

    assert_int_equal(wq_sqlite_resume(q, wq_str("a"), &item), WQ_ENOTFOUND);
    assert_true(strstr(wq_last_error(), "does not hold"));
    wq_destroy(q);
    (void)kill(other, SIGKILL);
    (void)waitpid(other, NULL, 0);
}

/* S-19 */
TEST(key_is_READY_again_when_the_process_ends)
{
    wq_queue *q = open_after_get(0);
    wq_item  *item;

    end_script();
    assert_int_equal(wq_get_within(q, WQ_SECONDS(20), &item), WQ_OK);
    assert_int_equal(wq_done(q, item), WQ_OK);
    wq_destroy(q);
}

/* S-19: others do not take it back from a live process. */
TEST(several_keys_are_held_until_each_is_finished)
{
    wq_queue *q = open_for(f.script);
    wq_item  *items[2];
    size_t    n;

    assert_int_equal(wq_add_str(q, "a"), WQ_OK);
    assert_int_equal(wq_add_str(q, "b"), WQ_OK);
    assert_int_equal(wq_get_many(q, items, 2, 0, &n), WQ_OK);
    wq_destroy(q);
    q = open_for(f.script);
    assert_int_equal(wq_sqlite_resume(q, wq_str("b"), &items[0]), WQ_OK);
    assert_int_equal(wq_finish(q, items[0], wq_result_back()), WQ_OK);
    assert_int_equal(info_of(q, "a").states, WQ_STATE_HELD);
    assert_int_equal(info_of(q, "b").states, WQ_STATE_READY);
    wq_destroy(q);
}

TEST(bad_holders_are_refused_with_a_sentence)
{
    wq_queue *q = NULL;
    wq_item  *item;

    end_script();
    const pid_t gone = start_script();
    (void)kill(gone, SIGKILL);
    (void)waitpid(gone, NULL, 0);
    assert_int_equal(wq_sqlite_open(f.at.db,
                                    WQ_SQLITE_OPTIONS(.holder_pid = (int)gone),
                                    NULL, &q),
                     WQ_EINVAL);
    assert_true(strstr(wq_last_error(), "no process"));
    assert_int_equal(
        wq_sqlite_open(
            f.at.db,
            WQ_SQLITE_OPTIONS(.holder_pid = 1, .hold = WQ_SQLITE_HOLD_LEASE),
            NULL, &q),
        WQ_EINVAL);
    q = open_for(0);
    assert_int_equal(wq_sqlite_resume(q, wq_str("a"), &item), WQ_EINVAL);
    assert_int_equal(wq_sqlite_resume(NULL, wq_str("a"), &item), WQ_EINVAL);
    wq_destroy(q);
    assert_int_equal(wq_create(NULL, &q), WQ_OK);
    assert_int_equal(wq_sqlite_resume(q, wq_str("a"), &item), WQ_EINVAL);
    wq_destroy(q);
}

#define with_script(test)                                                      \
    cmocka_unit_test_setup_teardown(test, set_up, tear_down)

WQ_TESTS(
    with_script(key_stays_HELD_when_the_handle_is_destroyed),
    with_script(holder_is_the_process_that_is_named),
    with_script(another_handle_of_the_process_finishes_the_key),
    with_script(key_added_while_the_process_holds_it_is_READY_after_its_finish),
    with_script(other_processes_cannot_resume_the_key),
    with_script(key_is_READY_again_when_the_process_ends),
    with_script(several_keys_are_held_until_each_is_finished),
    with_script(bad_holders_are_refused_with_a_sentence));
