/* SPDX-License-Identifier: MIT */
/* test_slot.c: does every living thread have a number of its own, and does a
 * number come back when its thread has ended? */
#include "support/wq_test.h"

#include <pthread.h>
#include <stdbool.h>

#include "port/thread_mark.h"
#include "support/checkpoint.h"

enum { MORE = 20, THREADS = WQ__THREAD_NUMBERS + MORE };

/* ---- one after the other ------------------------------------------------- */

static void *
take_twice(void *unused)
{
    const unsigned slot = wq__thread_mark_take_number();

    (void)unused;
    if (wq__thread_mark_number != slot || wq__thread_mark_take_number() != slot)
        return NULL;
    return (void *)(uintptr_t)slot;
}

static unsigned
slot_of_a_thread(void *(*run)(void *))
{
    pthread_t thread;
    void     *slot;

    assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
    assert_int_equal(pthread_join(thread, &slot), 0);
    return (unsigned)(uintptr_t)slot;
}

TEST(number_of_a_thread_that_ended_goes_to_the_next)
{
    const unsigned own = wq__thread_mark_take_number();
    const unsigned first = slot_of_a_thread(take_twice);

    assert_in_range(own, 1, WQ__THREAD_NUMBERS);
    assert_in_range(first, 1, WQ__THREAD_NUMBERS);
    assert_int_not_equal(first, own);
    for (int i = 0; i < 2 * WQ__THREAD_NUMBERS; i++)
        assert_int_equal(slot_of_a_thread(take_twice), first);
    assert_int_equal(wq__thread_mark_take_number(), own);
}

static void *
take_none(void *unused)
{
    (void)unused;
    return (void *)(uintptr_t)wq__thread_mark_number;
}

TEST(thread_that_takes_none_has_none)
{
    assert_int_equal(slot_of_a_thread(take_none), 0);
}

/* ---- all at once --------------------------------------------------------- */

struct member {
    pthread_t thread;
    unsigned  slot; /* 0: came too late */
};

static struct member crowd[THREADS];
static struct tally  taken = TALLY_INIT; /* times one has tried */
static struct tally  leave = TALLY_INIT; /* 1: threads with a number end */
static struct tally  again = TALLY_INIT; /* 1: those without one try again */
static struct tally  home = TALLY_INIT;  /* 1: and may end */

static void *
join_crowd(void *arg)
{
    struct member *self = arg;

    self->slot = wq__thread_mark_take_number();
    tally_add(&taken, 1);
    if (self->slot) {
        (void)tally_reaches(&leave, 1);
        return NULL;
    }
    (void)tally_reaches(&again, 1);
    self->slot = wq__thread_mark_take_number();
    tally_add(&taken, 1);
    (void)tally_reaches(&home, 1);
    return NULL;
}

/* How many have a number; no two the same one. */
static unsigned
count_numbered(void)
{
    bool     seen[WQ__THREAD_NUMBERS + 1] = {false};
    unsigned n = 0;

    for (int i = 0; i < THREADS; i++) {
        const unsigned slot = crowd[i].slot;
        assert_in_range(slot, 0, WQ__THREAD_NUMBERS);
        assert_false(slot && seen[slot]);
        seen[slot] = true;
        n += slot > 0;
    }
    return n;
}

/* Those that have one end. */
static void
join_numbered(void)
{
    for (int i = 0; i < THREADS; i++)
        if (crowd[i].slot) {
            assert_int_equal(pthread_join(crowd[i].thread, NULL), 0);
            crowd[i].slot = 0;
        }
}

TEST(living_threads_have_different_numbers_or_none)
{
    /* This thread may have one, from another test. */
    const unsigned free = WQ__THREAD_NUMBERS - (wq__thread_mark_number > 0);

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&crowd[i].thread, NULL, join_crowd, &crowd[i]), 0);
    tally_await(&taken, THREADS);
    assert_int_equal(count_numbered(), free);

    tally_add(&leave, 1);
    join_numbered();
    tally_add(&again, 1);
    tally_await(&taken, THREADS + THREADS - free);
    assert_int_equal(count_numbered(), THREADS - free);
    tally_add(&home, 1);
    join_numbered();
}

/* ---- from hand to hand --------------------------------------------------- */

enum { CHAINS = 3, LINKS = 300 };

static uint64_t
    entries[WQ__THREAD_NUMBERS + 1]; /* not atomic: that is the test */

static void *
count_in_own_entry(void *unused)
{
    entries[wq__thread_mark_take_number()]++;
    return unused;
}

static void *
run_chain(void *unused)
{
    for (int i = 0; i < LINKS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, count_in_own_entry, NULL) != 0 ||
            pthread_join(thread, NULL) != 0)
            return &entries;
    }
    return unused;
}

/* Threads of different chains have nothing to do with each other but the
 * numbers they get; the thread sanitizer sees if that is not enough. */
TEST(next_thread_sees_what_the_last_did_with_its_number)
{
    pthread_t chains[CHAINS];
    uint64_t  sum = 0;

    for (int i = 0; i < CHAINS; i++)
        assert_int_equal(pthread_create(&chains[i], NULL, run_chain, NULL), 0);
    for (int i = 0; i < CHAINS; i++) {
        void *failed;
        assert_int_equal(pthread_join(chains[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(entries[0], 0); /* there was always one free */
    for (int i = 1; i <= WQ__THREAD_NUMBERS; i++)
        sum += entries[i];
    assert_int_equal(sum, CHAINS * LINKS);
}

/* ---- at the end of a thread ---------------------------------------------- */

static pthread_key_t later;
static unsigned      taken_at_the_end;

/* A destructor of the user's, which comes after ours. */
static void
report_late(void *unused)
{
    (void)unused;
    taken_at_the_end = wq__thread_mark_take_number();
}

static void *
take_and_report_late(void *unused)
{
    (void)pthread_setspecific(later, &later);
    return take_twice(unused);
}

TEST(thread_that_ends_gets_no_second_number)
{
    assert_int_equal(pthread_key_create(&later, report_late), 0);
    const unsigned first = slot_of_a_thread(take_twice);
    taken_at_the_end = UINT32_MAX;
    assert_int_equal(slot_of_a_thread(take_and_report_late), first);
    assert_int_equal(taken_at_the_end, 0);
    assert_int_equal(slot_of_a_thread(take_twice), first); /* not lost */
    assert_int_equal(pthread_key_delete(later), 0);
}

WQ_TESTS(test(number_of_a_thread_that_ended_goes_to_the_next),
         test(thread_that_takes_none_has_none),
         test(living_threads_have_different_numbers_or_none),
         test(next_thread_sees_what_the_last_did_with_its_number),
         test(thread_that_ends_gets_no_second_number));
