/* SPDX-License-Identifier: MIT */
/* fsck.c: what does `wq fsck` do? It asks the store to check itself. */
#include <stdio.h>
#include <string.h>

#include <wq/inspect.h>

#include "queue/open.h"
#include "verbs/print.h"
#include "verbs/verbs.h"

struct checking {
    const struct options *options;
    struct print          print;
    size_t                problems;
};

static void
on_problem(void *ctx, const char *text)
{
    struct checking *checking = ctx;
    struct print    *print = &checking->print;

    checking->problems++;
    if (checking->options->json) {
        wq__text_str(&print->line, "{\"problem\":");
        wq__text_json(&print->line, text, strlen(text));
        wq__text_char(&print->line, '}');
    } else {
        print_key(print, wq_str(text));
    }
    print_line(print);
}

int
verb_fsck(const struct options *options)
{
    struct checking checking = {.options = options};
    wq_queue       *q;

    if (!queue_open(options, WQ_CONFIG(.ages = true), &q))
        return STATUS_ERROR;
    print_init(&checking.print);
    const wq_err err = wq_check(q, on_problem, &checking);
    if (err)
        queue_fail(options, "check the queue", err);
    else if (!checking.problems && !options->json)
        puts("no problems");
    print_fini(&checking.print);
    wq_destroy(q);
    return err ? STATUS_ERROR : checking.problems ? STATUS_NONE : STATUS_OK;
}
