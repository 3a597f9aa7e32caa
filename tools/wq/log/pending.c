/* SPDX-License-Identifier: MIT */
/* pending.c: which keys are left at the end? */
#include "log/pending.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <wq/inspect.h>

#include "base/report.h"

/* Must not be replaced by a file: a device, pipe or symbolic link. */
static bool
is_special(const char *file)
{
    struct stat about;

    return lstat(file, &about) == 0 && !S_ISREG(about.st_mode);
}

bool
pending_check(const char *file)
{
    struct stat about;
    char       *copy = strdup(file);
    bool        fits = false;

    if (!copy)
        errno = ENOMEM;
    else if (stat(file, &about) == 0 && S_ISDIR(about.st_mode))
        errno = EISDIR;
    else if (is_special(file))
        fits = access(file, W_OK) == 0;
    else
        fits = access(dirname(copy), W_OK | X_OK) == 0;
    if (!fits)
        report_errno("--pending-file: cannot write '%s'", file);
    free(copy);
    return fits;
}

/* What is left, and where it goes. */
struct pending {
    wq_queue *q;
    wq_key (*line_of)(void *ctx, wq_key key);
    void *ctx;
    FILE *to;
};

static bool
write_key(void *ctx, wq_key key, const wq_key_info *info)
{
    const struct pending *p = ctx;
    const wq_key          line = p->line_of(p->ctx, key);

    (void)info;
    return fwrite(line.data, 1, line.len, p->to) == line.len &&
           fputc('\0', p->to) != EOF;
}

/* Not every file supports fsync(). */
static bool
sync_file(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == EROFS;
}

static bool
write_all(struct pending *p, FILE *to)
{
    if (!to)
        return false;
    p->to = to;
    const bool walked = wq_each(p->q, 0, write_key, p) == WQ_OK;
    const bool written =
        walked && !ferror(to) && fflush(to) == 0 && sync_file(fileno(to));
    return fclose(to) == 0 && written;
}

/* Opening must not wait for a reader of a pipe; writing may block. */
static FILE *
open_in_place(const char *file)
{
    const int fd = open(file, O_WRONLY | O_TRUNC | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return NULL;
    FILE *to = fcntl(fd, F_SETFL, 0) == 0 ? fdopen(fd, "w") : NULL;
    if (!to)
        (void)close(fd);
    return to;
}

static bool
replace(struct pending *p, const char *file)
{
    char *name;

    if (asprintf(&name, "%s.%ld", file, (long)getpid()) < 0)
        return false;
    (void)unlink(name); /* left by a process with our pid that was killed */
    const bool done =
        write_all(p, fopen(name, "wxe")) && rename(name, file) == 0;
    const int err = errno;
    if (!done)
        (void)unlink(name);
    free(name);
    errno = err;
    return done;
}

bool
pending_write(const char *file, wq_queue                     *q,
              wq_key (*line_of)(void *ctx, wq_key key), void *ctx)
{
    struct pending p = {.q = q, .line_of = line_of, .ctx = ctx};
    const bool     done = is_special(file) ? write_all(&p, open_in_place(file))
                                           : replace(&p, file);

    if (!done)
        report_errno("--pending-file: cannot write '%s'", file);
    return done;
}
