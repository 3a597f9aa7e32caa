/* SPDX-License-Identifier: MIT */
/* registry.c: how does a registry collect the counts of its queues?
 *
 * See registry.h. Reports take no lock; a queue's beginning and end, and text,
 * do.
 */
#include "metrics/registry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "error/error.h"
#include "metrics/metrics.h"
#include "text/utf8.h"

enum { CAP_FIRST = WQ_DEBUG ? 2 : 16 }; /* 2: rare paths become daily ones */

/* An open queue: the handle of the sink's functions. */
struct wq__reporter {
    struct wq__shards     shards; /* first: it is aligned */
    wq_registry          *registry;
    struct wq__name      *name;
    wq_queue             *q;
    struct wq__reporter  *next; /* of the same name */
    struct wq__reporter **at;   /* what points to this one */
    /* The last statistics of the queue: if a query fails, counters must not go
     * down. */
    wq_stats last;
    void    *raw; /* the address that the allocator returned */
};

#define REPORTER_BYTES                                                         \
    wq__mem_padded(sizeof(struct wq__reporter), alignof(struct wq__reporter))

/* ---- names --------------------------------------------------------------- */

static int
compare(const struct wq__name *name, const char *text, size_t len)
{
    const int order =
        memcmp(name->text, text, name->len < len ? name->len : len);

    return order ? order : (name->len > len) - (name->len < len);
}

