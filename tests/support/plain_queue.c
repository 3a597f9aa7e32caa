/* SPDX-License-Identifier: MIT */
/* plain_queue.c: a minimal backend, written for clarity; see plain_queue.h.
 *
 * One entry per key, in the order in which READY keys leave. Every change wakes
 * all sleeping threads. Cost: O(n).
 */
#include "support/plain_queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum state { READY, HELD, DIRTY };

struct entry {
    struct entry *next;
    enum state    state;
    wq_item       item; /* its key is the bytes below */
    char          bytes[];
};

struct plain {
    wq_queue        base;
    pthread_mutex_t lock;    /* guards all below */
    pthread_cond_t  changed; /* something below has changed */
    struct entry   *first;   /* READY ones in the order they leave */
    uint64_t        fence;   /* of the latest loan */
    uint64_t        interrupts;
    uint64_t        shutdowns;   /* not counting drains */
    size_t          getting;     /* threads that sleep in get */
    size_t          inside;      /* threads that sleep anywhere */
    bool            interrupted; /* before a get; the next get returns it */
    bool            shutting_down;
    bool            destroying;
};

static struct plain *
enter(const wq_queue *q)
{
    struct plain *p = (struct plain *)(void *)(uintptr_t)q;

    (void)pthread_mutex_lock(&p->lock);
    return p;
}

static void
leave(struct plain *p)
{
    (void)pthread_mutex_unlock(&p->lock);
}

static void
wake_all(struct plain *p)
{
    (void)pthread_cond_broadcast(&p->changed);
}

/* ---- entries ------------------------------------------------------------- */

/* The pointer to the entry, or the end of the list. */
static struct entry **
find_key(struct plain *p, wq_key key)
{
    struct entry **at = &p->first;

    while (*at && ((*at)->item.key.len != key.len ||
                   memcmp((*at)->bytes, key.data, key.len) != 0))
        at = &(*at)->next;
    return at;
}

static struct entry **
find_item(struct plain *p, const wq_item *item)
{
    struct entry **at = &p->first;

    while (*at && &(*at)->item != item)
        at = &(*at)->next;
    return at;
}

static struct entry *
find_ready(struct plain *p)
{
    struct entry *e = p->first;

    while (e && e->state != READY)
        e = e->next;
    return e;
}

static void
append(struct plain *p, struct entry *e)
{
    struct entry **end = &p->first;

    while (*end)
        end = &(*end)->next;
    e->next = NULL;
    e->state = READY;
    *end = e;
}

static wq_err
append_new(struct plain *p, wq_key key)
{
    struct entry *e = malloc(sizeof *e + key.len);
    if (!e)
        return WQ_ENOMEM;

    memcpy(e->bytes, key.data, key.len);
    e->item = (wq_item){.key = {e->bytes, key.len}};
    append(p, e);
    return WQ_OK;
}

/* ---- add, get, done ------------------------------------------------------ */

static wq_err
plain_add(wq_queue *q, wq_key key)
{
    struct plain *p = enter(q);
    struct entry *e = *find_key(p, key);
    wq_err        err = WQ_OK;

    if (p->shutting_down)
        err = WQ_ESHUTDOWN;
    else if (!e)
        err = append_new(p, key);
    else if (e->state == HELD)
        e->state = DIRTY;
    wake_all(p);
    leave(p);
    return err;
}

static struct timespec
deadline_of(int64_t timeout_ns)
{
    const int64_t   second = 1000000000;
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)(timeout_ns / second);
    t.tv_nsec += (long)(timeout_ns % second);
    if (t.tv_nsec >= second) {
        t.tv_sec++;
        t.tv_nsec -= (long)second;
    }
    return t;
}

/* Sleep until a change; false: timed out. */
static bool
sleep_until(struct plain *p, int64_t timeout_ns, const struct timespec *end)
{
    if (timeout_ns == 0)
        return false;
    p->inside++;
    const int rc = timeout_ns == WQ_FOREVER
                       ? pthread_cond_wait(&p->changed, &p->lock)
                       : pthread_cond_timedwait(&p->changed, &p->lock, end);
    p->inside--;
    if (p->destroying)
        wake_all(p);
    return rc != ETIMEDOUT;
}

/* WQ_ENOTFOUND: no key is READY now. */
static wq_err
try_get(struct plain *p, wq_item **out)
{
    struct entry *e = find_ready(p);

    if (!e || p->destroying)
        return p->shutting_down ? WQ_ESHUTDOWN : WQ_ENOTFOUND;
    e->state = HELD;
    e->item.fence = ++p->fence;
    *out = &e->item;
    return WQ_OK;
}

