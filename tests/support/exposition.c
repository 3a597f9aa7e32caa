/* SPDX-License-Identifier: MIT */
/* exposition.c: a strict reader of metrics as text; see exposition.h.
 *
 * Line by line; O(n^2) in the number of series, which suits tests.
 */
#include "support/exposition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/json.h"

enum { LABELS_MAX = 8 };

enum type { NO_TYPE, COUNTER, GAUGE, HISTOGRAM };

struct piece {
    const char *p;
    size_t      len;
};

struct label {
    struct piece name;
    struct piece value; /* as it is written, with its escapes */
};

struct sample {
    struct piece name;
    struct label labels[LABELS_MAX]; /* sorted by name */
    size_t       labels_len;
    struct piece value;
};

/* The reader's position in a histogram. */
enum step { OUTSIDE, IN_BUCKETS, AT_SUM, AT_COUNT };

struct reader {
    wq_text        format;
    size_t         line; /* number of the current one */
    struct piece   family;
    enum type      type;
    bool           has_help, has_unit;
    bool           has_samples;
    struct piece  *families; /* all so far */
    size_t         families_len;
    struct sample *samples; /* all so far */
    size_t         samples_len;
    enum step      step;
    double         bound;       /* of the last bucket */
    long long      count;       /* in it */
    struct sample  of;          /* the histogram, by its labels */
    bool           is_finished; /* # EOF was read */
};

static _Thread_local char message[400];

/* Set the message; returns false. */
static bool
wrong(const struct reader *r, const char *what)
{
    (void)snprintf(message, sizeof message, "line %zu: %s", r->line, what);
    return false;
}

/* ---- pieces -------------------------------------------------------------- */

static bool
same(struct piece a, struct piece b)
{
    return a.len == b.len && memcmp(a.p, b.p, a.len) == 0;
}

static bool
is(struct piece a, const char *s)
{
    return same(a, (struct piece){s, strlen(s)});
}

static bool
ends_with(struct piece a, const char *suffix)
{
    const size_t n = strlen(suffix);
    return a.len > n && memcmp(a.p + a.len - n, suffix, n) == 0;
}

static struct piece
without(struct piece a, const char *suffix)
{
    return (struct piece){a.p, a.len - strlen(suffix)};
}

static bool
take(struct piece *in, const char *s)
{
    const size_t n = strlen(s);

    if (in->len < n || memcmp(in->p, s, n) != 0)
        return false;
    in->p += n;
    in->len -= n;
    return true;
}

