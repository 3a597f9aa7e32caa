/* SPDX-License-Identifier: MIT */
/* test_time.c: what time is it in a queue after another boot, and after steps of
 * the wall clock?
 *
 * The tests do not change the clocks of the machine: they change what the file
 * says about them, as if the clocks had been different when it was written.
 */
#include "support/wq_test.h"

#include <stdio.h>
#include <string.h>

#include <wq/inspect.h>
#include <wq/sqlite.h>

#include "sqlite/place.h"

#define HOUR (3600 * WQ_SECONDS(1))

static struct {
    struct place at;
    wq_queue    *q;
} f;

static void
open_queue(void)
{
    assert_err(wq_sqlite_open(f.at.db, NULL, NULL, &f.q), WQ_OK);
}

static int
set_up(void **state)
{
    (void)state;
    f.at = place_make();
    open_queue();
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    wq_destroy(f.q);
    f.q = NULL;
    place_remove(&f.at);
    return 0;
}

/* Close the queue, change the file, and open it without PATH-wq, as after a
 * boot. */
static void
reopen_after(const char *sql)
{
    char side[PLACE_PATH + 8];

    wq_destroy(f.q);
    f.q = NULL;
    (void)snprintf(side, sizeof side, "%s-wq", f.at.db);
    place_remove_file(side);
    assert_string_equal(place_sql(f.at.db, sql), "");
    open_queue();
}

static void
add_in_an_hour(void)
{
    assert_err(wq_add_after_str(f.q, "k", HOUR), WQ_OK);
}

static int64_t
wait_of_key(void)
{
    wq_key_info info = {.size = sizeof info};

    assert_err(wq_read_key(f.q, wq_str("k"), &info), WQ_OK);
    return info.wait_ns;
}

static uint64_t
get_key(void)
{
    wq_item *item;

    assert_err(wq_get_within(f.q, 0, &item), WQ_OK);
    const uint64_t fence = item->fence;
    assert_err(wq_finish(f.q, item, wq_result_back()), WQ_OK);
    return fence;
}

/* ---- deadlines ----------------------------------------------------------- */

#define TWO_HOURS "2 * 3600 * 1000000000"
#define ONE_HOUR "3600 * 1000000000"

/* All that the file knows is two hours older. */
TEST(deadline_passes_while_the_machine_is_off)
{
    add_in_an_hour();
    reopen_after("UPDATE extra SET due = due - " TWO_HOURS ";"
                 "UPDATE meta SET boot = 'before',"
                 " seen_ns = seen_ns - " TWO_HOURS ","
                 " epoch_ns = epoch_ns - " TWO_HOURS);
    (void)get_key();
}

/* The wall clock of the boot before was two hours ahead. (Not one: seen_ns is as
 * old as the file, and the deadline is counted from the add.) */
TEST(time_does_not_go_back_with_a_boot)
{
    add_in_an_hour();
    reopen_after("UPDATE meta SET boot = 'before',"
                 " seen_ns = seen_ns + " TWO_HOURS);
    (void)get_key();
}

/* The epoch is that of the boot, whatever the wall clock is now. */
TEST(wall_clock_that_goes_back_delays_no_deadline)
{
    add_in_an_hour();
    reopen_after("UPDATE meta SET epoch_ns = epoch_ns + " ONE_HOUR);
    (void)get_key();
}

TEST(wall_clock_that_goes_forward_hastens_no_deadline)
{
    add_in_an_hour();
    reopen_after("UPDATE meta SET epoch_ns = epoch_ns - " ONE_HOUR);
    assert_true(wait_of_key() > HOUR);
}

/* ---- fences -------------------------------------------------------------- */

/* The copy knows nothing of the numbers that were used since. */
TEST(fences_go_on_after_an_old_copy_was_restored)
{
    assert_err(wq_add_str(f.q, "k"), WQ_OK);
    const uint64_t before = get_key();
    reopen_after("UPDATE meta SET number = 0");
    assert_true(get_key() > before);
}

#define IN_PLACE(name) test_with(name, set_up, tear_down)

WQ_TESTS(IN_PLACE(deadline_passes_while_the_machine_is_off),
         IN_PLACE(time_does_not_go_back_with_a_boot),
         IN_PLACE(wall_clock_that_goes_back_delays_no_deadline),
         IN_PLACE(wall_clock_that_goes_forward_hastens_no_deadline),
         IN_PLACE(fences_go_on_after_an_old_copy_was_restored));
