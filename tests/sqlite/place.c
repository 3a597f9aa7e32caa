/* SPDX-License-Identifier: MIT */
/* place.c: files of a test; see place.h. */
#include "sqlite/place.h"

#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place
place_make(void)
{
    const char  *tmp = getenv("TMPDIR");
    struct place at;

    (void)snprintf(at.dir, sizeof at.dir, "%s/wq-sqlite-XXXXXX",
                   tmp && *tmp ? tmp : "/tmp");
    MUST(mkdtemp(at.dir));
    (void)snprintf(at.db, sizeof at.db, "%s/queue.db", at.dir);
    return at;
}

struct place
place_make_below(const struct place *parent, const char *name)
{
    struct place at;

    (void)snprintf(at.db, sizeof at.db, "%s/%s", parent->dir, name);
    MUST(strlen(at.db) < sizeof at.dir);
    (void)snprintf(at.dir, sizeof at.dir, "%.*s", (int)sizeof at.dir - 1,
                   at.db);
    MUST(mkdir(at.dir, 0700) == 0);
    (void)snprintf(at.db, sizeof at.db, "%s/queue.db", at.dir);
    return at;
}

static void
remove_tree(const char *path)
{
    DIR *dir = opendir(path);

    for (struct dirent *e; dir && (e = readdir(dir));) {
        char name[PLACE_PATH + 256];

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        (void)snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (unlink(name) != 0)
            remove_tree(name);
    }
    if (dir)
        (void)closedir(dir);
    (void)rmdir(path);
}

void
place_remove(const struct place *at)
{
    remove_tree(at->dir);
}

void
place_clear(const struct place *at)
{
    remove_tree(at->dir);
    MUST(mkdir(at->dir, 0700) == 0);
}

void
place_remove_file(const char *path)
{
    if (unlink(path) != 0)
        remove_tree(path);
}

bool
place_has(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0;
}

static void
copy_file(const char *from, const char *to)
{
    FILE  *in = fopen(from, "rb");
    char   bytes[65536];
    size_t n;

    if (!in)
        return;
    FILE *out = fopen(to, "wb");
    MUST(out);
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
        MUST(fwrite(bytes, 1, n, out) == n);
    MUST(fclose(out) == 0);
    (void)fclose(in);
}

void
place_copy(const struct place *from, const struct place *to)
{
    static const char *const parts[] = {"", "-wal", "-journal"};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char a[PLACE_PATH + 16], b[PLACE_PATH + 16];

        (void)snprintf(a, sizeof a, "%s%s", from->db, parts[i]);
        (void)snprintf(b, sizeof b, "%s%s", to->db, parts[i]);
        copy_file(a, b);
    }
}

/* FNV-1a */
uint64_t
place_checksum(const char *path)
{
    FILE    *f = fopen(path, "rb");
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    int      c;

    if (!f)
        return 0;
    while ((c = getc(f)) != EOF)
        sum = (sum ^ (uint64_t)c) * UINT64_C(0x100000001b3);
    (void)fclose(f);
    return sum;
}

void
place_write(const char *path, const void *bytes, unsigned long n)
{
    FILE *f = fopen(path, "wb");

    MUST(f);
    MUST(fwrite(bytes, 1, n, f) == n);
    MUST(fclose(f) == 0);
}

static int
first_cell(void *out, int n, char **cells, char **names)
{
    char *text = out;

    (void)names;
    if (n > 0 && !*text)
        (void)snprintf(text, 256, "%s", cells[0] ? cells[0] : "");
    return 0;
}

const char *
place_sql(const char *db, const char *sql)
{
    static char text[256];
    sqlite3    *c = NULL;

    text[0] = '\0';
    int rc = sqlite3_open(db, &c);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(c, 10000);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(c, sql, first_cell, text, NULL);
    if (rc != SQLITE_OK)
        (void)snprintf(text, sizeof text, "error: %s", sqlite3_errmsg(c));
    (void)sqlite3_close(c);
    return text;
}

const char *
place_integrity(const char *db)
{
    return place_sql(db, "PRAGMA integrity_check");
}
