/* SPDX-License-Identifier: MIT */
/* failures.c: how often has this key failed? See failures.h. */
#include "limit/failures.h"

#include "core/span.h"

/* The value of a key. Without a time to live it is `count` alone. */
struct entry {
    uint32_t count;      /* at least 1; stays at UINT32_MAX */
    int64_t  touched_ns; /* the last add */
};

/* How many expired keys an add removes: more than it can add, so that they
 * become fewer. */
enum { DROPS = 2 };

void
wq__failures_init(struct wq__failures *f, const wq_allocator *mem,
                  struct wq__hash_key secret, size_t max_keys, int64_t ttl_ns)
{
    const bool     ordered = max_keys > 0 || ttl_ns > 0;
    const uint32_t bytes =
        (uint32_t)(ttl_ns > 0 ? sizeof(struct entry) : sizeof(uint32_t));

    *f = (struct wq__failures){.max_keys = max_keys, .ttl_ns = ttl_ns};
    wq__lock_init(&f->lock);
    wq__table_init(&f->keys, mem, secret, bytes, ordered);
}

void
wq__failures_fini(struct wq__failures *f)
{
    wq__table_fini(&f->keys);
    wq__lock_fini(&f->lock);
}

static uint32_t *
count_of(const struct wq__failures *f, wq__ref entry)
{
    return wq__table_value(&f->keys, entry);
}

static bool
has_expired(const struct wq__failures *f, wq__ref entry, int64_t now)
{
    const struct entry *e = wq__table_value(&f->keys, entry);
    return wq__span_sub(now, e->touched_ns) >= f->ttl_ns;
}

static void
drop_expired(struct wq__failures *f, int64_t now)
{
    for (int i = 0;
         i < DROPS && f->keys.oldest && has_expired(f, f->keys.oldest, now);
         i++)
        wq__table_drop_oldest(&f->keys);
}

/* `entry` is used at `now`. */
static void
touch(struct wq__failures *f, wq__ref entry, int64_t now)
{
    if (f->keys.links_at)
        wq__table_touch(&f->keys, entry);
    if (f->ttl_ns) {
        struct entry *e = wq__table_value(&f->keys, entry);
        e->touched_ns = now;
    }
}

/* The entry of `key`, unless it has expired. */
static wq__ref
find(const struct wq__failures *f, wq_key key, uint32_t hash, int64_t now)
{
    const wq__ref entry = wq__table_find(&f->keys, key, hash);
    return entry && f->ttl_ns && has_expired(f, entry, now) ? 0 : entry;
}

/* The time, if keys expire. */
static int64_t
time_of(const struct wq__failures *f)
{
    return f->ttl_ns ? wq__timeline_now(&f->time) : 0;
}

static bool
add_locked(struct wq__failures *f, wq_key key, uint32_t hash, uint32_t *before)
{
    const int64_t now = time_of(f);

    if (f->ttl_ns)
        drop_expired(f, now);
    const wq__ref entry = wq__table_find_or_insert(&f->keys, key, hash);
    if (!entry)
        return false;
    if (f->ttl_ns && has_expired(f, entry, now))
        *count_of(f, entry) = 0; /* as a new one's is */

    touch(f, entry, now);
    uint32_t *count = count_of(f, entry);
    *before = *count;
    if (*count < UINT32_MAX)
        ++*count;
    if (f->max_keys && f->keys.len > f->max_keys)
        wq__table_drop_oldest(&f->keys);
    return true;
}

bool
wq__failures_add(struct wq__failures *f, wq_key key, uint32_t *before)
{
    const uint32_t hash = wq__table_hash(&f->keys, key);

    wq__lock_take(&f->lock);
    const bool added = add_locked(f, key, hash, before);
    wq__lock_release(&f->lock);
    return added;
}

/* At 0 the key is forgotten. */
void
wq__failures_undo(struct wq__failures *f, wq_key key)
{
    const uint32_t hash = wq__table_hash(&f->keys, key);

    wq__lock_take(&f->lock);
    const wq__ref entry = wq__table_find(&f->keys, key, hash);
    if (entry && --*count_of(f, entry) == 0)
        wq__table_remove(&f->keys, entry, hash);
    wq__lock_release(&f->lock);
}

void
wq__failures_forget(struct wq__failures *f, wq_key key)
{
    const uint32_t hash = wq__table_hash(&f->keys, key);

    wq__lock_take(&f->lock);
    wq__table_forget(&f->keys, key, hash);
    wq__lock_release(&f->lock);
}

unsigned
wq__failures_count(struct wq__failures *f, wq_key key)
{
    const uint32_t hash = wq__table_hash(&f->keys, key);

    wq__lock_take(&f->lock);
    const wq__ref  entry = find(f, key, hash, time_of(f));
    const unsigned count = entry ? *count_of(f, entry) : 0;
    wq__lock_release(&f->lock);
    return count;
}

void
wq__failures_set_clock(struct wq__failures *f, wq_clock *clock)
{
    if (!f->ttl_ns)
        return; /* its keys do not expire */
    wq__lock_take(&f->lock);
    wq__timeline_follow(&f->time, clock);
    wq__lock_release(&f->lock);
}
