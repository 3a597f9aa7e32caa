/* SPDX-License-Identifier: MIT */
/* wire.c: a connection to the server; see wire.h. */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "error/error.h"
#include "limit/draw.h"
#include "port/random.h"
#include "port/relax.h"
#include "port/time.h"
#include "resolve.h"

#define FIRST_WAIT_NS WQ_MS(10)
#define LONGEST_WAIT_NS WQ_SECONDS(1)
enum { READ_BYTES = 16384 };

/* ---- life ----------------------------------------------------------------- */

void
wq__wire_init(struct wq__wire *w, struct wq__target *target)
{
    *w = (struct wq__wire){
        .target = target, .timeout_ns = target->timeout_ns, .fd = -1};
    (void)wq__random(&w->random, sizeof w->random);
}

/* What was sent and is not answered must not arrive later than this: the kernel
 * would go on to send it when a link that is cut comes back, after what the next
 * connection sends. Nothing can be done about what is under way. */
static void
abort_connection(int fd)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

/* Replies that were not received are lost with the connection. */
static void
lose_replies(struct wq__wire *w)
{
    if (!*w->broken)
        (void)snprintf(w->broken, sizeof w->broken, "%s",
                       "the connection was closed before its reply came");
    for (size_t i = 0; i < w->n_ahead; i++)
        if (!w->ahead[i].reply && !w->ahead[i].err)
            w->ahead[i].err = WQ_EIO;
}

void
wq__wire_close(struct wq__wire *w, bool forked)
{
    lose_replies(w);
    if (w->ssl)
        wq__tls_end(w, forked);
    if (w->fd >= 0 && w->touched && !forked)
        abort_connection(w->fd);
    if (w->fd >= 0)
        (void)close(w->fd);
    if (w->reader)
        redisReaderFree(w->reader);
    w->fd = -1;
    w->reader = NULL;
    w->out_len = 0;
    w->touched = w->no_memory = false;
}

void
wq__wire_fini(struct wq__wire *w, bool forked)
{
    if (!w->target)
        return;
    wq__wire_close(w, forked);
    wq__resolve_abandon(&w->lookup);
    for (size_t i = 0; i < w->n_ahead; i++)
        if (w->ahead[i].reply)
            freeReplyObject(w->ahead[i].reply);
    w->n_ahead = 0;
    free(w->out);
    w->out = NULL;
}

void
wq__target_fini(struct wq__target *t)
{
    wq__tls_free_context(t);
    wq__route_fini(&t->route);
    free(t->path);
    wq__login_fini(&t->login);
    free(t->ca_file);
    free(t->cert_file);
    free(t->key_file);
}

bool
wq__reply_is_error(const redisReply *reply, const char *word)
{
    return reply->type == REDIS_REPLY_ERROR &&
           (!word || strncmp(reply->str, word, strlen(word)) == 0);
}

/* ---- the socket ----------------------------------------------------------- */

bool
wq__wire_await(int fd, short events, int64_t deadline_ns)
{
    for (;;) {
        const int64_t left_ns = deadline_ns - wq__time_now();
        struct pollfd p = {.fd = fd, .events = events};

        if (left_ns <= 0)
            return false;
        const int64_t left_ms = (left_ns - 1) / 1000000 + 1;
        const int n = poll(&p, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
    }
}

static wq_err
fail_to_connect(const struct wq__wire *w, int cause)
{
    char at[160];

    wq__address_print(&w->at, at, sizeof at);
    const bool differs = *w->at.host && strcmp(at, w->target->name) != 0;
    return wq_fail(WQ_EAWAY, "redis: cannot connect to %s%s%s: %s",
                   w->target->name, differs ? ", " : "", differs ? at : "",
                   strerror(cause));
}

/* 0, or errno. */
static int
connect_socket(int fd, const struct sockaddr *addr, socklen_t len,
               int64_t deadline_ns)
{
    int       cause = 0;
    socklen_t size = sizeof cause;

    if (connect(fd, addr, len) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return errno;
    if (!wq__wire_await(fd, POLLOUT, deadline_ns))
        return ETIMEDOUT;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &size))
        return errno;
    return cause;
}

