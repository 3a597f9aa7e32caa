/* SPDX-License-Identifier: MIT */
/* values.h: what does the value of an option mean?
 *
 * Every function reads the whole text. It returns true and fills in *out, or
 * returns false and leaves *out unchanged.
 */
#ifndef WQ_TOOL_VALUES_H
#define WQ_TOOL_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* When to stop early. */
struct halt {
    enum { HALT_NEVER, HALT_SOON, HALT_NOW } when; /* soon: let runs finish */
    enum { HALT_FAIL, HALT_SUCCESS, HALT_DONE } what; /* which keys count */
    uint64_t count;   /* so many of them; 0: see percent */
    double   percent; /* so many of all settled keys */
};

/* How long failed keys wait. */
struct backoff {
    int64_t base_ns; /* after the first failure */
    int64_t max_ns;  /* the longest */
    double  factor;  /* of the delay after each further failure; >= 1 */
};

/* How many runs may start. */
struct rate {
    double  per_second; /* 0: any number */
    int64_t burst;      /* so many at once */
};

/* A set of exit codes. */
struct codes {
    bool has[256];
};

/* Readers for the table of options. */
typedef bool value_reader(const char *text, void *out);

/* struct rate: "10/s", "100/m:20", "5000/h", "10" (a second); burst: 1. */
value_reader value_rate;
/* struct backoff: "BASE[,MAX[,FACTOR]]"; missing parts keep their value. */
value_reader value_backoff;
/* struct halt: "never" or "{now|soon},{fail|success|done}={N|P%}". */
value_reader value_halt;
/* int: "TERM", "SIGTERM" or "15". */
value_reader value_signal;
/* struct codes: "65,66,70-78". */
value_reader value_codes;
/* double: "2.5", or "150%" of the number of CPUs; above 0. */
value_reader value_load;
/* int64_t: "500M"; bytes, or K, M, G, T: powers of 1024. Above 0. */
value_reader value_size;
/* int: one character, or an escape \n \t \r \0 \\ \xHH \NNN (octal). */
value_reader value_delimiter;

/* "200ms", "5s", "1h30m", "1.5" (seconds); units ns us ms s m h d. */
bool value_duration(const char *text, int64_t *out_ns);
/* A number from `low` to `high`. */
bool value_number(const char *text, int64_t low, int64_t high, int64_t *out);
/* The name of a signal without "SIG": "TERM"; or its number, in a static
 * buffer. */
const char *value_signal_name(int number);

#endif
