/* SPDX-License-Identifier: MIT */
/* test_last_error.c: does the sentence of a failed call name field and reason?
 */
#include "fixture.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#include <wq/backend.h>
#include <wq/limiter.h>
#include <wq/metrics.h>
#include <wq/workers.h>

#include "support/counting.h"
#include "support/plain_queue.h"
#include "support/worker.h"

/* The call fails with this error, and the thread's sentence is this one. */
#define assert_says(call, expected, sentence)                                  \
    do {                                                                       \
        (void)wq_fail(WQ_EIO, "an older sentence");                            \
        assert_err(call, expected);                                            \
        assert_string_equal(wq_last_error(), sentence);                        \
    } while (0)

/* ---- words --------------------------------------------------------------- */

static wq_err
push(void *self, wq_key key, int priority)
{
    (void)self, (void)key, (void)priority;
    return WQ_OK;
}

static bool
pop(void *self, wq_key *out)
{
    (void)self, (void)out;
    return false;
}

static size_t
len(void *self)
{
    (void)self;
    return 0;
}

static void *
no_memory(void *ctx, size_t n)
{
    (void)ctx, (void)n;
    return NULL;
}

static void
free_nothing(void *ctx, void *p, size_t n)
{
    (void)ctx, (void)p, (void)n;
}

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

static const wq_allocator broke = {
    .size = sizeof broke, .alloc = no_memory, .free = free_nothing};

/* A size that no struct has, on any machine. */
enum { ODD = 13 };

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
    const wq_order order = {
        .size = sizeof order, .push = push, .pop = pop, .len = len};
    wq_order odd = order, no_push = order, no_pop = order, no_len = order;
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
#define CONFIG(...)                                                            \
    {                                                                          \
        .size = sizeof(wq_config), __VA_ARGS__                                 \
    }
    const struct {
        const char *sentence;
        wq_config   config;
        wq_err      err;
    } rows[] = {
        {"wq_config.size is 0: use WQ_CONFIG() or sizeof(wq_config)",
         {.size = 0},
         WQ_EINVAL},
        {"wq_config.size is 13: use WQ_CONFIG() or sizeof(wq_config)",
         {.size = ODD},
         WQ_EINVAL},
        {"wq_config.waiting is 7: not a wq_waiting",
         CONFIG(.waiting = (wq_waiting)7), WQ_EINVAL},
        {"wq_config.retry is 0x9: has bits that are not in enum wq_retry",
         CONFIG(.retry = 9), WQ_EINVAL},
        {"wq_config.overflow is 3: not a wq_overflow",
         CONFIG(.max_len = 1, .overflow = (wq_overflow)3), WQ_EINVAL},
        {"wq_config.overflow needs max_len or max_bytes",
         CONFIG(.overflow = WQ_OVERFLOW_BLOCK), WQ_EINVAL},
        {"wq_config.max_ready_ns is negative (-1)", CONFIG(.max_ready_ns = -1),
         WQ_EINVAL},
        {"wq_config.group_max_held needs group", CONFIG(.group_max_held = 1),
         WQ_EINVAL},
        {"wq_config.max_ready_ns cannot be combined with group_max_held",
         CONFIG(.group = wq_group_before_slash, .group_max_held = 1,
                .max_ready_ns = 1),
         WQ_ENOTSUP},
        {"wq_config.max_bytes cannot be combined with order",
         CONFIG(.order = &order, .max_bytes = 1), WQ_ENOTSUP},
        {"wq_config.group cannot be combined with order",
         CONFIG(.order = &order, .group = wq_group_before_slash), WQ_ENOTSUP},
        {"wq_config.max_ready_ns cannot be combined with order",
         CONFIG(.order = &order, .max_ready_ns = 1), WQ_ENOTSUP},
        {"wq_config.overflow is WQ_OVERFLOW_DROP_OLDEST, which cannot be "
         "combined with order",
         CONFIG(.order = &order, .max_len = 1,
                .overflow = WQ_OVERFLOW_DROP_OLDEST),
         WQ_ENOTSUP},
        {"wq_order.size is 13: use sizeof(wq_order)", CONFIG(.order = &odd),
         WQ_EINVAL},
        {"wq_order.push is NULL", CONFIG(.order = &no_push), WQ_EINVAL},
        {"wq_order.pop is NULL", CONFIG(.order = &no_pop), WQ_EINVAL},
        {"wq_order.len is NULL", CONFIG(.order = &no_len), WQ_EINVAL},
        {"wq_allocator.size is 0: use sizeof(wq_allocator)",
         CONFIG(.allocator = &no_size), WQ_EINVAL},
        {"wq_allocator.alloc is NULL", CONFIG(.allocator = &no_alloc),
         WQ_EINVAL},
        {"wq_allocator.free is NULL", CONFIG(.allocator = &no_free), WQ_EINVAL},
        {"wq_metrics.size is 13: use sizeof(wq_metrics)",
         CONFIG(.metrics = &bad_metrics), WQ_EINVAL},
        {"wq_metrics.open for queue 'q' returned WQ_ENOTFOUND: no such key",
         CONFIG(.name = "q", .metrics = &silent), WQ_ENOTFOUND},
        {"statsd: no route for q", CONFIG(.name = "q", .metrics = &speaking),
         WQ_EIO},
        {"wq_create: out of memory", CONFIG(.allocator = &broke), WQ_ENOMEM},
    };