static struct piece
take_while(struct piece *in, const char *set)
{
    struct piece out = {in->p, 0};

    while (out.len < in->len && in->p[out.len] && strchr(set, in->p[out.len]))
        out.len++;
    in->p += out.len;
    in->len -= out.len;
    return out;
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS "0123456789"

static bool
take_name(struct piece *in, const char *set, struct piece *out)
{
    *out = take_while(in, set);
    return out->len > 0 && !strchr(DIGITS, out->p[0]);
}

/* ---- comments ------------------------------------------------------------ */

static bool
end_histogram(struct reader *r)
{
    if (r->step != OUTSIDE && r->step != AT_COUNT)
        return wrong(r, "the previous histogram is incomplete");
    r->step = OUTSIDE;
    return true;
}

static bool
begin_family(struct reader *r, struct piece name)
{
    if (same(r->family, name))
        return true;
    if (r->families_len && !r->has_samples)
        return wrong(r, "the previous family has no sample");
    if (!end_histogram(r))
        return false;
    for (size_t i = 0; i < r->families_len; i++)
        if (same(r->families[i], name))
            return wrong(r, "duplicate family");
    r->families =
        realloc(r->families, (r->families_len + 1) * sizeof *r->families);
    r->families[r->families_len++] = name;
    r->family = name;
    r->type = NO_TYPE;
    r->has_help = r->has_unit = r->has_samples = false;
    return true;
}

static bool
check_help(struct reader *r, struct piece text)
{
    if (r->has_help)
        return wrong(r, "duplicate HELP");
    if (text.len == 0)
        return wrong(r, "HELP is empty");
    if (memchr(text.p, '\\', text.len) || memchr(text.p, '"', text.len))
        return wrong(r, "HELP has a character to escape; wq's have none");
    r->has_help = true;
    return true;
}

static bool
check_type(struct reader *r, struct piece text)
{
    if (r->type != NO_TYPE)
        return wrong(r, "duplicate TYPE");
    if (is(text, "counter"))
        r->type = COUNTER;
    else if (is(text, "gauge"))
        r->type = GAUGE;
    else if (is(text, "histogram"))
        r->type = HISTOGRAM;
    else
        return wrong(r, "unknown TYPE");
    const bool total = ends_with(r->family, "_total");
    if (r->format == WQ_TEXT_OPENMETRICS && total)
        return wrong(r,
                     "OpenMetrics does not allow a family that ends in _total");
    if (r->format == WQ_TEXT_PROMETHEUS && total != (r->type == COUNTER))
        return wrong(r, "a counter must end in _total, and nothing else may");
    if (ends_with(r->family, "_bucket") || ends_with(r->family, "_sum") ||
        ends_with(r->family, "_count"))
        return wrong(r, "a family ends like a series of a histogram");
    return true;
}

static bool
check_unit(struct reader *r, struct piece text)
{
    if (r->format != WQ_TEXT_OPENMETRICS)
        return wrong(r, "UNIT exists in OpenMetrics only");
    if (r->has_unit)
        return wrong(r, "duplicate UNIT");
    if (!is(text, "seconds") || !ends_with(r->family, "_seconds"))
        return wrong(r, "the family does not end in its unit");
    r->has_unit = true;
    return true;
}

static bool
check_comment(struct reader *r, struct piece line)
{
    static const struct {
        const char *word;
        bool (*check)(struct reader *r, struct piece text);
    } kinds[] = {{"# HELP ", check_help},
                 {"# TYPE ", check_type},
                 {"# UNIT ", check_unit}};
    struct piece name;

    if (is(line, "# EOF")) {
        r->is_finished = true;
        return r->format == WQ_TEXT_OPENMETRICS
                   ? true
                   : wrong(r, "EOF exists in OpenMetrics only");
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!take(&line, kinds[i].word))
            continue;
        if (!take_name(&line, LETTERS DIGITS ":", &name) || !take(&line, " "))
            return wrong(r, "no family name");
        if (!begin_family(r, name))
            return false;
        if (r->has_samples)
            return wrong(r, "a comment after its samples");
        return kinds[i].check(r, line);
    }
    return wrong(r, "unknown comment");
}

/* ---- samples ------------------------------------------------------------- */

static bool
take_label_value(struct reader *r, struct piece *in, struct piece *out)
{
    if (!take(in, "\""))
        return wrong(r, "label value without an opening quote");
    *out = (struct piece){in->p, 0};
    while (in->len && *in->p != '"') {
        size_t n = utf8_length(in->p, in->len);
        if (n == 0)
            return wrong(r, "label value is not UTF-8");
        if (*in->p == '\\') {
            if (in->len < 2 || !strchr("\\\"n", in->p[1]))
                return wrong(r, "unknown escape");
            n = 2;
        }
        in->p += n;
        in->len -= n;
        out->len += n;
    }
    return take(in, "\"") ? true
                          : wrong(r, "label value without a closing quote");
}

static int
by_name(const void *a, const void *b)
{
    const struct piece x = ((const struct label *)a)->name;
    const struct piece y = ((const struct label *)b)->name;
    const int          order = memcmp(x.p, y.p, x.len < y.len ? x.len : y.len);

    return order ? order : (x.len > y.len) - (x.len < y.len);
}

