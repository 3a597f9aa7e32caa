/* SPDX-License-Identifier: MIT */
/* failures.c: which keys have failed, and why? See failures.h. */
#include "run/failures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/values.h"

/* Allocates the array when it is first needed. False: out of memory. */
static bool
reserve(struct failure **array, size_t n)
{
    if (!*array)
        *array = calloc(n, sizeof **array);
    return *array;
}

struct failure
failure_of(const struct run *run)
{
    struct failure failure = {
        .attempt = run->attempt,
        .exit_code = run->exit_code,
        .signal = run->signal,
        .timed_out = run->timed_out,
        .at_ns = run->ended_ns,
        .line_len = run->err_len,
    };

    short_key_set(&failure.key, run->key);
    memcpy(failure.line, run->err_line, run->err_len);
    return failure;
}

/* The failure of this key among `n`; NULL: none. */
static struct failure *
find(struct failure *array, size_t n, const struct short_key *key)
{
    for (size_t i = 0; array && i < n; i++)
        if (array[i].number && short_key_is(&array[i].key, key))
            return &array[i];
    return NULL;
}

/* ------------------------------------------------------------- for good -- */

/* Notes how often one of the first keys has failed, and its last failure. */
static void
keep_first(struct failures *f, const struct failure *failure)
{
    struct failure *at = find(f->first, FAILURES_FIRST, &failure->key);

    for (size_t i = 0; !at && i < FAILURES_FIRST; i++)
        if (!f->first[i].number)
            at = &f->first[i];
    if (!at) {
        f->beyond++;
        return;
    }
    const unsigned times = at->times + 1;
    *at = *failure;
    at->times = times;
}

static void
keep(struct failures *f, struct failure *failure)
{
    failure->number = ++f->count;
    if (!reserve(&f->first, FAILURES_FIRST) ||
        !reserve(&f->kept, FAILURES_KEPT)) {
        f->beyond++;
        return;
    }
    keep_first(f, failure);
    f->kept[f->count % FAILURES_KEPT] = *failure;
}

const struct failure *
failures_at(const struct failures *f, uint64_t number)
{
    const struct failure *at =
        f->kept && number ? &f->kept[number % FAILURES_KEPT] : NULL;

    return at && at->number == number ? at : NULL;
}

uint64_t
failures_oldest(const struct failures *f, uint64_t from)
{
    const uint64_t oldest =
        f->count > FAILURES_KEPT ? f->count - FAILURES_KEPT + 1 : 1;

    return from > oldest ? from : oldest;
}

const struct failure *
failures_first(const struct failures *f, size_t i)
{
    return f->first && i < FAILURES_FIRST && f->first[i].number ? &f->first[i]
                                                                : NULL;
}

/* --------------------------------------------------------------- retried -- */

/* An unused entry, or the oldest: 0 is the lowest number. */
static struct failure *
oldest(struct failure *array, size_t n)
{
    struct failure *found = array;

    for (size_t i = 1; i < n; i++)
        if (array[i].number < found->number)
            found = &array[i];
    return found;
}

static void
keep_retry(struct failures *f, struct failure *failure)
{
    failure->number = ++f->retries;
    if (!reserve(&f->retried, RETRIES_KEPT))
        return;
    struct failure *at = find(f->retried, RETRIES_KEPT, &failure->key);
    *(at ? at : oldest(f->retried, RETRIES_KEPT)) = *failure;
}

static void
forget(struct failures *f, const struct short_key *key)
{
    struct failure *at = find(f->retried, RETRIES_KEPT, key);

    if (at)
        at->number = 0;
}

const struct failure *
failures_last_retry(const struct failures *f)
{
    const struct failure *last = NULL;

    for (size_t i = 0; f->retried && i < RETRIES_KEPT; i++)
        if (f->retried[i].number > (last ? last->number : 0))
            last = &f->retried[i];
    return last;
}

/* ------------------------------------------------------------------ both -- */

void
failures_note(struct failures *f, const struct run *run)
{
    const bool settled =
        run->outcome == OUTCOME_OK || run->outcome == OUTCOME_REQUEUE;

    if (settled && (run->attempt == 1 || !f->retried))
        return; /* the usual case */
    if (!settled && run->outcome != OUTCOME_RETRY &&
        run->outcome != OUTCOME_FAILED)
        return;
    struct failure failure = failure_of(run);
    if (run->outcome == OUTCOME_RETRY) {
        keep_retry(f, &failure);
        return;
    }
    forget(f, &failure.key);
    if (run->outcome == OUTCOME_FAILED)
        keep(f, &failure);
}

const struct failure *
failures_of(const struct failures *f, const struct short_key *key)
{
    const struct failure *retried = find(f->retried, RETRIES_KEPT, key);

    if (retried)
        return retried;
    for (uint64_t n = f->count; n >= failures_oldest(f, 0); n--) {
        const struct failure *at = failures_at(f, n);
        if (at && short_key_is(&at->key, key))
            return at;
    }
    return NULL;
}

const char *
failure_reason(const struct failure *failure, char text[FAILURE_REASON])
{
    if (failure->timed_out)
        (void)snprintf(text, FAILURE_REASON, "timed out");
    else if (failure->signal)
        (void)snprintf(text, FAILURE_REASON, "killed by SIG%s",
                       value_signal_name(failure->signal));
    else
        (void)snprintf(text, FAILURE_REASON, "exit %d", failure->exit_code);
    return text;
}

void
failures_fini(struct failures *f)
{
    free(f->first);
    free(f->kept);
    free(f->retried);
    *f = (struct failures){0};
}
