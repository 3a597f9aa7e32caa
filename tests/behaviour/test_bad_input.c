/* SPDX-License-Identifier: MIT */
/* test_bad_input.c: is misuse answered with an error, and nothing changed?
 *
 * Each test starts from a queue in which "held" is held and dirty, "loan" is
 * held, and "ready" is ready; assert_unchanged() plays it to its end.
 */
#include "asked.h"

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
    s->q = open_queue(NULL);
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
    wq_item        any = {.loan = 1};

    assert_err(wq_add(NULL, wq_str("foo")), WQ_EINVAL);
    assert_err(wq_add_str(NULL, "foo"), WQ_EINVAL);
    assert_err(wq_get(NULL, &item), WQ_EINVAL);
    assert_err(wq_get_within(NULL, 0, &item), WQ_EINVAL);
    assert_err(wq_done(NULL, &any), WQ_EINVAL);
    assert_err(wq_done_key(NULL, wq_str("foo")), WQ_EINVAL);
    assert_err(wq_count_drops(NULL, 1), WQ_EINVAL);
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

/* O-06: with other keys, and with the same. */
TEST(item_of_another_queue_is_refused)
{
    struct scene *s = *state;
    wq_queue     *other = open_queue(NULL);

    add(other, "held");
    add(other, "loan");
    for (uint64_t i = 0; i < 20; i++)
        assert_err(wq_add(other, wq_u64(&i)), WQ_OK);
    for (int i = 0; i < 22; i++)
        assert_err(wq_done(s->q, take(other)), WQ_ESTATE);
    assert_err(wq_done(other, s->loan), WQ_ESTATE);
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
        invented.loan = slot;
        if (wq_done(s->q, &invented) != WQ_ESTATE)
            fail_msg("slot %u was taken for a loan", (unsigned)slot);
    }
    for (uint32_t bit = 0; bit < 32; bit++) {
        invented.loan = UINT32_MAX << bit;
        assert_err(wq_done(s->q, &invented), WQ_ESTATE);
        invented.loan = UINT32_C(1) << bit | s->loan->loan;
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

/* ---- adds with a purpose ------------------------------------------------ */

/* O-14 O-50 O-57 O-58 O-59 O-60 O-61 */
TEST(no_queue_is_an_error_for_batches_too)
{
    const wq_key   key = wq_str("foo");
    wq_item        any = {.loan = 1}, *item = &any;
    size_t         n = 77;
    wq_item *const untouched = item;

    assert_err(wq_add_with(NULL, NULL, &key, 1), WQ_EINVAL);
    assert_err(wq_add_with(NULL, NULL, NULL, 0), WQ_EINVAL);
    assert_err(wq_remove(NULL, key), WQ_EINVAL);
    assert_err(wq_cancel_after(NULL, key), WQ_EINVAL);
    assert_err(wq_get_many(NULL, &item, 1, 0, &n), WQ_EINVAL);
    assert_err(wq_done_many(NULL, &item, 1), WQ_EINVAL);
    assert_err(wq_done_many(NULL, NULL, 0), WQ_EINVAL);
    assert_err(wq_next(NULL, 0, &item), WQ_EINVAL);
    assert_ptr_equal(item, untouched);
    assert_int_equal(n, 77);
}

/* O-14 O-59 O-60 O-61 */
TEST(nothing_to_put_items_in_or_take_them_from_is_an_error)
{
    struct scene *s = *state;
    wq_item      *item = s->loan;
    size_t        n = 77;

    assert_err(wq_get_many(s->q, NULL, 1, 0, &n), WQ_EINVAL);
    assert_err(wq_get_many(s->q, &item, 1, 0, NULL), WQ_EINVAL);
    assert_err(wq_get_many(s->q, &item, 0, 0, &n), WQ_EINVAL);
    assert_err(wq_get_many(s->q, &item, 1, -1, &n), WQ_EINVAL);
    assert_err(wq_done_many(s->q, NULL, 1), WQ_EINVAL);
    assert_err(wq_next(s->q, 0, NULL), WQ_EINVAL);
    assert_err(wq_next(s->q, -1, &item), WQ_EINVAL); /* nor is it done */
    assert_ptr_equal(item, s->loan);
    assert_int_equal(n, 77);
    assert_unchanged(s);
}

/* O-60 */
TEST(no_item_among_many_is_an_error)
{
    struct scene *s = *state;
    wq_item      *items[] = {s->loan, NULL, s->held};

    assert_err(wq_done_many(s->q, items, 3), WQ_EINVAL);
    assert_ptr_equal(items[0], s->loan);
    assert_unchanged(s);
}

/* O-50 O-57 O-58 */
TEST(bad_keys_are_refused_by_every_verb)
{
    static char   bytes[WQ_KEY_MAX + 1];
    struct scene *s = *state;
    const wq_key  bad[] = {{NULL, 5}, {"loan", 0}};
    const wq_key  longer = {bytes, sizeof bytes};

    for (int i = 0; i < 2; i++) {
        assert_err(wq_add_with(s->q, NULL, &bad[i], 1), WQ_EINVAL);
        assert_err(wq_remove(s->q, bad[i]), WQ_EINVAL);
        assert_err(wq_cancel_after(s->q, bad[i]), WQ_EINVAL);
    }
    assert_err(wq_add_with(s->q, NULL, NULL, 1), WQ_EINVAL);
    assert_err(wq_add_with(s->q, NULL, &longer, 1), WQ_ETOOLONG);
    assert_err(wq_remove(s->q, longer), WQ_ETOOLONG);
    assert_err(wq_cancel_after(s->q, longer), WQ_ETOOLONG);
    assert_unchanged(s);
}

/* O-50: only one of them can say when. */
TEST(options_that_contradict_each_other_are_refused)
{
    struct scene        *s = *state;
    const wq_add_options bad[] = {
        {.after_ns = 1, .debounce_ns = 1},
        {.after_ns = 1, .throttle_ns = 1},
        {.rate_limited = true, .debounce_ns = 1},
        {.rate_limited = true, .throttle_ns = 1},
        {.debounce_ns = 1, .throttle_ns = 1},
        {.max_wait_ns = 1},
        {.max_wait_ns = 1, .throttle_ns = 1},
        {.debounce_ns = 1, .waiting = WQ_IF_WAITING_MERGE},
        {.throttle_ns = 1, .waiting = WQ_IF_WAITING_IGNORE},
        {.debounce_ns = -1},
        {.throttle_ns = -1},
        {.debounce_ns = 1, .max_wait_ns = -1},
        {.max_block_ns = -1},
        {.max_block_ns = INT64_MIN},
        {.max_block_ns = 1, .nowait = true},
        {.waiting = (wq_if_waiting)4},
        {.waiting = (wq_if_waiting)77},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        wq_add_options how = bad[i];
        how.size = sizeof how;
        if (try_how(s->q, &how, "ready") != WQ_EINVAL)
            fail_msg("options %zu were not refused", i);
        if (wq_add_with(s->q, &how, NULL, 0) != WQ_EINVAL)
            fail_msg("options %zu were not refused without keys", i);
    }
    assert_unchanged(s);
}

/* O-50: what looks odd and is not. */
TEST(options_that_only_look_odd_are_accepted)
{
    struct scene *s = *state;

    add_at(s->q, -1, "ready");
    assert_err(try_how(s->q, WQ_ADD(.after_ns = -1, .nowait = true), "ready"),
               WQ_OK);
    assert_err(try_how(s->q, WQ_ADD(.after_ns = INT64_MIN), "ready"), WQ_OK);
    assert_err(try_how(s->q, WQ_ADD(.after_ns = -1, .debounce_ns = 1), "ready"),
               WQ_OK);
    assert_err(try_how(s->q, WQ_ADD(.max_block_ns = WQ_FOREVER), "ready"),
               WQ_OK);
    assert_unchanged(s);
}

/* O-50 O-02: as a config. */
TEST(options_of_a_wrong_size_are_refused)
{
    struct scene *s = *state;
    struct {
        wq_add_options known;
        uint64_t       beyond;
    } newer = {.known = {.size = sizeof newer}};

    for (size_t size = 0; size < sizeof newer.known; size++) {
        const wq_add_options how = {.size = size};
        const bool           whole = size && size % sizeof(void *) == 0;
        assert_err(try_how(s->q, &how, "ready"), whole ? WQ_OK : WQ_EINVAL);
    }
    assert_err(try_how(s->q, &newer.known, "ready"), WQ_OK);
    newer.beyond = 1;
    assert_err(try_how(s->q, &newer.known, "ready"), WQ_EINVAL);
    assert_unchanged(s);
}

/* O-50 O-02: an older program did not know what is beyond. */
TEST(options_beyond_the_size_are_not_read)
{
    struct scene *s = *state;

    assert_err(try_how(s->q,
                       &(wq_add_options){
                           .size = offsetof(wq_add_options, debounce_ns),
                           .debounce_ns = -5,
                           .max_block_ns = -5,
                       },
                       "ready"),
               WQ_OK);
    assert_unchanged(s);
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
         with_scene(copy_of_an_item_is_refused),
         with_scene(invented_items_are_refused),
         with_scene(item_of_garbage_is_refused),
         with_scene(done_of_a_key_that_is_ready_is_refused),
         with_scene(done_of_a_key_that_is_not_there_is_refused),
         with_scene(done_of_a_key_twice_is_refused_the_second_time),
         with_scene(add_after_shutdown_is_refused_and_changes_nothing),
         with_scene(bad_key_after_shutdown_is_still_a_bad_key),
         test(no_queue_is_an_error_for_batches_too),
         with_scene(nothing_to_put_items_in_or_take_them_from_is_an_error),
         with_scene(no_item_among_many_is_an_error),
         with_scene(bad_keys_are_refused_by_every_verb),
         with_scene(options_that_contradict_each_other_are_refused),
         with_scene(options_that_only_look_odd_are_accepted),
         with_scene(options_of_a_wrong_size_are_refused),
         with_scene(options_beyond_the_size_are_not_read));
