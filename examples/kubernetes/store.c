/* SPDX-License-Identifier: MIT */
/* store.c: what is the latest version of each object?
 *
 * A hash table under a lock: a JSON object of jansson. Its members are the
 * objects as compact text, because a parsed object takes several times as
 * much memory, and most objects are read rarely. A reader gets a copy of its own,
 * parsed outside the lock: it cannot see a change, nor make one.
 *
 * Cost: O(size of the object); store_each() and store_sweep() are O(objects).
 */
#include "store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct store {
    pthread_mutex_t lock;
    json_t         *objects; /* guarded by `lock`; values are strings */
};

void
store_destroy(struct store *store)
{
    if (!store)
        return;
    json_decref(store->objects);
    (void)pthread_mutex_destroy(&store->lock);
    free(store);
}

struct store *
store_create(void)
{
    struct store *const store = calloc(1, sizeof *store);

    if (!store)
        return NULL;
    store->objects = json_object();
    if (!store->objects || pthread_mutex_init(&store->lock, NULL)) {
        json_decref(store->objects);
        free(store);
        return NULL;
    }
    return store;
}

static const char *
metadata(const json_t *object, const char *field)
{
    const char *const text = json_string_value(
        json_object_get(json_object_get(object, "metadata"), field));
    return text ? text : "";
}

const char *
store_version(const json_t *object)
{
    return metadata(object, "resourceVersion");
}

bool
store_key(const json_t *object, char key[STORE_KEY_MAX])
{
    const char *const name = metadata(object, "name");
    const int         n = snprintf(key, STORE_KEY_MAX, "%s/%s",
                                   metadata(object, "namespace"), name);
    return name[0] && n > 0 && n < STORE_KEY_MAX;
}

/* begin: put */
enum store_change
store_put(struct store *store, const char *key, const json_t *object)
{
    char *const       text = json_dumps(object, JSON_COMPACT);
    enum store_change change = STORE_FAILED;

    if (!text)
        return change;
    (void)pthread_mutex_lock(&store->lock);
    const json_t *const old = json_object_get(store->objects, key);
    if (old && strcmp(json_string_value(old), text) == 0)
        change = STORE_UNCHANGED;
    else if (!json_object_set_new(store->objects, key, json_string(text)))
        change = STORE_CHANGED;
    (void)pthread_mutex_unlock(&store->lock);
    free(text);
    return change;
}
/* end: put */

enum store_change
store_remove(struct store *store, const char *key)
{
    (void)pthread_mutex_lock(&store->lock);
    const bool had = json_object_del(store->objects, key) == 0;
    (void)pthread_mutex_unlock(&store->lock);
    return had ? STORE_CHANGED : STORE_UNCHANGED;
}

/* begin: get */
bool
store_get(struct store *store, const char *key, json_t **out)
{
    char *copy = NULL;

    (void)pthread_mutex_lock(&store->lock);
    const json_t *const text = json_object_get(store->objects, key);
    if (text)
        copy = strdup(json_string_value(text));
    (void)pthread_mutex_unlock(&store->lock);

    *out = copy ? json_loads(copy, 0, NULL) : NULL;
    free(copy);
    return !text || *out;
}
/* end: get */

void
store_each(struct store *store, void (*each)(void *ctx, const char *key),
           void         *ctx)
{
    const char *key;
    json_t     *object;

    (void)pthread_mutex_lock(&store->lock);
    json_object_foreach(store->objects, key, object) each(ctx, key);
    (void)pthread_mutex_unlock(&store->lock);
}

/* begin: sweep */
void
store_sweep(struct store *store, const json_t              *seen,
            void (*gone)(void *ctx, const char *key), void *ctx)
{
    const char *key;
    json_t     *object;
    void       *next;

    (void)pthread_mutex_lock(&store->lock);
    json_object_foreach_safe(store->objects, next, key, object)
    {
        if (json_object_get(seen, key))
            continue;
        gone(ctx, key);
        (void)json_object_del(store->objects, key); /* frees the key */
    }
    (void)pthread_mutex_unlock(&store->lock);
}
/* end: sweep */

size_t
store_size(struct store *store)
{
    (void)pthread_mutex_lock(&store->lock);
    const size_t n = json_object_size(store->objects);
    (void)pthread_mutex_unlock(&store->lock);
    return n;
}
