/* SPDX-License-Identifier: MIT */
/* store.h: the latest objects, by "namespace/name". */
#ifndef STORE_H
#define STORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* A store. All threads may use it at the same time. */
struct store;

/* NULL: out of memory. */
struct store *store_create(void);
void          store_destroy(struct store *store);

/* The longest "namespace/name": 63 and 253 bytes, by Kubernetes' rules. */
enum { STORE_KEY_MAX = 63 + 1 + 253 + 1 };

/* Write the key of `object`. False: it has no name, or one that is too long. */
bool store_key(const json_t *object, char key[STORE_KEY_MAX]);
/* Its resourceVersion, also of a list; "" if it has none. */
const char *store_version(const json_t *object);

/* What a change did to the store. */
enum store_change {
    STORE_CHANGED,   /* the object is new, different or gone: work on it */
    STORE_UNCHANGED, /* the store had the same object, or none to remove */
    STORE_FAILED     /* out of memory */
};

/* Keep a copy of this version of an object instead of any other. */
enum store_change store_put(struct store *store, const char *key,
                            const json_t *object);
enum store_change store_remove(struct store *store, const char *key);

/* Set *out to a copy of the object, which the caller passes to json_decref();
 * to NULL if there is none. False: out of memory. */
bool store_get(struct store *store, const char *key, json_t **out);

/* Call each() with all keys. It must not call the store. */
void store_each(struct store *store, void (*each)(void *ctx, const char *key),
                void         *ctx);
/* Remove all objects whose key is not in the JSON object `seen`, and call
 * gone() with each of these keys. gone() must not call the store. */
void   store_sweep(struct store *store, const json_t              *seen,
                   void (*gone)(void *ctx, const char *key), void *ctx);
size_t store_size(struct store *store);

#endif
