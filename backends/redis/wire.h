/* SPDX-License-Identifier: MIT */
/* wire.h: how do commands reach the server, and its replies come back?
 *
 * A wire is one connection: TCP, a unix socket, or TLS over TCP. It connects
 * when it is first used, and again after a failure: at once, then after 10 ms,
 * 20 ms, ... 1 s, with jitter, so that a thousand clients do not come back in
 * the same moment; calls in between fail without a system call. Every call ends
 * by a deadline. The parser of replies is hiredis'.
 *
 * One thread at a time uses a wire.
 */
#ifndef WQ_REDIS_WIRE_H
#define WQ_REDIS_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include <wq/wq.h>

#include "error/error.h"
#include "looks.h"
#include "route.h"
#include "shared/engine.h"
#include "shared/yields.h"

/* Where the server is, and how to log in. All strings are owned; NULL: none. */
struct wq__target {
    struct wq__route route; /* TCP */
    char            *path;  /* unix socket; then no address */
    struct wq__login login;
    char            *ca_file, *cert_file, *key_file;
    int              db;
    bool             tls;
    int64_t          timeout_ns;   /* of connecting, and of each exchange */
    char             name[160];    /* for messages: without user and password */
    char  client[WQ_HOLDER_BYTES]; /* the name of this process; "": none */
    void *tls_ctx;                 /* SSL_CTX; made when it is needed */
    atomic_bool      was_reached;  /* a connection was made once */
    _Atomic uint64_t reconnects;   /* connections that came after a lost one; of
                                    all wires */
};

struct wq__arg {
    const void *data;
    size_t      len;
};

/* After a command, WAIT on the same connection: see replicas.c. */
struct wq__confirm {
    unsigned    replicas;   /* how many must have what was written; 0: none */
    int64_t     timeout_ns; /* how long the server waits for them */
    const char *touched;    /* a hash of the server to write to */
    bool        must_touch; /* else a refused write does not matter */
    /* What the server has answered. */
    unsigned acks;
    char     problem[120]; /* "": none */
};

struct wq__lookup; /* resolve.h */

/* A command that was sent ahead of its wq__wire_call(). */
struct wq__sent {
    int64_t     sent_ns, deadline_ns; /* as those of the wire */
    redisReply *reply; /* owned; NULL: it was not received, or an error */
    wq_err      err;   /* of sending, or of receiving */
};

enum { WQ__WIRE_AHEAD = WQ__FLIGHTS }; /* so many commands, at most */

struct wq__wire {
    struct wq__target *target; /* of the engine */
    int64_t timeout_ns; /* of connecting, and of each exchange; the target's, or
                           less */
    int     fd;         /* -1: not connected */
    void   *ssl;        /* SSL */
    redisReader        *reader;
    char               *out; /* commands that were not sent */
    size_t              out_len, out_cap;
    bool                touched;   /* a reply, or a part of it, is missing */
    bool                no_memory; /* a command could not be built */
    unsigned            failures;  /* in a row, of connecting */
    int64_t             retry_ns;  /* do not connect before */
    uint64_t            random;    /* of jitter */
    struct wq__looks    looks;     /* for replies */
    struct wq__yields  *yields;    /* may it yield meanwhile? NULL: never */
    uint64_t            connects;  /* how often it has connected */
    struct wq__address  at;     /* where it connects to; none: target->path */
    unsigned            moves;  /* of the route, when that was chosen */
    enum wq__route_kind checks; /* the kind of route, when it logged in */
    /* Of wq__wire_call(), if not NULL: what follows its command. Not owned. */
    struct wq__confirm *confirm;
    /* If it is not 0, wq__wire_call() is WQ_EAWAY unless the connection has this
     * number, of `connects`. */
    uint64_t           only;
    struct wq__lookup *lookup; /* of the host's name, if it goes on; owned */
    /* Commands that were sent ahead, the oldest first. */
    struct wq__sent ahead[WQ__WIRE_AHEAD];
    size_t          n_ahead;
    /* The next wq__wire_call() sends nothing: it receives the reply to the oldest
     * of them, or returns what became of the sending. */
    bool resumes;
    /* The last reply had come before its call resumed, or never will: this
     * process may have learnt more since its command was sent. */
    bool    stale;
    int64_t deadline_ns; /* of the last reply */
    int64_t sent_ns;     /* when its command was sent, on CLOCK_BOOTTIME */
    char    broken[120]; /* why the connection was given up */
    char    why[WQ__SENTENCE_BYTES]; /* the last attempt to connect failed; "":
                                        it did not */
    bool    was_lost; /* a connection, since the last one was made */
    bool    answers;  /* the server has said something on this connection */
    bool    serves;   /* ... and has run a script */
    const char *password_from; /* what logged in on this connection; static */
    const char
        *tls_why; /* what OpenSSL says of the last error; or NULL; static */
};

