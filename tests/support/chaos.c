/* SPDX-License-Identifier: MIT */
/* chaos.c: processes that die and stop, and what they must keep; see chaos.h. */
#define _GNU_SOURCE /* CLOCK_BOOTTIME */
#include "support/chaos.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/audit.h"
#include "support/ledger.h"
#include "support/must.h"

enum {
    KEYS = 32,
    SLOTS = 6,   /* worker processes at a time */
    THREADS = 2, /* that work, in each */
    WORKERS = SLOTS * THREADS,
    REST_LIMIT_MS = 20000, /* far more than all backoffs and handlers take */
};

enum phase { RUN, REST, END };

struct key {
    struct ledger_key ledger; /* `done`: seen by a worker */
    atomic_uint       holder; /* generation of the process * WORKERS + worker,
                                 see mark(); 0: none */
    atomic_ullong     fence;  /* the largest that a holder has shown */
};

/* What a worker is certain of. */
struct worker {
    atomic_int   key;      /* -1: none */
    atomic_llong until_ns; /* it holds the key until then at least */
};

static struct shared {
    struct key    keys[KEYS];
    struct worker workers[WORKERS];
    atomic_uint   generation[SLOTS]; /* odd: alive */
    atomic_bool   is_adding[SLOTS];  /* its producer is at it, or about to */
    atomic_int    phase;
    atomic_uint   rests;        /* begun */
    atomic_uint   rest_is_idle; /* the number of a rest in which the janitor
                                  found the queue idle */
    atomic_long   adds, gets, dones, retries, buried, revived, lost_finishes;
    atomic_long   away; /* WQ_EAWAY, WQ_EIO and WQ_ENOMEM */
    atomic_long   twice, back, stale, errors, broken;
} * s;

static const struct chaos *store;

/* ---- small words --------------------------------------------------------- */

static int64_t
now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * WQ_SECONDS(1) + t.tv_nsec;
}

static void
sleep_us(long us)
{
    const struct timespec t = {.tv_sec = us / 1000000,
                               .tv_nsec = us % 1000000 * 1000};

    if (us > 0)
        (void)nanosleep(&t, NULL);
}

