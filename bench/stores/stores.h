/* SPDX-License-Identifier: MIT */
/* stores.h: what do the benchmarks of shared queues have in common?
 *
 * bench_sqlite and bench_redis consist of parts. A part with rounds has two
 * functions: one measures a round, one prints the medians of all rounds. The
 * other parts measure and print at once. Each of them compares what it found
 * with what is demanded (demands.c).
 */
#ifndef WQ_BENCH_STORES_H
#define WQ_BENCH_STORES_H

#include <stdbool.h>
#include <stddef.h>

#include <wq/wq.h>

enum { MOST_ROUNDS = 101, THREAD_COUNTS = 3 };

/* 1, 8 and 64. */
extern const size_t thread_counts[THREAD_COUNTS];

/* ---- measure.c ------------------------------------------------------------ */

/* Measure for a short time only. */
extern bool bench_is_quick;

/* How long a measurement takes that takes as long as it is given. */
double span_ns(void);
/* `n`; a fiftieth of it with --quick. */
size_t scaled(size_t n);

/* Processor time of this process so far, of all its threads. */
double cpu_ns(void);

/* Exit with the library's own words unless `err` is WQ_OK. */
void must_ok(wq_err err, const char *what);

/* Add a key of one's own, take any, and finish it. */
struct member;
void cycle_with_get(struct member *m, wq_key key);  /* three calls */
void cycle_with_next(struct member *m, wq_key key); /* two */

/* What the figures depend on. */
void print_machine(const char *when, const char *store, const char *version);

/* A process that waits for a key on `q`; shuts it down. */
void print_idle(wq_queue *q);

struct part {
    const char *name;
    void (*measure)(size_t round); /* NULL: print() measures, too */
    void (*print)(size_t rounds);
};

/* Is each of the names in `only`, "NAME,NAME", that of a part? If not, says so.
 * NULL: there is none. */
bool parts_exist(const struct part *parts, size_t n, const char *only);

/* Parts with rounds take turns; then the others follow one by one. `only`: those
 * with these names; NULL: all. */
void parts_run(const struct part *parts, size_t n, const char *only,
               size_t rounds);

/* ---- demands.c ------------------------------------------------------------ */

void demand_at_most(double limit, double reached, const char *unit,
                    const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void demand_at_least(double limit, double reached, const char *unit,
                     const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Print all of them; false: one was not reached. */
bool demands_print(void);

/* ---- peer.c: other queues -------------------------------------------------- */

struct peer {
    const char *name, *mode;
    size_t      threads;
    const char *program; /* NULL: not available */
    double      per_second[MOST_ROUNDS], cpu_us[MOST_ROUNDS];
};

/* Call the program with mode, number of threads, milliseconds and `where`; it
 * prints the number of cycles, and the seconds of wall and of processor time
 * that they took. If it fails, the peer is not available from then on. */
void peer_measure(struct peer *p, size_t round, const char *where);

/* Print a row of the table of peers. Returns the median of keys/s; 0: the peer
 * is not available. */
double peer_print(struct peer *p, size_t rounds);

#endif
