/* SPDX-License-Identifier: MIT */
/* audit.c: do all laws hold right now?
 *
 * Looks at the whole state from outside, by other ways than the verbs take, and
 * names the first law it finds broken. Laws that speak of what happens over
 * time (L3, L6) are checked by the model in tests/model, which compares every
 * answer; here is what a single moment can show.
 */
#include "core/core.h"

#include "core/inside.h"

static const struct wq__rec *
record(const struct wq__core *c, wq__ref ref)
{
    return wq__core_rec(c, ref);
}

/* A record by itself: states that exclude each other, and counts of them. */
struct census {
    size_t ready, held, dirty, waiting, quiet, bytes;
    size_t turns[WQ__TURNS]; /* runs that are owed, by their turn's mark */
};

static const char *
check_record(const struct wq__core *c, wq__ref ref, struct census *n)
{
    const struct wq__rec *rec = record(c, ref);
    const bool            ready = rec->flags & WQ__READY;
    const bool            held = rec->flags & WQ__HELD;
    const bool            dirty = rec->flags & WQ__DIRTY;

    n->ready += ready;
    n->held += held;
    n->dirty += dirty;
    n->waiting += rec->wait != 0;
    n->quiet += (rec->flags & WQ__QUIET) != 0;
    n->bytes += wq__rec_len(rec);
    n->turns[wq__rec_turn(rec)] += ready || held;
    n->turns[wq__rec_next_turn(rec)] += dirty;
    if (ready && held)
        return "L2: a key is READY and HELD";
    if (dirty && !held)
        return "a key is DIRTY but not HELD";
    if (!ready && !held && !rec->wait)
        return "a record without any state was kept";
    if (rec->flags & (WQ__BACKOFF | WQ__DEBOUNCED) && !wq__rec_waits(rec))
        return "a key has a backoff or a debounce but no deadline";
    if ((rec->flags & (WQ__EXPECTED | WQ__BACKOFF)) == WQ__EXPECTED)
        return "a deadline is expected beside a failure that is none";
    if (rec->flags & WQ__QUIET && !rec->wait)
        return "a key is to be left alone, for no time";
    if (rec->flags & WQ__PICKED)
        return "an add has left its mark";
    if ((rec->flags & WQ__PREFIX) != c->prefix)
        return "a record has other parts than the others";
    if (rec->flags & WQ__REMOVING && !held)
        return "a key is to be removed at done, and is not HELD";
    if (((const char *)wq__rec_bytes(rec))[wq__rec_len(rec)])
        return "no NUL follows a key";
    if (wq__hash(&c->hasher, wq__rec_key(rec)) != rec->hash)
        return "a record's hash is not its key's";
    return NULL;
}

/* A HELD record and its loan must name each other: then two loans cannot name
 * the same record (L1). */
static const char *
check_loan(const struct wq__core *c, wq__ref ref)
{
    const struct wq__rec  *rec = record(c, ref);
    const uint32_t         slot = rec->next;
    const struct wq__loan *loan =
        slot >= WQ__LOANS_FIRST && slot < c->loans.fresh
            ? wq__loans_at(&c->loans, slot)
            : NULL;

    if (!loan || loan->rec != ref || loan->item.slot != slot)
        return "L1: a HELD key and its loan do not name each other";
    if (loan->item.key.data != wq__rec_bytes(rec) ||
        loan->item.key.len != wq__rec_len(rec))
        return "a loan shows another key than its record's";
    if (loan->item.fence > c->fence)
        return "a fence from the future";
    return NULL;
}

/* What each turn owes; while none is closed, all is of the open one. */
static const char *
check_turns(const struct wq__core *c, const struct census *n)
{
    const struct wq__flush *f = &c->flush;

    if (f->turn - f->first >= WQ__TURNS)
        return "more turns are under way than marks tell apart";
    for (unsigned mark = 0; mark < WQ__TURNS; mark++) {
        const bool closed =
            ((mark - f->first) % WQ__TURNS) < f->turn - f->first;
        if (mark != wq__flush_mark(f) &&
            n->turns[mark] != (closed ? f->owed[mark] : 0))
            return "the runs that a flush waits for were miscounted";
    }
    if (f->first != f->turn && f->owed[f->first % WQ__TURNS] == 0)
        return "a flush waits for nothing";
    return NULL;
}

