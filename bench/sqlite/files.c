/* SPDX-License-Identifier: MIT */
/* files.c: where are the databases? */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "measure.h"

enum { PATH_BYTES = 512 };

static char directory[PATH_BYTES / 2];
/* Children of fork() leave the directory alone. */
static pid_t owner;

/* ---- deleting -------------------------------------------------------------- */

static void
delete_directory(const char *path)
{
    char           name[PATH_BYTES * 2];
    DIR           *dir = opendir(path);
    struct dirent *entry;

    if (!dir)
        return;
    while ((entry = readdir(dir)) != NULL) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (unlink(name) != 0)
            delete_directory(name);
    }
    (void)closedir(dir);
    (void)rmdir(path);
}

void
files_delete_side(const char *path)
{
    char name[PATH_BYTES];

    (void)snprintf(name, sizeof name, "%s-wq", path);
    delete_directory(name);
}

void
files_delete(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char                     name[PATH_BYTES];

    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
    files_delete_side(path);
}

static void
delete_all(void)
{
    if (getpid() == owner)
        delete_directory(directory);
}

/* ---- making ---------------------------------------------------------------- */

void
files_begin(const char *parent)
{
    (void)snprintf(directory, sizeof directory, "%s/wq-bench-XXXXXX",
                   parent ? parent : "/var/tmp");
    must(mkdtemp(directory) != NULL, "making a directory for the databases");
    owner = getpid();
    must(atexit(delete_all) == 0, "atexit");
}

const char *
files_new(void)
{
    static char   names[4][PATH_BYTES];
    static size_t n;
    char         *name = names[n % 4];

    (void)snprintf(name, PATH_BYTES, "%s/%zu.db", directory, n++);
    return name;
}

wq_queue *
files_open(const char *path, wq_sqlite_sync sync)
{
    wq_queue *q = NULL;

    must_ok(wq_sqlite_open(path, WQ_SQLITE_OPTIONS(.sync = sync), NULL, &q),
            "wq_sqlite_open");
    return q;
}

const char *
sync_name(wq_sqlite_sync sync)
{
    return sync == WQ_SQLITE_SYNC_LAZY  ? "lazy"
           : sync == WQ_SQLITE_SYNC_ALL ? "all"
                                        : "adds";
}

const char *
bench_program(void)
{
    static char   path[PATH_BYTES];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    must(n > 0, "/proc/self/exe");
    return path;
}
