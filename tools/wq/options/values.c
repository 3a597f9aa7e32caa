/* SPDX-License-Identifier: MIT */
/* values.c: what does the value of an option mean? */
#include "options/values.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Reads an unsigned number at *text and moves on. strtod() alone would also
 * accept "inf", "nan", "0x1p3" and blanks. */
static bool
read_real(const char **text, double *out)
{
    const size_t digits = strspn(*text, "0123456789.");
    char        *end;

    if (!digits || (digits == 1 && **text == '.'))
        return false;
    *out = strtod(*text, &end);
    if (end != *text + digits || !isfinite(*out))
        return false;
    *text = end;
    return true;
}

static bool
read_natural(const char **text, int64_t high, int64_t *out)
{
    char *end;

    if (!isdigit((unsigned char)**text))
        return false;
    errno = 0;
    const intmax_t n = strtoimax(*text, &end, 10);
    if (errno || n > high)
        return false;
    *text = end;
    *out = n;
    return true;
}

bool
value_number(const char *text, int64_t low, int64_t high, int64_t *out)
{
    const bool negative = *text == '-';
    int64_t    n;

    text += negative;
    if (!read_natural(&text, INT64_MAX, &n) || *text)
        return false;
    if (negative)
        n = -n;
    if (n < low || n > high)
        return false;
    *out = n;
    return true;
}

/* ------------------------------------------------------------ durations -- */

/* Longest names first where one begins another. */
static const struct unit {
    const char *name;
    double      ns;
} units[] = {
    {"ns", 1},   {"us", 1e3},   {"ms", 1e6},        {"s", 1e9},
    {"m", 60e9}, {"h", 3600e9}, {"d", 24 * 3600e9},
};

/* Reads a unit at *text and moves on. NULL: there is none. */
static const struct unit *
read_unit(const char **text)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const size_t len = strlen(units[i].name);
        if (strncmp(*text, units[i].name, len) == 0 &&
            !isalpha((unsigned char)(*text)[len])) {
            *text += len;
            return &units[i];
        }
    }
    return NULL;
}

bool
value_duration(const char *text, int64_t *out_ns)
{
    double      sum = 0, n;
    const char *begin = text;

    do {
        if (!read_real(&text, &n))
            return false;
        const struct unit *unit = read_unit(&text);
        if (unit)
            sum += n * unit->ns;
        else if (strspn(begin, "0123456789.") == strlen(begin))
            sum = n * 1e9; /* a plain number is seconds */
        else
            return false;
    } while (*text);
    if (sum >= 9.2e18) /* about 292 years */
        return false;
    *out_ns = llround(sum);
    return true;
}

/* ------------------------------------------------------ rate and backoff -- */

bool
value_rate(const char *text, void *out)
{
    struct rate rate = {.burst = 1};
    double      per = 1;

    if (!read_real(&text, &rate.per_second))
        return false;
    if (*text == '/') {
        static const char   names[] = "smhd";
        static const double seconds[] = {1, 60, 3600, 86400};
        const char         *name = text[1] ? strchr(names, text[1]) : NULL;
        if (!name)
            return false;
        per = seconds[name - names];
        text += 2;
    }
    if (*text == ':') {
        text++;
        if (!read_natural(&text, INT64_MAX, &rate.burst) || !rate.burst)
            return false;
    }
    rate.per_second /= per;
    if (*text || !(rate.per_second > 0))
        return false;
    *(struct rate *)out = rate;
    return true;
}

bool
value_backoff(const char *text, void *out)
{
    struct backoff how = *(struct backoff *)out;
    char           copy[128];
    char          *rest = copy;

    const size_t len = strlen(text);
    if (len >= sizeof copy)
        return false;
    (void)memcpy(copy, text, len + 1);
    const char *base = strsep(&rest, ",");
    const char *max = strsep(&rest, ",");
    if (!value_duration(base, &how.base_ns))
        return false;
    if (max && !value_duration(max, &how.max_ns))
        return false;
    if (rest) {
        const char *factor = rest;
        if (!read_real(&factor, &how.factor) || *factor)
            return false;
    }
    if (!max && how.max_ns < how.base_ns)
        how.max_ns = how.base_ns; /* only the default was too small */
    if (how.max_ns < how.base_ns || how.factor < 1)
        return false;
    *(struct backoff *)out = how;
    return true;
}

/* ------------------------------------------------------- load and memory -- */

bool
value_load(const char *text, void *out)
{
    double load;

    if (!read_real(&text, &load) || !(load > 0))
        return false;
    if (strcmp(text, "%") == 0)
        load *= (double)sysconf(_SC_NPROCESSORS_ONLN) / 100;
    else if (*text)
        return false;
    *(double *)out = load;
    return true;
}

bool
value_size(const char *text, void *out)
{
    static const char letters[] = "KMGT";
    double            size;

    if (!read_real(&text, &size))
        return false;
    if (*text) {
        const char *letter = strchr(letters, toupper((unsigned char)*text));
        if (!letter || text[1])
            return false;
        size = ldexp(size, 10 * (int)(letter - letters + 1));
    }
    if (size < 1 || size >= 9.2e18)
        return false;
    *(int64_t *)out = (int64_t)size;
    return true;
}

/* ------------------------------------------------------------------ halt -- */