static const char *
check_index(const struct wq__core *c)
{
    struct census n = {0};
    size_t        len = 0;

    for (size_t i = 0; i < c->index.cap; i++) {
        const struct wq__slot slot = c->index.slots[i];
        if (!slot.ref)
            continue;
        len++;
        const char *broken = check_record(c, slot.ref, &n);
        if (broken)
            return broken;
        const struct wq__rec *rec = record(c, slot.ref);
        if (slot.hash != rec->hash)
            return "a slot's hash is not its record's";
        if (wq__index_find(&c->index, wq__rec_key(rec), rec->hash) != slot.ref)
            return "a key cannot be found, or is there twice";
        broken = rec->flags & WQ__HELD ? check_loan(c, slot.ref) : NULL;
        if (broken)
            return broken;
    }
    if (len != c->index.len || len != c->recs.live)
        return "index and records differ in number";
    if (n.held != c->loans.live)
        return "L1: HELD keys and loans differ in number";
    if (n.dirty != c->dirty)
        return "DIRTY keys were miscounted";
    if (n.ready != c->ready.len)
        return "READY keys were miscounted";
    if (n.waiting != c->waiting.len)
        return "L5: WAITING keys and deadlines differ in number";
    if (n.quiet != c->quiet)
        return "QUIET keys were miscounted";
    if (c->max_len && len > c->max_len)
        return "there are more keys than the bound allows";
    if (c->max_bytes && (n.bytes != c->bytes || n.bytes > c->max_bytes))
        return "keys' bytes were miscounted, or are more than the bound allows";
    return check_turns(c, &n);
}

/* The line of a level, from the first to the last. */
static const char *
check_line(const struct wq__core *c, uint32_t number)
{
    const struct wq__level *level = &c->ready.levels.at[number];
    size_t                  len = 0;
    wq__ref                 last = 0;

    for (wq__ref ref = level->first; ref; ref = record(c, ref)->next) {
        const struct wq__rec *rec = record(c, ref);
        if (!(rec->flags & WQ__READY))
            return "L2: the ready list holds a key that is not READY";
        if (rec->level != number)
            return "L4: a key stands in another priority's line";
        if (++len > level->len)
            return "L2: a key is in the ready list twice";
        if (last && rec->prev != last)
            return "the ready list does not lead back";
        last = ref;
    }
    if (len != level->len || last != level->last)
        return "the ready list was cut";
    return NULL;
}

/* Every group has the keys it counts. */
static const char *
check_groups(const struct wq__core *c)
{
    const struct wq__groups *g = &c->ready.groups;
    size_t                   ready = 0, held = 0, records = 0;

    for (uint32_t i = 1; i < g->cap; i++) {
        if (!g->at[i])
            continue;
        ready += g->at[i]->ready;
        held += g->at[i]->held;
        records += g->at[i]->records;
        if (g->max_held && g->at[i]->held > g->max_held)
            return "more keys of a group are HELD than the bound allows";
    }
    if (ready != c->ready.len || held != c->loans.live ||
        records != c->index.len)
        return "the groups' keys were miscounted";
    return wq__groups_check(g);
}

/* READY keys by age: each of them once. */
static const char *
check_age_list(const struct wq__core *c)
{
    const struct wq__ready *r = &c->ready;
    size_t                  len = 0;
    wq__ref                 last = 0;

    if (!(r->special & WQ__AGEING))
        return NULL;
    for (wq__ref ref = r->oldest; ref; len++) {
        struct wq__rec *rec = wq__core_rec(c, ref);
        if (!(rec->flags & WQ__READY) || wq__rec_age(rec)->older != last ||
            len > r->len)
            return "the list of READY keys by age is broken";
        last = ref;
        ref = wq__rec_age(rec)->newer;
    }
    return len == r->len && last == r->newest
               ? NULL
               : "the list of READY keys by age was cut";
}

static const char *
check_ready(const struct wq__core *c)
{
    const struct wq__ready  *r = &c->ready;
    const struct wq__levels *l = &r->levels;

    if (r->special & WQ__PLUG_IN)
        return r->plug_in.len(r->plug_in.self) == r->len
                   ? NULL
                   : "the wq_order and the queue differ on what is READY";
    if (r->special & WQ__GROUPED)
        return check_groups(c);
    for (uint32_t i = 0; i < l->fresh; i++) {
        const char *broken = i && !l->at[i].holders ? NULL : check_line(c, i);
        if (broken)
            return broken;
    }
    return NULL;
}

/* The bytes of READY keys, if they are counted. */
static size_t
ready_bytes(const struct wq__core *c)
{
    size_t sum = 0;

    for (size_t i = 0; c->max_bytes && i < c->index.cap; i++) {
        const wq__ref ref = c->index.slots[i].ref;
        if (ref && record(c, ref)->flags & WQ__READY)
            sum += wq__rec_len(record(c, ref));
    }
    return sum;
}