static uint64_t
draw(uint64_t *random)
{
    uint64_t z = (*random += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool
is_passing(wq_err err)
{
    return err == WQ_EAWAY || err == WQ_EIO || err == WQ_ENOMEM;
}

/* An error that no verb may return here. */
static void
report_error(const char *what, wq_err err)
{
    atomic_fetch_add(&s->errors, 1);
    (void)fprintf(stderr, "chaos: %s: %s: %s\n", what, wq_err_name(err),
                  wq_last_error());
}

static wq_queue *
open_queue(unsigned slot)
{
    wq_queue *q = NULL;
    wq_err    err;

    for (int i = 0; i < 500; i++) {
        err = store->open(slot, &q);
        if (!is_passing(err))
            break;
        atomic_fetch_add(&s->away, 1);
        sleep_us(10000);
    }
    if (err) {
        report_error("open", err);
        _exit(1);
    }
    return q;
}

/* ---- who holds a key? ---------------------------------------------------- */

static unsigned
mark_of(unsigned worker)
{
    return atomic_load(&s->generation[worker / THREADS]) * WORKERS + worker;
}

/* Is the worker that left this mark certain to hold the key now? One that the
 * supervisor is about to kill may still leave a mark, with an even generation. */
static bool
is_certain(unsigned mark, int key, int64_t now)
{
    const unsigned       worker = mark % WORKERS;
    const struct worker *w = &s->workers[worker];
    const bool           is_alive = mark / WORKERS % 2 == 1;

    return is_alive && mark == mark_of(worker) && atomic_load(&w->key) == key &&
           now < atomic_load(&w->until_ns);
}

/* Until when is this worker certain? Reads the clock first. */
static void
note_certainty(wq_queue *q, const wq_item *item, struct worker *self)
{
    const int64_t now = now_ns();
    const int64_t left = wq_hold_left(q, item);

    atomic_store(&self->until_ns,
                 left > INT64_MAX - now ? INT64_MAX : now + left);
}

/* A resource takes the fence of its user; is it in order? */
static void
show_fence(int key, uint64_t fence, unsigned mark)
{
    atomic_ullong     *largest = &s->keys[key].fence;
    unsigned long long was = atomic_load(largest);

    while (was < fence && !atomic_compare_exchange_weak(largest, &was, fence))
        ;
    if (was >= fence && is_certain(mark, key, now_ns())) {
        atomic_fetch_add(&s->back, 1);
        (void)fprintf(stderr, "chaos: key %d: fence %llu after %llu\n", key,
                      (unsigned long long)fence, was);
    }
}

static void
compare_holders(int key, unsigned mark, unsigned other)
{
    const int64_t now = now_ns();

    if (other == mark || !is_certain(other, key, now) ||
        !is_certain(mark, key, now))
        return;
    atomic_fetch_add(&s->twice, 1);
    (void)fprintf(stderr, "chaos: key %d: held by %u.%u and %u.%u\n", key,
                  mark % WORKERS, mark / WORKERS, other % WORKERS,
                  other / WORKERS);
}

static void
begin_hold(wq_queue *q, const wq_item *item, int key, unsigned worker)
{
    struct worker *self = &s->workers[worker];
    const unsigned mark = mark_of(worker);

    note_certainty(q, item, self);
    atomic_store(&self->key, key);
    if (!is_certain(mark, key, now_ns()))
        return; /* was stopped for too long: another one may hold it */
    compare_holders(key, mark, atomic_exchange(&s->keys[key].holder, mark));
    show_fence(key, item->fence, mark);
}

static void
look_during_hold(wq_queue *q, const wq_item *item, int key, unsigned worker)
{
    note_certainty(q, item, &s->workers[worker]);
    compare_holders(key, mark_of(worker), atomic_load(&s->keys[key].holder));
}

/* Before the finish: as soon as that is carried out, another worker may hold
 * the key. */
static void
end_hold(int key, unsigned worker)
{
    unsigned mark = mark_of(worker);

    atomic_store(&s->workers[worker].key, -1);
    (void)atomic_compare_exchange_strong(&s->keys[key].holder, &mark, 0);
}

/* ---- workers ------------------------------------------------------------- */

static long
choose_time_us(uint64_t random)
{
    const uint64_t kind = random % 100, part = (random >> 32) % 1000;

    if (kind < 70)
        return 0;
    if (kind < 90)
        return (long)(1000 + 4 * part);
    if (kind < 98)
        return (long)(10000 + 30 * part);
    return store->leases ? CHAOS_LEASE_MS * 2000L : 100000;
}

static wq_result
choose_result(uint64_t random)
{
    switch (random >> 8 & 31) {
    case 0:
    case 1:
    case 2:
        atomic_fetch_add(&s->retries, 1);
        return wq_result_retry();
    case 3:
        atomic_fetch_add(&s->buried, 1);
        return wq_result_bury();
    case 4:
        return wq_result_back();
    case 5:
        return wq_result_after(WQ_MS(5));
    default:
        atomic_fetch_add(&s->dones, 1);
        return wq_result_done();
    }
}

static void
finish(wq_queue *q, wq_item *item, int key, wq_result result)
{
    const uint64_t fence = item->fence;
    const bool     is_stale = atomic_load(&s->keys[key].fence) > fence;
    wq_err         err;

    while (is_passing(err = wq_finish(q, item, result))) {
        atomic_fetch_add(&s->away, 1);
        sleep_us(1000);
    }
    if (err == WQ_ELOST && store->leases) {
        atomic_fetch_add(&s->lost_finishes, 1);
        return;
    }
    if (is_stale) {
        atomic_fetch_add(&s->stale, 1);
        (void)fprintf(stderr, "chaos: key %d: stale finish: %s\n", key,
                      wq_err_name(err));
    }
    if (err)
        report_error("finish", err);
}

static void
handle(wq_queue *q, wq_item *item, unsigned worker, uint64_t random)
{
    const int          key = atoi((const char *)item->key.data + 1);
    struct ledger_key *k = &s->keys[key].ledger;

    begin_hold(q, item, key, worker);
    const unsigned want = atomic_load(&k->want);
    for (long us = choose_time_us(random); us >= 0; us -= 5000) {
        sleep_us(us < 5000 ? us : 5000);
        look_during_hold(q, item, key, worker);
    }
    const wq_result result = choose_result(random);
    if (result.outcome == WQ_RESULT_DONE)
        ledger_raise(&k->done, want);
    end_hold(key, worker);
    finish(q, item, key, result);
}

struct thread {
    wq_queue *q;
    unsigned  slot, worker;
    pthread_t thread;
};

static void *
work(void *arg)
{
    const struct thread *t = arg;
    uint64_t             random = (uint64_t)getpid() * 8 + t->worker;

    while (atomic_load(&s->phase) != END) {
        wq_item     *item;
        const wq_err err = wq_get_within(t->q, WQ_MS(200), &item);

        if (err == WQ_OK) {
            atomic_fetch_add(&s->gets, 1);
            handle(t->q, item, t->worker, draw(&random));
        } else if (is_passing(err)) {
            atomic_fetch_add(&s->away, 1);
            sleep_us(1000);
        } else if (err != WQ_ETIMEDOUT) {
            report_error("get", err);
        }
    }
    return NULL;
}

static void
add(wq_queue *q, int key, uint64_t random)
{
    struct ledger_key *k = &s->keys[key].ledger;
    const unsigned     ticket = ledger_take_ticket(k);
    char               text[16];

    (void)snprintf(text, sizeof text, "k%d", key);
    const wq_add_options how = {
        .size = sizeof how,
        .priority = (int)(random >> 40 & 3),
        .after_ns = (random >> 48 & 7) == 0 ? WQ_MS(2) : 0,
    };
    const wq_err err = wq_add_one_str(q, text, &how);
    if (err == WQ_OK) {
        ledger_raise(&k->acked, ticket);
        atomic_fetch_add(&s->adds, 1);
    } else if (is_passing(err)) {
        atomic_fetch_add(&s->away, 1);
    } else {
        report_error("add", err);
    }
}

static void *
produce(void *arg)
{
    const struct thread *t = arg;
    uint64_t             random = (uint64_t)getpid() * 8 + 7;

    while (atomic_load(&s->phase) != END) {
        const uint64_t r = draw(&random);

        atomic_store(&s->is_adding[t->slot], true);
        if (atomic_load(&s->phase) == RUN)
            add(t->q, (int)(r % KEYS), r);
        atomic_store(&s->is_adding[t->slot], false);
        sleep_us((long)(r >> 16) % 2000);
    }
    return NULL;
}

static _Noreturn void
run_worker_process(unsigned slot)
{
    struct thread t[THREADS + 1];

    wq_queue *q = open_queue(slot);
    for (unsigned i = 0; i <= THREADS; i++) {
        t[i] = (struct thread){q, slot, slot * THREADS + i, 0};
        MUST(pthread_create(&t[i].thread, NULL, i < THREADS ? work : produce,
                            &t[i]) == 0);
    }
    for (unsigned i = 0; i <= THREADS; i++)
        (void)pthread_join(t[i].thread, NULL);
    wq_destroy(q);
    _exit(0);
}

/* ---- the janitor --------------------------------------------------------- */

static bool
revive(void *q, wq_key key, const wq_key_info *info)
{
    (void)info;
    const wq_err err = wq_revive(q, key);
    if (err == WQ_OK)
        atomic_fetch_add(&s->revived, 1);
    else if (err != WQ_ENOTFOUND && !is_passing(err))
        report_error("revive", err);
    return true;
}

static bool
is_idle(wq_queue *q)
{
    wq_stats stats = {.size = sizeof stats};

    return wq_read_stats(q, &stats) == WQ_OK && stats.ready == 0 &&
           stats.held == 0 && stats.waiting == 0 && stats.dead == 0;
}

static bool
is_handled(const struct key *k)
{
    return !ledger_owes(&k->ledger);
}

static bool
print_key(void *ctx, wq_key key, const wq_key_info *info)
{
    (void)ctx;
    (void)fprintf(stderr, "chaos: at the end: %.*s: states %u, fence %llu\n",
                  (int)key.len, (const char *)key.data, info->states,
                  (unsigned long long)info->fence);
    return true;
}

/* Is the store consistent? It may be away, or too busy to answer in time: then
 * nothing is known yet. */
static bool
is_audited(wq_queue *q)
{
    size_t       problems = 0;
    const wq_err err = wq_check(q, audit_print, &problems);

    if (is_passing(err))
        return false;
    if (err)
        report_error("check", err);
    atomic_fetch_add(&s->broken, problems > 0);
    return true;
}

static _Noreturn void
run_janitor(void)
{
    wq_queue *q = open_queue(CHAOS_JANITOR);

    while (atomic_load(&s->phase) != END) {
        const unsigned rest = atomic_load(&s->rests);
        const wq_err   err = wq_each(q, WQ_STATE_DEAD, revive, q);

        if (err && !is_passing(err))
            report_error("each", err);
        if (atomic_load(&s->phase) == REST && is_idle(q) && is_audited(q))
            atomic_store(&s->rest_is_idle, rest);
        sleep_us(10000);
    }
    (void)wq_each(q, 0, print_key, NULL);
    wq_destroy(q);
    _exit(0);
}

/* ---- the supervisor ------------------------------------------------------ */

struct child {
    pid_t   pid;
    int64_t stopped_until; /* 0: it runs */
};

static struct child children[SLOTS];
static pid_t        janitor;
static long         kills, pauses, stuck;

static pid_t
start(void (*run)(unsigned slot), unsigned slot)
{
    (void)fflush(NULL);
    const pid_t pid = fork();

    MUST(pid >= 0);
    if (pid == 0) {
#ifdef __linux__
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
        run(slot);
        _exit(1);
    }
    return pid;
}

static void
be_worker(unsigned slot)
{
    run_worker_process(slot);
}

static void
be_janitor(unsigned slot)
{
    (void)slot;
    run_janitor();
}

static void
start_worker(unsigned slot)
{
    atomic_fetch_add(&s->generation[slot], 1);
    atomic_store(&s->is_adding[slot], false);
    for (unsigned i = 0; i < THREADS; i++)
        atomic_store(&s->workers[slot * THREADS + i].key, -1);
    children[slot] = (struct child){start(be_worker, slot), 0};
}

/* The dead hold nothing: its marks are void before it dies. */
static void
kill_worker(unsigned slot)
{
    atomic_fetch_add(&s->generation[slot], 1);
    (void)kill(children[slot].pid, SIGKILL);
    (void)waitpid(children[slot].pid, NULL, 0);
    kills++;
}

static void
stop_worker(unsigned slot, uint64_t random)
{
    const int64_t longest = store->leases ? 3 * CHAOS_LEASE_MS : 300;

    (void)kill(children[slot].pid, SIGSTOP);
    children[slot].stopped_until =
        now_ns() + WQ_MS(50 + (int64_t)(random % (uint64_t)longest));
    pauses++;
}

static void
continue_workers(bool all)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        struct child *c = &children[i];

        if (c->stopped_until && (all || now_ns() >= c->stopped_until)) {
            (void)kill(c->pid, SIGCONT);
            c->stopped_until = 0;
        }
    }
}

