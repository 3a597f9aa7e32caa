/* SPDX-License-Identifier: MIT */
/* driver.h: what do the parts of wq_bench share?
 *
 *   catalogue   the sides, rows and demands
 *   options     the command line
 *   run         runs a side's program and reads its output
 *   figures     stores the figures; medians
 *   machine     the machine and the versions that were measured
 *   report      tables for people; json: for programs; plot: pictures
 */
#ifndef WQ_BENCH_DRIVER_H
#define WQ_BENCH_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { MOST_ROUNDS = 101, MOST_SIDES = 8, MOST_ROWS = 60, MOST_SHOWN = 3 };

/* ---- catalogue ---------------------------------------------------------- */

/* A queue that is measured. */
struct peer {
    const char *name;
    const char *program; /* in the directory of wq_bench */
    const char *arg;     /* argument before the row; NULL: none */
    const char *absent;  /* why the program may be missing */
};

enum group { ONE_THREAD, CROWDS, WAITING, LIMITERS, MEMORY, GROUPS };

/* What a row measures. */
enum kind { PER_KEY, TIMES, BYTES, PROCESSOR, LONGEST, KINDS };

struct row {
    const char *name; /* for wq_bench --rows */
    enum group  group;
    enum kind   kind;
    const char *title;
    const char *program; /* for the programs; NULL: `name` */
    int         cpus;    /* restrict it to so many processors; 0: all */
};

/* A figure that rows of one kind have. */
struct shown {
    const char *figure; /* as the programs print it */
    const char *suffix; /* to the row's title */
    const char *unit;   /* in the table */
    double      scale;  /* the table's unit in units of the program */
};

enum relation {
    AT_LEAST, /* theirs / ours */
    AT_MOST,  /* ours / theirs */
    NO_MORE,  /* ours alone */
};

/* A target for wq. */
struct demand {
    const char   *what;
    const char   *row, *figure;
    enum relation relation;
    double        bound;
    const char   *side; /* the side to compare with; NULL: client-go */
    const char   *base; /* that side's row; NULL: the same */
};

extern const struct peer   peers[];
extern const struct row    rows[];
extern const struct demand demands[];
extern const size_t        n_peers, n_rows, n_demands;

/* The i-th figure of a row; NULL: no more. */
const struct shown *shown_of(size_t row, size_t i);

const char *group_title(enum group g);
const char *group_file(enum group g); /* for its picture */

/* ---- options ------------------------------------------------------------ */

struct options {
    size_t      rounds;
    const char *rows;         /* a pattern; NULL: all */
    const char *sides;        /* names separated by commas; NULL: all */
    const char *json;         /* file to write; NULL: none */
    const char *plots;        /* directory to write to; NULL: none */
    bool        quick;        /* small counts, to show that it works */
    bool        features;     /* print the cost of features instead */
    char        command[400]; /* the arguments as text */
};

/* Exits with 2 on a usage error. */
struct options read_options(int argc, char **argv);
bool           wants_row(const struct options *o, const struct row *r);
bool           wants_peer(const struct options *o, const struct peer *p);

/* ---- run ---------------------------------------------------------------- */

enum ran { RAN, RAN_NOT, RAN_BADLY };

/* The path of a program, which is in the directory of this one. */
enum { MOST_PATH = 4000 };
void program_path(char path[MOST_PATH], const char *program);
bool is_there(const struct peer *p);

/* Run a program with up to three arguments (NULL ends them), on `cpus`
 * processors (0: all), and call `line` with the name and the value of each line
 * it prints. RAN_NOT: the program does not have that row. */
enum ran run_program(const char *program, const char *const args[3], int cpus,
                     void (*line)(void *ctx, const char *name,
                                  const char *value),
                     void *ctx);

/* ---- figures ------------------------------------------------------------ */

struct spread {
    size_t n; /* rounds; if 0, the rest is not valid */
    double median, least, most;
};

void          keep(size_t row, size_t shown, size_t peer, double value);
struct spread spread_of(size_t row, size_t shown, size_t peer);
double        figure_of(size_t row, size_t shown, size_t peer, size_t round);
/* The same by name. */
struct spread spread_at(const char *row, const char *figure, const char *side);

/* The next demand, from *at on, whose figures were measured; NULL: no more.
 * *ratio is what was reached, and *yes whether that is enough. */
const struct demand *next_demand(size_t *at, double *ratio, bool *yes);

/* ---- results ------------------------------------------------------------ */

void read_machine(void);
/* The i-th fact: name and value; NULL: no more. */
const char *machine_fact(size_t i, const char **value);

/* quiet.c: before and after all rounds; then the verdict, in one line. */
void measure_quiet(const struct options *o);
void print_quiet(FILE *f);

void report(FILE *f, const struct options *o, bool with_pictures);
bool write_json(const struct options *o);
bool write_plots(const struct options *o);

#endif
