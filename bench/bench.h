/* SPDX-License-Identifier: MIT */
/* bench.h: what must a queue offer to be measured here?
 *
 * One program a side: the rows (rows/), which are the same for all, and the
 * verbs of one queue (sides/). The indirect calls cost every side the same. A
 * program runs one row and prints what it measured, a line "name value" each;
 * it exits 3 if its side has no such thing. driver/ runs them in turn.
 */
#ifndef WQ_BENCH_H
#define WQ_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include <wq/wq.h>

enum { KEY_LEN = 31, BATCH = 32, POOL_THREADS = 8 };

struct side {
    const char *version; /* "name number"; NULL: it has none of its own */
    const char *only; /* its rows, with a space before and after each; NULL: all
                         that its verbs allow */
    void *(*create)(void);
    void (*add)(void *q, wq_key key);
    bool (*get)(void *q, void **item); /* blocks; false: shut down and empty */
    void (*done)(void *q, void *item);
    wq_key (*key)(const void *item); /* the bytes are valid until done */
    void (*shutdown)(void *q);
    void (*destroy)(void *q);

    /* What not every queue has. NULL: this one does not. */

    void *(*create_metered)(void); /* with metrics on */
    void (*add_priority)(void *q, wq_key key, int priority);
    void (*add_after)(void *q, wq_key key, int64_t delay_ns);
    bool (*next)(void *q, void **item); /* done of *item, if any, and get that
                                           does not block */
    void (*add_batch)(void *q, const wq_key *keys); /* BATCH of them each */
    void (*get_batch)(void *q, void **items);
    void (*done_batch)(void *q, void **items);
    /* A queue whose limiter lets every key wait for a nanosecond. */
    void *(*create_limited)(void);
    void (*add_rate_limited)(void *q, wq_key key);
    void (*forget)(void *q, wq_key key);
    /* A limiter alone: 5 ms, doubled for each failure, at most 1000 s. */
    void *(*limiter)(void);
    int64_t (*limiter_when)(void *limiter, wq_key key);
    void (*limiter_forget)(void *limiter, wq_key key);
    void (*limiter_destroy)(void *limiter);
    /* A pool of POOL_THREADS that do nothing; drain shuts the queue down, and
     * returns how many keys were worked on. */
    void *(*pool)(void *q);
    size_t (*pool_drain)(void *pool);
    /* Print what features cost, in so many rounds. */
    void (*features)(size_t rounds);
};

/* The side this program measures. */
extern const struct side bench_side;

/* One thing to measure. */
struct row {
    const char *name;
    void (*run)(const struct side *s, size_t n);
    size_t n; /* how many keys, or threads */
};

/* The rows of each file in rows/; the last one has no name. */
extern const struct row rows_one_thread[], rows_crowds[], rows_waiting[],
    rows_limiters[], rows_memory[];

/* `n`, or less of it if the program was only asked to show that it works. */
size_t bench_scaled(size_t n);

/* Key number `i`: all different, of the same length. bench_make_keys() comes
 * first; the bytes of bench_key() stay, and a NUL follows them. */
void   bench_make_keys(size_t n);
wq_key bench_key(size_t i);
void   bench_write_key(char text[KEY_LEN + 1], size_t i);
/* Which number has it? */
size_t bench_key_number(wq_key key);

double bench_now_ns(void);
void   bench_sleep_ns(int64_t ns);

/* Numbers that are random enough, and the same on every side. */
uint64_t bench_random(uint64_t *state);

/* Print a figure. */
void bench_say(const char *name, double value);
/* Print p50, p99 and max of `n` times; sorts them. */
void bench_say_spread(double *ns, size_t n);

/* End here, with 3, unless the side has what a row needs. */
void bench_need(bool has);

/* No side may fail: a figure from a queue that refused work is worthless. */
void must(bool ok, const char *what);

/* wq's; see sides/features.c. */
void bench_features(size_t rounds);

#endif
