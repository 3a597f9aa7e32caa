/* SPDX-License-Identifier: MIT */
/* config.c: which queue does the line "queue ..." of a scenario describe? */
#include "scenarios/scenario.h"

#include <stdlib.h>
#include <string.h>

/* ---- limiters ------------------------------------------------------------ */

/* A rate per second; "inf" is no limit. */
static bool
read_rate(const char *text, double *out)
{
    int64_t n = 0;

    *out = WQ_RATE_INF;
    if (!strcmp(text, "inf"))
        return true;
    if (!read_number(text, &n))
        return false;
    *out = (double)n;
    return true;
}

/* "BASE", "MAX", and options. */
static wq_limiter *
read_exponential(char *const *part, size_t n)
{
    wq_exponential_options how = {.size = sizeof how};
    int64_t                keys = 0, factor = 0;

    if (n < 2 || !read_duration(part[0], &how.base_ns) ||
        !read_duration(part[1], &how.max_ns))
        return NULL;
    if (n == 2)
        return wq_limiter_exponential(how.base_ns, how.max_ns);
    for (size_t i = 2; i < n; i++)
        if (!strncmp(part[i], "max_keys=", 9) &&
            read_number(part[i] + 9, &keys))
            how.max_keys = (size_t)keys;
        else if (!strncmp(part[i], "factor=", 7) &&
                 read_number(part[i] + 7, &factor))
            how.factor = (double)factor;
        else if (strncmp(part[i], "ttl=", 4) != 0 ||
                 !read_duration(part[i] + 4, &how.ttl_ns))
            return NULL;
    return wq_limiter_exponential_with(&how);
}

/* What README.md lists for "limiter=", but combinations. NULL: the text is none
 * of it. */
static wq_limiter *
read_simple_limiter(struct run *run, char *text)
{
    char   *part[8] = {NULL}, *rest = NULL;
    size_t  n = 0;
    int64_t a = 0, b = 0, c = 0;
    double  rate;

    for (char *p = strtok_r(text, ":", &rest); p && n < 8;
         p = strtok_r(NULL, ":", &rest))
        part[n++] = p;
    if (!n)
        return NULL;
    if (!strcmp(part[0], "exponential"))
        return read_exponential(part + 1, n - 1);
    if (n == 4 && !strcmp(part[0], "fast_slow") && read_duration(part[1], &a) &&
        read_duration(part[2], &b) && read_number(part[3], &c))
        return wq_limiter_fast_slow(a, b, (unsigned)c);
    if (n == 3 && read_rate(part[1], &rate) && read_number(part[2], &b)) {
        if (!strcmp(part[0], "bucket"))
            return wq_limiter_bucket(rate, (unsigned)b);
        if (!strcmp(part[0], "item_bucket"))
            return wq_limiter_item_bucket(rate, (unsigned)b);
    }
    if (n == 1 && !strcmp(part[0], "default"))
        return wq_limiter_default();
    if (n == 1 && !strcmp(part[0], "default_item"))
        return wq_limiter_default_item();
    if (n == 2 && !strcmp(part[0], "probe") &&
        read_duration(part[1], &run->probe.delay_ns))
        return wq_limiter_create(&probe_ops, &run->probe);
    return NULL;
}

/* "max_of:LIMITER|LIMITER", "max_wait:DELAY:LIMITER", or a simple limiter. */
static wq_limiter *
read_limiter(struct run *run, const char *text)
{
    char        copy[LINE_LEN], *rest = NULL;
    wq_limiter *parts[4];
    size_t      n = 0;
    int64_t     max_ns;

    (void)snprintf(copy, sizeof copy, "%s", text);
    if (!strncmp(copy, "max_of:", 7)) {
        for (char *p = strtok_r(copy + 7, "|", &rest); p && n < 4;
             p = strtok_r(NULL, "|", &rest))
            parts[n++] = read_simple_limiter(run, p);
        return wq_limiter_max_of(n, parts);
    }
    if (!strncmp(copy, "max_wait:", 9)) {
        const char *delay = strtok_r(copy + 9, ":", &rest);

        return delay && read_duration(delay, &max_ns)
                   ? wq_limiter_with_max_wait(read_simple_limiter(run, rest),
                                              max_ns)
                   : NULL;
    }
    return read_simple_limiter(run, copy);
}

/* ---- callbacks ----------------------------------------------------------- */