static bool
take_labels(struct reader *r, struct piece *in, struct sample *s)
{
    if (!take(in, "{"))
        return wrong(r, "no labels; every series of wq has one");
    do {
        if (s->labels_len == LABELS_MAX)
            return wrong(r, "too many labels");
        struct label *l = &s->labels[s->labels_len++];
        if (!take_name(in, LETTERS DIGITS, &l->name) || !take(in, "="))
            return wrong(r, "expected a label");
        if (!take_label_value(r, in, &l->value))
            return false;
    } while (take(in, ","));
    if (!take(in, "}"))
        return wrong(r, "no brace after the labels");
    qsort(s->labels, s->labels_len, sizeof s->labels[0], by_name);
    for (size_t i = 1; i < s->labels_len; i++)
        if (same(s->labels[i].name, s->labels[i - 1].name))
            return wrong(r, "duplicate label");
    return true;
}

static bool
take_value(struct reader *r, struct piece *in, struct piece *out)
{
    *out = take_while(in, DIGITS ".");
    const char *dot = memchr(out->p, '.', out->len);
    if (out->len == 0 || out->p[0] == '.' ||
        (dot && dot + 1 == out->p + out->len))
        return wrong(r, "not a decimal number");
    if (dot && memchr(dot + 1, '.', (size_t)(out->p + out->len - dot - 1)))
        return wrong(r, "two decimal points in a number");
    if (out->len > 1 && out->p[0] == '0' && out->p[1] != '.')
        return wrong(r, "a leading zero");
    return in->len == 0 ? true : wrong(r, "text after the value");
}

static bool
is_whole(struct piece value)
{
    return !memchr(value.p, '.', value.len);
}

static bool
same_labels(const struct sample *a, const struct sample *b)
{
    if (a->labels_len != b->labels_len)
        return false;
    for (size_t i = 0; i < a->labels_len; i++)
        if (!same(a->labels[i].name, b->labels[i].name) ||
            !same(a->labels[i].value, b->labels[i].value))
            return false;
    return true;
}

static bool
is_new(struct reader *r, const struct sample *s)
{
    for (size_t i = 0; i < r->samples_len; i++)
        if (same(r->samples[i].name, s->name) && same_labels(&r->samples[i], s))
            return wrong(r, "duplicate series");
    r->samples = realloc(r->samples, (r->samples_len + 1) * sizeof *r->samples);
    r->samples[r->samples_len++] = *s;
    return true;
}

/* Take the label `le` out of a sample; false if there is none. */
static bool
split_bound(struct sample *s, struct piece *bound)
{
    for (size_t i = 0; i < s->labels_len; i++)
        if (is(s->labels[i].name, "le")) {
            *bound = s->labels[i].value;
            s->labels_len--;
            memmove(&s->labels[i], &s->labels[i + 1],
                    (s->labels_len - i) * sizeof s->labels[0]);
            return true;
        }
    return false;
}

/* ---- histograms ---------------------------------------------------------- */

static bool
check_bucket(struct reader *r, const struct sample *of, struct piece le,
             long long count)
{
    char  *end;
    double bound = strtod(le.p, &end); /* also reads +Inf */

    if (end != le.p + le.len || !strchr(DIGITS "+", *le.p))
        return wrong(r, "a bound is not a number");
    if (r->step != IN_BUCKETS) {
        if (!end_histogram(r))
            return false;
        r->of = *of;
        r->step = IN_BUCKETS;
    } else if (!same_labels(&r->of, of)) {
        return wrong(r, "two histograms are mixed");
    } else if (bound <= r->bound) {
        return wrong(r, "bounds do not increase");
    } else if (count < r->count) {
        return wrong(r, "bucket counts decrease");
    }
    r->bound = bound;
    r->count = count;
    return true;
}

