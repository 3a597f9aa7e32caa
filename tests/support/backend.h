/* SPDX-License-Identifier: MIT */
/* backend.h: which backend does a test program test?
 *
 * Tests that use only wq.h take their queues from `backend`. It is the
 * in-memory backend, unless a source file of the program defines another one.
 */
#ifndef WQ_TEST_BACKEND_H
#define WQ_TEST_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/wq.h>

/* A test that is left out, and why. */
struct backend_skip {
    const char *test; /* its name; NULL: the end of the table */
    const char *why;
};

/* All members but `open` may be NULL: the backend cannot do that. */
struct backend {
    /* Make an empty queue that only the test uses. Takes over config->limiter
     * in every case, as wq_create() does. `config` may be NULL. */
    wq_err (*open)(const wq_config *config, wq_queue **out);
    /* Open a second handle of the store that was opened last, which must have
     * a handle still. Takes over config->limiter, likewise. */
    wq_err (*again)(const wq_config *config, wq_queue **out);
    /* Let `ns` pass on the clock of the queues: a fake clock that was given in
     * the config, or the store's own. NULL: step the fake clock. */
    void (*pass)(wq_clock *clock, int64_t ns);
    /* Run `use` with a handle of that store in another process, and return its
     * process id: the child exits with what `use` returns. */
    int (*elsewhere)(int (*use)(wq_queue *q, void *arg), void *arg);
    /* The machine loses its power: only what the store has made durable stays.
     * No handle may be used after that but those that again() opens. */
    wq_err (*crash)(void);
    /* The store cannot be reached from now on, or (false) it can. */
    void (*away)(bool is_away);

    /* Returns when the store has answered all that was asked before. A thread
     * that waits for an answer looks asleep. */
    void (*settle)(void);

    /* Keys are in order among those for which this returns the same, and only
     * among these. NULL: all are. */
    int (*part)(wq_key key);

    bool on_disk; /* every call takes tens of microseconds */
    bool remote;  /* every call is a message to a server, and its answer */

    /* Steps and config words of scenarios that the backend does not support,
     * separated by spaces: a scenario that uses one of them is left out.
     * "queue:WORD" is lacking in configs only. */
    const char *lacks;
    /* Tests that are left out for another reason. */
    const struct backend_skip *skips;
};

/* To be appended to `lacks`: where the system has no wq_fd(). */
#if defined(__linux__) && !defined(WQ_PORT_POSIX)
#define BACKEND_AND_FD ""
#else
#define BACKEND_AND_FD " readable"
#endif

extern const struct backend backend;

#endif