#undef CONFIG
    wq_queue *q = NULL;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_says(wq_create(&rows[i].config, &q), rows[i].err,
                    rows[i].sentence);
    assert_says(wq_create(NULL, NULL), WQ_EINVAL, "wq_create: out is NULL");
    assert_null(q);
}

/* E-03 O-02 */
TEST(sentence_tells_a_field_of_a_later_release)
{
    struct {
        wq_config config;
        void     *unknown;
    } longer = {.config.size = sizeof longer, .unknown = &longer};
    char      expected[200];
    wq_queue *q = NULL;

    (void)snprintf(expected, sizeof expected,
                   "wq_config.size is %zu and a field is set after byte %zu, "
                   "the last that this release knows",
                   sizeof longer, sizeof longer.config);
    assert_says(wq_create(&longer.config, &q), WQ_EINVAL, expected);
}

/* E-03: each allocation of a queue with all that it can have. */
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

/* ---- limiters ------------------------------------------------------------ */

/* E-03 L-31 */
TEST(limiter_says_which_argument_is_wrong)
{
    wq_limiter_ops     ops = {.size = ODD};
    const wq_allocator no_free = {.size = sizeof no_free, .alloc = no_memory};
    wq_limiter *(*const with)(const wq_exponential_options *) =
        wq_limiter_exponential_with;
#define assert_limiter_says(make, err, sentence)                               \
    assert_says(wq_limiter_error(make), err, sentence)

    assert_limiter_says(wq_limiter_exponential(-5, 1), WQ_EINVAL,
                        "wq_limiter_exponential: base_ns is negative (-5)");
    assert_limiter_says(wq_limiter_exponential(5, -1), WQ_EINVAL,
                        "wq_limiter_exponential: max_ns is negative (-1)");
    assert_limiter_says(
        with(&(wq_exponential_options){.size = ODD}), WQ_EINVAL,
        "wq_exponential_options.size is 13: use WQ_EXPONENTIAL() or "
        "sizeof(wq_exponential_options)");
    assert_limiter_says(with(WQ_EXPONENTIAL(.base_ns = -2)), WQ_EINVAL,
                        "wq_exponential_options.base_ns is negative (-2)");
    assert_limiter_says(with(WQ_EXPONENTIAL(.max_ns = -2)), WQ_EINVAL,
                        "wq_exponential_options.max_ns is negative (-2)");
    assert_limiter_says(with(WQ_EXPONENTIAL(.ttl_ns = -2)), WQ_EINVAL,
                        "wq_exponential_options.ttl_ns is negative (-2)");
    assert_limiter_says(with(WQ_EXPONENTIAL(.jitter = (wq_jitter)3)), WQ_EINVAL,
                        "wq_exponential_options.jitter is 3: not a wq_jitter");
    assert_limiter_says(with(WQ_EXPONENTIAL(.allocator = &no_free)), WQ_EINVAL,
                        "wq_allocator.free is NULL");
    assert_limiter_says(with(WQ_EXPONENTIAL(.allocator = &broke)), WQ_ENOMEM,
                        "wq_limiter_exponential: out of memory");
    assert_limiter_says(wq_limiter_fast_slow(-1, 1, 1), WQ_EINVAL,
                        "wq_limiter_fast_slow: fast_ns is negative (-1)");
    assert_limiter_says(wq_limiter_fast_slow(1, -1, 1), WQ_EINVAL,
                        "wq_limiter_fast_slow: slow_ns is negative (-1)");
    assert_limiter_says(wq_limiter_bucket(NAN, 1), WQ_EINVAL,
                        "wq_limiter_bucket: per_second is not a number");
    assert_limiter_says(wq_limiter_item_bucket(HUGE_VAL, 1), WQ_EINVAL,
                        "wq_limiter_item_bucket: per_second is infinite: use "
                        "WQ_RATE_INF");
    assert_limiter_says(wq_limiter_max_of(1, NULL), WQ_EINVAL,
                        "wq_limiter_max_of: children is NULL");
    assert_limiter_says(
        wq_limiter_max_of(2, (wq_limiter *[]){wq_limiter_default_item(), NULL}),
        WQ_EINVAL, "wq_limiter_max_of: children[1] is NULL");
    assert_limiter_says(wq_limiter_with_max_wait(NULL, 1), WQ_EINVAL,
                        "wq_limiter_with_max_wait: inner is NULL");
    assert_limiter_says(wq_limiter_with_max_wait(wq_limiter_default_item(), -3),
                        WQ_EINVAL,
                        "wq_limiter_with_max_wait: max_ns is negative (-3)");
    assert_limiter_says(wq_limiter_create(NULL, NULL), WQ_EINVAL,
                        "wq_limiter_create: ops is NULL");
    assert_limiter_says(wq_limiter_create(&ops, NULL), WQ_EINVAL,
                        "wq_limiter_ops.size is 13: use "
                        "sizeof(wq_limiter_ops)");
    ops.size = sizeof ops;
    assert_limiter_says(wq_limiter_create(&ops, NULL), WQ_EINVAL,
                        "wq_limiter_ops.when is NULL");
#undef assert_limiter_says
}

