/* SPDX-License-Identifier: MIT */
/* table.c: values for very many keys; see table.h.
 *
 * An entry in the slab:
 *
 *   value | newer, older (if ordered) | length - 1, 2 bytes | key, or a pointer
 *
 * The entry holds a pointer to the key if the entry would otherwise be too
 * large for the slab; the key's length tells which.
 */
#include "limit/table.h"

#include <assert.h>
#include <string.h>

#include "core/mem.h"
#include "core/same.h"

enum {
    CAP_FIRST = WQ_DEBUG ? 2 : 8, /* 2: rare paths become daily ones */
    SIZE_BYTES = 2,               /* WQ_KEY_MAX - 1 fits */
};

_Static_assert(WQ_KEY_MAX - 1 <= UINT16_MAX, "a length fits two bytes");

/* References have 32 bits and count units of eight bytes: there are never so
 * many entries, and the sums below do not overflow. */
#define CAP_MAX (UINT32_C(1) << 30)

struct wq__table_slot {
    uint32_t hash;
    wq__ref  entry; /* 0: the slot is free */
};

/* Neighbours in the order of use; 0: none. */
struct links {
    wq__ref newer, older;
};

/* ---- entries ------------------------------------------------------------- */

static struct links *
links(const struct wq__table *t, wq__ref entry)
{
    char *e = wq__slab_at(&t->slab, entry);
    return (struct links *)(void *)(e + t->links_at);
}

/* Where the key begins, or the pointer to it. */
static uint32_t
key_at(const struct wq__table *t)
{
    return t->size_at + SIZE_BYTES;
}

static bool
is_long(const struct wq__table *t, size_t len)
{
    return key_at(t) + len > WQ__SLAB_MAX;
}

static size_t
entry_bytes(const struct wq__table *t, size_t len)
{
    return key_at(t) + (is_long(t, len) ? sizeof(void *) : len);
}

wq_key
wq__table_key(const struct wq__table *t, wq__ref entry)
{
    const char *e = wq__slab_at(&t->slab, entry);
    wq_key      key = {e + key_at(t), 0};
    uint16_t    size;

    memcpy(&size, e + t->size_at, sizeof size);
    key.len = (size_t)size + 1;
    if (is_long(t, key.len))
        memcpy(&key.data, e + key_at(t), sizeof key.data);
    return key;
}

static void
free_entry(struct wq__table *t, wq__ref entry)
{
    const wq_key key = wq__table_key(t, entry);

    if (is_long(t, key.len)) {
        void *copy; /* we allocated it: not const */
        memcpy(&copy, (char *)wq__slab_at(&t->slab, entry) + key_at(t),
               sizeof copy);
        wq__mem_free(t->mem, copy, key.len);
    }
    wq__slab_free(&t->slab, entry);
}

static wq__ref
make_entry(struct wq__table *t, wq_key key)
{
    const uint16_t size = (uint16_t)(key.len - 1);
    wq__ref        entry;
    char *e = wq__slab_alloc(&t->slab, entry_bytes(t, key.len), &entry);

    if (!e)
        return 0;
    for (uint32_t i = 0; i < t->size_at;
         i += 4) /* a few words: cheaper than a call */
        memset(e + i, 0, 4);
    memcpy(e + t->size_at, &size, sizeof size);
    if (!is_long(t, key.len)) {
        memcpy(e + key_at(t), key.data, key.len);
        return entry;
    }

    void *copy = wq__mem_alloc(t->mem, key.len);
    if (!copy) {
        wq__slab_free(&t->slab, entry);
        return 0;
    }
    memcpy(copy, key.data, key.len);
    memcpy(e + key_at(t), &copy, sizeof copy);
    return entry;
}

/* ---- order of use -------------------------------------------------------- */

static void
push_newest(struct wq__table *t, wq__ref entry)
{
    *links(t, entry) = (struct links){.older = t->newest};
    *(t->newest ? &links(t, t->newest)->newer : &t->oldest) = entry;
    t->newest = entry;
}

static void
unlink_entry(struct wq__table *t, wq__ref entry)
{
    const struct links l = *links(t, entry);

    *(l.newer ? &links(t, l.newer)->older : &t->newest) = l.older;
    *(l.older ? &links(t, l.older)->newer : &t->oldest) = l.newer;
}

/* ---- slots --------------------------------------------------------------- */

/* The home slot of a hash: spreads hashes evenly over any number of slots. */
static inline uint32_t
home(uint32_t cap, uint32_t hash)
{
    return (uint32_t)((uint64_t)hash * cap >> 32);
}

