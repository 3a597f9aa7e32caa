/* SPDX-License-Identifier: MIT */
/* fairness.c: a tenant that floods the queue, keys of a group one at a time,
 * and a key of low priority that is handed out nevertheless. */
#include <stdio.h>
#include <string.h>

#include <wq/clock.h>
#include <wq/wq.h>

enum { FLOOD = 100000 };

/* begin: flood */
/* Alice adds 100,000 keys, then Bob adds one. How many keys are handed out
 * before his? `fair`: the group of a key is the part before its '/'. */
static int
wait_of_bob(int fair)
{
    wq_queue *q;
    wq_item  *item;
    char      key[32];
    int       before = 0, is_bob = 0;

    if (wq_create(WQ_CONFIG(.group = fair ? wq_group_before_slash : NULL), &q))
        return -1;
    for (int i = 0; i < FLOOD; i++) {
        (void)snprintf(key, sizeof key, "alice/%d", i);
        if (wq_add_str(q, key))
            return -1;
    }
    if (wq_add_str(q, "bob/1"))
        return -1;
    while (!is_bob && wq_get_within(q, 0, &item) == WQ_OK) {
        is_bob = strcmp(item->key.data, "bob/1") == 0;
        before += !is_bob;
        wq_done(q, item);
    }
    wq_destroy(q);
    return is_bob ? before : -1;
}
/* end: flood */

/* begin: serial */
/* One key of a group at a time. */
static int
serial(void)
{
    wq_queue *q;
    wq_item  *alice = NULL, *bob = NULL, *none = NULL;

    if (wq_create(
            WQ_CONFIG(.group = wq_group_before_slash, .group_max_held = 1),
            &q) ||
        wq_add_str(q, "alice/1") || wq_add_str(q, "alice/2") ||
        wq_add_str(q, "bob/1") || wq_get_within(q, 0, &alice) ||
        wq_get_within(q, 0, &bob)) /* bob/1: alice/1 is HELD */
        return 1;
    const wq_err err = wq_get_within(q, 0, &none); /* alice/2 is READY... */
    printf("held: %s, %s; next: %s\n", (const char *)alice->key.data,
           (const char *)bob->key.data, wq_err_name(err));
    if (wq_next(q, 0, &alice)) /* ... and is handed out after this done */
        return 1;
    printf("after done: %s\n", (const char *)alice->key.data);
    wq_destroy(q);
    return err != WQ_ETIMEDOUT;
}
/* end: serial */

/* begin: ageing */
/* Every millisecond an urgent key is added and a key is handed out. When is a
 * key of low priority handed out? -1: not within ten seconds. */
static int
wait_of_cleanup(wq_clock *clock, int64_t max_ready_ns)
{
    wq_queue *q;
    wq_item  *item;
    char      key[32];
    int       at_ms = -1;

    if (wq_create(WQ_CONFIG(.clock = clock, .max_ready_ns = max_ready_ns),
                  &q) ||
        wq_add_one(q, wq_str("cleanup"), WQ_ADD(.priority = -10)))
        return -1;
    for (int ms = 0; at_ms < 0 && ms < 10000; ms++) {
        (void)snprintf(key, sizeof key, "urgent %d", ms);
        if (wq_add_one(q, wq_str(key), WQ_ADD(.priority = 10)) ||
            wq_get_within(q, 0, &item))
            break;
        if (strcmp(item->key.data, "cleanup") == 0)
            at_ms = ms;
        wq_done(q, item);
        wq_clock_fake_step(clock, WQ_MS(1));
    }
    wq_destroy(q);
    return at_ms;
}
/* end: ageing */

int
main(void)
{
    wq_clock *clock = wq_clock_fake_create(0); /* a real program has none */
    if (!clock)
        return 1;

    const int unfair = wait_of_bob(0), fair = wait_of_bob(1);
    printf("without groups, bob waits for %d keys\n", unfair);
    printf("with groups, bob waits for %d key\n", fair);
    const int failed = serial();
    const int never = wait_of_cleanup(clock, 0);
    const int aged = wait_of_cleanup(clock, WQ_SECONDS(1));
    printf("without ageing, cleanup waits for %s\n",
           never < 0 ? "ever" : "a while");
    printf("with ageing, cleanup waits for %d ms\n", aged);
    wq_clock_destroy(clock);
    return unfair != FLOOD || fair != 1 || failed || never != -1 ||
           aged != 1000;
}
