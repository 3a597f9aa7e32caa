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
print_items(struct holder *h, wq_item **items, size_t n)
{
    struct print print;

    print_init(&print);
    for (size_t i = 0; i < n; i++)
        print_item(&print, h->options, h->q, items[i]);
    print_fini(&print);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return STATUS_OK;
    report_errno("get: cannot write to stdout");
    for (size_t i = 0; i < n; i++)
        holder_give_back(h, items[i]);
    return STATUS_ERROR;
}

static int
get(struct holder *h)
{
    const struct options *options = h->options;
    wq_item             **items = calloc(options->count, sizeof *items);
    size_t                n = 0;
    const wq_err          err =
        items ? wq_get_many(h->q, items, options->count, options->wait_ns, &n)
                       : WQ_ENOMEM;
    int status = STATUS_NONE;

    if (!err)
        status =
            holder_keep(h, items, n) ? print_items(h, items, n) : STATUS_ERROR;
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
    struct holder h;

    /* A closed stdout is an error of fflush(): the keys are given back. */
    (void)signal(SIGPIPE, SIG_IGN);
    if (!holder_open(&h, options, WQ_CONFIG(.ages = true)))
        return STATUS_ERROR;
    const int status = get(&h);
    holder_close(&h);
    return status;
}
