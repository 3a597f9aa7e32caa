/* SPDX-License-Identifier: MIT */
/* audit.c: do all laws hold right now?
 *
 * Reads the whole state by other ways than the verbs do, and names the first
 * law that it finds broken. It checks what a single moment can show; the model
 * in tests/model, which compares every answer, checks the laws about what
 * happens over time (L3, L6).
 */
#include "core/core.h"

#include "core/inside.h"

static const struct wq__rec *
record(const struct wq__core *c, wq__ref ref)
{
    return wq__core_rec(c, ref);
}

/* What the records of the index add up to. */
struct census {
    size_t ready, held, dirty, waiting, cooldowns, bytes;
    size_t epochs[WQ__EPOCHS]; /* unfinished runs, by their epoch's mark */
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
    n->cooldowns += (rec->flags & WQ__COOLDOWN) != 0;
    n->bytes += wq__rec_len(rec);
    n->epochs[wq__rec_epoch(rec)] += ready || held;
    n->epochs[wq__rec_next_epoch(rec)] += dirty;
    if (ready && held)
        return "L2: a key is READY and HELD";
    if (dirty && !held)
        return "a key is DIRTY but not HELD";
    if (!ready && !held && !rec->wait)
        return "a record without any state was kept";
    if (rec->flags & (WQ__BACKOFF | WQ__DEBOUNCED) && !wq__rec_waits(rec))
        return "a key has a backoff or a debounce but no deadline";
    if ((rec->flags & (WQ__COVERS_ADD | WQ__BACKOFF)) == WQ__COVERS_ADD)
        return "a deadline that is no backoff is marked COVERS_ADD";
    if (rec->flags & WQ__COOLDOWN && !rec->wait)
        return "a key in its cooldown has no entry in the heap";
    if (rec->flags & WQ__NAMED)
        return "a call left its mark on a record";
    if ((rec->flags & WQ__PREFIX) != c->prefix)
        return "a record has other parts than the others";
    if (rec->flags & WQ__REMOVING && !held)
        return "a key is marked REMOVING and is not HELD";
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
    const uint32_t         number = rec->next;
    const struct wq__loan *loan =
        number >= WQ__LOANS_FIRST && number < c->loans.fresh
            ? wq__loans_at(&c->loans, number)
            : NULL;

    if (!loan || loan->rec != ref || loan->item.loan != number)
        return "L1: a HELD key and its loan do not name each other";
    if (loan->item.key.data != wq__rec_bytes(rec) ||
        loan->item.key.len != wq__rec_len(rec))
        return "a loan shows another key than its record's";
    if (loan->item.fence > c->fence)
        return "a fence from the future";
    return NULL;
}

/* The unfinished runs of each epoch; while no epoch is closed, all are of the
 * open one. */
static const char *
check_epochs(const struct wq__core *c, const struct census *n)
{
    const struct wq__flush *f = &c->flush;

    if (f->epoch - f->first >= WQ__EPOCHS)
        return "more epochs are under way than two bits can number";
    for (unsigned mark = 0; mark < WQ__EPOCHS; mark++) {
        const bool closed =
            ((mark - f->first) % WQ__EPOCHS) < f->epoch - f->first;
        if (mark != wq__flush_mark(f) &&
            n->epochs[mark] != (closed ? f->unfinished[mark] : 0))
            return "the runs that a flush waits for were miscounted";
    }
    if (f->first != f->epoch && f->unfinished[f->first % WQ__EPOCHS] == 0)
        return "a flush waits for nothing";
    return NULL;
}

static const char *
check_index(const struct wq__core *c)
{
    struct census          n = {0};
    const struct wq__slot *next;
    size_t                 at = 0, len = 0;
    const char            *broken = wq__index_check(&c->index);

    while (!broken && (next = wq__index_next(&c->index, &at))) {
        const struct wq__slot slot = *next;
        len++;
        broken = check_record(c, slot.ref, &n);
        if (broken)
            return broken;
        const struct wq__rec *rec = record(c, slot.ref);
        if (slot.hash != rec->hash)
            return "a slot's hash is not its record's";
        if (wq__index_find(&c->index, wq__rec_key(rec), rec->hash) != slot.ref)
            return "a key cannot be found, or is there twice";
        broken = rec->flags & WQ__HELD ? check_loan(c, slot.ref) : NULL;
    }
    if (broken)
        return broken;
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
    if (n.cooldowns != c->cooldowns)
        return "COOLDOWN keys were miscounted";
    if (c->max_len && len > c->max_len)
        return "there are more keys than the bound allows";
    if (c->max_bytes && (n.bytes != c->bytes || n.bytes > c->max_bytes))
        return "keys' bytes were miscounted, or are more than the bound allows";
    return check_epochs(c, &n);
}

