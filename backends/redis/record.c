/* SPDX-License-Identifier: MIT */
/* record.c: how does what is known of a key become bytes?
 *
 * See lua/head.lua, and the scripts, which read the same bytes: a change here is
 * a change there, and of the format's version.
 */
#include <string.h>

#include "store.h"

/* Numbers of the format: never change them. */
enum {
    STATE_READY = 1,
    STATE_HELD = 2,
    STATE_OTHER = 3,
    STATE_DEAD = 4,

    FLAG_WAITING = 16,
    FLAG_COOLDOWN = 32,
    FLAG_THROTTLED = 64,
    FLAG_FAILS = 128,
    FLAG_BUCKET = 256,
};

/* Flags of the format in the core's. */
static const struct {
    unsigned record, core;
} flags[] = {
    {1, WQ__DIRTY},
    {2, WQ__BACKOFF},
    {4, WQ__COVERS_ADD},
    {8, WQ__DEBOUNCED},
    {FLAG_WAITING, WQ__WAITING},
    {FLAG_COOLDOWN, WQ__COOLDOWN},
};

/* ---- numbers -------------------------------------------------------------- */

void
wq__put_be(unsigned char *to, uint64_t n, size_t bytes)
{
    for (size_t i = bytes; i-- > 0; n >>= 8)
        to[i] = (unsigned char)n;
}

uint64_t
wq__get_be(const void *from, size_t bytes)
{
    const unsigned char *at = from;
    uint64_t             n = 0;

    for (size_t i = 0; i < bytes; i++)
        n = n << 8 | at[i];
    return n;
}

/* Bytes that are written or read one after the other. */
struct cursor {
    unsigned char       *to;
    const unsigned char *from, *end;
    bool                 is_short; /* read beyond the end */
};

static void
put(struct cursor *c, uint64_t n, size_t bytes)
{
    wq__put_be(c->to, n, bytes);
    c->to += bytes;
}

static uint64_t
get(struct cursor *c, size_t bytes)
{
    if ((size_t)(c->end - c->from) < bytes) {
        c->is_short = true;
        return 0;
    }
    const uint64_t n = wq__get_be(c->from, bytes);
    c->from += bytes;
    return n;
}

static int
get_priority(struct cursor *c)
{
    return (int)(int32_t)(uint32_t)get(c, 4);
}

static uint64_t
bits_of(double d)
{
    uint64_t bits;

    memcpy(&bits, &d, sizeof bits);
    return bits;
}

static double
double_of(uint64_t bits)
{
    double d;

    memcpy(&d, &bits, sizeof d);
    return d;
}

/* ---- writing -------------------------------------------------------------- */

static unsigned
flags_of(const struct wq__row *row)
{
    unsigned set = 0;

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (row->image.states & flags[i].core)
            set |= flags[i].record;
    if (row->image.throttled)
        set |= FLAG_THROTTLED;
    if (row->fails || row->expiries)
        set |= FLAG_FAILS;
    return row->has_bucket ? set | FLAG_BUCKET : set;
}

