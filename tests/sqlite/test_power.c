/* SPDX-License-Identifier: MIT */
/* test_power.c: which keys are there after a power loss? [S-15]
 *
 * A round is a process: it opens what the last loss has left, checks it, and
 * uses it with several handles and threads until the disk (crash_vfs.h) loses
 * its power, in the middle of a random change. The ledger is in memory that the
 * rounds share: it says which adds were acknowledged.
 *
 *   - Two racers with a handle each add the same keys at the same time: the
 *     later add merges with one that may not be on disk yet.
 *   - Workers get keys and finish them, not always with success.
 *   - A second queue of the same file has keys with one user, whose state after
 *     a finish is known exactly.
 *
 * WQ_POWER_LOSSES sets how many losses a test has.
 */
#include "support/wq_test.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <wq/limiter.h>
#include <wq/sqlite.h>

#include "sqlite/crash_vfs.h"
#include "sqlite/place.h"
#include "support/audit.h"
#include "support/ledger.h"

/* Without WQ_POWER_LOSSES; fewer in a build that is slow already. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LOSSES = 20 };
#else
enum { LOSSES = 100 };
#endif

enum {
    KEYS = 64,
    FILLS = 1,           /* calls before the loss can happen */
    KINDS = 6,           /* of them: see finish_exact(), add_and_remove() */
    EXACT = 24,          /* keys of the second queue */
    SYNC_US = 500,       /* longest sync: a small SSD's */
    FILL_CHANGES = 8000, /* the same; several checkpoints */
    MAX_CHANGES = 250    /* of a round, until the loss */
};

/* Exit status of a round, besides CRASH_VFS_LOST. */
enum { ROUND_CHECKED = 0, ROUND_FAILED = 1, ROUND_LOST_KEYS = 2 };

/* What an exact key must be after a loss. */
enum expected {
    EXPECT_ANYTHING, /* a call about it is in progress, or promises nothing */
    EXPECT_DEAD,
    EXPECT_READY, /* it may have been handed out since */
    EXPECT_WAITING,
    EXPECT_FAILURES, /* at least `failures` */
    EXPECT_GONE,
};

struct exact {
    _Atomic enum expected expected;
    atomic_uint           failures;
};

static struct shared {
    struct ledger_key keys[KEYS];
    struct exact      exact[EXACT];
    atomic_ullong     fences[KEYS]; /* the largest that a worker has seen */
    atomic_long       adds;         /* acknowledged */
    atomic_long       checked;      /* keys that a loss had to leave */
    atomic_long       lost;
    atomic_long       again; /* keys that are there although they may be done */
    atomic_long       looks; /* rounds that have checked */
} * shared;

/* One process's round. */
static struct round {
    wq_sqlite_sync sync;
    bool           fills; /* the log, until the queue itself empties it */
    bool           lies;  /* the disk ignores syncs of the log */
    uint64_t       seed;
    struct place   at;
    struct place   to;      /* what the loss leaves */
    wq_queue      *a, *b;   /* the same queue */
    wq_queue      *exact;   /* another one in the same file */
    atomic_uint    step[2]; /* of the racers */
} r;

static uint64_t
mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void
sleep_us(long us)
{
    const struct timespec t = {.tv_sec = us / 1000000,
                               .tv_nsec = us % 1000000 * 1000};

    (void)nanosleep(&t, NULL);
}

/* An unexpected error in the workload ends the round, and the test. */
static void
expect_ok(const char *what, wq_err err)
{
    if (err == WQ_OK)
        return;
    (void)fprintf(stderr, "round %llu: %s: %s: %s\n",
                  (unsigned long long)r.seed, what, wq_err_name(err),
                  wq_last_error());
    _exit(ROUND_FAILED);
}

static wq_key
name_key(char text[16], const char *prefix, unsigned i)
{
    (void)snprintf(text, 16, "%s%u", prefix, i);
    return wq_str(text);
}

static unsigned
number_of(wq_key key)
{
    return (unsigned)atoi((const char *)key.data + 1);
}

static wq_queue *
open_queue(const char *name)
{
    wq_queue *q = NULL;

    expect_ok("open",
              wq_sqlite_open(r.at.db,
                             WQ_SQLITE_OPTIONS(.queue = name, .sync = r.sync,
                                               .max_expiries = UINT_MAX),
                             WQ_CONFIG(.limiter = wq_limiter_exponential(
                                           WQ_MS(1), WQ_MS(20))),
                             &q));
    return q;
}

/* ---- what the last loss has left ----------------------------------------- */

