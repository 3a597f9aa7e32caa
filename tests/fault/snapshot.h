/* SPDX-License-Identifier: MIT */
/* snapshot.h: what is going on in a core, as text that can be compared?
 *
 *     ready: 2 [0: 2 0 0] a b; held: c#3/0 d#4/5*; waiting: e@50/0; fence 4
 *
 * READY keys in order, by priority (and group); HELD ones by fence, with a star
 * when DIRTY; WAITING ones by deadline, and what is remembered about their
 * pace. Equal texts: nobody can tell the two moments apart (L6). Sizes of
 * tables are not in it, since growing them is no change.
 */
#ifndef WQ_TEST_SNAPSHOT_H
#define WQ_TEST_SNAPSHOT_H

#include "support/wq_test.h"

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
    const struct wq__slot *slot;

    for (uint64_t fence = 1; fence <= c->fence; fence++)
        for (size_t at = 0; (slot = wq__index_next(&c->index, &at));) {
            const struct wq__rec *rec = wq__slab_at(&c->recs, slot->ref);
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
snapshot_pace(struct snapshot *s, const struct wq__throttle_state *pace)
{
    snapshot_say(s, "(%lld %lld %lld %lld)", (long long)pace->latest,
                 (long long)pace->next_cooldown, (long long)pace->wait_cooldown,
                 (long long)pace->cooldown_until);
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
                     rec->flags & WQ__COOLDOWN ? "q" : "");
        if (sorted[i].throttle)
            snapshot_pace(s,
                          wq__slab_at(&c->throttle_states, sorted[i].throttle));
    }
}

/* The keys of a line or a lane. */
static inline void
snapshot_line(struct snapshot *s, const struct wq__core *c, wq__ref first)
{
    for (wq__ref ref = first; ref;) {
        const struct wq__rec *rec = wq__slab_at(&c->recs, ref);
        snapshot_key(s, wq__rec_key(rec));
        if (c->ages)
            snapshot_say(s, "+%lld", (long long)wq__rec_since(rec));
        ref = rec->next;
    }
}

/* Lanes, the next one first. */
static inline void
snapshot_ring(struct snapshot *s, const struct wq__core *c, wq__ref first)
{
    for (wq__ref head = first; head;) {
        snapshot_say(s, " <");
        snapshot_line(s, c, head);
        snapshot_say(s, " >");
        head = wq__rec_member(wq__core_rec(c, head))->next;
        if (head == first)
            break;
    }
}

/* A priority, who has it, and how many will. */
static inline void
snapshot_level(struct snapshot *s, const struct wq__core *c,
               const struct wq__level *level)
{
    snapshot_say(s, " [%d: %zu %zu %zu %zu]", level->priority, level->len,
                 level->bytes, level->dirty, level->holders);
    if (c->ready.special & WQ__GROUPED)
        snapshot_ring(s, c, level->first);
    else
        snapshot_line(s, c, level->first);
}

/* Groups by number; in their lanes, also those of a blocked one. */
static inline void
snapshot_groups(struct snapshot *s, const struct wq__core *c)
{
    const struct wq__groups *g = &c->ready.groups;

    snapshot_say(s, "; groups %u, %zu offered:", g->live, g->offers);
    for (uint32_t i = 1; i < g->cap; i++) {
        if (!g->at[i])
            continue;
        snapshot_key(s, (wq_key){g->at[i]->name, g->at[i]->len});
        snapshot_say(s, "=%u %zu %zu %zu", i, g->at[i]->records,
                     g->at[i]->ready, g->at[i]->held);
    }
}

/* READY keys, the oldest first. */
static inline void
snapshot_ages(struct snapshot *s, const struct wq__core *c)
{
    snapshot_say(s, "; by age:");
    for (wq__ref ref = c->ready.oldest; ref;) {
        struct wq__rec *rec = wq__core_rec(c, ref);
        snapshot_key(s, wq__rec_key(rec));
        ref = wq__rec_age(rec)->newer;
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
    if (c->ready.special & WQ__GROUPED)
        snapshot_groups(s, c);
    if (c->ready.special & WQ__AGEING)
        snapshot_ages(s, c);
    snapshot_say(s, "; %zu bytes; tally", c->bytes);
    snapshot_tally(s, &c->tally);
    snapshot_say(s, "; fence %llu%s", (unsigned long long)c->fence,
                 c->shutting_down ? "; shut down" : "");
}

/* The core keeps all laws. */
static inline void
assert_sound(const struct wq__core *c)
{
    const char *broken = wq__core_check(c);
    if (broken)
        fail_msg("%s", broken);
}

/* Nothing has changed since `before`. */
static inline void
assert_same(const struct snapshot *before, const struct wq__core *c)
{
    struct snapshot now;

    snapshot_take(&now, c);
    assert_string_equal(now.text, before->text);
}

#endif
