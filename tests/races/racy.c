/* SPDX-License-Identifier: MIT */
/* racy.c: does a race detector still report a race of the program?
 *
 * Three mistakes that users of a queue make, one per run. In each, no call
 * orders the two accesses, whichever thread is first: a race detector must
 * report it every time. The wrong access is in the function with the name of
 * the mistake.
 *
 *     racy write_after_add     a producer writes to the object after its add
 *     racy write_after_done    a worker writes to the object after its done
 *     racy write_what_is_shared
 *                              two workers with different keys, one counter
 */
#include <pthread.h>
#include <string.h>

#include <wq/wq.h>

#include "check.h"

static wq_queue *q;
static unsigned  object;

/* Run both in threads. */
static void
run_both(void *(*first)(void *), void *(*second)(void *))
{
    pthread_t threads[2];

    CHECK(pthread_create(&threads[0], NULL, first, NULL) == 0);
    CHECK(pthread_create(&threads[1], NULL, second, NULL) == 0);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

/* ---- after the add ------------------------------------------------------- */

static void *
write_after_add(void *arg)
{
    object = 1;
    CHECK(wq_add_str(q, "key") == WQ_OK);
    object = 2;
    return arg;
}

static void *
read_what_was_added(void *arg)
{
    wq_item *item;

    CHECK(wq_get(q, &item) == WQ_OK);
    CHECK(object != 0);
    CHECK(wq_done(q, item) == WQ_OK);
    return arg;
}

/* ---- after the done ------------------------------------------------------ */

/* Both threads run this: the first one that gets the key adds it again for the
 * other. */
static void *
write_after_done(void *arg)
{
    wq_item *item;

    CHECK(wq_get(q, &item) == WQ_OK);
    if (object++ == 0)
        CHECK(wq_add_str(q, "key") == WQ_OK);
    CHECK(wq_done(q, item) == WQ_OK);
    object++;
    return arg;
}

/* ---- beyond the key ------------------------------------------------------ */

/* Neither calls done: that would be a call between the accesses. */
static void *
write_what_is_shared(void *arg)
{
    wq_item *item;

    CHECK(wq_get(q, &item) == WQ_OK);
    object++;
    return arg;
}

int
main(int argc, char **argv)
{
    CHECK(argc == 2);
    CHECK(wq_create(NULL, &q) == WQ_OK);
    if (strcmp(argv[1], "write_after_add") == 0) {
        run_both(write_after_add, read_what_was_added);
    } else if (strcmp(argv[1], "write_after_done") == 0) {
        CHECK(wq_add_str(q, "key") == WQ_OK);
        run_both(write_after_done, write_after_done);
    } else {
        CHECK(wq_add_str(q, "one") == WQ_OK && wq_add_str(q, "two") == WQ_OK);
        run_both(write_what_is_shared, write_what_is_shared);
    }
    wq_destroy(q);
    return 0;
}
