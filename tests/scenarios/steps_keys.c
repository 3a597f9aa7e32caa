/* SPDX-License-Identifier: MIT */
/* steps_keys.c: the steps that add keys, take them back, and work on them. */
#include "scenarios/step.h"

#include <stdlib.h>
#include <string.h>

#include <wq/workers.h>

/* ---- adds ---------------------------------------------------------------- */

/* Call `verb` for each key; ends at the first error. */
static void
for_each_key(struct call *c, wq_err (*verb)(wq_queue *, wq_key))
{
    for (struct keys k = arguments(c, 1); next_key(&k);)
        if (report(c, verb(c->q, k.key)))
            return;
}

void
do_add(struct call *c)
{
    for_each_key(c, wq_add);
}

void
do_add_rate_limited(struct call *c)
{
    for_each_key(c, wq_add_rate_limited);
}

/* add_after KEY DELAY */
void
do_add_after(struct call *c)
{
    struct keys k;
    int64_t     delay_ns;

    if (!need_duration(c, 2, &delay_ns))
        return;
    k = keys_of(c->words.at + 1, 1);
    while (next_key(&k))
        if (report(c, wq_add_after(c->q, k.key, delay_ns)))
            return;
}

static const char *const if_waiting_names[] = {"KEEP", "MERGE", "REPLACE",
                                               "IGNORE"};
static const char *const added_names[] = {"NEW",    "MERGED",    "DIRTY",
                                          "RAISED", "SCHEDULED", "SOONER",
                                          "LATER",  "KEPT",      "DEAD"};

/* Is `word` an option of wq_add_with()? */
static bool
read_option(struct call *c, const char *word, wq_add_options *out)
{
    const struct {
        const char *name;
        int64_t    *field;
    } durations[] = {{"after=", &out->after_ns},
                     {"debounce=", &out->debounce_ns},
                     {"max_wait=", &out->max_wait_ns},
                     {"throttle=", &out->throttle_ns},
                     {"max_block=", &out->max_block_ns}};
    const char *value = strchr(word, '=');
    bool        ok = true;

    if (!strcmp(word, "rate_limited") || !strcmp(word, "nowait")) {
        *(*word == 'r' ? &out->rate_limited : &out->nowait) = true;
        return true;
    }
    if (!value)
        return false;
    value++;
    if (!strncmp(word, "priority=", 9)) {
        int64_t n = 0;
        ok = read_number(value, &n);
        out->priority = (int)n;
    } else if (!strncmp(word, "waiting=", 8)) {
        const int i = find_name(if_waiting_names, 4, value);
        int64_t   n = i;
        ok = i >= 0 || read_number(value, &n);
        out->waiting = (wq_if_waiting)n;
    } else {
        ok = false;
        for (size_t i = 0; i < sizeof durations / sizeof *durations; i++)
            if (!strncmp(word, durations[i].name, strlen(durations[i].name)))
                ok = read_duration(value, durations[i].field);
    }
    if (!ok)
        wrong(c, "'%s' is not an option", word);
    return true;
}

/* add_with KEY... OPTION...: one call for all keys. */
void
do_add_with(struct call *c)
{
    enum { MAX = 1024 };
    const wq_added untouched = (wq_added)77;
    wq_added       added[MAX];
    wq_key         keys[MAX];
    char           bytes[MAX][64];
    wq_add_options how = {.size = sizeof how, .results = added};
    size_t         n = 0;

    for (size_t i = 0; i < MAX; i++)
        added[i] = untouched;
    for (size_t i = 1; i < c->words.result; i++) {
        if (read_option(c, c->words.at[i], &how))
            continue;
        for (struct keys k = keys_of(c->words.at + i, 1); next_key(&k); n++) {
            if (n == MAX || k.key.len > sizeof bytes[n]) {
                wrong(c, "too many keys, or too long");
                return;
            }
            memcpy(bytes[n], k.key.data, k.key.len);
            keys[n] = wq_bytes(bytes[n], k.key.len);
        }
    }
    if (c->failed)
        return;
    if (report(c, wq_add_with(c->q, &how, keys, n))) {
        for (size_t i = 0; i < n; i++)
            if (added[i] != untouched)
                wrong(c, "the call failed, and changed its results");
        return;
    }
    for (size_t i = 0; i < n; i++)
        append(c, "%s", (unsigned)added[i] < 9 ? added_names[added[i]] : "?");
}

