/* SPDX-License-Identifier: MIT */
/* registry.h: how does a test read what a registry says of its queues?
 *
 * with_registry(...) makes a registry for a test, in `reg`. The queues are stubs
 * (support/stub_queue.h): their numbers are those that the test has set.
 *
 *     struct stub_queue *q = open_stub("pods");
 *
 *     q->counts.ready = 3;
 *     assert_values("pods", {"depth", "3"}, {"waiting_keys", "0"});
 *
 * Every text that a test reads is checked, in both formats.
 */
#ifndef WQ_BEHAVIOUR_REGISTRY_H
#define WQ_BEHAVIOUR_REGISTRY_H

#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include <wq/metrics.h>

#include "support/exposition.h"
#include "support/stub_queue.h"

enum { QUEUES_MAX = 40 };

static struct {
    wq_registry      *registry;
    const wq_metrics *sink;
    struct stub_queue queues[QUEUES_MAX];
    void             *handles[QUEUES_MAX]; /* NULL: the queue is closed */
    size_t            n;                   /* queues that were opened */
    char             *text;                /* the last one */
} reg;

/* ---- the fixture --------------------------------------------------------- */

/* An entry of WQ_TESTS() for a test of a registry. */
#define with_registry(name) test_with(name, registry_setup, registry_teardown)

static inline int
registry_setup(void **state)
{
    (void)state;
    memset(&reg, 0, sizeof reg);
    assert_err(wq_registry_create(&reg.registry), WQ_OK);
    reg.sink = wq_registry_sink(reg.registry);
    return 0;
}

static inline int
registry_teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < reg.n; i++)
        if (reg.handles[i])
            reg.sink->close(reg.handles[i]);
    free(reg.text);
    wq_registry_destroy(reg.registry);
    return 0;
}

/* ---- queues -------------------------------------------------------------- */

/* Make a queue, and open the sink for it. */
static inline struct stub_queue *
open_stub(const char *name)
{
    struct stub_queue *q = &reg.queues[reg.n];

    assert_true(reg.n < QUEUES_MAX);
    stub_queue_init(q);
    assert_err(
        reg.sink->open(reg.sink->self, &q->base, name, &reg.handles[reg.n]),
        WQ_OK);
    assert_non_null(reg.handles[reg.n++]);
    return q;
}

/* What the sink calls the queue. */
static inline void *
handle_of(const struct stub_queue *q)
{
    return reg.handles[q - reg.queues];
}

static inline void
close_stub(const struct stub_queue *q)
{
    reg.sink->close(handle_of(q));
    reg.handles[q - reg.queues] = NULL;
}

/* ---- the text ------------------------------------------------------------ */

/* The caller frees it. */
static inline char *
make_text(wq_text format)
{
    char  *text = NULL;
    size_t len = 0;

    assert_err(wq_registry_text(reg.registry, format, &text, &len), WQ_OK);
    assert_int_equal(strlen(text), len);
    const char *broken = exposition_check(text, len, format);
    if (broken)
        fail_msg("%s in:\n%s", broken, text);
    return text;
}

/* The text in this format, valid until the next call. */
static inline const char *
read_format(wq_text format)
{
    free(reg.text);
    reg.text = NULL;
    reg.text = make_text(format);
    return reg.text;
}

/* Prometheus' text; OpenMetrics' is checked, too. */
static inline const char *
read_text(void)
{
    (void)read_format(WQ_TEXT_OPENMETRICS);
    return read_format(WQ_TEXT_PROMETHEUS);
}

/* ---- values -------------------------------------------------------------- */

struct value {
    const char *series; /* without "workqueue_" */
    const char *value;  /* NULL: there is no such series */
};

/* A number as text, valid for the next seven calls. */
static inline const char *
decimal(long n)
{
    static char     texts[8][24];
    static unsigned next;
    char           *text = texts[next++ % 8];

    (void)snprintf(text, sizeof texts[0], "%ld", n);
    return text;
}

/* The series "workqueue_SERIES{name="NAME"LABELS}" of the last text that was
 * read. */
static inline void
assert_value(const char *name, const char *labels, const char *series,
             const char *value)
{
    static char whole[20000];

    (void)snprintf(whole, sizeof whole, "workqueue_%s{name=\"%s\"%s}", series,
                   name, labels);
    const char *found = exposition_value(reg.text, whole);
    if (!value ? found != NULL : !found || strcmp(found, value) != 0)
        fail_msg("%s is %s, not %s, in:\n%s", whole, found ? found : "missing",
                 value ? value : "missing", reg.text);
}

/* So many keys of "pods" are READY or DIRTY with this priority. */
static inline void
assert_depth(const char *priority, const char *keys)
{
    char labels[40];

    (void)snprintf(labels, sizeof labels, ",priority=\"%s\"", priority);
    assert_value("pods", labels, "priority_depth", keys);
}

/* Read the text: it has these values, {"SERIES", "VALUE"}, of queues with this
 * name. */
#define assert_values(name, ...)                                               \
    do {                                                                       \
        const struct value values_[] = {__VA_ARGS__};                          \
        (void)read_text();                                                     \
        for (size_t i_ = 0; i_ < sizeof values_ / sizeof *values_; i_++)       \
            assert_value(name, "", values_[i_].series, values_[i_].value);     \
    } while (0)

/* Read the text: it has these depths of "pods", {"PRIORITY", "KEYS"}. */
#define assert_depths(...)                                                     \
    do {                                                                       \
        const struct value depths_[] = {__VA_ARGS__};                          \
        (void)read_text();                                                     \
        for (size_t i_ = 0; i_ < sizeof depths_ / sizeof *depths_; i_++)       \
            assert_depth(depths_[i_].series, depths_[i_].value);               \
    } while (0)

#endif
