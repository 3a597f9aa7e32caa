/* SPDX-License-Identifier: MIT */
/* options.h: what does the command line say?
 *
 * verbs.c has one row for each verb, table.c one for each option; parsing
 * (options.c), --help (help.c) and shell completions (completion.c) are made
 * from them.
 */
#ifndef WQ_TOOL_OPTIONS_H
#define WQ_TOOL_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "options/regex.h"
#include "options/values.h"
#include "options/verbs.h"

/* Exit statuses: those of xargs where it has one, else of timeout and env. */
enum status {
    STATUS_OK = 0,
    STATUS_NONE = 1,         /* as grep and diff: no such key, no key in time,
                                problems found */
    STATUS_FAILED = 123,     /* at least one key failed for good */
    STATUS_STOPPED = 124,    /* halt, 255, drain timeout: keys are left */
    STATUS_ERROR = 125,      /* bad usage, or wq itself failed */
    STATUS_CANNOT_RUN = 126, /* COMMAND cannot be executed */
    STATUS_NOT_FOUND = 127,  /* COMMAND does not exist */
};

enum input_format { INPUT_TEXT, INPUT_JSONL };

/* How much of a run's output is kept together. */
enum grouping {
    GROUP_RUN,  /* all of it; stdout first, then stderr */
    GROUP_LINE, /* a line */
    GROUP_NONE, /* children write to our stdout and stderr */
};

enum show { SHOW_AUTO, SHOW_ALWAYS, SHOW_NEVER };

#define RETRIES_FOREVER UINT_MAX

/* What becomes of a key: wq done. */
enum ending {
    END_DONE,
    END_RETRY,
    END_BURY,
    END_BACK,
};

struct options {
    enum verb verb;

    /* Input. */
    int          delimiter; /* the byte that ends a key; '\n' */
    int          format;    /* enum input_format */
    const char **files;     /* "-": stdin; none and no list: stdin */
    size_t       n_files;   /* in `files` */
    const char  *list;      /* a shell command that prints keys; NULL: none */
    int64_t      resync_ns; /* interval at which it is run again; 0: once */
    bool         follow;    /* do not exit at the end of input */

    /* The key of a line. */
    struct regex key;        /* the key is its first group, or its match */
    unsigned     key_column; /* the key is this column; 0: no */
    const char  *key_const;  /* the key of every line; NULL: none */
    bool         mapped;     /* one of them was given */
    struct regex colsep;     /* separates columns */
    bool         by_blanks;  /* ... as it was not given; those at the start of a
                                line do not count */

    /* Running. */
    unsigned    slots;         /* runs at the same time; at least 1 */
    const char *replace;       /* the text in COMMAND that the key replaces */
    int64_t     timeout_ns;    /* of a run; 0: none */
    int64_t     kill_after_ns; /* from stop_signal to SIGKILL; 0: at once */
    int         stop_signal;   /* SIGTERM */
    const char *env_key;       /* name of the variable with the key: WQ_KEY */
    bool        verbose;       /* print each command before it is run; add,
                                  remove, retry: what became of each key */
    bool        dry_run;       /* print it, and do not run it */
    bool        no_key_arg;    /* do not append the key */
    double      load;          /* start nothing while it is higher; 0: any */
    int64_t     memfree;       /* ... while less bytes are available; 0: any */
    unsigned    max_args;      /* keys for one run of COMMAND; 1 */

    /* Queue. */
    int64_t      debounce_ns;     /* 0: none */
    int64_t      debounce_max_ns; /* 0: no limit */
    int64_t      after_ns;        /* delay of every key */
    int          priority;        /* of keys that the input gives none */
    const char  *name;            /* of the queue: WQ_NAME, metrics */
    char        *name_text;       /* owned: the name, if the URL has it */
    const char  *queue;           /* the URL; not relative. NULL: mem: */
    char        *queue_text;      /* owned: the URL, if it had to be built */
    bool         shared;          /* it is not in the memory of this process */
    bool         until_empty;     /* work: exit when no key is left */
    struct regex group_by;        /* the group of a key is its match */
    unsigned     group_max; /* keys of a group that run at a time; 0: any */
    bool         once;      /* do not run a key again that succeeded */
    bool         restart;   /* stop a run whose key is added again */

    /* Retry. */
    unsigned       retries;      /* or RETRIES_FOREVER */
    struct backoff backoff;      /* 1s, 5m, 2 */
    struct codes   no_retry;     /* exit codes that are not retried */
    bool           retry_on_add; /* an add ends the backoff of the key */

    struct rate rate; /* of starts */

    /* Ending. */
    struct halt halt;
    int64_t     drain_timeout_ns; /* 0: at once; -1: none */
    const char *pending_file;     /* NULL: none */
    bool        resume;           /* skip keys that the joblog records */
    bool        resume_failed; /* ... only those that succeeded; implies it */

    /* Output. */
    int         grouping;        /* enum grouping */
    int64_t     output_grace_ns; /* how long the output of a run is awaited
                                    after its end */
    bool        keep_order;      /* print output in the order of the input */
    bool        tagged;          /* --tag was given */
    const char *tag;       /* printed before each line; `replace` in it stands
                             for the key. NULL: nothing. "--tag" alone: "{}\t" */
    char       *tag_text;  /* owned: the tag, if it had to be built */
    const char *results;   /* directory; NULL: none */
    const char *joblog;    /* file; NULL: none */
    bool        json;      /* write events */
    const char *json_file; /* to this file; NULL: to stdout */
    int         progress;  /* enum show */
    bool        quiet;     /* no progress, no summary, no messages about keys */
    bool        summary;   /* print the summary even with `quiet` */
    const char *listen;    /* "127.0.0.1:PORT" or "unix:PATH"; NULL: no */

    /* Verbs of shared queues. */
    int64_t  wait_ns;  /* get, drain: at most so long; WQ_FOREVER */
    int64_t  again_ns; /* done: run the key again after this; -1: no */
    int      end;      /* done: enum ending */
    int      holder;   /* get, done: process id; 0: the parent */
    unsigned count;    /* get: at most so many keys; 1 */
    unsigned states;   /* list: enum wq_state, or'ed; 0: all */
    bool     null;     /* list, get: print keys only, ended by NUL */
    bool     all;      /* retry: all DEAD keys */

    /* All end with NULL. */
    char **argv;     /* what was parsed; [0] is the verb */
    char **command;  /* at least one element; NULL if the verb runs none */
    char **operands; /* of a verb that runs no COMMAND; else NULL */
};

/* What to do after parsing. */
enum action {
    ACTION_RUN,
    ACTION_EXIT,   /* help or the like was printed: exit with 0 */
    ACTION_REFUSE, /* reported on stderr: exit with STATUS_ERROR */
};

/* Read the options of a verb: argv[0] is the verb. Fills in all of *out, which
 * points into argv; options_fini() frees what was allocated. */
enum action options_parse(struct options *out, enum verb verb, int argc,
                          char **argv);
void        options_fini(struct options *options);

/* Overwrite what was parsed, since other users can read it in /proc: it may
 * contain a password. The URL of a shared queue is a copy and stays, and numbers;
 * do not use other texts. */
void options_blank(const struct options *options);

/* Print what `wq VERB --help` prints. */
void options_help(FILE *to, enum verb verb);
/* Print what `wq help` prints: the verbs. */
void options_help_all(FILE *to);
/* Print the completion for a shell; false: it is not bash, zsh or fish. */
bool options_completion(FILE *to, const char *shell);

#endif
