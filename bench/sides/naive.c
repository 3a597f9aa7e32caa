/* SPDX-License-Identifier: MIT */
/* naive.c: the obvious version in C: the same core under one mutex, with one
 * condition variable that every add signals. */
#include <pthread.h>
#include <stdlib.h>

#include "bench.h"
#include "core/core.h"

struct naive {
    pthread_mutex_t mutex;
    pthread_cond_t  cond;
    struct wq__core core;
};

static void *
create(void)
{
    const struct wq__hash_key secret = {1, 2, UINT32_MAX};
    struct naive             *n = malloc(sizeof *n);

    must(n && !pthread_mutex_init(&n->mutex, NULL) &&
             !pthread_cond_init(&n->cond, NULL),
         "naive create");
    wq__core_init(&n->core, secret, NULL, NULL);
    return n;
}

static void
add(void *q, wq_key key)
{
    struct naive  *n = q;
    wq_added       what;
    const uint32_t hash = wq__core_hash(&n->core, key);

    pthread_mutex_lock(&n->mutex);
    must(wq__core_add(&n->core, key, hash, 0, &what) == WQ_OK, "naive add");
    pthread_cond_signal(&n->cond);
    pthread_mutex_unlock(&n->mutex);
}

static bool
get(void *q, void **item)
{
    struct naive *n = q;
    wq_item      *got = NULL;

    pthread_mutex_lock(&n->mutex);
    while (wq__core_len(&n->core) == 0 && !n->core.shutting_down)
        pthread_cond_wait(&n->cond, &n->mutex);
    const wq_err err = wq__core_get(&n->core, 0, &got);
    pthread_mutex_unlock(&n->mutex);
    must(err == WQ_OK || err == WQ_ENOTFOUND, "naive get");
    *item = got;
    return err == WQ_OK;
}

static void
done(void *q, void *item)
{
    struct naive *n = q;

    pthread_mutex_lock(&n->mutex);
    must(wq__core_done(&n->core, item, 0, NULL) == WQ_OK, "naive done");
    pthread_mutex_unlock(&n->mutex);
}

static wq_key
key(const void *item)
{
    return ((const wq_item *)item)->key;
}

static void
shutdown(void *q)
{
    struct naive *n = q;

    pthread_mutex_lock(&n->mutex);
    wq__core_shut_down(&n->core);
    pthread_cond_broadcast(&n->cond);
    pthread_mutex_unlock(&n->mutex);
}

static void
destroy(void *q)
{
    struct naive *n = q;

    wq__core_fini(&n->core);
    pthread_cond_destroy(&n->cond);
    pthread_mutex_destroy(&n->mutex);
    free(n);
}

const struct side bench_side = {
    SIDE_VERBS,
    .key = key,
    .shutdown = shutdown,
    .destroy = destroy,
};