/* The list of a level, from the first key to the last. */
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
            return "L4: a key is in the list of another priority";
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

/* Every group counts the keys that it has. */
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

/* The list of READY keys by age holds each of them once. */
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
    const struct wq__slot *slot;
    size_t                 at = 0, sum = 0;

    while (c->max_bytes && (slot = wq__index_next(&c->index, &at)))
        if (record(c, slot->ref)->flags & WQ__READY)
            sum += wq__rec_len(record(c, slot->ref));
    return sum;
}

/* Every level counts its READY, DIRTY and WAITING keys. */
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
        return "the holders of levels were miscounted";
    return wq__levels_check(l);
}

/* Every key that was added, or imported, has left, or is here. */
static const char *
check_tally(const struct wq__core *c)
{
    const struct wq__tally *t = &c->tally;

    if (t->adds + t->imported_runs != t->gets + t->removed + t->displaced +
                                          t->deferred + c->ready.len + c->dirty)
        return "L3: keys that were added got lost, or came twice";
    if (t->gets + t->imported_loans != t->dones + c->loans.live)
        return "hand-outs and dones do not agree with what is HELD";
    return NULL;
}

/* The list of loans by age. */
static const char *
check_ages(const struct wq__core *c)
{
    uint64_t sum = 0;
    size_t   len = 0;
    uint32_t last = 0;

    const struct wq__loans *l = &c->loans;
    if (!c->ages)
        return l->oldest || l->newest ? "ages are kept without need" : NULL;
    for (uint32_t number = l->oldest; number; len++) {
        const struct wq__loan *loan = wq__loans_at(l, number);
        if (loan->older != last || len > l->live)
            return "the list of ages is broken";
        sum += (uint64_t)loan->got;
        last = number;
        number = loan->newer;
    }
    return len == l->live && last == l->newest && sum == l->got_sum
               ? NULL
               : "the ages of loans were miscounted";
}

/* A throttle state fits the states of its key. */
static const char *
check_cooldowns(const struct wq__rec *rec, const struct wq__wait *e,
                const struct wq__throttle_state *state)
{
    const bool cooling = rec->flags & WQ__COOLDOWN;

    if (state->next_cooldown && !wq__rec_is_pending(rec))
        return "next_cooldown is set, and the key is neither READY nor DIRTY";
    if (state->wait_cooldown && cooling)
        return "wait_cooldown is set on a COOLDOWN entry";
    if (cooling && state->next_cooldown && e->at != WQ_FOREVER)
        return "a throttled key will be forgotten before its hand-out";
    if (cooling && !state->next_cooldown && e->at != state->cooldown_until)
        return "a cooldown ends at another time than its state says";
    return NULL;
}

/* A COOLDOWN entry and a debounced deadline need a throttle state. */
static const char *
check_throttle(const struct wq__core *c, const struct wq__wait *e)
{
    const struct wq__rec *rec = record(c, e->ref);

    if (rec->flags & (WQ__COOLDOWN | WQ__DEBOUNCED) && !e->throttle)
        return "a debounced or throttled key has no throttle state";
    if (rec->flags & WQ__COOLDOWN && e->level)
        return "a key in its cooldown holds a priority";
    return e->throttle
               ? check_cooldowns(rec, e,
                                 wq__slab_at(&c->throttle_states, e->throttle))
               : NULL;
}

static const char *
check_waiting(const struct wq__core *c)
{
    const struct wq__heap *h = &c->waiting;
    size_t                 states = 0;

    for (size_t i = 0; i < h->len; i++) {
        const struct wq__wait *e = &h->entries[i];
        if (record(c, e->ref)->wait != h->base + i + 1)
            return "L5: a deadline and its key do not name each other";
        const size_t parent = i ? (i - 1) / WQ__HEAP_CHILDREN : 0;
        if (wq__wait_before(e, &h->entries[parent]))
            return "L4: the delay heap is out of order";
        if (h->is_sorted && i && wq__wait_before(e, e - 1))
            return "L4: the delay heap is not as sorted as it says";
        if (e->seq > h->seq)
            return "an arrival number from the future";
        states += e->throttle != 0;
        const char *broken = check_throttle(c, e);
        if (broken)
            return broken;
    }
    if (h->reserved)
        return "an add left a reservation in the delay heap";
    if (states != c->throttle_states.live)
        return "a throttle state was lost";
    return NULL;
}

const char *
wq__core_check(const struct wq__core *c)
{
    static const char *(*const checks[])(const struct wq__core *) = {
        check_index,   check_ready, check_age_list, check_holders,
        check_waiting, check_tally, check_ages,
    };
    const char *broken = NULL;

    for (size_t i = 0; !broken && i < sizeof checks / sizeof *checks; i++)
        broken = checks[i](c);
    return broken;
}
