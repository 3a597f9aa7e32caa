/* SPDX-License-Identifier: MIT */
/* fixture.h: two handles of one database, and other processes that use it.
 *
 * The database is an empty file in a directory of its own. A child reports by
 * bytes through a pipe, and waits for bytes of the test through another one:
 * only the test can use cmocka's assertions. An alarm ends a child that is
 * forgotten.
 */
#ifndef WQ_TEST_SQLITE_FIXTURE_H
#define WQ_TEST_SQLITE_FIXTURE_H

#include "support/wq_test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/time.h"
#include "side_inside.h"

enum { QUEUE = 1, OTHER_QUEUE = 2 };

static struct {
    char             dir[64];    /* the directory of the test */
    char             db[80];     /* the database */
    char             side[96];   /* the directory beside it */
    char             state[104]; /* the file in it */
    struct wq__side *a, *b;
} f;

/* ---- set up -------------------------------------------------------------- */

static inline void
make_file(const char *path)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    (void)close(fd);
}

static inline int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static inline void
remove_tree(const char *path)
{
    (void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline int
make_database(void **state)
{
    const char *tmp = getenv("TMPDIR");

    (void)state;
    memset(&f, 0, sizeof f);
    (void)snprintf(f.dir, sizeof f.dir,
                   "%.40s/wq-side.XXXXX"
                   "X",
                   tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f.dir));
    (void)snprintf(f.db, sizeof f.db, "%s/q.db", f.dir);
    (void)snprintf(f.side, sizeof f.side, "%s-wq", f.db);
    (void)snprintf(f.state, sizeof f.state, "%s/state", f.side);
    make_file(f.db);
    return 0;
}

static inline int
remove_database(void **state)
{
    (void)state;
    wq__side_close(f.a, false);
    wq__side_close(f.b, false);
    remove_tree(f.dir);
    return 0;
}

/* Looks are rare, so that a wake-up is not mistaken for a look on a machine that
 * is slow. */
#define LOOK_NS (60 * WQ__SIDE_LOOK_NS)

static inline struct wq__side *
open_side(void)
{
    struct wq__side *s = NULL;
    bool             fresh;

    if (wq__side_open(f.db, &s, &fresh))
        fail_msg("%s", wq_last_error());
    s->look_ns = LOOK_NS;
    return s;
}

static inline bool
opens_fresh(void)
{
    struct wq__side *s = NULL;
    bool             fresh = false;

    assert_err(wq__side_open(f.db, &s, &fresh), WQ_OK);
    wq__side_close(s, false);
    return fresh;
}

static inline int
open_handles(void **state)
{
    (void)make_database(state);
    f.a = open_side();
    f.b = open_side();
    return 0;
}

#define with_database(name) test_with(name, make_database, remove_database)
#define with_handles(name) test_with(name, open_handles, remove_database)

/* ---- verbs --------------------------------------------------------------- */

static inline void
lock(struct wq__side *s)
{
    if (wq__side_lock(s))
        fail_msg("%s", wq_last_error());
}

static inline void
unlock(struct wq__side *s)
{
    wq__side_unlock(s);
}

/* A session of `queue` until `until_ns`. Also for children, which exit with 99
 * if it fails. */
static inline int64_t
begin_of(struct wq__side *s, uint32_t queue, int64_t until_ns)
{
    int64_t id = 0;

    if (wq__side_lock(s) || wq__side_begin(s, queue, until_ns, &id)) {
        (void)fprintf(stderr, "%s\n", wq_last_error());
        exit(99);
    }
    wq__side_catch_up(s, queue);
    wq__side_unlock(s);
    return id;
}

static inline int64_t
begin(struct wq__side *s)
{
    return begin_of(s, QUEUE, WQ_FOREVER);
}

static inline int64_t
find_ended(struct wq__side *s, int64_t now_ns, bool probe)
{
    lock(s);
    const int64_t id = wq__side_find_ended(s, QUEUE, now_ns, probe);
    unlock(s);
    return id;
}

static inline void
bury(struct wq__side *s, int64_t id)
{
    lock(s);
    wq__side_bury(s, id);
    unlock(s);
}

static inline void
catch_up(struct wq__side *s)
{
    lock(s);
    wq__side_catch_up(s, QUEUE);
    unlock(s);
}

static inline void
publish_of(struct wq__side *s, uint32_t queue, unsigned news, size_t n)
{
    lock(s);
    wq__side_publish(s, queue, news, n);
    unlock(s);
}

/* ---- two threads at once ------------------------------------------------- */

/* Two threads meet again and again. They spin, so that both go on in the same
 * moment. */
struct meeting {
    _Atomic unsigned arrived;
};

static inline void
meet(struct meeting *m)
{
    const unsigned both = (atomic_fetch_add(&m->arrived, 1) | 1) + 1;

    for (int spins = 1; (int)(atomic_load(&m->arrived) - both) < 0; spins++)
        if (spins % 1000 == 0)
            (void)sched_yield(); /* there is only one processor */
}

/* A little later, by about `n` ns. */
static inline void
spin(int n)
{
    for (volatile int i = 0; i < n; i++)
        ;
}

/* ---- other processes ----------------------------------------------------- */

struct child {
    pid_t pid;
    int   from, to; /* pipes: bytes from the child, and to it */
};

static inline void
say(int fd, const void *what, size_t size)
{
    if (write(fd, what, size) != (ssize_t)size)
        exit(98);
}

static inline void
hear(int fd, void *what, size_t size)
{
    if (read(fd, what, size) != (ssize_t)size)
        exit(97);
}

static inline void
say_byte(int fd)
{
    say(fd, "", 1);
}

static inline void
hear_byte(int fd)
{
    char byte;

    hear(fd, &byte, 1);
}

/* Run run(self, arg) in another process. The handles of the test are closed
 * there, by the library. */
static inline struct child
start(void (*run)(struct child *self, void *arg), void *arg)
{
    int up[2], down[2];

    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(down), 0);
    struct child c = {.from = up[0], .to = down[1]};
    c.pid = fork();
    assert_true(c.pid >= 0);
    if (c.pid == 0) {
        struct child self = {.pid = getpid(), .from = down[0], .to = up[1]};
        (void)close(up[0]);
        (void)close(down[1]);
        (void)alarm(100);
        run(&self, arg);
        _exit(0);
    }
    (void)close(up[1]);
    (void)close(down[0]);
    return c;
}

/* Its exit status, or minus the signal that ended it. */
static inline int
end_of(struct child *c)
{
    int status = 0;

    (void)close(c->to);
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    (void)close(c->from);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static inline void
kill_child(struct child *c)
{
    assert_int_equal(kill(c->pid, SIGKILL), 0);
    assert_int_equal(end_of(c), -SIGKILL);
}

/* Returns when the process has stopped. */
static inline void
stop_child(struct child *c)
{
    int status;

    assert_int_equal(kill(c->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(c->pid, &status, WUNTRACED), c->pid);
    assert_true(WIFSTOPPED(status));
}

/* A child that begins a session, reports its id, and waits for a byte. */
static inline void
hold_session(struct child *self, void *arg)
{
    struct wq__side *s = open_side();
    const int64_t    id = begin_of(s, arg ? OTHER_QUEUE : QUEUE, WQ_FOREVER);

    say(self->to, &id, sizeof id);
    hear_byte(self->from);
}

static inline struct child
start_session(int64_t *id)
{
    struct child c = start(hold_session, NULL);

    hear(c.from, id, sizeof *id);
    return c;
}

#endif
