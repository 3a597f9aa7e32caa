/* SPDX-License-Identifier: MIT */
/* get.c: what does `wq get` do?
 *
 * It takes keys for another process, usually the script that called it, and
 * prints them. Keys that cannot be printed are given back: nobody would know
 * that they are HELD.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/report.h"
#include "queue/holder.h"
#include "queue/open.h"
#include "verbs/print.h"
#include "verbs/verbs.h"

static void
print_item(struct print *print, const struct options *options, wq_queue *q,
           const wq_item *item)
{
    struct wq__text *line = &print->line;

    if (!options->json) {
        print_raw(print, item->key, options->null ? '\0' : '\n');
        return;
    }
    wq__text_char(line, '{');
    wq__text_key(line, item->key.data, item->key.len);
    text_print(line, ",\"priority\":%d,\"attempt\":%u,\"fence\":%" PRIu64 "}",
               item->priority, wq_num_requeues(q, item->key) + 1, item->fence);
    print_line(print);
}

/* Returns the exit status. */
static int
print_items(const struct options *options, wq_queue *q, wq_item **items,
            size_t n)
{
    struct print print;

    print_init(&print);
    for (size_t i = 0; i < n; i++)
        print_item(&print, options, q, items[i]);
    print_fini(&print);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return STATUS_OK;
    report_errno("get: cannot write to stdout");
    for (size_t i = 0; i < n; i++)
        (void)wq_finish(q, items[i], wq_result_back());
    return STATUS_ERROR;
}

static int
get(const struct options *options, wq_queue *q)
{
    wq_item    **items = calloc(options->count, sizeof *items);
    size_t       n = 0;
    const wq_err err =
        items ? wq_get_many(q, items, options->count, options->wait_ns, &n)
              : WQ_ENOMEM;
    int status = STATUS_NONE;

    if (!err)
        status = print_items(options, q, items, n);
    else if (err != WQ_ETIMEDOUT) {
        queue_fail(options, "get a key", err);
        status = STATUS_ERROR;
    }
    free(items);
    return status;
}

int
verb_get(const struct options *options)
{
    wq_queue *q;

    /* A closed stdout is an error of fflush(): the keys are given back. */
    (void)signal(SIGPIPE, SIG_IGN);
    if (!holder_open(options, WQ_CONFIG(.ages = true), &q))
        return STATUS_ERROR;
    const int status = get(options, q);
    wq_destroy(q);
    return status;
}
