/* SPDX-License-Identifier: MIT */
/* reflector.c: how does a store stay equal to what the API server has?
 *
 *                    +------+  all pages   +-------+
 *     start -------> | LIST | -----------> | WATCH | --+ the watch ended:
 *                    +------+              +-------+ <-+ from the last version
 *                        ^   410 Gone          |
 *                        +---------------------+
 *
 * The list says what there is, and its resourceVersion says when that was; the
 * watch reports every change after it. A watch ends often: the server's time
 * limit, a restart, a network that drops. Then it goes on after the last event
 * that was read whole. If the server does not remember that version any more
 * (410 Gone), the list begins again; what was deleted meanwhile is in the
 * store, but not in the list.
 *
 * Every failure is followed by a pause that doubles, with jitter, so that a
 * server that comes back is not met by all its clients at once.
 */
#include "reflector.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wq/limiter.h>

/* A watch that ends sooner, without an event, counts as a failure. */
enum { SHORT_MS = 1000 };

/* What the thread does next. */
enum { LIST, WATCH };

struct reflector {
    struct reflector_config config;
    struct api_client      *client;
    wq_limiter             *backoff; /* one key: the server */
    pthread_t               thread;
    bool                    running; /* `thread` is to be joined */
    char version[64]; /* resourceVersion of the last event, or of the list */
    bool must_list;   /* the server said that this version is gone */
    /* Written by the thread, read by any: numbers for people. */
    _Atomic uint64_t lists, watches, events, failures;
    atomic_bool      synced; /* the store had all objects once */
};

static void
set_version(struct reflector *r, const json_t *object)
{
    (void)snprintf(r->version, sizeof r->version, "%s", store_version(object));
}

/* ---- failures ----------------------------------------------------------- */

/* begin: pause */
/* Report a failure, and sleep: as long as the server asks for, or as the
 * backoff says. */
static void
pause_after(struct reflector *r, const char *what,
            const struct api_answer *answer)
{
    const int64_t wait_ms =
        wq_limiter_when(r->backoff, wq_str("server")) / WQ_MS(1);

    if (api_client_stopped(r->client))
        return;
    r->failures++;
    (void)fprintf(stderr, "widgets: %s: status %ld %s\n", what, answer->status,
                  answer->error);
    api_sleep(r->client, answer->retry_after_ms > wait_ms
                             ? answer->retry_after_ms
                             : wait_ms);
}
/* end: pause */

static void
forget_failures(struct reflector *r)
{
    wq_limiter_forget(r->backoff, wq_str("server"));
}

/* ---- objects ------------------------------------------------------------ */

/* Put an object of a list or an event into the store. False: out of memory;
 * only a list shows this version again. */
static bool
keep(struct reflector *r, const char *key, json_t *object)
{
    /* Large, and only for servers: who set which field. */
    (void)json_object_del(json_object_get(object, "metadata"), "managedFields");
    switch (store_put(r->config.store, key, object)) {
    case STORE_CHANGED:
        r->config.on_change(r->config.ctx, key);
        break;
    case STORE_UNCHANGED:
        break;
    case STORE_FAILED:
        r->must_list = true;
        break;
    }
    return !r->must_list;
}

/* ---- list --------------------------------------------------------------- */

/* Read one page of a list: put its objects into the store, and their keys into
 * `seen`. False: it is no list, or out of memory. */
static bool
take_page(struct reflector *r, const json_t *page, json_t *seen)
{
    const json_t *const items = json_object_get(page, "items");
    char                key[STORE_KEY_MAX];
    size_t              i;
    json_t             *object;

    if (!json_is_array(items) || !*store_version(page))
        return false;
    json_array_foreach(items, i, object)
    {
        if (!store_key(object, key) ||
            json_object_set_new(seen, key, json_true()) ||
            !keep(r, key, object))
            return false;
    }
    return true;
}

/* begin: list */
/* Ask for one page. `token` is the "continue" of the page before, or "". */
static struct api_answer
get_page(struct reflector *r, const char *token)
{
    char       *escaped = curl_easy_escape(NULL, token, 0);
    char        path[3072];
    const char *more = escaped && *token ? "&continue=" : "";

    (void)snprintf(path, sizeof path, "%s?limit=%u%s%s", r->config.path,
                   r->config.tuning.page, more, escaped ? escaped : "");
    curl_free(escaped);
    return api_call(r->client, &(struct api_request){.path = path});
}

/* List all pages. On success the store has what the list has, and nothing
 * else. */
static int
list(struct reflector *r)
{
    json_t           *page = NULL, *seen = json_object();
    const char       *token = "";
    struct api_answer answer;

    r->lists++;
    r->must_list = false;
    do {
        answer = get_page(r, token);
        json_decref(page);
        page = answer.status == 200
                   ? json_loadb(answer.body, answer.len, 0, NULL)
                   : NULL;
        if (!page || !take_page(r, page, seen)) {
            if (answer.status == 200)
                answer = (struct api_answer){.error = "the answer is no list"};
            pause_after(r, "list", &answer);
            json_decref(page);
            json_decref(seen);
            return LIST; /* a page that is gone, too: from the first again */
        }
        token = json_string_value(
            json_object_get(json_object_get(page, "metadata"), "continue"));
    } while (token && *token);

    set_version(r, page);
    store_sweep(r->config.store, seen, r->config.on_change, r->config.ctx);
    json_decref(page);
    json_decref(seen);
    r->synced = true;
    return WATCH;
}
/* end: list */

