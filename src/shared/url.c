/* SPDX-License-Identifier: MIT */
/* url.c: the parts of the URL of a store; see url.h. */
#include "shared/url.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error/error.h"

static int
hex(char c)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char       *at = c ? strchr(digits, c) : NULL;
    const int         n = at ? (int)(at - digits) : -1;

    return n < 16 ? n : n - 6;
}

bool
wq__url_decode(char *text)
{
    char *to = text;

    for (; *text; text++) {
        if (*text != '%') {
            *to++ = *text;
            continue;
        }
        const int high = hex(text[1]), low = high < 0 ? -1 : hex(text[2]);
        if (low < 0 || high + low == 0)
            return false;
        *to++ = (char)(high << 4 | low);
        text += 2;
    }
    *to = '\0';
    return true;
}

bool
wq__url_duration(const char *text, int64_t *out)
{
    static const struct {
        const char *unit;
        int64_t     ns;
    } units[] = {{"ns", 1},
                 {"us", 1000},
                 {"ms", 1000000},
                 {"s", 1000000000},
                 {"m", INT64_C(60000000000)},
                 {"h", INT64_C(3600000000000)}};
    char *end;

    errno = 0;
    const long long n = strtoll(text, &end, 10);
    if (errno || *text < '0' || *text > '9' || n == 0)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].unit) == 0 && n <= INT64_MAX / units[i].ns) {
            *out = n * units[i].ns;
            return true;
        }
    return false;
}

bool
wq__url_count(const char *text, unsigned long most, unsigned long *out)
{
    char *end;

    errno = 0;
    *out = strtoul(text, &end, 10);
    return !errno && *text >= '0' && *text <= '9' && !*end && *out <= most;
}

wq_err
wq__url_refuse(const char *store, const char *name, const char *value,
               const char *allowed)
{
    return wq_fail(WQ_EINVAL, "%s: %s=%s in the URL: use %s", store, name,
                   value, allowed);
}

/* Is there another option of this name in what follows? */
static bool
comes_again(const char *name, const char *options)
{
    const size_t len = strlen(name);

    while (options) {
        if (strncmp(options, name, len) == 0 && options[len] == '=')
            return true;
        options = strchr(options, '&');
        options = options ? options + 1 : NULL;
    }
    return false;
}

wq_err
wq__url_options(const char *store, char *options,
                wq_err (*option)(void *ctx, const char *name,
                                 const char *value),
                void *ctx)
{
    wq_err err = WQ_OK;

    while (!err && options && *options) {
        char *next = strchr(options, '&');
        if (next)
            *next++ = '\0';
        char *value = strchr(options, '=');
        if (!value)
            return wq_fail(WQ_EINVAL, "%s: option '%s' of the URL has no value",
                           store, options);
        *value++ = '\0';
        if (comes_again(options, next))
            return wq_fail(WQ_EINVAL, "%s: option '%s' is twice in the URL",
                           store, options);
        err = wq__url_decode(value)
                  ? option(ctx, options, value)
                  : wq__url_refuse(store, options, value, "%XX for a byte");
        options = next;
    }
    return err;
}
