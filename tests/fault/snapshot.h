/* SPDX-License-Identifier: MIT */
/* snapshot.h: what is going on in a core, as text that can be compared?
 *
 *     ready: 2 [0: 2 0 0] a b; held: c#3/0 d#4/5*; waiting: e@50/0; fence 4
 *
 * READY keys in order, by priority; held ones by fence, with a star when dirty;
 * waiting ones by deadline, and what is remembered about their pace. Equal
 * texts: nobody can tell the two moments apart (L6). Sizes of tables are not in
 * it, since growing them is no change.
 */
#ifndef WQ_TEST_SNAPSHOT_H
#define WQ_TEST_SNAPSHOT_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/inside.h"

struct snapshot {
    char   text[20000];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static inline void
snapshot_say(struct snapshot *s, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const int n =
        vsnprintf(s->text + s->len, sizeof s->text - s->len, format, args);
    va_end(args);
    s->len += (size_t)n;
    if (s->len >= sizeof s->text)
        abort(); /* what is cut off would compare equal */
}

/* Long keys by their beginning and length. */
static inline void
snapshot_key(struct snapshot *s, wq_key key)
{
    snapshot_say(s, " %.*s", (int)(key.len < 20 ? key.len : 20),
                 (const char *)key.data);
    if (key.len > 20)
        snapshot_say(s, "..%zu", key.len);
}

static inline void
snapshot_held(struct snapshot *s, const struct wq__core *c)
{
    for (uint64_t fence = 1; fence <= c->fence; fence++)
        for (size_t i = 0; i < c->index.cap; i++) {
            const wq__ref ref = c->index.slots[i].ref;
            if (!ref)
                continue;
            const struct wq__rec *rec = wq__slab_at(&c->recs, ref);
            if (!(rec->flags & WQ__HELD))
                continue;
            const struct wq__loan *loan = wq__loans_at(&c->loans, rec->next);
            if (loan->item.fence != fence)
                continue;
            snapshot_key(s, loan->item.key);
            snapshot_say(s, "#%llu/%d", (unsigned long long)fence,
                         loan->item.priority);
            if (c->ages)
                snapshot_say(s, "+%lld", (long long)loan->got);
            if (rec->flags & WQ__DIRTY)
                snapshot_say(s, "*%u", rec->level);
        }
}

static inline int
snapshot_by_deadline(const void *left, const void *right)
{
    const struct wq__wait *a = left, *b = right;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return (a->seq > b->seq) - (a->seq < b->seq);
}

static inline void
snapshot_pace(struct snapshot *s, const struct wq__pace *pace)
{
    snapshot_say(s, "(%lld %lld %lld %lld)", (long long)pace->latest,
                 (long long)pace->next_span, (long long)pace->wait_span,
                 (long long)pace->until);
}

static inline void
snapshot_waiting(struct snapshot *s, const struct wq__core *c)
{
    struct wq__wait sorted[256];
    const size_t    n = c->waiting.len;

    if (n > 256)
        abort();
    if (n)
        memcpy(sorted, c->waiting.entries, n * sizeof sorted[0]);
    qsort(sorted, n, sizeof sorted[0], snapshot_by_deadline);
    for (size_t i = 0; i < n; i++) {
        const struct wq__rec *rec = wq__slab_at(&c->recs, sorted[i].ref);

        snapshot_key(s, wq__rec_key(rec));
        snapshot_say(s, "@%lld/%u", (long long)sorted[i].at, sorted[i].level);
        snapshot_say(s, "%s%s%s", rec->flags & WQ__BACKOFF ? "b" : "",
                     rec->flags & WQ__DEBOUNCED ? "d" : "",
                     rec->flags & WQ__QUIET ? "q" : "");
        if (sorted[i].pace)
            snapshot_pace(s, wq__slab_at(&c->paces, sorted[i].pace));
    }
}

/* A priority, who has it, and how many will. */
static inline void
snapshot_level(struct snapshot *s, const struct wq__core *c,
               const struct wq__level *level)
{
    snapshot_say(s, " [%d: %zu %zu %zu]", level->priority, level->len,
                 level->dirty, level->holders);
    for (wq__ref ref = level->first; ref;) {
        const struct wq__rec *rec = wq__slab_at(&c->recs, ref);
        snapshot_key(s, wq__rec_key(rec));
        if (c->ages)
            snapshot_say(s, "+%lld", (long long)wq__rec_since(rec));
        ref = rec->next;
    }
}

static inline void
snapshot_tally(struct snapshot *s, const struct wq__tally *t)
{
    const uint64_t all[] = {t->adds,    t->merged,    t->gets,     t->dones,
                            t->removed, t->displaced, t->deferred, t->drops};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        snapshot_say(s, " %llu", (unsigned long long)all[i]);
}

/* What a plug-in has in line only it knows: then the number stands for them. */
static inline void
snapshot_take(struct snapshot *s, const struct wq__core *c)
{
    s->len = 0;
    snapshot_say(s, "ready: %zu", wq__core_len(c));
    for (uint32_t i = 0; i < c->ready.levels.fresh; i++)
        if (i == 0 || c->ready.levels.at[i].holders)
            snapshot_level(s, c, &c->ready.levels.at[i]);
    snapshot_say(s, "; held:");
    snapshot_held(s, c);
    snapshot_say(s, "; waiting:");
    snapshot_waiting(s, c);
    snapshot_say(s, "; tally");
    snapshot_tally(s, &c->tally);
    snapshot_say(s, "; fence %llu%s", (unsigned long long)c->fence,
                 c->shutting_down ? "; shut down" : "");
}

#endif
