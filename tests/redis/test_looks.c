/* SPDX-License-Identifier: MIT */
/* test_looks.c: does a thread that waits for a reply look for it only while that
 * pays?
 *
 * The account of looks.h by itself; then a wire whose other end is this program:
 * its sched_yield() and poll() count their calls, and the reply comes in one of
 * them.
 */
#define _GNU_SOURCE
#include "support/wq_test.h"

#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "port/time.h"
#include "unit/dice.h"
#include "wire.h"

/* ---- the account ---------------------------------------------------------- */

/* S-20: whatever comes, looks are paid by the sleeps that they saved, by a part of
 * each other sleep, and by the opening balance. */
TEST(looks_never_cost_more_than_they_saved)
{
    struct dice      dice = dice_seeded("looks");
    struct wq__looks looks;
    int64_t          spent = 0, saved = 0;

    wq__looks_init(&looks);
    for (int i = 0; i < 1000000; i++) {
        const bool    may = wq__looks_may(&looks);
        const bool    found = may && dice_roll(&dice, 100) < (size_t)i / 10000;
        const int64_t took =
            found ? (int64_t)dice_roll(&dice, WQ__LOOK_WORTH) : WQ__LOOK_WORTH;

        if (may) {
            wq__looks_pay(&looks, took, found);
            spent += took;
        }
        saved += found ? WQ__LOOK_WORTH : WQ__LOOK_TRIAL;
        if (!found)
            wq__looks_note_sleep(&looks);
        assert_true(spent <= saved + WQ__LOOK_WORTH);
        assert_in_range(looks.account_ns, 0, WQ__LOOK_MOST);
    }
}

TEST(thread_that_looks_in_vain_looks_once_in_32_sleeps)
{
    struct wq__looks looks;
    int              n = 0;

    wq__looks_init(&looks);
    for (int sleeps = 0; sleeps < 3200; sleeps++) {
        n += wq__looks_may(&looks);
        if (wq__looks_may(&looks))
            wq__looks_pay(&looks, WQ__LOOK_WORTH, false);
        wq__looks_note_sleep(&looks);
    }
    assert_int_equal(n, 100);
}

TEST(few_late_replies_among_early_ones_do_not_end_the_looks)
{
    struct wq__looks looks;

    wq__looks_init(&looks);
    for (int i = 0; i < 1000; i++) {
        assert_true(wq__looks_may(&looks));
        const bool late = i % 4 == 3;
        wq__looks_pay(&looks, late ? WQ__LOOK_WORTH : WQ__LOOK_WORTH / 2,
                      !late);
    }
}

/* ---- a wire --------------------------------------------------------------- */

static struct {
    struct wq__target target;
    struct wq__wire   wire;
    int               peer;
    int               yields, polls;
    bool              reply_in_yield, reply_in_poll, end_in_yield;
} f = {.peer = -1};

static void
reply(void)
{
    static const char bytes[] = ":1\r\n";

    assert_int_equal(write(f.peer, bytes, strlen(bytes)), strlen(bytes));
}

int
sched_yield(void)
{
    if (f.yields++)
        return 0;
    if (f.reply_in_yield)
        reply();
    if (f.end_in_yield)
        (void)shutdown(f.peer, SHUT_RDWR);
    return 0;
}

/* It stands for a sleep of as long as that takes. */
int
poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    (void)timeout_ms;
    assert_int_equal(n, 1);
    f.polls++;
    if (f.reply_in_poll)
        reply();
    fds->revents = f.reply_in_poll ? POLLIN : 0;
    return f.reply_in_poll;
}

static int
set_up(void **state)
{
    int ends[2];

    (void)state;
    memset(&f, 0, sizeof f);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
        return -1;
    wq__wire_init(&f.wire, &f.target);
    f.wire.fd = ends[0];
    f.wire.reader = redisReaderCreate();
    f.peer = ends[1];
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    wq__wire_fini(&f.wire, false);
    (void)close(f.peer);
    return 0;
}

static void
receive(void)
{
    redisReply *got = NULL;

    assert_err(
        wq__wire_receive(&f.wire, wq__time_now() + WQ_SECONDS(100), &got),
        WQ_OK);
    assert_int_equal(got->integer, 1);
    freeReplyObject(got);
}

TEST(reply_that_comes_soon_is_found_without_a_sleep)
{
    f.reply_in_yield = true;
    receive();
    assert_int_equal(f.polls, 0);
    assert_true(f.wire.looks.account_ns > WQ__LOOK_WORTH);
}

TEST(reply_that_is_there_saves_no_sleep)
{
    reply();
    receive();
    assert_int_equal(f.yields + f.polls, 0);
    assert_int_equal(f.wire.looks.account_ns, WQ__LOOK_WORTH);
}

TEST(thread_looks_only_for_a_while)
{
    f.reply_in_poll = true;
    receive();
    assert_in_range(f.yields, 1, WQ__LOOK_WORTH / 10); /* each takes 10 ns */
    assert_int_equal(f.polls, 1);
    assert_int_equal(f.wire.looks.account_ns, WQ__LOOK_TRIAL);
}

TEST(thread_sleeps_at_once_where_looks_did_not_pay)
{
    f.wire.looks.account_ns = WQ__LOOK_WORTH - 1;
    f.reply_in_poll = true;
    receive();
    assert_int_equal(f.yields, 0);
    assert_int_equal(f.polls, 1);
}

TEST(end_of_the_connection_earns_nothing)
{
    redisReply *got = NULL;

    f.end_in_yield = true;
    assert_err(
        wq__wire_receive(&f.wire, wq__time_now() + WQ_SECONDS(100), &got),
        WQ_EIO);
    assert_null(got);
    assert_int_equal(f.polls, 0);
    assert_true(f.wire.looks.account_ns < WQ__LOOK_WORTH);
}

#define ON_WIRE(name) test_with(name, set_up, tear_down)

WQ_TESTS(test(looks_never_cost_more_than_they_saved),
         test(thread_that_looks_in_vain_looks_once_in_32_sleeps),
         test(few_late_replies_among_early_ones_do_not_end_the_looks),
         ON_WIRE(reply_that_comes_soon_is_found_without_a_sleep),
         ON_WIRE(reply_that_is_there_saves_no_sleep),
         ON_WIRE(thread_looks_only_for_a_while),
         ON_WIRE(thread_sleeps_at_once_where_looks_did_not_pay),
         ON_WIRE(end_of_the_connection_earns_nothing));
