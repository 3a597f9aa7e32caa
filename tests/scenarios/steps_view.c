/* SPDX-License-Identifier: MIT */
/* steps_view.c: the steps that look at keys, the queue, its limiter and its sink.
 */
#include "scenarios/step.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <wq/inspect.h>

/* ---- what can be seen ---------------------------------------------------- */

static const char *const state_names[] = {"READY",   "HELD",    "DIRTY",
                                          "WAITING", "BACKOFF", "DEAD"};
enum { STATES = sizeof state_names / sizeof *state_names };

/* The names of states; "none" for none. */
static void
append_states(struct call *c, unsigned states)
{
    for (unsigned i = 0; i < STATES; i++)
        if (states & 1U << i)
            append(c, "%s", state_names[i]);
    if (!states)
        append(c, "none");
}

static bool
read_key_info(struct call *c, wq_key_info *out)
{
    struct keys k;

    *out = (wq_key_info){.size = sizeof *out};
    return need_key(c, 1, &k) && !report(c, wq_read_key(c->q, k.key, out));
}

void
do_states(struct call *c)
{
    wq_key_info info;

    if (read_key_info(c, &info))
        append_states(c, info.states);
}

/* A number that a step can be asked for by name. */
struct field {
    const char *name;
    int64_t     value;
    bool        is_duration; /* else a number */
};

/* Each argument from `first` on is "NAME=VALUE": are these the values? */
static void
compare_fields(struct call *c, size_t first, const struct field *fields,
               size_t n)
{
    for (size_t i = first; i < c->words.result; i++) {
        const char  *word = c->words.at[i];
        const size_t len = strcspn(word, "=");
        int64_t      expected = 0;
        size_t       f = 0;

        while (f < n && (strlen(fields[f].name) != len ||
                         strncmp(fields[f].name, word, len) != 0))
            f++;
        if (f == n || !word[len] ||
            !(read_number(word + len + 1, &expected) ||
              read_duration(word + len + 1, &expected))) {
            wrong(c, "'%s' is not a field and a value", word);
            return;
        }
        if (fields[f].value != expected) {
            append(c, "%s=%" PRId64 "%s", fields[f].name, fields[f].value,
                   fields[f].is_duration ? "ns" : "");
            c->failed = true;
        }
    }
}

/* stats NAME=VALUE... */
void
do_stats(struct call *c)
{
    wq_stats s = {.size = sizeof s};

    if (report(c, wq_read_stats(c->q, &s)))
        return;
#define COUNT(field)                                                           \
    {                                                                          \
        .name = #field, .value = (int64_t)s.field                              \
    }
#define AGE(field)                                                             \
    {                                                                          \
        .name = #field, .value = s.field##_ns, .is_duration = true             \
    }
    const struct field fields[] = {
        AGE(next),        AGE(unfinished),      AGE(longest),   COUNT(ready),
        COUNT(held),      COUNT(dirty),         COUNT(waiting), COUNT(known),
        COUNT(sleeping),  COUNT(shutting_down), COUNT(adds),    COUNT(merged),
        COUNT(retries),   COUNT(gets),          COUNT(dones),   COUNT(removed),
        COUNT(displaced), COUNT(deferred),      COUNT(overdue), COUNT(paused),
        COUNT(bytes),     COUNT(groups),        COUNT(offered), COUNT(drops),
        COUNT(dead),      COUNT(holders),       COUNT(lost),    COUNT(expired),
        COUNT(connects)};
#undef COUNT
#undef AGE
    compare_fields(c, 1, fields, sizeof fields / sizeof *fields);
}

/* key KEY NAME=VALUE... */
void
do_key(struct call *c)
{
    wq_key_info info;

    if (!read_key_info(c, &info))
        return;
    const struct field fields[] = {
        {"priority", info.priority, false},
        {"requeues", info.requeues, false},
        {"ready", info.ready_ns, true},
        {"held", info.held_ns, true},
        {"wait", info.wait_ns, true},
        {"fence", (int64_t)info.fence, false},
    };
    compare_fields(c, 2, fields, sizeof fields / sizeof *fields);
}

static int
by_priority(const void *a, const void *b)
{
    const wq_depth *l = a, *r = b;

    return (l->priority < r->priority) - (l->priority > r->priority);
}

/* depths -> 5=2 0=1: highest priority first */
void
do_depths(struct call *c)
{
    wq_depth depths[64];
    size_t   n = 0;

    if (report(c, wq_read_depths(c->q, depths, 64, &n)))
        return;
    qsort(depths, n, sizeof *depths, by_priority);
    for (size_t i = 0; i < n; i++)
        append(c, "%d=%zu", depths[i].priority, depths[i].keys);
}

struct visits {
    char   names[256][32];
    size_t n;
};