/* E-03 L-31: whatever was built around the limiter that failed. */
TEST(reason_of_a_failed_limiter_survives_until_create)
{
    wq_queue *q = NULL;

    assert_says(
        wq_create(
            WQ_CONFIG(.limiter = wq_limiter_with_max_wait(
                          wq_limiter_max_of(
                              2, (wq_limiter *[]){wq_limiter_exponential(-5, 1),
                                                  wq_limiter_bucket(10, 100)}),
                          1000)),
            &q),
        WQ_EINVAL,
        "wq_config.limiter: wq_limiter_with_max_wait: inner: "
        "wq_limiter_max_of: children[0]: "
        "wq_limiter_exponential: base_ns is negative (-5)");
    assert_null(q);
}

/* E-03 L-31: only the last one still has its reason. */
TEST(failed_limiter_does_not_get_the_reason_of_another)
{
    wq_limiter *bad[2];

    bad[0] = wq_limiter_exponential(-5, 1);
    bad[1] = wq_limiter_bucket(NAN, 1);
    assert_err(wq_limiter_error(wq_limiter_max_of(2, bad)), WQ_EINVAL);
    assert_string_equal(wq_last_error(),
                        "wq_limiter_max_of: children[0] is a failed limiter: "
                        "invalid argument");

    bad[0] = wq_limiter_exponential(-5, 1);
    bad[1] = wq_limiter_bucket(NAN, 1);
    assert_err(wq_limiter_error(wq_limiter_max_of(1, bad + 1)), WQ_EINVAL);
    assert_string_equal(wq_last_error(),
                        "wq_limiter_max_of: children[0]: "
                        "wq_limiter_bucket: per_second is not a number");
}

