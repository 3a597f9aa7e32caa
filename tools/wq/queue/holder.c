/* SPDX-License-Identifier: MIT */
/* holder.c: how is a key held for another process? See holder.h. */
#include "queue/holder.h"

#include <stdlib.h>
#include <unistd.h>

#include <wq/limiter.h>

#include "base/report.h"
#include "options/url.h"
#include "queue/open.h"

#ifdef WQ_HAVE_SQLITE
#include "queue/sqlite_url.h"
#endif

int
holder_of(const struct options *options)
{
    return options->holder ? options->holder : (int)getppid();
}

static bool
refuse(const struct options *options, const wq_config *config, const char *why)
{
    report("%s: %s: %s", verbs_table[options->verb].name,
           url_shown(options->queue), why);
    wq_limiter_destroy(config->limiter);
    return false;
}

#ifdef WQ_HAVE_SQLITE

static bool
open_sqlite(const struct options *options, const wq_config *config,
            wq_queue **out)
{
    struct sqlite_url url;
    const char       *wrong = sqlite_url_read(&url, options->queue);

    if (wrong) {
        sqlite_url_fini(&url);
        return refuse(options, config, wrong);
    }
    url.options.holder_pid = holder_of(options);
    url.options.no_create |= queue_must_exist(options);
    const wq_err err = wq_sqlite_open(url.path, &url.options, config, out);
    sqlite_url_fini(&url);
    if (err)
        queue_refuse(options, err);
    return !err;
}

wq_err
holder_resume(wq_queue *q, wq_key key, wq_item **out)
{
    return wq_sqlite_resume(q, key, out);
}

#else

static bool
open_sqlite(const struct options *options, const wq_config *config,
            wq_queue **out)
{
    (void)out;
    return refuse(options, config, "this wq was built without SQLite");
}

wq_err
holder_resume(wq_queue *q, wq_key key, wq_item **out)
{
    (void)q, (void)key, (void)out;
    return WQ_ENOTSUP;
}

#endif

bool
holder_open(const struct options *options, const wq_config *config,
            wq_queue **out)
{
    if (!url_is_sqlite(options->queue))
        return refuse(options, config,
                      "only queues in SQLite (sqlite:PATH) can hold a key for "
                      "another process; use wq work");
    return open_sqlite(options, config, out);
}
