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

/* ---- durations ------------------------------------------------------------ */

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* *sum += n * ns. False: it would not fit. */
static bool
sum_up(int64_t *sum, int64_t n, int64_t ns)
{
    if (n > (INT64_MAX - *sum) / ns)
        return false;
    *sum += n * ns;
    return true;
}

/* 12 and '3' are 123. False: it would not fit. */
static bool
append_digit(int64_t *n, char digit)
{
    int64_t longer = digit - '0';

    if (!sum_up(&longer, *n, 10))
        return false;
    *n = longer;
    return true;
}

/* How many nanoseconds the unit at *text has; moves on behind it. Without a unit:
 * 0. */
static int64_t
read_unit(const char **text)
{
    static const struct {
        const char *name;
        int64_t     ns;
    } units[] = {{"ns", 1},
                 {"us", 1000},
                 {"ms", 1000000},
                 {"s", 1000000000},
                 {"m", INT64_C(60000000000)},
                 {"h", INT64_C(3600000000000)},
                 {"d", INT64_C(86400000000000)}};
    const size_t len = strspn(*text, "nusmhd");

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == len &&
            strncmp(*text, units[i].name, len) == 0) {
            *text += len;
            return units[i].ns;
        }
    return 0;
}

/* Add up the decimals at `text` of a number of units of `ns`. False: a place that
 * is not 0 is no whole number of nanoseconds, or the sum would not fit. */
static bool
add_decimals(int64_t *sum, const char *text, int64_t ns)
{
    for (; is_digit(*text); text++) {
        ns = ns % 10 ? 0 : ns / 10;
        if (*text != '0' && (!ns || !sum_up(sum, *text - '0', ns)))
            return false;
    }
    return true;
}

/* Read "NUMBER[UNIT]" at *text, add it to *sum, and move on. Only a number that is
 * `alone` may be without a unit: it is seconds. */
static bool
add_part(const char **text, bool alone, int64_t *sum)
{
    const size_t digits = strspn(*text, "0123456789");
    const char  *whole = *text, *decimals = *text + digits;
    int64_t      n = 0;

    if (*decimals == '.')
        decimals++;
    *text = decimals + strspn(decimals, "0123456789");
    if (!digits && *text == decimals)
        return false; /* no digit at all */
    int64_t ns = read_unit(text);
    if (!ns && alone && !**text)
        ns = 1000000000;
    for (size_t i = 0; ns && i < digits; i++)
        if (!append_digit(&n, whole[i]))
            return false;
    return ns && sum_up(sum, n, ns) && add_decimals(sum, decimals, ns);
}

bool
wq__url_duration(const char *text, int64_t *out)
{
    int64_t sum = 0;
    bool    alone = true;

    do {
        if (!add_part(&text, alone, &sum))
            return false;
        alone = false;
    } while (*text);
    if (sum > 0)
        *out = sum;
    return sum > 0;
}

/* ---- numbers and options -------------------------------------------------- */

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

/* Nothing is quoted but a name that has the form of one, and of a value the first
 * character that may be a wrong separator: a password may stand anywhere. */
static wq_err
check_option(const char *store, const char *option, const char *separators)
{
    const size_t name = strspn(option, "abcdefghijklmnopqrstuvwxyz_"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

    if (!name || option[name] != '=')
        return wq_fail(WQ_EINVAL, "%s: an option of the URL is not NAME=VALUE",
                       store);
    const char *value = option + name + 1;
    const char  wrong = value[strcspn(value, separators)];
    return wrong ? wq_fail(WQ_EINVAL,
                           "%s: there is a '%c' in the value of '%.*s' in the "
                           "URL: options are separated by '&', and %%%02X "
                           "stands for a '%c'",
                           store, wrong, (int)name, option, (unsigned)wrong,
                           wrong)
                 : WQ_OK;
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
wq__url_options(const char *store, char *options, const char *separators,
                wq_err (*option)(void *ctx, const char *name,
                                 const char *value),
                void *ctx)
{
    wq_err err = WQ_OK;

    while (!err && options && *options) {
        char *next = strchr(options, '&');
        if (next)
            *next++ = '\0';
        err = check_option(store, options, separators);
        if (err)
            return err;
        char *value = strchr(options, '=');
        *value++ = '\0';
        if (comes_again(options, next))
            return wq_fail(WQ_EINVAL, "%s: option '%s' is twice in the URL",
                           store, options);
        err = wq__url_decode(value)
                  ? option(ctx, options, value)
                  : wq_fail(WQ_EINVAL,
                            "%s: '%%' in the value of '%s' in the URL must be "
                            "followed by two hexadecimal digits other than 00",
                            store, options);
        options = next;
    }
    return err;
}