static wq_err
wait_for_work(struct plain *p, int64_t timeout_ns, wq_item **out)
{
    const struct timespec end = deadline_of(timeout_ns);
    const uint64_t        interrupts = p->interrupts;
    bool                  in_time = timeout_ns > 0;
    wq_err                err;

    if (in_time && p->interrupted) {
        p->interrupted = false;
        return WQ_EINTERRUPTED;
    }
    p->getting++;
    while ((err = try_get(p, out)) == WQ_ENOTFOUND) {
        if (p->interrupts != interrupts)
            err = WQ_EINTERRUPTED;
        else if (!in_time)
            err = WQ_ETIMEDOUT;
        if (err != WQ_ENOTFOUND)
            break;
        in_time = sleep_until(p, timeout_ns, &end);
    }
    p->getting--;
    return err;
}

static wq_err
plain_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    struct plain *p = enter(q);
    wq_err        err = try_get(p, out);

    if (err == WQ_ENOTFOUND)
        err = wait_for_work(p, timeout_ns, out);
    leave(p);
    return err;
}

static wq_err
end_loan(struct plain *p, struct entry **at)
{
    struct entry *e = *at;

    if (!e || e->state == READY)
        return WQ_ESTATE;
    *at = e->next;
    if (e->state == DIRTY)
        append(p, e);
    else
        free(e);
    wake_all(p);
    return WQ_OK;
}

static wq_err
plain_done(wq_queue *q, wq_item *item)
{
    struct plain *p = enter(q);
    const wq_err  err = end_loan(p, find_item(p, item));

    leave(p);
    return err;
}

static wq_err
plain_done_key(wq_queue *q, wq_key key)
{
    struct plain *p = enter(q);
    const wq_err  err = end_loan(p, find_key(p, key));

    leave(p);
    return err;
}

static wq_err
plain_len(wq_queue *q, size_t *out)
{
    struct plain *p = enter(q);

    *out = 0;
    for (const struct entry *e = p->first; e; e = e->next)
        *out += e->state == READY;
    leave(p);
    return WQ_OK;
}

/* ---- shutdown ------------------------------------------------------------ */

static void
plain_shutdown(wq_queue *q)
{
    struct plain *p = enter(q);

    p->shutting_down = true;
    p->shutdowns++;
    wake_all(p);
    leave(p);
}

static wq_err
plain_drain(wq_queue *q, int64_t timeout_ns)
{
    const struct timespec end = deadline_of(timeout_ns);
    struct plain         *p = enter(q);
    const uint64_t        shutdowns = p->shutdowns;
    bool                  in_time = timeout_ns > 0;

    p->shutting_down = true;
    wake_all(p);
    while (p->first && p->shutdowns == shutdowns && in_time)
        in_time = sleep_until(p, timeout_ns, &end);
    const wq_err err = !p->first                   ? WQ_OK
                       : p->shutdowns != shutdowns ? WQ_EINTERRUPTED
                                                   : WQ_ETIMEDOUT;
    leave(p);
    return err;
}

static bool
plain_shutting_down(const wq_queue *q)
{
    struct plain *p = enter(q);
    const bool    shutting_down = p->shutting_down;

    leave(p);
    return shutting_down;
}

static void
plain_interrupt(wq_queue *q)
{
    struct plain *p = enter(q);

    p->interrupts++;
    if (p->getting == 0)
        p->interrupted = true;
    wake_all(p);
    leave(p);
}

/* ---- life ---------------------------------------------------------------- */

static void
plain_destroy(wq_queue *q)
{
    plain_shutdown(q);
    struct plain *p = enter(q);

    p->destroying = true;
    while (p->inside)
        (void)pthread_cond_wait(&p->changed, &p->lock);
    leave(p);
    while (p->first) {
        struct entry *e = p->first;
        p->first = e->next;
        free(e);
    }
    (void)pthread_cond_destroy(&p->changed);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

#define REQUIRED_VERBS                                                         \
    .size = sizeof(wq_backend), .name = "plain", .destroy = plain_destroy,     \
    .add = plain_add, .get = plain_get, .done = plain_done, .len = plain_len,  \
    .shutdown = plain_shutdown, .shutting_down = plain_shutting_down

static const wq_backend backends[] = {
    [PLAIN_REQUIRED] = {REQUIRED_VERBS},
    [PLAIN_INTERRUPTIBLE] = {REQUIRED_VERBS, .interrupt = plain_interrupt},
    [PLAIN_BASE] = {REQUIRED_VERBS, .interrupt = plain_interrupt,
                    .done_key = plain_done_key, .drain = plain_drain},
};

wq_err
plain_create(enum plain_verbs verbs, wq_queue **out)
{
    struct plain *p = calloc(1, sizeof *p);
    if (!p)
        return WQ_ENOMEM;

    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&p->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    (void)pthread_mutex_init(&p->lock, NULL);
    const wq_err err = wq_backend_init(&p->base, &backends[verbs]);
    if (err) {
        free(p);
        return err;
    }
    *out = &p->base;
    return WQ_OK;
}