/* Append "KEY:ERROR:RETRIES". */
static void
note_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    struct run  *run = ctx;
    const size_t size = sizeof run->dropped;

    (void)pthread_mutex_lock(&run->lock);
    size_t len = strlen(run->dropped);
    if (len + 1 < size && len)
        run->dropped[len++] = ' ';
    len = put_key(run->dropped, size, len, key);
    (void)snprintf(run->dropped + len, size - len, ":%s:%u",
                   wq_err_name(why) + strlen("WQ_"), retries);
    (void)pthread_mutex_unlock(&run->lock);
}

/* ---- the fields ---------------------------------------------------------- */

static const char *const overflow_names[] = {"REFUSE", "BLOCK", "DROP_OLDEST"};
static const char *const waiting_names[] = {"DROP", "KEEP", "FLUSH",
                                            "FLUSH_ALL", "LEAVE"};
static const char *const retry_names[] = {"ONCE", "FAILURES_ONLY", "RESPECT"};

/* The bits of names that are separated by "+". */
static bool
read_retry(char *text, unsigned *out)
{
    char *rest = NULL;

    for (char *name = strtok_r(text, "+", &rest); name;
         name = strtok_r(NULL, "+", &rest)) {
        const int i = find_name(retry_names, 3, name);
        if (!strcmp(name, "none"))
            continue;
        if (i < 0)
            return false;
        *out |= 1U << i;
    }
    return true;
}

/* A name of the list, or a number, which may be one that is not allowed. */
static bool
read_choice(const char *const *names, size_t n, const char *text, int *out)
{
    int64_t number = find_name(names, n, text);

    if (number < 0 && !read_number(text, &number))
        return false;
    *out = (int)number;
    return true;
}

/* Is `word` "name=..."? Where the value begins. */
static char *
value_of(char *word, const char *name)
{
    const size_t n = strlen(name);

    return !strncmp(word, name, n) && word[n] == '=' ? word + n + 1 : NULL;
}

static bool
read_field(struct run *run, char *word, wq_config *out)
{
    const struct {
        const char *name;
        size_t     *field;
    } sizes[] = {{"max_len", &out->max_len},
                 {"max_bytes", &out->max_bytes},
                 {"group_max_held", &out->group_max_held}};
    char   *value;
    int64_t n = 0;
    int     choice = 0;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if ((value = value_of(word, sizes[i].name))) {
            const bool ok = read_number(value, &n);
            *sizes[i].field = n == INT64_MAX ? SIZE_MAX : (size_t)n;
            return ok;
        }
    if ((value = value_of(word, "max_retries"))) {
        const bool ok = read_number(value, &n);
        out->max_retries = (unsigned)n;
        return ok;
    }
    if ((value = value_of(word, "max_ready")))
        return read_duration(value, &out->max_ready_ns);
    if ((value = value_of(word, "overflow"))) {
        const bool ok = read_choice(overflow_names, 3, value, &choice);
        out->overflow = (wq_overflow)choice;
        return ok;
    }
    if ((value = value_of(word, "waiting"))) {
        const bool ok = read_choice(waiting_names, 5, value, &choice);
        out->waiting = (wq_waiting)choice;
        return ok;
    }
    if ((value = value_of(word, "retry")))
        return read_retry(value, &out->retry);
    if ((value = value_of(word, "limiter")))
        return (out->limiter = read_limiter(run, value)) != NULL;
    if ((value = value_of(word, "group"))) {
        out->group = wq_group_before_slash;
        return !strcmp(value, "before_slash");
    }
    if (!strcmp(word, "clock=real") || !strcmp(word, "clock=boottime")) {
        out->clock =
            word[6] == 'r' ? wq_clock_monotonic() : wq_clock_boottime();
        return true;
    }
    if (!strcmp(word, "sink")) {
        out->name = "test";
        out->metrics = &run->recorder.sink;
        return true;
    }
    if (!strcmp(word, "on_drop=none")) {
        out->on_drop = NULL;
        return true;
    }
    if (!strcmp(word, "ages") || !strcmp(word, "real_time")) {
        *(*word == 'a' ? &out->ages : &out->real_time) = true;
        return true;
    }
    return false;
}

const char *
read_config(struct run *run, const struct words *words, size_t first,
            wq_config *out)
{
    *out = (wq_config){.size = sizeof *out,
                       .clock = run->clock,
                       .on_drop = note_drop,
                       .drop_ctx = run};
    for (size_t i = first; i < words->result; i++)
        if (!read_field(run, words->at[i], out)) {
            wq_limiter_destroy(out->limiter);
            return words->at[i];
        }
    return NULL;
}
