/* SPDX-License-Identifier: MIT */
/* shards.c: allocating and reading shards; see shards.h. */
#include "metrics/shards.h"

#include "core/mem.h"
#include "port/race.h"

#define SHARD_BYTES wq__mem_padded(sizeof(struct wq__shard), WQ__SHARD_ALIGN)

static void
clear(struct wq__shard *shard)
{
    for (int m = 0; m < WQ__MEASURES; m++) {
        for (unsigned i = 0; i < WQ__BUCKETS; i++)
            atomic_init(&shard->of[m].buckets[i], 0);
        atomic_init(&shard->of[m].sum_ns, 0);
    }
    shard->raw = NULL;
}

static void
free_shard(const wq_allocator *mem, struct wq__shard *shard)
{
    wq__race_enable_checking(shard, sizeof *shard);
    wq__mem_free(mem, shard->raw, SHARD_BYTES);
}

static struct wq__shard *
make_shard(const wq_allocator *mem)
{
    void *raw = wq__mem_alloc(mem, SHARD_BYTES);
    if (!raw)
        return NULL;

    struct wq__shard *shard = wq__mem_align(raw, WQ__SHARD_ALIGN);
    wq__race_disable_checking(shard, sizeof *shard);
    clear(shard);
    shard->raw = raw;
    return shard;
}

/* The shard of the thread with number `number`, which is the calling one. */
static struct wq__shard *
own_shard(struct wq__shards *s, unsigned number)
{
    struct wq__shard *own =
        atomic_load_explicit(&s->own[number], memory_order_relaxed);

    if (!own && (own = make_shard(s->mem)))
        /* Pairs with the loads in wq__shards_read(): it is cleared. */
        atomic_store_explicit(&s->own[number], own, memory_order_release);
    return own;
}

void
wq__shards_count_rarely(struct wq__shards *s, enum wq__measure what,
                        uint64_t ns)
{
    const unsigned    number = wq__thread_mark_take_number();
    struct wq__shard *own = number ? own_shard(s, number) : NULL;

    if (own)
        wq__histogram_own(&own->of[what], ns);
    else
        wq__histogram_shared(&s->shared.of[what], ns);
}

static void
read_shard(const struct wq__shard *shard, struct wq__durations *out)
{
    for (int m = 0; m < WQ__MEASURES; m++)
        wq__histogram_read(&shard->of[m], &out[m]);
}

void
wq__shards_read(const struct wq__shards *s, struct wq__durations *out)
{
    read_shard(&s->shared, out);
    for (unsigned number = 1; number <= WQ__THREAD_NUMBERS; number++) {
        const struct wq__shard *own =
            atomic_load_explicit(&s->own[number], memory_order_acquire);
        if (own)
            read_shard(own, out);
    }
}

void
wq__shards_init(struct wq__shards *s, const wq_allocator *mem)
{
    wq__race_disable_checking(s, sizeof *s);
    clear(&s->shared);
    for (unsigned number = 0; number <= WQ__THREAD_NUMBERS; number++)
        atomic_init(&s->own[number], NULL);
    s->mem = mem;
}

void
wq__shards_fini(struct wq__shards *s)
{
    for (unsigned number = 1; number <= WQ__THREAD_NUMBERS; number++) {
        struct wq__shard *own =
            atomic_load_explicit(&s->own[number], memory_order_relaxed);
        if (own)
            free_shard(s->mem, own);
    }
    wq__race_enable_checking(s, sizeof *s);
}
