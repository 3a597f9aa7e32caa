/* SPDX-License-Identifier: MIT */
/* redis.h: a queue in a Redis or Valkey server, for the machines of a network.
 *
 * A shared queue (wq.h, "Shared queues") that is kept in a server. Any number of
 * processes of any number of machines may use it at the same time. A process
 * that dies, hangs or cannot reach the server loses its keys after a lease, and
 * others get them.
 *
 *     wq_queue *q;
 *     wq_err err = wq_open("redis://queue.example.org/0?queue=pods", NULL, &q);
 *     if (err)
 *         die("%s", wq_last_error());
 *
 * wq_open() finds this library by its name; a program that is linked statically
 * calls wq_register_scheme("redis", wq_open_redis) first. The URL is one of
 *
 *     redis://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]...][/DB]
 *         [?OPTION=VALUE[&...]]         several hosts: nodes of one cluster
 *     rediss://...                      the same with TLS
 *     redis+unix:///PATH[?OPTION=VALUE[&...]]
 *     redis+sentinel://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]...]/NAME[/DB]
 *         [?OPTION=VALUE[&...]]         the primary NAME, which these sentinels
 *                                       know; rediss+sentinel:// with TLS
 *
 *   HOST        a name or an address; [::1] for IPv6. PORT: 6379, of sentinels
 *               26379. DB: 0
 *   queue=NAME  letters, digits, '.', '_' and '-', at most 64; "default"
 *   lease=DURATION, timeout=DURATION, max_expiries=N, replicas=N,
 *   replicas_timeout=DURATION, partitions=N, user=NAME, password_file=PATH, ca_file=PATH,
 *   cert_file=PATH, key_file=PATH, db=N, client=NAME, sentinel_user=NAME,
 *   sentinel_password_file=PATH
 *               see wq_redis_options. DURATION: 200ms, 5s, 1h30m, or a number
 *               of seconds: 1.5. Units: ns, us, ms, s, m, h, d
 *
 * %XX stands for a byte in all parts; in values ',', ';', '?', '#', '=' and
 * spaces must be written so. Prefer password_file, or the environment variable
 * WQ_REDIS_PASSWORD, which is read if the URL and the options have none: other
 * users of the machine can read the arguments of a program. No message of the
 * library shows a password.
 *
 * The server. Redis 7.0 or Valkey 7.2, or later. It must not evict keys
 * (maxmemory-policy noeviction, which is the default, or a volatile- one), and
 * should keep what it has on disk: appendonly yes. Without that all keys are lost
 * when it is restarted. All of a queue is in keys that begin with wq:{NAME}: ,
 * with partitions also wq:{NAME/N.i}: .
 *
 * Partitions. A queue is in one hash slot, and so in one node of a cluster. With
 * partitions=N it is spread over N slots. Each key belongs to one partition, so
 * all that is promised of a key holds: one holder at a time, fences that grow,
 * failures, deadlines, DIRTY. What is promised of several keys holds within each
 * partition only:
 *
 *   - order: by priority, then first come, first served, in each partition. Gets
 *     take turns: each partition is asked after 16 * N keys at the latest;
 *   - an add of several keys is all or nothing in each partition. If it succeeds
 *     in some and not in others, it is WQ_EIO: call it again. With max_retries, a
 *     rate-limited one ends with the first partition that gives a key up: keys of
 *     partitions before it were added;
 *   - of the limiter's bucket of all keys, each partition has an N-th: rate and
 *     burst (at least 1);
 *   - max_len is refused (WQ_ENOTSUP);
 *   - stats, depths and walks are of several moments.
 *
 * If a partition cannot be reached, its keys are WQ_EAWAY, and the others go on; a
 * get that finds no key is WQ_EAWAY, and so are wq_len() and the stats. Holds are
 * renewed together: a handle that holds a key of such a partition loses all its
 * holds after the lease, and goes on without that partition.
 *
 * The number is stored in the server when the queue is first opened: another one
 * is WQ_EINVAL. To change it, work until no key is left, WAITING and DEAD ones
 * included, close all handles, and delete wq:{NAME}:meta. A handle has three
 * connections and about seven descriptors for each partition.
 *
 * Link with -lwq-redis -lwq (pkg-config: wq-redis).
 */
