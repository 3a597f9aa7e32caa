/* SPDX-License-Identifier: MIT */
/* side.c: how is the directory beside a database made, opened and checked?
 *
 * All that it contains can be made again, so it is never repaired: a `state`
 * that is too short, of another release, of another boot or of another database
 * is written anew, with the writer lock, unless a session lives in it.
 *
 * Cost: open about 25 us.
 */
#include "side.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "error/error.h"
#include "port/random.h"
#include "side_inside.h"

/* ---- rights -------------------------------------------------------------- */

/* The group as well: members of it that may write to the database must be able
 * to write here. What the process may not change stays. */
void
wq__side_fit_rights(struct wq__side *s, int fd, mode_t mode)
{
    const uid_t me = geteuid();
    struct stat st;

    if (fstat(fd, &st) != 0 || (me != 0 && me != st.st_uid))
        return;
    const uid_t owner = me == 0 ? s->uid : st.st_uid;
    if ((owner != st.st_uid || s->gid != st.st_gid) &&
        fchown(fd, owner, s->gid) != 0)
        errno = 0; /* not a member of the group */
    if ((st.st_mode & 07777) != mode)
        (void)fchmod(fd, mode);
}

/* To enter a directory is the right that belongs to reading a file. */
static mode_t
with_entry(mode_t mode)
{
    return mode | ((mode & 0444) >> 2);
}

/* ---- opening ------------------------------------------------------------- */

static wq_err
fail_to(const char *verb, const char *file, const char *advice)
{
    const bool is_refused = errno == EACCES || errno == EPERM || errno == EROFS;

    return wq_fail(is_refused ? WQ_EAWAY : WQ_EIO, "cannot %s '%s': %s; %s",
                   verb, file, strerror(errno), advice);
}

static wq_err
open_directory(struct wq__side *s)
{
    const mode_t mode = with_entry(s->mode);

    if (mkdir(s->dir, mode) != 0 && errno != EEXIST)
        return fail_to("make the directory", s->dir,
                       "the user needs the right to make files beside the "
                       "database");
    s->dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->dir_fd < 0)
        return fail_to("open the directory", s->dir,
                       errno == ENOTDIR || errno == ELOOP
                           ? "remove what is in its place"
                           : "give it the rights of the database");
    wq__side_fit_rights(s, s->dir_fd, mode);
    return WQ_OK;
}

static wq_err
open_state(struct wq__side *s)
{
    struct stat st;

    wq__side_hold_forks();
    s->state_fd =
        openat(s->dir_fd, "state",
               O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, s->mode);
    wq__side_let_forks();
    if (s->state_fd < 0 || fstat(s->state_fd, &st) != 0)
        return fail_to("open", s->file,
                       "it needs the rights and the owner of the database");
    if (!S_ISREG(st.st_mode))
        return wq_fail(WQ_EIO, "'%s' is not a file; remove it", s->file);
    wq__side_fit_rights(s, s->state_fd, s->mode);
    s->dev = st.st_dev;
    s->ino = st.st_ino;
    return WQ_OK;
}

bool
wq__side_is_in_place(const struct wq__side *s, off_t size)
{
    struct stat st;

    return stat(s->file, &st) == 0 && st.st_dev == s->dev &&
           st.st_ino == s->ino && st.st_size >= size;
}

/* ---- making the file ----------------------------------------------------- */

/* What `state` should say of machine and database. */
struct place {
    char     boot[40];
    uint64_t dev, ino;
};

/* A mapping keeps its file description open, also in children of fork(), which
 * only close descriptors. So it has one of its own, without locks. */
