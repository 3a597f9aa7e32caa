/* SPDX-License-Identifier: MIT */
/* reflector.h: keeps a store equal to what the API server has. */
#ifndef REFLECTOR_H
#define REFLECTOR_H

#include <stdint.h>

#include "api.h"
#include "store.h"

/* How it asks the server. */
struct reflector_tuning {
    unsigned page;       /* objects of a page of a list */
    int64_t  watch_ms;   /* how long the server may keep a watch open */
    int64_t  silence_ms; /* a watch without a byte for so long is dead */
    int64_t  retry_ms;   /* the first pause after a failure */
    int64_t  pause_ms;   /* the longest one */
};

struct reflector_config {
    const struct api_config *api;
    const char              *path;  /* of the collection: "/apis/..." */
    struct store            *store; /* only the reflector writes to it */
    struct reflector_tuning  tuning;
    /* The object of `key` has changed or is gone. Must not call the store. */
    void (*on_change)(void *ctx, const char *key);
    void *ctx;
};

struct reflector; /* a thread */

/* Start it. NULL: out of memory, or no thread. Copies the config. */
struct reflector *reflector_start(const struct reflector_config *config);
/* End the thread at once. A second call is harmless; NULL is allowed. */
void reflector_stop(struct reflector *reflector);
void reflector_destroy(struct reflector *reflector);

struct reflector_stats {
    uint64_t lists, watches, events, failures; /* since the start */
    bool     synced; /* the first list is complete: informers' HasSynced */
};
struct reflector_stats reflector_read_stats(const struct reflector *reflector);

#endif