static int64_t
no_wait(void *self, wq_key key)
{
    (void)self, (void)key;
    return 0;
}

/* Counts in *self. */
static void
destroy_and_fail(void *self)
{
    ++*(int *)self;
    assert_err(wq_limiter_error(wq_limiter_exponential(-7, 1)), WQ_EINVAL);
    (void)wq_fail(WQ_EIO, "a sentence of destroy()");
}

/* Leaves it in *self. */
static void
fail_one(void *self)
{
    *(wq_limiter **)self = wq_limiter_exponential(-7, 1);
}

/* E-03 L-24: of a queue, a layer, another limiter. */
TEST(limiter_that_fails_in_destroy_changes_no_sentence)
{
    const wq_limiter_ops ops = {
        .size = sizeof ops, .when = no_wait, .destroy = destroy_and_fail};
    wq_queue *inner = NULL, *q = NULL;
    int       destroyed = 0;

    assert_err(wq_create(NULL, &inner), WQ_OK);
    assert_says(
        wq_create(WQ_CONFIG(.retry = 8,
                            .limiter = wq_limiter_create(&ops, &destroyed)),
                  &q),
        WQ_EINVAL,
        "wq_config.retry is 0x8: has bits that are not in enum wq_retry");
    assert_says(wq_rate_limiting_wrap(
                    NULL,
                    WQ_CONFIG(.limiter = wq_limiter_create(&ops, &destroyed)),
                    &q),
                WQ_EINVAL, "wq_rate_limiting_wrap: inner is NULL");
    assert_says(
        wq_create(WQ_CONFIG(.limiter = wq_limiter_with_max_wait(
                                wq_limiter_create(&ops, &destroyed), -3)),
                  &q),
        WQ_EINVAL,
        "wq_config.limiter: wq_limiter_with_max_wait: max_ns is negative (-3)");
    assert_int_equal(destroyed, 3);
    (void)wq_fail(WQ_EIO, "before");
    wq_limiter_destroy(wq_limiter_create(&ops, &destroyed));
    assert_string_equal(wq_last_error(), "before");
    assert_null(q);
    wq_destroy(inner);
}

/* E-03 L-31: the sentence that destroy() set is not that of a later failure. */
TEST(limiter_that_failed_in_destroy_has_no_reason_left)
{
    const wq_limiter_ops ops = {
        .size = sizeof ops, .when = no_wait, .destroy = fail_one};
    wq_limiter *failed = NULL;

    (void)wq_fail(WQ_EIO, "before");
    wq_limiter_destroy(wq_limiter_create(&ops, &failed));
    assert_err(wq_limiter_error(wq_limiter_max_of(1, &failed)), WQ_EINVAL);
    assert_string_equal(wq_last_error(),
                        "wq_limiter_max_of: children[0] is a failed limiter: "
                        "invalid argument");
}

static int
make_in_another_thread(struct worker *self)
{
    *(wq_limiter **)self->arg = wq_limiter_exponential(-1, 1);
    return 0;
}

/* E-03 L-31: the reason is in another thread, or was overwritten. */
TEST(failed_limiter_without_its_reason_is_named)
{
    wq_limiter *failed = wq_limiter_exponential(-1, 1);
    wq_queue   *q = NULL;

    assert_says(wq_create(WQ_CONFIG(.limiter = failed), &q), WQ_EINVAL,
                "wq_config.limiter is a failed limiter: invalid argument");
    assert_int_equal(worker_join(worker_start(make_in_another_thread, &failed)),
                     0);
    assert_says(
        wq_limiter_error(wq_limiter_max_of(1, (wq_limiter *[]){failed})),
        WQ_EINVAL,
        "wq_limiter_max_of: children[0] is a failed limiter: invalid argument");
}

