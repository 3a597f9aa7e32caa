/* SPDX-License-Identifier: MIT */
/* bench.h: what must a queue have to be measured here?
 *
 * There is one program per side: it consists of the rows (rows/), which are the
 * same for all, and the verbs of one queue (sides/). The indirect calls cost
 * every side the same. A program runs one row and prints what it measured, in
 * lines "name value"; it exits with 3 if its side does not have that row.
 * driver/ runs the programs in turn.
 */
#ifndef WQ_BENCH_H
#define WQ_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include <wq/wq.h>

enum { KEY_LEN = 31, BATCH = 32, POOL_THREADS = 8 };

struct side {
    const char *version; /* "name number"; NULL: wq's */
    const char *only; /* its rows, with a space before and after each; NULL: all
                         that its verbs allow */
    void *(*create)(void);
    void (*add)(void *q, wq_key key);
    bool (*get)(void *q, void **item); /* blocks; false: shut down and empty */
    void (*done)(void *q, void *item);
    wq_key (*key)(const void *item); /* the bytes are valid until done */
    void (*shutdown)(void *q);
    void (*destroy)(void *q);

    /* Optional verbs; NULL: the queue does not have it. */

    void *(*create_metered)(void); /* with metrics on */
    void (*add_priority)(void *q, wq_key key, int priority);
    void (*add_after)(void *q, wq_key key, int64_t delay_ns);
    bool (*next)(void *q, void **item); /* done of *item, if any, and a get
                                           that does not block */
    void (*add_batch)(void *q, const wq_key *keys); /* BATCH of them */
    void (*get_batch)(void *q, void **items);
    void (*done_batch)(void *q, void **items);
    /* 1 .. BATCH of them, blocks; 0: shut down and empty. */
    size_t (*get_some)(void *q, void **items);
    void (*done_some)(void *q, void **items, size_t n);
    /* A queue whose limiter delays every key by a nanosecond. */
    void *(*create_limited)(void);
    void (*add_rate_limited)(void *q, wq_key key);
    void (*forget)(void *q, wq_key key);
    /* A limiter alone: 5 ms, doubled for each failure, at most 1000 s. */
    void *(*limiter)(void);
    int64_t (*limiter_when)(void *limiter, wq_key key);
    void (*limiter_forget)(void *limiter, wq_key key);
    void (*limiter_destroy)(void *limiter);
    /* A pool of POOL_THREADS whose handler does nothing, or calls `work`; drain
     * shuts the queue down and returns the number of keys worked on. */
    void *(*pool)(void *q, void (*work)(void));
    size_t (*pool_drain)(void *pool);
    /* Print the cost of features, measured in so many rounds. */
    void (*features)(size_t rounds);
};

/* The first verbs of a side whose functions have these names. */
#define SIDE_VERBS .create = create, .add = add, .get = get, .done = done

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

/* `n`; a hundredth of it with --quick. */
size_t bench_scaled(size_t n);

/* Key number `i`; all keys are different and have the same length. Call
 * bench_make_keys() first. The bytes of bench_key() are never freed, and a NUL
 * follows them. */
void   bench_make_keys(size_t n);
void   bench_make_long_keys(size_t n, size_t len); /* of `len` bytes each */
wq_key bench_key(size_t i);
void   bench_write_key(char text[KEY_LEN + 1], size_t i);
/* The number of a key. */
size_t bench_key_number(wq_key key);

/* What a clock shows. */
double bench_clock_ns(clockid_t clock);
double bench_now_ns(void); /* CLOCK_MONOTONIC */
void   bench_sleep_ns(int64_t ns);

/* Pseudo-random numbers, the same on every side. */
uint64_t bench_random(uint64_t *state);

/* Print a figure. */
void bench_print(const char *name, double value);
/* Print p50, p99 and max of `n` times; sorts them. */
void bench_print_spread(double *ns, size_t n);

/* The median of `n` values; sorts them. */
double bench_median(double *values, size_t n);

/* Exit with 3 unless the side has what a row needs. */
void bench_need(bool has);

/* Exit with 1 unless `ok`: no figure of a queue that failed is valid. */
void must(bool ok, const char *what);

static inline void
bench_get_and_done(const struct side *s, void *q)
{
    void *item;
    must(s->get(q, &item), "get");
    s->done(q, item);
}

/* Make `keys` keys and a queue, print the ns per key that `time` returns, and
 * destroy the queue. */
void bench_print_timed(const struct side *s, void *(*create)(void), size_t keys,
                       double (*time)(const struct side *s, void *q,
                                      size_t keys));

/* The side wq has these; see sides/wq.c and sides/features.c. */
wq_queue *bench_create(const wq_config *config);
void      bench_features(size_t rounds);

#endif
