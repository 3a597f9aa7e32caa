/* SPDX-License-Identifier: MIT */
/* test_registry_text.c: can the text be read, whatever queues are called, and
 * is it what the client asked for? */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include <wq/metrics.h>

#include "support/exposition.h"
#include "support/told_queue.h"

enum { QUEUES = 40 };

static struct told  told[QUEUES];
static void        *handles[QUEUES];
static size_t       opened;
static wq_registry *registry;

static int
open_registry(void **state)
{
    (void)state;
    opened = 0;
    assert_err(wq_registry_create(&registry), WQ_OK);
    return 0;
}

static int
close_registry(void **state)
{
    (void)state;
    while (opened)
        wq_registry_sink(registry)->close(handles[--opened]);
    wq_registry_destroy(registry);
    return 0;
}

static void
begin(const char *name)
{
    const wq_metrics *sink = wq_registry_sink(registry);

    told_init(&told[opened]);
    told[opened].counts.ready = 1;
    assert_err(
        sink->open(sink->self, &told[opened].base, name, &handles[opened]),
        WQ_OK);
    opened++;
}

/* The text, judged. The caller frees it. */
static char *
read_text(wq_text format)
{
    char  *text = NULL;
    size_t len = 0;

    assert_err(wq_registry_text(registry, format, &text, &len), WQ_OK);
    assert_int_equal(strlen(text), len);
    const char *broken = exposition_check(text, len, format);
    if (broken)
        fail_msg("%s in:\n%s", broken, text);
    return text;
}

static void
expect_depth(const char *text, const char *name, int depth)
{
    static char series[20000];

    (void)snprintf(series, sizeof series, "workqueue_depth{name=\"%s\"}", name);
    assert_int_equal(exposition_count(text, series), depth);
}

/* ---- names --------------------------------------------------------------- */

