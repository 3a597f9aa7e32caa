/* SPDX-License-Identifier: MIT */
/* results.c: where in --results=DIR is the output of a key? */
#include "results.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.h"
#include "sha256.h"
#include "tell.h"

#define NAME_MOST 255 /* what Linux's file systems take */
#define CUT 180       /* leaves room for \+ and the digits, and for eyes */

struct results {
    const char *dir;  /* as it was given */
    int         fd;   /* DIR/1 */
    struct text name; /* of the key at hand */
};

/* ---------------------------------------------------------------- names -- */

/* How the byte is written in a name. */
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

/* The first bytes of a character must not be all that is left of it. */
static size_t
whole_characters(const char *name, size_t len)
{
    size_t end = len;

    while (end > 0 && len - end < 4 &&
           ((unsigned char)name[end] & 0xc0) == 0x80)
        end--;
    return ((unsigned char)name[end] & 0xc0) == 0x80 ? len : end;
}

/* True: it had to be cut. */
static bool
make_name(struct text *name, wq_key key)
{
    const unsigned char *s = key.data;
    char                 part[5];
    char                 sum[65];
    size_t               cut = 0; /* where an escape ends, at most CUT */

    text_clear(name);
    if (key.len == 0 ||
        (s[0] == '.' && (key.len == 1 || (key.len == 2 && s[1] == '.'))))
        text_print(name, "\\%s", key.len ? "" : "0");
    for (size_t i = 0; i < key.len && name->len <= NAME_MOST; i++) {
        text_add(name, part, escape(s[i], part));
        if (name->len <= CUT)
            cut = name->len;
    }
    if (name->len <= NAME_MOST || name->failed)
        return false;

    name->len = whole_characters(name->data, cut);
    sha256_hex(key.data, key.len, sum);
    text_print(name, "\\+%s", sum);
    return true;
}

/* ---------------------------------------------------------------- files -- */

/* Makes all directories of the path that are not there. */
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
results_create(const char *dir, struct results **out)
{
    struct results *results = calloc(1, sizeof *results);
    char           *path = NULL;

    if (!results || asprintf(&path, "%s/1", dir) < 0) {
        tell("out of memory");
        free(results);
        return false;
    }
    results->dir = dir;
    results->fd = -1;
    if (make_path(path))
        results->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (results->fd < 0) {
        tell_errno("--results: cannot make or open directory '%s'", path);
        free(path);
        free(results);
        return false;
    }
    free(path);
    *out = results;
    return true;
}

void
results_destroy(struct results *results)
{
    if (!results)
        return;
    (void)close(results->fd);
    text_fini(&results->name);
    free(results);
}

/* The directory of the key; -1: errno says why. */
static int
open_directory(const struct results *results)
{
    const char *name = results->name.data;
    const int   how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

    if (mkdirat(results->fd, name, 0777) != 0 && errno != EEXIST)
        return -1;
    return openat(results->fd, name, how);
}

/* A new file of that name in place of an old one. */
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
results_open(struct results *results, const struct run *run, int fds[2])
{
    errno = ENOMEM;
    const bool cut = make_name(&results->name, run->key);
    const int  dir = results->name.failed ? -1 : open_directory(results);
    const bool opened =
        dir >= 0 && write_facts(dir, run, cut) && open_files(dir, fds);
    if (!opened)
        tell_errno("--results: cannot write below '%s' for key '%s'",
                   results->dir, tell_key(run->key.data, run->key.len));
    if (dir >= 0)
        (void)close(dir);
    return opened;
}
