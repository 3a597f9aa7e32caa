/* SPDX-License-Identifier: MIT */
/* socket.h: how is the socket of --listen opened and closed? */
#ifndef WQ_TOOL_SOCKET_H
#define WQ_TOOL_SOCKET_H

#include <stdbool.h>
#include <sys/stat.h>

#include "options/address.h"

struct listen_socket {
    int  fd;       /* listening, non-blocking, close-on-exec; owned. -1: none */
    bool is_local; /* a socket in the file system */
    bool chosen;   /* the port was 0: the system chose one */
    char url[160]; /* for messages: http://127.0.0.1:9109/ or unix:PATH */

    struct sockaddr_un path;  /* is_local: the file */
    dev_t              dev;   /* ... and its identity: another program may */
    ino_t              inode; /* have replaced it since */
};

/* Open it. False: `why` says what is wrong. */
bool socket_open(struct listen_socket *s, const char *address, char *why,
                 size_t why_len);

/* Close it, and remove the file that was made for it. */
void socket_close(struct listen_socket *s);

#endif
