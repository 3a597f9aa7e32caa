/* SPDX-License-Identifier: MIT */
/* redis_server.h: how do tests start a Redis server of their own?
 *
 * It listens on a unix socket in a directory of its own under $TMPDIR, or /tmp,
 * has no port, and is killed when the thread that started it, or the process,
 * ends, however it ends. Functions that fail end the process with a message:
 * they are for children of a test, too.
 *
 * WQ_REDIS_SERVER in the environment names another program than redis-server,
 * for example a valkey-server.
 */
#ifndef WQ_TEST_REDIS_SERVER_H
#define WQ_TEST_REDIS_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

struct redis_server {
    char  dir[128];
    char  socket[160];
    pid_t pid; /* 0: it does not run */
};

/* Is redis-server installed, or another one named? */
bool redis_server_is_installed(void);

/* Make a directory, and start a server in it with further arguments, up to a
 * NULL; `args` may be NULL; the first may be a configuration file. Ready to be
 * used when this returns. */
void redis_server_start(struct redis_server *s, const char *const *args);

/* Start it again, in the same directory. */
void redis_server_restart(struct redis_server *s, const char *const *args);

/* The two halves of it: it may still load its data after the first. False: it
 * has ended. */
void redis_server_launch(struct redis_server *s, const char *const *args);
bool redis_server_gets_ready(struct redis_server *s);

/* kill -9. */
void redis_server_kill(struct redis_server *s);

/* Kill it, and remove the directory. */
void redis_server_stop(struct redis_server *s);

/* Send a command of words, separated by spaces, over a connection of its own;
 * its reply as text, in a static buffer: "OK", a number, a string, "(nil)", the
 * elements of an array separated by spaces, or "-" and an error. */
const char *redis_server_say(const struct redis_server *s, const char *words);

/* A port of the loopback address that was free a moment ago. */
unsigned redis_server_free_port(void);

/* Say `words` until the reply has `wanted` in it; 30 s at most. */
void redis_server_await(const struct redis_server *s, const char *words,
                        const char *wanted);

/* Start a server that also has a port of the loopback address, and further
 * arguments as above. */
void redis_server_start_tcp(struct redis_server *s, char port[16],
                            const char *const *args);

/* Make it a replica of `primary`, at that port: it has all data then. */
void redis_server_follow(const struct redis_server *s,
                         const struct redis_server *primary, const char *port);

/* The server of this process: started at the first call, stopped at its exit. */
const struct redis_server *redis_server_of_process(void);

#endif
