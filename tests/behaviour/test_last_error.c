/* SPDX-License-Identifier: MIT */
/* test_last_error.c: does the sentence of a failed call name the field and the
 * reason? See test_limiter_error.c for limiters. */
#include "sentence.h"

#include <errno.h>
#include <math.h>
#include <wchar.h>

#include <wq/limiter.h>
#include <wq/metrics.h>
#include <wq/workers.h>

#include "configs.h"
#include "support/counting.h"
#include "support/plain_queue.h"
#include "support/worker.h"

/* ---- functions that do nothing ------------------------------------------- */

static void
do_nothing(void *ctx, size_t piece)
{
    (void)ctx, (void)piece;
}

static wq_result
handle(void *ctx, const wq_item *item)
{
    (void)ctx, (void)item;
    return wq_result_done();
}

/* ---- queues -------------------------------------------------------------- */

static wq_err
no_open(void *self, wq_queue *q, const char *name, void **handle_)
{
    (void)self, (void)q, (void)name, (void)handle_;
    return WQ_ENOTFOUND;
}

static wq_err
open_that_explains(void *self, wq_queue *q, const char *name, void **handle_)
{
    (void)self, (void)q, (void)handle_;
    return wq_fail(WQ_EIO, "statsd: no route for %s", name);
}

/* E-03: every reason of wq_create(). */
TEST(create_says_which_field_is_wrong)
{
    wq_order odd = order_of_nothing, no_push = odd, no_pop = odd, no_len = odd;
    odd.size = ODD;
    no_push.push = NULL;
    no_pop.pop = NULL;
    no_len.len = NULL;
    wq_allocator no_size = broke, no_alloc = broke, no_free = broke;
    no_size.size = 0;
    no_alloc.alloc = NULL;
    no_free.free = NULL;
    const wq_metrics bad_metrics = {.size = ODD};
    const wq_metrics silent = {.size = sizeof silent, .open = no_open};
    const wq_metrics speaking = {.size = sizeof speaking,
                                 .open = open_that_explains};
    const struct {
        const char *sentence;
        wq_config   config;
    } invalid[] = {
        {"wq_config.waiting is 7: not a wq_waiting",
         {.waiting = (wq_waiting)7}},
        {"wq_config.retry is 0x9: has bits that are not in enum wq_retry",
         {.retry = 9}},
        {"wq_config.overflow is 3: not a wq_overflow",
         {.max_len = 1, .overflow = (wq_overflow)3}},
        {"wq_config.overflow needs max_len or max_bytes",
         {.overflow = WQ_OVERFLOW_BLOCK}},
        {"wq_config.max_ready_ns is negative (-1)", {.max_ready_ns = -1}},
        {"wq_config.group_max_held needs group", {.group_max_held = 1}},
        {"wq_order.size is 13: use sizeof(wq_order)", {.order = &odd}},
        {"wq_order.push is NULL", {.order = &no_push}},
        {"wq_order.pop is NULL", {.order = &no_pop}},
        {"wq_order.len is NULL", {.order = &no_len}},
        {"wq_allocator.size is 0: use sizeof(wq_allocator)",
         {.allocator = &no_size}},
        {"wq_allocator.alloc is NULL", {.allocator = &no_alloc}},
        {"wq_allocator.free is NULL", {.allocator = &no_free}},
        {"wq_metrics.size is 13: use sizeof(wq_metrics)",
         {.metrics = &bad_metrics}},
    };
    wq_queue *q = NULL;

    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        wq_config config = invalid[i].config;

        config.size = sizeof config;
        assert_says(wq_create(&config, &q), WQ_EINVAL, "%s",
                    invalid[i].sentence);
    }
    for (size_t size = 0; size <= ODD; size += ODD)
        assert_says(
            wq_create(&(wq_config){.size = size}, &q), WQ_EINVAL,
            "wq_config.size is %zu: use WQ_CONFIG() or sizeof(wq_config)",
            size);
    assert_says(wq_create(NULL, NULL), WQ_EINVAL, "wq_create: out is NULL");
    assert_says(
        wq_create(WQ_CONFIG(.name = "q", .metrics = &silent), &q), WQ_ENOTFOUND,
        "wq_metrics.open for queue 'q' returned WQ_ENOTFOUND: not found: no "
        "such key, queue or file");
    assert_says(wq_create(WQ_CONFIG(.name = "q", .metrics = &speaking), &q),
                WQ_EIO, "statsd: no route for q");
    assert_says(wq_create(WQ_CONFIG(.allocator = &broke), &q), WQ_ENOMEM,
                "wq_create: out of memory");
    assert_null(q);
}

