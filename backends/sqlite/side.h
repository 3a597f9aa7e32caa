/* SPDX-License-Identifier: MIT */
/* side.h: what do the processes that use one database know of each other?
 *
 * A directory beside the database, PATH-wq, with
 *
 *   state     a file that every handle maps: sessions, counts, who sleeps. Its
 *             bytes are also what is locked: byte 0 is the writer lock, byte
 *             1 + i is held by the session in slot i for as long as it lives
 *   bell.I    the FIFO of the session in slot I: a byte in it wakes the session
 *
 * Nothing here is the truth about keys: that is in the database. If the
 * directory is lost while no process uses the database, the next one makes it
 * again (`fresh`).
 *
 * A handle has one `struct wq__side`, with a file description of its own. Locks
 * belong to file descriptions (F_OFD_SETLK), so two handles of one process
 * exclude each other like those of two processes, and the kernel releases them
 * when the process dies, however it dies. They stay while a process is stopped.
 *
 * Threads: one at a time calls the functions below, but for wait(), kick(),
 * renew() and is_ended(), which other threads may call meanwhile.
 */
#ifndef WQ_SQLITE_SIDE_H
#define WQ_SQLITE_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

#include "clock/clock.h"
#include "shared/rows.h"

enum {
    WQ__SIDE_SESSIONS = 1024, /* at one time, of one database */
    WQ__SIDE_QUEUES = 4096,   /* of one database; ids are 1 .. QUEUES */
};

/* How long wait() sleeps at most, of real time, and how long fd() is silent.
 * Four things can be missed: a wake-up that died with the session that got it,
 * the death of a session in another pid namespace or beyond those that a session
 * watches, a wake-up that could not be sent for lack of descriptors, and that the
 * database or its directory was deleted or replaced. One look a second finds
 * them, and costs nothing that can be measured. */
#define WQ__SIDE_LOOK_NS INT64_C(1000000000)

/* How often find_ended() asks the kernel which sessions live, if nobody
 * requests it: as often as an idle handle looks. */
#define WQ__SIDE_PROBE_NS WQ__SIDE_LOOK_NS

struct wq__side;

/* How many keys of a queue are in which state. In the mapped file, under the
 * writer lock. */
struct wq__side_counts {
    struct wq__row_counts keys;
    uint64_t valid; /* 0: they are not known, count the rows; else 1 */
};

/* Open, or make, the directory of the database at `path`, which exists. Errors
 * have a sentence: WQ_EIO, WQ_ENOMEM; WQ_EAWAY (processes use a file that was
 * at `path` before); WQ_ENOTSUP (a file system without the locks, no /proc, or
 * another machine uses the directory); WQ_EVERSION (processes of another release
 * use it). *fresh: it was empty, or is of an earlier boot of the machine, or of
 * another file: nothing in it was used, so there was no live session. Another
 * process may have begun one since: ask is_live() with the lock. */
wq_err wq__side_open(const char *path, struct wq__side **out, bool *fresh);

/* Close it. The session, if there is one, must have ended, or dies with this:
 * others find it dead. `forked`: this is a child of fork(): only close and
 * free; the locks, which belong to the parent, stay. */
void wq__side_close(struct wq__side *s, bool forked);

/* ---- the writer lock ----------------------------------------------------- */

/* One handle at a time writes to the database. Blocks in the kernel, which wakes
 * those that wait whenever the lock is released: nobody polls. A handle that has
 * just released it may take it again before the others run, but not for longer
 * than 1 ms: then it sleeps until one of them has had it, or for 1 ms if none
 * takes it. WQ_EAWAY: the file is gone or was replaced; WQ_EIO. Both have a
 * sentence. */
wq_err wq__side_lock(struct wq__side *s);
void   wq__side_unlock(struct wq__side *s);

/* With the lock. */
struct wq__side_counts *wq__side_counts(struct wq__side *s, uint32_t queue);
/* The last number that was given to a hand-out, an arrival or a place in the
 * ready order; they only grow. 0 in a fresh directory. */
int64_t *wq__side_last_number(struct wq__side *s);
/* How many transactions were committed, and up to which one they are on disk;
 * both 0 in a fresh directory. `synced` may be read and raised without the
 * lock, by the function. */
uint64_t *wq__side_commits(struct wq__side *s);
uint64_t  wq__side_synced(struct wq__side *s);
void      wq__side_raise_synced(struct wq__side *s, uint64_t to);

/* A sync has failed, and no checkpoint has been complete since: what was written
 * before may be lost, and the system reports that once only. For all processes. */
bool wq__side_is_unsure(struct wq__side *s);
void wq__side_set_unsure(struct wq__side *s, bool unsure);

/* When and how long the database file was when its last checkpoint ended: if it
 * is another one now, somebody has replaced its contents. 0: not known. */
uint64_t *wq__side_stamp(struct wq__side *s);

/* The counts of all queues are not known. */
void wq__side_forget_counts(struct wq__side *s);

/* ---- sessions ------------------------------------------------------------ */

