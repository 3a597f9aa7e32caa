/* SPDX-License-Identifier: MIT */
/* measure.h: what does bench_sqlite measure?
 *
 * Parts as in stores/stores.h.
 */
#ifndef WQ_BENCH_SQLITE_H
#define WQ_BENCH_SQLITE_H

#include <stdbool.h>
#include <stddef.h>

#include <wq/sqlite.h>

#include "stores/stores.h"

enum { SYNCS = 3 };

/* The path of this program. */
const char *bench_program(void);

/* ---- files.c: where the databases are ------------------------------------ */

/* Make the directory for all files; it goes away at exit. `parent` NULL:
 * /var/tmp, which is on a disk. */
void files_begin(const char *parent);

/* The path of a file that does not exist; valid until the next call but three.
 */
const char *files_new(void);

/* Delete a database and all that is beside it. */
void files_delete(const char *path);
/* Delete only what the processes know of each other. */
void files_delete_side(const char *path);

wq_queue   *files_open(const char *path, wq_sqlite_sync sync);
const char *sync_name(wq_sqlite_sync sync);

/* ---- cycles.c: threads ---------------------------------------------------- */

void cycles_measure(size_t round);
void cycles_print(size_t rounds);
/* The median of keys/s of add, get and done, for peers.c. */
double cycles_rate(wq_sqlite_sync sync, size_t threads);
/* Only add and next, `n` times, to count instructions and system calls. */
void cycles_run(wq_sqlite_sync sync, size_t n);

/* ---- bare.c: SQLite without wq ---------------------------------------------- */

/* The processor time that `n` keys take: an INSERT and a DELETE of each. */
double bare_run_floor(size_t n);
/* ... and the statements of an add and a next of each. */
double bare_run_statements(size_t n);

/* ---- verbs.c: one thread --------------------------------------------------- */

void verbs_measure(size_t round);
void verbs_print(size_t rounds);
/* Only batches of 64, about `n` keys, likewise. */
void verbs_run_batches(size_t n);

/* ---- size.c, processes.c, wakeups.c ---------------------------------------- */

void size_print(size_t rounds);
/* Only use the queue at `path`, and print by how many MB this process grew. */
void size_run_memory(const char *path);
void processes_print(size_t rounds);
void wakeups_print(size_t rounds);
void idle_print(size_t rounds);

/* ---- peers.c: other queues -------------------------------------------------- */

/* Programs that measure a peer; NULL: not available. */
void peers_use(const char *goqite, const char *litequeue);
void peers_measure(size_t round);
void peers_print(size_t rounds);

#endif
