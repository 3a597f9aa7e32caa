/* SPDX-License-Identifier: MIT */
/* add.c: what does `wq add` do?
 *
 * Keys are added in batches, and at the latest when the input pauses: so a
 * producer that writes a line now and then does not wait for the next one. When
 * the program ends with 0, all keys are in the queue.
 */
#include <inttypes.h>

#include "base/report.h"
#include "queue/batch.h"
#include "queue/open.h"
#include "queue/words.h"
#include "verbs/keys.h"
#include "verbs/print.h"
#include "verbs/verbs.h"

/* Keys that are collected at most: enough for several steps. */
enum { COLLECTED = 4096 };

struct adding {
    const struct options *options;
    wq_queue             *q;
    struct batch          batch;
    struct print          print;
    bool                  dead; /* a key was DEAD */
};

static void
print_added(struct print *print, bool json, wq_key key, wq_added result,
            const wq_add_options *how)
{
    if (json) {
        wq__text_char(&print->line, '{');
        wq__text_key(&print->line, key.data, key.len);
        text_print(&print->line, ",\"how\":\"%s\",\"priority\":%d}",
                   word_added(result), how->priority);
    } else {
        text_print(&print->line, "%-9s  ", word_added(result));
        print_key(print, key);
    }
    print_line(print);
}

static void
on_added(void *ctx, wq_key key, wq_added result, const wq_add_options *how)
{
    struct adding *adding = ctx;

    if (adding->options->verbose || adding->options->json)
        print_added(&adding->print, adding->options->json, key, result, how);
    if (result == WQ_ADDED_DEAD) {
        report("add: %s is DEAD and stays so; wq retry makes it READY",
               report_key(key.data, key.len));
        adding->dead = true;
    }
}

static bool
flush(void *ctx)
{
    struct adding *adding = ctx;
    const wq_err   err = batch_add(&adding->batch, adding->q, on_added, adding);

    if (!err)
        return true;
    queue_report(adding->options, "add", batch_first(&adding->batch), err);
    if (adding->batch.n > 1)
        report("add: nor the keys after it");
    return false;
}

static bool
on_key(void *ctx, wq_key key, int64_t after_ns, int priority)
{
    struct adding *adding = ctx;

    if (!batch_put(&adding->batch, key, after_ns, priority)) {
        queue_report(adding->options, "add", key, WQ_ENOMEM);
        return false;
    }
    return adding->batch.n < COLLECTED || flush(adding);
}

int
verb_add(const struct options *options)
{
    struct adding adding = {.options = options, .batch.options = options};
    const struct keys_sink sink = {on_key, flush, &adding};

    if (!queue_open(options, WQ_CONFIG(.ages = true), &adding.q))
        return STATUS_ERROR;
    print_init(&adding.print);
    int status = keys_read(options, &sink);
    if (status == STATUS_OK && adding.dead)
        status = STATUS_NONE;
    print_fini(&adding.print);
    batch_fini(&adding.batch);
    wq_destroy(adding.q);
    return status;
}
