/* SPDX-License-Identifier: MIT */
/* test_files.c: what if the files of a queue are not what they should be, and what
 * do several handles, queues and processes share? */
#define _DEFAULT_SOURCE /* setgroups() */

#include <poll.h>

#include "sqlite/tasks.h"

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

/* A sleeper hears of a deleted file within the bound of its looks. */
TEST(get_that_waits_ends_when_its_file_is_deleted)
{
    struct actor *a = opener("");

    actor_post(a, do_get, "20000");
    sleep_ms(100);
    remove_files();
    assert_err((wq_err)actor_await(a), WQ_EAWAY);
    assert_true(actor_do(a, do_has_message, ""));
    (void)actor_do(a, do_destroy, "");
}

/* How often a get that follows the descriptor runs within so many milliseconds,
 * until it fails otherwise than by finding no key; minus the error then. */
static int64_t
do_follow_descriptor(const char *ms)
{
    struct pollfd fd = {.fd = wq_fd(queue), .events = POLLIN};
    const int64_t until = now_ns() + WQ_MS(atol(ms));
    int64_t       gets = 0;

    for (; now_ns() < until; gets++) {
        if (poll(&fd, 1, (int)((until - now_ns()) / 1000000) + 1) <= 0)
            break;
        const wq_err err = wq_get_within(queue, 0, &item);
        if (err != WQ_ETIMEDOUT)
            return -(int64_t)err;
    }
    return gets;
}

TEST(descriptor_is_readable_when_its_file_was_deleted)
{
    struct actor *a = opener("");

    assert_in_range(actor_do(a, do_follow_descriptor, "2500"), 1, 5);
    actor_post(a, do_follow_descriptor, "20000");
    sleep_ms(100);
    remove_files();
    assert_err((wq_err)-actor_await(a), WQ_EAWAY);
    (void)actor_do(a, do_destroy, "");
}

/* The file is deleted. A program that ignores the error does not spin. */
static void
expect_looks_of_a_deleted_file(struct actor *a)
{
    for (int i = 0; i < 3; i++) {
        const int64_t before = now_ns();
        assert_err((wq_err)-actor_do(a, do_follow_descriptor, "20000"),
                   WQ_EAWAY);
        assert_true(i == 0 || now_ns() - before > WQ_MS(500));
    }
    (void)actor_do(a, do_destroy, "");
}

TEST(descriptor_of_a_deleted_file_is_readable_once_a_second)
{
    struct actor *a = opener("");

    (void)actor_do(a, do_follow_descriptor, "1"); /* it has one */
    remove_files();
    expect_looks_of_a_deleted_file(a);
}