static wq_key_info
look_at(wq_queue *q, wq_key key)
{
    wq_key_info info = {.size = sizeof info};

    expect_ok("read key", wq_read_key(q, key, &info));
    return info;
}

static void
report_loss(const char *what, unsigned i, const wq_key_info *info)
{
    atomic_fetch_add(&shared->lost, 1);
    if (r.sync == WQ_SQLITE_SYNC_LAZY || r.lies)
        return;
    (void)fprintf(stderr,
                  "round %llu: %s %u: states %u, failures %u; want %u, acked "
                  "%u, done %u\n",
                  (unsigned long long)r.seed, what, i, info->states,
                  info->requeues, shared->keys[i].want, shared->keys[i].acked,
                  shared->keys[i].done);
}

static void
check_key(unsigned i)
{
    struct ledger_key *k = &shared->keys[i];
    char               text[16];
    const wq_key_info  info = look_at(r.a, name_key(text, "k", i));
    const bool is_there = info.states & (WQ_STATE_READY | WQ_STATE_WAITING);

    if (info.states & (WQ_STATE_HELD | WQ_STATE_DEAD)) {
        (void)fprintf(stderr, "round %llu: key %u: states %u\n",
                      (unsigned long long)r.seed, i, info.states);
        _exit(ROUND_FAILED);
    }
    if (ledger_owes(k)) {
        atomic_fetch_add(&shared->checked, 1);
        if (!is_there)
            report_loss("lost key", i, &info);
    } else if (is_there) {
        atomic_fetch_add(&shared->again, 1);
    }
    if (!is_there) /* report each loss once */
        atomic_store(&k->done, atomic_load(&k->want));
}

static bool
is_as_expected(const struct exact *e, const wq_key_info *info)
{
    switch (atomic_load(&e->expected)) {
    case EXPECT_ANYTHING:
        return true;
    case EXPECT_DEAD:
        return info->states == WQ_STATE_DEAD;
    case EXPECT_READY:
        return info->states == WQ_STATE_READY;
    case EXPECT_WAITING:
        return info->states == WQ_STATE_WAITING;
    case EXPECT_FAILURES:
        return info->requeues >= atomic_load(&e->failures);
    case EXPECT_GONE:
        return info->states == 0;
    }
    return false;
}

static void
check_exact(unsigned i)
{
    struct exact     *e = &shared->exact[i];
    char              text[16];
    const wq_key_info info = look_at(r.exact, name_key(text, "e", i));

    if (atomic_load(&e->expected) != EXPECT_ANYTHING)
        atomic_fetch_add(&shared->checked, 1);
    if (!is_as_expected(e, &info)) {
        report_loss("changed exact key", i, &info);
        atomic_store(&e->expected, EXPECT_ANYTHING);
    }
}

static bool
is_ours(void *ctx, wq_key key, const wq_key_info *info)
{
    (void)ctx, (void)info;
    if (key.len < 2 || *(const char *)key.data != 'k' ||
        number_of(key) >= KEYS ||
        atomic_load(&shared->keys[number_of(key)].want) == 0) {
        (void)fprintf(stderr, "a key that was never added: %.*s\n",
                      (int)key.len, (const char *)key.data);
        _exit(ROUND_FAILED);
    }
    return true;
}

static void
check_all(void)
{
    const long lost = atomic_load(&shared->lost);

    MUST(strcmp(place_integrity(r.at.db), "ok") == 0);
    MUST(audit_is_clean(r.a));
    MUST(audit_is_clean(r.exact));
    expect_ok("walk", wq_each(r.a, 0, is_ours, NULL));
    for (unsigned i = 0; i < KEYS; i++)
        check_key(i);
    for (unsigned i = 0; i < EXACT; i++)
        check_exact(i);
    atomic_fetch_add(&shared->looks, 1);
    if (atomic_load(&shared->lost) != lost && r.sync != WQ_SQLITE_SYNC_LAZY)
        _exit(ROUND_LOST_KEYS);
}

/* ---- the workload -------------------------------------------------------- */

static void
add(wq_queue *q, unsigned i)
{
    struct ledger_key *k = &shared->keys[i];
    const unsigned     ticket = ledger_take_ticket(k);
    char               text[16];

    expect_ok("add", wq_add(q, name_key(text, "k", i)));
    ledger_raise(&k->acked, ticket);
    atomic_fetch_add(&shared->adds, 1);
}

/* Wait a moment for the other racer. */
static void
meet(unsigned self, unsigned step)
{
    atomic_store(&r.step[self], step);
    for (int i = 0; i < 200 && atomic_load(&r.step[!self]) < step; i++)
        (void)sched_yield();
}

