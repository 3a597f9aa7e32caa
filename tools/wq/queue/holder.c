/* SPDX-License-Identifier: MIT */
/* holder.c: how is a key held for another process? See holder.h. */
#include "queue/holder.h"

#include <unistd.h>

#include <wq/limiter.h>
#ifdef WQ_HAVE_SQLITE
#include <wq/sqlite.h>
#endif
#ifdef WQ_HAVE_REDIS
#include <wq/redis.h>
#endif

#include "base/report.h"
#include "options/url.h"
#include "queue/keeper.h"
#include "queue/open.h"

int
holder_of(const struct options *options)
{
    return options->holder ? options->holder : (int)getppid();
}

/* ------------------------------------------------------------------ opening -- */

static bool
refuse(const struct options *options, const wq_config *config)
{
    report("%s: %s: only queues in SQLite (sqlite:PATH) and Redis "
           "(redis://HOST) can hold a key for another process; use wq work",
           verbs_table[options->verb].name, url_shown(options->queue));
    wq_limiter_destroy(config->limiter);
    return false;
}

/* The keeper is a child, so it begins before the queue is open: that has a
 * thread. */
bool
holder_open(struct holder *h, const struct options *options,
            const wq_config *config)
{
    *h = (struct holder){.options = options, .keeper = -1};
    if (url_is_sqlite(options->queue))
        return queue_open_for(options, holder_of(options), config, &h->q);
    if (!url_is_redis(options->queue))
        return refuse(options, config);
    h->keeper = keeper_start(options, holder_of(options));
    if (h->keeper < 0) {
        wq_limiter_destroy(config->limiter);
        return false;
    }
    if (queue_open(options, config, &h->q))
        return true;
    (void)close(h->keeper);
    return false;
}

/* Without a keeper the process holds no key: holder_resume() says so. */
bool
holder_open_held(struct holder *h, const struct options *options,
                 const wq_config *config)
{
    if (!url_is_redis(options->queue))
        return holder_open(h, options, config);
    *h = (struct holder){.options = options,
                         .keeper = keeper_connect(options, holder_of(options))};
    if (queue_open(options, config, &h->q))
        return true;
    if (h->keeper >= 0)
        (void)close(h->keeper);
    return false;
}

void
holder_close(struct holder *h)
{
    wq_destroy(h->q);
    if (h->keeper >= 0)
        (void)close(h->keeper);
}

/* --------------------------------------------------------------------- keys -- */

static uint64_t
session_of(wq_queue *q)
{
#ifdef WQ_HAVE_REDIS
    return wq_redis_session(q);
#else
    (void)q;
    return 0;
#endif
}

bool
holder_keep(struct holder *h, wq_item **items, size_t n)
{
    const char *why = "";
    size_t      i = 0;

    if (h->keeper < 0)
        return true;
    while (i < n &&
           keeper_take(h->keeper, session_of(h->q), items[i]->key, &why))
        i++;
    if (i == n)
        return true;
    report("%s: cannot hold %s for process %d: %s",
           verbs_table[h->options->verb].name,
           report_key(items[i]->key.data, items[i]->key.len),
           holder_of(h->options), why);
    for (size_t k = 0; k < n; k++)
        holder_give_back(h, items[k]);
    return false;
}

/* Whoever of the two has it: for the other one this changes nothing. */
void
holder_give_back(struct holder *h, wq_item *item)
{
    if (h->keeper >= 0)
        keeper_forget(h->keeper, item->key);
    (void)wq_finish(h->q, item, wq_result_back());
}

static wq_err
take_over(struct holder *h, wq_key key, wq_item **out)
{
#ifdef WQ_HAVE_REDIS
    const uint64_t session = h->keeper < 0 ? 0 : keeper_session(h->keeper);
    const wq_err   err =
        session ? wq_redis_take_over(h->q, session, key, out) : WQ_ENOTFOUND;

    return err == WQ_ENOTFOUND && session && keeper_has_lost(h->keeper, key)
               ? WQ_ELOST
               : err;
#else
    (void)h, (void)key, (void)out;
    return WQ_ENOTSUP;
#endif
}

wq_err
holder_resume(struct holder *h, wq_key key, wq_item **out)
{
    if (url_is_redis(h->options->queue))
        return take_over(h, key, out);
#ifdef WQ_HAVE_SQLITE
    return wq_sqlite_resume(h->q, key, out);
#else
    return WQ_ENOTSUP;
#endif
}

void
holder_forget(struct holder *h, wq_key key)
{
    if (h->keeper >= 0)
        keeper_forget(h->keeper, key);
}