static int
open_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static wq_err
connect_unix(struct wq__wire *w, int64_t deadline_ns)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const size_t       len = strlen(w->target->path);

    if (len >= sizeof addr.sun_path)
        return wq_fail(WQ_EINVAL,
                       "redis: the path of the socket has %zu bytes; at most "
                       "%zu are allowed",
                       len, sizeof addr.sun_path - 1);
    memcpy(addr.sun_path, w->target->path, len);
    w->fd = open_socket(AF_UNIX);
    if (w->fd < 0)
        return fail_to_connect(w, errno);
    const int cause = connect_socket(w->fd, (const struct sockaddr *)&addr,
                                     sizeof addr, deadline_ns);
    return cause ? fail_to_connect(w, cause) : WQ_OK;
}

/* Small commands leave at once; a peer that is gone is noticed in a minute. */
static void
set_up_tcp(int fd)
{
    const int on = 1, idle = 30, step = 10, count = 3;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &step, sizeof step);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

static int
count_addresses(const struct addrinfo *list)
{
    int n = 0;

    for (; list; list = list->ai_next)
        n++;
    return n;
}

/* Each address of the host in turn, each with its part of the time: one that does
 * not answer must not use up that of the others. */
static wq_err
connect_tcp(struct wq__wire *w, int64_t deadline_ns)
{
    struct addrinfo *list = NULL;
    int              cause = EHOSTUNREACH;
    const int        code =
        wq__resolve(&w->lookup, w->at.host, w->at.port, deadline_ns, &list);

    if (code)
        return wq_fail(WQ_EAWAY, "redis: cannot find the host of %s: %s",
                       w->target->name, gai_strerror(code));
    for (const struct addrinfo *a = list; a && cause; a = a->ai_next) {
        const int64_t now_ns = wq__time_now();
        const int64_t part_ns = (deadline_ns - now_ns) / count_addresses(a);
        if (w->fd >= 0)
            (void)close(w->fd);
        w->fd = open_socket(a->ai_family);
        cause = w->fd < 0 ? errno
                          : connect_socket(w->fd, a->ai_addr, a->ai_addrlen,
                                           now_ns + part_ns);
    }
    freeaddrinfo(list);
    if (cause)
        return fail_to_connect(w, cause);
    set_up_tcp(w->fd);
    return WQ_OK;
}

/* ---- bytes ---------------------------------------------------------------- */

static long
write_some(struct wq__wire *w, const void *data, size_t len, short *wants)
{
    *wants = POLLOUT;
    return w->ssl ? wq__tls_write(w, data, len, wants)
                  : send(w->fd, data, len, MSG_NOSIGNAL);
}

static long
read_some(struct wq__wire *w, void *data, size_t len, short *wants)
{
    *wants = POLLIN;
    return w->ssl ? wq__tls_read(w, data, len, wants)
                  : recv(w->fd, data, len, 0);
}

static bool
is_temporary(int cause)
{
    return cause == EAGAIN || cause == EINTR;
}

/* Why did the last call fail? */
static const char *
cause(const struct wq__wire *w)
{
    return errno == EPROTO && w->tls_why ? w->tls_why : strerror(errno);
}

/* The connection is of no use any more. `what` may be the reader's, which ends
 * with it. */
static wq_err
give_up(struct wq__wire *w, wq_err err, const char *what)
{
    (void)snprintf(w->broken, sizeof w->broken, "%s", what);
    (void)wq_fail(err, "redis: %s: %s", w->target->name, w->broken);
    w->was_lost = true;
    const struct wq__sentence said = wq__fail_save();
    wq__wire_close(w, false);
    wq__fail_restore(&said);
    return err;
}

