/* SPDX-License-Identifier: MIT */
/* test_places.c: are keys found whose hashes are the same? No test can find
 * such keys: rows of another queue take the ids that a key would have. */
#include "support/wq_test.h"

#include <stdio.h>
#include <stdlib.h>

#include <wq/inspect.h>
#include <wq/sqlite.h>

#include "sqlite/place.h"

static struct {
    struct place at;
    wq_queue    *q;
    long long    first; /* the first id that "k" may have */
} f;

static int
tear_down(void **unused)
{
    wq_destroy(f.q);
    place_remove(&f.at);
    (void)unused;
    return 0;
}

static int
set_up(void **state)
{
    (void)state;
    f.at = place_make();
    assert_int_equal(wq_sqlite_open(f.at.db, NULL, NULL, &f.q), WQ_OK);
    assert_int_equal(wq_add_str(f.q, "k"), WQ_OK);
    f.first = atoll(place_sql(f.at.db, "SELECT id FROM key"));
    assert_int_equal(wq_remove(f.q, wq_str("k")), WQ_OK);
    return 0;
}

/* Rows of another queue, from the first place on. */
static void
occupy(int n)
{
    char sql[320];

    (void)snprintf(
        sql, sizeof sql,
        "WITH RECURSIVE n(id) AS (SELECT %lld UNION ALL SELECT id+1 FROM n"
        " WHERE id<%lld) INSERT INTO key(id, queue, key, st, flags, rank, seq)"
        " SELECT id, 99, CAST('k' AS BLOB), 1, 0, 0, id FROM n",
        f.first, f.first + n - 1);
    assert_string_equal(place_sql(f.at.db, sql), "");
}

static void
expect_place(long long n)
{
    assert_int_equal(
        atoll(place_sql(f.at.db, "SELECT id FROM key WHERE queue<>99")),
        f.first + n);
}

static void
expect_runs_once(void)
{
    wq_item *item;

    assert_int_equal(wq_len(f.q), 1);
    assert_int_equal(wq_get_within(f.q, 0, &item), WQ_OK);
    assert_int_equal(item->key.len, 1);
    assert_int_equal(wq_done(f.q, item), WQ_OK);
    assert_int_equal(wq_get_within(f.q, 0, &item), WQ_ETIMEDOUT);
}

static void
note(void *ctx, const char *text)
{
    (void)ctx;
    fail_msg("%s", text);
}

/* S-01 */
TEST(key_whose_place_is_taken_gets_the_next_one)
{
    occupy(3);
    assert_int_equal(wq_add_str(f.q, "k"), WQ_OK);
    expect_place(3);
    assert_int_equal(wq_add_str(f.q, "k"), WQ_OK); /* finds it */
    assert_int_equal(wq_check(f.q, note, NULL), WQ_OK);
    expect_runs_once();
}

/* S-01 */
TEST(key_is_found_when_rows_before_it_are_gone)
{
    occupy(3);
    assert_int_equal(wq_add_str(f.q, "k"), WQ_OK);
    assert_string_equal(
        place_sql(f.at.db, "DELETE FROM key WHERE queue=99 AND id%16<2"), "");
    assert_int_equal(wq_add_str(f.q, "k"), WQ_OK);
    expect_place(3);
    assert_int_equal(wq_check(f.q, note, NULL), WQ_OK);
    expect_runs_once();
}

/* S-01 */
TEST(key_without_a_place_is_refused_and_others_go_on)
{
    occupy(16);
    assert_int_equal(wq_add_str(f.q, "k"), WQ_EAWAY);
    assert_int_not_equal(wq_last_error()[0], '\0');
    assert_int_equal(wq_len(f.q), 0);
    assert_int_equal(wq_add_str(f.q, "x"), WQ_OK);
    expect_runs_once();
}

WQ_TESTS(
    cmocka_unit_test_setup_teardown(key_whose_place_is_taken_gets_the_next_one,
                                    set_up, tear_down),
    cmocka_unit_test_setup_teardown(key_is_found_when_rows_before_it_are_gone,
                                    set_up, tear_down),
    cmocka_unit_test_setup_teardown(
        key_without_a_place_is_refused_and_others_go_on, set_up, tear_down));
