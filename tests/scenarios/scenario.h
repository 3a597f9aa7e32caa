/* SPDX-License-Identifier: MIT */
/* scenario.h: what are the parts of a scenario, and who carries them out?
 *
 * A scenario is a test that is written as steps in a text file; README.md
 * describes the language. read.c reads a file into scenarios, run.c carries out
 * one of them, steps_*.c hold the steps, config.c reads the config of the queue,
 * which comes from support/backend.h.
 */
#ifndef WQ_SCENARIO_H
#define WQ_SCENARIO_H

#include "support/wq_test.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include <wq/clock.h>
#include <wq/limiter.h>
#include <wq/wq.h>

#include "support/backend.h"
#include "support/probe.h"
#include "support/recorder.h"

/* ---- what a file says ---------------------------------------------------- */

enum { LINE_LEN = 512, WORDS = 64 };

/* A line, split into words. */
struct words {
    char   text[LINE_LEN];
    char  *at[WORDS];
    size_t n;
    size_t result; /* the word behind "->"; n: the line has no such part */
};

struct line {
    const char *text; /* without indentation and comment */
    int         number;
};

struct scenario {
    const char  *file;
    char         name[128]; /* the title, with '_' between words */
    struct line  queue;     /* the config; text is NULL: the default */
    struct line *lines;
    size_t       n;
};

/* The file that this program runs. */
extern const char scenario_file[];

/* Read a file. Ends the program with a message if it is not well-formed. */
struct scenario *read_scenarios(const char *path, size_t *n);

/* Split a line; `variable` (of `for`, or NULL) is replaced by `value`. Returns
 * what is wrong with the line, or NULL. */
const char *split(struct words *out, const char *text, const char *variable,
                  const char *value);

/* ---- what a word says ---------------------------------------------------- */

/* A duration: a sum like 1h+5ms-1ns or forever-1ns, or "min". */
bool read_duration(const char *word, int64_t *out);
bool read_number(const char *word, int64_t *out);

/* The index of the name that `word` is, without regard to `prefix`; -1: none. */
int find_name(const char *const *names, size_t n, const char *word);

/* The keys that words stand for: a word with {1..5} stands for five keys. */
struct keys {
    char *const *words;
    size_t       n;
    long         next; /* of the range in words[0] */
    bool         in_range;
    char         bytes[LINE_LEN];
    wq_key       key;
};

struct keys keys_of(char *const *words, size_t n);
/* The next key is in k->key; false: there are no more. */
bool next_key(struct keys *k);

/* Write the bytes of a key as a word. Returns the new length of `out`. */
size_t put_key(char *out, size_t size, size_t len, wq_key key);

/* ---- a scenario that runs ------------------------------------------------ */

struct loan {
    char    *name;  /* the key, as a word */
    wq_item *item;  /* also after its done: it must be refused then */
    uint64_t fence; /* of the last hand-out */
};

struct run {
    const struct scenario *scenario;
    wq_clock              *clock;
    wq_queue              *q;
    bool                   is_destroyed; /* by a step; q is not valid then */
    bool                   lost_counts;  /* those of a handle that is gone */
    const char            *config;       /* the line "queue ..." of q */
    const char            *variable, *value; /* of `for`, or NULL */
    wq_limiter            *limiter;  /* of the queue; NULL: the default one */
    struct probe           probe;    /* calls of limiter=probe:DELAY */
    struct recorder        recorder; /* of a queue with a sink */
    size_t                 reported[3]; /* durations that a step has compared */

    pthread_mutex_t lock;  /* for what follows */
    wq_queue       *other; /* a second handle; NULL: not open */
    struct loan    *loans;
    size_t          loans_n;
    char            dropped[1024]; /* words "KEY:ERROR:RETRIES" */
};

/* A step that is being carried out. */
struct call {
    struct run  *run;
    wq_queue    *q;        /* the handle that the step uses */
    struct words words;    /* without names of threads, and "other" */
    bool         may_wait; /* it has a thread of its own */
    bool         failed;   /* the result is an error, or does not fit */
    char         result[4096];
};

/* The config that `words` describe, from words->at[first] on. The caller owns
 * its limiter. Returns what is wrong with them, or NULL. */
const char *read_config(struct run *run, const struct words *words,
                        size_t first, wq_config *out);

/* Carry out a step. */
void do_step(struct call *c);
bool is_step(const char *word);

#endif