static bool
check_histogram(struct reader *r, struct sample s)
{
    struct piece    le = {0};
    const bool      has_bound = split_bound(&s, &le);
    const long long count = strtoll(s.value.p, NULL, 10);

    if (has_bound != ends_with(s.name, "_bucket"))
        return wrong(r, "a bucket must have a bound, and nothing else may");
    if (!has_bound && !same_labels(&r->of, &s))
        return wrong(r, "two histograms are mixed");
    if (!ends_with(s.name, "_sum") && !is_whole(s.value))
        return wrong(r, "a count is not a whole number");
    if (has_bound)
        return check_bucket(r, &s, le, count);
    if (ends_with(s.name, "_sum")) {
        if (r->step != IN_BUCKETS || r->bound <= 1e300)
            return wrong(r, "no +Inf bucket before the sum");
        r->step = AT_SUM;
        return true;
    }
    if (r->step != AT_SUM)
        return wrong(r, "no sum before the count");
    r->step = AT_COUNT;
    return count == r->count
               ? true
               : wrong(r, "the count differs from the +Inf bucket");
}

/* Does the name of the sample belong to the family? */
static bool
is_of_family(const struct reader *r, struct piece name)
{
    switch (r->type) {
    case COUNTER:
        if (r->format == WQ_TEXT_PROMETHEUS)
            return same(name, r->family);
        return ends_with(name, "_total") &&
               same(without(name, "_total"), r->family);
    case GAUGE:
        return same(name, r->family);
    case HISTOGRAM:
        return (ends_with(name, "_bucket") &&
                same(without(name, "_bucket"), r->family)) ||
               (ends_with(name, "_sum") &&
                same(without(name, "_sum"), r->family)) ||
               (ends_with(name, "_count") &&
                same(without(name, "_count"), r->family));
    default:
        return false;
    }
}

static bool
check_sample(struct reader *r, struct piece line)
{
    struct sample s = {0};

    if (!take_name(&line, LETTERS DIGITS ":", &s.name))
        return wrong(r, "no name");
    if (!r->has_help || !is_of_family(r, s.name))
        return wrong(r, "a sample without HELP or TYPE, or outside its family");
    r->has_samples = true;
    if (!take_labels(r, &line, &s))
        return false;
    if (!take(&line, " "))
        return wrong(r, "no space before the value");
    if (!take_value(r, &line, &s.value) || !is_new(r, &s))
        return false;
    if (r->type == COUNTER && !is_whole(s.value))
        return wrong(r, "a counter is not a whole number");
    return r->type == HISTOGRAM ? check_histogram(r, s) : true;
}

/* ---- the whole text ------------------------------------------------------ */

static bool
check_lines(struct reader *r, const char *text, size_t len)
{
    while (len) {
        const char *end = memchr(text, '\n', len);
        r->line++;
        if (!end)
            return wrong(r, "the last line has no newline");
        if (r->is_finished)
            return wrong(r, "text after EOF");
        const struct piece line = {text, (size_t)(end - text)};
        if (line.len == 0 || memchr(text, '\0', line.len))
            return wrong(r, "an empty line or a NUL byte");
        if (!(*text == '#' ? check_comment(r, line) : check_sample(r, line)))
            return false;
        len -= line.len + 1;
        text = end + 1;
    }
    if (r->format == WQ_TEXT_OPENMETRICS && !r->is_finished)
        return wrong(r, "no EOF");
    if (r->families_len && !r->has_samples)
        return wrong(r, "the last family has no sample");
    return end_histogram(r);
}

const char *
exposition_check(const char *text, size_t len, wq_text format)
{
    struct reader r = {.format = format};
    const bool    ok = check_lines(&r, text, len);

    free(r.families);
    free(r.samples);
    return ok ? NULL : message;
}

const char *
exposition_value(const char *text, const char *series)
{
    static _Thread_local char value[64];
    const size_t              n = strlen(series);

    for (const char *line = text; line && *line;) {
        const char *end = strchr(line, '\n');
        if (strncmp(line, series, n) == 0 && line[n] == ' ' && end) {
            (void)snprintf(value, sizeof value, "%.*s",
                           (int)(end - line - (long)n - 1), line + n + 1);
            return value;
        }
        line = end ? end + 1 : NULL;
    }
    return NULL;
}

long long
exposition_count(const char *text, const char *series)
{
    const char *value = exposition_value(text, series);
    char       *end;

    if (!value || !*value)
        return -1;
    const long long n = strtoll(value, &end, 10);
    return *end ? -1 : n;
}
