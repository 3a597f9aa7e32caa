/* SPDX-License-Identifier: MIT */
/* controller.c: what is done about a Widget that has changed?
 *
 *     API server ==list, watch==> reflector ==> store
 *         ^                           |           | the latest version
 *         |                       key |           v
 *         +==status=== workers <== queue      (a worker)
 *
 * An event only says "this object has changed". The queue turns many events
 * into few runs, and never hands a key to two workers at once. A worker reads
 * the latest version from the store, compares, and writes. It keeps nothing:
 * whatever it missed, the next run finds out.
 */
#include "controller.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wq/limiter.h>
#include <wq/workers.h>

#include "reflector.h"
#include "store.h"

#define API "/apis/wq.example.com/v1"

/* Objects that nobody has touched wait for those that somebody has. */
enum { RESYNC_PRIORITY = -10 };

struct controller {
    struct controller_config config;
    char                     path[sizeof API "/namespaces/" + 256];
    struct store            *store;
    wq_queue                *queue;
    wq_workers              *pool;
    struct reflector        *reflector;
    pthread_key_t            client; /* each worker's connection */
    bool                     has_client_key;
    atomic_bool              stuck; /* a handler has not returned for long */
};

/* ---- events ------------------------------------------------------------- */

/* begin: events */
static void
on_change(void *ctx, const char *key)
{
    struct controller *const c = ctx;
    const wq_err             err = wq_add_str(c->queue, key);

    if (err) /* out of memory: the next resync repeats it */
        (void)fprintf(stderr, "widgets: %s: %s\n", key, wq_strerror(err));
}

static void
add_quietly(void *ctx, const char *key)
{
    struct controller *const c = ctx;

    (void)!wq_add_one(c->queue, wq_str(key),
                      WQ_ADD(.priority = RESYNC_PRIORITY));
}

void
controller_resync(struct controller *c)
{
    store_each(c->store, add_quietly, c);
}
/* end: events */

/* ---- reconcile ---------------------------------------------------------- */

/* The worker's own connection; NULL: out of memory. */
static struct api_client *
own_client(struct controller *c)
{
    struct api_client *client = pthread_getspecific(c->client);

    if (!client && (client = api_client_create(&c->config.api)) &&
        pthread_setspecific(c->client, client)) {
        api_client_destroy(client);
        return NULL;
    }
    return client;
}

static void
destroy_client(void *client)
{
    api_client_destroy(client);
}

/* begin: answers */
/* What the answer to a write means for the key. */
static wq_result
judge(struct controller *c, const char *key, const struct api_answer *answer)
{
    const long status = answer->status;

    if (status >= 200 && status < 300)
        return wq_result_done();
    if (status == 404)
        return wq_result_done(); /* deleted: forget it */
    if (status == 409)
        return wq_result_retry();   /* the store will have the newer version */
    if (answer->retry_after_ms > 0) /* 429, 503: when the server says */
        return wq_result_after(WQ_MS(answer->retry_after_ms));
    if (wq_num_requeues(c->queue, wq_str(key)) == 0) /* the first in a row */
        (void)fprintf(stderr, "widgets: %s: status %ld %s\n", key, status,
                      answer->error);
    return wq_result_retry();
}
/* end: answers */

/* begin: write */
/* Write status.size. The resourceVersion makes the server refuse the write
 * (409) if the object has changed since we read it. The status subresource
 * ignores everything but the status and the identity. */
static wq_result
write_status(struct controller *c, const char *key, const json_t *widget,
             json_int_t size)
{
    const json_t *const meta = json_object_get(widget, "metadata");
    const char *const   name = json_string_value(json_object_get(meta, "name"));
    const char *const namespace =
        json_string_value(json_object_get(meta, "namespace"));
    struct api_client *const client = own_client(c);
    char                     path[sizeof c->path + STORE_KEY_MAX + 64];
    wq_result                result = wq_result_retry();

    json_t *const object = json_pack(
        "{s:O, s:O, s:{s:s, s:s, s:O, s:s}, s:{s:I}}", "apiVersion",
        json_object_get(widget, "apiVersion"), "kind",
        json_object_get(widget, "kind"), "metadata", "name", name, "namespace",
        namespace, "uid", json_object_get(meta, "uid"), "resourceVersion",
        store_version(widget), "status", "size", size);
    char *const body = object ? json_dumps(object, JSON_COMPACT) : NULL;

    if (client && body) {
        (void)snprintf(path, sizeof path,
                       API "/namespaces/%s/widgets/%s/status", namespace, name);
        const struct api_answer answer = api_call(
            client,
            &(struct api_request){.method = "PUT", .path = path, .body = body});
        result = judge(c, key, &answer);
    }
    free(body);
    json_decref(object);
    return result;
}
/* end: write */

/* begin: reconcile */
/* Make status.size what spec.size is. Called by the workers, for one key at a
 * time, and never for the same key by two of them. */
