/* SPDX-License-Identifier: MIT */
/* driver.h: what the parts of wq_bench share.
 *
 *   catalogue   which sides, rows and demands are there?
 *   options     what was asked for?
 *   run         run a side's program and read what it prints
 *   figures     keep what was measured; medians
 *   machine     where was it measured, and with what?
 *   report      tables, for people; json: the same for programs; plot: pictures
 */
#ifndef WQ_BENCH_DRIVER_H
#define WQ_BENCH_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { MOST_ROUNDS = 101, MOST_SIDES = 8, MOST_ROWS = 40, MOST_SHOWN = 3 };

/* ---- catalogue ---------------------------------------------------------- */

/* A queue that is measured. */
struct peer {
    const char *name;
    const char *program; /* beside wq_bench */
    const char *arg;     /* its first argument; NULL: none, the row comes */
    const char *absent;  /* why the program may not be there */
};

enum group { ONE_THREAD, CROWDS, WAITING, LIMITERS, MEMORY, GROUPS };

/* What a row measures. */
enum kind { PER_KEY, TIMES, BYTES, PROCESSOR, KINDS };

struct row {
    const char *name; /* as wq_bench --rows knows it */
    enum group  group;
    enum kind   kind;
    const char *title;
    const char *program; /* as the programs know it; NULL: by `name` */
    int         cpus;    /* on so many processors only; 0: on all */
};

/* A figure that rows of one kind have. */
struct shown {
    const char *figure; /* as the programs print it */
    const char *suffix; /* to the row's title */
    const char *unit;   /* what the table says */
    double      scale;  /* of the table's unit, in the program's */
};

enum ask {
    AT_LEAST, /* theirs / ours */
    AT_MOST,  /* ours / theirs */
    NO_MORE,  /* ours, whatever theirs may be */
};

/* What wq is to reach. */
struct demand {
    const char *what;
    const char *row, *figure;
    enum ask    ask;
    double      bound;
    const char *side; /* who is compared with; NULL: client-go */
    const char *base; /* in which row; NULL: the same */
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
    const char *sides;        /* names with commas between; NULL: all */
    const char *json;         /* where to; NULL: nowhere */
    const char *plots;        /* into which directory; NULL: nowhere */
    bool        quick;        /* only show that it works */
    bool        features;     /* what do features cost? Instead of all else */
    char        command[400]; /* what was asked for, in words */
};

/* Exits with 2 if they make no sense. */
struct options read_options(int argc, char **argv);
bool           wants_row(const struct options *o, const struct row *r);
bool           wants_peer(const struct options *o, const struct peer *p);

/* ---- run ---------------------------------------------------------------- */

enum ran { RAN, RAN_NOT, RAN_BADLY };

/* Where a program is: beside this one. */
enum { MOST_PATH = 4000 };
void program_path(char path[MOST_PATH], const char *program);
bool is_there(const struct peer *p);

/* Run a program with up to three arguments (NULL: no more), and give what it
 * prints to `line`, name and rest, line by line. RAN_NOT: it said that it has
 * no such row. On `cpus` processors only, if that is not 0. */
enum ran run_program(const char *program, const char *const args[3], int cpus,
                     void (*line)(void *ctx, const char *name,
                                  const char *value),
                     void *ctx);

/* ---- figures ------------------------------------------------------------ */

struct spread {
    size_t n; /* how many rounds; 0: none of the rest is valid */
    double median, least, most;
};

void          keep(size_t row, size_t shown, size_t peer, double value);
struct spread spread_of(size_t row, size_t shown, size_t peer);
double        figure_of(size_t row, size_t shown, size_t peer, size_t round);
/* The same by name. */
struct spread spread_at(const char *row, const char *figure, const char *side);

/* Was it reached? `ratio` says how far. False in *known: not measured. */
bool reached(const struct demand *d, double *ratio, bool *known);

/* ---- what comes of it --------------------------------------------------- */

void find_out_machine(void);
/* The i-th fact: name and value; NULL: no more. */
const char *machine_fact(size_t i, const char **value);

void report(FILE *f, const struct options *o, bool with_pictures);
bool write_json(const struct options *o);
bool write_plots(const struct options *o);

#endif