/* Every level has the keys it counts: READY, DIRTY, WAITING. */
static const char *
check_holders(const struct wq__core *c)
{
    const struct wq__levels *l = &c->ready.levels;
    size_t len = 0, dirty = 0, holders = 0, waiting = 0, bytes = 0;

    for (uint32_t i = 0; i < l->fresh; i++) {
        if (i && !l->at[i].holders)
            continue;
        len += l->at[i].len;
        bytes += l->at[i].bytes;
        dirty += l->at[i].dirty;
        holders += i ? l->at[i].holders : l->at[i].len + l->at[i].dirty;
    }
    for (size_t i = 0; i < c->waiting.len; i++)
        waiting += c->waiting.entries[i].level != 0;
    if (len != c->ready.len || dirty != c->dirty)
        return "the levels' keys were miscounted";
    if (bytes != ready_bytes(c))
        return "the bytes of the levels' READY keys were miscounted";
    if (holders != len + dirty + waiting)
        return "a level is held by nobody, or not by somebody";
    return wq__levels_check(l);
}

/* What came in has gone out, or is here. */
static const char *
check_tally(const struct wq__core *c)
{
    const struct wq__tally *t = &c->tally;

    if (t->adds != t->gets + t->removed + t->displaced + t->deferred +
                       c->ready.len + c->dirty)
        return "L3: keys that were added got lost, or came twice";
    if (t->gets != t->dones + c->loans.live)
        return "hand-outs and dones do not agree with what is HELD";
    return NULL;
}

/* Loans by age. */
static const char *
check_ages(const struct wq__core *c)
{
    uint64_t sum = 0;
    size_t   len = 0;
    uint32_t last = 0;

    const struct wq__loans *l = &c->loans;
    if (!c->ages)
        return l->oldest || l->newest ? "ages are kept without need" : NULL;
    for (uint32_t slot = l->oldest; slot; len++) {
        const struct wq__loan *loan = wq__loans_at(l, slot);
        if (loan->older != last || len > l->live)
            return "the list of ages is broken";
        sum += (uint64_t)loan->got;
        last = slot;
        slot = loan->newer;
    }
    return len == l->live && last == l->newest && sum == l->got_sum
               ? NULL
               : "the ages of loans were miscounted";
}

/* What is remembered about a pace fits the states of its key. */
static const char *
check_spans(const struct wq__rec *rec, const struct wq__wait *e,
            const struct wq__pace *pace)
{
    const bool quiet = rec->flags & WQ__QUIET;

    if (pace->next_span && !wq__rec_is_wanted(rec))
        return "next_span is set, and the key is neither READY nor DIRTY";
    if (pace->wait_span && quiet)
        return "wait_span is set on a QUIET entry";
    if (quiet && pace->next_span && e->at != WQ_FOREVER)
        return "a throttled key will be forgotten before its hand-out";
    if (quiet && !pace->next_span && e->at != pace->until)
        return "a key is left alone until another time than remembered";
    return NULL;
}

/* An entry that is QUIET, or a series of debounced adds, is of use only with
 * what is remembered. */
static const char *
check_pace(const struct wq__core *c, const struct wq__wait *e)
{
    const struct wq__rec *rec = record(c, e->ref);

    if (rec->flags & (WQ__QUIET | WQ__DEBOUNCED) && !e->pace)
        return "a key has a pace, and nothing is remembered about it";
    if (rec->flags & WQ__QUIET && e->level)
        return "a key that is left alone holds a priority";
    return e->pace ? check_spans(rec, e, wq__slab_at(&c->paces, e->pace))
                   : NULL;
}

static const char *
check_waiting(const struct wq__core *c)
{
    const struct wq__heap *h = &c->waiting;
    size_t                 paces = 0;

    for (size_t i = 0; i < h->len; i++) {
        const struct wq__wait *e = &h->entries[i];
        if (record(c, e->ref)->wait != i + 1)
            return "L5: a deadline and its key do not name each other";
        const struct wq__wait *parent =
            &h->entries[i ? (i - 1) / WQ__HEAP_CHILDREN : 0];
        if (parent->at > e->at || (parent->at == e->at && parent->seq > e->seq))
            return "L4: the delay heap is out of order";
        if (e->seq > h->seq)
            return "an arrival number from the future";
        paces += e->pace != 0;
        const char *broken = check_pace(c, e);
        if (broken)
            return broken;
    }
    if (h->reserved)
        return "an add has kept room in the delay heap for itself";
    if (paces != c->paces.live)
        return "what is remembered about a pace was lost";
    return NULL;
}

const char *
wq__core_check(const struct wq__core *c)
{
    const char *broken = check_index(c);
    if (!broken)
        broken = check_ready(c);
    if (!broken)
        broken = check_age_list(c);
    if (!broken)
        broken = check_holders(c);
    if (!broken)
        broken = check_waiting(c);
    if (!broken)
        broken = check_tally(c);
    if (!broken)
        broken = check_ages(c);
    return broken;
}