/* ---- keys that are taken back -------------------------------------------- */

void
do_remove(struct call *c)
{
    for_each_key(c, wq_remove);
}

void
do_cancel_after(struct call *c)
{
    for_each_key(c, wq_cancel_after);
}

void
do_forget(struct call *c)
{
    for_each_key(c, wq_forget);
}

void
do_num_requeues(struct call *c)
{
    struct keys k;

    if (need_key(c, 1, &k))
        set_result(c, "%u", wq_num_requeues(c->q, k.key));
}

void
do_count_drops(struct call *c)
{
    int64_t n;

    if (!argument(c, 1) || !read_number(argument(c, 1), &n))
        wrong(c, "a number is missing");
    else
        (void)report(c, wq_count_drops(c->q, (uint64_t)n));
}

/* ---- hand-outs ----------------------------------------------------------- */

/* wq_get() without a timeout, else wq_get_within(). On an error *out must stay
 * as it was. */
static wq_err
get_item(struct call *c, int64_t timeout_ns, wq_item **out)
{
    wq_item *const untouched = (wq_item *)(void *)c;
    wq_item       *item = untouched;
    const wq_err   err = timeout_ns == WQ_FOREVER
                             ? wq_get(c->q, &item)
                             : wq_get_within(c->q, timeout_ns, &item);

    if (err ? item != untouched : !item || item == untouched)
        wrong(c, "the get returned %s, and a wrong item", error_word(err));
    *out = item;
    return err;
}

/* get [TIMEOUT] */
void
do_get(struct call *c)
{
    int64_t  timeout_ns;
    wq_item *item;

    if (!read_timeout(c, 1, &timeout_ns))
        return;
    const wq_err err = get_item(c, timeout_ns, &item);
    if (!c->failed && !report(c, err))
        append_item(c, item);
}

/* get_many MAX [TIMEOUT] */
void
do_get_many(struct call *c)
{
    wq_item *items[256] = {(wq_item *)(void *)c};
    int64_t  max = 0, timeout_ns;
    size_t   n = 0;

    if (!argument(c, 1) || !read_number(argument(c, 1), &max) || max > 256) {
        wrong(c, "the number of keys is missing or too large");
        return;
    }
    if (!read_timeout(c, 2, &timeout_ns) ||
        report(c, wq_get_many(c->q, items, (size_t)max, timeout_ns, &n))) {
        if (n || items[0] != (wq_item *)(void *)c)
            wrong(c, "the call failed, and changed its results");
        return;
    }
    for (size_t i = 0; i < n; i++)
        append_item(c, items[i]);
}

/* next KEY [TIMEOUT]: the done of KEY and the next get; "none" is no KEY. */
void
do_next(struct call *c)
{
    struct keys k;
    int64_t     timeout_ns;
    wq_item    *item = NULL;

    if (!read_timeout(c, 2, &timeout_ns) || !need_key(c, 1, &k) ||
        (strcmp(c->words.at[1], "none") != 0 && !(item = find_loan(c, k.key))))
        return;
    const wq_err err = wq_next(c->q, timeout_ns, &item);
    if (!report(c, err))
        append_item(c, item);
    else if (item && err != WQ_ESTATE)
        wrong(c, "%s, and the item was not set to NULL", error_word(err));
}

/* loan KEY -> KEY@PRIORITY: what its item shows */
void
do_loan(struct call *c)
{
    struct keys k;
    wq_item    *item;

    if (need_key(c, 1, &k) && (item = find_loan(c, k.key)))
        append_key(c, item);
}