static void *
race(void *arg)
{
    const unsigned self = arg != NULL;

    for (unsigned step = 1;; step++) {
        meet(self, step);
        add(self ? r.b : r.a, (unsigned)(r.seed + step) % KEYS);
    }
    return NULL;
}

/* Several keys at once, with a delay that passes soon. */
static void *
add_batches(void *arg)
{
    uint64_t random = r.seed;

    (void)arg;
    for (;;) {
        unsigned at[4], tickets[4];
        char     text[4][16];
        wq_key   keys[4];

        for (unsigned i = 0; i < 4; i++) {
            random = mix(random + i + 1);
            at[i] = (unsigned)(random % KEYS);
            tickets[i] = ledger_take_ticket(&shared->keys[at[i]]);
            keys[i] = name_key(text[i], "k", at[i]);
        }
        expect_ok("add with", wq_add_with(r.b,
                                          WQ_ADD(.priority = (int)(random & 3),
                                                 .after_ns = WQ_MS(1)),
                                          keys, 4));
        for (unsigned i = 0; i < 4; i++)
            ledger_raise(&shared->keys[at[i]].acked, tickets[i]);
        atomic_fetch_add(&shared->adds, 4);
        sleep_us((long)(random >> 32) % 2000);
    }
    return NULL;
}

/* Only a done ends what the adds asked for. */
static wq_result
choose_result(uint64_t random)
{
    switch (random % 16) {
    case 0:
        return wq_result_retry();
    case 1:
        return wq_result_after(WQ_MS(2));
    case 2:
        return wq_result_back();
    default:
        return wq_result_done();
    }
}

/* A resource that the worker uses remembers fences over the loss. */
static void
check_fence(const wq_item *item)
{
    const unsigned     i = number_of(item->key);
    unsigned long long was = atomic_load(&shared->fences[i]);

    if (item->fence <= was && r.sync != WQ_SQLITE_SYNC_LAZY && !r.lies) {
        (void)fprintf(stderr, "round %llu: key %u: fence %llu after %llu\n",
                      (unsigned long long)r.seed, i,
                      (unsigned long long)item->fence, was);
        _exit(ROUND_FAILED);
    }
    atomic_store(&shared->fences[i], item->fence);
}

static void *
work(void *q)
{
    uint64_t random = r.seed + (q == r.b);

    for (;;) {
        wq_item     *item;
        const wq_err err = wq_get_within(q, WQ_SECONDS(1), &item);

        if (err == WQ_ETIMEDOUT)
            continue;
        expect_ok("get", err);
        check_fence(item);
        struct ledger_key *k = &shared->keys[number_of(item->key)];
        const unsigned     want = atomic_load(&k->want);
        random = mix(random + 1);
        sleep_us((long)(random >> 40) % 300);
        const wq_result result = choose_result(random);
        if (result.outcome == WQ_RESULT_DONE)
            ledger_raise(&k->done, want);
        expect_ok("finish", wq_finish(q, item, result));
    }
    return NULL;
}

/* The results whose effect is on disk when the finish has returned. */
static void
finish_exact(wq_item *item)
{
    const unsigned i = number_of(item->key);
    struct exact  *e = &shared->exact[i];

    atomic_store(&e->expected, EXPECT_ANYTHING);
    atomic_store(&e->failures, wq_num_requeues(r.exact, item->key) + 1);
    switch (i % KINDS) {
    case 0:
        expect_ok("bury", wq_finish(r.exact, item, wq_result_bury()));
        atomic_store(&e->expected, EXPECT_DEAD);
        break;
    case 1:
        expect_ok("after",
                  wq_finish(r.exact, item, wq_result_after(WQ_SECONDS(3600))));
        atomic_store(&e->expected, EXPECT_WAITING);
        break;
    case 2:
        expect_ok("retry", wq_finish(r.exact, item, wq_result_retry()));
        atomic_store(&e->expected, EXPECT_FAILURES);
        break;
    default:
        expect_ok("done", wq_finish(r.exact, item, wq_result_done()));
        if (r.sync == WQ_SQLITE_SYNC_ALL)
            atomic_store(&e->expected, EXPECT_GONE);
    }
}

/* Keys that are added only to be removed. */
static void
add_and_remove(unsigned i, wq_key key)
{
    expect_ok("add exact", i % KINDS == 4
                               ? wq_add(r.exact, key)
                               : wq_add_after(r.exact, key, WQ_SECONDS(3600)));
    expect_ok("remove", i % KINDS == 4 ? wq_remove(r.exact, key)
                                       : wq_cancel_after(r.exact, key));
    atomic_store(&shared->exact[i].expected, EXPECT_GONE);
}

