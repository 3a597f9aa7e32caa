/* SPDX-License-Identifier: MIT */
/* fuzz_values.c: which texts are durations, rates, sizes and the like?
 *
 * The input is one text, which every reader of values gets. A reader that
 * refuses leaves the value as it was; what it accepts is within the limits that
 * options/values.h states; and what can be written down again is read as the
 * same value. The readers of durations in options and in URLs agree, but that in
 * URLs is exact.
 */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "options/values.h"
#include "shared/url.h"

/* The largest whole number up to which a double is exact. */
#define EXACT (INT64_C(1) << 53)

/* Call `read` for the text; `value` has `len` bytes. */
static bool
reads(value_reader *read, const char *text, void *value, size_t len)
{
    unsigned char before[sizeof(struct codes)];

    (void)memcpy(before, value, len);
    if (read(text, value))
        return true;
    if (memcmp(before, value, len) != 0)
        fuzz_fail("'%s' is refused, and changes the value", text);
    return false;
}

#define READS(read, text, value) reads(read, text, &(value), sizeof(value))

static void
must(bool holds, const char *what, const char *text)
{
    if (!holds)
        fuzz_fail("%s: '%s'", what, text);
}

static void
try_duration(const char *text)
{
    int64_t ns = -7, again = -7, url = -7;
    char    written[32];
    bool    accepted = value_duration(text, &ns);

    must(accepted ? ns >= 0 : ns == -7, "duration", text);
    if (accepted && ns < EXACT) {
        (void)snprintf(written, sizeof written, "%" PRId64 "ns", ns);
        must(value_duration(written, &again) && again == ns,
             "duration differs when it is written as ns", text);
    }
    must(wq__url_duration(text, &url) || url == -7,
         "duration that is refused, and changes the value", text);
    if (url != -7) {
        must(url > 0, "duration of a URL", text);
        must(accepted || url >= EXACT, "duration of a URL, not of an option",
             text);
        /* That of the option is a sum of doubles, rounded. */
        const double most = 1 + (double)strlen(text) * (double)url / EXACT;
        must(!accepted || fabs((double)url - (double)ns) <= most,
             "a duration that is another one in a URL", text);
    }
}

static void
try_rate(const char *text)
{
    struct rate    rate = {.per_second = -7, .burst = -7};
    struct backoff how = {.base_ns = 1, .max_ns = 2, .factor = 2};

    if (READS(value_rate, text, rate))
        must(rate.per_second > 0 && isfinite(rate.per_second) && rate.burst > 0,
             "rate", text);
    if (READS(value_backoff, text, how))
        must(how.base_ns >= 0 && how.max_ns >= how.base_ns && how.factor >= 1 &&
                 isfinite(how.factor),
             "backoff", text);
}

static void
try_amounts(const char *text)
{
    double        load = -7;
    int64_t       size = -7, number;
    unsigned long count;

    if (READS(value_load, text, load))
        must(load > 0 && isfinite(load), "load", text);
    if (READS(value_size, text, size))
        must(size > 0, "size", text);
    if (value_number(text, -5, 1000, &number))
        must(number >= -5 && number <= 1000, "number", text);
    if (wq__url_count(text, 1000, &count))
        must(count <= 1000 && value_number(text, 0, 1000, &number) &&
                 (unsigned long)number == count,
             "count", text);
}

static void
try_halt(const char *text)
{
    struct halt halt;

    (void)memset(&halt, 7, sizeof halt);
    if (!READS(value_halt, text, halt) || halt.when == HALT_NEVER)
        return;
    must(halt.count > 0 || (halt.percent > 0 && halt.percent <= 100), "halt",
         text);
}

static void
try_codes(const char *text)
{
    struct codes codes;
    int          number = -7, again = -7, byte = -7;

    (void)memset(&codes, true, sizeof codes);
    if (READS(value_codes, text, codes))
        must(!codes.has[0], "exit codes", text);
    if (READS(value_signal, text, number))
        must(number > 0 && number <= SIGRTMAX &&
                 value_signal(value_signal_name(number), &again) &&
                 again == number,
             "signal", text);
    if (READS(value_delimiter, text, byte))
        must(byte >= 0 && byte <= 255, "delimiter", text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = fuzz_text(data, len);
    char *url = fuzz_text(data, len);

    try_duration(text);
    try_rate(text);
    try_amounts(text);
    try_halt(text);
    try_codes(text);
    if (wq__url_decode(url))
        must(strlen(url) <= strlen(text), "%XX", text);
    free(url);
    free(text);
    return 0;
}
