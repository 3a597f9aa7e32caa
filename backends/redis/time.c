/* SPDX-License-Identifier: MIT */
/* time.c: what time is it on the server?
 *
 * Its time minus CLOCK_BOOTTIME lies between two numbers that each call yields:
 * the server read its clock after the call was sent and before the reply came.
 * The offset moves only when it is outside of these, and then to the nearer one.
 * So steps of the clock here change nothing; steps of the server's are followed.
 */
#include "port/time.h"
#include "core/span.h"
#include "store.h"

static struct wq__redis_clock *
clock_of(wq_clock *clock)
{
    return (struct wq__redis_clock *)(void *)clock;
}

static int64_t
offset_of(wq_clock *clock)
{
    return atomic_load_explicit(&clock_of(clock)->offset_ns,
                                memory_order_relaxed);
}

static int64_t
server_now(wq_clock *clock)
{
    return wq__time_boottime() + offset_of(clock);
}

static int64_t
to_boottime(wq_clock *clock, int64_t at_ns)
{
    return at_ns == WQ_FOREVER ? WQ_FOREVER
                               : wq__span_sub(at_ns, offset_of(clock));
}

static bool
server_park(wq_clock *clock, struct wq__parker *p, int64_t deadline_ns)
{
    const int64_t at_ns = to_boottime(clock, deadline_ns);

    return wq__park_boottime(p, at_ns > 0 ? at_ns : 0);
}

static void
server_watch(wq_clock *clock, struct wq__watch *w, int64_t deadline_ns)
{
    const int64_t at_ns = to_boottime(clock, deadline_ns);

    wq__beacon_arm(w->beacon, at_ns > 0 ? at_ns : 1);
}

void
wq__redis_clock_init(struct wq__redis_clock *c)
{
    c->base = (wq_clock){
        .now = server_now,
        .stopwatch = server_now,
        .park = server_park,
        .watch = server_watch,
        .timer = WQ__TIMER_BOOTTIME,
    };
    atomic_init(&c->offset_ns, wq__time_wall() - wq__time_boottime());
    atomic_init(&c->known, false);
}

void
wq__redis_clock_note(struct wq__redis_clock *c, int64_t server_ns,
                     int64_t sent_ns)
{
    const int64_t most = server_ns - sent_ns;
    const int64_t least = server_ns - wq__time_boottime();
    const int64_t now =
        atomic_load_explicit(&c->offset_ns, memory_order_relaxed);
    const bool known = atomic_exchange(&c->known, true);

    if (!known)
        atomic_store_explicit(&c->offset_ns, least + (most - least) / 2,
                              memory_order_relaxed);
    else if (now < least || now > most)
        atomic_store_explicit(&c->offset_ns, now < least ? least : most,
                              memory_order_relaxed);
}
