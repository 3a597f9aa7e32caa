/* SPDX-License-Identifier: MIT */
/* test_other_getter.c: is a key that is added while another thread takes keys
 * out treated like any other?
 *
 * The queue may leave such a key where the other thread will find it. Nothing
 * of that is to be seen: whoever asks next, whatever he asks, it is as if it
 * had been added there and then. Here this thread adds, and another one takes
 * keys out; it does what it is told, and nothing meanwhile.
 */
#include "fixture.h"

#include <pthread.h>
#include <semaphore.h>

#include <wq/clock.h>
#include <wq/inspect.h>

#include "support/counting.h"

#define SECOND INT64_C(1000000000)

/* ---- the getter ---------------------------------------------------------- */

enum order { GET, DONE, GO_HOME };

static struct {
    wq_queue  *q;
    pthread_t  thread;
    sem_t      told, done;
    enum order order;
    wq_item   *item; /* what it holds, or was told to give back */
    wq_err     err;  /* what the verb said */
} getter;

static void *
do_as_told(void *unused)
{
    for (;;) {
        (void)sem_post(&getter.done);
        while (sem_wait(&getter.told) != 0)
            ;
        if (getter.order == GO_HOME)
            return unused;
        getter.err = getter.order == GET
                         ? wq_get_within(getter.q, 0, &getter.item)
                         : wq_done(getter.q, getter.item);
    }
}

static void
await_getter(void)
{
    while (sem_wait(&getter.done) != 0)
        ;
}

static wq_err
getter_does(enum order order)
{
    getter.order = order;
    assert_int_equal(sem_post(&getter.told), 0);
    await_getter();
    return getter.err;
}

/* It takes the next key, which must be this one. */
static wq_item *
getter_takes(const char *key)
{
    getter.item = NULL;
    assert_err(getter_does(GET), WQ_OK);
    assert_key(getter.item, key);
    return getter.item;
}

static void
getter_finishes(wq_item *item)
{
    getter.item = item;
    assert_err(getter_does(DONE), WQ_OK);
}

static void
getter_works_on(const char *key)
{
    getter_finishes(getter_takes(key));
}

static void
getter_finds_nothing(wq_err why)
{
    assert_err(getter_does(GET), why);
}

/* ---- a queue that it takes keys from ------------------------------------- */

static wq_queue       *q;
static wq_clock       *fake;
static struct counting mem;

/* From now on keys are for it. The second key is the first that finds it so. */
static void
make_it_the_getter(void)
{
    for (int i = 0; i < 3; i++) {
        add(q, "first");
        getter_works_on("first");
    }
}

static int
open_queue(void **state)
{
    (void)state;
    counting_init(&mem);
    fake = wq_clock_fake_create(0);
    assert_non_null(fake);
    assert_err(
        wq_create(WQ_CONFIG(.clock = fake, .allocator = &mem.allocator), &q),
        WQ_OK);
    getter.q = q;
    assert_int_equal(sem_init(&getter.told, 0, 0), 0);
    assert_int_equal(sem_init(&getter.done, 0, 0), 0);
    assert_int_equal(pthread_create(&getter.thread, NULL, do_as_told, NULL), 0);
    await_getter();
    make_it_the_getter();
    return 0;
}

static int
close_queue(void **state)
{
    (void)state;
    getter.order = GO_HOME;
    assert_int_equal(sem_post(&getter.told), 0);
    assert_int_equal(pthread_join(getter.thread, NULL), 0);
    (void)sem_destroy(&getter.told);
    (void)sem_destroy(&getter.done);
    wq_destroy(q);
    wq_clock_destroy(fake);
    assert_int_equal(mem.bytes, 0);
    return 0;
}

static wq_stats
counts(void)
{
    wq_stats c = {.size = sizeof c};

    assert_err(wq_read_stats(q, &c), WQ_OK);
    return c;
}

static unsigned
states_of(const char *key)
{
    wq_key_info info = {.size = sizeof info};

    assert_err(wq_read_key(q, wq_str(key), &info), WQ_OK);
    return info.states;
}

/* ---- merged, ordered, counted -------------------------------------------- */

/* Q-03 Q-16 */
TEST(key_added_twice_is_handed_out_once)
{
    add(q, "foo");
    add(q, "foo");
    getter_works_on("foo");
    getter_finds_nothing(WQ_ETIMEDOUT);
}