/* It reconciles before each batch, and that fails. */
TEST(descriptor_of_a_handle_in_doubt_is_readable_once_a_second)
{
    struct actor *a = opener("hold=lease&lease=300ms");

    (void)actor_do(a, do_follow_descriptor, "1");
    actor_signal(a, SIGSTOP);
    sleep_ms(500); /* its lease ends */
    remove_files();
    actor_signal(a, SIGCONT);
    expect_looks_of_a_deleted_file(a);
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

/* A file with a key, which this actor has closed. */
static struct actor *
creator(void)
{
    struct actor *a = opener("");

    assert_err(actor_do(a, do_add, "k"), WQ_OK);
    (void)actor_do(a, do_destroy, "");
    return a;
}

TEST(file_of_a_newer_release_is_refused_and_untouched)
{
    struct actor *a = creator();

    /* Ends the log, so that its end is no change of the test below. */
    assert_true(actor_do(a, do_sql, "PRAGMA journal_mode = DELETE"));
    assert_true(actor_do(a, do_sql, "PRAGMA user_version = 1000"));
    expect_untouched(a, WQ_EVERSION);
}

/* S-18 */
TEST(file_of_an_older_schema_is_refused_and_untouched)
{
    struct actor *a = creator();

    assert_true(actor_do(a, do_sql, "PRAGMA journal_mode = DELETE"));
    assert_true(actor_do(a, do_sql, "PRAGMA user_version = 1"));
    expect_untouched(a, WQ_EVERSION);
}

TEST(file_or_directory_that_cannot_be_written_is_reported)
{
    (void)creator();
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

static void
give_away(const char *suffix)
{
    char path[PLACE_PATH + 8];

    path_of(path, suffix);
    if (geteuid() == 0 && place_has(path))
        assert_int_equal(chown(path, 65534, 65534), 0);
}

/* Its owner is the process that opens it. */
TEST(file_that_could_not_be_written_can_be_used_later)
{
    (void)creator();
    struct actor *b = actor_start();
    assert_int_equal(actor_do(b, do_become_nobody, ""), 0);
    assert_int_equal(chmod(at.dir, 0777), 0);
    give_away("");
    remove_beside("-wal");
    remove_beside("-shm");
    remove_beside("-wq");
    assert_int_equal(chmod(at.db, 0444), 0);
    assert_err(actor_do(b, do_open, ""), WQ_EAWAY);
    assert_true(actor_do(b, do_says, at.db));
    assert_true(actor_do(b, do_says, "Permission denied"));
    assert_int_equal(chmod(at.db, 0644), 0);
    assert_err(actor_do(b, do_open, ""), WQ_OK);
    expect_gets(b, "k");
}

TEST(directory_that_does_not_exist_is_reported)
{
    (void)snprintf(at.db, sizeof at.db, "%s/none/queue.db", at.dir);
    struct actor *a = actor_start();
    assert_err(actor_do(a, do_open, ""), WQ_ENOTFOUND);
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
    struct actor *b = opener("queue=team=blue, 2");

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

/* The next wake-ups go to each of the two in turn; one of them sleeps on. */
TEST(key_is_taken_when_its_wake_up_went_to_a_stopped_process)
{
    struct actor *a = opener("");
    struct actor *b = opener("");
    struct actor *stopped = opener("");

    actor_post(stopped, do_get, "15000");
    sleep_ms(100);
    actor_signal(stopped, SIGSTOP);
    for (int i = 0; i < 2; i++) {
        actor_post(b, do_get_at, "10000");
        sleep_ms(100);
        const int64_t began = actor_do(a, do_add_at, "k");
        const int64_t got = actor_await(b);
        assert_true(began >= 0 && got >= 0);
        assert_true(got - began < WQ_SECONDS(1) + WOKEN_WITHIN);
        assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    }
    actor_signal(stopped, SIGCONT);
    assert_err(actor_do(a, do_add, "k"), WQ_OK);
    assert_err(actor_await(stopped), WQ_OK);
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

#define IN_PLACE(name) test_with(name, make_place, end_all)

WQ_TESTS(IN_PLACE(add_to_a_deleted_file_is_refused),
         IN_PLACE(add_to_a_file_that_was_deleted_alone_is_refused),
         IN_PLACE(add_to_a_replaced_file_is_refused),
         IN_PLACE(get_that_waits_ends_when_its_file_is_deleted),
         IN_PLACE(descriptor_is_readable_when_its_file_was_deleted),
         IN_PLACE(descriptor_of_a_deleted_file_is_readable_once_a_second),
         IN_PLACE(descriptor_of_a_handle_in_doubt_is_readable_once_a_second),
         IN_PLACE(deleted_directory_of_the_processes_loses_no_key),
         IN_PLACE(file_that_is_no_database_is_refused_and_untouched),
         IN_PLACE(database_of_another_program_is_refused_and_untouched),
         IN_PLACE(file_of_a_newer_release_is_refused_and_untouched),
         IN_PLACE(file_of_an_older_schema_is_refused_and_untouched),
         IN_PLACE(file_or_directory_that_cannot_be_written_is_reported),
         IN_PLACE(file_that_could_not_be_written_can_be_used_later),
         IN_PLACE(directory_that_does_not_exist_is_reported),
         IN_PLACE(database_locked_by_another_program_is_away_for_a_while),
         IN_PLACE(blocked_get_goes_on_after_another_programs_lock),
         IN_PLACE(handles_of_one_process_share_a_queue),
         IN_PLACE(queues_of_one_file_do_not_see_each_other),
         IN_PLACE(failures_count_what_all_processes_do),
         IN_PLACE(queue_is_as_it_was_when_it_is_opened_again),
         IN_PLACE(fences_grow_while_others_open_and_close),
         IN_PLACE(add_of_another_process_wakes_a_get),
         IN_PLACE(key_is_taken_when_its_wake_up_went_to_a_stopped_process),
         IN_PLACE(deadline_of_one_process_passes_in_another));
