/* SPDX-License-Identifier: MIT */
/* login.h: who logs in to a server, and with which password? */
#ifndef WQ_REDIS_LOGIN_H
#define WQ_REDIS_LOGIN_H

#include <wq/wq.h>

struct wq__login {
    char       *user;     /* owned; NULL: the server's default user */
    char       *password; /* owned; NULL: none, or that of the file */
    char       *file; /* owned; its first line is the password; NULL: no file */
    const char *from; /* for messages: where the password is from; static */
};

/* The password now, to be freed by wq__wipe(): the first line of the file if there
 * is one, so a new password needs no new handle. NULL: there is none. WQ_EINVAL: the
 * file cannot be used. */
wq_err wq__login_read(const struct wq__login *l, char **password);

void wq__login_fini(struct wq__login *l);

/* Free a text that is, or contains, a password: it does not stay in memory. */
void wq__wipe(char *text);

#endif
