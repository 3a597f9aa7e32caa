/* SPDX-License-Identifier: MIT */
/* cancel.c: a deadline that is put off again and again, one that is called off,
 * and work that nobody wants any more. */
#include <stdio.h>
#include <string.h>

#include <wq/clock.h>
#include <wq/wq.h>

/* begin: renew */
/* A session that is not heard of for 30 seconds is to be closed. Each sign of
 * life puts that off; so there is one deadline, counted from the last one. */
static wq_err
heard_of(wq_queue *q, const char *session)
{
    return wq_add_one_str(
        q, session,
        WQ_ADD(.after_ns = WQ_SECONDS(30), .waiting = WQ_IF_WAITING_REPLACE));
}
/* end: renew */

/* begin: sessions */
/* Three sessions: one goes on, one goes silent, one says goodbye. */
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
/* The object is deleted: nobody needs to work on it. */
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
    if (wq_add(q, key) || wq_remove(q, key)) /* but it does not come again */
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
