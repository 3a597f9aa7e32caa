/* SPDX-License-Identifier: MIT */
/* test_crash_vfs.c: does the simulated disk lose what a real one loses, and
 * nothing else?
 *
 * SQLite alone, as its manual describes it: with synchronous=FULL a commit
 * survives, with NORMAL it need not, and in no case is the file broken. Every
 * round is a process of its own, which ends by a power loss.
 */
#include "support/wq_test.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sqlite/crash_vfs.h"
#include "sqlite/place.h"

static struct tally {
    int committed; /* the largest number whose commit has returned */
    int lost;      /* numbers that were committed and are not in the file */
    int opened;    /* rounds that have looked at the file */
} * shared;

static void
run_sql(sqlite3 *c, const char *sql)
{
    char *why = NULL;

    if (sqlite3_exec(c, sql, NULL, NULL, &why) != SQLITE_OK) {
        (void)fprintf(stderr, "%s: %s\n", sql, why);
        _exit(1);
    }
}

static sqlite3 *
open_raw(const struct place *at)
{
    sqlite3 *c = NULL;

    MUST(sqlite3_open(at->db, &c) == SQLITE_OK);
    return c;
}

/* What has the last loss left? */
static int
look(const struct place *at)
{
    MUST(strcmp(place_integrity(at->db), "ok") == 0);
    const int found = atoi(place_sql(at->db, "SELECT max(n) FROM t"));
    if (found < shared->committed)
        shared->lost += shared->committed - found;
    shared->committed = found;
    shared->opened++;
    return found;
}

/* How a round uses SQLite, and its disk. */
struct mode {
    const char *pragmas;
    bool        truncates; /* the log, again and again */
    bool        lies;      /* the disk ignores syncs of the log */
};

/* Commit numbers until the power is lost. */
static _Noreturn void
commit_until_loss(const struct place *at, const struct mode *mode)
{
    sqlite3 *c = open_raw(at);

    run_sql(c, "PRAGMA journal_mode=WAL");
    run_sql(c, mode->pragmas);
    run_sql(c, "CREATE TABLE IF NOT EXISTS t(n)");
    for (int i = look(at) + 1;; i++) {
        char sql[128];

        (void)snprintf(sql, sizeof sql,
                       "BEGIN; INSERT INTO t VALUES(%d);"
                       "DELETE FROM t WHERE n < %d; COMMIT",
                       i, i - 50);
        run_sql(c, sql);
        shared->committed = i;
        if (mode->truncates && i % 5 == 0)
            run_sql(c, "PRAGMA wal_checkpoint(TRUNCATE)");
    }
}

static int
in_child(const struct place *at, const char *to, uint64_t seed,
         const struct mode *mode)
{
    const pid_t child = fork();
    int         status = -1;

    assert_true(child >= 0);
    if (child == 0) {
        crash_vfs_install();
        if (mode->lies)
            crash_vfs_ignore_log_syncs();
        crash_vfs_lose_power_at(1 + (long)(seed * 7919 % 97), seed, to);
        commit_until_loss(at, mode);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Lose the power so many times, and continue with what is left. Returns how many
 * committed numbers were lost. */
static int
lose_often(int losses, struct mode mode)
{
    const struct place parent = place_make();
    struct place       at = place_make_below(&parent, "0");

    shared = must_share(sizeof *shared);
    for (int i = 1; i <= losses; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, "%d", i);
        const struct place to = place_make_below(&parent, name);
        assert_int_equal(in_child(&at, to.dir, (uint64_t)i, &mode),
                         CRASH_VFS_LOST);
        place_remove(&at);
        at = to;
    }
    place_remove(&parent);
    assert_true(shared->opened > losses / 2);
    return shared->lost;
}

/* A checkpoint after a sync of the log that did not happen breaks the file. */
#define FULL "PRAGMA synchronous=FULL;"
#define NORMAL "PRAGMA synchronous=NORMAL;"
#define CHECKPOINTS "PRAGMA wal_autocheckpoint=20"
#define NO_CHECKPOINTS "PRAGMA wal_autocheckpoint=0"

TEST(full_sync_loses_no_commit)
{
    assert_int_equal(
        lose_often(100, (struct mode){.pragmas = FULL CHECKPOINTS}), 0);
}

/* SQLite relies on it that a file is truncated, or it is not: half a log would
 * bring back the pages of former commits. */
TEST(truncation_of_the_log_loses_no_commit)
{
    assert_int_equal(
        lose_often(100, (struct mode){.pragmas = FULL NO_CHECKPOINTS,
                                      .truncates = true}),
        0);
}

TEST(normal_sync_loses_commits_but_breaks_no_file)
{
    assert_true(lose_often(100, (struct mode){.pragmas = NORMAL CHECKPOINTS}) >
                0);
}

TEST(ignored_log_sync_loses_commits)
{
    assert_true(lose_often(40, (struct mode){.pragmas = FULL NO_CHECKPOINTS,
                                             .lies = true}) > 0);
}

/* ---- failures ------------------------------------------------------------ */

static int
insert(const struct place *at)
{
    sqlite3 *c = NULL;

    int rc = sqlite3_open(at->db, &c);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(c,
                          "PRAGMA journal_mode=WAL;"
                          "CREATE TABLE IF NOT EXISTS t(n);"
                          "INSERT INTO t VALUES(1)",
                          NULL, NULL, NULL);
    (void)sqlite3_close(c);
    return rc;
}

TEST(each_call_fails_once_and_the_file_stays_intact)
{
    const enum crash_vfs_how hows[] = {CRASH_VFS_IOERR, CRASH_VFS_FULL,
                                       CRASH_VFS_SHORT, CRASH_VFS_DONE_ONLY};

    crash_vfs_install();
    for (size_t how = 0; how < sizeof hows / sizeof *hows; how++) {
        long failed = 1;

        for (long nth = 1; failed; nth++) {
            const struct place at = place_make();

            crash_vfs_fail(CRASH_VFS_ANY, nth, hows[how], false);
            (void)insert(&at);
            failed = crash_vfs_heal();
            assert_int_equal(insert(&at), SQLITE_OK);
            assert_string_equal(place_integrity(at.db), "ok");
            crash_vfs_reset();
            place_remove(&at);
            assert_true(nth < 500);
        }
    }
}

TEST(full_disk_refuses_writes_until_there_is_space)
{
    const struct place at = place_make();
    int                rc = SQLITE_OK;

    crash_vfs_install();
    crash_vfs_set_capacity(65536);
    for (int i = 0; i < 100 && rc == SQLITE_OK; i++) {
        rc = insert(&at);
        assert_true(crash_vfs_bytes() <= 65536);
        if (rc == SQLITE_OK)
            (void)place_sql(at.db, "INSERT INTO t VALUES(zeroblob(4000))");
    }
    assert_int_equal(rc, SQLITE_FULL);
    crash_vfs_set_capacity(0);
    assert_int_equal(insert(&at), SQLITE_OK);
    crash_vfs_reset();
    place_remove(&at);
}

WQ_TESTS(test(full_sync_loses_no_commit),
         test(truncation_of_the_log_loses_no_commit),
         test(normal_sync_loses_commits_but_breaks_no_file),
         test(ignored_log_sync_loses_commits),
         test(each_call_fails_once_and_the_file_stays_intact),
         test(full_disk_refuses_writes_until_there_is_space));
