/* SPDX-License-Identifier: MIT */
/* side_inside.h: how is `state` laid out, and what does a handle know beside it?
 *
 * The file is mapped by every handle. It is only valid on one machine, since one
 * boot: byte order and sizes are those of the machine, and the layout is the
 * same for 32-bit and 64-bit processes.
 *
 * Who writes what:
 *   with the writer lock      everything but what is listed below
 *   without it                `until` (renew), `sleeping` (wait, fd) and `wants`
 *                             (lock) of the own slot, `synced`
 *   read without it           what is _Atomic
 */
#ifndef WQ_SQLITE_SIDE_INSIDE_H
#define WQ_SQLITE_SIDE_INSIDE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "port/lock.h"
#include "side.h"

/* ---- the mapped file ----------------------------------------------------- */

#define WQ__SIDE_MAGIC UINT64_C(0x656469732d2d7177) /* "wq--side" */
enum { WQ__SIDE_LAYOUT = 2 }; /* raised by every change of the structs below */

/* `until` of a session that has ended for good. */
#define WQ__SIDE_ENDED INT64_MIN

/* Which process is it? */
struct wq__process {
    uint32_t pid;
    uint64_t start;   /* in ticks since the boot: tells processes with the same
                         pid apart; 0: not known */
    uint64_t pid_ns;  /* the namespace in which `pid` is valid; 0: not known */
    uint64_t time_ns; /* the namespace in which `start` is valid */
};

/* Does the session sleep?
 *
 *              wait(), fd()            publish()
 *     AWAKE ────────────────► SLEEPING ─────────► RUNG
 *       ▲                        │                  │
 *       └────────────────────────┴──────────────────┘
 *                  end of wait()          (catch_up() of a session whose
 *                                          descriptor is in use: SLEEPING)
 *
 * A session that was rung is not rung again: it will look. So the next
 * publisher wakes another one, also if this one is stopped. */
enum wq__side_sleep {
    WQ__AWAKE,
    WQ__SLEEPING,
    WQ__RUNG, /* there is, or will be, a byte in the FIFO */
    /* As SLEEPING, but by fd(): whether the program looks at the descriptor is
     * not known, so it is rung in addition to those that sleep. */
    WQ__WATCHED,
};

/* A session. The fields of the process and `queue` change only while `id` is 0,
 * and an id is never used twice: a reader without the lock that finds the same
 * id before and after it has read them has read what belongs together.
 *
 * The fields up to `is_for_other`, the number of slots and where they begin are
 * the same in every layout: a script that holds keys has no lock by which another
 * release could know that it lives. */
struct wq__side_slot {
    /* 0: the slot is free. Stored last when a session begins (release; pairs
     * with the acquire of wq__side_read_process()), first when it ends. */
    _Atomic int64_t id;
    /* When the session ends; WQ__SIDE_ENDED: it has. See side_sessions.c. */
    _Atomic int64_t  until;
    _Atomic uint32_t queue;
    _Atomic uint32_t sleeping; /* enum wq__side_sleep; see side_bell.c */
    /* struct wq__process. */
    _Atomic uint64_t start, pid_ns, time_ns;
    _Atomic uint32_t pid;
    /* The process knows nothing of the session: its byte is not locked. */
    _Atomic uint32_t is_for_other;
    _Atomic uint32_t wants;         /* it waits for the writer lock */
    char             pad[128 - 60]; /* own cache lines */
};

struct wq__side_queue {
    struct wq__side_counts counts;
    /* Raised by every publish(); see side_bell.c. */
    _Atomic uint64_t epoch;
    /* Raised whenever a session of the queue begins or ends, after the slot has
     * changed (release; pairs with the acquire in side_peers.c). */
    _Atomic uint64_t members;
    uint32_t         turn; /* the slot after the one that was rung last */
    char             pad[12];
};

struct wq__side_state {
    /* WQ__SIDE_MAGIC; stored last when the file is made, so that a file whose
     * maker was killed is made again. */
    _Atomic uint64_t magic;
    uint32_t         layout;
    uint32_t         top; /* the slots from here on are free */
    char     boot[40];    /* the boot of the machine since which it is used */
    uint64_t db_dev, db_ino; /* the database */
    _Atomic uint64_t made;   /* random: which making of the file this is */
    int64_t          last_number;
    uint64_t         commits;
    /* Only grows: wq__side_raise_synced(). */
    _Atomic uint64_t      synced;
    uint64_t              stamp;  /* of the database; see side.h */
    _Atomic int64_t       holder; /* the session that had the lock last */
    _Atomic uint32_t      unsure; /* see wq__side_is_unsure() */
    char                  pad[256 - 124];
    struct wq__side_slot  slots[WQ__SIDE_SESSIONS];
    struct wq__side_queue queues[WQ__SIDE_QUEUES];
};

