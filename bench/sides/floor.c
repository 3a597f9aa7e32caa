/* SPDX-License-Identifier: MIT */
/* floor.c: what does a queue cost at least?
 *
 * It hashes and copies the same bytes as a queue that copies its keys, into one
 * array, and takes and releases one lock for each add, get and done. It looks
 * up no key, merges none and wakes no thread: not a queue, but a lower bound
 * for one. One thread only.
 */
#include <pthread.h>
#include <stdlib.h>

#include "bench.h"
#include "core/core.h"

struct slot {
    uint32_t hash; /* of the key below */
    uint32_t len;
    char     key[KEY_LEN + 1];
};

struct line {
    pthread_mutex_t mutex; /* guards all below, although there is one thread */
    struct wq__core core;  /* for its hash only */
    struct slot    *slots;
    size_t          mask;       /* number of slots - 1 */
    size_t          head, tail; /* keys taken and added so far */
};

static void *
create(void)
{
    const struct wq__hash_key secret = {1, 2, UINT32_MAX};
    struct line              *l = calloc(1, sizeof *l);

    must(l && !pthread_mutex_init(&l->mutex, NULL), "floor create");
    wq__core_init(&l->core, secret, NULL, NULL);
    l->mask = 1023;
    l->slots = malloc((l->mask + 1) * sizeof *l->slots);
    must(l->slots != NULL, "malloc");
    return l;
}

/* Slot numbers stay; the mask covers one more bit. */
static void
grow(struct line *l)
{
    const size_t had = l->mask + 1;
    struct slot *slots = malloc(2 * had * sizeof *slots);

    must(slots != NULL, "malloc");
    for (size_t i = l->head; i != l->tail; i++)
        slots[i & (2 * had - 1)] = l->slots[i & l->mask];
    free(l->slots);
    l->slots = slots;
    l->mask = 2 * had - 1;
}

static void
add(void *q, wq_key key)
{
    struct line   *l = q;
    const uint32_t hash = wq__core_hash(&l->core, key);

    pthread_mutex_lock(&l->mutex);
    if (l->tail - l->head > l->mask)
        grow(l);
    struct slot *s = &l->slots[l->tail++ & l->mask];
    s->hash = hash;
    s->len = (uint32_t)key.len;
    memcpy(s->key, key.data, key.len);
    pthread_mutex_unlock(&l->mutex);
}

static bool
get(void *q, void **item)
{
    struct line *l = q;

    pthread_mutex_lock(&l->mutex);
    const bool some = l->head != l->tail;
    *item = &l->slots[l->head & l->mask];
    pthread_mutex_unlock(&l->mutex);
    return some;
}

static void
done(void *q, void *item)
{
    struct line *l = q;
    struct slot *s = item;

    pthread_mutex_lock(&l->mutex);
    s->len = 0;
    l->head++;
    pthread_mutex_unlock(&l->mutex);
}

static void
destroy(void *q)
{
    struct line *l = q;

    wq__core_fini(&l->core);
    pthread_mutex_destroy(&l->mutex);
    free(l->slots);
    free(l);
}

const struct side bench_side = {
    .only = " cycle fill-1k fill-100k fill-1m ",
    SIDE_VERBS,
    .destroy = destroy,
};
