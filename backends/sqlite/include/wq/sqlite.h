/* SPDX-License-Identifier: MIT */
/* sqlite.h: a queue in a file, which survives its processes.
 *
 * A shared queue (wq.h, "Shared queues") that is kept in an SQLite database.
 * Any number of processes of one machine may use it at the same time; if all of
 * them are killed, or the machine loses power, the next one finds every key
 * whose add was acknowledged.
 *
 *     wq_queue *q;
 *     wq_err err = wq_open("sqlite:/var/lib/agent/queue.db", NULL, &q);
 *     if (err)
 *         die("%s", wq_last_error());
 *
 * wq_open() finds this library by its name; a program that is linked statically
 * calls wq_register_scheme("sqlite", wq_open_sqlite) first. The URL:
 *
 *     sqlite:PATH[?OPTION=VALUE[&OPTION=VALUE]...]
 *
 *   PATH        of the database file, relative or absolute; it is made if it
 *               does not exist. %XX stands for a byte: %3F for '?', %25 for '%'
 *   queue=NAME  which of the queues in the file; "default"
 *   sync=adds|all|lazy, hold=process|lease, lease=DURATION,
 *   max_expiries=N, busy=DURATION, holder=PID, create=no
 *               see wq_sqlite_options. DURATION: 200ms, 5s, 1h30m, or a number
 *               of seconds: 1.5. Units: ns, us, ms, s, m, h, d
 *
 * Files. Beside PATH are PATH-wal and PATH-shm, which are SQLite's, and the
 * directory PATH-wq, in which processes wake each other up. Leave them alone
 * while a process uses the queue. Not for network file systems: they have
 * neither the locks nor the shared memory (WQ_ENOTSUP).
 *
 * Link with -lwq-sqlite -lwq (pkg-config: wq-sqlite).
 */
#ifndef WQ_SQLITE_H
#define WQ_SQLITE_H

#include <wq/wq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is on disk before a call returns, should the machine lose power? In all
 * cases the file stays intact, and a process that is killed loses nothing: this
 * is about the power supply and the kernel only.
 */
typedef enum wq_sqlite_sync {
    /* What an add, or a finish other than DONE and DROP, has promised. A done
     * that is lost runs the key once more. The default. */
    WQ_SQLITE_SYNC_ADDS = 0,
    /* Every change, gets and dones included. */
    WQ_SQLITE_SYNC_ALL = 1,
    /* Nothing: a power loss takes the file back to its last checkpoint, which
     * may be minutes old; all keys that were added since are lost. */
    WQ_SQLITE_SYNC_LAZY = 2,
} wq_sqlite_sync;

/* When does a process lose the keys that it holds? */
typedef enum wq_sqlite_hold {
    /* When it ends, however it ends: others get its keys within milliseconds. A
     * process that is stopped or hangs keeps them. The default. */
    WQ_SQLITE_HOLD_PROCESS = 0,
    /* Also if it has not renewed them for lease_ns. A thread, wq-lease, renews
     * them; so they are lost if the process is stopped. */
    WQ_SQLITE_HOLD_LEASE = 1,
} wq_sqlite_hold;

/* How a queue in a file is opened. Zero means the default. */
typedef struct wq_sqlite_options {
    size_t         size;  /* sizeof(wq_sqlite_options) */
    const char    *queue; /* its name, 1 .. 255 bytes; NULL: "default" */
    wq_sqlite_sync sync;
    wq_sqlite_hold hold;
    int64_t lease_ns; /* LEASE: how long holds last without a renewal; 30 s */
    /* For how long to wait for a program other than wq that has locked the
     * database, for example the shell of SQLite: then WQ_EAWAY. 5 s. */
    int64_t busy_ns;
    /* A key becomes DEAD when so many processes in a row have died, or lost it,
     * while they held it. 0: 5. UINT_MAX: never. */
    unsigned max_expiries;
    bool     no_create;    /* the file and the queue must exist: WQ_ENOTFOUND */
    bool     manual_renew; /* LEASE: no thread; the program calls wq_renew() */
    /* Keys that are got through this handle are held by this process, for
     * example the shell script that runs the program, and stay HELD when the
     * handle is destroyed: another handle with the same holder_pid finishes
     * them (wq_sqlite_resume()). 0: by this handle. Not with LEASE. */
    int holder_pid;
} wq_sqlite_options;
#define WQ_SQLITE_OPTIONS(...)                                                 \
    (&(wq_sqlite_options){.size = sizeof(wq_sqlite_options), __VA_ARGS__})

/* Open a queue in the database at `path`. `options` and `config` may be NULL.
 * Takes over config->limiter, as wq_create() does. The limiter is applied by all
 * processes that use the queue, each its own; failures and buckets are counted
 * once for all, in the file: give all of them the same limiter.
 *
 * Returns WQ_OK;
 *   WQ_EINVAL     a bad option; the file is not an SQLite database, or is one
 *                 of another program; the path is that of a directory, or begins
 *                 with "sqlite:", as URLs do;
 *   WQ_EVERSION   the file was written by a newer release: it is unchanged;
 *   WQ_ENOTFOUND  no_create, and there is no such file or queue; or there is no
 *                 such directory;
 *   WQ_ENOTSUP    what wq.h says of shared queues; a network file system;
 *                 SQLite is older than 3.37;
 *   WQ_EAWAY      the file, or its directory, cannot be written; it is locked;
 *                 the disk is full;
 *   WQ_EIO        the disk failed; WQ_ENOMEM;
 *   WQ_EFULL      there are 4096 queues in the file, or 1024 handles of it.
 * wq_last_error() says more.
 * Threads: any.  Blocks: for the disk, and at most busy_ns.  Since: 0.1.
 * [S-15 S-16 S-17 S-18]
 */
WQ_API WQ_NODISCARD wq_err wq_sqlite_open(const char              *path,
                                          const wq_sqlite_options *options,
                                          const wq_config         *config,
                                          wq_queue               **out);

/* The wq_opener of "sqlite:" URLs, for wq_register_scheme(). wq_open() calls it
 * by itself if the program is not linked with this library, but finds it.
 * Since: 0.1.
 */
WQ_API wq_err wq_open_sqlite(const char *url, const wq_config *config,
                             wq_queue **out);

/* A loan of a key that is HELD by the process holder_pid of the options, so that
 * it can be finished.
 *
 * Returns WQ_OK; WQ_ENOTFOUND: the process does not hold the key; WQ_EINVAL: a
 * NULL, or the queue is no SQLite queue with a holder_pid; WQ_ESTATE: the key is
 * on loan already; WQ_EIO, WQ_EAWAY, WQ_ENOMEM.
 * Threads: any.  Blocks: until the store answers.  Since: 0.1.  [S-19]
 */
WQ_API WQ_NODISCARD wq_err wq_sqlite_resume(wq_queue *q, wq_key key,
                                            wq_item **out);

/* Call `visit` for each queue in the file, by name, until it returns false.
 *
 * Returns WQ_OK, and the errors of wq_sqlite_open() with no_create.
 * Threads: any.  Blocks: for the disk.  Since: 0.1.
 */
WQ_API wq_err wq_sqlite_each_queue(const char *path,
                                   bool (*visit)(void *ctx, const char *name),
                                   void *ctx);

/* The release of SQLite that is in use: "3.40.1". A static string.
 * Threads: any.  Blocks: never.  Since: 0.1.
 */
WQ_API const char *wq_sqlite_version(void);

#ifdef __cplusplus
}
#endif

#endif