static char *
reserve(struct wq__wire *w, size_t len)
{
    if (w->out_cap - w->out_len < len) {
        const size_t cap = (w->out_len + len) * 2;
        char        *out = realloc(w->out, cap);
        if (!out) {
            w->no_memory = true;
            return NULL;
        }
        w->out = out;
        w->out_cap = cap;
    }
    return w->out + w->out_len;
}

/* "$31\r\n" */
static void
append_header(struct wq__wire *w, char kind, size_t n)
{
    enum { LONGEST = 32 };
    char  text[LONGEST];
    char *to = text + LONGEST;

    *--to = '\n';
    *--to = '\r';
    do
        *--to = (char)('0' + n % 10);
    while (n /= 10);
    *--to = kind;
    const size_t len = (size_t)(text + LONGEST - to);
    char        *at = reserve(w, len);
    if (at) {
        memcpy(at, to, len);
        w->out_len += len;
    }
}

void
wq__wire_add(struct wq__wire *w, const struct wq__arg *args, size_t n)
{
    append_header(w, '*', n);
    for (size_t i = 0; i < n; i++) {
        append_header(w, '$', args[i].len);
        char *at = reserve(w, args[i].len + 2);
        if (!at)
            return;
        if (args[i].len)
            memcpy(at, args[i].data, args[i].len);
        at[args[i].len] = '\r';
        at[args[i].len + 1] = '\n';
        w->out_len += args[i].len + 2;
    }
}

void
wq__wire_add_words(struct wq__wire *w, const char *const *words, size_t n)
{
    enum { MOST = 8 };
    struct wq__arg args[MOST];

    for (size_t i = 0; i < n && i < MOST; i++)
        args[i] = (struct wq__arg){words[i], strlen(words[i])};
    wq__wire_add(w, args, n < MOST ? n : MOST);
}

wq_err
wq__wire_send(struct wq__wire *w)
{
    const int64_t deadline_ns = wq__time_now() + w->timeout_ns;
    size_t        sent = 0;
    short         wants;

    if (w->no_memory) {
        w->out_len = 0;
        w->no_memory = false;
        return WQ_ENOMEM;
    }
    while (sent < w->out_len) {
        const long n = write_some(w, w->out + sent, w->out_len - sent, &wants);
        if (n > 0) {
            sent += (size_t)n;
            w->touched = true;
            continue;
        }
        const wq_err err = w->touched ? WQ_EIO : WQ_EAWAY;
        if (!is_temporary(errno))
            return give_up(w, err, cause(w));
        if (!wq__wire_await(w->fd, wants, deadline_ns))
            return give_up(w, err, "the server takes no more commands");
    }
    w->out_len = 0;
    return WQ_OK;
}

/* Read what is there. */
static wq_err
feed(struct wq__wire *w, bool *empty)
{
    char       bytes[READ_BYTES];
    short      wants;
    const long n = read_some(w, bytes, sizeof bytes, &wants);

    *empty = n < 0 && is_temporary(errno);
    if (*empty)
        return WQ_OK;
    if (n <= 0)
        return give_up(w, WQ_EIO,
                       n ? cause(w) : "the server closed the connection");
    return redisReaderFeed(w->reader, bytes, (size_t)n) == REDIS_OK
               ? WQ_OK
               : give_up(w, WQ_EIO, w->reader->errstr);
}

static wq_err
parse(struct wq__wire *w, redisReply **out)
{
    void *reply = NULL;

    if (redisReaderGetReply(w->reader, &reply) != REDIS_OK)
        return give_up(w, WQ_EIO, w->reader->errstr);
    *out = reply;
    return WQ_OK;
}

wq_err
wq__wire_poll(struct wq__wire *w, redisReply **out)
{
    bool   empty = false;
    wq_err err = parse(w, out);

    while (!err && !*out && !empty) {
        err = feed(w, &empty);
        if (!err)
            err = parse(w, out);
    }
    return err;
}

/* Between two looks. */
static void
relax_until(int64_t until_ns, bool yields)
{
    if (yields)
        (void)sched_yield();
    do
        wq__pause();
    while (wq__time_now() < until_ns);
}

