/* SPDX-License-Identifier: MIT */
/* test_add_with.c: what does wq_add_with() do with batches that a scenario
 * cannot describe: long ones, empty ones, bad keys, and the calls of a limiter
 * in their order? See scenarios/add_with.scenario for the others. */
#include "asked.h"

#include <stdio.h>

#include <wq/limiter.h>
#include <wq/metrics.h>

/* O-50: more keys than are handled without memory. */
TEST(batch_may_be_of_any_length)
{
    enum { MANY = 1000 };
    struct timed *t = *state;
    uint64_t      numbers[MANY];
    wq_key        keys[MANY];
    wq_added      what[MANY];

    for (size_t i = 0; i < MANY; i++) {
        numbers[i] = i * 7919;
        keys[i] = wq_u64(&numbers[i]);
    }
    assert_err(
        wq_add_with(t->q, WQ_ADD(.priority = 1, .results = what), keys, MANY),
        WQ_OK);
    assert_int_equal(wq_len(t->q), MANY);
    for (size_t i = 0; i < MANY; i++) {
        wq_item *item = take(t->q);
        assert_memory_equal(item->key.data, &numbers[i], sizeof numbers[i]);
        assert_int_equal(item->priority, 1);
        assert_added(what[i], WQ_ADDED_NEW);
        finish(t->q, item);
    }
    assert_none_due(t);
}

/* O-50 */
TEST(options_of_null_or_zero_are_a_plain_add)
{
    struct timed *t = *state;
    const wq_key  keys[] = {wq_str("a"), wq_str("b")};

    assert_err(wq_add_with(t->q, NULL, keys, 2), WQ_OK);
    assert_err(wq_add_with(t->q, WQ_ADD(.priority = 0), keys, 2), WQ_OK);
    work_on_at(t->q, "a", 0);
    work_on_at(t->q, "b", 0);
    assert_none_due(t);
    assert_counts(t->q, 2, 0);
}

/* O-50 */
TEST(batch_without_keys_succeeds_before_a_shutdown)
{
    struct timed *t = *state;

    assert_err(wq_add_with(t->q, NULL, NULL, 0), WQ_OK);
    assert_err(wq_add_with(t->q, WQ_ADD(.after_ns = S), NULL, 0), WQ_OK);
    assert_counts(t->q, 0, 0);
    wq_shutdown(t->q);
    assert_err(wq_add_with(t->q, NULL, NULL, 0), WQ_ESHUTDOWN);
}

/* O-50 O-56 */
TEST(batch_with_a_bad_key_adds_nothing)
{
    static char   bytes[WQ_KEY_MAX + 1];
    struct timed *t = *state;
    const wq_key  empty[] = {wq_str("a"), wq_str(""), wq_str("b")};
    const wq_key  longer[] = {wq_str("a"), {bytes, sizeof bytes}};
    wq_added      what[3] = {WQ_ADDED_LATER, WQ_ADDED_LATER, WQ_ADDED_LATER};

    assert_err(wq_add_with(t->q, WQ_ADD(.results = what), empty, 3), WQ_EINVAL);
    assert_err(wq_add_with(t->q, WQ_ADD(.results = what), longer, 2),
               WQ_ETOOLONG);
    assert_added(what[0], WQ_ADDED_LATER);
    assert_none_due(t);
    assert_counts(t->q, 0, 0);
}

/* PQ-46: there may be any number of priorities. */
TEST(depths_include_every_priority_in_use)
{
    struct timed *t = *state;
    char          text[16];

    for (int i = 1; i <= 60; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        add_at(t->q, i, text);
    }
    for (int i = 1; i <= 60; i++)
        assert_int_equal(depth_at(t->q, i), 1);
}

static wq_err
count_open(void *self, wq_queue *q, const char *name, void **handle)
{
    (void)q, (void)name, (void)handle;
    ++*(int *)self;
    return WQ_OK;
}

/* PQ-46 M-06 */
TEST(queue_without_a_name_has_no_metrics)
{
    int              opened = 0;
    const wq_metrics sink = {
        .size = sizeof sink, .self = &opened, .open = count_open};
    const struct {
        const char *name;
        int         opened;
    } rows[] = {{NULL, 0}, {"", 0}, {"test", 1}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wq_destroy(
            open_queue(WQ_CONFIG(.metrics = &sink, .name = rows[i].name)));
        assert_int_equal(opened, rows[i].opened);
    }
}

/* ---- calls of the limiter ------------------------------------------------ */

/* The calls of a limiter: + when, - undo, ! forget, each with its key. */
struct calls {
    char text[64];
};

static void
note_call(void *self, char what, wq_key key)
{
    struct calls *calls = self;
    const size_t  at = strlen(calls->text);

    (void)snprintf(calls->text + at, sizeof calls->text - at, "%c%.*s", what,
                   (int)key.len, (const char *)key.data);
}

static int64_t
note_when(void *self, wq_key key)
{
    note_call(self, '+', key);
    return 5 * MS;
}

static void
note_undo(void *self, wq_key key)
{
    note_call(self, '-', key);
}

static void
note_forget(void *self, wq_key key)
{
    note_call(self, '!', key);
}

/* Only "x" has failed before. */
static unsigned
failures_of_x(void *self, wq_key key)
{
    (void)self;
    return *(const char *)key.data == 'x' ? 5 : 0;
}

/* O-50 O-16 O-17 O-55: a batch that fails undoes the calls it made, except for
 * the key that is given up; a key in BACKOFF needs no call. */
TEST(limiter_is_called_for_each_key_and_undone_on_failure)
{
    const wq_limiter_ops ops = {
        .size = sizeof ops,
        .when = note_when,
        .undo = note_undo,
        .forget = note_forget,
        .num_requeues = failures_of_x,
    };
    const struct {
        wq_config   config;
        const char *in_backoff; /* this key is retried before; or NULL */
        const char *keys;       /* one letter each */
        wq_err      err;
        const char *calls;
    } rows[] = {
        {{.max_retries = 2}, NULL, "axc", WQ_EGIVENUP, "+a!x-a"},
        {{.retry = WQ_RETRY_ONCE}, "a", "ab", WQ_OK, "+a+b"},
        {{.max_len = 1}, NULL, "ab", WQ_EFULL, "+a+b-a-b"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct calls calls = {.text = ""};
        wq_config    config = rows[i].config;
        wq_key       keys[3];
        size_t       n = 0;

        config.size = sizeof config;
        config.limiter = wq_limiter_create(&ops, &calls);
        assert_err(wq_limiter_error(config.limiter), WQ_OK);
        struct timed *t = timed_create(&config);

        if (rows[i].in_backoff)
            assert_err(wq_add_rate_limited(t->q, wq_str(rows[i].in_backoff)),
                       WQ_OK);
        for (; rows[i].keys[n]; n++)
            keys[n] = wq_bytes(rows[i].keys + n, 1);
        const wq_err err =
            wq_add_with(t->q, WQ_ADD(.rate_limited = true), keys, n);
        if (err != rows[i].err || strcmp(calls.text, rows[i].calls) != 0)
            fail_msg("row %zu: %s, and the calls were %s", i, wq_err_name(err),
                     calls.text);
        timed_destroy(t);
    }
}

WQ_TESTS(with_time(batch_may_be_of_any_length),
         with_time(options_of_null_or_zero_are_a_plain_add),
         with_time(batch_without_keys_succeeds_before_a_shutdown),
         with_time(batch_with_a_bad_key_adds_nothing),
         with_time(depths_include_every_priority_in_use),
         test(queue_without_a_name_has_no_metrics),
         test(limiter_is_called_for_each_key_and_undone_on_failure));