/* whoever asks. */
TEST(key_added_twice_counts_once)
{
    const wq_stats before = counts();

    add(q, "foo");
    add(q, "foo");
    add(q, "bar");
    assert_int_equal(wq_len(q), 2);
    const wq_stats after = counts();
    assert_int_equal(after.adds, before.adds + 2);
    assert_int_equal(after.merged, before.merged + 1);
    assert_int_equal(after.ready, 2);
    getter_works_on("foo");
    getter_works_on("bar");
    assert_int_equal(wq_len(q), 0);
}

/* Q-04 Q-06 */
TEST(key_added_while_it_holds_it_comes_once_more_after_done)
{
    add(q, "foo");
    wq_item *item = getter_takes("foo");
    add(q, "foo");
    add(q, "foo");
    getter_finds_nothing(WQ_ETIMEDOUT);
    assert_int_equal(wq_len(q), 0);
    assert_int_equal(states_of("foo"), WQ_STATE_HELD | WQ_STATE_DIRTY);
    getter_finishes(item);
    getter_works_on("foo");
    getter_finds_nothing(WQ_ETIMEDOUT);
}

/* the done comes right after the add; nobody has looked between. */
TEST(key_added_while_it_holds_it_is_not_lost_at_done)
{
    add(q, "foo");
    wq_item *item = getter_takes("foo");
    add(q, "foo");
    getter_finishes(item);
    getter_works_on("foo");
    getter_finds_nothing(WQ_ETIMEDOUT);
}

/* */
TEST(keys_leave_first_come_first_served)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};

    for (size_t i = 0; i < 5; i++)
        add(q, names[i]);
    add(q, "a"); /* keeps its place */
    for (size_t i = 0; i < 5; i++)
        getter_works_on(names[i]);
}

/* a key added before the done of a DIRTY one stands before it. */
TEST(key_added_before_a_done_goes_first)
{
    add(q, "dirty");
    wq_item *item = getter_takes("dirty");
    add(q, "dirty");
    add(q, "other");
    getter_finishes(item);
    getter_works_on("other");
    getter_works_on("dirty");
}

/* in whichever way they were added. */
TEST(keys_added_in_many_ways_stay_in_order)
{
    static char          text[WQ_KEY_MAX];
    const wq_add_options options = {.size = sizeof options};
    const wq_key         key = wq_str("with"), large = {text, sizeof text};
    const wq_key         many[] = {wq_str("m1"), wq_str("m2")};

    memset(text, 'x', sizeof text);
    add(q, "a");
    assert_err(wq_add_with(q, &options, &key, 1), WQ_OK);
    add(q, "b");
    assert_err(wq_add(q, large), WQ_OK); /* no ring has room for it */
    add(q, "c");
    assert_err(wq_add_with(q, &options, many, 2), WQ_OK);
    add(q, "d");
    assert_err(wq_add_after(q, wq_str("e"), 0), WQ_OK);
    getter_works_on("a");
    getter_works_on("with");
    getter_works_on("b");
    assert_err(getter_does(GET), WQ_OK);
    assert_int_equal(getter.item->key.len, sizeof text);
    getter_finishes(getter.item);
    getter_works_on("c");
    getter_works_on("m1");
    getter_works_on("m2");
    getter_works_on("d");
    getter_works_on("e");
}

/* More than there is room for anywhere but in the queue itself. */
TEST(many_keys_all_come_in_order)
{
    enum { MANY = 2000 };

    for (uint64_t i = 0; i < MANY; i++)
        assert_err(wq_add(q, wq_u64(&i)), WQ_OK);
    assert_int_equal(wq_len(q), MANY);
    for (uint64_t i = 0; i < MANY; i++) {
        assert_err(getter_does(GET), WQ_OK);
        assert_memory_equal(getter.item->key.data, &i, sizeof i);
        getter_finishes(getter.item);
    }
}

/* ---- others who ask ------------------------------------------------------ */

