/* SPDX-License-Identifier: MIT */
/* url.h: what do the parts of the URL of a store mean? */
#ifndef WQ_SHARED_URL_H
#define WQ_SHARED_URL_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/wq.h>

/* Replace %XX by the bytes, in place. False: not two digits, or a NUL. */
WQ__STORE_API bool wq__url_decode(char *text);

/* What wq__url_refuse() says about a duration. */
#define WQ__URL_DURATIONS                                                      \
    "a duration such as 200ms, 5s, 1h30m, or a number of seconds; more than 0"

/* "200ms", "5s", "1h30m", "1.5" (seconds); units ns us ms s m h d. More than 0, and
 * exact: a digit whose place is no whole number of nanoseconds is refused, and so is
 * what does not fit. */
WQ__STORE_API bool wq__url_duration(const char *text, int64_t *out);

/* A number without a sign, at most `most`. */
WQ__STORE_API bool wq__url_count(const char *text, unsigned long most,
                                 unsigned long *out);

/* Cut "NAME=VALUE&..." into pieces, in place, and call `option` for each, with
 * its value decoded, until that fails. WQ_EINVAL if a name comes twice, or if a
 * value has one of these `separators`, which may be meant to end it. `store` is for
 * messages. */
WQ__STORE_API wq_err wq__url_options(
    const char *store, char *options, const char *separators,
    wq_err (*option)(void *ctx, const char *name, const char *value),
    void *ctx);

/* "STORE: NAME=VALUE in the URL: use ALLOWED": WQ_EINVAL. */
WQ__STORE_API wq_err wq__url_refuse(const char *store, const char *name,
                                    const char *value, const char *allowed);

#endif