_Static_assert(sizeof(struct wq__side_slot) == 128, "layout");
_Static_assert(WQ__SIDE_SESSIONS == 1024, "the same in every layout");
_Static_assert(offsetof(struct wq__side_slot, id) == 0 &&
                   offsetof(struct wq__side_slot, until) == 8 &&
                   offsetof(struct wq__side_slot, start) == 24 &&
                   offsetof(struct wq__side_slot, pid_ns) == 32 &&
                   offsetof(struct wq__side_slot, time_ns) == 40 &&
                   offsetof(struct wq__side_slot, pid) == 48 &&
                   offsetof(struct wq__side_slot, is_for_other) == 52,
               "the same in every layout");
_Static_assert(offsetof(struct wq__side_state, boot) == 16,
               "the same in every layout");
_Static_assert(sizeof(struct wq__side_counts) == 64, "layout");
_Static_assert(sizeof(struct wq__side_queue) == 96, "layout");
_Static_assert(offsetof(struct wq__side_state, slots) == 256, "layout");

/* ---- a handle ------------------------------------------------------------ */

enum {
    /* How many sessions a session looks after: those in the slots behind its
     * own, in a ring. So each is looked after by as many others, and neither the
     * descriptors nor the questions to the kernel grow with their square. */
    WQ__SIDE_PEERS = 64,
    /* FIFOs that are kept open for writing. */
    WQ__SIDE_BELLS = 32,

    WQ__SIDE_WRITER = 0,        /* the byte of the writer lock */
    WQ__SIDE_TURN_NS = 1000000, /* of a handle that others wait for */
    WQ__SIDE_NAPS = 10,         /* some 70 us each */
};

/* A session that this one looks after. */
struct wq__side_peer {
    int64_t id; /* 0: the entry is free */
    int     fd; /* its pidfd; -1: none, or the process has died */
};

/* The open FIFO of another session. */
struct wq__side_bell {
    int64_t id; /* 0: the entry is free */
    int     fd;
};

struct wq__side {
    /* Set by open. */
    char              *dir;      /* PATH-wq, absolute; owned */
    char              *file;     /* PATH-wq/state, absolute; owned */
    int                dir_fd;   /* for openat() */
    int                state_fd; /* the file description that has the locks */
    int                kick_fd;  /* an eventfd, readable after a kick() */
    mode_t             mode;     /* of files in the directory */
    uid_t              uid;      /* owner of the database */
    gid_t              gid;      /* its group */
    uint64_t           dev, ino; /* of `state` */
    uint64_t           made;     /* wq__side_state.made when it was opened */
    struct wq__process self;     /* the process that opened it */
    int64_t look_ns; /* how long wait() sleeps at most; tests change it */
    int     naps;    /* after a turn, at most; tests change it */
    struct wq__side_state *m;           /* the mapping */
    struct wq__side       *prev, *next; /* list of side_fork.c */

    /* Used with the writer lock only. */
    int64_t              probed_ns; /* when the kernel was asked last */
    bool                 probed;    /* it was */
    int64_t              turn_began_ns;
    int64_t              turn_ns; /* how long it may take; see side_lock.c */
    bool                 yields;  /* the turn is over, and others want one */
    bool                 in_vain; /* nobody took it when this one yielded */
    struct wq__side_bell bells[WQ__SIDE_BELLS]; /* by slot, modulo */

    /* Guards all below, up to the next comment: renew(), is_ended(), wait() and
     * fd() run beside the other functions. It is taken after the writer lock. */
    struct wq__lock      lock;
    int                  slot;    /* of the own session; -1: none */
    int64_t              id;      /* its id; 0: none */
    uint32_t             queue;   /* its queue */
    int                  bell_fd; /* its FIFO, for reading; -1: not open */
    int                  news_fd; /* epoll: FIFO, pidfds, look_fd; -1: none */
    int                  look_fd; /* a timerfd: a user of fd() must look; -1:
                                       fd() was not called */
    int64_t              look_at_ns; /* when it is due */
    bool                 waiting;    /* a thread is in wait() */
    bool                 watched;    /* fd() was called */
    bool                 rung;       /* there may be a byte in the FIFO */
    uint64_t             members;    /* wq__side_queue.members of `peers` */
    bool                 has_peers;  /* `members` is valid */
    struct wq__side_peer peers[WQ__SIDE_PEERS];

    /* wq__side_queue.epoch at the last catch_up(). Written with the writer lock,
     * read by wait() without it. Relaxed: an old value only makes wait() return,
     * since the epoch only grows. */
    _Atomic uint64_t seen;
    /* A process of a session was seen dead, by wait() or fd(); the next
     * find_ended() clears it. */
    _Atomic bool peer_died;

    /* Of the thread in wait(). */
    struct wq__beacon beacon; /* readable when `until_ns` has come */
    struct wq__watch  watch;
    wq_clock         *clock; /* the one of `watch` */
};

static inline struct wq__side_slot *
wq__side_slot(const struct wq__side *s, int i)
{
    assert(i >= 0 && i < WQ__SIDE_SESSIONS);
    return &s->m->slots[i];
}

