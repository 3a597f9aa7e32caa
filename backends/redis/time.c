/* SPDX-License-Identifier: MIT */
/* time.c: what time is it on the server?
 *
 * Its time minus CLOCK_BOOTTIME lies between two numbers that each call yields:
 * the server read its clock after the call was sent and before the reply came.
 * The offset moves only when it is outside of these, and then to the nearer one.
 * So steps of the clock here change nothing; steps of the server's are followed.
 *
 * A step forward would end leases early, although their holders count on them.
 * The server cannot tell it from an hour in which nobody called; a handle that
 * has called before can. It tells the server before it ends a session, and the
 * server gives every session another lease (session.lua). Steps back are noticed
 * by the server (head.lua).
 */
#include "port/time.h"
#include "store.h"

/* Steps of less are not noticed. Other handles may have shorter leases. */
#define MOST_TOLERANCE_NS WQ_MS(500)

/* In the year 2116. Between zero and this, no difference overflows. */
#define LAST_TIME_NS (INT64_MAX / 2)

void
wq__redis_clock_init(struct wq__redis_clock *c, int64_t lease_ns)
{
    wq__offset_clock_init(&c->base, wq__time_wall() - wq__time_boottime());
    atomic_init(&c->known, false);
    atomic_init(&c->stepped, false);
    c->tolerance_ns =
        lease_ns / 10 < MOST_TOLERANCE_NS ? lease_ns / 10 : MOST_TOLERANCE_NS;
}

bool
wq__redis_clock_note(struct wq__redis_clock *c, int64_t server_ns,
                     int64_t sent_ns)
{
    if (server_ns < 0 || server_ns > LAST_TIME_NS)
        return false;
    const int64_t most = server_ns - sent_ns;
    const int64_t least = server_ns - wq__time_boottime();
    const int64_t now = wq__offset_clock_get(&c->base);
    const bool    known = atomic_exchange(&c->known, true);

    if (known && least - now > c->tolerance_ns)
        atomic_store(&c->stepped, true);
    if (!known)
        wq__offset_clock_set(&c->base, least + (most - least) / 2);
    else if (now < least || now > most)
        wq__offset_clock_set(&c->base, now < least ? least : most);
    return true;
}