static void
add_or_revive(unsigned i, wq_key key)
{
    const wq_err err = wq_revive(r.exact, key);

    if (err == WQ_ENOTFOUND) {
        expect_ok("add exact", wq_add(r.exact, key));
        return;
    }
    expect_ok("revive", err);
    atomic_store(&shared->exact[i].expected, EXPECT_READY);
}

static void *
work_exactly(void *arg)
{
    uint64_t random = r.seed;

    (void)arg;
    for (;;) {
        char     text[16];
        wq_item *item;

        random = mix(random + 1);
        const unsigned i = (unsigned)(random % EXACT);
        const wq_key   key = name_key(text, "e", i);
        atomic_store(&shared->exact[i].expected, EXPECT_ANYTHING);
        if (i % KINDS >= 4) {
            add_and_remove(i, key);
            continue;
        }
        add_or_revive(i, key);
        expect_ok("get exact", wq_get_within(r.exact, WQ_SECONDS(5), &item));
        finish_exact(item);
    }
    return NULL;
}

/* Copy the log into the database now and then, as the shell of SQLite may. */
static void *
checkpoint(void *arg)
{
    (void)arg;
    for (;;) {
        sleep_us(3000);
        (void)place_sql(r.at.db, r.seed & 64
                                     ? "PRAGMA wal_checkpoint(TRUNCATE)"
                                     : "PRAGMA wal_checkpoint(RESTART)");
    }
    return NULL;
}

/* Long keys: some hundred pages of the log for each call. */
static void
add_long_keys(unsigned call)
{
    enum { MANY = 32 };
    static char bytes[MANY][WQ_KEY_MAX];
    wq_key      keys[MANY];

    for (unsigned i = 0; i < MANY; i++) {
        memset(bytes[i], 'x', sizeof bytes[i]);
        (void)snprintf(bytes[i], 32, "%u/%u", call, i);
        keys[i] = wq_bytes(bytes[i], sizeof bytes[i]);
    }
    expect_ok("add long keys",
              wq_add_with(r.exact, WQ_ADD(.priority = -1), keys, MANY));
}

static void *
fill(void *arg)
{
    (void)arg;
    for (unsigned i = FILLS;; i++)
        add_long_keys(i);
    return NULL;
}

static void
start(void *(*run)(void *), void *arg)
{
    pthread_t t;

    MUST(pthread_create(&t, NULL, run, arg) == 0);
}

static _Noreturn void
use_until_loss(void)
{
    start(race, NULL);
    start(race, &r);
    start(add_batches, NULL);
    start(work, r.a);
    start(work, r.b);
    start(r.fills ? fill : work_exactly, NULL);
    if (r.seed % 3 == 0)
        start(checkpoint, NULL);
    for (long before = -1; crash_vfs_changes() != before;) {
        before = crash_vfs_changes();
        sleep_us(10000000);
    }
    (void)fprintf(stderr, "round %llu: no change in 10 s\n",
                  (unsigned long long)r.seed);
    _exit(ROUND_FAILED);
}

static void
open_all(void)
{
    r.a = open_queue(NULL);
    r.b = open_queue(NULL);
    r.exact = open_queue("exact");
}

static void
close_all(void)
{
    wq_destroy(r.a);
    wq_destroy(r.b);
    wq_destroy(r.exact);
}

static _Noreturn void
run_round(bool is_last)
{
    const uint64_t random = mix(r.seed * 2 + 1);
    const long     nth =
        1 + (long)(random % (r.fills ? FILL_CHANGES : MAX_CHANGES));

    crash_vfs_install();
    crash_vfs_set_sync_time(SYNC_US);
    if (r.lies)
        crash_vfs_ignore_log_syncs();
    /* Every fourth loss may hit the recovery, too. */
    if (!is_last && !r.fills && r.seed % 4 == 3)
        crash_vfs_lose_power_at(1 + nth / 8, random >> 8, r.to.dir);
    open_all();
    check_all();
    if (is_last)
        _exit(ROUND_CHECKED);
    for (unsigned i = 0; r.fills && i < FILLS; i++)
        add_long_keys(i);
    if (r.fills || r.seed % 4 != 3)
        crash_vfs_lose_power_at(nth, random >> 8, r.to.dir);
    /* The last handle that is closed moves the log into the database. */
    if (r.seed % 5 == 0 && !r.fills) {
        close_all();
        open_all();
    }
    use_until_loss();
}

/* ---- the tests ----------------------------------------------------------- */

