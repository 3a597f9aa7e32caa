/* SPDX-License-Identifier: MIT */
/* outage.h: what is reported of a store that does not answer?
 *
 * Each cause when it is new, and again after a minute, also if calls succeeded in
 * between: with a part of the queue away, they fail and succeed in turn. Once
 * after a report, that the store answers again.
 */
#ifndef WQ_TOOL_OUTAGE_H
#define WQ_TOOL_OUTAGE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    OUTAGE_CAUSES = 8,  /* different ones that are reported in a minute */
    OUTAGE_CAUSE = 256, /* bytes by which causes are told apart, and a NUL */
};

/* Zero is one. */
struct outage {
    struct {
        char    text[OUTAGE_CAUSE]; /* "": not used yet */
        int64_t at_ns;              /* when it was last reported */
    } causes[OUTAGE_CAUSES];
    bool open; /* a cause was reported, and not that the store answers again */
};

/* A call failed. Is its cause to be reported now? */
bool outage_report(struct outage *outage, int64_t now_ns, const char *cause);
/* A call was answered. Is that to be reported? */
bool outage_end(struct outage *outage);

#endif