/* E-03 */
TEST(create_says_which_fields_cannot_be_combined)
{
    const struct {
        const char *sentence;
        wq_config   config;
    } rows[] = {
        {"wq_config.max_ready_ns cannot be combined with group_max_held",
         {.group = wq_group_before_slash,
          .group_max_held = 1,
          .max_ready_ns = 1}},
        {"wq_config.max_bytes cannot be combined with order",
         {.order = &order_of_nothing, .max_bytes = 1}},
        {"wq_config.group cannot be combined with order",
         {.order = &order_of_nothing, .group = wq_group_before_slash}},
        {"wq_config.max_ready_ns cannot be combined with order",
         {.order = &order_of_nothing, .max_ready_ns = 1}},
        {"wq_config.overflow is WQ_OVERFLOW_DROP_OLDEST, which cannot be "
         "combined with order",
         {.order = &order_of_nothing,
          .max_len = 1,
          .overflow = WQ_OVERFLOW_DROP_OLDEST}},
    };
    wq_queue *q = NULL;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wq_config config = rows[i].config;

        config.size = sizeof config;
        assert_says(wq_create(&config, &q), WQ_ENOTSUP, "%s", rows[i].sentence);
    }
    assert_null(q);
}

/* E-03 O-02 */
TEST(create_names_a_field_of_a_later_release)
{
    struct {
        wq_config config;
        void     *unknown;
    } longer = {.config.size = sizeof longer, .unknown = &longer};
    wq_queue *q = NULL;

    assert_says(wq_create(&longer.config, &q), WQ_EINVAL,
                "wq_config.size is %zu, and a field after byte %zu is set, "
                "which this release does not know",
                sizeof longer, sizeof longer.config);
}

/* E-03: one allocation after the other is refused. */
TEST(every_refusal_of_memory_has_a_sentence)
{
    struct counting mem;
    wq_queue       *q = NULL;
    size_t          n = 0;

    counting_init(&mem);
    for (wq_err err = WQ_ENOMEM; err;) {
        counting_fail(&mem, ++n, COUNTING_ONCE);
        (void)wq_fail(WQ_EIO, "an older sentence");
        err =
            wq_create(WQ_CONFIG(.name = "q", .allocator = &mem.allocator), &q);
        if (err)
            assert_non_null(strstr(wq_last_error(), "out of memory"));
    }
    assert_true(n > 3);
    counting_heal(&mem);
    wq_destroy(q);
}

/* E-03: errno is set, too. */
TEST(bucket_has_a_sentence_and_errno)
{
    errno = 0;
    assert_null(wq_bucket_create(NAN, 1, NULL));
    assert_string_equal(wq_last_error(),
                        "wq_bucket_create: limit is not a number");
    assert_int_equal(errno, EINVAL);
    assert_null(wq_bucket_create(-HUGE_VAL, 1, NULL));
    assert_string_equal(wq_last_error(),
                        "wq_bucket_create: limit is infinite: use WQ_RATE_INF");
    assert_null(wq_bucket_create(1, -1, NULL));
    assert_string_equal(wq_last_error(),
                        "wq_bucket_create: burst is negative (-1)");
}

/* ---- layers and backends ------------------------------------------------- */

static const struct {
    const char *name;
    wq_err (*wrap)(wq_queue *inner, const wq_config *config, wq_queue **out);
} layers[] = {{"wq_delaying_wrap", wq_delaying_wrap},
              {"wq_rate_limiting_wrap", wq_rate_limiting_wrap}};