#ifndef WQ_REDIS_H
#define WQ_REDIS_H

#include <wq/wq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means the default. */
typedef struct wq_redis_options {
    size_t      size;  /* sizeof(wq_redis_options) */
    const char *queue; /* its name; NULL: "default" */
    /* User and password; NULL: of the URL, else "default" and WQ_REDIS_PASSWORD
     * of the environment, else none. */
    const char *user;
    const char *password;
    /* Its first line is the password. It is read again whenever the handle logs
     * in, so a new password needs no new handle; if it cannot be read then, or is
     * a pipe, the password is that which it had when the queue was opened. */
    const char *password_file;
    /* With TLS: whom to trust, NULL: the system's authorities; and the own
     * certificate and its key, for servers that ask for one. PEM. */
    const char *ca_file;
    const char *cert_file;
    const char *key_file;
    /* A process that has not renewed its holds for this long loses them. A
     * thread, wq-lease, renews them after a third of it. 30 s. */
    int64_t lease_ns;
    /* How long to wait for a connection and for each reply, at most; then
     * WQ_EAWAY or WQ_EIO. 5 s, but not more than a quarter of lease_ns. A renewal
     * waits for a third of lease_ns at most in each of these steps, and for
     * replicas for a twelfth. If a host has several addresses, each has
     * its part of the time. */
    int64_t timeout_ns;
    /* A key becomes DEAD when so many processes in a row have died, or lost it,
     * while they held it. 0: 5. UINT_MAX: never. The handle that notices the end
     * of a hold applies its own: give all handles the same, also those that only
     * look. */
    unsigned max_expiries;
    bool     manual_renew; /* no thread; the program calls wq_renew() */
    /* Called by wq_redis_open() with a sentence for each setting of the server
     * that may lose keys, and for each partition that cannot be reached. NULL: no
     * warnings. */
    void (*on_warning)(void *ctx, const char *text);
    void *warning_ctx;
    /* So many replicas of the server have confirmed what a call did before it
     * returns WQ_OK: an add, a finish, a remove, a get that hands out a key. If
     * they do not in time: WQ_EIO, it may have happened; an add or a finish can
     * be repeated, a key that was got is given back. A server that takes the
     * place of one that died may still know less than some replica: see
     * docs/backends.md. 0: none. */
    unsigned replicas;
    /* How long to wait for them, at most. Less than timeout_ns. 1 s, but not more
     * than half of timeout_ns. */
    int64_t replicas_timeout_ns;
    /* User and password of the sentinels, with redis+sentinel://; those above
     * are the server's. */
    const char *sentinel_user;
    const char *sentinel_password;
    const char *sentinel_password_file; /* as password_file */
    /* Spread the queue over so many hash slots, and so over several nodes of a
     * cluster: 1 to 64; 0: 1. All handles of a queue must have the same number;
     * see "Partitions" above. */
    unsigned partitions;
    /* The name of this process, for people who look who holds a key
     * (wq_key_info.holder, `wq show`) or who is connected (CLIENT LIST). Up to 79
     * printable ASCII characters, no space. NULL: "HOST:PID". [S-29] */
    const char *client;
} wq_redis_options;
#define WQ_REDIS_OPTIONS(...)                                                  \
    (&(wq_redis_options){.size = sizeof(wq_redis_options), __VA_ARGS__})

