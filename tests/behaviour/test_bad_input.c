/* SPDX-License-Identifier: MIT */
/* test_bad_input.c: is misuse answered with an error, and nothing changed?
 *
 * Each test starts from a queue in which "held" is held and dirty, "loan" is
 * held, and "ready" is ready; assert_unchanged() plays it to its end.
 */
#include "fixture.h"

#include <stdlib.h>

struct scene {
    wq_queue *q;
    wq_item  *held; /* added again since */
    wq_item  *loan; /* not added again */
};

static int
make_scene(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    assert_err(wq_create(NULL, &s->q), WQ_OK);
    add(s->q, "held");
    add(s->q, "loan");
    add(s->q, "ready");
    s->held = take_key(s->q, "held");
    s->loan = take_key(s->q, "loan");
    add(s->q, "held");
    *state = s;
    return 0;
}

static int
drop_scene(void **state)
{
    struct scene *s = *state;

    wq_destroy(s->q);
    free(s);
    return 0;
}

static void
assert_unchanged(struct scene *s)
{
    assert_false(wq_shutting_down(s->q));
    assert_int_equal(wq_len(s->q), 1);
    assert_key(s->held, "held");
    assert_key(s->loan, "loan");
    finish(s->q, s->held);
    finish(s->q, s->loan);
    assert_int_equal(wq_len(s->q), 2);
    work_on(s->q, "ready");
    work_on(s->q, "held");
    assert_none_ready(s->q, WQ_ETIMEDOUT);
}

/* ---- NULL --------------------------------------------------------------- */

/* O-14 */
TEST(no_queue_is_an_error_and_no_crash)
{
    wq_item *const untouched = (wq_item *)(void *)&state;
    wq_item       *item = untouched;
    wq_item        any = {.slot = 1};

    assert_err(wq_add(NULL, wq_str("foo")), WQ_EINVAL);
    assert_err(wq_add_str(NULL, "foo"), WQ_EINVAL);
    assert_err(wq_get(NULL, &item), WQ_EINVAL);
    assert_err(wq_get_within(NULL, 0, &item), WQ_EINVAL);
    assert_err(wq_done(NULL, &any), WQ_EINVAL);
    assert_err(wq_done_key(NULL, wq_str("foo")), WQ_EINVAL);
    assert_err(wq_shutdown_with_drain(NULL), WQ_EINVAL);
    assert_err(wq_shutdown_with_drain_within(NULL, 0), WQ_EINVAL);
    assert_ptr_equal(item, untouched);
}

/* O-14: verbs that cannot fail have nothing to say. */
TEST(no_queue_is_empty_and_open_and_cannot_be_woken)
{
    assert_int_equal(wq_len(NULL), 0);
    assert_false(wq_shutting_down(NULL));
    wq_shutdown(NULL);
    wq_interrupt(NULL);
    wq_destroy(NULL);
}

/* O-14 */
TEST(nowhere_to_put_an_item_is_an_error)
{
    struct scene *s = *state;

    assert_err(wq_get(s->q, NULL), WQ_EINVAL);
    assert_err(wq_get_within(s->q, 0, NULL), WQ_EINVAL);
    assert_unchanged(s);
}

/* O-14 */
TEST(no_item_is_an_error)
{
    struct scene *s = *state;

    assert_err(wq_done(s->q, NULL), WQ_EINVAL);
    assert_unchanged(s);
}

/* O-14 O-04 */
TEST(no_key_is_an_error)
{
    struct scene *s = *state;

    assert_err(wq_add(s->q, (wq_key){NULL, 0}), WQ_EINVAL);
    assert_err(wq_add(s->q, (wq_key){NULL, 5}), WQ_EINVAL);
    assert_err(wq_add_str(s->q, NULL), WQ_EINVAL);
    assert_err(wq_add(s->q, wq_u64(NULL)), WQ_EINVAL);
    assert_err(wq_done_key(s->q, (wq_key){NULL, 5}), WQ_EINVAL);
    assert_unchanged(s);
}

/* ---- keys and times that are none --------------------------------------- */

/* O-04 */
TEST(key_of_no_bytes_is_an_error)
{
    struct scene *s = *state;

    assert_err(wq_add(s->q, (wq_key){"loan", 0}), WQ_EINVAL);
    assert_err(wq_done_key(s->q, (wq_key){"loan", 0}), WQ_EINVAL);
    assert_unchanged(s);
}