/* *out is NULL if no reply came by then. */
static wq_err
look_for_reply(struct wq__wire *w, int64_t begin_ns, int64_t until_ns,
               redisReply **out)
{
    enum { BETWEEN_NS = 1000 };
    const bool yields = w->yields && wq__yields_may(w->yields, begin_ns);
    wq_err     err = WQ_OK;
    int64_t    now_ns = begin_ns;

    while (!err && !*out && now_ns < until_ns) {
        relax_until(now_ns + BETWEEN_NS, yields);
        err = wq__wire_poll(w, out);
        now_ns = wq__time_now();
    }
    if (yields)
        wq__yields_note(w->yields, begin_ns, now_ns, WQ__YIELDS_FREE);
    return err;
}

static wq_err
sleep_for_reply(struct wq__wire *w, int64_t deadline_ns, redisReply **out)
{
    wq_err err = WQ_OK;

    while (!err && !*out) {
        if (!wq__wire_await(w->fd, POLLIN, deadline_ns))
            return give_up(w, WQ_EIO, "no reply in time");
        err = wq__wire_poll(w, out);
    }
    return err;
}

static wq_err
wait_for_reply(struct wq__wire *w, int64_t deadline_ns, redisReply **out)
{
    const bool    looks = wq__looks_first(&w->looks);
    const int64_t begin_ns = wq__time_now();
    const int64_t most_ns = begin_ns + WQ__LOOK_MOST;
    wq_err        err = WQ_OK;

    if (looks)
        err = look_for_reply(
            w, begin_ns, most_ns < deadline_ns ? most_ns : deadline_ns, out);
    if (!err && !*out)
        err = sleep_for_reply(w, deadline_ns, out);
    if (!err)
        wq__looks_note(&w->looks, wq__time_now() - begin_ns);
    return err;
}

wq_err
wq__wire_receive(struct wq__wire *w, int64_t deadline_ns, redisReply **out)
{
    wq_err err = wq__wire_poll(w, out);

    if (!err && !*out)
        err = wait_for_reply(w, deadline_ns, out);
    w->touched = false;
    return err;
}

/* ---- opening -------------------------------------------------------------- */

/* What a server says that cannot serve anybody now: nothing is wrong with the
 * login. NULL: something else. */
static const char *
passing_reason(const redisReply *reply)
{
    static const struct {
        const char *word, *what;
    } known[] = {
        {"LOADING", "is loading its data into memory; try again"},
        {"BUSY", "is running a script of another client; try again"},
        {"MASTERDOWN", "is a replica without a primary"},
        {"ERR max number of clients",
         "takes no more clients: max number of clients reached; raise its "
         "maxclients"},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (wq__reply_is_error(reply, known[i].word))
            return known[i].what;
    return NULL;
}

/* How much of an error may be shown: it may quote the arguments of its command,
 * and so the password. */
static int
shown_of(const char *error)
{
    static const char *const known[] = {"WRONGPASS", "NOPERM", "NOAUTH",
                                        "ERR AUTH"};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(error, known[i], strlen(known[i])) == 0)
            return 100;
    return (int)strcspn(error, "'`\",");
}

static wq_err
refuse_password(const struct wq__wire *w, const redisReply *reply)
{
    if (!w->password_from)
        return wq_fail(WQ_EINVAL, "redis: %s asks for a password: use %s",
                       w->target->name, w->target->login.hint);
    return wq_fail(
        WQ_EINVAL, "redis: %s refuses the user or the password (from %s): %.*s",
        w->target->name, w->password_from, shown_of(reply->str), reply->str);
}

/* A command of logging in, and what its reply means. */
enum step { PASSWORD, DATABASE, NAME };

/* The name of the connection is for people only: a user may lack the right to give
 * it. */
static bool
matters(enum step step, const redisReply *reply)
{
    return step != NAME || !(wq__reply_is_error(reply, "NOPERM") ||
                             wq__reply_is_error(reply, "ERR "));
}

