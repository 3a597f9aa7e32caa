/* SPDX-License-Identifier: MIT */
/* test_wal.c: is a commit written with one call, and as SQLite would have written
 * it? (wal.h) */
#include "support/wq_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include <wq/sqlite.h>

#include "sqlite/crash_vfs.h"
#include "sqlite/place.h"
#include "support/audit.h"

static struct place at;
static wq_queue    *q, *other; /* two handles: each with an SQLite of its own */

static wq_queue *
open_file(const char *path)
{
    wq_queue *queue;

    if (wq_sqlite_open(path, WQ_SQLITE_OPTIONS(.sync = WQ_SQLITE_SYNC_LAZY),
                       NULL, &queue))
        fail_msg("%s", wq_last_error());
    return queue;
}

static int
set_up(void **state)
{
    (void)state;
    crash_vfs_install();
    crash_vfs_reset();
    at = place_make();
    q = open_file(at.db);
    other = open_file(at.db);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    wq_destroy(q);
    wq_destroy(other);
    place_remove(&at);
    return 0;
}

/* Both handles see `n` keys, and nothing is wrong with the file. */
static void
expect_keys(size_t n)
{
    assert_int_equal(wq_len(q), n);
    assert_int_equal(wq_len(other), n);
    assert_true(audit_is_clean(other));
    assert_string_equal(place_integrity(at.db), "ok");
}

/* Keys of `len` bytes, which begin with `first`. */
static wq_err
add_many(wq_queue *queue, char first, size_t n, size_t len)
{
    char   *bytes = calloc(n, len);
    wq_key *keys = calloc(n, sizeof *keys);

    assert_true(bytes && keys);
    for (size_t i = 0; i < n; i++) {
        char *key = bytes + i * len;

        memset(key, first, len);
        (void)snprintf(key + 1, 8, "%u", (unsigned)i % 1000000);
        keys[i] = wq_bytes(key, len);
    }
    const wq_err err = wq_add_with(queue, NULL, keys, n);
    free(keys);
    free(bytes);
    return err;
}

TEST(commit_of_a_key_is_one_write)
{
    wq_item *item;

    assert_err(wq_add(q, wq_str("a")), WQ_OK);
    long changes = crash_vfs_changes();
    assert_err(wq_add(q, wq_str("b")), WQ_OK);
    assert_int_equal(crash_vfs_changes(), changes + 1);
    assert_err(wq_get(q, &item), WQ_OK);
    assert_int_equal(crash_vfs_changes(), changes + 2);
    assert_err(wq_done(q, item), WQ_OK);
    assert_int_equal(crash_vfs_changes(), changes + 3);
    expect_keys(1);
}

/* Its pages do not fit into the buffer: it is written in parts. */
TEST(commit_of_many_keys_is_a_few_writes)
{
    const long changes = crash_vfs_changes();

    assert_err(add_many(q, 'k', 500, 300), WQ_OK);
    assert_in_range(crash_vfs_changes() - changes, 2, 30);
    expect_keys(500);
}

/* A snapshot of the file: what is committed later is not moved into the
 * database while it lives. */
static sqlite3 *
open_reader(void)
{
    sqlite3 *reader = NULL;

    assert_int_equal(sqlite3_open(at.db, &reader), SQLITE_OK);
    assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM key",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    return reader;
}

/* Opens a copy of the files, whose log is read from its beginning: SQLite stops
 * at the first page whose checksum is wrong. */
static void
expect_keys_in_a_copy(size_t n)
{
    const struct place copy = place_make_below(&at, "copy");

    place_copy(&at, &copy);
    wq_queue *queue = open_file(copy.db);
    assert_int_equal(wq_len(queue), n);
    assert_true(audit_is_clean(queue));
    wq_destroy(queue);
}

/* SQLite writes pages before COMMIT, and other checksums into them there. */
TEST(commit_that_is_larger_than_the_cache_is_whole)
{
    enum { N = 50000, LEN = 100 };
    sqlite3 *reader = open_reader();

    assert_err(add_many(q, 'k', N, LEN), WQ_OK);
    expect_keys_in_a_copy(N);
    (void)sqlite3_close(reader);
    expect_keys(N);
}

TEST(commit_after_one_that_is_larger_than_the_cache_is_one_write)
{
    enum { N = 120, LEN = 60000 };

    assert_err(add_many(q, 'k', N, LEN), WQ_OK);
    expect_keys(N);
    assert_err(wq_add(q, wq_str("next")), WQ_OK); /* after a checkpoint */
    const long changes = crash_vfs_changes();
    assert_err(wq_add(q, wq_str("last")), WQ_OK);
    assert_int_equal(crash_vfs_changes(), changes + 1);
    expect_keys(N + 2);
}

/* The `nth` write of a commit of many keys fails. What was gathered for it must
 * not be written later, where other handles have written meanwhile. False: the
 * commit had fewer writes. */
static bool
fails_at(long nth, char first, size_t expected)
{
    crash_vfs_fail(CRASH_VFS_WRITE, nth, CRASH_VFS_SHORT, false);
    const wq_err err = add_many(q, first, 200, 300);

    (void)crash_vfs_heal();
    if (!err) /* all was written; a checkpoint may have failed */
        return false;
    assert_true(err == WQ_EIO || err == WQ_EAWAY);
    expect_keys(expected);
    assert_err(add_many(other, first, 100, 300), WQ_OK); /* half of them */
    assert_err(add_many(q, first, 150, 300), WQ_OK);
    expect_keys(expected + 150);
    return true;
}

TEST(commit_that_fails_leaves_nothing_for_later)
{
    long nth = 1;

    while (fails_at(nth, (char)('a' + nth), 150 * (size_t)(nth - 1)))
        nth++;
    assert_true(nth > 2); /* the commit is several writes */
}

#define WAL(name) test_with(name, set_up, tear_down)

WQ_TESTS(WAL(commit_of_a_key_is_one_write),
         WAL(commit_of_many_keys_is_a_few_writes),
         WAL(commit_that_is_larger_than_the_cache_is_whole),
         WAL(commit_after_one_that_is_larger_than_the_cache_is_one_write),
         WAL(commit_that_fails_leaves_nothing_for_later));