/* O-04 */
TEST(key_of_too_many_bytes_is_an_error)
{
    struct scene *s = *state;
    char         *bytes = calloc(1, WQ_KEY_MAX + 1);

    assert_non_null(bytes);
    const wq_key key = {bytes, WQ_KEY_MAX + 1};
    assert_err(wq_add(s->q, key), WQ_ETOOLONG);
    assert_err(wq_done_key(s->q, key), WQ_ETOOLONG);
    assert_unchanged(s);
    free(bytes);
}

/* O-05 O-07: the drain does not even shut down. */
TEST(negative_time_is_an_error)
{
    struct scene *s = *state;
    wq_item      *item = NULL;

    assert_err(wq_get_within(s->q, -1, &item), WQ_EINVAL);
    assert_err(wq_shutdown_with_drain_within(s->q, -1), WQ_EINVAL);
    assert_err(wq_shutdown_with_drain_within(s->q, INT64_MIN), WQ_EINVAL);
    assert_null(item);
    assert_unchanged(s);
}

/* ---- done of what is not on loan ---------------------------------------- */

/* O-06 */
TEST(item_done_twice_is_refused_the_second_time)
{
    struct scene *s = *state;

    add(s->q, "twice");
    finish(s->q, take_key(s->q, "ready"));
    wq_item *item = take_key(s->q, "twice");
    finish(s->q, item);
    add(s->q, "ready");

    assert_err(wq_done(s->q, item), WQ_ESTATE);
    assert_err(wq_done(s->q, item), WQ_ESTATE);
    assert_unchanged(s);
}

/* O-06: the second done does not take the key from the line. */
TEST(item_done_twice_leaves_its_dirty_key_ready)
{
    struct scene *s = *state;

    finish(s->q, s->held);
    assert_err(wq_done(s->q, s->held), WQ_ESTATE);

    assert_int_equal(wq_len(s->q), 2);
    work_on(s->q, "ready");
    work_on(s->q, "held");
}

/* O-06: nor does it depend on how many there were. */
TEST(many_items_done_twice_are_refused_the_second_time)
{
    enum { MANY = 2000 };
    struct scene *s = *state;
    wq_item     **items = calloc(MANY, sizeof(wq_item *));

    assert_non_null(items);
    finish(s->q, take_key(s->q, "ready"));
    for (uint64_t i = 0; i < MANY; i++) {
        assert_err(wq_add(s->q, wq_u64(&i)), WQ_OK);
        items[i] = take(s->q);
    }
    for (int i = 0; i < MANY; i++)
        finish(s->q, items[i]);
    for (int i = 0; i < MANY; i++)
        assert_err(wq_done(s->q, items[i]), WQ_ESTATE);

    add(s->q, "ready");
    assert_unchanged(s);
    free(items);
}

/* O-06 */
TEST(item_of_another_queue_is_refused)
{
    struct scene *s = *state;
    wq_queue     *other = NULL;

    assert_err(wq_create(NULL, &other), WQ_OK);
    for (uint64_t i = 0; i < 20; i++) {
        assert_err(wq_add(other, wq_u64(&i)), WQ_OK);
        wq_item *theirs = take(other);
        assert_err(wq_done(s->q, theirs), WQ_ESTATE);
    }
    assert_err(wq_done(other, s->loan), WQ_ESTATE);
    wq_destroy(other);
    assert_unchanged(s);
}

/* O-06 */
TEST(item_of_another_queue_with_the_same_key_is_refused)
{
    struct scene *s = *state;
    wq_queue     *other = NULL;

    assert_err(wq_create(NULL, &other), WQ_OK);
    add(other, "held");
    add(other, "loan");
    wq_item *held = take(other), *loan = take(other);

    assert_err(wq_done(s->q, held), WQ_ESTATE);
    assert_err(wq_done(s->q, loan), WQ_ESTATE);
    wq_destroy(other);
    assert_unchanged(s);
}

/* O-06 */
TEST(copy_of_an_item_is_refused)
{
    struct scene *s = *state;
    wq_item       copy = *s->loan;

    assert_err(wq_done(s->q, &copy), WQ_ESTATE);
    assert_unchanged(s);
}

