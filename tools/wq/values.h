/* SPDX-License-Identifier: MIT */
/* values.h: what does the text behind an option mean?
 *
 * Every function reads the whole text. It returns true and fills in *out, or
 * returns false and leaves it alone; what is accepted is said by the text that
 * values_accepted() has for the kind, for messages and for --help.
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
    double   percent; /* so many of all keys that were settled */
};

/* How long failed keys wait. */
struct backoff {
    int64_t base_ns; /* after the first failure */
    int64_t max_ns;  /* never longer */
    double  factor;  /* so many times longer after each further one; >= 1 */
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

/* "200ms", "5s", "1h30m", "1.5" (seconds); units ns us ms s m h d. */
bool value_duration(const char *text, int64_t *out_ns);
/* "10/s", "100/m:20", "5000/h", "10" (a second); the burst is 1 if not said. */
bool value_rate(const char *text, struct rate *out);
/* "BASE[,MAX[,FACTOR]]"; what is not said stays as it is in *out. */
bool value_backoff(const char *text, struct backoff *out);
/* "never" or "{now|soon},{fail|success|done}={N|P%}". */
bool value_halt(const char *text, struct halt *out);
/* "TERM", "SIGTERM" or "15". */
bool value_signal(const char *text, int *out);
/* The name without "SIG": "TERM"; or the number. In a buffer of its own. */
const char *value_signal_name(int number);
/* "65,66,70-78". */
bool value_codes(const char *text, struct codes *out);
/* A number from `low` to `high`. */
bool value_number(const char *text, int64_t low, int64_t high, int64_t *out);
/* One character, or one of the escapes \n \t \r \0 \\ \xHH \NNN (octal). */
bool value_delimiter(const char *text, char *out);
/* A length of time as people write it: "1h30m", "2.5s", "350ms". Writes at
 * most `size` bytes to `text`, and returns it. */
char *value_say_duration(int64_t ns, char *text, size_t size);

#endif