/* A worker that ends by itself has met what it must not. */
static void
check_children(void)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        int status = 0;

        if (waitpid(children[i].pid, &status, WNOHANG) != children[i].pid)
            continue;
        (void)fprintf(stderr, "chaos: a worker process ended: status %x\n",
                      (unsigned)status);
        atomic_fetch_add(&s->errors, 1);
        start_worker(i);
    }
}

static void
disturb(uint64_t *random)
{
    const unsigned slot = (unsigned)(draw(random) % SLOTS);

    if (store->disturb && draw(random) % 3 == 0) {
        store->disturb(draw(random));
    } else if (draw(random) & 1) {
        kill_worker(slot);
        start_worker(slot);
    } else if (!children[slot].stopped_until) {
        stop_worker(slot, draw(random));
    }
}

static void
run_for(int64_t ns, uint64_t *random)
{
    const int64_t end = now_ns() + ns;
    int64_t       next = 0;

    atomic_store(&s->phase, RUN);
    while (now_ns() < end) {
        sleep_us(5000);
        continue_workers(false);
        check_children();
        if (now_ns() >= next) {
            disturb(random);
            next = now_ns() + WQ_MS(60 + (int64_t)(draw(random) % 120));
        }
    }
}

static void
rest(void)
{
    const int64_t limit = now_ns() + WQ_MS(REST_LIMIT_MS);

    continue_workers(true);
    if (store->calm)
        store->calm();
    atomic_store(&s->phase, REST);
    for (unsigned i = 0; i < SLOTS; i++)
        while (atomic_load(&s->is_adding[i]) && now_ns() < limit)
            sleep_us(1000);
    const unsigned number = atomic_fetch_add(&s->rests, 1) + 1;
    while (atomic_load(&s->rest_is_idle) != number && now_ns() < limit)
        sleep_us(5000);
    if (atomic_load(&s->rest_is_idle) != number)
        stuck++;
}

