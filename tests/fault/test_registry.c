/* SPDX-License-Identifier: MIT */
/* test_registry.c: what does a registry do when it gets no memory?
 *
 * Every allocation of each of its operations is refused once, and for good:
 * the operation says so and nothing has happened, and reports, which cannot
 * say so, lose nothing.
 */
#include "support/wq_test.h"

#include <stdio.h>
#include <string.h>

#include "metrics/metrics.h"
#include "support/exposition.h"
#include "support/stub_queue.h"
#include "support/sweep.h"

enum { BEFORE = 5, PRIORITIES = 60 };

struct ctx {
    struct counting  *mem;
    wq_registry      *registry;
    struct stub_queue stub[BEFORE + 1];
    void             *handles[BEFORE + 1]; /* the last is the one under test */
    struct wq__text   text;
    wq_depth          depths[PRIORITIES];
    const char       *name; /* of the queue under test */
};

static struct ctx ctx;

static const wq_metrics *
sink(void)
{
    return wq_registry_sink(ctx.registry);
}

static wq_err
begin(int i, const char *name)
{
    return sink()->open(sink()->self, &ctx.stub[i].base, name, &ctx.handles[i]);
}

static void
setup_nothing(struct counting *mem)
{
    const char *name = ctx.name;

    memset(&ctx, 0, sizeof ctx);
    ctx.name = name;
    ctx.mem = mem;
    wq__text_init(&ctx.text, &mem->allocator);
    for (int i = 0; i <= BEFORE; i++)
        stub_queue_init(&ctx.stub[i]);
    for (int i = 0; i < PRIORITIES; i++)
        ctx.depths[i] = (wq_depth){.priority = i, .keys = 1};
}

static wq_err
op_create(void)
{
    return wq__registry_create(&ctx.mem->allocator, &ctx.registry);
}

static void
setup(struct counting *mem)
{
    char name[] = "a";

    setup_nothing(mem);
    assert_int_equal(op_create(), WQ_OK);
    for (int i = 0; i < BEFORE; i++, name[0]++)
        assert_int_equal(begin(i, name), WQ_OK);
}

static void
teardown(void)
{
    wq__text_fini(&ctx.text);
    for (int i = 0; i <= BEFORE; i++)
        if (ctx.handles[i])
            sink()->close(ctx.handles[i]);
    wq_registry_destroy(ctx.registry);
}

static const struct fixture no_registry_yet = {setup_nothing, teardown};
static const struct fixture five_queues = {setup, teardown};

/* The text as it is now, judged; valid until the next. */
static const char *
read_text(void)
{
    wq__text_fini(&ctx.text);
    wq__text_init(&ctx.text, &ctx.mem->allocator);
    assert_int_equal(
        wq__registry_render(ctx.registry, WQ_TEXT_PROMETHEUS, &ctx.text),
        WQ_OK);
    const char *broken =
        exposition_check(ctx.text.data, ctx.text.len, WQ_TEXT_PROMETHEUS);
    if (broken)
        fail_msg("%s", broken);
    wq__text_char(&ctx.text, '\0');
    return ctx.text.data;
}

/* ---- create -------------------------------------------------------------- */

static void
no_registry(void)
{
    assert_null(ctx.registry);
}

static void
queue_can_report(void)
{
    assert_int_equal(begin(0, "x"), WQ_OK);
}

/* O-40 */
TEST(create_without_memory_makes_nothing)
{
    assert_fails_cleanly(&no_registry_yet, "create", op_create, no_registry,
                         queue_can_report);
}

/* ---- open ---------------------------------------------------------------- */

static wq_err
op_open(void)
{
    return begin(BEFORE, ctx.name);
}

static long long
count_of(const char *text, const char *name)
{
    char series[100];

    (void)snprintf(series, sizeof series,
                   "workqueue_work_duration_seconds_count{name=\"%s\"}", name);
    return exposition_count(text, series);
}

static void
no_trace_of_it(void)
{
    assert_null(ctx.handles[BEFORE]);
    const char *text = read_text();
    assert_int_equal(count_of(text, ctx.name), ctx.name[1] ? -1 : 0);
    assert_int_equal(count_of(text, "a"), 0);
}

static void
it_reports(void)
{
    sink()->work(ctx.handles[BEFORE], 1);
    assert_int_equal(count_of(read_text(), ctx.name), 1);
}

/* O-40: a new name, in front, behind and between, and one that is known. */
TEST(open_without_memory_makes_nothing)
{
    static const char *const names[] = {"A new one", "a new one", "z new one",
                                        "c"};

    for (size_t i = 0; i < 4; i++) {
        ctx.name = names[i];
        assert_fails_cleanly(&five_queues, names[i], op_open, no_trace_of_it,
                             it_reports);
    }
}

/* ---- reports ------------------------------------------------------------- */

static wq_err
op_report(void)
{
    for (int i = 0; i < BEFORE; i++) {
        sink()->work(ctx.handles[i], 1000000000);
        sink()->work(ctx.handles[i], 1);
    }
    return WQ_OK;
}

static void
all_are_counted(void)
{
    const char *text = read_text();
    for (char name[] = "a"; name[0] < 'a' + BEFORE; name[0]++)
        assert_int_equal(count_of(text, name), 2);
    assert_string_equal(
        exposition_value(text,
                         "workqueue_work_duration_seconds_sum{name=\"c\"}"),
        "1.000000001");
}

/* O-40 */
TEST(report_without_memory_is_counted)
{
    assert_needs_no_memory(&five_queues, "report", op_report, all_are_counted);
}

/* ---- text ---------------------------------------------------------------- */

static void
setup_with_priorities(struct counting *mem)
{
    setup(mem);
    for (int i = 0; i < BEFORE; i++) {
        ctx.stub[i].depths = ctx.depths;
        ctx.stub[i].depths_len = (size_t)(i + 1) * 12;
        ctx.stub[i].counts.adds = 3;
    }
}

static wq_err
op_text(void)
{
    wq__text_fini(&ctx.text);
    wq__text_init(&ctx.text, &ctx.mem->allocator);
    return wq__registry_render(ctx.registry, WQ_TEXT_OPENMETRICS, &ctx.text);
}

static void
text_is_whole(void)
{
    assert_null(
        exposition_check(ctx.text.data, ctx.text.len, WQ_TEXT_OPENMETRICS));
    const char *text = read_text();
    assert_int_equal(exposition_count(text, "workqueue_adds_total{name=\"a\"}"),
                     3);
    assert_int_equal(
        exposition_count(text, "workqueue_priority_depth{name=\"e\",priority="
                               "\"other\"}"),
        PRIORITIES - 25);
}

static const struct fixture many_priorities = {setup_with_priorities, teardown};

/* O-41 */
TEST(text_without_memory_is_none_and_next_time_whole)
{
    assert_fails_cleanly(&many_priorities, "text", op_text, NULL,
                         text_is_whole);
}

/* ---- the end ------------------------------------------------------------- */

/* O-40 */
TEST(close_and_destroy_need_no_memory)
{
    assert_ends_without_memory(&five_queues);
}

WQ_TESTS(test(create_without_memory_makes_nothing),
         test(open_without_memory_makes_nothing),
         test(report_without_memory_is_counted),
         test(text_without_memory_is_none_and_next_time_whole),
         test(close_and_destroy_need_no_memory));
