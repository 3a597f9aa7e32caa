/* SPDX-License-Identifier: MIT */
/* crash_plan.c: which call of SQLite is the last one, and which one fails? See
 * crash_vfs.h.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sqlite/crash_inside.h"

static struct {
    pthread_mutex_t mutex; /* guards all below, and crash_disk.c */

    long        changes;
    long        lose_at; /* value of `changes`; 0: never */
    uint64_t    seed;
    const char *to;
    bool        ignores_log_syncs;
    long        log_syncs;
    long        kill_in; /* calls until the process is killed; 0: it is not */
    unsigned    sync_us;

    unsigned           fail_calls;
    long               fail_in; /* calls until one fails; 0: none does */
    enum crash_vfs_how how;
    bool               for_good;
    long               failures;
    char               failed[128];
    int64_t            capacity;
} plan = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- what the VFS asks ----------------------------------------------------- */

void
crash_lock(void)
{
    (void)pthread_mutex_lock(&plan.mutex);
}

void
crash_enter(void)
{
    crash_lock();
    if (plan.kill_in && --plan.kill_in == 0)
        (void)kill(getpid(), SIGKILL);
}

void
crash_leave(void)
{
    (void)pthread_mutex_unlock(&plan.mutex);
}

static _Noreturn void
lose_power(uint64_t seed, const char *to)
{
    disk_lose_power(seed, to);
    _exit(CRASH_VFS_LOST);
}

void
crash_count_change(void)
{
    if (++plan.changes == plan.lose_at)
        lose_power(plan.seed, plan.to);
}

bool
crash_fails(enum crash_vfs_call call, const char *name, const char *path)
{
    if (plan.fail_in == 0 || !(plan.fail_calls & call) || --plan.fail_in > 0)
        return false;
    plan.fail_in = plan.for_good ? 1 : 0;
    plan.failures++;
    const char *base = path ? strrchr(path, '/') : NULL;
    (void)snprintf(plan.failed, sizeof plan.failed, "%s of %s", name,
                   base ? base + 1 : "a file");
    return true;
}

enum crash_vfs_how
crash_how(void)
{
    return plan.how;
}

bool
crash_is_over_capacity(int64_t more)
{
    return plan.capacity && more > 0 && disk_bytes() + more > plan.capacity;
}

bool
crash_ignores_log_sync(void)
{
    plan.log_syncs++;
    return plan.ignores_log_syncs;
}

unsigned
crash_draw_sync_us(void)
{
    return plan.sync_us ? (unsigned)(disk_draw() % plan.sync_us) : 0;
}

/* ---- what tests ask -------------------------------------------------------- */

void
crash_vfs_reset(void)
{
    crash_lock();
    disk_forget_all();
    plan.fail_in = 0;
    plan.capacity = 0;
    crash_leave();
}

void
crash_vfs_power_loss(uint64_t seed, const char *to)
{
    crash_lock();
    lose_power(seed, to);
}

void
crash_vfs_lose_power_at(long nth, uint64_t seed, const char *to)
{
    crash_lock();
    plan.lose_at = plan.changes + nth;
    plan.seed = seed;
    plan.to = to;
    disk_set_chance(seed);
    crash_leave();
}

static long
read_count(const long *count)
{
    crash_lock();
    const long n = *count;
    crash_leave();
    return n;
}

long
crash_vfs_changes(void)
{
    return read_count(&plan.changes);
}

long
crash_vfs_log_syncs(void)
{
    return read_count(&plan.log_syncs);
}

void
crash_vfs_kill_at(long nth)
{
    crash_lock();
    plan.kill_in = nth;
    crash_leave();
}

void
crash_vfs_ignore_log_syncs(void)
{
    crash_lock();
    plan.ignores_log_syncs = true;
    crash_leave();
}

void
crash_vfs_set_sync_time(unsigned max_us)
{
    crash_lock();
    plan.sync_us = max_us;
    crash_leave();
}

void
crash_vfs_fail(unsigned calls, long nth, enum crash_vfs_how how, bool for_good)
{
    crash_lock();
    plan.fail_calls = calls;
    plan.fail_in = nth;
    plan.how = how;
    plan.for_good = for_good;
    plan.failures = 0;
    crash_leave();
}

long
crash_vfs_heal(void)
{
    crash_lock();
    plan.fail_in = 0;
    const long n = plan.failures;
    crash_leave();
    return n;
}

const char *
crash_vfs_failed(void)
{
    return plan.failed;
}

void
crash_vfs_set_capacity(int64_t bytes)
{
    crash_lock();
    plan.capacity = bytes;
    crash_leave();
}

int64_t
crash_vfs_bytes(void)
{
    crash_lock();
    const int64_t n = disk_bytes();
    crash_leave();
    return n;
}