/* O-06: every number an item could hold by accident, or nearly. */
TEST(invented_items_are_refused)
{
    struct scene *s = *state;
    wq_item       invented = *s->loan;

    for (uint32_t slot = 0; slot < 70000; slot++) {
        invented.slot = slot;
        if (wq_done(s->q, &invented) != WQ_ESTATE)
            fail_msg("slot %u was taken for a loan", (unsigned)slot);
    }
    for (uint32_t bit = 0; bit < 32; bit++) {
        invented.slot = UINT32_MAX << bit;
        assert_err(wq_done(s->q, &invented), WQ_ESTATE);
        invented.slot = UINT32_C(1) << bit | s->loan->slot;
        assert_err(wq_done(s->q, &invented), WQ_ESTATE);
    }
    assert_unchanged(s);
}

/* O-06 */
TEST(item_of_garbage_is_refused)
{
    struct scene *s = *state;
    wq_item       garbage;

    for (int byte = 0; byte < 256; byte++) {
        memset(&garbage, byte, sizeof garbage);
        assert_err(wq_done(s->q, &garbage), WQ_ESTATE);
    }
    assert_unchanged(s);
}

/* Q-21 O-06 */
TEST(done_of_a_key_that_is_ready_is_refused)
{
    struct scene *s = *state;

    assert_err(wq_done_key(s->q, wq_str("ready")), WQ_ESTATE);
    assert_unchanged(s);
}

/* Q-21 O-06 */
TEST(done_of_a_key_that_is_not_there_is_refused)
{
    struct scene *s = *state;

    assert_err(wq_done_key(s->q, wq_str("nobody")), WQ_ESTATE);
    assert_unchanged(s);
}

/* Q-21 O-06 */
TEST(done_of_a_key_twice_is_refused_the_second_time)
{
    struct scene *s = *state;

    assert_err(wq_done_key(s->q, wq_str("loan")), WQ_OK);
    assert_err(wq_done_key(s->q, wq_str("loan")), WQ_ESTATE);
    assert_err(wq_done(s->q, s->loan), WQ_ESTATE);
    assert_int_equal(wq_len(s->q), 1);
}

/* ---- too late ----------------------------------------------------------- */

/* Q-15 Q-16 */
TEST(add_after_shutdown_is_refused_and_changes_nothing)
{
    struct scene *s = *state;

    wq_shutdown(s->q);
    assert_err(wq_add_str(s->q, "new"), WQ_ESHUTDOWN);
    assert_err(wq_add_str(s->q, "ready"), WQ_ESHUTDOWN);
    assert_err(wq_add_str(s->q, "loan"), WQ_ESHUTDOWN);
    assert_err(wq_add_str(s->q, "held"), WQ_ESHUTDOWN);

    assert_int_equal(wq_len(s->q), 1);
    finish(s->q, s->loan);
    finish(s->q, s->held);
    work_on(s->q, "ready");
    work_on(s->q, "held");
    assert_none_ready(s->q, WQ_ESHUTDOWN);
}

/* Q-16 O-14: what is wrong with the key is said first, shut down or not. */
TEST(bad_key_after_shutdown_is_still_a_bad_key)
{
    struct scene *s = *state;

    wq_shutdown(s->q);

    assert_err(wq_add_str(s->q, ""), WQ_EINVAL);
    assert_err(wq_add_str(s->q, NULL), WQ_EINVAL);
}

#define with_scene(name) test_with(name, make_scene, drop_scene)

WQ_TESTS(test(no_queue_is_an_error_and_no_crash),
         test(no_queue_is_empty_and_open_and_cannot_be_woken),
         with_scene(nowhere_to_put_an_item_is_an_error),
         with_scene(no_item_is_an_error), with_scene(no_key_is_an_error),
         with_scene(key_of_no_bytes_is_an_error),
         with_scene(key_of_too_many_bytes_is_an_error),
         with_scene(negative_time_is_an_error),
         with_scene(item_done_twice_is_refused_the_second_time),
         with_scene(item_done_twice_leaves_its_dirty_key_ready),
         with_scene(many_items_done_twice_are_refused_the_second_time),
         with_scene(item_of_another_queue_is_refused),
         with_scene(item_of_another_queue_with_the_same_key_is_refused),
         with_scene(copy_of_an_item_is_refused),
         with_scene(invented_items_are_refused),
         with_scene(item_of_garbage_is_refused),
         with_scene(done_of_a_key_that_is_ready_is_refused),
         with_scene(done_of_a_key_that_is_not_there_is_refused),
         with_scene(done_of_a_key_twice_is_refused_the_second_time),
         with_scene(add_after_shutdown_is_refused_and_changes_nothing),
         with_scene(bad_key_after_shutdown_is_still_a_bad_key));