static void *
map_apart(struct wq__side *s)
{
    const int fd = openat(s->dir_fd, "state", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return MAP_FAILED;

    struct stat st;
    void       *at = MAP_FAILED;
    errno = ENOENT;
    if (fstat(fd, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
        at =
            mmap(NULL, sizeof *s->m, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int cause = errno;
    (void)close(fd);
    errno = cause;
    return at;
}

/* Its size is reserved: a write to a mapped hole of a full disk is a SIGBUS. A
 * file that was too short is not valid. */
static wq_err
map(struct wq__side *s)
{
    const off_t size = sizeof *s->m;
    struct stat st;

    if (fstat(s->state_fd, &st) != 0)
        return fail_to("read", s->file, "check the disk");
    const bool is_short = st.st_size < size;
    if (is_short && (errno = posix_fallocate(s->state_fd, 0, size)) != 0)
        return fail_to("make", s->file, "it needs 512 KiB of disk space");
    void *at = map_apart(s);
    if (at == MAP_FAILED)
        return fail_to("map", s->file, "put the database on a local disk");
    s->m = at;
    if (is_short)
        atomic_store_explicit(&s->m->magic, 0, memory_order_seq_cst);
    return WQ_OK;
}

static bool
is_known_layout(const struct wq__side_state *m)
{
    return atomic_load_explicit(&m->magic, memory_order_acquire) ==
               WQ__SIDE_MAGIC &&
           m->layout == WQ__SIDE_LAYOUT;
}

static bool
is_of_boot(const struct wq__side_state *m, const struct place *p)
{
    return memcmp(m->boot, p->boot, sizeof m->boot) == 0;
}

static bool
is_of_database(const struct wq__side_state *m, const struct place *p)
{
    return m->db_dev == p->dev && m->db_ino == p->ino;
}

static bool
is_valid(const struct wq__side_state *m, const struct place *p)
{
    return is_known_layout(m) && is_of_boot(m, p) && is_of_database(m, p);
}

/* It is not valid, but sessions live in it: why is it not ours? */
static wq_err
refuse(const struct wq__side *s, const struct place *p)
{
    if (!is_known_layout(s->m))
        return wq_fail(WQ_EVERSION,
                       "processes with another release of wq use '%s', or "
                       "scripts hold keys that it gave them; end them, or use "
                       "their release",
                       s->dir);
    if (!is_of_boot(s->m, p))
        return wq_fail(WQ_ENOTSUP,
                       "another machine uses '%s'; a database can only be "
                       "shared within one machine",
                       s->dir);
    return wq_fail(WQ_EAWAY,
                   "processes use the database that '%s' belonged to before "
                   "the file was replaced; stop them",
                   s->dir);
}

static wq_err
make_anew(struct wq__side *s, const struct place *p)
{
    struct wq__side_state *m = s->m;
    uint64_t               made;

    if (wq__random(&made, sizeof made))
        return fail_to("get random numbers for", s->file, "try again");
    atomic_store_explicit(&m->magic, 0, memory_order_seq_cst);
    memset((char *)m + sizeof m->magic, 0, sizeof *m - sizeof m->magic);
    m->layout = WQ__SIDE_LAYOUT;
    memcpy(m->boot, p->boot, sizeof m->boot);
    m->db_dev = p->dev;
    m->db_ino = p->ino;
    atomic_store_explicit(&m->made, made, memory_order_relaxed);
    atomic_store_explicit(&m->magic, WQ__SIDE_MAGIC, memory_order_release);
    return WQ_OK;
}

/* With the writer lock. */
static wq_err
check_or_make(struct wq__side *s, const struct place *p, bool *fresh)
{
    wq_err err = map(s);

    *fresh = false;
    if (err || is_valid(s->m, p))
        return err;
    if (wq__side_is_locked(s, WQ__SIDE_WRITER + 1, 0) ||
        (!is_known_layout(s->m) && is_of_boot(s->m, p) && wq__side_is_held(s)))
        return refuse(s, p);
    *fresh = true;
    return make_anew(s, p);
}

/* WQ_ESTATE: the directory was deleted meanwhile; open it again. */
static wq_err
enter(struct wq__side *s, const struct place *p, bool *fresh)
{
    wq_err err = wq__side_wait_for_lock(s);
    if (err)
        return err;

    err = wq__side_is_in_place(s, 0) ? check_or_make(s, p, fresh) : WQ_ESTATE;
    wq__side_unlock_byte(s, WQ__SIDE_WRITER);
    if (err)
        return err;
    s->made = atomic_load_explicit(&s->m->made, memory_order_relaxed);
    return WQ_OK;
}

/* Another user's process may be between making a file and giving it its rights,
 * and another process may delete the directory: then try again. */
static wq_err
open_and_enter(struct wq__side *s, const struct place *p, bool *fresh)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    wq_err                err = WQ_EIO;

    for (int tries = 0; tries < 10; tries++) {
        errno = 0;
        if ((err = open_directory(s)) == WQ_OK &&
            (err = open_state(s)) == WQ_OK)
            err = enter(s, p, fresh);
        if (err == WQ_OK)
            return WQ_OK;
        const bool again =
            err == WQ_ESTATE || errno == EACCES || errno == ENOENT;
        wq__side_hold_forks();
        wq__side_close_fd(&s->state_fd);
        wq__side_let_forks();
        wq__side_close_fd(&s->dir_fd);
        if (!again)
            return err;
        (void)nanosleep(&pause, NULL);
    }
    return err == WQ_ESTATE
               ? wq_fail(WQ_EAWAY, "another process keeps deleting '%s'",
                         s->dir)
               : err;
}

/* ---- handles ------------------------------------------------------------- */

static char *
join(const char *a, const char *b)
{
    const size_t size = strlen(a) + strlen(b) + 1;
    char        *out = malloc(size);

    if (out)
        (void)snprintf(out, size, "%s%s", a, b);
    return out;
}

/* Symbolic links are followed, as SQLite does: all names of the database must
 * have the same directory. */
static wq_err
find_database(struct wq__side *s, const char *path, struct place *p)
{
    struct stat st;
    char       *real = realpath(path, NULL);

    if (!real || stat(real, &st) != 0) {
        free(real);
        return fail_to("find", path, "create the database first");
    }
    s->dir = join(real, "-wq");
    s->file = s->dir ? join(s->dir, "/state") : NULL;
    free(real);
    if (!s->file)
        return wq_fail(WQ_ENOMEM, "out of memory for '%s-wq'", path);
    s->mode = st.st_mode & 0777;
    s->uid = st.st_uid;
    s->gid = st.st_gid;
    p->dev = st.st_dev;
    p->ino = st.st_ino;
    return WQ_OK;
}

/* Other processes see what this one writes at once, or not at all. */
static wq_err
check_machine(struct place *p)
{
    _Atomic int64_t word = 0;

    if (!atomic_is_lock_free(&word))
        return wq_fail(WQ_ENOTSUP, "the processor has no 64-bit atomics, which "
                                   "processes need to share a database");
    if (!wq__process_read_boot(p->boot))
        return wq_fail(WQ_ENOTSUP,
                       "cannot read /proc/sys/kernel/random/boot_id: %s; "
                       "mount /proc",
                       strerror(errno));
    return WQ_OK;
}

static struct wq__side *
allocate(void)
{
    struct wq__side *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->dir_fd = s->state_fd = s->kick_fd = s->bell_fd = s->news_fd = -1;
    s->look_fd = -1;
    for (int i = 0; i < WQ__SIDE_PEERS; i++)
        s->peers[i].fd = -1;
    for (int i = 0; i < WQ__SIDE_BELLS; i++)
        s->bells[i].fd = -1;
    s->slot = -1;
    s->self = wq__process_self();
    s->look_ns = WQ__SIDE_LOOK_NS;
    s->naps = WQ__SIDE_NAPS;
    s->turn_ns = WQ__SIDE_TURN_NS;
    wq__lock_init(&s->lock);
    wq__side_hold_forks();
    wq__side_enlist(s);
    wq__side_let_forks();
    return s;
}

static void
release(struct wq__side *s)
{
    wq__side_hold_forks();
    wq__side_close_all(s);
    wq__side_delist(s);
    wq__side_let_forks();
    if (s->m)
        (void)munmap(s->m, sizeof *s->m);
    wq__lock_fini(&s->lock);
    free(s->dir);
    free(s->file);
    free(s);
}

static wq_err
open_all(struct wq__side *s, const char *path, bool *fresh)
{
    struct place p;
    wq_err       err = check_machine(&p);

    if (err || (err = find_database(s, path, &p)) != WQ_OK)
        return err;
    s->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->kick_fd < 0)
        return fail_to("make a descriptor for", s->dir,
                       "raise the limit of open files");
    return open_and_enter(s, &p, fresh);
}

wq_err
wq__side_open(const char *path, struct wq__side **out, bool *fresh)
{
    struct wq__side *s = allocate();
    bool             is_fresh = false;

    if (!s)
        return wq_fail(WQ_ENOMEM, "out of memory for '%s-wq'", path);
    const wq_err err = open_all(s, path, &is_fresh);
    if (err) {
        release(s);
        return err;
    }
    *fresh = is_fresh;
    *out = s;
    return WQ_OK;
}

/* A session that the caller did not end has ended now: others need not ask the
 * kernel. Without the writer lock, which another process may have for long. */
static void
abandon_session(struct wq__side *s)
{
    if (s->slot >= 0 && atomic_load_explicit(&wq__side_slot(s, s->slot)->id,
                                             memory_order_relaxed) == s->id)
        atomic_store_explicit(&wq__side_slot(s, s->slot)->until, WQ__SIDE_ENDED,
                              memory_order_seq_cst);
}

void
wq__side_close(struct wq__side *s, bool forked)
{
    if (!s)
        return;
    if (!forked)
        abandon_session(s);
    /* In a child, only a fake clock has a list that the watch must leave. */
    if (s->clock && (!forked || s->watch.listed))
        s->clock->watch(s->clock, &s->watch, WQ_FOREVER);
    release(s);
}

/* ---- numbers ------------------------------------------------------------- */

struct wq__side_counts *
wq__side_counts(struct wq__side *s, uint32_t queue)
{
    return &wq__side_queue(s, queue)->counts;
}

int64_t *
wq__side_last_number(struct wq__side *s)
{
    return &s->m->last_number;
}

uint64_t *
wq__side_commits(struct wq__side *s)
{
    return &s->m->commits;
}

/* Whoever reads that a transaction is on disk needs nothing else from the
 * process that wrote it there: the order of other words does not matter. */
uint64_t
wq__side_synced(struct wq__side *s)
{
    return atomic_load_explicit(&s->m->synced, memory_order_acquire);
}

void
wq__side_raise_synced(struct wq__side *s, uint64_t to)
{
    uint64_t was = atomic_load_explicit(&s->m->synced, memory_order_relaxed);

    while (was < to && !atomic_compare_exchange_weak_explicit(
                           &s->m->synced, &was, to, memory_order_release,
                           memory_order_relaxed))
        ;
}

/* Whoever syncs sets it before it says so to anybody. */
bool
wq__side_is_unsure(struct wq__side *s)
{
    return atomic_load_explicit(&s->m->unsure, memory_order_acquire);
}

void
wq__side_set_unsure(struct wq__side *s, bool unsure)
{
    atomic_store_explicit(&s->m->unsure, unsure, memory_order_release);
}

uint64_t *
wq__side_stamp(struct wq__side *s)
{
    return &s->m->stamp;
}

void
wq__side_forget_counts(struct wq__side *s)
{
    for (uint32_t i = 1; i <= WQ__SIDE_QUEUES; i++)
        wq__side_queue(s, i)->counts.valid = 0;
}
