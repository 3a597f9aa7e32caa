/* SPDX-License-Identifier: MIT */
/* test_looks.c: does a thread that waits for a reply look for it only while that
 * pays?
 *
 * The rule of looks.h by itself; then a wire whose other end is this program. Its
 * own recv() and poll() count their calls, and the reply comes in one of them; its
 * own clock_gettime() goes on by a microsecond for each call, and by more in a
 * sleep.
 */
#define _GNU_SOURCE
#include "support/wq_test.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "port/time.h"
#include "wire.h"

/* ---- the rule ------------------------------------------------------------- */

/* One wait, which takes so long; returns whether it looks first. */
static bool
wait_for(struct wq__looks *l, int64_t look_us, int64_t sleep_us)
{
    const bool looks = wq__looks_first(l);

    wq__looks_note(l, (looks ? look_us : sleep_us) * 1000);
    return looks;
}

/* How many of so many waits look first, if a look finds the reply after `look_us`
 * and a sleep takes `sleep_us`. */
static int
count_looks(struct wq__looks *l, int waits, int64_t look_us, int64_t sleep_us)
{
    int n = 0;

    for (int i = 0; i < waits; i++)
        n += wait_for(l, look_us, sleep_us);
    return n;
}

enum { BOTH = WQ__LOOK_FIRST * WQ__LOOK_ROUND }; /* waits, at the beginning */

/* S-27 */
TEST(thread_looks_where_a_sleep_takes_longer)
{
    struct wq__looks looks = {.waits = 0};

    assert_int_equal(count_looks(&looks, BOTH, 40, 100), BOTH / 2);
    assert_int_equal(count_looks(&looks, 31 * 100 * 8, 40, 100), 30 * 100 * 8);
}

/* S-27: a look that does not pay is one in 31. */
TEST(thread_sleeps_where_looks_take_as_long)
{
    struct wq__looks looks = {.waits = 0};

    assert_int_equal(count_looks(&looks, BOTH, 50, 60), BOTH / 2);
    assert_int_equal(count_looks(&looks, 31 * 100 * 8, 50, 60), 100 * 8);
}

TEST(first_rounds_are_of_both_kinds_in_turn)
{
    struct wq__looks looks = {.waits = 0};

    for (int i = 0; i < 5; i++) {
        assert_int_equal(count_looks(&looks, 8, 500, 500), 8);
        assert_int_equal(count_looks(&looks, 8, 500, 500), 0);
    }
    assert_int_equal(count_looks(&looks, 21 * 8, 500, 500), 0);
    assert_int_equal(count_looks(&looks, 8, 500, 500), 8);
}

/* Threads start, caches are cold. */
TEST(first_rounds_of_a_connection_do_not_count)
{
    struct wq__looks looks = {.waits = 0};

    (void)count_looks(&looks, 16, 900, 60);
    (void)count_looks(&looks, BOTH - 16, 40, 60);
    assert_int_equal(looks.looks.mean_ns, 40000);
    assert_int_equal(looks.sleeps.mean_ns, 60000);
}

/* The processors still sleep, or the threads are where the others left them. */
TEST(first_waits_of_a_round_do_not_count)
{
    struct wq__looks looks = {.waits = 0};

    for (int i = 0; i < 1000; i++) {
        (void)count_looks(&looks, 2, 90, 90);
        (void)count_looks(&looks, 6, 40, 60);
    }
    assert_int_equal(looks.looks.mean_ns, 40000);
    assert_int_equal(looks.sleeps.mean_ns, 60000);
}

/* The second call of each pair waits for something else: a look of 0.1 ms is in
 * vain. */
TEST(pairs_of_calls_are_measured_alike)
{
    struct wq__looks looks = {.waits = 0};
    int              n = 0;

    for (int i = 0; i < 31 * 1000 * 4; i++) {
        const int looked =
            wait_for(&looks, 40, 100) + wait_for(&looks, 340, 340);
        n += i >= BOTH / 2 ? looked : 0;
        if (i == BOTH / 2 - 1)
            assert_int_equal(looks.looks.mean_ns / 1000, (40 + 340) / 2);
    }
    assert_int_equal(n, 999 * 8);
}

TEST(thread_learns_that_looks_begin_to_pay_or_end_to)
{
    struct wq__looks looks = {.waits = 0};

    (void)count_looks(&looks, 3200, 500, 500); /* a server far away */
    (void)count_looks(&looks, 32000, 40, 100); /* a near one */
    assert_in_range(count_looks(&looks, 320, 40, 100), 300, 320);
    (void)count_looks(&looks, 32000, 50, 60); /* processors that are awake */
    assert_in_range(count_looks(&looks, 320, 50, 60), 5, 20);
}

