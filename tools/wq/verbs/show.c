/* SPDX-License-Identifier: MIT */
/* show.c: what does `wq show` print? All that the queue knows about a key. */
#include <inttypes.h>
#include <stdio.h>

#include "base/report.h"
#include "queue/open.h"
#include "queue/words.h"
#include "verbs/print.h"
#include "verbs/verbs.h"

static void
print_time_of(const char *name, int64_t ns)
{
    if (ns >= 0)
        printf("%-9s  %s\n", name, print_time(ns));
}

static void
print_states(struct print *print, unsigned states)
{
    wq__text_str(&print->line, "states    ");
    for (const char *word; (word = word_state(&states));) {
        wq__text_char(&print->line, ' ');
        print_state(print, word);
    }
    print_line(print);
}

static void
print_all(struct print *print, wq_key key, const wq_key_info *info)
{
    wq__text_str(&print->line, "key        ");
    print_key(print, key);
    print_line(print);
    print_states(print, info->states);
    printf("%-9s  %d\n", "priority", info->priority);
    printf("%-9s  %u\n", "failures", print_failures(info));
    if (info->expiries)
        printf("%-9s  %u\n", "expiries", info->expiries);
    print_time_of("READY for", info->ready_ns);
    print_time_of("HELD for", info->held_ns);
    if (*info->holder)
        printf("%-9s  %s\n", "HELD by", info->holder);
    print_time_of("due in", info->wait_ns);
    if (info->states & WQ_STATE_HELD)
        printf("%-9s  %" PRIu64 "\n", "fence", info->fence);
}

/* Returns the status of this key. *printed: a key was shown before it. */
static int
show(const struct options *options, wq_queue *q, struct print *print,
     wq_key key, bool *printed)
{
    wq_key_info  info = {.size = sizeof info};
    const wq_err err = wq_read_key(q, key, &info);

    if (err) {
        queue_report(options, "show", key, err);
        return STATUS_ERROR;
    }
    if (!info.states) {
        report("show: no such key: %s", report_key(key.data, key.len));
        return STATUS_NONE;
    }
    if (options->json) {
        print_info(print, key, &info);
    } else {
        if (*printed)
            putchar('\n');
        print_all(print, key, &info);
    }
    *printed = true;
    return STATUS_OK;
}

int
verb_show(const struct options *options)
{
    struct print print;
    wq_queue    *q;
    int          status = STATUS_OK;
    bool         printed = false;

    if (!queue_open(options, WQ_CONFIG(.ages = true), &q))
        return STATUS_ERROR;
    print_init(&print);
    for (char **key = options->operands; *key; key++) {
        const int one = show(options, q, &print, wq_str(*key), &printed);
        status = one > status ? one : status;
    }
    print_fini(&print);
    wq_destroy(q);
    return status;
}
