/* SPDX-License-Identifier: MIT */
/* glib.c: what would a C programmer write today?
 *
 * A GAsyncQueue keeps the order and blocks; a GHashTable, under a mutex, keeps
 * the state of each key, so that it is READY once and HELD once.
 */
#include <glib.h>

#include "bench.h"

struct entry {
    bool ready; /* in the queue, or to be pushed at done */
    bool held;  /* by a worker */
    char key[]; /* with its NUL */
};

struct queue {
    GMutex       mutex;   /* guards the table and its entries */
    GHashTable  *entries; /* key to entry; owns the entries */
    GAsyncQueue *order;   /* of entries */
};

/* The last entry of the queue: a thread that pops it pushes it again for the
 * next thread, and ends. */
static struct entry end;

static void *
create(void)
{
    struct queue *q = g_new0(struct queue, 1);

    g_mutex_init(&q->mutex);
    q->entries = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    q->order = g_async_queue_new();
    return q;
}

static struct entry *
enter(struct queue *q, wq_key key)
{
    struct entry *e = g_malloc(sizeof *e + key.len + 1);

    e->ready = e->held = false;
    memcpy(e->key, key.data, key.len);
    e->key[key.len] = '\0';
    g_hash_table_insert(q->entries, e->key, e);
    return e;
}

static void
add(void *self, wq_key key)
{
    struct queue *q = self;

    g_mutex_lock(&q->mutex);
    struct entry *e = g_hash_table_lookup(q->entries, key.data);
    if (!e)
        e = enter(q, key);
    const bool push = !e->ready && !e->held;
    e->ready = true;
    g_mutex_unlock(&q->mutex);
    if (push)
        g_async_queue_push(q->order, e);
}

static bool
get(void *self, void **item)
{
    struct queue *q = self;
    struct entry *e = g_async_queue_pop(q->order);

    if (e == &end) {
        g_async_queue_push(q->order, e);
        return false;
    }
    g_mutex_lock(&q->mutex);
    e->ready = false;
    e->held = true;
    g_mutex_unlock(&q->mutex);
    *item = e;
    return true;
}

static void
done(void *self, void *item)
{
    struct queue *q = self;
    struct entry *e = item;

    g_mutex_lock(&q->mutex);
    e->held = false;
    const bool again = e->ready;
    if (!again)
        g_hash_table_remove(q->entries, e->key);
    g_mutex_unlock(&q->mutex);
    if (again)
        g_async_queue_push(q->order, e);
}

static wq_key
key(const void *item)
{
    return wq_str(((const struct entry *)item)->key);
}

static void
shutdown(void *self)
{
    struct queue *q = self;
    g_async_queue_push(q->order, &end);
}

static void
destroy(void *self)
{
    struct queue *q = self;

    g_async_queue_unref(q->order);
    g_hash_table_unref(q->entries);
    g_mutex_clear(&q->mutex);
    g_free(q);
}

const struct side bench_side = {
    .version = "GLib " G_STRINGIFY(GLIB_MAJOR_VERSION) "." G_STRINGIFY(
        GLIB_MINOR_VERSION) "." G_STRINGIFY(GLIB_MICRO_VERSION),
    SIDE_VERBS,
    .key = key,
    .shutdown = shutdown,
    .destroy = destroy,
};
