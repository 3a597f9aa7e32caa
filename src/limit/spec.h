/* SPDX-License-Identifier: MIT */
/* spec.h: what does a limiter do, as data?
 *
 * Every limiter has a wq_limiter_spec. Its constructor completes it, and it
 * never changes after that, so reading it needs no lock. It has zeros in the
 * fields of parts that it lacks, and a factor that is not 0. All functions are
 * O(1).
 */
#ifndef WQ_LIMIT_SPEC_H
#define WQ_LIMIT_SPEC_H

#include <stdint.h>

#include <wq/limiter.h>

/* The delay of the parts that depend on the number of earlier failures alone:
 * the one function behind limiters and wq_limiter_spec_delay(). `random` is not
 * used without jitter. */
int64_t wq__spec_delay(const wq_limiter_spec *spec, uint32_t failures,
                       uint64_t random);

/* Copy these parts of `from`. */
void wq__spec_copy(wq_limiter_spec *to, const wq_limiter_spec *from,
                   unsigned parts);

/* Check the fields of the parts exponential, fast-slow and max wait. WQ_EINVAL:
 * the sentence names the field, after `where` ("wq_limiter_spec."). */
wq_err wq__spec_check(const wq_limiter_spec *spec, const char *where);

/* Make `whole` the longest delay of itself and of `part`. Returns NULL; or, if
 * no spec describes that, the reason: a static string. */
const char *wq__spec_join(wq_limiter_spec *whole, const wq_limiter_spec *part);

/* No delay is longer than max_ns. */
void wq__spec_cap(wq_limiter_spec *spec, int64_t max_ns);

/* Read and check the argument of the function `who`, and fill in defaults. */
wq_err wq__spec_read(const char *who, const wq_limiter_spec *from,
                     wq_limiter_spec *out);

#endif
