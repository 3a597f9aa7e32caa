/* SPDX-License-Identifier: MIT */
/* login.c: which password is used; see login.h. */
#include "login.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error/error.h"

enum { PASSWORD_MAX_BYTES = 4096 };

void
wq__wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void
wq__login_fini(struct wq__login *l)
{
    free(l->user);
    wq__wipe(l->password);
    free(l->file);
}

static wq_err
copy(const char *text, char **out)
{
    *out = strdup(text);
    return *out ? WQ_OK : wq_fail(WQ_ENOMEM, "redis: out of memory");
}

/* The first line of the file. Read without a buffer of stdio, which would keep
 * it. */
static wq_err
read_file(const char *path, char **password)
{
    char      line[PASSWORD_MAX_BYTES + 2];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t   len = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    wq_err    err = WQ_OK;

    if (len < 0)
        err = wq_fail(WQ_EINVAL, "redis: cannot read password_file '%s': %s",
                      path, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    if (err)
        return err;
    line[len] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    if (!*line)
        err = wq_fail(WQ_EINVAL, "redis: password_file '%s' is empty", path);
    else if (strlen(line) > PASSWORD_MAX_BYTES)
        err = wq_fail(WQ_EINVAL,
                      "redis: the first line of password_file '%s' is longer "
                      "than %d bytes",
                      path, PASSWORD_MAX_BYTES);
    else
        err = copy(line, password);
    explicit_bzero(line, sizeof line);
    return err;
}

wq_err
wq__login_read(const struct wq__login *l, char **password)
{
    *password = NULL;
    if (l->file)
        return read_file(l->file, password);
    return l->password ? copy(l->password, password) : WQ_OK;
}