/* E-03 L-24 */
TEST(sentence_names_the_limiter_that_has_an_owner)
{
    wq_limiter *part = wq_limiter_default_item();
    wq_limiter *whole = wq_limiter_with_max_wait(part, 1);
    wq_queue   *q = NULL;

    assert_says(wq_create(WQ_CONFIG(.limiter = part), &q), WQ_EINVAL,
                "wq_config.limiter has an owner already");
    wq_limiter_destroy(whole);
}

/* E-03: these go on to set errno. */
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

/* E-03 O-18 */
TEST(layers_say_which_field_they_do_not_support)
{
    const wq_order order = {
        .size = sizeof order, .push = push, .pop = pop, .len = len};
    const wq_metrics metrics = {.size = sizeof metrics};
    const struct {
        const char *field;
        wq_config   config;
    } rows[] = {
        {"order", {.order = &order}},
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
    wq_queue *inner = NULL, *out = NULL;

    assert_err(wq_create(NULL, &inner), WQ_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char      expected[80];
        wq_config config = rows[i].config;

        config.size = sizeof config;
        (void)snprintf(expected, sizeof expected,
                       "wq_config.%s: a layer does not support it",
                       rows[i].field);
        assert_says(wq_delaying_wrap(inner, &config, &out), WQ_ENOTSUP,
                    expected);
        assert_says(wq_rate_limiting_wrap(inner, &config, &out), WQ_ENOTSUP,
                    expected);
    }
    assert_null(out);
    wq_destroy(inner);
}

/* E-03 O-18 */
TEST(layers_say_what_is_wrong_with_their_arguments)
{
    wq_queue *plain = NULL, *inner = NULL, *out = NULL;

    assert_err(plain_create(PLAIN_BASE, &plain), WQ_OK);
    assert_err(wq_create(NULL, &inner), WQ_OK);
    assert_says(wq_delaying_wrap(NULL, NULL, &out), WQ_EINVAL,
                "wq_delaying_wrap: inner is NULL");
    assert_says(wq_delaying_wrap(inner, NULL, NULL), WQ_EINVAL,
                "wq_delaying_wrap: out is NULL");
    assert_says(wq_delaying_wrap(inner, WQ_CONFIG(.allocator = &broke), &out),
                WQ_ENOMEM, "wq_delaying_wrap: out of memory");
    assert_says(wq_rate_limiting_wrap(NULL, NULL, &out), WQ_EINVAL,
                "wq_rate_limiting_wrap: inner is NULL");
    assert_says(wq_rate_limiting_wrap(inner, NULL, NULL), WQ_EINVAL,
                "wq_rate_limiting_wrap: out is NULL");
    assert_says(
        wq_rate_limiting_wrap(inner, WQ_CONFIG(.allocator = &broke), &out),
        WQ_ENOMEM, "wq_rate_limiting_wrap: out of memory");
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
    wq_backend       b = whole;
#define assert_missing(verb)                                                   \
    do {                                                                       \
        b = whole;                                                             \
        b.verb = NULL;                                                         \
        assert_says(wq_backend_init(&mine, &b), WQ_EINVAL,                     \
                    "wq_backend." #verb " is NULL");                           \
    } while (0)
    assert_missing(name);
    assert_missing(destroy);
    assert_missing(add);
    assert_missing(get);
    assert_missing(done);
    assert_missing(len);
    assert_missing(shutdown);
    assert_missing(shutting_down);
#undef assert_missing
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
    struct counting    mem;
    wq_queue          *q = NULL;
    wq_workers        *pool = NULL;

    assert_err(wq_create(NULL, &q), WQ_OK);
    counting_init(&mem);
    assert_says(wq_workers_start(NULL, WQ_WORKERS(.handler = handle), &pool),
                WQ_EINVAL, "wq_workers_start: q is NULL");
    assert_says(wq_workers_start(q, WQ_WORKERS(.handler = handle), NULL),
                WQ_EINVAL, "wq_workers_start: out is NULL");
    assert_says(wq_workers_start(q, NULL, &pool), WQ_EINVAL,
                "wq_workers_start: config is NULL");
    assert_says(wq_workers_start(q, &(wq_workers_config){.size = ODD}, &pool),
                WQ_EINVAL,
                "wq_workers_config.size is 13: use WQ_WORKERS() or "
                "sizeof(wq_workers_config)");
    assert_says(wq_workers_start(q, WQ_WORKERS(.threads = 1), &pool), WQ_EINVAL,
                "wq_workers_config.handler is NULL");
    assert_says(
        wq_workers_start(
            q, WQ_WORKERS(.handler = handle, .item_deadline_ns = -1), &pool),
        WQ_EINVAL, "wq_workers_config.item_deadline_ns is negative (-1)");
    assert_says(
        wq_workers_start(
            q, WQ_WORKERS(.handler = handle, .item_deadline_ns = 1), &pool),
        WQ_EINVAL, "wq_workers_config.item_deadline_ns needs on_stuck");
    assert_says(
        wq_workers_start(
            q, WQ_WORKERS(.handler = handle, .allocator = &no_alloc), &pool),
        WQ_EINVAL, "wq_allocator.alloc is NULL");
    assert_says(
        wq_workers_start(q, WQ_WORKERS(.handler = handle, .allocator = &broke),
                         &pool),
        WQ_ENOMEM, "wq_workers_start: out of memory");
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
    wq_queue *q = NULL;

    assert_err(wq_create(NULL, &q), WQ_OK);
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
                "wq_metrics_set_default: there is one already");
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
        {"wq_add_options: more than one of a delay (after_ns, rate_limited), "
         "debounce_ns and throttle_ns",
         {.after_ns = 1, .throttle_ns = 1}},
        {"wq_add_options.waiting cannot be combined with debounce_ns",
         {.waiting = WQ_IF_WAITING_MERGE, .debounce_ns = 1}},
        {"wq_add_options.waiting cannot be combined with throttle_ns",
         {.waiting = WQ_IF_WAITING_MERGE, .throttle_ns = 1}},
    };
    wq_queue *q = NULL;

    assert_err(wq_create(NULL, &q), WQ_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wq_add_options how = rows[i].how;
        how.size = sizeof how;
        assert_says(wq_add_one(q, one, &how), WQ_EINVAL, rows[i].sentence);
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

/* E-03: also where a call within it fails, and it does without. */
TEST(success_does_not_change_the_sentence)
{
    wq_queue    *q = NULL;
    wq_workers  *pool = NULL;
    wq_registry *registry = NULL;

    (void)wq_fail(WQ_EIO, "before");
    assert_err(wq_registry_create(&registry), WQ_OK);
    assert_err(
        wq_create(WQ_CONFIG(.name = "q", .metrics = wq_registry_sink(registry),
                            .limiter = wq_limiter_default()),
                  &q),
        WQ_OK);
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

/* E-04: of any length and with any bytes. */
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
         test(sentence_tells_a_field_of_a_later_release),
         test(every_refusal_of_memory_has_a_sentence),
         test(limiter_says_which_argument_is_wrong),
         test(reason_of_a_failed_limiter_survives_until_create),
         test(failed_limiter_does_not_get_the_reason_of_another),
         test(limiter_that_fails_in_destroy_changes_no_sentence),
         test(limiter_that_failed_in_destroy_has_no_reason_left),
         test(failed_limiter_without_its_reason_is_named),
         test(sentence_names_the_limiter_that_has_an_owner),
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
