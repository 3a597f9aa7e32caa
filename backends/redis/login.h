/* SPDX-License-Identifier: MIT */
/* login.h: who logs in to a server, and with which password? */
#ifndef WQ_REDIS_LOGIN_H
#define WQ_REDIS_LOGIN_H

#include <wq/wq.h>

struct wq__login {
    char       *user;     /* owned; NULL: the server's default user */
    char       *password; /* owned; NULL: none. That of the file, at first */
    char       *file; /* owned, absolute; its first line is the password now;
                             NULL: no file */
    const char *from; /* for messages: where the password is from; static */
    const char *hint; /* ... and how to give one; static */
};

/* Take the password from a file, when a queue is opened; it may be a pipe. `option`
 * names it in messages. WQ_EINVAL: it cannot be used. */
wq_err wq__login_use_file(struct wq__login *l, const char *path,
                          const char *option);

/* Make *to, which was filled in by a URL, the same as *from. */
wq_err wq__login_copy(struct wq__login *to, const struct wq__login *from);

/* The password now, to be freed by wq__wipe(), and where it is from: the first line
 * of the file if there is one, so a new password needs no new handle. If it cannot be
 * read any more, what was in it at first. Never waits. NULL: there is none. */
wq_err wq__login_read(const struct wq__login *l, char **password,
                      const char **from);

void wq__login_fini(struct wq__login *l);

/* Free a text that is, or contains, a password: it does not stay in memory. */
void wq__wipe(char *text);

#endif