/* ---- watch -------------------------------------------------------------- */

/* begin: newer */
/* Is `a` newer than `b`? Resource versions are whole numbers without a limit;
 * of two with as many digits, the order of strings is the order of numbers. */
static bool
is_newer(const char *a, const char *b)
{
    const size_t m = strlen(a), n = strlen(b);

    return m != n ? m > n : strcmp(a, b) > 0;
}
/* end: newer */

/* begin: event */
/* Take one event. Within a watch versions grow: an event that is not newer than
 * the last one was sent twice. Returns NULL, or why the watch must end. */
static const char *
take_event(struct reflector *r, const char *type, json_t *object)
{
    char key[STORE_KEY_MAX];

    if (strcmp(type, "ERROR") == 0) {
        const json_int_t code =
            json_integer_value(json_object_get(object, "code"));
        r->must_list = code == 410;
        return r->must_list ? "410 Gone" : "the server reports an error";
    }
    if (!is_newer(store_version(object), r->version))
        return NULL;
    if (strcmp(type, "BOOKMARK") != 0) {
        if (!store_key(object, key))
            return "an object has no name";
        if (strcmp(type, "DELETED") == 0) {
            if (store_remove(r->config.store, key) == STORE_CHANGED)
                r->config.on_change(r->config.ctx, key);
        } else if (!keep(r, key, object)) {
            return "out of memory";
        }
    }
    set_version(r, object); /* from now on a new watch begins after it */
    return NULL;
}

/* Called with each line of the watch: {"type": ..., "object": ...}. */
static const char *
on_line(void *ctx, const char *line, size_t len)
{
    struct reflector *const r = ctx;
    json_t *const           event = json_loadb(line, len, 0, NULL);
    const char *const type = json_string_value(json_object_get(event, "type"));
    const char *const why =
        type ? take_event(r, type, json_object_get(event, "object"))
             : "an event cannot be read";

    if (!why) {
        r->events++;
        forget_failures(r);
    }
    json_decref(event);
    return why;
}
/* end: event */

/* begin: watch */
/* Watch until the watch ends, for whatever reason. */
static int
watch(struct reflector *r)
{
    const uint64_t events = r->events;
    const int64_t  begin_ms = api_now_ms();
    /* Not all clients at the same time. */
    const int64_t limit_ms =
        r->config.tuning.watch_ms + rand() % r->config.tuning.watch_ms;
    char path[1024];

    r->watches++;
    (void)snprintf(path, sizeof path,
                   "%s?watch=1&allowWatchBookmarks=true&resourceVersion=%s"
                   "&timeoutSeconds=%lld",
                   r->config.path, r->version, (long long)limit_ms / 1000 + 1);
    struct api_answer answer = api_call(
        r->client, &(struct api_request){
                       .path = path,
                       .on_line = on_line,
                       .ctx = r,
                       .total_ms = limit_ms + 1000 + r->config.api->request_ms,
                       .silence_ms = r->config.tuning.silence_ms});

    if (answer.status == 200 &&
        (r->events != events || api_now_ms() - begin_ms >= SHORT_MS)) {
        forget_failures(r);
        return WATCH; /* the server's time limit */
    }
    pause_after(r, "watch", &answer);
    /* 410: the version is too old. Others: what we asked for is wrong, for
     * example a version from the future, after the server's data were
     * restored. */
    const bool refused =
        answer.status >= 400 && answer.status < 500 && answer.status != 429;
    return r->must_list || refused ? LIST : WATCH;
}
/* end: watch */

static void *
run(void *arg)
{
    struct reflector *const r = arg;

    for (int state = LIST; !api_client_stopped(r->client);)
        state = state == LIST ? list(r) : watch(r);
    return NULL;
}

/* ---- a reflector -------------------------------------------------------- */

struct reflector *
reflector_start(const struct reflector_config *config)
{
    struct reflector *const r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->config = *config;
    r->client = api_client_create(config->api);
    r->backoff = wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.base_ns = WQ_MS(config->tuning.retry_ms),
                       .max_ns = WQ_MS(config->tuning.pause_ms),
                       .jitter = WQ_JITTER_EQUAL));
    if (!r->client || wq_limiter_error(r->backoff) ||
        pthread_create(&r->thread, NULL, run, r)) {
        reflector_destroy(r);
        return NULL;
    }
    r->running = true;
    return r;
}

void
reflector_stop(struct reflector *r)
{
    if (!r || !r->running)
        return;
    api_client_stop(r->client);
    (void)pthread_join(r->thread, NULL);
    r->running = false;
}

void
reflector_destroy(struct reflector *r)
{
    if (!r)
        return;
    reflector_stop(r);
    api_client_destroy(r->client);
    wq_limiter_destroy(r->backoff);
    free(r);
}

struct reflector_stats
reflector_read_stats(const struct reflector *r)
{
    return (struct reflector_stats){.lists = r->lists,
                                    .watches = r->watches,
                                    .events = r->events,
                                    .failures = r->failures,
                                    .synced = r->synced};
}
