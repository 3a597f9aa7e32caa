/* SPDX-License-Identifier: MIT */
/* test_registry_text.c: is the text well-formed for all names of queues, and in
 * the format that the client accepts? */
#include "registry.h"

/* Make a queue with one key. */
static void
begin(const char *name)
{
    open_stub(name)->counts.ready = 1;
}

/* ---- names --------------------------------------------------------------- */

/* O-41: names that are written in the same way are added up. */
TEST(every_name_gives_well_formed_text)
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
        (void)read_format((wq_text)format);
        assert_value("quo\\\"te", "", "depth", "1");
        assert_value("back\\\\slash", "", "depth", "1");
        assert_value("new\\nline", "", "depth", "1");
        assert_value("\\\\n", "", "depth", "1");
        assert_value("gr\xc3\xbc\xc3\x9f", "", "depth", "1");
        /* 0xff, and two characters that are cut off */
        assert_value("\xef\xbf\xbd", "", "depth", "3");
    }
}

/* O-41 */
TEST(very_long_name_is_written_in_full)
{
    static char name[10001];

    memset(name, 'n', sizeof name - 1);
    begin(name);
    (void)read_text();
    assert_value(name, "", "depth", "1");
}

/* O-41: whatever the order in which queues are opened. */
TEST(names_are_sorted)
{
    static const char *const sorted[] = {"A", "a", "aa", "ab", "b", "ba", "c"};
    static const int         order[] = {4, 2, 6, 0, 5, 1, 3};
    char                     line[100];
    const char              *at = NULL;

    for (size_t i = 0; i < 7; i++)
        begin(sorted[order[i]]);
    const char *text = read_text();
    for (size_t i = 0; i < 7; i++) {
        (void)snprintf(line, sizeof line, "\nworkqueue_depth{name=\"%s\"} ",
                       sorted[i]);
        const char *found = strstr(text, line);
        assert_non_null(found);
        assert_true(found > at);
        at = found;
    }
}

/* O-41 */
TEST(text_of_openmetrics_differs_where_it_must)
{
    begin("x");
    const char *text = read_format(WQ_TEXT_PROMETHEUS);
    assert_non_null(strstr(text, "# TYPE workqueue_adds_total counter\n"));
    assert_non_null(strstr(text, "{name=\"x\",le=\"1\"}"));
    assert_null(strstr(text, "# UNIT"));
    assert_null(strstr(text, "# EOF"));

    text = read_format(WQ_TEXT_OPENMETRICS);
    assert_non_null(strstr(text, "# TYPE workqueue_adds counter\n"));
    assert_non_null(strstr(text, "{name=\"x\",le=\"1.0\"}"));
    assert_non_null(
        strstr(text, "# UNIT workqueue_work_duration_seconds seconds\n"));
    assert_string_equal(text + strlen(text) - 6, "# EOF\n");
}

/* O-41 */
TEST(registry_without_queues_has_no_families)
{
    assert_string_equal(read_format(WQ_TEXT_PROMETHEUS), "");
    assert_string_equal(read_format(WQ_TEXT_OPENMETRICS), "# EOF\n");
}

/* ---- output -------------------------------------------------------------- */

struct written {
    char    *text;
    size_t   len;
    unsigned calls;
    wq_err   answer;
};

/* It may read the registry, because no lock is held. */
static wq_err
keep(void *ctx, const char *text, size_t len)
{
    struct written *w = ctx;

    w->calls++;
    w->text = malloc(len + 1);
    memcpy(w->text, text, len);
    w->text[len] = '\0';
    w->len = len;
    free(make_text(WQ_TEXT_PROMETHEUS));
    return w->answer;
}

/* O-41 */
TEST(text_is_written_by_one_call_without_a_lock)
{
    static const wq_err answers[] = {WQ_OK, WQ_EIO, WQ_EFULL};

    begin("x");
    for (int i = 0; i < 3; i++) {
        struct written w = {.answer = answers[i]};
        char          *text = make_text(WQ_TEXT_OPENMETRICS);
        assert_err(
            wq_registry_write(reg.registry, WQ_TEXT_OPENMETRICS, keep, &w),
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
    char  *text = (char *)reg.registry;
    size_t len = 42;

    assert_err(wq_registry_text(NULL, WQ_TEXT_PROMETHEUS, &text, &len),
               WQ_EINVAL);
    assert_err(wq_registry_text(reg.registry, WQ_TEXT_PROMETHEUS, NULL, &len),
               WQ_EINVAL);
    assert_err(wq_registry_text(reg.registry, WQ_TEXT_PROMETHEUS, &text, NULL),
               WQ_EINVAL);
    assert_err(wq_registry_text(reg.registry, (wq_text)2, &text, &len),
               WQ_EINVAL);
    assert_ptr_equal(text, reg.registry);
    assert_int_equal(len, 42);
    assert_err(wq_registry_write(NULL, WQ_TEXT_PROMETHEUS, keep, NULL),
               WQ_EINVAL);
    assert_err(wq_registry_write(reg.registry, WQ_TEXT_PROMETHEUS, NULL, NULL),
               WQ_EINVAL);
    assert_err(wq_registry_write(reg.registry, (wq_text)-1, keep, NULL),
               WQ_EINVAL);
}

/* ---- formats ------------------------------------------------------------- */

/* O-41 */
TEST(each_format_has_its_content_type)
{
    assert_string_equal(wq_text_type(WQ_TEXT_PROMETHEUS),
                        "text/plain; version=0.0.4; charset=utf-8");
    assert_string_equal(
        wq_text_type(WQ_TEXT_OPENMETRICS),
        "application/openmetrics-text; version=1.0.0; charset=utf-8");
}

/* O-41 */
TEST(openmetrics_is_used_if_the_client_accepts_it)
{
    static const char *const accepting[] = {
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
    for (size_t i = 0; i < sizeof accepting / sizeof accepting[0]; i++)
        if (wq_text_accepted(accepting[i]) != WQ_TEXT_OPENMETRICS)
            fail_msg("accepts OpenMetrics: %s", accepting[i]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (wq_text_accepted(others[i]) != WQ_TEXT_PROMETHEUS)
            fail_msg("does not accept OpenMetrics: %s", others[i]);
}

WQ_TESTS(with_registry(every_name_gives_well_formed_text),
         with_registry(very_long_name_is_written_in_full),
         with_registry(names_are_sorted),
         with_registry(text_of_openmetrics_differs_where_it_must),
         with_registry(registry_without_queues_has_no_families),
         with_registry(text_is_written_by_one_call_without_a_lock),
         with_registry(bad_arguments_are_refused),
         test(each_format_has_its_content_type),
         test(openmetrics_is_used_if_the_client_accepts_it));
