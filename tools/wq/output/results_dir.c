/* SPDX-License-Identifier: MIT */
/* results_dir.c: where in --results=DIR is the output of a key? */
#include "output/results_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/report.h"
#include "output/sha256.h"

#define NAME_MAX_LEN 255 /* of Linux file systems */
#define CUT 180          /* leaves space for \+ and 64 digits */

/* ---------------------------------------------------------------- names -- */

/* Writes the byte as it is in a name; returns the length. */
static size_t
escape(unsigned char byte, char out[5])
{
    switch (byte) {
    case '\\':
        return (size_t)sprintf(out, "\\\\");
    case '/':
        return (size_t)sprintf(out, "\\_");
    default:
        if (byte < 0x20 || byte == 0x7f)
            return (size_t)sprintf(out, "\\x%02x", byte);
        out[0] = (char)byte;
        return 1;
    }
}

/* The longest length up to `len` that does not split a UTF-8 character. */
static size_t
whole_characters(const char *name, size_t len)
{
    size_t end = len;

    while (end > 0 && len - end < 4 &&
           ((unsigned char)name[end] & 0xc0) == 0x80)
        end--;
    return ((unsigned char)name[end] & 0xc0) == 0x80 ? len : end;
}

/* Returns whether the name is truncated. */
static bool
make_name(struct wq__text *name, wq_key key)
{
    const unsigned char *s = key.data;
    char                 part[5];
    char                 sum[65];
    size_t               cut = 0; /* the last end of an escape up to CUT */

    text_clear(name);
    if (key.len == 0 ||
        (s[0] == '.' && (key.len == 1 || (key.len == 2 && s[1] == '.'))))
        text_print(name, "\\%s", key.len ? "" : "0");
    for (size_t i = 0; i < key.len && name->len <= NAME_MAX_LEN; i++) {
        wq__text_add(name, part, escape(s[i], part));
        if (name->len <= CUT)
            cut = name->len;
    }
    if (name->len <= NAME_MAX_LEN || name->err)
        return false;

    name->len = whole_characters(name->data, cut);
    sha256_hex(key.data, key.len, sum);
    text_print(name, "\\+%s", sum);
    return true;
}

/* ---------------------------------------------------------------- files -- */

/* Creates all missing directories of the path. */
static bool
make_path(char *path)
{
    for (char *at = path; (at = strchr(at + 1, '/'));) {
        *at = '\0';
        const bool made = mkdir(path, 0777) == 0 || errno == EEXIST ||
                          errno == EISDIR || errno == EROFS;
        *at = '/';
        if (!made)
            return false;
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

bool
results_dir_create(struct results_dir *results, const char *dir)
{
    char *path = NULL;

    results->dir = dir;
    if (asprintf(&path, "%s/1", dir) >= 0 && make_path(path))
        results->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (results->fd < 0)
        report_errno("--results: cannot create or open directory '%s/1'", dir);
    free(path);
    return results->fd >= 0;
}

void
results_dir_close(struct results_dir *results)
{
    if (results->fd >= 0)
        (void)close(results->fd);
    wq__text_fini(&results->name);
}

/* The directory of the key; -1: errno says why. */
static int
open_directory(const struct results_dir *results, const char *name)
{
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

    if (!name) {
        errno = ENOMEM;
        return -1;
    }
    if (mkdirat(results->fd, name, 0777) != 0 && errno != EEXIST)
        return -1;
    return openat(results->fd, name, how);
}

/* Creates a file, after removing an old one of that name. */
static int
replace(int dir, const char *name)
{
    if (unlinkat(dir, name, 0) != 0 && errno != ENOENT)
        return -1;
    return openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static bool
write_file(int dir, const char *name, const void *data, size_t len)
{
    const int fd = replace(dir, name);

    if (fd < 0)
        return false;
    const ssize_t n = write(fd, data, len);
    if (n >= 0 && (size_t)n != len)
        errno = ENOSPC;
    const int err = errno;
    (void)close(fd);
    errno = err;
    return n >= 0 && (size_t)n == len;
}

static bool
write_facts(int dir, const struct run *run, bool cut)
{
    char      seq[24];
    const int len =
        snprintf(seq, sizeof seq, "%llu", (unsigned long long)run->number);

    return write_file(dir, "seq", seq, (size_t)len) &&
           (!cut || write_file(dir, "key", run->key.data, run->key.len));
}

static bool
open_files(int dir, int fds[2])
{
    if ((fds[0] = replace(dir, "stdout")) < 0)
        return false;
    if ((fds[1] = replace(dir, "stderr")) >= 0)
        return true;
    const int err = errno;
    (void)close(fds[0]);
    errno = err;
    return false;
}

bool
results_dir_open(struct results_dir *results, const struct run *run, int fds[2])
{
    const bool cut = make_name(&results->name, run->key);
    const int  dir = open_directory(results, text_terminate(&results->name));
    const bool opened =
        dir >= 0 && write_facts(dir, run, cut) && open_files(dir, fds);
    if (!opened)
        report_errno("--results: cannot write below '%s' for key '%s'",
                     results->dir, report_key(run->key.data, run->key.len));
    if (dir >= 0)
        (void)close(dir);
    return opened;
}