/* The one who adds takes it himself. */
TEST(key_can_be_taken_by_who_added_it)
{
    add(q, "foo");
    work_on(q, "foo");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

TEST(key_can_be_looked_at_and_removed)
{
    add(q, "foo");
    assert_int_equal(states_of("foo"), WQ_STATE_READY);
    add(q, "bar");
    assert_err(wq_remove(q, wq_str("bar")), WQ_OK);
    getter_works_on("foo");
    getter_finds_nothing(WQ_ETIMEDOUT);
}

/* Q-13 Q-16 */
TEST(key_added_before_a_shutdown_is_handed_out_after_it)
{
    add(q, "foo");
    wq_shutdown(q);
    assert_err(wq_add_str(q, "late"), WQ_ESHUTDOWN);
    getter_works_on("foo");
    getter_finds_nothing(WQ_ESHUTDOWN);
}

/* */
TEST(drain_waits_for_a_key_just_added)
{
    add(q, "foo");
    assert_err(wq_shutdown_with_drain_within(q, 0), WQ_ETIMEDOUT);
    getter_works_on("foo");
    assert_err(wq_shutdown_with_drain_within(q, 0), WQ_OK);
}

/* O-13 */
TEST(key_that_was_accepted_survives_a_lack_of_memory)
{
    static const char name[] = "a name of another length than any before it";

    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    const wq_err err = wq_add_str(q, name);
    counting_heal(&mem);
    if (err)
        assert_err(err, WQ_ENOMEM);
    else
        getter_works_on(name);
    getter_finds_nothing(WQ_ETIMEDOUT);
}

/* ---- and time passes ----------------------------------------------------- */

/* what becomes due after the add stands behind it. */
TEST(key_added_before_a_deadline_goes_first)
{
    assert_err(wq_add_after(q, wq_str("due"), SECOND), WQ_OK);
    add(q, "added");
    wq_clock_fake_step(fake, 2 * SECOND);
    getter_works_on("added");
    getter_works_on("due");
}

/* D-05: what was due before it stands before it. */
TEST(key_added_after_a_deadline_goes_last)
{
    assert_err(wq_add_after(q, wq_str("due"), SECOND), WQ_OK);
    wq_clock_fake_step(fake, 2 * SECOND);
    add(q, "added");
    wq_clock_fake_step(fake, SECOND);
    getter_works_on("due");
    getter_works_on("added");
}

/* the deadline was set by somebody who came after. */
TEST(key_added_before_a_delay_was_asked_for_goes_first)
{
    add(q, "added");
    assert_err(wq_add_after(q, wq_str("due"), SECOND), WQ_OK);
    wq_clock_fake_step(fake, 2 * SECOND);
    getter_works_on("added");
    getter_works_on("due");
}

/* D-10 D-11: added, it comes now; and again when its time has come. */
TEST(waiting_key_that_is_added_comes_twice)
{
    assert_err(wq_add_after(q, wq_str("foo"), SECOND), WQ_OK);
    add(q, "foo");
    getter_works_on("foo");
    getter_finds_nothing(WQ_ETIMEDOUT);
    wq_clock_fake_step(fake, SECOND);
    getter_works_on("foo");
    getter_finds_nothing(WQ_ETIMEDOUT);
}

/* When nothing waits any more it is as before. */
TEST(keys_stay_in_order_when_the_last_deadline_has_passed)
{
    assert_err(wq_add_after(q, wq_str("due"), SECOND), WQ_OK);
    add(q, "a");
    wq_clock_fake_step(fake, SECOND);
    add(q, "b");
    getter_works_on("a");
    getter_works_on("due");
    getter_works_on("b");
    add(q, "c");
    assert_err(wq_add_after(q, wq_str("later"), SECOND), WQ_OK);
    add(q, "d");
    wq_clock_fake_step(fake, SECOND);
    getter_works_on("c");
    getter_works_on("d");
    getter_works_on("later");
}

#define getter_test(name) test_with(name, open_queue, close_queue)

WQ_TESTS(getter_test(key_added_twice_is_handed_out_once),
         getter_test(key_added_twice_counts_once),
         getter_test(key_added_while_it_holds_it_comes_once_more_after_done),
         getter_test(key_added_while_it_holds_it_is_not_lost_at_done),
         getter_test(keys_leave_first_come_first_served),
         getter_test(key_added_before_a_done_goes_first),
         getter_test(keys_added_in_many_ways_stay_in_order),
         getter_test(many_keys_all_come_in_order),
         getter_test(key_can_be_taken_by_who_added_it),
         getter_test(key_can_be_looked_at_and_removed),
         getter_test(key_added_before_a_shutdown_is_handed_out_after_it),
         getter_test(drain_waits_for_a_key_just_added),
         getter_test(key_that_was_accepted_survives_a_lack_of_memory),
         getter_test(key_added_before_a_deadline_goes_first),
         getter_test(key_added_after_a_deadline_goes_last),
         getter_test(key_added_before_a_delay_was_asked_for_goes_first),
         getter_test(waiting_key_that_is_added_comes_twice),
         getter_test(keys_stay_in_order_when_the_last_deadline_has_passed));