/* E-03 O-18 */
TEST(layers_say_which_field_they_do_not_support)
{
    const wq_metrics metrics = {.size = sizeof metrics};
    const struct {
        const char *field;
        wq_config   config;
    } rows[] = {
        {"order", {.order = &order_of_nothing}},
        {"waiting", {.waiting = 1}},
        {"retry", {.retry = 1}},
        {"name", {.name = "q"}},
        {"metrics", {.metrics = &metrics}},
        {"ages", {.ages = true}},
        {"max_len", {.max_len = 1}},
        {"real_time", {.real_time = true}},
        {"group", {.group = wq_group_before_slash}},
        {"max_ready_ns", {.max_ready_ns = 1}},
        {"max_bytes", {.max_bytes = 1}},
    };
    wq_queue *inner = open_queue(NULL), *out = NULL;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wq_config config = rows[i].config;

        config.size = sizeof config;
        for (size_t n = 0; n < 2; n++)
            assert_says(layers[n].wrap(inner, &config, &out), WQ_ENOTSUP,
                        "wq_config.%s is not supported by a layer",
                        rows[i].field);
    }
    assert_null(out);
    wq_destroy(inner);
}

/* E-03 O-18 */
TEST(layers_say_what_is_wrong_with_their_arguments)
{
    wq_queue *plain = NULL, *inner = open_queue(NULL), *out = NULL;

    for (size_t n = 0; n < 2; n++) {
        assert_says(layers[n].wrap(NULL, NULL, &out), WQ_EINVAL,
                    "%s: inner is NULL", layers[n].name);
        assert_says(layers[n].wrap(inner, NULL, NULL), WQ_EINVAL,
                    "%s: out is NULL", layers[n].name);
        assert_says(layers[n].wrap(inner, WQ_CONFIG(.allocator = &broke), &out),
                    WQ_ENOMEM, "%s: out of memory", layers[n].name);
    }
    assert_err(plain_create(PLAIN_BASE, &plain), WQ_OK);
    assert_says(wq_rate_limiting_wrap(plain, NULL, &out), WQ_ENOTSUP,
                "wq_rate_limiting_wrap: inner has no delays: use "
                "wq_delaying_wrap() first");
    assert_null(out);
    wq_destroy(inner);
    wq_destroy(plain);
}

/* E-03 O-09 */
TEST(backend_init_says_which_verb_is_missing)
{
    wq_queue *plain = NULL, mine = {NULL};

    assert_err(plain_create(PLAIN_REQUIRED, &plain), WQ_OK);
    const wq_backend whole = *plain->backend;
    wq_backend       b;
#define VERB(field)                                                            \
    {                                                                          \
        offsetof(wq_backend, field), #field                                    \
    }
    static const struct {
        size_t      at;
        const char *field;
    } required[] = {VERB(name),     VERB(destroy),      VERB(add),
                    VERB(get),      VERB(done),         VERB(len),
                    VERB(shutdown), VERB(shutting_down)};
#undef VERB
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        b = whole;
        memset((char *)&b + required[i].at, 0, sizeof b.add);
        assert_says(wq_backend_init(&mine, &b), WQ_EINVAL,
                    "wq_backend.%s is NULL", required[i].field);
    }
    b = whole;
    b.size = ODD;
    assert_says(wq_backend_init(&mine, &b), WQ_EINVAL,
                "wq_backend.size is 13: use sizeof(wq_backend)");
    assert_says(wq_backend_init(NULL, &whole), WQ_EINVAL,
                "wq_backend_init: q is NULL");
    assert_says(wq_backend_init(&mine, NULL), WQ_EINVAL,
                "wq_backend_init: backend is NULL");
    wq_destroy(plain);
}

/* ---- workers ------------------------------------------------------------- */

