/* SPDX-License-Identifier: MIT */
/* racy.c: is a race of the program's own still reported?
 *
 * Three mistakes that a queue invites, one a run. In each, no call orders the
 * two accesses, whichever thread comes first: so a race detector must report
 * it every time. The access that is wrong is in the function that is named as
 * the mistake is.
 *
 *     racy write_after_add     a producer adds, and then fills in the object
 *     racy write_after_done    a worker gives the key back, and goes on
 *     racy write_what_is_shared
 *                              two workers with different keys, one counter
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wq/wq.h>

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__,        \
                    #condition);                                               \
            exit(2);                                                           \
        }                                                                      \
    } while (0)

static wq_queue *q;
static unsigned  object;

/* Two threads, and the queue they use. */
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

/* Neither gives its key back: that would be a call between the accesses. */
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
