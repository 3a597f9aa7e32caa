/* SPDX-License-Identifier: MIT */
/* exposition.c: how is a registry written as text?
 *
 * In Prometheus' text format 0.0.4 or as OpenMetrics 1.0.0. They differ in the
 * name of a family of counters (OpenMetrics: without _total), in units, in how
 * a bound that is a whole number is written ("1.0"), and in the last line.
 * Families follow each other; within a family, the names of queues.
 */
#include "metrics/registry.h"
#include "text/escape.h"
#include "text/number.h"

/* The kind of a sample's value in struct wq__totals. */
enum kind {
    COUNTER,   /* uint64_t; only grows */
    GAUGE,     /* uint64_t */
    SECONDS,   /* struct wq__seconds, a gauge */
    HISTOGRAM, /* struct wq__durations */
    DEPTHS,    /* a gauge for each priority of the name */
};

struct family {
    const char *name; /* as in Kubernetes, without _total */
    enum kind   kind;
    size_t      offset;
    const char *help;
};

#define AT(member) offsetof(struct wq__totals, member)

static const struct family families[] = {
    {"workqueue_depth", GAUGE, AT(depth), "Keys READY or DIRTY."},
    {"workqueue_adds", COUNTER, AT(history.adds),
     "Times a key became READY or DIRTY."},
    {"workqueue_queue_duration_seconds", HISTOGRAM,
     AT(history.durations[WQ__LATENCY]),
     "How long a key was READY or DIRTY before a worker got it."},
    {"workqueue_work_duration_seconds", HISTOGRAM,
     AT(history.durations[WQ__WORK]), "How long a key was HELD."},
    {"workqueue_unfinished_work_seconds", SECONDS, AT(unfinished),
     "The sum of the ages of the HELD keys. It grows steadily while workers "
     "are stuck."},
    {"workqueue_longest_running_processor_seconds", SECONDS, AT(longest),
     "The largest age of a HELD key."},
    {"workqueue_retries", COUNTER, AT(history.retries),
     "Times a key was added with a delay."},
    {"workqueue_waiting_keys", GAUGE, AT(waiting),
     "Keys WAITING for a deadline."},
    {"workqueue_paused_queues", GAUGE, AT(paused),
     "Queues of this name that hand out no key until they are resumed."},
    {"workqueue_merged", COUNTER, AT(history.merged),
     "Adds of keys that were READY or DIRTY already."},
    {"workqueue_drops", COUNTER, AT(history.drops),
     "Keys that left without the work they needed."},
    {"workqueue_limiter_delay_seconds", HISTOGRAM,
     AT(history.durations[WQ__LIMITED]), "Delays given by the limiter."},
    {"workqueue_priority_depth", DEPTHS, 0,
     "Keys READY or DIRTY by priority. Those beyond the first 25 of a name "
     "share one label."},
};

/* Bound k as in le="...", exactly as Kubernetes writes it, so that histograms
 * of both can be added up. Kubernetes computes it as a product of doubles, and
 * two of them are not exact powers of ten. The first column is how Go's %g
 * writes it, which Prometheus' own libraries use. */
#define US_10 "9.999999999999999e-06"
#define US_100 "9.999999999999999e-05"
static const char *const bounds[WQ__BUCKETS][2] = {
    {"1e-08", "1e-08"}, {"1e-07", "1e-07"}, {"1e-06", "1e-06"},
    {US_10, US_10},     {US_100, US_100},   {"0.001", "0.001"},
    {"0.01", "0.01"},   {"0.1", "0.1"},     {"1", "1.0"},
    {"10", "10.0"},     {"100", "100.0"},   {"1000", "1000.0"},
    {"+Inf", "+Inf"},
};

/* ---- lines about a family ------------------------------------------------ */

static const char *
type_of(enum kind kind)
{
    return kind == COUNTER     ? "counter"
           : kind == HISTOGRAM ? "histogram"
                               : "gauge";
}

static bool
is_in_seconds(enum kind kind)
{
    return kind == SECONDS || kind == HISTOGRAM;
}