/* E-03 PW-01 */
TEST(workers_start_says_which_field_is_wrong)
{
    const wq_allocator no_alloc = {.size = sizeof no_alloc,
                                   .free = free_nothing};
    const size_t       size = sizeof(wq_workers_config);
    const struct {
        const char       *sentence;
        wq_workers_config config;
        wq_err            err;
    } rows[] = {
        {"wq_workers_config.size is 13: use WQ_WORKERS() or "
         "sizeof(wq_workers_config)",
         {.size = ODD},
         WQ_EINVAL},
        {"wq_workers_config.handler is NULL",
         {.size = size, .threads = 1},
         WQ_EINVAL},
        {"wq_workers_config.item_deadline_ns is negative (-1)",
         {.size = size, .handler = handle, .item_deadline_ns = -1},
         WQ_EINVAL},
        {"wq_workers_config.item_deadline_ns needs on_stuck",
         {.size = size, .handler = handle, .item_deadline_ns = 1},
         WQ_EINVAL},
        {"wq_allocator.alloc is NULL",
         {.size = size, .handler = handle, .allocator = &no_alloc},
         WQ_EINVAL},
        {"wq_workers_start: out of memory",
         {.size = size, .handler = handle, .allocator = &broke},
         WQ_ENOMEM},
    };
    struct counting mem;
    wq_queue       *q = open_queue(NULL);
    wq_workers     *pool = NULL;

    counting_init(&mem);
    assert_says(wq_workers_start(NULL, WQ_WORKERS(.handler = handle), &pool),
                WQ_EINVAL, "wq_workers_start: q is NULL");
    assert_says(wq_workers_start(q, WQ_WORKERS(.handler = handle), NULL),
                WQ_EINVAL, "wq_workers_start: out is NULL");
    assert_says(wq_workers_start(q, NULL, &pool), WQ_EINVAL,
                "wq_workers_start: config is NULL");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_says(wq_workers_start(q, &rows[i].config, &pool), rows[i].err,
                    "%s", rows[i].sentence);
    counting_fail(&mem, 3, COUNTING_ONCE);
    assert_says(wq_workers_start(q,
                                 WQ_WORKERS(.handler = handle, .threads = 2,
                                            .allocator = &mem.allocator),
                                 &pool),
                WQ_ENOMEM,
                "wq_workers: cannot start thread 1: out of memory, or too many "
                "threads");
    assert_null(pool);
    wq_destroy(q);
}

/* E-03 PW-25 */
TEST(work_one_says_which_argument_is_wrong)
{
    wq_queue *q = open_queue(NULL);

    assert_says(wq_work_one(NULL, WQ_WORKERS(.handler = handle), 0), WQ_EINVAL,
                "wq_work_one: q is NULL");
    assert_says(wq_work_one(q, NULL, 0), WQ_EINVAL,
                "wq_work_one: config is NULL");
    assert_says(wq_work_one(q, WQ_WORKERS(.threads = 1), 0), WQ_EINVAL,
                "wq_workers_config.handler is NULL");
    assert_says(wq_work_one(q, WQ_WORKERS(.handler = handle), -1), WQ_EINVAL,
                "wq_work_one: timeout_ns is negative (-1)");
    wq_destroy(q);
}

/* E-03 P-01 */
TEST(parallelize_says_which_argument_is_wrong)
{
    assert_says(wq_parallelize(0, 1, do_nothing, NULL, NULL), WQ_EINVAL,
                "wq_parallelize: workers is 0: at least 1 is needed");
    assert_says(wq_parallelize(1, 1, NULL, NULL, NULL), WQ_EINVAL,
                "wq_parallelize: work is NULL");
    assert_says(wq_parallelize(1, 1, do_nothing, NULL,
                               &(wq_parallel_options){.size = ODD}),
                WQ_EINVAL,
                "wq_parallel_options.size is 13: use WQ_PARALLEL() or "
                "sizeof(wq_parallel_options)");
}

/* ---- metrics ------------------------------------------------------------- */

/* E-03 M-07 */
TEST(metrics_say_what_is_wrong)
{
    const wq_metrics sink = {.size = sizeof sink}, odd = {.size = ODD};

    assert_says(wq_registry_create(NULL), WQ_EINVAL,
                "wq_registry_create: out is NULL");
    assert_says(wq_metrics_set_default(&odd), WQ_EINVAL,
                "wq_metrics.size is 13: use sizeof(wq_metrics)");
    assert_err(wq_metrics_set_default(&sink), WQ_OK);
    assert_says(wq_metrics_set_default(&sink), WQ_ESTATE,
                "wq_metrics_set_default: a default sink is already set");
    assert_err(wq_metrics_set_default(NULL), WQ_OK);
}

