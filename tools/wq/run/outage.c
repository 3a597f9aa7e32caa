/* SPDX-License-Identifier: MIT */
/* outage.c: what is reported of a store that does not answer? See outage.h. */
#include "run/outage.h"

#include <stdio.h>
#include <string.h>

#define REPEAT_NS INT64_C(60000000000)

static bool
is_recent(const struct outage *outage, size_t i, int64_t now_ns)
{
    return *outage->causes[i].text &&
           now_ns - outage->causes[i].at_ns < REPEAT_NS;
}

/* With all places taken by causes of the last minute, a further cause is not
 * reported: that bounds the messages, even if each call finds another cause. */
bool
outage_report(struct outage *outage, int64_t now_ns, const char *cause)
{
    char   text[OUTAGE_CAUSE];
    size_t place = OUTAGE_CAUSES;

    (void)snprintf(text, sizeof text, "%s", cause);
    for (size_t i = 0; i < OUTAGE_CAUSES; i++)
        if (!is_recent(outage, i, now_ns))
            place = i;
        else if (strcmp(outage->causes[i].text, text) == 0)
            return false;
    if (place == OUTAGE_CAUSES)
        return false;
    memcpy(outage->causes[place].text, text, sizeof text);
    outage->causes[place].at_ns = now_ns;
    outage->open = true;
    return true;
}

bool
outage_end(struct outage *outage)
{
    const bool was_open = outage->open;

    outage->open = false;
    return was_open;
}