/* Is `word` at *text, followed by `end`? Then moves on behind both. */
static bool
read_word(const char **text, const char *word, char end)
{
    const size_t len = strlen(word);

    if (strncmp(*text, word, len) != 0 || (*text)[len] != end)
        return false;
    *text += len + 1;
    return true;
}

bool
value_halt(const char *text, void *out)
{
    struct halt halt = {.when = HALT_NEVER};

    if (strcmp(text, "never") == 0) {
        *(struct halt *)out = halt;
        return true;
    }
    if (read_word(&text, "now", ','))
        halt.when = HALT_NOW;
    else if (read_word(&text, "soon", ','))
        halt.when = HALT_SOON;
    else
        return false;
    if (read_word(&text, "fail", '='))
        halt.what = HALT_FAIL;
    else if (read_word(&text, "success", '='))
        halt.what = HALT_SUCCESS;
    else if (read_word(&text, "done", '='))
        halt.what = HALT_DONE;
    else
        return false;

    int64_t     n;
    const char *whole = text;
    if (read_natural(&whole, INT64_MAX, &n) && !*whole && n > 0)
        halt.count = (uint64_t)n;
    else if (!read_real(&text, &halt.percent) || strcmp(text, "%") != 0 ||
             halt.percent <= 0 || halt.percent > 100)
        return false;
    *(struct halt *)out = halt;
    return true;
}

/* -------------------------------------------------------- signals, codes -- */

/* The names of kill(1), without "SIG". glibc has sigabbrev_np() only since 2.32,
 * musl has nothing like it. */
static const struct {
    int  number;
    char name[8];
} signals[] = {
    {SIGHUP, "HUP"},       {SIGINT, "INT"},       {SIGQUIT, "QUIT"},
    {SIGILL, "ILL"},       {SIGTRAP, "TRAP"},     {SIGABRT, "ABRT"},
    {SIGBUS, "BUS"},       {SIGFPE, "FPE"},       {SIGKILL, "KILL"},
    {SIGUSR1, "USR1"},     {SIGSEGV, "SEGV"},     {SIGUSR2, "USR2"},
    {SIGPIPE, "PIPE"},     {SIGALRM, "ALRM"},     {SIGTERM, "TERM"},
    {SIGCHLD, "CHLD"},     {SIGCONT, "CONT"},     {SIGSTOP, "STOP"},
    {SIGTSTP, "TSTP"},     {SIGTTIN, "TTIN"},     {SIGTTOU, "TTOU"},
    {SIGURG, "URG"},       {SIGXCPU, "XCPU"},     {SIGXFSZ, "XFSZ"},
    {SIGPROF, "PROF"},     {SIGVTALRM, "VTALRM"}, {SIGWINCH, "WINCH"},
    {SIGPOLL, "POLL"},     {SIGPWR, "PWR"},       {SIGSYS, "SYS"},
#ifdef SIGSTKFLT /* not on every architecture */
    {SIGSTKFLT, "STKFLT"},
#endif
};
enum { SIGNALS = sizeof signals / sizeof *signals };

bool
value_signal(const char *text, void *out)
{
    int64_t n;

    if (value_number(text, 1, SIGRTMAX, &n)) {
        *(int *)out = (int)n;
        return true;
    }
    if (strncasecmp(text, "SIG", 3) == 0)
        text += 3;
    for (size_t i = 0; i < SIGNALS; i++) {
        if (strcasecmp(signals[i].name, text) == 0) {
            *(int *)out = signals[i].number;
            return true;
        }
    }
    return false;
}

const char *
value_signal_name(int number)
{
    static char text[16];

    for (size_t i = 0; i < SIGNALS; i++)
        if (signals[i].number == number)
            return signals[i].name;
    (void)snprintf(text, sizeof text, "%d", number);
    return text;
}

bool
value_codes(const char *text, void *out)
{
    struct codes codes = {{false}};

    do {
        int64_t low, high;
        if (!read_natural(&text, 255, &low))
            return false;
        high = low;
        if (*text == '-') {
            text++;
            if (!read_natural(&text, 255, &high))
                return false;
        }
        for (int64_t i = low; i <= high; i++)
            codes.has[i] = true;
        if (low > high || low == 0)
            return false;
    } while (*text == ',' && *++text);
    if (*text)
        return false;
    *(struct codes *)out = codes;
    return true;
}

/* ------------------------------------------------------------- delimiter -- */

/* \xHH and \NNN, after the backslash. */
static bool
read_code(const char *text, int *out)
{
    const int base = *text == 'x' ? 16 : 8;
    char     *end;

    text += *text == 'x';
    if (!isxdigit((unsigned char)*text) || strlen(text) > 3)
        return false;
    const unsigned long code = strtoul(text, &end, base);
    if (*end || code > 255)
        return false;
    *out = (int)code;
    return true;
}

bool
value_delimiter(const char *text, void *out)
{
    static const char names[] = "abfnrtv\\";
    static const char means[] = "\a\b\f\n\r\t\v\\";

    if (strlen(text) == 1) {
        *(int *)out = (unsigned char)*text;
        return true;
    }
    if (*text != '\\')
        return false;
    const char *name = strchr(names, text[1]);
    if (name && text[1] && !text[2]) {
        *(int *)out = (unsigned char)means[name - names];
        return true;
    }
    return read_code(text + 1, out);
}