static inline uint32_t
next(uint32_t cap, uint32_t i)
{
    return i + 1 == cap ? 0 : i + 1;
}

/* How far slot `i` is from the home of `hash`. */
static inline uint32_t
distance(uint32_t cap, uint32_t i, uint32_t hash)
{
    const uint32_t h = home(cap, hash);
    return i >= h ? i - h : i + cap - h;
}

/* Does a pair with `hash`, at slot `i` and `d` slots from its home, come before
 * the pair that is there? Pairs farther from home go first, and of one home the
 * lower hash. So hashes grow along a run, unless it wraps around the end of the
 * table: most comparisons need no multiplication. */
static inline bool
comes_before(const struct wq__table_slot *slots, uint32_t cap, uint32_t i,
             uint32_t hash, uint32_t d)
{
    if (d <= i && slots[i].hash <= hash)
        return false;
    const uint32_t other = distance(cap, i, slots[i].hash);
    return other < d || (other == d && slots[i].hash > hash);
}

/* Where a new hash belongs: from its home on, the first slot that is free or
 * has a pair that comes after it. */
static uint32_t
place_for(const struct wq__table_slot *slots, uint32_t cap, uint32_t hash)
{
    uint32_t i = home(cap, hash);

    for (uint32_t d = 0;
         slots[i].entry && !comes_before(slots, cap, i, hash, d); d++)
        i = next(cap, i);
    return i;
}

/* Insert `slot` at `i`, where it belongs. The pairs behind it move by one, up
 * to the first free slot. */
static inline void
put(struct wq__table_slot *slots, uint32_t cap, uint32_t i,
    struct wq__table_slot slot)
{
    while (slots[i].entry) {
        const struct wq__table_slot displaced = slots[i];
        slots[i] = slot;
        slot = displaced;
        i = next(cap, i);
    }
    slots[i] = slot;
}

/* How many pairs at the beginning belong to a run that began at the end. */
static uint32_t
wrapped(const struct wq__table_slot *slots, uint32_t cap)
{
    uint32_t n = 0;

    while (n < cap && slots[n].entry && home(cap, slots[n].hash) > n)
        n++;
    return n;
}

/* Copy all pairs of `from` to `to`, which is empty. The wrapped pairs are
 * copied last: then all come in the order of their hashes, which is their order
 * in `to`, too. Each goes to its home or, if that is taken, behind the one
 * before. Only the pairs that do not fit before the end of `to` must search a
 * place. */
static void
copy(const struct wq__table_slot *from, uint32_t from_cap,
     struct wq__table_slot *to, uint32_t to_cap)
{
    const uint32_t first = wrapped(from, from_cap);
    uint32_t       end = 0; /* behind the last one */

    for (uint32_t k = 0; k < from_cap; k++) {
        const uint32_t i =
            k < from_cap - first ? first + k : first + k - from_cap;
        if (!from[i].entry)
            continue;
        const uint32_t wanted = home(to_cap, from[i].hash);
        const uint32_t at = wanted > end ? wanted : end;
        if (at < to_cap) {
            to[at] = from[i];
            end = at + 1;
        } else {
            put(to, to_cap, place_for(to, to_cap, from[i].hash), from[i]);
        }
    }
}

static bool
resize(struct wq__table *t, uint32_t cap)
{
    struct wq__table_slot *slots = wq__mem_array(t->mem, cap, sizeof *slots);
    if (!slots)
        return false;

    memset(slots, 0, cap * sizeof *slots);
    copy(t->slots, t->cap, slots, cap);
    wq__mem_free(t->mem, t->slots, t->cap * sizeof *slots);
    t->slots = slots;
    t->cap = cap;
    return true;
}

/* Can one more pair be inserted without growing? */
static bool
has_free_slot(const struct wq__table *t)
{
    return (uint64_t)(t->len + 1) * 5 <= (uint64_t)t->cap * 4;
}

/* Make space for one more pair. False: out of memory. */
static bool
grow(struct wq__table *t)
{
    if (t->cap < CAP_MAX &&
        resize(t, t->cap ? t->cap + (t->cap + 1) / 2 : CAP_FIRST))
        return true;
    /* A table that cannot grow gets slower. One slot stays free: it ends every
     * search. */
    return t->len + 1 < t->cap;
}

/* If this fails, the table stays large. */
static void
shrink(struct wq__table *t)
{
    if (t->cap > CAP_FIRST && t->len < t->cap / 8)
        (void)resize(t, t->cap / 4 > CAP_FIRST ? t->cap / 4 : CAP_FIRST);
}

