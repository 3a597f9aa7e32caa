/* SPDX-License-Identifier: MIT */
/* number.c: how are numbers written? See number.h. */
#include "text/number.h"

#include <assert.h>

enum { DIGITS_MAX = 20, NS_DIGITS = 9 }; /* of 2^64 - 1; of 10^9 - 1 */

/* Writes the digits of `n`, at least `least` of them, so that they end before
 * `end`; returns where they begin. */
static char *
write_digits(char *end, uint64_t n, int least)
{
    char *p = end;

    for (; n || least > 0; n /= 10, least--)
        *--p = (char)('0' + n % 10);
    return p;
}

void
wq__text_u64(struct wq__text *t, uint64_t n)
{
    char        digits[DIGITS_MAX];
    char *const end = digits + sizeof digits;
    const char *begin = write_digits(end, n, 1);

    wq__text_add(t, begin, (size_t)(end - begin));
}

void
wq__text_i64(struct wq__text *t, int64_t n)
{
    if (n < 0)
        wq__text_char(t, '-');
    wq__text_u64(t, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}

void
wq__text_seconds(struct wq__text *t, uint64_t seconds, uint32_t ns)
{
    char   digits[NS_DIGITS];
    size_t len = NS_DIGITS;

    assert(ns < 1000000000);
    wq__text_u64(t, seconds);
    if (ns == 0)
        return;
    (void)write_digits(digits + NS_DIGITS, ns, NS_DIGITS);
    while (digits[len - 1] == '0')
        len--;
    wq__text_char(t, '.');
    wq__text_add(t, digits, len);
}