/* The place of the name, or where it belongs. */
static size_t
place_of(const wq_registry *registry, const char *text, size_t len)
{
    size_t low = 0;
    size_t high = registry->names_len;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare(registry->names[middle], text, len) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Reserve memory for one more name. */
static wq_err
reserve(wq_registry *registry)
{
    if (registry->names_len < registry->names_cap)
        return WQ_OK;
    const size_t size = sizeof *registry->names;
    const size_t cap =
        registry->names_cap ? registry->names_cap * 2 : CAP_FIRST;
    struct wq__name **names = wq__mem_array(&registry->mem, cap, size);
    if (!names)
        return WQ_ENOMEM;

    if (registry->names_len)
        memcpy(names, registry->names, registry->names_len * size);
    wq__mem_free(&registry->mem, registry->names, registry->names_cap * size);
    registry->names = names;
    registry->names_cap = cap;
    return WQ_OK;
}

/* Insert a new name at place `i`; it takes over the bytes of `t`. */
static wq_err
insert(wq_registry *registry, size_t i, const struct wq__text *t)
{
    struct wq__name *name = NULL;
    const wq_err     err = reserve(registry);

    if (!err)
        name = wq__mem_alloc(&registry->mem, sizeof *name);
    if (!name)
        return WQ_ENOMEM;

    *name = (struct wq__name){
        .text = t->data,
        .len = t->len,
        .cap = t->cap,
        .known_len = 1, /* priority 0, which every queue has */
    };
    memmove(registry->names + i + 1, registry->names + i,
            (registry->names_len - i) * sizeof *registry->names);
    registry->names[i] = name;
    registry->names_len++;
    return WQ_OK;
}

static void
free_name(wq_registry *registry, struct wq__name *name)
{
    wq__mem_free(&registry->mem, name->text, name->cap);
    wq__mem_free(&registry->mem, name, sizeof *name);
}

static bool
is_at(const wq_registry *registry, size_t i, const struct wq__text *t)
{
    return i < registry->names_len &&
           compare(registry->names[i], t->data, t->len) == 0;
}

/* Find the name `text`, or create it. */
static wq_err
find_or_insert(wq_registry *registry, const char *text, struct wq__name **out)
{
    struct wq__text t;

    wq__text_init(&t, &registry->mem);
    wq__utf8_add(&t, text, strlen(text));
    const size_t i = t.err ? 0 : place_of(registry, t.data, t.len);
    const bool   is_known = !t.err && is_at(registry, i, &t);
    wq_err       err = t.err;
    if (!err && !is_known)
        err = insert(registry, i, &t);
    if (!err)
        *out = registry->names[i];
    if (err || is_known) /* else the name owns the bytes now */
        wq__text_fini(&t);
    return err;
}

/* ---- queries ------------------------------------------------------------- */

/* Query the statistics of a queue; one that has none counts as empty. False: that
 * failed, and the last ones stay. */
static bool
query_stats(struct wq__reporter *r)
{
    wq_stats     now = {.size = sizeof now};
    const wq_err err = wq_read_stats(r->q, &now);

    if (err && err != WQ_ENOTSUP)
        return false;
    r->last = now;
    return true;
}

static void
add_history(struct wq__history *history, const struct wq__reporter *r)
{
    history->adds += r->last.adds;
    history->merged += r->last.merged;
    history->retries += r->last.retries;
    history->drops += r->last.drops;
    wq__shards_read(&r->shards, history->durations);
}

/* Ages that are not kept are negative. */
static uint64_t
age(int64_t ns)
{
    return ns > 0 ? (uint64_t)ns : 0;
}

static void
add_gauges(struct wq__totals *now, const wq_stats *counts)
{
    struct wq__seconds longest = {0};

    now->depth += counts->ready + counts->dirty;
    now->waiting += counts->waiting;
    now->paused += counts->paused;
    wq__add_ns(&now->unfinished.seconds, &now->unfinished.ns,
               age(counts->unfinished_ns));
    wq__add_ns(&longest.seconds, &longest.ns, age(counts->longest_ns));
    if (longest.seconds > now->longest.seconds ||
        (longest.seconds == now->longest.seconds &&
         longest.ns > now->longest.ns))
        now->longest = longest;
}

/* ---- queries by priority ------------------------------------------------- */

/* Where the depth of a priority is summed up. */
static uint64_t *
depth_of(struct wq__name *name, int priority)
{
    size_t i = 0;

    while (i < name->known_len && name->known[i].priority < priority)
        i++;
    if (i < name->known_len && name->known[i].priority == priority)
        return &name->known[i].depth;
    if (name->known_len == WQ__PRIORITIES) {
        name->has_others = true;
        return &name->now.others;
    }
    memmove(name->known + i + 1, name->known + i,
            (name->known_len - i) * sizeof name->known[0]);
    name->known[i].priority = priority;
    name->known[i].depth = 0;
    name->known_len++;
    return &name->known[i].depth;
}

/* Reserve memory for `n` priorities of a queue, and some that are added
 * meanwhile. */
static wq_err
reserve_depths(wq_registry *registry, size_t n)
{
    const size_t size = sizeof *registry->depths;
    const size_t cap = n + CAP_FIRST;
    wq_depth    *depths = wq__mem_array(&registry->mem, cap, size);
    if (!depths)
        return WQ_ENOMEM;

    wq__mem_free(&registry->mem, registry->depths, registry->depths_cap * size);
    registry->depths = depths;
    registry->depths_cap = cap;
    return WQ_OK;
}

/* Read all priorities of a queue into registry->depths, which grows until all
 * of them fit. */
static wq_err
query_depths(wq_registry *registry, wq_queue *q, size_t *n)
{
    wq_err err = wq_read_depths(q, registry->depths, registry->depths_cap, n);

    while (!err && *n > registry->depths_cap) {
        err = reserve_depths(registry, *n);
        if (!err)
            err = wq_read_depths(q, registry->depths, registry->depths_cap, n);
    }
    return err;
}

/* A queue without priorities has all its keys at 0. If the query fails, they
 * count as "other". */
static wq_err
add_depths(wq_registry *registry, struct wq__name *name,
           const struct wq__reporter *r)
{
    const size_t depth = r->last.ready + r->last.dirty;
    size_t       n = 0;
    const wq_err err = query_depths(registry, r->q, &n);

    if (err == WQ_ENOMEM)
        return err;
    if (err == WQ_ENOTSUP) {
        *depth_of(name, 0) += depth;
    } else if (err) {
        name->now.others += depth;
        name->has_others |= depth > 0;
    }
    for (size_t i = 0; !err && i < n; i++)
        *depth_of(name, registry->depths[i].priority) +=
            registry->depths[i].keys;
    return WQ_OK;
}

static wq_err
gather(wq_registry *registry, struct wq__name *name)
{
    wq_err err = WQ_OK;

    name->now = (struct wq__totals){.history = name->closed};
    for (size_t i = 0; i < name->known_len; i++)
        name->known[i].depth = 0;
    for (struct wq__reporter *r = name->open; r && !err; r = r->next) {
        const bool known = query_stats(r);
        add_history(&name->now.history, r);
        if (known) {
            add_gauges(&name->now, &r->last);
            err = add_depths(registry, name, r);
        }
        name->now.unknown |= !known;
    }
    return err;
}

/* ---- the sink ------------------------------------------------------------ */

static struct wq__reporter *
make_reporter(wq_registry *registry, wq_queue *q)
{
    void *raw = wq__mem_alloc(&registry->mem, REPORTER_BYTES);
    if (!raw)
        return NULL;

    struct wq__reporter *r = wq__mem_align(raw, alignof(struct wq__reporter));
    wq__shards_init(&r->shards, &registry->mem);
    r->registry = registry;
    r->q = q;
    r->last = (wq_stats){0};
    r->raw = raw;
    return r;
}

static void
free_reporter(struct wq__reporter *r)
{
    wq__shards_fini(&r->shards);
    wq__mem_free(&r->registry->mem, r->raw, REPORTER_BYTES);
}

static void
link_reporter(struct wq__reporter *r)
{
    r->next = r->name->open;
    r->at = &r->name->open;
    if (r->next)
        r->next->at = &r->next;
    *r->at = r;
}

static void
unlink_reporter(struct wq__reporter *r)
{
    *r->at = r->next;
    if (r->next)
        r->next->at = r->at;
}

static wq_err
no_memory_for(const char *queue)
{
    return wq_fail(WQ_ENOMEM, "wq_registry: out of memory for queue '%s'",
                   queue);
}

static wq_err
open_queue(void *self, wq_queue *q, const char *name, void **handle)
{
    wq_registry *registry = self;

    if (!q || !name || !name[0])
        return wq_fail(WQ_EINVAL, "wq_registry: a queue needs a name");
    struct wq__reporter *r = make_reporter(registry, q);
    if (!r)
        return no_memory_for(name);
    wq__lock_take(&registry->lock);
    const wq_err err = find_or_insert(registry, name, &r->name);
    if (!err)
        link_reporter(r);
    wq__lock_release(&registry->lock);
    if (err) {
        free_reporter(r);
        return no_memory_for(name);
    }
    *handle = r;
    return WQ_OK;
}

/* Queries the queue for the last time, and removes it, under one lock: so every
 * text counts the queue exactly once. */
static void
close_queue(void *handle)
{
    struct wq__reporter *r = handle;
    wq_registry         *registry = r->registry;

    wq__lock_take(&registry->lock);
    (void)query_stats(r);
    add_history(&r->name->closed, r);
    unlink_reporter(r);
    wq__lock_release(&registry->lock);
    free_reporter(r);
}

static void
count_latency(void *handle, int64_t ns)
{
    struct wq__reporter *r = handle;
    wq__shards_count(&r->shards, WQ__LATENCY, ns);
}

static void
count_work(void *handle, int64_t ns)
{
    struct wq__reporter *r = handle;
    wq__shards_count(&r->shards, WQ__WORK, ns);
}

static void
count_limited(void *handle, int64_t ns)
{
    struct wq__reporter *r = handle;
    wq__shards_count(&r->shards, WQ__LIMITED, ns);
}

/* ---- life ---------------------------------------------------------------- */

wq_err
wq__registry_create(const wq_allocator *mem, wq_registry **out)
{
    wq_registry *registry = wq__mem_alloc(mem, sizeof *registry);
    if (!registry)
        return wq_fail(WQ_ENOMEM, "wq_registry_create: out of memory");

    *registry = (wq_registry){
        .mem = *mem,
        .sink =
            {
                .size = sizeof(wq_metrics),
                .self = registry,
                .open = open_queue,
                .close = close_queue,
                .latency = count_latency,
                .work = count_work,
                .limited = count_limited,
            },
    };
    wq__lock_init(&registry->lock);
    *out = registry;
    return WQ_OK;
}

wq_err
wq_registry_create(wq_registry **out)
{
    return out ? wq__registry_create(&wq__mem_default, out)
               : wq_fail(WQ_EINVAL, "wq_registry_create: out is NULL");
}

void
wq_registry_destroy(wq_registry *registry)
{
    if (!registry)
        return;
    const wq_allocator mem = registry->mem;
    for (size_t i = 0; i < registry->names_len; i++) {
        assert(!registry->names[i]->open); /* destroyed before its queues */
        free_name(registry, registry->names[i]);
    }
    wq__mem_free(&mem, registry->names,
                 registry->names_cap * sizeof *registry->names);
    wq__mem_free(&mem, registry->depths,
                 registry->depths_cap * sizeof *registry->depths);
    wq__lock_fini(&registry->lock);
    wq__mem_free(&mem, registry, sizeof *registry);
}

const wq_metrics *
wq_registry_sink(wq_registry *registry)
{
    return registry ? &registry->sink : NULL;
}

/* ---- text ---------------------------------------------------------------- */

wq_err
wq__registry_render(wq_registry *registry, wq_text format, struct wq__text *t)
{
    wq_err err = WQ_OK;

    wq__lock_take(&registry->lock);
    for (size_t i = 0; i < registry->names_len && !err; i++)
        err = gather(registry, registry->names[i]);
    if (!err)
        wq__exposition(registry, format, t);
    wq__lock_release(&registry->lock);
    return err ? err : t->err;
}

/* Render into a buffer of malloc(). */
static wq_err
render_all(wq_registry *registry, wq_text format, struct wq__text *t)
{
    wq__text_init(t, &wq__mem_default);
    wq_err err = wq__registry_render(registry, format, t);
    wq__text_char(t, '\0'); /* a string */
    if (!err)
        err = t->err;
    if (err)
        wq__text_fini(t);
    return err;
}

static bool
is_format(wq_text format)
{
    return format == WQ_TEXT_PROMETHEUS || format == WQ_TEXT_OPENMETRICS;
}

wq_err
wq_registry_text(wq_registry *registry, wq_text format, char **out, size_t *len)
{
    struct wq__text t;

    if (!registry || !out || !len || !is_format(format))
        return WQ_EINVAL;
    const wq_err err = render_all(registry, format, &t);
    if (err)
        return err;
    *out = t.data;
    *len = t.len - 1;
    return WQ_OK;
}

wq_err
wq_registry_write(wq_registry *registry, wq_text format, wq_write write,
                  void *ctx)
{
    struct wq__text t;

    if (!registry || !write || !is_format(format))
        return WQ_EINVAL;
    wq_err err = render_all(registry, format, &t);
    if (err)
        return err;
    err = write(ctx, t.data, t.len - 1);
    wq__text_fini(&t);
    return err;
}