static inline struct wq__side_queue *
wq__side_queue(const struct wq__side *s, uint32_t queue)
{
    assert(queue >= 1 && queue <= WQ__SIDE_QUEUES);
    return &s->m->queues[queue - 1];
}

/* Does slot `i` belong to a session of `queue`? With the writer lock. */
static inline bool
wq__side_is_of(const struct wq__side *s, int i, uint32_t queue)
{
    const struct wq__side_slot *slot = wq__side_slot(s, i);

    return atomic_load_explicit(&slot->id, memory_order_relaxed) != 0 &&
           atomic_load_explicit(&slot->queue, memory_order_relaxed) == queue;
}

/* ---- side.c -------------------------------------------------------------- */

/* Is the file at the path still the one that is open, and long enough? */
bool wq__side_is_in_place(const struct wq__side *s, off_t size);

/* Give a file the rights of the database, as far as the process may. */
void wq__side_fit_rights(struct wq__side *s, int fd, mode_t mode);

void wq__side_close_fd(int *fd); /* and set it to -1; -1 is accepted */

/* ---- side_lock.c --------------------------------------------------------- */

/* Try to lock byte `at` of `state`: WQ_OK; WQ_ESTATE: somebody else has it;
 * WQ_ENOTSUP, WQ_EIO (errno). */
wq_err wq__side_lock_byte(struct wq__side *s, int at);
void   wq__side_unlock_byte(struct wq__side *s, int at);

/* Has somebody else locked one of the bytes from `at` on, `n` of them (0: all)?
 * If the kernel does not answer: yes. */
bool wq__side_is_locked(struct wq__side *s, int at, int n);

/* Wait for the writer lock, out of turn: for one that has no mapping yet. Errors
 * have a sentence. */
wq_err wq__side_wait_for_lock(struct wq__side *s);

/* ---- side_fork.c --------------------------------------------------------- */

/* No fork() happens between the two. */
void wq__side_hold_forks(void);
void wq__side_let_forks(void);

/* With forks held: children close the descriptors of `s`, from now on, or no
 * longer. */
void wq__side_enlist(struct wq__side *s);
void wq__side_delist(struct wq__side *s);

/* Close every descriptor of `s`. */
void wq__side_close_all(struct wq__side *s);

/* ---- side_process.c ------------------------------------------------------ */

/* Which boot of the machine is this? False: errno. */
bool wq__process_read_boot(char out[static 40]);

/* The calling process. */
struct wq__process wq__process_self(void);

/* Another process of the same namespaces as `self`. False: there is none. */
bool wq__process_find(uint32_t pid, const struct wq__process *self,
                      struct wq__process *out);

/* Has the process of `p` died for sure? False also if that cannot be known here:
 * `p` is in another namespace, or /proc is hidden. */
bool wq__process_is_gone(const struct wq__process *p,
                         const struct wq__process *self);

/* Is the pid of `p` valid here? */
bool wq__process_is_near(const struct wq__process *p,
                         const struct wq__process *self);

/* ---- side_sessions.c ----------------------------------------------------- */

/* The process of the session in slot `i`; without the lock. Returns the id; 0:
 * there is no session. */
int64_t wq__side_read_process(const struct wq__side *s, int i,
                              struct wq__process *out);

/* With the writer lock: does a process live that has a session by begin_for()?
 * Also if `state` has another layout. */
bool wq__side_is_held(struct wq__side *s);

/* ---- side_bell.c --------------------------------------------------------- */

/* With s->lock: make what the own session needs to be woken. -1: errno. */
int wq__side_open_bell(struct wq__side *s);

/* With s->lock: close the FIFO. */
void wq__side_close_bell(struct wq__side *s);

/* Remove the FIFO of slot `i`, if there is one. */
void wq__side_unlink_bell(struct wq__side *s, int i);

/* With the writer lock: wake `n` other sessions of `queue` that sleep. */
void wq__side_ring(struct wq__side *s, uint32_t queue, size_t n);

/* With s->lock: the own session counts as asleep. */
void wq__side_lie_down(struct wq__side *s);

/* With s->lock: it does not any more. */
void wq__side_stand_up(struct wq__side *s);

/* With s->lock: has another session published what this one does not know? */
bool wq__side_has_news(const struct wq__side *s);

/* With s->lock: empty the FIFO. */
void wq__side_drain_bell(struct wq__side *s);

/* With s->lock: the descriptor becomes readable. */
void wq__side_ring_self(struct wq__side *s);

/* ---- side_peers.c -------------------------------------------------------- */

/* With s->lock: watch the processes of the sessions behind the own one. Cheap if
 * no session has begun or ended since. */
void wq__side_watch_peers(struct wq__side *s);

/* With s->lock: which of them have died? Sets s->peer_died, wakes the sleepers of
 * this handle, and watches these no longer. */
void wq__side_sweep_peers(struct wq__side *s);

/* With s->lock. */
void wq__side_forget_peers(struct wq__side *s);

#endif