static wq_err
judge_step(const struct wq__wire *w, enum step step, const redisReply *reply)
{
    if (!wq__reply_is_error(reply, NULL))
        return WQ_OK;
    if (passing_reason(reply))
        return wq_fail(WQ_EAWAY, "redis: %s %s", w->target->name,
                       passing_reason(reply));
    if (wq__reply_is_error(reply, "DENIED"))
        return wq_fail(WQ_EINVAL,
                       "redis: %s is in protected mode, and accepts clients of "
                       "its own machine only: give its users a password",
                       w->target->name);
    if (step == PASSWORD || wq__reply_is_error(reply, "NOAUTH"))
        return refuse_password(w, reply);
    if (!matters(step, reply))
        return WQ_OK;
    return wq_fail(WQ_EINVAL, "redis: %s refuses %s: %.100s", w->target->name,
                   step == DATABASE ? "the database" : "this client",
                   reply->str);
}

static wq_err
receive_step(struct wq__wire *w, int64_t deadline_ns, enum step step)
{
    redisReply *reply = NULL;

    if (wq__wire_receive(w, deadline_ns, &reply))
        return WQ_EAWAY;
    w->answers = true;
    const wq_err err = judge_step(w, step, reply);
    freeReplyObject(reply);
    return err;
}

/* The command that logs in is sent, or never will be. A buffer that grew while
 * it was built may have left a copy: so it is large enough from the beginning. */
static void
wipe_sent(struct wq__wire *w)
{
    if (w->out)
        explicit_bzero(w->out, w->out_cap);
}

static void
add_password(struct wq__wire *w, const char *password)
{
    const char *const given = w->target->login.user;
    const char *const user = given && *given ? given : "default";

    (void)reserve(w, 256 + strlen(user) + strlen(password));
    wq__wire_add_words(w, (const char *[]){"AUTH", user, password}, 3);
}

static wq_err
log_in(struct wq__wire *w, int64_t deadline_ns)
{
    const struct wq__target *t = w->target;
    char                     db[16], name[WQ_HOLDER_BYTES + 3], *password;
    wq_err     err = wq__login_read(&t->login, &password, &w->password_from);
    const bool has_password = !err && password;

    if (err)
        return err;
    (void)snprintf(db, sizeof db, "%d", t->db);
    if (has_password)
        add_password(w, password);
    wq__wipe(password);
    if (t->db)
        wq__wire_add_words(w, (const char *[]){"SELECT", db}, 2);
    (void)snprintf(name, sizeof name, "wq%s%s", *t->client ? ":" : "",
                   t->client);
    wq__wire_add_words(w, (const char *[]){"CLIENT", "SETNAME", name}, 3);
    wq__route_add_checks(w);
    err = wq__wire_send(w);
    wipe_sent(w);
    if (err)
        return err == WQ_EIO ? WQ_EAWAY : err;
    if (has_password)
        err = receive_step(w, deadline_ns, PASSWORD);
    if (!err && t->db)
        err = receive_step(w, deadline_ns, DATABASE);
    if (!err)
        err = receive_step(w, deadline_ns, NAME);
    if (!err)
        err = wq__route_receive_checks(w, deadline_ns);
    return err;
}

/* A server that was never reached, and breaks the connection off instead of
 * answering: what may be wrong? */
static wq_err
guess_why(const struct wq__wire *w, wq_err err)
{
    const struct wq__target *t = w->target;
    char                     why[WQ__SENTENCE_BYTES];

    if (err != WQ_EAWAY || w->answers || t->was_reached || !*w->broken)
        return err;
    (void)snprintf(why, sizeof why, "%s", wq_last_error());
    return wq_fail(err, "%s (%s)", why,
                   !t->tls ? "if it is a server with TLS, use rediss://"
                   : t->cert_file
                       ? "does it trust the certificate in cert_file?"
                       : "if it asks for a certificate, use "
                         "cert_file and key_file");
}