void
do_done(struct call *c)
{
    wq_item *item;

    for (struct keys k = arguments(c, 1); next_key(&k);)
        if (!(item = find_loan(c, k.key)) || report(c, wq_done(c->q, item)))
            return;
}

void
do_done_many(struct call *c)
{
    wq_item *items[256];
    size_t   n = 0;

    for (struct keys k = arguments(c, 1); n < 256 && next_key(&k); n++)
        if (!(items[n] = find_loan(c, k.key)))
            return;
    if (report(c, wq_done_many(c->q, items, n)))
        return;
    for (size_t i = 0; i < n; i++)
        if (items[i])
            wrong(c, "item %zu was not set to NULL", i);
}

void
do_done_key(struct call *c)
{
    for_each_key(c, wq_done_key);
}

/* ---- results of the work -------------------------------------------------- */

static bool
read_outcome(const char *word, wq_result *out)
{
    *out = wq_result_done();
    if (!strcmp(word, "retry"))
        *out = wq_result_retry();
    else if (!strcmp(word, "drop"))
        *out = wq_result_drop();
    else if (!strcmp(word, "back"))
        *out = wq_result_back();
    else if (!strcmp(word, "bury"))
        *out = wq_result_bury();
    else if (!strncmp(word, "after:", 6)) {
        *out = wq_result_after(0);
        return read_duration(word + 6, &out->after_ns);
    } else
        return !strcmp(word, "done");
    return true;
}

/* "done", "retry", "drop", "back", "bury", "after:DELAY"; "@PRIORITY" may
 * follow. */
static bool
read_result(const char *word, wq_result *out)
{
    char    outcome[64];
    int64_t priority;
    char   *at;

    (void)snprintf(outcome, sizeof outcome, "%s", word);
    at = strchr(outcome, '@');
    if (at)
        *at++ = '\0';
    if (!read_outcome(outcome, out) || (at && !read_number(at, &priority)))
        return false;
    if (at) {
        out->prioritized = true;
        out->priority = (int)priority;
    }
    return true;
}

static bool
need_result(struct call *c, size_t i, wq_result *out)
{
    const char *word = argument(c, i);

    if (word && read_result(word, out))
        return true;
    wrong(c, "'%s' is not done, retry, drop, back, bury or after:DELAY",
          word ? word : "");
    return false;
}

/* finish KEY RESULT */
void
do_finish(struct call *c)
{
    struct keys k;
    wq_result   result;
    wq_item    *item;

    if (need_key(c, 1, &k) && need_result(c, 2, &result) &&
        (item = find_loan(c, k.key)))
        (void)report(c, wq_finish(c->q, item, result));
}

/* Does an item with this error stay on loan? */
static bool
stays_on_loan(wq_err err)
{
    return err == WQ_ENOMEM || err == WQ_EIO || err == WQ_EAWAY;
}

/* finish_many KEY RESULT KEY RESULT...: one call. The result is a word for each
 * key, if one of them is not OK. */
void
do_finish_many(struct call *c)
{
    enum { MAX = 16 };
    wq_item  *items[MAX];
    wq_result results[MAX];
    wq_err    errs[MAX], first = WQ_OK;
    size_t    n = 0;

    for (; n < MAX && argument(c, 2 * n + 1); n++) {
        struct keys k;

        if (!need_key(c, 2 * n + 1, &k) ||
            !need_result(c, 2 * n + 2, &results[n]) ||
            !(items[n] = find_loan(c, k.key)))
            return;
    }
    const wq_err err = wq_finish_many(c->q, items, results, errs, n);
    for (size_t i = 0; i < n; i++) {
        if (!first)
            first = errs[i];
        if (!items[i] == stays_on_loan(errs[i]))
            wrong(c, "item %zu: %s, and a wrong pointer", i,
                  error_word(errs[i]));
        if (err)
            append(c, "%s", error_word(errs[i]));
    }
    if (err != first)
        wrong(c, "%s, but the first error is %s", error_word(err),
              error_word(first));
    c->failed = c->failed || err;
}

