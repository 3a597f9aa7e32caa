/* SPDX-License-Identifier: MIT */
/* actor.h: how does a test direct other processes, one step at a time?
 *
 *     struct actor *a = actor_start();
 *     assert_int_equal(actor_do(a, open_queue, "hold=lease"), WQ_OK);
 *     actor_signal(a, SIGKILL);
 *
 * An actor is a child that waits for tasks: functions of the test program. It
 * keeps what it opened in variables of the program, its own copies. The test's
 * own process must not use SQLite, because SQLite does not allow a fork between
 * two uses.
 *
 * All functions fail the test if an actor does not answer within
 * ACTOR_LIMIT_S seconds. actor_end_all() is for teardowns.
 */
#ifndef WQ_TEST_ACTOR_H
#define WQ_TEST_ACTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { ACTOR_LIMIT_S = 20, ACTOR_ARG = 240 };

struct actor; /* valid until actor_end_all() */

/* A task: `arg` is a string. */
typedef int64_t (*actor_task)(const char *arg);

struct actor *actor_start(void);

/* Let it run the task; actor_await() returns the result. */
void    actor_post(struct actor *a, actor_task task, const char *arg);
int64_t actor_await(struct actor *a);
int64_t actor_do(struct actor *a, actor_task task, const char *arg);

/* actor_await(), but false if the process has died: it is gone then. */
bool actor_answers(struct actor *a, int64_t *answer);

/* After SIGKILL, returns when the process has ended. */
void  actor_signal(struct actor *a, int signal);
pid_t actor_pid(const struct actor *a);

/* Kills all that are left. */
int actor_end_all(void **state);

#endif
