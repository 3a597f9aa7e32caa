/* SPDX-License-Identifier: MIT */
/* spec.c: what a limiter does, as data; see spec.h. */
#include "limit/spec.h"

#include <float.h>
#include <inttypes.h>
#include <stddef.h>

#include "config/read.h"
#include "error/error.h"
#include "limit/defaults.h"
#include "limit/delay.h"

/* ---- delays -------------------------------------------------------------- */

int64_t
wq__spec_delay(const wq_limiter_spec *s, uint32_t failures, uint64_t random)
{
    int64_t longest = 0;

    if (s->parts & WQ_PART_EXPONENTIAL)
        longest = wq__delay_jitter(
            wq__delay_exponential(s->base_ns, s->max_ns, s->factor, failures),
            s->jitter, random);
    if (s->parts & WQ_PART_FAST_SLOW) {
        const int64_t its = failures < s->max_fast ? s->fast_ns : s->slow_ns;
        longest = its > longest ? its : longest;
    }
    return longest;
}

int64_t
wq_limiter_spec_delay(const wq_limiter_spec *spec, unsigned failures,
                      uint64_t random)
{
    wq_limiter_spec s = {.parts = 0};

    return wq__spec_read("wq_limiter_spec_delay", spec, &s)
               ? WQ_FOREVER
               : wq__spec_delay(&s, failures, random);
}

/* ---- combining ----------------------------------------------------------- */

void
wq__spec_copy(wq_limiter_spec *to, const wq_limiter_spec *from, unsigned parts)
{
    to->parts |= parts;
    if (parts & WQ_PART_EXPONENTIAL) {
        to->jitter = from->jitter;
        to->base_ns = from->base_ns;
        to->max_ns = from->max_ns;
        to->factor = from->factor;
        to->seed = from->seed;
        to->max_keys = from->max_keys;
        to->ttl_ns = from->ttl_ns;
    }
    if (parts & WQ_PART_FAST_SLOW) {
        to->fast_ns = from->fast_ns;
        to->slow_ns = from->slow_ns;
        to->max_fast = from->max_fast;
    }
    if (parts & WQ_PART_BUCKET) {
        to->rate = from->rate;
        to->burst = from->burst;
    }
    if (parts & WQ_PART_ITEM_BUCKET) {
        to->item_rate = from->item_rate;
        to->item_burst = from->item_burst;
    }
    if (parts & WQ_PART_MAX_WAIT)
        to->max_wait_ns = from->max_wait_ns;
}

/* Why can no spec describe a limiter that has one of these parts twice? */
static const char *
explain_twice(unsigned parts)
{
    if (parts & WQ_PART_EXPONENTIAL)
        return "two of its parts are exponential";
    if (parts & WQ_PART_FAST_SLOW)
        return "two of its parts are fast-slow";
    if (parts & WQ_PART_BUCKET)
        return "two of its parts are buckets";
    return "two of its parts are item buckets";
}

const char *
wq__spec_join(wq_limiter_spec *whole, const wq_limiter_spec *part)
{
    const unsigned max_wait = WQ_PART_MAX_WAIT;
    const unsigned twice = whole->parts & part->parts & ~max_wait;

    if (!(part->parts & ~max_wait))
        return NULL; /* its delay is 0 */
    if (twice)
        return explain_twice(twice);
    /* A maximum of all parts is one of the whole. */
    if (whole->parts && ((whole->parts ^ part->parts) & max_wait ||
                         whole->max_wait_ns != part->max_wait_ns))
        return "its parts have different maximum waits";
    wq__spec_copy(whole, part, part->parts);
    return NULL;
}

void
wq__spec_cap(wq_limiter_spec *s, int64_t max_ns)
{
    if (!(s->parts & WQ_PART_MAX_WAIT) || max_ns < s->max_wait_ns)
        s->max_wait_ns = max_ns;
    s->parts |= WQ_PART_MAX_WAIT;
}

/* ---- checking ------------------------------------------------------------ */

/* The times, none of which may be negative. */
static const struct {
    unsigned    part; /* which it belongs to */
    const char *name;
    size_t      at;
} times[] = {
#define TIME(part, name)                                                       \
    {                                                                          \
        part, #name, offsetof(wq_limiter_spec, name)                           \
    }
    TIME(WQ_PART_EXPONENTIAL, base_ns), TIME(WQ_PART_EXPONENTIAL, max_ns),
    TIME(WQ_PART_EXPONENTIAL, ttl_ns),  TIME(WQ_PART_FAST_SLOW, fast_ns),
    TIME(WQ_PART_FAST_SLOW, slow_ns),   TIME(WQ_PART_MAX_WAIT, max_wait_ns),
#undef TIME
};

wq_err
wq__spec_check(const wq_limiter_spec *s, const char *where)
{
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        const char   *field = (const char *)s + times[i].at;
        const int64_t ns = *(const int64_t *)(const void *)field;
        if (s->parts & times[i].part && ns < 0)
            return wq_fail(WQ_EINVAL, "%s%s is negative (%" PRId64 ")", where,
                           times[i].name, ns);
    }
    if (!(s->parts & WQ_PART_EXPONENTIAL))
        return WQ_OK;
    if ((int)s->jitter < WQ_JITTER_NONE || s->jitter > WQ_JITTER_EQUAL)
        return wq_fail(WQ_EINVAL, "%sjitter is %d: not a wq_jitter", where,
                       (int)s->jitter);
    if (!(s->factor >= 1 && s->factor <= DBL_MAX))
        return wq_fail(WQ_EINVAL,
                       "%sfactor is %g: must be finite and at least 1", where,
                       s->factor);
    return WQ_OK;
}

wq_err
wq__spec_read(const char *who, const wq_limiter_spec *from,
              wq_limiter_spec *out)
{
    const unsigned known = WQ_PART_EXPONENTIAL | WQ_PART_FAST_SLOW |
                           WQ_PART_BUCKET | WQ_PART_ITEM_BUCKET |
                           WQ_PART_MAX_WAIT;
    wq_limiter_spec s;

    if (!from)
        return wq_fail(WQ_EINVAL, "%s: spec is NULL", who);
    wq_err err = wq__read_sized(from, "wq_limiter_spec", NULL, sizeof s, &s);
    if (err)
        return err;
    if (s.parts & ~known)
        return wq_fail(WQ_EINVAL,
                       "wq_limiter_spec.parts is 0x%x: has bits that are not "
                       "in enum wq_limiter_part",
                       s.parts);
    *out = (wq_limiter_spec){.size = sizeof *out};
    wq__spec_copy(out, &s, s.parts);
    if (s.parts & WQ_PART_EXPONENTIAL && out->factor == 0)
        out->factor = WQ__DEFAULT_FACTOR;
    err = wq__spec_check(out, "wq_limiter_spec.");
    if (!err)
        err = wq__check_finite("wq_limiter_spec.rate", out->rate);
    if (!err)
        err = wq__check_finite("wq_limiter_spec.item_rate", out->item_rate);
    return err;
}