/* next_with KEY RESULT [TIMEOUT]: the finish of KEY and the next get; "none" is
 * no KEY. */
void
do_next_with(struct call *c)
{
    struct keys k;
    wq_result   result;
    int64_t     timeout_ns;
    wq_item    *item = NULL;

    if (!need_key(c, 1, &k) || !need_result(c, 2, &result) ||
        !read_timeout(c, 3, &timeout_ns) ||
        (strcmp(c->words.at[1], "none") != 0 && !(item = find_loan(c, k.key))))
        return;
    const wq_err err = wq_next_with(c->q, result, timeout_ns, &item);
    if (!report(c, err))
        append_item(c, item);
    else if (item && !stays_on_loan(err))
        wrong(c, "%s, and the item was not set to NULL", error_word(err));
}

void
do_revive(struct call *c)
{
    for_each_key(c, wq_revive);
}

/* ---- whole runs ---------------------------------------------------------- */

/* Is this the item of the key that the word names, "KEY" or "KEY@PRIORITY"? */
static bool
is_item(const wq_item *item, wq_key key)
{
    const char *at = memchr(key.data, '@', key.len);
    wq_key      name = key;

    if (at)
        name.len = (size_t)(at - (const char *)key.data);
    return item->key.len == name.len &&
           !memcmp(item->key.data, name.data, name.len) &&
           (!at || item->priority == atoi(at + 1));
}

/* For each key: the next get hands it out; then `before_done`, then its done. */
void
work(struct call *c, struct keys k, wq_err (*before_done)(wq_queue *, wq_key))
{
    wq_item *item;

    while (next_key(&k)) {
        const wq_err err = get_item(c, 0, &item);

        if (c->failed || report(c, err))
            return;
        if (!is_item(item, k.key)) {
            append_item(c, item);
            c->failed = true;
            return;
        }
        keep_loan(c, item);
        if (c->failed ||
            (before_done && report(c, before_done(c->q, item->key))) ||
            report(c, wq_done(c->q, item)))
            return;
    }
}

/* work KEY...: get and done, in this order */
void
do_work(struct call *c)
{
    work(c, arguments(c, 1), NULL);
}

/* fail KEY...: get, add_rate_limited and done */
void
do_fail(struct call *c)
{
    work(c, arguments(c, 1), wq_add_rate_limited);
}

/* none: no key can be taken, and none is READY */
void
do_none(struct call *c)
{
    wq_item     *item;
    const wq_err err = get_item(c, 0, &item);

    if (c->failed)
        return;
    if (!err) {
        append_item(c, item);
        c->failed = true;
    } else if (wq_len(c->q)) {
        wrong(c, "%s, and the length is %zu", error_word(err), wq_len(c->q));
    } else if (err != WQ_ETIMEDOUT) {
        (void)report(c, err);
    }
}

void
do_len(struct call *c)
{
    set_result(c, "%zu", wq_len(c->q));
}

/* ---- a step of a worker -------------------------------------------------- */

struct one {
    struct call *call;
    wq_result    result; /* of the handler */
};

static wq_result
handle_one(void *ctx, const wq_item *item)
{
    struct one *one = ctx;

    append_key(one->call, item);
    return one->result;
}

static void
drop_one(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    (void)key;
    append(((struct one *)ctx)->call, "dropped:%s:%u", error_word(why),
           retries);
}

/* work_one RESULT [TIMEOUT] -> KEY [dropped:WHY:RETRIES] */
void
do_work_one(struct call *c)
{
    struct one one = {.call = c};
    int64_t    timeout_ns;

    if (!need_result(c, 1, &one.result) || !read_timeout(c, 2, &timeout_ns))
        return;
    (void)report(c, wq_work_one(c->q,
                                WQ_WORKERS(.handler = handle_one, .ctx = &one,
                                           .on_drop = drop_one),
                                timeout_ns));
}