static int
in_child(bool is_last)
{
    const pid_t child = fork();
    int         status = -1;

    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(60);
        run_round(is_last);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status))
        fail_msg("round %llu: killed by signal %d", (unsigned long long)r.seed,
                 WTERMSIG(status));
    return WEXITSTATUS(status);
}

static long
losses_wanted(void)
{
    const char *text = getenv("WQ_POWER_LOSSES");
    const long  n = text ? atol(text) : 0;

    return n > 0 ? n : LOSSES;
}

static void
begin(wq_sqlite_sync sync, const struct place *parent)
{
    shared = must_share(sizeof *shared);
    r = (struct round){.sync = sync};
    r.at = place_make_below(parent, "0");
}

/* The directory of the round is over; what the loss has left is the next. */
static void
move_on(void)
{
    place_remove(&r.at);
    r.at = r.to;
}

static void
name_next(const struct place *parent, long i)
{
    char name[24];

    (void)snprintf(name, sizeof name, "%ld", i);
    r.seed = (uint64_t)i;
    r.to = place_make_below(parent, name);
}

static void
print_figures(const char *sync, long losses)
{
    print_message("sync=%s: %ld losses, %ld adds, %ld keys owed after a loss, "
                  "%ld lost, %ld ran again\n",
                  sync, losses, shared->adds, shared->checked, shared->lost,
                  shared->again);
}

static void
lose_often(wq_sqlite_sync sync, const char *name, long losses)
{
    const struct place parent = place_make();

    begin(sync, &parent);
    for (long i = 1; i <= losses; i++) {
        name_next(&parent, i);
        assert_int_equal(in_child(false), CRASH_VFS_LOST);
        move_on();
    }
    assert_int_equal(in_child(true), ROUND_CHECKED);
    print_figures(name, losses);
    place_remove(&parent);
    assert_true(shared->looks > losses / 2);
}

TEST(acknowledged_adds_survive_power_losses)
{
    lose_often(WQ_SQLITE_SYNC_ADDS, "adds", losses_wanted());
    assert_true(shared->checked > 0);
    assert_int_equal(shared->lost, 0);
}

TEST(every_change_survives_power_losses_with_sync_all)
{
    lose_often(WQ_SQLITE_SYNC_ALL, "all", losses_wanted());
    assert_true(shared->checked > 0);
    assert_int_equal(shared->lost, 0);
}

TEST(file_survives_power_losses_with_sync_lazy)
{
    lose_often(WQ_SQLITE_SYNC_LAZY, "lazy", losses_wanted() / 4);
}

/* The log is full: the queue moves it into the database, and begins it anew. */
TEST(acknowledged_adds_survive_losses_in_a_checkpoint)
{
    const struct place parent = place_make();
    const long         losses = losses_wanted() / 8;
    long               checked = 0;

    for (long i = 1; i <= losses; i++) {
        begin(WQ_SQLITE_SYNC_ADDS, &parent);
        r.fills = true;
        name_next(&parent, i);
        assert_int_equal(in_child(false), CRASH_VFS_LOST);
        move_on();
        assert_int_equal(in_child(true), ROUND_CHECKED);
        place_remove(&r.at);
        assert_int_equal(shared->lost, 0);
        checked += shared->checked;
    }
    print_message("%ld losses, %ld keys owed after a loss, 0 lost\n", losses,
                  checked);
    place_remove(&parent);
    assert_true(checked > 0);
}

/* A test of the test: a disk that does not sync must be noticed. A file that a
 * checkpoint has broken then is as good as lost keys. */
TEST(test_notices_a_log_that_is_not_synced)
{
    const struct place parent = place_make();
    long               noticed = 0;

    begin(WQ_SQLITE_SYNC_ADDS, &parent);
    r.lies = true;
    for (long i = 1; i <= 24 && noticed < 4; i++) {
        name_next(&parent, i);
        const int status = in_child(false);
        if (status != CRASH_VFS_LOST) {
            noticed++;
            memset(shared->keys, 0, sizeof shared->keys);
            memset(shared->exact, 0, sizeof shared->exact);
            place_remove(&r.to);
            name_next(&parent, i + 1000);
        }
        move_on();
    }
    print_figures("adds, ignored by the disk", noticed);
    place_remove(&parent);
    assert_true(shared->lost > 0);
}

WQ_TESTS(test(acknowledged_adds_survive_power_losses),
         test(every_change_survives_power_losses_with_sync_all),
         test(file_survives_power_losses_with_sync_lazy),
         test(acknowledged_adds_survive_losses_in_a_checkpoint),
         test(test_notices_a_log_that_is_not_synced));
