/* SPDX-License-Identifier: MIT */
/* test_check.c: does wq_check() find what is wrong in a file? (O-35) Each case
 * damages one thing by SQL, as an outsider could. That intact queues have no
 * problem is checked after every scenario. */
#include "support/wq_test.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <wq/inspect.h>
#include <wq/sqlite.h>

#include "sqlite/place.h"

static struct {
    struct place at;
    wq_queue    *q;
    int          problems;
    char         last[512];
} f;

/* READY r, HELD h, WAITING w, DEAD d. */
static int
set_up(void **state)
{
    wq_item *item;

    (void)state;
    memset(&f, 0, sizeof f);
    f.at = place_make();
    assert_int_equal(wq_sqlite_open(f.at.db, NULL, NULL, &f.q), WQ_OK);
    assert_int_equal(wq_add_str(f.q, "d"), WQ_OK);
    assert_int_equal(wq_get_within(f.q, 0, &item), WQ_OK);
    assert_int_equal(wq_finish(f.q, item, wq_result_bury()), WQ_OK);
    assert_int_equal(wq_add_str(f.q, "h"), WQ_OK);
    assert_int_equal(wq_get_within(f.q, 0, &item), WQ_OK);
    assert_int_equal(wq_add_str(f.q, "r"), WQ_OK);
    assert_int_equal(wq_add_after_str(f.q, "w", WQ_SECONDS(1000)), WQ_OK);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    wq_destroy(f.q);
    place_remove(&f.at);
    return 0;
}

static void
note(void *ctx, const char *text)
{
    (void)ctx;
    f.problems++;
    (void)snprintf(f.last, sizeof f.last, "%s", text);
}

static int
count_problems(void)
{
    f.problems = 0;
    assert_int_equal(wq_check(f.q, note, NULL), WQ_OK);
    return f.problems;
}

/* O-35 */
TEST(intact_file_has_no_problem)
{
    assert_int_equal(count_problems(), 0);
}

/* O-35 */
TEST(each_kind_of_damage_is_found)
{
    static const struct {
        const char *damage, *mend;
    } cases[] = {
        {"UPDATE key SET st=9 WHERE key=CAST('r' AS BLOB)",
         "UPDATE key SET st=1 WHERE key=CAST('r' AS BLOB)"},
        {"UPDATE key SET rank=7 WHERE key=CAST('h' AS BLOB)", NULL},
        {"UPDATE key SET rank=NULL WHERE key=CAST('h' AS BLOB)", NULL},
        {"UPDATE key SET rank=0, seq=1 WHERE key=CAST('w' AS BLOB)",
         "UPDATE key SET rank=NULL, seq=NULL WHERE key=CAST('w' AS BLOB)"},
        {"UPDATE key SET id=id+16 WHERE key=CAST('r' AS BLOB)",
         "UPDATE key SET id=id-16 WHERE key=CAST('r' AS BLOB)"},
        {"UPDATE key SET flags=17 WHERE key=CAST('w' AS BLOB)",
         "UPDATE key SET flags=16 WHERE key=CAST('w' AS BLOB)"},
        {"UPDATE key SET flags=16 WHERE key=CAST('r' AS BLOB)",
         "UPDATE key SET flags=0 WHERE key=CAST('r' AS BLOB)"},
        {"UPDATE extra SET due=NULL",
         "UPDATE extra SET due=9000000000000000000"},
        {"DELETE FROM extra", NULL},
        {"INSERT INTO extra(id, queue, fails) VALUES(5, 1, 1)",
         "DELETE FROM extra WHERE id=5"},
        {"UPDATE key SET flags=2 WHERE key=CAST('r' AS BLOB)",
         "UPDATE key SET flags=0 WHERE key=CAST('r' AS BLOB)"},
        {"UPDATE key SET seq=9000000000000000000 WHERE key=CAST('r' AS BLOB)",
         NULL},
        {"DELETE FROM key WHERE key=CAST('r' AS BLOB)", NULL},
        {"UPDATE key SET flags=16 WHERE key=CAST('d' AS BLOB);"
         " INSERT INTO extra(id, queue, due)"
         " SELECT id, queue, 5 FROM key WHERE key=CAST('d' AS BLOB)",
         NULL},
        {"UPDATE extra SET cool=due", "UPDATE extra SET cool=NULL"},
        {"INSERT INTO key(id, queue, key, st, flags, rank, seq)"
         " SELECT id+1, queue, key, 1, 0, 0, 1 FROM key"
         " WHERE key=CAST('w' AS BLOB)",
         NULL},
        {"INSERT INTO key(id, queue, key, st, flags)"
         " VALUES(1, 1, CAST('x' AS BLOB), 3, 0)",
         NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)place_sql(f.at.db, cases[i].damage);
        if (count_problems() == 0)
            fail_msg("not found: %s", cases[i].damage);
        if (!cases[i].mend) { /* begin anew */
            (void)tear_down(NULL);
            (void)set_up(NULL);
            continue;
        }
        (void)place_sql(f.at.db, cases[i].mend);
        (void)count_problems(); /* what is remembered becomes right */
        if (count_problems() != 0)
            fail_msg("after %s: %s", cases[i].mend, f.last);
    }
}