/* O-41: names that look the same are the same. */
TEST(any_name_makes_text_that_can_be_read)
{
    static const char *const names[] = {
        "plain",
        "quo\"te",
        "back\\slash",
        "new\nline",
        "tab\ttab",
        "br{a}ce,=\"",
        "\x01\x7f",
        "gr\xc3\xbc\xc3\x9f",
        "\xff",
        "\xe2\x82",
        "\xc0\xaf",
        "\xed\xa0\x80",
        "\xf4\x90\x80",
        "\\n",
        "\r\n",
        " ",
        "\xf0\x9f\x98\x80",
        "\xf0\x9f\x98",
        "end\\",
        "# EOF",
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        begin(names[i]);
    for (int format = 0; format < 2; format++) {
        char *text = read_text((wq_text)format);
        expect_depth(text, "quo\\\"te", 1);
        expect_depth(text, "back\\\\slash", 1);
        expect_depth(text, "new\\nline", 1);
        expect_depth(text, "\\\\n", 1);
        expect_depth(text, "gr\xc3\xbc\xc3\x9f", 1);
        /* 0xff, and two characters that are cut off */
        expect_depth(text, "\xef\xbf\xbd", 3);
        free(text);
    }
}

/* O-41 */
TEST(very_long_name_is_written_in_full)
{
    static char name[10001];

    memset(name, 'n', sizeof name - 1);
    begin(name);
    char *text = read_text(WQ_TEXT_PROMETHEUS);
    expect_depth(text, name, 1);
    free(text);
}

/* O-41: the order in which queues were made does not show. */
TEST(names_are_sorted)
{
    static const char *const sorted[] = {"A", "a", "aa", "ab", "b", "ba", "c"};
    static const int         order[] = {4, 2, 6, 0, 5, 1, 3};
    char                     line[100];
    const char              *at = NULL;

    for (size_t i = 0; i < 7; i++)
        begin(sorted[order[i]]);
    char *text = read_text(WQ_TEXT_PROMETHEUS);
    for (size_t i = 0; i < 7; i++) {
        (void)snprintf(line, sizeof line, "\nworkqueue_depth{name=\"%s\"} ",
                       sorted[i]);
        const char *found = strstr(text, line);
        assert_non_null(found);
        assert_true(found > at);
        at = found;
    }
    free(text);
}

/* O-41: the whole of it, so that a change is seen. */
TEST(text_of_openmetrics_differs_where_it_must)
{
    begin("x");
    char *prometheus = read_text(WQ_TEXT_PROMETHEUS);
    char *openmetrics = read_text(WQ_TEXT_OPENMETRICS);

    assert_non_null(
        strstr(prometheus, "# TYPE workqueue_adds_total counter\n"));
    assert_non_null(strstr(openmetrics, "# TYPE workqueue_adds counter\n"));
    assert_non_null(strstr(prometheus, "{name=\"x\",le=\"1\"}"));
    assert_non_null(strstr(openmetrics, "{name=\"x\",le=\"1.0\"}"));
    assert_non_null(strstr(openmetrics,
                           "# UNIT workqueue_work_duration_seconds seconds\n"));
    assert_null(strstr(prometheus, "# UNIT"));
    assert_null(strstr(prometheus, "# EOF"));
    assert_string_equal(openmetrics + strlen(openmetrics) - 6, "# EOF\n");
    free(prometheus);
    free(openmetrics);
}

/* O-41 */
TEST(registry_without_queues_has_no_families)
{
    char *text = read_text(WQ_TEXT_PROMETHEUS);
    assert_string_equal(text, "");
    free(text);
    text = read_text(WQ_TEXT_OPENMETRICS);
    assert_string_equal(text, "# EOF\n");
    free(text);
}

/* ---- where it goes ------------------------------------------------------- */

struct written {
    char    *text;
    size_t   len;
    unsigned calls;
    wq_err   answer;
};

/* May ask the registry: no lock is held. */
static wq_err
keep(void *ctx, const char *text, size_t len)
{
    struct written *w = ctx;

    w->calls++;
    w->text = malloc(len + 1);
    memcpy(w->text, text, len);
    w->text[len] = '\0';
    w->len = len;
    free(read_text(WQ_TEXT_PROMETHEUS));
    return w->answer;
}

/* O-41 */
TEST(text_is_written_in_one_call_without_a_lock)
{
    static const wq_err answers[] = {WQ_OK, WQ_EIO, WQ_EFULL};

    begin("x");
    for (int i = 0; i < 3; i++) {
        struct written w = {.answer = answers[i]};
        char          *text = read_text(WQ_TEXT_OPENMETRICS);
        assert_err(wq_registry_write(registry, WQ_TEXT_OPENMETRICS, keep, &w),
                   answers[i]);
        assert_int_equal(w.calls, 1);
        assert_int_equal(w.len, strlen(text));
        assert_string_equal(w.text, text);
        free(w.text);
        free(text);
    }
}

/* O-41 */
TEST(bad_arguments_are_refused)
{
    char  *text = (char *)registry;
    size_t len = 42;

    assert_err(wq_registry_text(NULL, WQ_TEXT_PROMETHEUS, &text, &len),
               WQ_EINVAL);
    assert_err(wq_registry_text(registry, WQ_TEXT_PROMETHEUS, NULL, &len),
               WQ_EINVAL);
    assert_err(wq_registry_text(registry, WQ_TEXT_PROMETHEUS, &text, NULL),
               WQ_EINVAL);
    assert_err(wq_registry_text(registry, (wq_text)2, &text, &len), WQ_EINVAL);
    assert_ptr_equal(text, registry);
    assert_int_equal(len, 42);
    assert_err(wq_registry_write(NULL, WQ_TEXT_PROMETHEUS, keep, NULL),
               WQ_EINVAL);
    assert_err(wq_registry_write(registry, WQ_TEXT_PROMETHEUS, NULL, NULL),
               WQ_EINVAL);
    assert_err(wq_registry_write(registry, (wq_text)-1, keep, NULL), WQ_EINVAL);
}

/* ---- what a client wants ------------------------------------------------- */

/* O-41 */
TEST(types_are_those_of_the_formats)
{
    assert_string_equal(wq_text_type(WQ_TEXT_PROMETHEUS),
                        "text/plain; version=0.0.4; charset=utf-8");
    assert_string_equal(
        wq_text_type(WQ_TEXT_OPENMETRICS),
        "application/openmetrics-text; version=1.0.0; charset=utf-8");
}

/* O-41 */
TEST(client_gets_openmetrics_if_it_asks_for_it)
{
    static const char *const asking[] = {
        "application/openmetrics-text",
        "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
        "text/plain;q=0.5, application/openmetrics-text; version=1.0.0; q=0.2",
        "Application/OpenMetrics-Text",
        "\t application/openmetrics-text ; q=0.001",
        "a/b;c=\",application/x;q=0\",application/openmetrics-text",
        "application/openmetrics-text;q=0,application/openmetrics-text;q=1",
        "application/openmetrics-text;queue=0",
        "application/openmetrics-text;q=",
    };
    static const char *const others[] = {
        "",
        "*/*",
        "text/plain;version=0.0.4",
        "application/openmetrics-text;q=0",
        "application/openmetrics-text; version=1.0.0 ; Q = 0.000 , */*",
        "application/openmetrics-texts",
        "xapplication/openmetrics-text",
        "text/plain;x=application/openmetrics-text",
        "text/plain;x=\"a, application/openmetrics-text\"",
        "text/plain;x=\"\\\", application/openmetrics-text",
        "application/openmetrics",
        ",,;;,",
        "\"",
    };

    assert_int_equal(wq_text_accepted(NULL), WQ_TEXT_PROMETHEUS);
    for (size_t i = 0; i < sizeof asking / sizeof asking[0]; i++)
        if (wq_text_accepted(asking[i]) != WQ_TEXT_OPENMETRICS)
            fail_msg("asks for it: %s", asking[i]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (wq_text_accepted(others[i]) != WQ_TEXT_PROMETHEUS)
            fail_msg("does not ask for it: %s", others[i]);
}

#define registry_test(name) test_with(name, open_registry, close_registry)

WQ_TESTS(registry_test(any_name_makes_text_that_can_be_read),
         registry_test(very_long_name_is_written_in_full),
         registry_test(names_are_sorted),
         registry_test(text_of_openmetrics_differs_where_it_must),
         registry_test(registry_without_queues_has_no_families),
         registry_test(text_is_written_in_one_call_without_a_lock),
         registry_test(bad_arguments_are_refused),
         test(types_are_those_of_the_formats),
         test(client_gets_openmetrics_if_it_asks_for_it));