static wq_result
reconcile(void *ctx, const wq_item *item)
{
    struct controller *const c = ctx;
    const char *const        key = item->key.data;
    wq_result                result = wq_result_done();
    json_t                  *widget;

    if (!store_get(c->store, key, &widget))
        return wq_result_retry(); /* out of memory */
    if (!widget)
        return result; /* deleted: nothing is left to do */
    const json_t *const want =
        json_object_get(json_object_get(widget, "spec"), "size");
    const json_t *const have =
        json_object_get(json_object_get(widget, "status"), "size");
    if (json_is_integer(want) && !json_equal(want, have))
        result = write_status(c, key, widget, json_integer_value(want));
    json_decref(widget);
    return result;
}
/* end: reconcile */

static void
on_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    (void)ctx;
    (void)fprintf(stderr, "widgets: %.*s: left undone after %u retries: %s\n",
                  (int)key.len, (const char *)key.data, retries,
                  wq_strerror(why));
}

static void
on_stuck(void *ctx, const wq_item *item, int64_t running_ns)
{
    struct controller *const c = ctx;

    (void)fprintf(stderr, "widgets: %s: running for %" PRId64 " s\n",
                  (const char *)item->key.data, running_ns / WQ_SECONDS(1));
    c->stuck = true;
}

/* ---- life --------------------------------------------------------------- */

/* begin: start */
static bool
start(struct controller *c)
{
    const struct controller_config *const config = &c->config;

    if (wq_create(
            WQ_CONFIG(.name = "widgets",
                      .metrics = wq_registry_sink(config->metrics),
                      .limiter = wq_limiter_exponential_with(WQ_EXPONENTIAL(
                              .base_ns = WQ_MS(config->tuning.retry_ms),
                              .max_ns = WQ_MS(config->tuning.pause_ms),
                              .jitter = WQ_JITTER_EQUAL))),
            &c->queue) ||
        wq_workers_start(
            c->queue,
            WQ_WORKERS(.threads = config->workers, .name = "widgets", .ctx = c,
                       .handler = reconcile, .on_drop = on_drop,
                       .on_stuck = on_stuck,
                       .item_deadline_ns = WQ_MS(4 * config->api.request_ms)),
            &c->pool)) {
        (void)fprintf(stderr, "widgets: %s\n", wq_last_error());
        return false;
    }
    c->reflector = reflector_start(&(struct reflector_config){
        .api = &config->api,
        .path = c->path,
        .store = c->store,
        .tuning = config->tuning,
        .on_change = on_change,
        .ctx = c,
    });
    return c->reflector != NULL;
}
/* end: start */

struct controller *
controller_start(const struct controller_config *config)
{
    struct controller *const c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->config = *config;
    if (config->namespace)
        (void)snprintf(c->path, sizeof c->path, API "/namespaces/%s/widgets",
                       config->namespace);
    else
        (void)snprintf(c->path, sizeof c->path, API "/widgets");
    c->has_client_key = pthread_key_create(&c->client, destroy_client) == 0;
    c->store = store_create();
    if (!c->has_client_key || !c->store || !start(c)) {
        controller_destroy(c);
        return NULL;
    }
    return c;
}

/* begin: drain */
bool
controller_drain(struct controller *c, int64_t limit_ms)
{
    reflector_stop(c->reflector); /* no new keys */
    return wq_workers_drain(c->pool, WQ_MS(limit_ms)) == WQ_OK;
}

void
controller_destroy(struct controller *c)
{
    if (!c)
        return;
    reflector_destroy(c->reflector);
    wq_workers_destroy(c->pool);
    wq_destroy(c->queue);
    store_destroy(c->store);
    if (c->has_client_key)
        (void)pthread_key_delete(c->client);
    free(c);
}
/* end: drain */

/* ---- for people --------------------------------------------------------- */

const char *
controller_sick(const struct controller *c)
{
    return c->stuck ? "a handler does not return" : NULL;
}

bool
controller_ready(const struct controller *c)
{
    return reflector_read_stats(c->reflector).synced;
}

int
controller_metrics(const struct controller *c, char *text, size_t size)
{
    const struct reflector_stats stats = reflector_read_stats(c->reflector);

    return snprintf(text, size,
                    "# TYPE widgets_objects gauge\n"
                    "widgets_objects %zu\n"
                    "# TYPE widgets_lists_total counter\n"
                    "widgets_lists_total %" PRIu64 "\n"
                    "# TYPE widgets_watches_total counter\n"
                    "widgets_watches_total %" PRIu64 "\n"
                    "# TYPE widgets_watch_events_total counter\n"
                    "widgets_watch_events_total %" PRIu64 "\n"
                    "# TYPE widgets_failures_total counter\n"
                    "widgets_failures_total %" PRIu64 "\n",
                    store_size(c->store), stats.lists, stats.watches,
                    stats.events, stats.failures);
}