static bool
visit(void *ctx, wq_key key, const wq_key_info *info)
{
    struct visits *v = ctx;

    (void)info;
    if (v->n < 256)
        (void)put_key(v->names[v->n++], sizeof v->names[0], 0, key);
    return true;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* each STATE... -> KEY...: sorted; "none" for none */
void
do_each(struct call *c)
{
    struct visits v = {.n = 0};
    unsigned      states = 0;

    for (size_t i = 1; i < c->words.result; i++) {
        const int bit = find_name(state_names, STATES, c->words.at[i]);
        if (bit < 0) {
            wrong(c, "'%s' is not a state", c->words.at[i]);
            return;
        }
        states |= 1U << bit;
    }
    if (report(c, wq_each(c->q, states, visit, &v)))
        return;
    qsort(v.names, v.n, sizeof v.names[0], by_name);
    for (size_t i = 0; i < v.n; i++)
        append(c, "%s", v.names[i]);
    if (!v.n)
        append(c, "none");
}

/* dropped -> KEY...: what on_drop was called with since the last such step;
 * "none" for none */
void
do_dropped(struct call *c)
{
    struct run *run = c->run;

    (void)pthread_mutex_lock(&run->lock);
    set_result(c, "%s", *run->dropped ? run->dropped : "none");
    *run->dropped = '\0';
    (void)pthread_mutex_unlock(&run->lock);
}

/* readable [TIMEOUT] -> yes, no: does wq_fd() wake up an event loop? The timeout
 * is real time, in whole milliseconds. */
void
do_readable(struct call *c)
{
    struct pollfd p = {.fd = wq_fd(c->q), .events = POLLIN};
    int64_t       timeout_ns;

    if (!read_timeout(c, 1, &timeout_ns))
        return;
    const int ms = timeout_ns == WQ_FOREVER ? -1 : (int)(timeout_ns / 1000000);
    if (p.fd < 0)
        wrong(c, "the queue has no file descriptor");
    else if (poll(&p, 1, ms) == 1 && p.revents != POLLIN)
        wrong(c, "the file descriptor has events %#x", (unsigned)p.revents);
    else
        set_result(c, "%s", p.revents ? "yes" : "no");
}

static bool
has_limiter(struct call *c)
{
    if (!c->run->limiter)
        wrong(c, "the queue has no limiter of its own");
    return c->run->limiter != NULL;
}

/* when KEY DELAY...: the next answers of the queue's limiter, for each key */
void
do_when(struct call *c)
{
    struct keys k = keys_of(c->words.at + 1, c->words.result > 1);

    while (has_limiter(c) && !c->failed && next_key(&k))
        for (size_t i = 2; i < c->words.result && !c->failed; i++) {
            const int64_t was = wq_limiter_when(c->run->limiter, k.key);
            int64_t       expected;

            if (need_duration(c, i, &expected) && was != expected)
                wrong(c, "answer %zu was %" PRId64 "ns", i - 1, was);
        }
}

/* undo KEY...: take back one when of each key */
void
do_undo(struct call *c)
{
    for (struct keys k = arguments(c, 1); has_limiter(c) && next_key(&k);)
        wq_limiter_undo(c->run->limiter, k.key);
}

/* limiter NAME=VALUE...: the calls of limiter=probe:DELAY */
void
do_limiter(struct call *c)
{
    const struct probe *p = &c->run->probe;
    const struct field  fields[] = {{"whens", p->whens, false},
                                    {"forgets", p->forgets, false},
                                    {"undos", p->undos, false}};

    compare_fields(c, 1, fields, sizeof fields / sizeof *fields);
}

/* ---- a sink -------------------------------------------------------------- */

/* changes NAME=VALUE...: the sums of all changes that the sink was called with.
 * They must be what wq_read_stats() returns. */
void
do_changes(struct call *c)
{
    const wq_change   *sum = &c->run->recorder.sum;
    wq_stats           s = {.size = sizeof s};
    const struct field fields[] = {{"depth", sum->depth, false},
                                   {"adds", (int64_t)sum->adds, false},
                                   {"merged", (int64_t)sum->merged, false},
                                   {"retries", (int64_t)sum->retries, false},
                                   {"drops", (int64_t)sum->drops, false}};

    if (report(c, wq_read_stats(c->q, &s)))
        return;
    compare_fields(c, 1, fields, sizeof fields / sizeof *fields);
    if (!c->failed && !recorder_agrees(&c->run->recorder, &s))
        wrong(c, "the sums of changes are not the stats");
}

/* Are the durations of `word`, which commas separate, those of the series from
 * number `from` on? */
static bool
is_series(const char *word, const struct series *series, size_t from)
{
    char  copy[LINE_LEN], *rest = NULL;
    char *name = copy;

    (void)snprintf(copy, sizeof copy, "%s", word);
    while ((name = strtok_r(name, ",", &rest))) {
        int64_t ns;

        if (!read_duration(name, &ns) || from >= series->n ||
            series->ns[from++] != ns)
            return false;
        name = NULL;
    }
    return from == series->n;
}

/* reported KIND=DURATION,...: the durations that the sink was called with since
 * the last such step; a KIND that is missing was not reported */
void
do_reported(struct call *c)
{
    const struct recorder *r = &c->run->recorder;
    const struct {
        const char          *name;
        const struct series *series;
    } kinds[] = {{"latency=", &r->latency},
                 {"work=", &r->work},
                 {"limited=", &r->limited}};
    bool   same = true;
    size_t known = 1;

    for (int k = 0; k < 3; k++) {
        const size_t len = strlen(kinds[k].name);
        size_t      *seen = &c->run->reported[k];
        const char  *word = "";

        for (size_t i = 1; i < c->words.result; i++)
            if (!strncmp(c->words.at[i], kinds[k].name, len)) {
                word = c->words.at[i] + len;
                known++;
            }
        same = is_series(word, kinds[k].series, *seen) && same;
        for (; *seen < kinds[k].series->n; ++*seen)
            append(c, "%s%" PRId64 "ns", kinds[k].name,
                   kinds[k].series->ns[*seen]);
    }
    if (known != c->words.result)
        wrong(c, "this is not reported");
    else if (same)
        c->result[0] = '\0';
    else
        c->failed = true;
}
