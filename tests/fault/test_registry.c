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
#include "support/counting.h"
#include "support/exposition.h"
#include "support/told_queue.h"

enum { BEFORE = 5, PRIORITIES = 60 };

struct ctx {
    struct counting *mem;
    wq_registry     *registry;
    struct told      told[BEFORE + 1];
    void            *handles[BEFORE + 1]; /* the last is the one under test */
    struct wq__text  text;
    wq_depth         depths[PRIORITIES];
    const char      *name; /* of the queue under test */
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
    return sink()->open(sink()->self, &ctx.told[i].base, name, &ctx.handles[i]);
}

static void *
setup_nothing(struct counting *mem)
{
    const char *name = ctx.name;

    memset(&ctx, 0, sizeof ctx);
    ctx.name = name;
    ctx.mem = mem;
    wq__text_init(&ctx.text, &mem->allocator);
    for (int i = 0; i <= BEFORE; i++)
        told_init(&ctx.told[i]);
    for (int i = 0; i < PRIORITIES; i++)
        ctx.depths[i] = (wq_depth){.priority = i, .keys = 1};
    return &ctx;
}

static wq_err
op_create(void *unused)
{
    (void)unused;
    return wq__registry_create(&ctx.mem->allocator, &ctx.registry);
}

static void *
setup(struct counting *mem)
{
    char name[] = "a";

    setup_nothing(mem);
    assert_int_equal(op_create(NULL), WQ_OK);
    for (int i = 0; i < BEFORE; i++, name[0]++)
        assert_int_equal(begin(i, name), WQ_OK);
    return &ctx;
}

static void
teardown(void *unused)
{
    (void)unused;
    wq__text_fini(&ctx.text);
    for (int i = 0; i <= BEFORE; i++)
        if (ctx.handles[i])
            sink()->close(ctx.handles[i]);
    wq_registry_destroy(ctx.registry);
}

static void
run_sweep(const struct counting_sweep *sweep)
{
    const char *broken = counting_sweep(sweep);
    if (broken)
        fail_msg("%s", broken);
}

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
no_registry(void *unused)
{
    (void)unused;
    assert_null(ctx.registry);
}

static void
queue_can_report(void *unused)
{
    (void)unused;
    assert_int_equal(begin(0, "x"), WQ_OK);
}

/* O-40 */
TEST(create_without_memory_makes_nothing)
{
    run_sweep(&(struct counting_sweep){
        .name = "create",
        .setup = setup_nothing,
        .op = op_create,
        .unchanged = no_registry,
        .done = queue_can_report,
        .teardown = teardown,
    });
}

/* ---- open ---------------------------------------------------------------- */

static wq_err
op_open(void *unused)
{
    (void)unused;
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
no_trace_of_it(void *unused)
{
    (void)unused;
    assert_null(ctx.handles[BEFORE]);
    const char *text = read_text();
    assert_int_equal(count_of(text, ctx.name), ctx.name[1] ? -1 : 0);
    assert_int_equal(count_of(text, "a"), 0);
}

static void
it_reports(void *unused)
{
    (void)unused;
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
        run_sweep(&(struct counting_sweep){
            .name = names[i],
            .setup = setup,
            .op = op_open,
            .unchanged = no_trace_of_it,
            .done = it_reports,
            .teardown = teardown,
        });
    }
}

/* ---- reports ------------------------------------------------------------- */

static wq_err
op_report(void *unused)
{
    (void)unused;
    for (int i = 0; i < BEFORE; i++) {
        sink()->work(ctx.handles[i], 1000000000);
        sink()->work(ctx.handles[i], 1);
    }
    return WQ_OK;
}

static void
all_are_counted(void *unused)
{
    (void)unused;
    const char *text = read_text();
    for (char name[] = "a"; name[0] < 'a' + BEFORE; name[0]++)
        assert_int_equal(count_of(text, name), 2);
    assert_string_equal(
        exposition_value(text,
                         "workqueue_work_duration_seconds_sum{name=\"c\"}"),
        "1.000000001");
}

static void
nothing(void *unused)
{
    (void)unused;
}

/* O-40 */
TEST(report_without_memory_is_counted)
{
    run_sweep(&(struct counting_sweep){
        .name = "report",
        .setup = setup,
        .op = op_report,
        .unchanged = nothing,
        .done = all_are_counted,
        .teardown = teardown,
        .needs_none = true,
    });
}

/* ---- text ---------------------------------------------------------------- */

static void *
setup_with_priorities(struct counting *mem)
{
    setup(mem);
    for (int i = 0; i < BEFORE; i++) {
        ctx.told[i].depths = ctx.depths;
        ctx.told[i].depths_len = (size_t)(i + 1) * 12;
        ctx.told[i].counts.adds = 3;
    }
    return &ctx;
}

static wq_err
op_text(void *unused)
{
    (void)unused;
    wq__text_fini(&ctx.text);
    wq__text_init(&ctx.text, &ctx.mem->allocator);
    return wq__registry_render(ctx.registry, WQ_TEXT_OPENMETRICS, &ctx.text);
}

static void
text_is_whole(void *unused)
{
    (void)unused;
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

/* O-41 */
TEST(text_without_memory_is_none_and_next_time_whole)
{
    run_sweep(&(struct counting_sweep){
        .name = "text",
        .setup = setup_with_priorities,
        .op = op_text,
        .unchanged = nothing,
        .done = text_is_whole,
        .teardown = teardown,
    });
}

/* ---- the end ------------------------------------------------------------- */

static void
memory_fails_for_good(void *unused)
{
    (void)unused;
    counting_fail(ctx.mem, 1, COUNTING_FROM_NOW);
}

static wq_err
op_nothing(void *unused)
{
    (void)unused;
    return WQ_OK;
}

/* O-40 */
TEST(close_and_destroy_need_no_memory)
{
    run_sweep(&(struct counting_sweep){
        .name = "destroy",
        .setup = setup,
        .op = op_nothing,
        .unchanged = nothing,
        .done = memory_fails_for_good,
        .teardown = teardown,
        .needs_none = true,
    });
}

WQ_TESTS(test(create_without_memory_makes_nothing),
         test(open_without_memory_makes_nothing),
         test(report_without_memory_is_counted),
         test(text_without_memory_is_none_and_next_time_whole),
         test(close_and_destroy_need_no_memory));