static void
add_comment(struct wq__text *t, const char *what, const struct family *f,
            wq_text format, const char *value)
{
    wq__text_str(t, what);
    wq__text_str(t, f->name);
    if (f->kind == COUNTER && format == WQ_TEXT_PROMETHEUS)
        wq__text_str(t, "_total");
    wq__text_char(t, ' ');
    wq__text_str(t, value);
    wq__text_char(t, '\n');
}

static void
add_heading(struct wq__text *t, const struct family *f, wq_text format)
{
    add_comment(t, "# HELP ", f, format, f->help);
    add_comment(t, "# TYPE ", f, format, type_of(f->kind));
    if (format == WQ_TEXT_OPENMETRICS && is_in_seconds(f->kind))
        add_comment(t, "# UNIT ", f, format, "seconds");
}

/* ---- samples ------------------------------------------------------------- */

/* Write a sample up to its label `name`; other labels and the value follow. */
static void
begin(struct wq__text *t, const struct family *f, const char *suffix,
      const struct wq__name *name)
{
    wq__text_str(t, f->name);
    wq__text_str(t, suffix);
    wq__text_str(t, "{name=");
    wq__text_label(t, name->text, name->len);
}

static void
end_whole(struct wq__text *t, uint64_t value)
{
    wq__text_str(t, "} ");
    wq__text_u64(t, value);
    wq__text_char(t, '\n');
}

static void
end_seconds(struct wq__text *t, uint64_t seconds, uint32_t ns)
{
    wq__text_str(t, "} ");
    wq__text_seconds(t, seconds, ns);
    wq__text_char(t, '\n');
}

static void
add_histogram(struct wq__text *t, const struct family *f,
              const struct wq__name *name, const struct wq__durations *d,
              wq_text format)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < WQ__BUCKETS; i++) {
        count += d->buckets[i];
        begin(t, f, "_bucket", name);
        wq__text_str(t, ",le=\"");
        wq__text_str(t, bounds[i][format == WQ_TEXT_OPENMETRICS]);
        wq__text_char(t, '"');
        end_whole(t, count);
    }
    begin(t, f, "_sum", name);
    end_seconds(t, d->seconds, d->ns);
    begin(t, f, "_count", name);
    end_whole(t, count);
}

static void
add_depths(struct wq__text *t, const struct family *f,
           const struct wq__name *name)
{
    for (size_t i = 0; i < name->known_len; i++) {
        begin(t, f, "", name);
        wq__text_str(t, ",priority=\"");
        wq__text_i64(t, name->known[i].priority);
        wq__text_char(t, '"');
        end_whole(t, name->known[i].depth);
    }
    if (name->has_others) {
        begin(t, f, "", name);
        wq__text_str(t, ",priority=\"other\"");
        end_whole(t, name->now.others);
    }
}

/* A gauge of what is not known now is left out: 0 would be a value. */
static bool
is_known(const struct family *f, const struct wq__name *name)
{
    return f->kind == COUNTER || f->kind == HISTOGRAM || !name->now.unknown;
}

static void
add_samples(struct wq__text *t, const struct family *f,
            const struct wq__name *name, wq_text format)
{
    const void *value = (const char *)&name->now + f->offset;

    switch (f->kind) {
    case COUNTER:
    case GAUGE:
        begin(t, f, f->kind == COUNTER ? "_total" : "", name);
        end_whole(t, *(const uint64_t *)value);
        break;
    case SECONDS: {
        const struct wq__seconds *s = value;
        begin(t, f, "", name);
        end_seconds(t, s->seconds, s->ns);
        break;
    }
    case HISTOGRAM:
        add_histogram(t, f, name, value, format);
        break;
    case DEPTHS:
        add_depths(t, f, name);
        break;
    }
}

/* ---- the whole ----------------------------------------------------------- */

static void
add_family(struct wq__text *t, const struct family *f,
           const wq_registry *registry, wq_text format)
{
    bool begun = false; /* without samples, no heading */

    for (size_t i = 0; i < registry->names_len; i++) {
        if (!is_known(f, registry->names[i]))
            continue;
        if (!begun)
            add_heading(t, f, format);
        begun = true;
        add_samples(t, f, registry->names[i], format);
    }
}

void
wq__exposition(const wq_registry *registry, wq_text format, struct wq__text *t)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        add_family(t, &families[i], registry, format);
    if (format == WQ_TEXT_OPENMETRICS)
        wq__text_str(t, "# EOF\n");
}
