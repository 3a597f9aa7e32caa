/* SPDX-License-Identifier: MIT */
/* open.c: which shared queue, and how is it opened? See open.h. */
#include "queue/open.h"

#include <stdlib.h>

#ifdef WQ_HAVE_SQLITE
#include <wq/sqlite.h>
#endif
#ifdef WQ_HAVE_REDIS
#include <wq/redis.h>
#endif

#include "base/report.h"
#include "options/url.h"

static const char *
verb_of(const struct options *options)
{
    return verbs_table[options->verb].name;
}

#ifdef WQ_HAVE_REDIS
/* The verb that opens the queue, if it is one that shows what the server says of
 * itself: a worker, and those who ask how the queue is. The short verbs of a script
 * would repeat it. Else NULL. */
static const char *warned;

static void
on_warning(void *ctx, const char *text)
{
    (void)ctx;
    report("%s: warning: %s", warned, text);
}

static wq_err
open_redis(const char *url, const wq_config *config, wq_queue **out)
{
    const wq_redis_options *options =
        warned ? WQ_REDIS_OPTIONS(.on_warning = on_warning) : NULL;

    return wq_redis_open(url, options, config, out);
}
#endif

/* The command is one file to copy: it contains its backends. */
static void
register_backends(const struct options *options)
{
    (void)options;
#ifdef WQ_HAVE_SQLITE
    (void)wq_register_scheme("sqlite", wq_open_sqlite);
#endif
#ifdef WQ_HAVE_REDIS
    warned = options->verb == VERB_WORK || options->verb == VERB_STATUS
                 ? verb_of(options)
                 : NULL;
    (void)wq_register_scheme("redis", open_redis);
#endif
}

void
queue_refuse(const struct options *options, wq_err err)
{
    const char *why = wq_last_error();

    report("%s: cannot open %s: %s", verb_of(options),
           url_shown(options->queue), *why ? why : wq_strerror(err));
}

const char *
queue_error(wq_err err)
{
    const char *why = wq_last_error();

    return (err == WQ_EIO || err == WQ_EAWAY || err == WQ_EINVAL) && *why
               ? why
               : wq_strerror(err);
}

void
queue_fail(const struct options *options, const char *what, wq_err err)
{
    report("%s: cannot %s: %s", verb_of(options), what, queue_error(err));
}

bool
queue_must_exist(const struct options *options)
{
    return options->verb >= VERB_DONE;
}

bool
queue_open_for(const struct options *options, int holder,
               const wq_config *config, wq_queue **out)
{
    char *url = url_complete(options->queue, queue_must_exist(options), holder);

    if (!url) {
        wq_limiter_destroy(config->limiter);
        queue_fail(options, "open the queue", WQ_ENOMEM);
        return false;
    }
    register_backends(options);
    const wq_err err = wq_open(url, config, out);
    free(url);
    if (err)
        queue_refuse(options, err);
    return !err;
}

bool
queue_open(const struct options *options, const wq_config *config,
           wq_queue **out)
{
    return queue_open_for(options, 0, config, out);
}

void
queue_report(const struct options *options, const char *what, wq_key key,
             wq_err err)
{
    report("%s: cannot %s %s: %s", verb_of(options), what,
           report_key(key.data, key.len), queue_error(err));
}

/* A base of 0 is no delay; in the options of the limiter it would be the
 * default. */
wq_limiter *
queue_backoff(const struct backoff *how)
{
    if (how->base_ns == 0)
        return wq_limiter_fast_slow(0, 0, 0);
    return wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.base_ns = how->base_ns, .max_ns = how->max_ns,
                       .factor = how->factor, .jitter = WQ_JITTER_FULL));
}

unsigned
queue_retry_policy(const struct options *options)
{
    return options->retry_on_add ? 0 : WQ_RETRY_RESPECT;
}
