/* SPDX-License-Identifier: MIT */
/* holder.c: how is a key held for another process? See holder.h. */
#include "queue/holder.h"

#include <unistd.h>

#include <wq/limiter.h>
#ifdef WQ_HAVE_SQLITE
#include <wq/sqlite.h>
#endif

#include "base/report.h"
#include "options/url.h"
#include "queue/open.h"

int
holder_of(const struct options *options)
{
    return options->holder ? options->holder : (int)getppid();
}

bool
holder_open(const struct options *options, const wq_config *config,
            wq_queue **out)
{
    if (url_is_sqlite(options->queue))
        return queue_open_for(options, holder_of(options), config, out);
    report("%s: %s: only queues in SQLite (sqlite:PATH) can hold a key for "
           "another process; use wq work",
           verbs_table[options->verb].name, url_shown(options->queue));
    wq_limiter_destroy(config->limiter);
    return false;
}

wq_err
holder_resume(wq_queue *q, wq_key key, wq_item **out)
{
#ifdef WQ_HAVE_SQLITE
    return wq_sqlite_resume(q, key, out);
#else
    (void)q, (void)key, (void)out;
    return WQ_ENOTSUP;
#endif
}
