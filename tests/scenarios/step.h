/* SPDX-License-Identifier: MIT */
/* step.h: what do the steps of scenarios share, and which steps are there?
 *
 * Most steps are a function of wq.h without its "wq_". A step leaves its result
 * as text in c->result: "OK", an error without its "WQ_", or a value.
 *
 * Steps run in threads, too, so they do not use cmocka's assertions: a step that
 * finds something wrong sets c->failed and says in the result what it found.
 */
#ifndef WQ_SCENARIO_STEP_H
#define WQ_SCENARIO_STEP_H

#include "scenarios/scenario.h"

/* The steps: X(name) is the function do_name(). steps_keys.c has those about
 * keys, steps_queue.c those about the queue and time, steps_view.c those that
 * look. */
#define STEPS(X)                                                               \
    X(add)                                                                     \
    X(add_after)                                                               \
    X(add_rate_limited)                                                        \
    X(add_with)                                                                \
    X(another_getter)                                                          \
    X(cancel_after)                                                            \
    X(changes)                                                                 \
    X(count_drops)                                                             \
    X(create)                                                                  \
    X(depths)                                                                  \
    X(destroy)                                                                 \
    X(done)                                                                    \
    X(done_key)                                                                \
    X(done_many)                                                               \
    X(drain)                                                                   \
    X(dropped)                                                                 \
    X(due)                                                                     \
    X(each)                                                                    \
    X(fail)                                                                    \
    X(finish)                                                                  \
    X(finish_many)                                                             \
    X(flush)                                                                   \
    X(flush_key)                                                               \
    X(forget)                                                                  \
    X(get)                                                                     \
    X(get_many)                                                                \
    X(interrupt)                                                               \
    X(key)                                                                     \
    X(len)                                                                     \
    X(limiter)                                                                 \
    X(loan)                                                                    \
    X(needs)                                                                   \
    X(next)                                                                    \
    X(next_with)                                                               \
    X(none)                                                                    \
    X(num_requeues)                                                            \
    X(pass)                                                                    \
    X(pause)                                                                   \
    X(readable)                                                                \
    X(remove)                                                                  \
    X(remove_wait)                                                             \
    X(reported)                                                                \
    X(resume)                                                                  \
    X(revive)                                                                  \
    X(set_clock)                                                               \
    X(shutdown)                                                                \
    X(shutting_down)                                                           \
    X(sleepers)                                                                \
    X(states)                                                                  \
    X(stats)                                                                   \
    X(undo)                                                                    \
    X(wait_idle)                                                               \
    X(when)                                                                    \
    X(work)                                                                    \
    X(work_one)

#define STEP__DECLARE(name) void do_##name(struct call *c);
STEPS(STEP__DECLARE)
#undef STEP__DECLARE

/* ---- results ------------------------------------------------------------- */

void set_result(struct call *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A mistake in the scenario, or a state that the step does not expect. */
#define wrong(c, ...)                                                          \
    do {                                                                       \
        (c)->failed = true;                                                    \
        set_result(c, __VA_ARGS__);                                            \
    } while (0)

/* The name of an error without its "WQ_". */
const char *error_word(wq_err err);

/* True if `err` is an error, which is the result then. */
bool report(struct call *c, wq_err err);

/* Append a word to the result. */
void append(struct call *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- arguments ----------------------------------------------------------- */

/* Argument `i`, from 1 on; NULL: there are fewer. */
const char *argument(const struct call *c, size_t i);

/* The keys from argument `first` on. */
struct keys arguments(const struct call *c, size_t first);

/* False if there is no such argument: the result says so. */
bool need_duration(struct call *c, size_t i, int64_t *out);
bool need_key(struct call *c, size_t i, struct keys *out);

/* The timeout is argument `i`. Without it, a step in the scenario's own thread
 * does not wait, and one in another thread waits for ever. */
bool read_timeout(struct call *c, size_t i, int64_t *out);

/* ---- loans --------------------------------------------------------------- */

/* Remember the item by its key. The fence must grow with every hand-out. */
void keep_loan(struct call *c, wq_item *item);

/* The item of the last hand-out of the key; NULL: there was none. */
wq_item *find_loan(struct call *c, wq_key key);

/* Append "KEY@PRIORITY"; append_item() also keeps the loan. */
void append_key(struct call *c, const wq_item *item);
void append_item(struct call *c, wq_item *item);

/* ---- steps that others use ----------------------------------------------- */

/* For each key: the next get hands it out; then `before_done`, then its done. */
void work(struct call *c, struct keys k,
          wq_err (*before_done)(wq_queue *, wq_key));

#endif