/* The slot of `entry`. */
static uint32_t
place_of(const struct wq__table *t, wq__ref entry, uint32_t hash)
{
    uint32_t i = home(t->cap, hash);

    while (t->slots[i].entry != entry) {
        assert(t->slots[i].entry);
        i = next(t->cap, i);
    }
    return i;
}

/* Free the slot `hole`; the pairs after it move nearer to their homes. */
static void
close_hole(struct wq__table *t, uint32_t hole)
{
    for (uint32_t i = next(t->cap, hole);
         t->slots[i].entry && distance(t->cap, i, t->slots[i].hash) > 0;
         i = next(t->cap, i)) {
        t->slots[hole] = t->slots[i];
        hole = i;
    }
    t->slots[hole].entry = 0;
}

/* ---- interface ----------------------------------------------------------- */

void
wq__table_init(struct wq__table *t, const wq_allocator *mem,
               struct wq__hash_key secret, uint32_t value_bytes, bool ordered)
{
    assert(value_bytes % 4 == 0 && value_bytes > 0);
    *t = (struct wq__table){
        .mem = mem,
        .hasher = wq__hasher_of(secret),
        .links_at = ordered ? value_bytes : 0,
        .size_at = value_bytes + (ordered ? (uint32_t)sizeof(struct links) : 0),
    };
    wq__slab_init(&t->slab, mem);
}

void
wq__table_fini(struct wq__table *t)
{
    if (!t->mem)
        return;
    for (uint32_t i = 0; i < t->cap; i++)
        if (t->slots[i].entry)
            free_entry(t, t->slots[i].entry);
    wq__mem_free(t->mem, t->slots, t->cap * sizeof *t->slots);
    wq__slab_fini(&t->slab);
    *t = (struct wq__table){0};
}

uint32_t
wq__table_hash(const struct wq__table *t, wq_key key)
{
    return wq__hash(&t->hasher, key);
}

/* The entry of `key`, at slot *place; or 0, and *place is where it belongs. */
static inline wq__ref
seek(const struct wq__table *t, wq_key key, uint32_t hash, uint32_t *place)
{
    *place = 0;
    if (t->cap == 0)
        return 0;

    uint32_t i = home(t->cap, hash);
    for (uint32_t d = 0; t->slots[i].entry; i = next(t->cap, i), d++) {
        const struct wq__table_slot slot = t->slots[i];
        *place = i;
        if (slot.hash == hash &&
            wq__same_key(wq__table_key(t, slot.entry), key))
            return slot.entry;
        if (comes_before(t->slots, t->cap, i, hash, d))
            return 0;
    }
    *place = i;
    return 0;
}

wq__ref
wq__table_find(const struct wq__table *t, wq_key key, uint32_t hash)
{
    uint32_t place;
    return seek(t, key, hash, &place);
}

wq__ref
wq__table_find_or_insert(struct wq__table *t, wq_key key, uint32_t hash)
{
    uint32_t place;
    wq__ref  entry = seek(t, key, hash, &place);

    if (entry)
        return entry;
    if (!has_free_slot(t)) {
        if (!grow(t))
            return 0;
        place = place_for(t->slots, t->cap, hash);
    }
    entry = make_entry(t, key);
    if (!entry)
        return 0;
    put(t->slots, t->cap, place, (struct wq__table_slot){hash, entry});
    t->len++;
    if (t->links_at)
        push_newest(t, entry);
    return entry;
}

static inline void
remove_at(struct wq__table *t, wq__ref entry, uint32_t place)
{
    close_hole(t, place);
    t->len--;
    if (t->links_at)
        unlink_entry(t, entry);
    free_entry(t, entry);
    shrink(t);
}

void
wq__table_remove(struct wq__table *t, wq__ref entry, uint32_t hash)
{
    remove_at(t, entry, place_of(t, entry, hash));
}

void
wq__table_forget(struct wq__table *t, wq_key key, uint32_t hash)
{
    uint32_t      place;
    const wq__ref entry = seek(t, key, hash, &place);

    if (entry)
        remove_at(t, entry, place);
}

void
wq__table_touch(struct wq__table *t, wq__ref entry)
{
    assert(t->links_at);
    if (entry == t->newest)
        return;
    unlink_entry(t, entry);
    push_newest(t, entry);
}

void
wq__table_drop_oldest(struct wq__table *t)
{
    const wq_key   key = wq__table_key(t, t->oldest);
    const uint32_t hash = wq__table_hash(t, key);

    assert(t->links_at && t->oldest);
    wq__table_remove(t, t->oldest, hash);
}