/* A deadline whose row is damaged cannot act; the others do, and a get sleeps. */
static void
expect_sleep_and_report(const char *damage)
{
    wq_item *item;

    (void)place_sql(f.at.db, damage);
    assert_int_equal(wq_add_after_str(f.q, "soon", WQ_MS(10)), WQ_OK);
    assert_int_equal(wq_get_within(f.q, WQ_SECONDS(5), &item), WQ_OK); /* r */
    assert_int_equal(wq_get_within(f.q, WQ_SECONDS(5), &item), WQ_OK);
    assert_string_equal(item->key.data, "soon");
    const clock_t before = clock();
    assert_int_equal(wq_get_within(f.q, WQ_MS(500), &item), WQ_ETIMEDOUT);
    assert_in_range(clock() - before, 0, CLOCKS_PER_SEC / 10);
    assert_true(count_problems() > 0);
}

/* O-35 */
TEST(get_sleeps_beside_a_deadline_without_its_key)
{
    expect_sleep_and_report("INSERT INTO extra(id, queue, due, arrival)"
                            " VALUES(5, 1, 1, 1), (6, 1, 2, 2);"
                            "INSERT INTO extra(id, queue, cool, arrival)"
                            " VALUES(7, 1, 1, 1)");
}

/* O-35 */
TEST(get_sleeps_beside_a_deadline_that_its_key_does_not_know)
{
    expect_sleep_and_report("UPDATE key SET flags=0"
                            " WHERE key=CAST('w' AS BLOB);"
                            "UPDATE extra SET due=1");
}

/* O-35 */
TEST(row_that_cannot_be_promoted_is_named)
{
    wq_item *item = NULL;

    assert_int_equal(wq_get_within(f.q, 0, &item), WQ_OK); /* r */
    assert_int_equal(wq_done(f.q, item), WQ_OK);
    (void)place_sql(f.at.db, "UPDATE extra SET due=1, cool=1");
    assert_int_equal(wq_add_after_str(f.q, "soon", WQ_MS(1)), WQ_OK);
    assert_int_equal(wq_get_within(f.q, WQ_SECONDS(5), &item), WQ_EAWAY);
    assert_non_null(strstr(wq_last_error(), "restore a backup"));
    assert_true(count_problems() > 0);
    (void)place_sql(f.at.db, "DELETE FROM key WHERE key=CAST('w' AS BLOB)");
    assert_int_equal(wq_get_within(f.q, 0, &item), WQ_OK);
    assert_string_equal(item->key.data, "soon");
}

WQ_TESTS(cmocka_unit_test_setup_teardown(intact_file_has_no_problem, set_up,
                                         tear_down),
         cmocka_unit_test_setup_teardown(each_kind_of_damage_is_found, set_up,
                                         tear_down),
         cmocka_unit_test_setup_teardown(
             get_sleeps_beside_a_deadline_without_its_key, set_up, tear_down),
         cmocka_unit_test_setup_teardown(
             get_sleeps_beside_a_deadline_that_its_key_does_not_know, set_up,
             tear_down),
         cmocka_unit_test_setup_teardown(row_that_cannot_be_promoted_is_named,
                                         set_up, tear_down));
