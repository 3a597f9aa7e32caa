/* SPDX-License-Identifier: MIT */
/* change.c: what do `wq remove` and `wq retry` do? */
#include "base/report.h"
#include "queue/open.h"
#include "verbs/keys.h"
#include "verbs/print.h"
#include "verbs/verbs.h"

struct change {
    const struct options *options;
    wq_queue             *q;
    wq_err (*verb)(wq_queue *q, wq_key key);
    const char  *done; /* for -v: "removed" */
    const char  *none; /* what WQ_ENOTFOUND means: "no such key" */
    struct print print;
    bool         missed; /* some key was not found */
    bool         failed; /* reported */
};

static void
print_change(struct change *change, wq_key key, const char *how)
{
    struct print *print = &change->print;

    if (change->options->json) {
        wq__text_char(&print->line, '{');
        wq__text_key(&print->line, key.data, key.len);
        text_print(&print->line, ",\"how\":\"%s\"}", how);
        print_line(print);
    } else if (change->options->verbose) {
        text_print(&print->line, "%-7s  ", how);
        print_key(print, key);
        print_line(print);
    }
}

/* A key that is only HELD has nothing to remove: it is not run again anyway. */
static bool
on_key(void *ctx, wq_key key, int64_t after_ns, int priority)
{
    struct change *change = ctx;
    const wq_err   err = change->verb(change->q, key);

    (void)after_ns, (void)priority; /* not for these verbs */
    if (err == WQ_OK) {
        print_change(change, key, change->done);
    } else if (err == WQ_ESTATE) {
        print_change(change, key, "held");
    } else if (err == WQ_ENOTFOUND) {
        report("%s: %s: %s", verbs_table[change->options->verb].name,
               change->none, report_key(key.data, key.len));
        change->missed = true;
    } else {
        queue_report(change->options, verbs_table[change->options->verb].name,
                     key, err);
        change->failed = true;
    }
    return !change->failed;
}

static bool
on_pause(void *ctx)
{
    (void)ctx; /* nothing is collected */
    return true;
}

/* Another process may revive a key first: that is no error. */
static bool
visit(void *ctx, wq_key key, const wq_key_info *info)
{
    struct change *change = ctx;

    (void)info;
    const wq_err err = change->verb(change->q, key);
    if (err == WQ_OK)
        print_change(change, key, change->done);
    change->failed = err && err != WQ_ENOTFOUND;
    if (change->failed)
        queue_report(change->options, "retry", key, err);
    return !change->failed;
}

static int
change_all(struct change *change)
{
    const wq_err err = wq_each(change->q, WQ_STATE_DEAD, visit, change);

    if (err)
        queue_fail(change->options, "list the DEAD keys", err);
    return err || change->failed ? STATUS_ERROR : STATUS_OK;
}

static int
run(struct change *change)
{
    const struct keys_sink sink = {on_key, on_pause, change};

    if (!queue_open(change->options, WQ_CONFIG(.ages = true), &change->q))
        return STATUS_ERROR;
    print_init(&change->print);
    int status = change->options->all ? change_all(change)
                                      : keys_read(change->options, &sink);
    if (status == STATUS_OK && change->missed)
        status = STATUS_NONE;
    print_fini(&change->print);
    wq_destroy(change->q);
    return status;
}

int
verb_remove(const struct options *options)
{
    return run(&(struct change){.options = options,
                                .verb = wq_remove,
                                .done = "removed",
                                .none = "no such key"});
}

int
verb_retry(const struct options *options)
{
    return run(&(struct change){.options = options,
                                .verb = wq_revive,
                                .done = "ready",
                                .none = "not a DEAD key"});
}