/* Open a queue in the server at `url`. `options` and `config` may be NULL; an
 * option that is in the URL, too, must not be in both. Takes over
 * config->limiter, as wq_create() does. The limiter is applied by all processes
 * that use the queue, each its own; failures and buckets are counted once for
 * all, in the server: give all of them the same limiter.
 *
 * Returns WQ_OK;
 *   WQ_EINVAL     a bad URL or option; the server refuses the user, the password
 *                 or the database; its certificate is not trusted; it evicts
 *                 keys; the queue has another number of partitions;
 *   WQ_EVERSION   the queue was made by a newer release: it is unchanged;
 *   WQ_ENOTSUP    what wq.h says of shared queues; the server is too old;
 *   WQ_EAWAY      it cannot be reached, is loading its data, or is a replica;
 *   WQ_EIO        the user lacks a right, or the names of the queue are in use
 *                 by another program;
 *   WQ_ENOMEM.
 * wq_last_error() says more.
 * Threads: any.  Blocks: for the server, at most timeout_ns for the connection,
 * with the lookup of its name, and for each exchange; after a partition that
 * hangs, an eighth of it for each further one.  Since: 0.1.  [S-17 S-20 S-21
 * S-22 S-23 S-24 S-25]
 */
WQ_API WQ_NODISCARD wq_err wq_redis_open(const char             *url,
                                         const wq_redis_options *options,
                                         const wq_config        *config,
                                         wq_queue              **out);

/* The session that holds the keys of this handle: a number that no other handle
 * has. It changes when the handle has lost its keys. 0: a NULL, or another kind
 * of queue.
 * Threads: any.  Blocks: never.  Since: 0.1.
 */
WQ_API uint64_t wq_redis_session(wq_queue *q);

/* Take over a hold: the key that the session `from` of another handle holds, in
 * this process or in another one, is on loan from this handle then. Its fence is
 * the same, so what it protects goes on. For the other handle the hold is lost:
 * a finish of it is WQ_ELOST (WQ_OK, if it repeats one that was WQ_EIO), and
 * changes nothing.
 *
 * Returns WQ_OK; WQ_ENOTFOUND: that session does not hold the key; WQ_EINVAL: a
 * NULL, or no queue in Redis; WQ_ESTATE: the key is on loan from this handle;
 * WQ_EIO: it may have happened, and the key is READY again soon; WQ_EAWAY,
 * WQ_ENOMEM.
 * Threads: any.  Blocks: until the server answers.  Since: 0.1.  [S-04 S-19]
 */
WQ_API WQ_NODISCARD wq_err wq_redis_take_over(wq_queue *q, uint64_t from,
                                              wq_key key, wq_item **out);

/* What a handle knows of its server. */
typedef struct wq_redis_server {
    size_t size;      /* sizeof(wq_redis_server); set by the caller */
    bool   reachable; /* the last call, or renewal, was answered */
    int64_t
        lease_left_ns;    /* for how long the holds are certain, if they are not
                               renewed */
    uint64_t reconnects;  /* connections that were lost and made again */
    char     version[32]; /* "Redis 7.0.15"; "": the user may not know it */
    char     role[16];    /* "primary"; "": the user may not know it */
    char     name[160];  /* HOST:PORT, [ADDRESS]:PORT or PATH of the server that
                             the handle talks to: the primary that the
                             sentinels name, the node that has the queue */
    unsigned partitions; /* of the queue; 1: it is not spread */
    unsigned partitions_away; /* of these, how many did not answer last */
} wq_redis_server;

/* Read it. Version and role are those that the server had at open.
 *
 * Returns WQ_OK; WQ_EINVAL: a NULL, no size, or no queue in Redis.
 * Threads: any.  Blocks: never.  Since: 0.1.
 */
WQ_API WQ_NODISCARD wq_err wq_redis_read_server(wq_queue        *q,
                                                wq_redis_server *out);

/* The wq_opener of "redis:", "rediss:", "redis+unix:", "redis+sentinel:" and
 * "rediss+sentinel:" URLs, for wq_register_scheme("redis", ...).
 * wq_open() calls it by itself if the program is not linked with this library,
 * but finds it. Since: 0.1.
 */
WQ_API wq_err wq_open_redis(const char *url, const wq_config *config,
                            wq_queue **out);

#ifdef __cplusplus
}
#endif

#endif
