/* SPDX-License-Identifier: MIT */
/* cancel.c: a deadline that is postponed, one that is cancelled, and work that
 * is not needed any more. */
#include <stdio.h>
#include <string.h>

#include <wq/clock.h>
#include <wq/wq.h>

/* begin: renew */
/* A session is closed after 30 seconds without a message. Each message replaces
 * the deadline of the session. */
static wq_err
heard_of(wq_queue *q, const char *session)
{
    return wq_add_one_str(
        q, session,
        WQ_ADD(.after_ns = WQ_SECONDS(30), .waiting = WQ_IF_WAITING_REPLACE));
}
/* end: renew */

/* begin: sessions */
/* Three sessions: one stays active, one becomes silent, one logs out. */
static int
sessions(wq_queue *q, wq_clock *clock)
{
    wq_item *item;
    char     closed[8] = "";

    if (heard_of(q, "a") || heard_of(q, "b") || heard_of(q, "c"))
        return 1;
    wq_clock_fake_step(clock, WQ_SECONDS(20));
    if (heard_of(q, "a") || wq_cancel_after_str(q, "c"))
        return 1;
    for (int i = 0; i < 4; i++) {
        while (wq_get_within(q, 0, &item) == WQ_OK) {
            const char name = *(const char *)item->key.data;

            printf("%2lld s: close %c\n",
                   (long long)(wq_clock_now(clock) / WQ_SECONDS(1)), name);
            strncat(closed, &name, 1);
            wq_done(q, item);
        }
        wq_clock_fake_step(clock, WQ_SECONDS(10));
    }
    return strcmp(closed, "ba") != 0; /* b after 30 s, a after 50 s */
}
/* end: sessions */

/* begin: remove */
/* The object is deleted: no work is needed. */
static int
removal(wq_queue *q)
{
    const wq_key key = wq_str("default/nginx");
    wq_item     *item;

    if (wq_add(q, key) || wq_remove(q, key)) /* it was READY */
        return 1;
    if (wq_add(q, key) || wq_get_within(q, 0, &item) ||
        wq_remove(q, key) != WQ_ESTATE) /* too late: a worker holds it */
        return 1;
    if (wq_add(q, key) ||
        wq_remove(q, key)) /* but it is not handed out again */
        return 1;
    wq_done(q, item);
    return wq_get_within(q, 0, &item) != WQ_ETIMEDOUT;
}
/* end: remove */

int
main(void)
{
    wq_clock *clock = wq_clock_fake_create(0); /* a real program has none */
    wq_queue *q;

    if (!clock || wq_create(WQ_CONFIG(.clock = clock), &q))
        return 1;
    const int wrong = sessions(q, clock) + removal(q);
    wq_destroy(q);
    wq_clock_destroy(clock);
    return wrong ? 1 : 0;
}