static void
end(void)
{
    atomic_store(&s->phase, END);
    for (unsigned i = 0; i <= SLOTS; i++) {
        const pid_t pid = i < SLOTS ? children[i].pid : janitor;
        int         status = -1;

        MUST(waitpid(pid, &status, 0) == pid);
        if (status != 0) {
            (void)fprintf(stderr, "chaos: a process ended with status %x\n",
                          (unsigned)status);
            atomic_fetch_add(&s->errors, 1);
        }
    }
}

static long
count_lost(void)
{
    long lost = 0;

    for (int i = 0; i < KEYS; i++) {
        const struct ledger_key *k = &s->keys[i].ledger;

        if (is_handled(&s->keys[i]))
            continue;
        lost++;
        (void)fprintf(stderr, "chaos: key %d: acked %u, seen %u\n", i,
                      atomic_load(&k->acked), atomic_load(&k->done));
    }
    return lost;
}

/* The supervisor's whole life; how many keys are lost. */
static long
supervise(long seconds)
{
    uint64_t random = (uint64_t)now_ns();
    long     lost = 0;

    janitor = start(be_janitor, 0);
    for (unsigned i = 0; i < SLOTS; i++)
        start_worker(i);
    const int64_t until = now_ns() + WQ_SECONDS(seconds);
    while (now_ns() < until && lost + stuck == 0) {
        run_for(WQ_MS(1000), &random);
        rest();
        lost = count_lost();
    }
    end();
    if (store->is_intact && !store->is_intact())
        atomic_fetch_add(&s->broken, 1);
    return lost;
}

bool
chaos_run(const struct chaos *c, long seconds)
{
    store = c;
    s = must_share(sizeof *s);
    const long lost = supervise(seconds);
    printf("%s: %ld s, kills %ld, pauses %ld", c->name, seconds, kills, pauses);
    if (c->print)
        c->print();
    printf(", adds %ld, gets %ld, retries %ld, buried %ld, lost holds %ld, "
           "away %ld; lost %ld, double %ld, fences back %ld, stale %ld, stuck "
           "%ld, broken %ld, errors %ld\n",
           s->adds, s->gets, s->retries, s->buried, s->lost_finishes, s->away,
           lost, s->twice, s->back, s->stale, stuck, s->broken, s->errors);
    return !lost && !stuck && !s->twice && !s->back && !s->stale &&
           !s->broken && !s->errors;
}