/* ---- adds ---------------------------------------------------------------- */

/* E-03 O-50 */
TEST(add_with_says_which_option_is_wrong)
{
    static const char long_bytes[WQ_KEY_MAX + 1];
    const wq_key      one = {"one", 3};
    const wq_key      keys[] = {one, {NULL, 0}};
    const wq_key      too_long = {long_bytes, sizeof long_bytes};
    const struct {
        const char    *sentence;
        wq_add_options how;
    } rows[] = {
        {"wq_add_options.debounce_ns is negative (-1)", {.debounce_ns = -1}},
        {"wq_add_options.max_wait_ns is negative (-1)",
         {.debounce_ns = 1, .max_wait_ns = -1}},
        {"wq_add_options.throttle_ns is negative (-1)", {.throttle_ns = -1}},
        {"wq_add_options.max_block_ns is negative (-2)", {.max_block_ns = -2}},
        {"wq_add_options.nowait cannot be combined with max_block_ns",
         {.nowait = true, .max_block_ns = 1}},
        {"wq_add_options.waiting is 4: not a wq_if_waiting",
         {.waiting = (wq_if_waiting)4}},
        {"wq_add_options.max_wait_ns needs debounce_ns", {.max_wait_ns = 1}},
        {"wq_add_options: use only one of a delay (after_ns, rate_limited), "
         "debounce_ns and throttle_ns",
         {.after_ns = 1, .throttle_ns = 1}},
        {"wq_add_options.waiting cannot be combined with debounce_ns",
         {.waiting = WQ_IF_WAITING_MERGE, .debounce_ns = 1}},
        {"wq_add_options.waiting cannot be combined with throttle_ns",
         {.waiting = WQ_IF_WAITING_MERGE, .throttle_ns = 1}},
    };
    wq_queue *q = open_queue(NULL);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wq_add_options how = rows[i].how;
        how.size = sizeof how;
        assert_says(wq_add_one(q, one, &how), WQ_EINVAL, "%s",
                    rows[i].sentence);
    }
    assert_says(
        wq_add_one(q, one, &(wq_add_options){.size = ODD}), WQ_EINVAL,
        "wq_add_options.size is 13: use WQ_ADD() or sizeof(wq_add_options)");
    assert_says(wq_add_with(NULL, NULL, keys, 1), WQ_EINVAL,
                "wq_add_with: q is NULL");
    assert_says(wq_add_with(q, NULL, NULL, 1), WQ_EINVAL,
                "wq_add_with: keys is NULL");
    assert_says(wq_add_with(q, NULL, keys, 2), WQ_EINVAL,
                "wq_add_with: keys[1] is NULL or empty");
    assert_says(wq_add_with(q, NULL, &too_long, 1), WQ_ETOOLONG,
                "wq_add_with: keys[0] is longer than WQ_KEY_MAX bytes");
    assert_int_equal(wq_len(q), 0);
    wq_destroy(q);
}

/* ---- the sentence itself ------------------------------------------------- */

/* 0: it was "" before, and the thread's own after. */
static int
fail_in_another_thread(struct worker *self)
{
    wq_queue *q = NULL;

    (void)self;
    if (strcmp(wq_last_error(), "") != 0)
        return 1;
    if (wq_create(WQ_CONFIG(.retry = 8), &q) != WQ_EINVAL)
        return 2;
    return strstr(wq_last_error(), "wq_config.retry") ? 0 : 3;
}

/* E-03 */
TEST(each_thread_has_its_own_sentence)
{
    const char *mine = wq_last_error();

    (void)wq_fail(WQ_EIO, "mine");
    assert_int_equal(worker_join(worker_start(fail_in_another_thread, NULL)),
                     0);
    assert_string_equal(wq_last_error(), "mine");
    assert_string_equal(mine, "mine");
}

