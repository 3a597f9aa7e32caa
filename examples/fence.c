/* SPDX-License-Identifier: MIT */
/* fence.c: a worker that has lost its key cannot overwrite what came after it.
 *
 * The first worker hangs for longer than its lease. The second one gets the key
 * and writes its result, to a file and to a table. Then the first one goes on,
 * and writes, too: both places compare the fences, and refuse the older one.
 */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include <wq/sqlite.h>

static char directory[] = "/tmp/wq-fence-XXXXXX";

static const char *
path_of(const char *name)
{
    static char path[256];

    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void
check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fence: %s: %s\n", what, wq_last_error());
    exit(1);
}

/* begin: file */
/* Write "FENCE TEXT" to the file, unless it has a newer fence. The lock makes the
 * comparison and the write one step. */
static bool
write_file(const char *path, uint64_t fence, const char *text)
{
    char       line[256] = "";
    uint64_t   newest = 0;
    const int  fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    const bool locked = fd >= 0 && flock(fd, LOCK_EX) == 0;
    bool       ok = locked && pread(fd, line, sizeof line - 1, 0) >= 0;

    if (ok && *line)
        newest = strtoull(line, NULL, 10);
    ok = ok && newest <= fence;
    if (ok) {
        const int n =
            snprintf(line, sizeof line, "%020" PRIu64 " %s\n", fence, text);
        ok = ftruncate(fd, 0) == 0 && pwrite(fd, line, (size_t)n, 0) == n &&
             fsync(fd) == 0;
    }
    if (fd >= 0)
        (void)close(fd); /* releases the lock */
    return ok;
}
/* end: file */

/* begin: table */
/* The same in a database: the statement compares and writes. */
static bool
write_row(sqlite3 *db, const char *key, uint64_t fence, const char *text)
{
    static const char sql[] =
        "INSERT INTO result(key, fence, text) VALUES(?1, ?2, ?3) "
        "ON CONFLICT(key) DO UPDATE SET fence = ?2, text = ?3 "
        "WHERE fence <= ?2";
    sqlite3_stmt *s = NULL;
    bool          ok = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK &&
              sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC) == SQLITE_OK &&
              sqlite3_bind_int64(s, 2, (sqlite3_int64)fence) == SQLITE_OK &&
              sqlite3_bind_text(s, 3, text, -1, SQLITE_STATIC) == SQLITE_OK;

    ok = ok && sqlite3_step(s) == SQLITE_DONE && sqlite3_changes(db) == 1;
    (void)sqlite3_finalize(s);
    return ok;
}
/* end: table */

/* A worker whose hold ends unless it is renewed; a queue in Redis is like that,
 * too. Here nobody renews: as if the process hung. */
static wq_queue *
open_queue(int64_t lease_ns)
{
    wq_queue *q = NULL;

    check(wq_sqlite_open(path_of("queue.db"),
                         WQ_SQLITE_OPTIONS(.hold = WQ_SQLITE_HOLD_LEASE,
                                           .lease_ns = lease_ns,
                                           .manual_renew = true),
                         NULL, &q) == WQ_OK,
          "cannot open the queue");
    return q;
}

static wq_item *
get(wq_queue *q)
{
    wq_item *item = NULL;

    check(wq_get_within(q, WQ_SECONDS(30), &item) == WQ_OK,
          "cannot get the key");
    return item;
}

static void
write_both(const char *who, sqlite3 *db, const wq_item *item, bool wanted)
{
    const bool file = write_file(path_of("result"), item->fence, who);
    const bool row = write_row(db, "report", item->fence, who);

    printf("%s: file %s, table %s\n", who, file ? "written" : "refused",
           row ? "written" : "refused");
    check(file == wanted && row == wanted, "that is wrong");
}

static int
remove_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

int
main(void)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    sqlite3              *db = NULL;

    check(mkdtemp(directory) != NULL, "cannot make a directory");
    check(sqlite3_open(path_of("results.db"), &db) == SQLITE_OK &&
              sqlite3_exec(db,
                           "CREATE TABLE result(key TEXT PRIMARY KEY, fence "
                           "INTEGER, text TEXT)",
                           NULL, NULL, NULL) == SQLITE_OK,
          "cannot make the table");
    wq_queue *first = open_queue(WQ_MS(200));
    wq_queue *second = open_queue(WQ_SECONDS(60));
    check(wq_add(first, wq_str("report")) == WQ_OK, "cannot add");

    wq_item *old = get(first);
    while (wq_hold_left(first, old) > 0) /* it hangs */
        (void)nanosleep(&moment, NULL);
    wq_item *new = get(second);
    check(new->fence > old->fence, "the fence did not grow");
    write_both("second worker", db, new, true);
    write_both("first worker", db, old, false);
    check(wq_finish(second, new, wq_result_done()) == WQ_OK, "cannot finish");
    check(wq_finish(first, old, wq_result_done()) == WQ_ELOST,
          "the first worker still holds the key");

    wq_destroy(first);
    wq_destroy(second);
    (void)sqlite3_close(db);
    (void)nftw(directory, remove_file, 4, FTW_DEPTH | FTW_PHYS);
    return 0;
}
