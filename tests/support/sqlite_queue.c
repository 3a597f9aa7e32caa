/* SPDX-License-Identifier: MIT */
/* sqlite_queue.c: opening queues in SQLite databases in tests; see
 * sqlite_queue.h. */
#define _XOPEN_SOURCE 700 /* nftw() */
#include "support/sqlite_queue.h"

#include <ftw.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <wq/sqlite.h>

static char        directory[512];
static char        last[600];
static atomic_uint files;
static pid_t       owner; /* children leave the directory alone */

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    (void)remove(path);
    return 0;
}

static void
remove_directory(void)
{
    if (getpid() == owner)
        (void)nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void
make_directory(void)
{
    const char *tmp = getenv("TMPDIR");

    (void)snprintf(directory, sizeof directory, "%s/wq-test-XXXXXX",
                   tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(directory)) {
        perror(directory);
        exit(1);
    }
    owner = getpid();
    (void)atexit(remove_directory);
}

const char *
sqlite_queue_new_path(void)
{
    if (!*directory)
        make_directory();
    (void)snprintf(last, sizeof last, "%s/%u.db", directory,
                   atomic_fetch_add(&files, 1));
    return last;
}

const char *
sqlite_queue_path(void)
{
    return *last ? last : sqlite_queue_new_path();
}

/* Nothing here is about durability: syncs would only take time. */
static wq_err
open_at(const char *path, const wq_config *config, wq_queue **out)
{
    return wq_sqlite_open(path, WQ_SQLITE_OPTIONS(.sync = WQ_SQLITE_SYNC_LAZY),
                          config, out);
}

wq_err
sqlite_queue_open(const wq_config *config, wq_queue **out)
{
    return open_at(sqlite_queue_new_path(), config, out);
}

wq_err
sqlite_queue_open_again(const wq_config *config, wq_queue **out)
{
    return open_at(sqlite_queue_path(), config, out);
}