static wq_err
connect_wire(struct wq__wire *w, int64_t deadline_ns)
{
    wq_err err = wq__route_choose(w, deadline_ns);

    w->answers = w->serves = false;
    w->looks = (struct wq__looks){.waits = 0}; /* it may be another server */
    w->broken[0] = '\0';
    if (!err)
        err = *w->at.host ? connect_tcp(w, deadline_ns)
                          : connect_unix(w, deadline_ns);
    if (!err && w->target->tls)
        err = wq__tls_begin(w, deadline_ns);
    if (!err) {
        w->reader = redisReaderCreate();
        err = w->reader ? guess_why(w, log_in(w, deadline_ns)) : WQ_ENOMEM;
    }
    return err;
}

/* Has the server closed the connection, or said something that nobody asked
 * for? Then a command would be lost: connect anew first. */
static bool
is_stale(struct wq__wire *w)
{
    char byte;

    if (w->touched)
        return false;
    const long n = recv(w->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (w->ssl && n > 0) /* a ticket, a new key, or the end */
        return wq__tls_is_stale(w);
    return n >= 0 || !is_temporary(errno);
}

bool
wq__wire_is_ready(struct wq__wire *w)
{
    return w->fd >= 0 && (!w->only || w->connects == w->only) && !is_stale(w) &&
           !wq__route_is_elsewhere(w);
}

/* How long after a failure to wait: between half and all of a time that
 * doubles. The first attempt after a connection was lost is at once. */
static int64_t
wait_of(struct wq__wire *w)
{
    const unsigned shift = w->failures - 1 < 7 ? w->failures - 1 : 7;
    int64_t        wait_ns = FIRST_WAIT_NS << shift;

    if (wait_ns > LONGEST_WAIT_NS)
        wait_ns = LONGEST_WAIT_NS;
    return wait_ns / 2 +
           (int64_t)(wq__draw(&w->random) % (uint64_t)(wait_ns / 2));
}

void
wq__wire_back_off(struct wq__wire *w)
{
    w->failures++;
    w->retry_ns = wq__time_now() + wait_of(w);
}

/* Try the addresses that the route has, each with its part of the time. */
static wq_err
connect_somewhere(struct wq__wire *w)
{
    const int64_t deadline_ns = wq__time_now() + w->timeout_ns;
    wq_err        err = WQ_EAWAY;

    for (size_t left = wq__route_tries(&w->target->route);
         left && err == WQ_EAWAY; left--) {
        const int64_t now = wq__time_now();
        err = connect_wire(w, now + (deadline_ns - now) / (int64_t)left);
        if (!err)
            break;
        const struct wq__sentence said = wq__fail_save();
        wq__wire_close(w, false);
        wq__route_failed(w);
        wq__fail_restore(&said);
    }
    return err;
}

wq_err
wq__wire_open(struct wq__wire *w)
{
    if (w->fd >= 0 && is_stale(w)) {
        w->was_lost = true;
        wq__wire_close(w, false);
    }
    if (w->fd >= 0 && wq__route_is_elsewhere(w))
        wq__wire_close(w, false);
    if (w->fd >= 0)
        return WQ_OK;
    if (w->failures && wq__time_now() < w->retry_ns) {
        if (!*w->why)
            return wq_fail(WQ_EAWAY, "redis: %s cannot be reached",
                           w->target->name);
        return wq_fail(WQ_EAWAY, "%s", w->why);
    }
    const wq_err err = connect_somewhere(w);
    (void)snprintf(w->why, sizeof w->why, "%s", err ? wq_last_error() : "");
    if (!err) {
        w->failures = 0;
        w->target->was_reached = true;
        if (w->connects++ && w->was_lost)
            atomic_fetch_add(&w->target->reconnects, 1);
        w->was_lost = false;
        return WQ_OK;
    }
    wq__wire_back_off(w);
    /* A login that was right may be so again: the handle goes on. */
    return err == WQ_EINVAL && w->target->was_reached ? WQ_EAWAY : err;
}