/* Its processor was taken away for 4 ms in one look of 16. */
TEST(thread_that_loses_its_processor_looks_no_more)
{
    struct wq__looks looks = {.waits = 0};

    (void)count_looks(&looks, 320, 40, 100);
    for (int i = 0; i < 40; i++) {
        (void)count_looks(&looks, 16, 40, 100);
        (void)wait_for(&looks, 4000, 100);
    }
    assert_in_range(count_looks(&looks, 320, 40, 100), 5, 20);
}

TEST(one_reply_that_is_very_late_does_not_matter)
{
    struct wq__looks looks = {.waits = 0};

    (void)count_looks(&looks, 3204, 40, 100);
    (void)wait_for(&looks, 1000000000, 1000000000);
    assert_true(looks.looks.mean_ns > 40000); /* it counted */
    assert_in_range(count_looks(&looks, 320, 40, 100), 300, 320);
}

/* ---- a wire --------------------------------------------------------------- */

static struct {
    struct wq__target target;
    struct wq__wire   wire;
    int               peer;
    int64_t           now_ns;
    int               looks, polls;
    int               look_with_reply, look_with_end; /* 0: none */
    bool              reply_in_poll;
    struct wq__yields account;
    int               yields;
    int64_t           yield_ns; /* how long each takes */
} f = {.peer = -1};

int
clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    f.now_ns += 1000;
    *t = wq__time_spec(f.now_ns);
    return 0;
}

static void
reply(void)
{
    static const char bytes[] = ":1\r\n";

    assert_int_equal(write(f.peer, bytes, strlen(bytes)), strlen(bytes));
}

ssize_t
recv(int fd, void *data, size_t len, int flags)
{
    f.looks++;
    if (f.looks == f.look_with_reply)
        reply();
    if (f.looks == f.look_with_end)
        (void)shutdown(f.peer, SHUT_RDWR);
    return recvfrom(fd, data, len, flags, NULL, NULL);
}

int
sched_yield(void)
{
    f.yields++;
    f.now_ns += f.yield_ns;
    return 0;
}

/* It stands for a sleep. */
int
poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    (void)timeout_ms;
    assert_int_equal(n, 1);
    f.polls++;
    f.now_ns += WQ_MS(1);
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
    f.now_ns = WQ_SECONDS(1);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
        return -1;
    wq__wire_init(&f.wire, &f.target);
    f.wire.yields = &f.account;
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

static wq_err
receive_within(int64_t ns)
{
    redisReply  *got = NULL;
    const wq_err err = wq__wire_receive(&f.wire, f.now_ns + ns, &got);

    assert_int_equal(!err, got && got->integer == 1);
    if (got)
        freeReplyObject(got);
    return err;
}

static wq_err
receive(void)
{
    return receive_within(WQ_SECONDS(100));
}

/* What both kinds of waits have taken. The next one counts. */
static void
let_waits_be(int64_t look_ns, int64_t sleep_ns)
{
    struct wq__looks *l = &f.wire.looks;

    l->looks = (struct wq__waits){look_ns, WQ__LOOK_MEMORY};
    l->sleeps = (struct wq__waits){sleep_ns, WQ__LOOK_MEMORY};
    l->waits = BOTH;
    l->looks_first = wq__looks_choose(l);
    l->waits += WQ__LOOK_SETTLE;
}

static void
expect_learnt(bool of_look, bool of_sleep)
{
    assert_int_equal(f.wire.looks.looks.mean_ns != 1000, of_look);
    assert_int_equal(f.wire.looks.sleeps.mean_ns != WQ_MS(1), of_sleep);
}

TEST(reply_that_comes_soon_is_found_without_a_sleep)
{
    let_waits_be(1000, WQ_MS(1));
    f.look_with_reply = 10;
    assert_err(receive(), WQ_OK);
    assert_int_equal(f.polls, 0);
    expect_learnt(true, false);
}

TEST(reply_that_is_there_is_no_wait)
{
    let_waits_be(1000, WQ_MS(1));
    reply();
    assert_err(receive(), WQ_OK);
    assert_int_equal(f.looks, 1);
    assert_int_equal(f.polls, 0);
    assert_int_equal(f.wire.looks.waits, BOTH + WQ__LOOK_SETTLE);
    expect_learnt(false, false);
}

