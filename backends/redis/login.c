/* SPDX-License-Identifier: MIT */
/* login.c: which password is used; see login.h. */
#include "login.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

static wq_err
copy_if(const char *text, char **out)
{
    *out = NULL;
    return text ? copy(text, out) : WQ_OK;
}

wq_err
wq__login_copy(struct wq__login *to, const struct wq__login *from)
{
    wq__login_fini(to);
    *to = (struct wq__login){.from = from->from, .hint = from->hint};
    wq_err err = copy_if(from->user, &to->user);
    if (!err)
        err = copy_if(from->password, &to->password);
    return err ? err : copy_if(from->file, &to->file);
}

/* The first line of what is open at `fd`. Read without a buffer of stdio, which would
 * keep it. */
static wq_err
read_line(int fd, const char *option, const char *path, char **password)
{
    char          line[PASSWORD_MAX_BYTES + 2];
    const ssize_t len = read(fd, line, sizeof line - 1);
    wq_err        err = WQ_OK;

    if (len < 0)
        return wq_fail(WQ_EINVAL, "redis: cannot read %s '%s': %s", option,
                       path, strerror(errno));
    line[len] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    if (!*line)
        err = wq_fail(WQ_EINVAL, "redis: %s '%s' is empty", option, path);
    else if (strlen(line) > PASSWORD_MAX_BYTES)
        err =
            wq_fail(WQ_EINVAL,
                    "redis: the first line of %s '%s' is longer than %d bytes",
                    option, path, PASSWORD_MAX_BYTES);
    else
        err = copy(line, password);
    explicit_bzero(line, sizeof line);
    return err;
}

/* A program may go to another directory later. */
static wq_err
keep_path(struct wq__login *l, const char *path)
{
    char      *here = *path == '/' ? NULL : getcwd(NULL, 0);
    const int  len = here ? snprintf(NULL, 0, "%s/%s", here, path) : 0;
    const bool fits = !here || (l->file = malloc((size_t)len + 1)) != NULL;

    if (here && fits)
        (void)snprintf(l->file, (size_t)len + 1, "%s/%s", here, path);
    free(here);
    if (!fits)
        return wq_fail(WQ_ENOMEM, "redis: out of memory");
    return l->file ? WQ_OK : copy(path, &l->file);
}

wq_err
wq__login_use_file(struct wq__login *l, const char *path, const char *option)
{
    wq_err    err = keep_path(l, path);
    const int fd = err ? -1 : open(path, O_RDONLY | O_CLOEXEC);

    l->from = option;
    if (err)
        return err;
    if (fd < 0)
        return wq_fail(WQ_EINVAL, "redis: cannot read %s '%s': %s", option,
                       path, strerror(errno));
    err = read_line(fd, option, path, &l->password);
    (void)close(fd);
    return err;
}

/* NULL: it cannot be read, or is no file. */
static char *
read_again(const struct wq__login *l)
{
    const struct wq__sentence said = wq__fail_save();
    char                     *password = NULL;
    struct stat               is;
    const int fd = open(l->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return NULL;
    if (fstat(fd, &is) == 0 && S_ISREG(is.st_mode) &&
        read_line(fd, l->from, l->file, &password) != WQ_OK)
        wq__fail_restore(&said);
    (void)close(fd);
    return password;
}

wq_err
wq__login_read(const struct wq__login *l, char **password, const char **from)
{
    *from = l->from;
    *password = l->file ? read_again(l) : NULL;
    if (*password || !l->password)
        return WQ_OK;
    if (l->file)
        *from = "the password file as it was at first: it cannot be read now";
    return copy(l->password, password);
}