void wq__wire_init(struct wq__wire *w, struct wq__target *target);

/* Close; `forked`: only this process's copy, without a word to the server. */
void wq__wire_close(struct wq__wire *w, bool forked);
void wq__wire_fini(struct wq__wire *w, bool forked);

/* Be connected and logged in. WQ_EAWAY: it is not. WQ_EINVAL: the server refuses
 * the user, the password or the database. */
wq_err wq__wire_open(struct wq__wire *w);

/* Do not connect again for a while. */
void wq__wire_back_off(struct wq__wire *w);

/* Append a command to what will be sent. */
void wq__wire_add(struct wq__wire *w, const struct wq__arg *args, size_t n);
void wq__wire_add_words(struct wq__wire *w, const char *const *words, size_t n);

/* Send what was appended. WQ_EAWAY: nothing has left; WQ_EIO: some of it. The
 * wire is closed after an error. */
wq_err wq__wire_send(struct wq__wire *w);

/* Read one reply, which may be an error reply; free it by freeReplyObject().
 * WQ_EIO: none came by the deadline (of wq__time_now()); the wire is closed. */
wq_err wq__wire_receive(struct wq__wire *w, int64_t deadline_ns,
                        redisReply **out);

/* A reply that is there already, or NULL. An error closes the wire. */
wq_err wq__wire_poll(struct wq__wire *w, redisReply **out);

/* Open, send one command, receive its reply; then what w->confirm asks for. If
 * commands were sent ahead, their replies are received first, and kept. */
wq_err wq__wire_call(struct wq__wire *w, const struct wq__arg *args, size_t n,
                     redisReply **out);

/* The first half of a wq__wire_call() that resumes: its command is sent. So several
 * commands are under way at the same time, to one server or to several. An error
 * is that of the other half. */
wq_err wq__wire_send_ahead(struct wq__wire *w, const struct wq__arg *args,
                           size_t n);

/* Take back the last wq__wire_send_ahead(), by which nothing was sent. */
void wq__wire_unsend(struct wq__wire *w);

/* Receive and keep the replies to commands that were sent ahead. */
void wq__wire_keep_replies(struct wq__wire *w);

/* The next wq__wire_call() resumes, if a command was sent ahead. */
void wq__wire_resume(struct wq__wire *w);

/* Is it connected, and can a command be sent without a new connection? */
bool wq__wire_is_ready(struct wq__wire *w);

/* Is this an error reply that begins with `word`? NULL: any error. */
bool wq__reply_is_error(const redisReply *reply, const char *word);

void wq__target_fini(struct wq__target *t);

/* ---- replicas.c ----------------------------------------------------------- */

/* Append to what will be sent: write something, and wait for the replicas. */
void wq__confirm_add(struct wq__wire *w);

/* Receive the replies to that. */
wq_err wq__confirm_receive(struct wq__wire *w, int64_t deadline_ns);

/* ---- tls.c ---------------------------------------------------------------- */

/* Begin TLS on a connected socket, until the deadline. WQ_EAWAY, WQ_EINVAL. */
wq_err wq__tls_begin(struct wq__wire *w, int64_t deadline_ns);

/* As send() and recv(): -1 with errno, EAGAIN if the socket is not ready; *wants:
 * POLLIN or POLLOUT then. */
long wq__tls_write(struct wq__wire *w, const void *data, size_t len,
                   short *wants);
long wq__tls_read(struct wq__wire *w, void *data, size_t len, short *wants);

/* There are bytes: has the server ended the connection by them, or said something
 * that nobody asked for? */
bool wq__tls_is_stale(struct wq__wire *w);
void wq__tls_end(struct wq__wire *w, bool forked);
void wq__tls_free_context(struct wq__target *t);

/* Wait until the socket is ready. False: the deadline has passed. */
bool wq__wire_await(int fd, short events, int64_t deadline_ns);

#endif