TEST(thread_looks_only_for_a_while)
{
    let_waits_be(1000, WQ_MS(1));
    f.reply_in_poll = true;
    assert_err(receive(), WQ_OK);
    assert_in_range(f.looks, 10, WQ__LOOK_MOST / 1000 + 3);
    assert_int_equal(f.polls, 1);
    expect_learnt(true, false); /* the sleep is a part of that wait */
}

TEST(thread_sleeps_at_once_where_looks_do_not_pay)
{
    let_waits_be(1000, 1000);
    f.reply_in_poll = true;
    assert_err(receive(), WQ_OK);
    assert_int_equal(f.looks, 2); /* one before the sleep, one after it */
    assert_int_equal(f.polls, 1);
    expect_learnt(false, true);
    assert_true(f.wire.looks.sleeps.mean_ns > 1000);
}

/* S-27: threads of this process, and the server, may need the processor. */
TEST(thread_lets_others_run_between_looks)
{
    let_waits_be(1000, WQ_MS(1));
    f.look_with_reply = 10;
    assert_err(receive(), WQ_OK);
    assert_int_equal(f.yields, 9);
    assert_int_equal(f.account.resume_ns, 0);
}

/* S-27: what a yield took beyond 0.4 ms is at most a twentieth of the time. */
TEST(thread_that_lost_its_processor_by_a_yield_keeps_it)
{
    let_waits_be(1000, WQ_MS(1));
    f.reply_in_poll = true;
    f.yield_ns = WQ_MS(3);
    const int64_t begin_ns = f.now_ns;
    assert_err(receive(), WQ_OK);
    assert_int_equal(f.yields, 1);
    assert_in_range(f.account.resume_ns - begin_ns,
                    WQ_MS(3) + 20 * (WQ_MS(3) - 400000),
                    WQ_MS(3) + 20 * (WQ_MS(3) - 390000));

    let_waits_be(1000, WQ_MS(1));
    f.look_with_reply = f.looks + 10;
    assert_err(receive(), WQ_OK);
    assert_int_equal(f.polls, 1);
    assert_int_equal(f.yields, 1);
}

TEST(wire_without_an_account_does_not_yield)
{
    f.wire.yields = NULL;
    let_waits_be(1000, WQ_MS(1));
    f.look_with_reply = 10;
    assert_err(receive(), WQ_OK);
    assert_int_equal(f.yields, 0);
}

TEST(look_ends_by_the_deadline)
{
    let_waits_be(1000, WQ_MS(1));
    assert_err(receive_within(10000), WQ_EIO);
    assert_in_range(f.looks, 1, 10);
    assert_int_equal(f.polls, 0);
    expect_learnt(false, false);
}

TEST(end_of_the_connection_teaches_nothing)
{
    let_waits_be(1000, WQ_MS(1));
    f.look_with_end = 10;
    assert_err(receive(), WQ_EIO);
    assert_int_equal(f.polls, 0);
    expect_learnt(false, false);
}

/* It may reach another server, over another network. */
TEST(new_connection_begins_to_learn_anew)
{
    char path[] = "/dev/null/no/socket";

    let_waits_be(1000, WQ_MS(1));
    wq__wire_close(&f.wire, false);
    f.target.path = path;
    assert_err(wq__wire_open(&f.wire), WQ_EAWAY);
    f.target.path = NULL;
    assert_int_equal(f.wire.looks.looks.n + f.wire.looks.sleeps.n, 0);
}

#define ON_WIRE(name) test_with(name, set_up, tear_down)

WQ_TESTS(test(thread_looks_where_a_sleep_takes_longer),
         test(thread_sleeps_where_looks_take_as_long),
         test(first_rounds_are_of_both_kinds_in_turn),
         test(first_rounds_of_a_connection_do_not_count),
         test(first_waits_of_a_round_do_not_count),
         test(pairs_of_calls_are_measured_alike),
         test(thread_learns_that_looks_begin_to_pay_or_end_to),
         test(thread_that_loses_its_processor_looks_no_more),
         test(one_reply_that_is_very_late_does_not_matter),
         ON_WIRE(reply_that_comes_soon_is_found_without_a_sleep),
         ON_WIRE(reply_that_is_there_is_no_wait),
         ON_WIRE(thread_looks_only_for_a_while),
         ON_WIRE(thread_sleeps_at_once_where_looks_do_not_pay),
         ON_WIRE(thread_lets_others_run_between_looks),
         ON_WIRE(thread_that_lost_its_processor_by_a_yield_keeps_it),
         ON_WIRE(wire_without_an_account_does_not_yield),
         ON_WIRE(look_ends_by_the_deadline),
         ON_WIRE(end_of_the_connection_teaches_nothing),
         ON_WIRE(new_connection_begins_to_learn_anew));
