/* SPDX-License-Identifier: MIT */
/* sqlite_queue.h: how do tests open queues in SQLite databases?
 *
 * The files are in a directory of the process under $TMPDIR, or /tmp, which is
 * removed when it exits.
 */
#ifndef WQ_TEST_SQLITE_QUEUE_H
#define WQ_TEST_SQLITE_QUEUE_H

#include <wq/wq.h>

/* A new file. Takes over config->limiter, as wq_create() does. */
wq_err sqlite_queue_open(const wq_config *config, wq_queue **out);

/* The file that was opened last. */
wq_err sqlite_queue_open_again(const wq_config *config, wq_queue **out);

/* Its path; or, if none was opened, that of a new one. */
const char *sqlite_queue_path(void);
const char *sqlite_queue_new_path(void);

#endif