/* With the lock: begin a session of `queue`. *id: random, not 0, never the same
 * again, at most INT64_MAX. `until_ns`: it ends then, unless renewed;
 * WQ_FOREVER: it ends with the process, or by wq__side_end(). WQ_EFULL, WQ_EIO,
 * with a sentence.
 *
 * If the handle still has a session, that one ends here, as if by time:
 * find_ended() returns it, unless it was buried. If all slots are in use,
 * begin() frees those of dead sessions of queues that no live session uses: a
 * handle that opens a queue must treat owners that is_live() does not know as
 * ended. */
wq_err wq__side_begin(struct wq__side *s, uint32_t queue, int64_t until_ns,
                      int64_t *id);

/* With the lock: end the own session, if there is one. Its slot is free at once.
 */
void wq__side_end(struct wq__side *s);

/* With the lock: the session of another process, in which it holds keys of
 * `queue`; begins one if it has none. It ends with that process, not with a
 * handle. WQ_EINVAL: there is no such process; WQ_EFULL, WQ_EIO; all with a
 * sentence. */
wq_err wq__side_begin_for(struct wq__side *s, uint32_t queue, uint32_t pid,
                          int64_t *id);

/* Without the lock: the own session lives until `until_ns`, unless it has ended
 * (false). A session that was found ended once never lives again: one atomic
 * word decides, for all processes. */
bool wq__side_renew(struct wq__side *s, int64_t now_ns, int64_t until_ns);

/* Has the own session ended by time, or was it declared dead? Then it is ended
 * for good: no renewal by another thread can follow. */
bool wq__side_is_ended(struct wq__side *s, int64_t now_ns);

/* With the lock: does the session `id` live? Unknown ids do not. Asks the kernel.
 * A session that does not live is ended for good, as by find_ended(). */
bool wq__side_is_live(struct wq__side *s, int64_t id, int64_t now_ns);

/* The process of the session `id`, without the lock. 0: there is no such session,
 * or its process is in another pid namespace. Cost: O(sessions). */
uint32_t wq__side_pid_of(struct wq__side *s, int64_t id);

/* With the lock: the next session of `queue` that has ended but still has its
 * slot: its process has died (its byte is not locked, or its process id now
 * belongs to nobody or to a later process), or its time is over. It is ended
 * for good by this call, which returns it again until it is buried. May be the
 * own session, if its time is over. 0: none. Cost: cheap as long as nobody died:
 * looks at the slots in use, and asks the kernel at most every WQ__SIDE_PROBE_NS
 * unless `probe`, or wait() or fd() has seen a process die. */
int64_t wq__side_find_ended(struct wq__side *s, uint32_t queue, int64_t now_ns,
                            bool probe);

/* With the lock: nothing is left to do for the ended session: free its slot. The
 * own session: as wq__side_end(). */
void wq__side_bury(struct wq__side *s, int64_t id);

/* With the lock: when the first other session of `queue` ends by time, unless it
 * is renewed; WQ_FOREVER: none does. */
int64_t wq__side_next_end(struct wq__side *s, uint32_t queue);

/* How many sessions of `queue` were not found ended (with the lock). */
size_t wq__side_sessions(struct wq__side *s, uint32_t queue);

/* The same, of all queues, without those of other processes (begin_for()). */
size_t wq__side_all_sessions(struct wq__side *s);

/* ---- waking up each other ------------------------------------------------ */

/* What a sleeper waits for. */
enum wq__side_news {
    WQ__NEWS_READY = 1, /* a key became READY */
    WQ__NEWS_OTHER = 2, /* anything else a sleeper must know */
};

/* With the lock, after the commit: the own session has changed `queue`. Wakes
 * other sessions of it that sleep: with OTHER all of them, else as many as keys
 * became READY. Those that do not sleep notice by themselves (wait()). What the
 * own session publishes it knows. */
void wq__side_publish(struct wq__side *s, uint32_t queue, unsigned news,
                      size_t n_ready);

/* With the lock: all that was published so far is known to the own session. */
void wq__side_catch_up(struct wq__side *s, uint32_t queue);

/* Sleep until another session has published since the last catch_up(), another
 * session of the queue has died, the own one was found ended, `until_ns` on
 * `clock`, or kick(). Also returns after WQ__SIDE_LOOK_NS at the latest. No other
 * CPU use while it sleeps. `clock` may be a fake one: uses clock->watch(). It is
 * the same one in each call. One thread at a time. */
void wq__side_wait(struct wq__side *s, uint32_t queue, wq_clock *clock,
                   int64_t until_ns);

/* End the wait() of another thread; if there is none, the next one. */
void wq__side_kick(struct wq__side *s);

/* A descriptor for wq_fd(): readable when another session has published since
 * the last catch_up(), or has died, until the next find_ended() and catch_up();
 * also once in WQ__SIDE_LOOK_NS, until the next looks(). The same for the life of
 * the side. From the first call on, the session counts as one that
 * sleeps. -1: there is none (errno). May be called at any time. */
int wq__side_fd(struct wq__side *s);

/* Without the lock: the caller is about to look at the database. */
void wq__side_looks(struct wq__side *s);

#endif
