/* SPDX-License-Identifier: MIT */
/* test_lease.c: what if a lease ends while its handle waits for the file? (S-16)
 */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "support/wq_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <wq/clock.h>
#include <wq/inspect.h>
#include <wq/sqlite.h>

#include "sqlite/place.h"
#include "support/audit.h"
#include "support/worker.h"

static struct {
    struct place at;
    wq_clock    *clock;
    wq_queue    *a, *b; /* a has a lease that nobody renews */
} f;

static wq_queue *
open_with(wq_sqlite_hold hold)
{
    wq_queue *q = NULL;

    assert_err(
        wq_sqlite_open(
            f.at.db,
            WQ_SQLITE_OPTIONS(.hold = hold, .manual_renew = true,
                              .lease_ns =
                                  hold == WQ_SQLITE_HOLD_LEASE ? 1000 : 0),
            WQ_CONFIG(.clock = f.clock), &q),
        WQ_OK);
    return q;
}

static int
set_up(void **state)
{
    (void)state;
    f.at = place_make();
    f.clock = wq_clock_fake_create(0);
    f.b = open_with(WQ_SQLITE_HOLD_PROCESS);
    f.a = open_with(WQ_SQLITE_HOLD_LEASE);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    wq_destroy(f.a);
    wq_destroy(f.b);
    wq_clock_destroy(f.clock);
    place_remove(&f.at);
    return 0;
}

/* Another process has the writer lock: byte 0 of the state. */
static int
lock_file(void)
{
    char         path[PLACE_PATH + 16];
    struct flock one = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

    (void)snprintf(path, sizeof path, "%s-wq/state", f.at.db);
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &one), 0);
    return fd;
}

static int
get_from_a(struct worker *self)
{
    return (int)wq_get_within(f.a, 0, self->arg);
}

/* The lease of a ends while it waits for the file, to get "k". */
static void
get_while_the_lease_ends(void)
{
    wq_item *item = NULL;

    assert_err(wq_add_str(f.b, "k"), WQ_OK);
    const int      fd = lock_file();
    struct worker *w = worker_start(get_from_a, &item);
    worker_await_blocked(w);
    wq_clock_fake_step(f.clock, 2000);
    (void)close(fd);
    assert_err(worker_join(w), WQ_OK);
}

/* S-16: the key belongs to a session that lives. */
TEST(lease_that_ends_while_its_handle_waits_is_replaced)
{
    get_while_the_lease_ends();
    assert_true(audit_is_clean(f.b)); /* HELD by a session that lives */
}

/* S-16: ... and comes back when that lease ends, too. */
TEST(key_of_a_replaced_lease_goes_to_another)
{
    wq_item *item = NULL;

    get_while_the_lease_ends();
    wq_clock_fake_step(f.clock, 2000);
    assert_err(wq_get_within(f.b, 0, &item), WQ_OK);
    assert_err(wq_done(f.b, item), WQ_OK);
}

WQ_TESTS(test_with(lease_that_ends_while_its_handle_waits_is_replaced, set_up,
                   tear_down),
         test_with(key_of_a_replaced_lease_goes_to_another, set_up, tear_down));
