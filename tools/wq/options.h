/* SPDX-License-Identifier: MIT */
/* options.h: what was asked for on the command line?
 *
 * One table (options.c) has a line for each option; parsing, --help and the
 * completions are made from it.
 */
#ifndef WQ_TOOL_OPTIONS_H
#define WQ_TOOL_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "values.h"

/* Exit statuses: those of xargs where it has one, else of timeout and env. */
enum status {
    STATUS_OK = 0,
    STATUS_FAILED = 123,     /* at least one key failed for good */
    STATUS_STOPPED = 124,    /* halt, 255, drain time-out: keys are left */
    STATUS_ERROR = 125,      /* bad usage, or wq itself failed */
    STATUS_CANNOT_RUN = 126, /* COMMAND cannot be executed */
    STATUS_NOT_FOUND = 127,  /* COMMAND is not there */
};

/* How much of a run's output is kept together. */
enum grouping {
    GROUP_RUN,  /* all of it; stdout first, then stderr */
    GROUP_LINE, /* a line */
    GROUP_NONE, /* children write by themselves */
};

enum show { SHOW_AUTO, SHOW_ALWAYS, SHOW_NEVER };

enum resume {
    RESUME_NO,
    RESUME_ALL,    /* skip keys the joblog has, well or badly ended */
    RESUME_FAILED, /* skip only those that ended well */
};

#define RETRIES_FOREVER UINT_MAX

struct options {
    /* Input. */
    char         delimiter; /* ends a key; '\n' */
    bool         jsonl;     /* a line is {"key":..., "after":..., ...} */
    const char **files;     /* "-": stdin; none and no list: stdin */
    size_t       n_files;   /* in `files` */
    const char  *list;      /* a shell command that prints keys; NULL: none */
    int64_t      resync_ns; /* run it again after so long; 0: once */
    bool         follow;    /* do not exit at the end of input */

    /* Running. */
    unsigned    slots;         /* runs at the same time; at least 1 */
    const char *replace;       /* what in COMMAND stands for the key: "{}" */
    int64_t     timeout_ns;    /* of a run; 0: none */
    int64_t     kill_after_ns; /* from stop_signal to SIGKILL; 0: at once */
    int         stop_signal;   /* SIGTERM */
    const char *env_key;       /* name of the variable with the key: WQ_KEY */
    bool        verbose;       /* say each command before it is run */
    bool        dry_run;       /* say it, and do not run it */

    /* Queue. */
    int64_t     debounce_ns;     /* 0: none */
    int64_t     debounce_max_ns; /* 0: no limit */
    int64_t     after_ns;        /* each key waits so long */
    int         priority;        /* of keys that do not say theirs */
    const char *name;            /* of the queue: WQ_QUEUE, metrics; "run" */

    /* Retry. */
    unsigned       retries;  /* or RETRIES_FOREVER */
    struct backoff backoff;  /* 1s, 5m, 2 */
    struct codes   no_retry; /* exit codes that are for good */

    struct rate rate; /* of starts */

    /* Ending. */
    struct halt halt;
    int64_t     drain_timeout_ns; /* 0: none */
    const char *pending_file;     /* NULL: none */

    /* Output. */
    enum grouping grouping;
    bool          tagged;    /* --tag was given */
    const char   *tag;       /* put before each line; `replace` in it is the
                               key. NULL: nothing. "--tag" alone: "{}\t" */
    char         *tag_text;  /* owned: the tag, where it had to be made */
    const char   *results;   /* directory; NULL: none */
    const char   *joblog;    /* file; NULL: none */
    bool          json;      /* write events */
    const char   *json_file; /* to this file; NULL: to stdout */
    enum show     progress;
    bool          quiet;   /* no progress, no closing line, no chatter */
    bool          summary; /* the closing line even so */

    enum resume resume;

    const char *listen; /* "127.0.0.1:PORT" or "unix:PATH"; NULL: no */

    char **command; /* ends with NULL; at least one element */
};

/* What to do after parsing. */
enum asked {
    ASKED_RUN,
    ASKED_NOTHING, /* help or the like was printed: exit with 0 */
    ASKED_WRONGLY, /* told on stderr: exit with STATUS_ERROR */
};

/* Read `wq run` and its options: argv[0] is "run". Fills in all of *out, which
 * points into argv; options_fini() frees what it had to allocate. */
enum asked options_parse(struct options *out, int argc, char **argv);
void       options_fini(struct options *options);

/* Print what `wq run --help` says. */
void options_help(FILE *to);
/* Print the completion for a shell; false: it is none of bash, zsh, fish. */
bool options_completion(FILE *to, const char *shell);

#endif