/* E-03: also if it calls a function that may fail, and that does. */
TEST(success_does_not_change_the_sentence)
{
    wq_workers  *pool = NULL;
    wq_registry *registry = NULL;

    (void)wq_fail(WQ_EIO, "before");
    assert_err(wq_registry_create(&registry), WQ_OK);
    wq_queue *q =
        open_queue(WQ_CONFIG(.name = "q", .metrics = wq_registry_sink(registry),
                             .limiter = wq_limiter_default()));
    assert_err(wq_add_one(q, wq_str("foo"), WQ_ADD(.nowait = true)), WQ_OK);
    assert_err(
        wq_workers_start(q, WQ_WORKERS(.handler = handle, .threads = 1), &pool),
        WQ_OK);
    assert_err(wq_workers_destroy(pool), WQ_OK);
    assert_err(wq_parallelize(4, 4, do_nothing, NULL,
                              WQ_PARALLEL(.allocator = &broke)),
               WQ_OK);
    wq_destroy(q);
    wq_registry_destroy(registry);
    assert_string_equal(wq_last_error(), "before");
}

/* E-04 */
TEST(fail_returns_its_error_and_keeps_errno)
{
    const wchar_t no_character[] = {0xD800, 0}; /* vsnprintf() sets errno */

    errno = ENOENT;
    assert_err(wq_fail(WQ_ELOST, "%s: %d of %zu", "a", -1, (size_t)2),
               WQ_ELOST);
    assert_int_equal(errno, ENOENT);
    assert_string_equal(wq_last_error(), "a: -1 of 2");
    assert_err(wq_fail(WQ_ELOST, "%ls", no_character), WQ_ELOST);
    assert_int_equal(errno, ENOENT);
    assert_string_equal(wq_last_error(), wq_strerror(WQ_ELOST));
}

/* E-04 */
TEST(sentence_may_quote_the_one_before)
{
    (void)wq_fail(WQ_EIO, "the disk is full");
    (void)wq_fail(WQ_EIO, "my_open: %s", wq_last_error());
    assert_string_equal(wq_last_error(), "my_open: the disk is full");
}

/* E-04 */
TEST(long_sentence_is_cut_between_characters)
{
    /* Characters of one to four bytes, and bytes that are none. */
    static const struct {
        const char *character;
        size_t      fits; /* bytes of 255 that whole characters take */
    } rows[] = {
        {"x", 255},
        {"\xc3\xbc", 254},
        {"\xe2\x82\xac", 255},
        {"\xf0\x9f\x8e\x89", 252},
        {"\x80", 255},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const size_t bytes = strlen(rows[i].character);
        char         text[401] = "";

        for (size_t at = 0; at + bytes < sizeof text; at += bytes)
            memcpy(text + at, rows[i].character, bytes);
        (void)wq_fail(WQ_EIO, "%s", text);
        assert_int_equal(strlen(wq_last_error()), rows[i].fits);
        assert_memory_equal(wq_last_error(), text, rows[i].fits);
    }
}

WQ_TESTS(test(create_says_which_field_is_wrong),
         test(create_says_which_fields_cannot_be_combined),
         test(create_names_a_field_of_a_later_release),
         test(every_refusal_of_memory_has_a_sentence),
         test(bucket_has_a_sentence_and_errno),
         test(layers_say_which_field_they_do_not_support),
         test(layers_say_what_is_wrong_with_their_arguments),
         test(backend_init_says_which_verb_is_missing),
         test(workers_start_says_which_field_is_wrong),
         test(work_one_says_which_argument_is_wrong),
         test(parallelize_says_which_argument_is_wrong),
         test(metrics_say_what_is_wrong),
         test(add_with_says_which_option_is_wrong),
         test(each_thread_has_its_own_sentence),
         test(success_does_not_change_the_sentence),
         test(fail_returns_its_error_and_keeps_errno),
         test(sentence_may_quote_the_one_before),
         test(long_sentence_is_cut_between_characters));