size_t
wq__record_pack(const struct wq__row *row, unsigned char *out)
{
    const struct wq__image *image = &row->image;
    const unsigned          set = flags_of(row);
    struct cursor           c = {.to = out};
    const bool              held = image->states & WQ__HELD;
    const bool runs = row->dead || image->states & (WQ__READY | WQ__DIRTY);

    put(&c,
        row->dead                   ? STATE_DEAD
        : image->states & WQ__READY ? STATE_READY
        : held                      ? STATE_HELD
                                    : STATE_OTHER,
        1);
    put(&c, set, 2);
    put(&c, runs ? (uint32_t)image->priority : 0, 4);
    put(&c, row->dead || image->states & WQ__READY ? (uint64_t)row->seq : 0, 7);
    put(&c, runs ? (uint64_t)image->since_ns : 0, 8);
    if (held) {
        put(&c, (uint32_t)image->held_priority, 4);
        put(&c, image->fence, 7);
        put(&c, (uint64_t)row->owner, 8);
        put(&c, (uint64_t)image->held_ns, 8);
    }
    if (set & (FLAG_WAITING | FLAG_COOLDOWN)) {
        put(&c, (uint64_t)image->at_ns, 8);
        put(&c, image->arrival, 7);
        put(&c, set & FLAG_WAITING ? (uint32_t)image->wait_priority : 0, 4);
    }
    if (set & FLAG_THROTTLED) {
        put(&c, (uint64_t)image->latest_ns, 8);
        put(&c, (uint64_t)image->next_cooldown_ns, 8);
        put(&c, (uint64_t)image->wait_cooldown_ns, 8);
        put(&c, (uint64_t)image->cooldown_until_ns, 8);
    }
    if (set & FLAG_FAILS) {
        put(&c, row->fails, 4);
        put(&c, (uint64_t)row->failed_ns, 8);
        put(&c, row->expiries, 4);
    }
    if (set & FLAG_BUCKET) {
        put(&c, bits_of(row->tokens), 8);
        put(&c, (uint64_t)row->tokens_ns, 8);
    }
    return (size_t)(c.to - out);
}

/* ---- reading -------------------------------------------------------------- */

static void
read_states(struct wq__row *row, unsigned state, unsigned set)
{
    row->dead = state == STATE_DEAD;
    row->image.states = state == STATE_READY  ? WQ__READY
                        : state == STATE_HELD ? WQ__HELD
                                              : 0;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (set & flags[i].record)
            row->image.states |= flags[i].core;
}

bool
wq__record_unpack(const void *data, size_t len, struct wq__row *row)
{
    struct wq__image *image = &row->image;
    struct cursor c = {.from = data, .end = (const unsigned char *)data + len};

    *row = (struct wq__row){.id = len != 0};
    if (!len)
        return true;
    const unsigned state = (unsigned)get(&c, 1);
    const unsigned set = (unsigned)get(&c, 2);
    read_states(row, state, set);
    image->priority = get_priority(&c);
    row->seq = (int64_t)get(&c, 7);
    image->since_ns = (int64_t)get(&c, 8);
    if (state == STATE_HELD) {
        image->held_priority = get_priority(&c);
        image->fence = get(&c, 7);
        row->owner = (int64_t)get(&c, 8);
        image->held_ns = (int64_t)get(&c, 8);
    }
    if (set & (FLAG_WAITING | FLAG_COOLDOWN)) {
        image->at_ns = (int64_t)get(&c, 8);
        image->arrival = get(&c, 7);
        image->wait_priority = get_priority(&c);
    }
    if (set & FLAG_THROTTLED) {
        image->throttled = true;
        image->latest_ns = (int64_t)get(&c, 8);
        image->next_cooldown_ns = (int64_t)get(&c, 8);
        image->wait_cooldown_ns = (int64_t)get(&c, 8);
        image->cooldown_until_ns = (int64_t)get(&c, 8);
    }
    if (set & FLAG_FAILS) {
        row->fails = (uint32_t)get(&c, 4);
        row->failed_ns = (int64_t)get(&c, 8);
        row->expiries = (uint32_t)get(&c, 4);
    }
    if (set & FLAG_BUCKET) {
        row->has_bucket = true;
        row->tokens = double_of(get(&c, 8));
        row->tokens_ns = (int64_t)get(&c, 8);
    }
    return !c.is_short && c.from == c.end && state >= STATE_READY &&
           state <= STATE_DEAD;
}

void
wq__record_pack_fill(const struct wq__fill *level, unsigned char out[16])
{
    wq__put_be(out, bits_of(level->tokens), 8);
    wq__put_be(out + 8, (uint64_t)level->last_ns, 8);
}

void
wq__record_unpack_fill(const unsigned char from[16], struct wq__fill *level)
{
    level->tokens = double_of(wq__get_be(from, 8));
    level->last_ns = (int64_t)wq__get_be(from + 8, 8);
}
