/* SPDX-License-Identifier: MIT */
/* run.c: how is a scenario carried out, and how do its threads behave?
 *
 * The program of a file of scenarios: support/main.c finds one test for each of
 * them by wq_tests().
 */
#include "scenarios/scenario.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <wq/inspect.h>

#include "support/worker.h"

enum { THREADS = 16 };

/* A step in a thread of its own. */
struct thread {
    char           name[32];
    struct worker *worker; /* NULL: there is no such thread now */
    int64_t        cpu_ns; /* what it had used when last seen blocked */
    struct call    call;
};

/* The lines that are being carried out. */
struct play {
    struct run    run;
    struct line   line; /* where we are */
    struct thread threads[THREADS];
    const char   *variable; /* of `for`, or NULL */
    const char   *value;
    struct line   queue;
};

static _Noreturn void
stop(const struct play *p, const char *what, const char *was)
{
    fail_msg("%s:%d: %s%s%s%s%s", p->run.scenario->file, p->line.number,
             p->line.text, p->value ? "  $ = " : "", p->value ? p->value : "",
             what, was);
    abort(); /* fail_msg() does not return */
}

/* ---- results ------------------------------------------------------------- */

/* "foo" stands for "foo", "foo@5" and "foo:EFULL:0". */
static bool
word_fits(const char *expected, const char *was, size_t len)
{
    const size_t n = strlen(expected);

    return n <= len && !strncmp(expected, was, n) &&
           (n == len || was[n] == '@' || was[n] == ':');
}

static bool
result_fits(const struct words *w, const char *was)
{
    char        expected[LINE_LEN];
    struct keys k = keys_of(w->at + w->result, w->n - w->result);

    while (next_key(&k)) {
        const size_t len = strcspn(was, " ");

        expected[put_key(expected, sizeof expected, 0, k.key)] = '\0';
        if (!word_fits(expected, was, len))
            return false;
        was += len;
        was += *was == ' ';
    }
    return !*was;
}

/* The result is as `expected` (the words of the line that is read) says; if it
 * says nothing, the step must have succeeded. */
static void
check_result(const struct play *p, const struct words *expected,
             const struct call *c)
{
    if (expected->result < expected->n ? !result_fits(expected, c->result)
                                       : c->failed)
        stop(p, "\n    the result was: ", c->result);
}

/* ---- threads ------------------------------------------------------------- */

static struct thread *
find_thread(struct play *p, const char *name, size_t len)
{
    for (struct thread *t = p->threads; t < p->threads + THREADS; t++)
        if (t->worker && strlen(t->name) == len && !strncmp(t->name, name, len))
            return t;
    return NULL;
}

static int
run_step(struct worker *self)
{
    do_step(self->arg);
    return 0;
}

/* Start the step of the words from `first` on in a thread. */
static struct thread *
start_thread(struct play *p, const char *name, size_t len,
             const struct words *words, size_t first)
{
    struct thread *t = p->threads;

    if (find_thread(p, name, len))
        stop(p, "\n    this thread runs already: ", name);
    while (t < p->threads + THREADS && t->worker)
        t++;
    if (t == p->threads + THREADS || len >= sizeof t->name)
        stop(p, "\n    too many threads, or too long a name", "");
    *t = (struct thread){.call = {.run = &p->run, .may_wait = true}};
    memcpy(t->name, name, len);
    for (size_t i = first; i < words->result; i++) {
        struct words *to = &t->call.words;

        to->at[to->n] = to->text + (words->at[i] - words->text);
        to->n++;
    }
    memcpy(t->call.words.text, words->text, sizeof words->text);
    t->call.words.result = t->call.words.n;
    t->worker = worker_start(run_step, &t->call);
    return t;
}

static void
join_thread(const struct play *p, struct thread *t, const struct words *words)
{
    (void)worker_join(t->worker);
    t->worker = NULL;
    check_result(p, words, &t->call);
}

static void
await_blocked(struct thread *t)
{
    worker_await_blocked(t->worker);
    t->cpu_ns = worker_cpu_ns(t->worker);
}

/* "A B: step" starts threads, which block; with a result they run to their
 * ends. `names` words are names, the last with a colon. */
static void
start_threads(struct play *p, const struct words *words, size_t names)
{
    struct worker *all[THREADS];
    size_t         n = 0;

    for (size_t i = 0; i < names; i++) {
        const char    *name = words->at[i];
        struct thread *t =
            start_thread(p, name, strcspn(name, ":"), words, names);

        if (words->result < words->n) {
            join_thread(p, t, words);
        } else {
            all[n++] = t->worker;
            await_blocked(t);
        }
    }
    if (n)
        worker_await_all_blocked(all, n);
}

/* The thread is blocked, and did not run since it was last seen so. */
static void
check_not_woken(const struct play *p, struct thread *t)
{
    const int64_t before = t->cpu_ns;

    await_blocked(t);
    if (t->cpu_ns != before)
        stop(p, "\n    this thread was woken: ", t->name);
}

/* "A B -> result", "A B ends", "A B blocks", "A B not_woken". Names of threads
 * that are gone are passed over, if one of them is not. */
static void
look_at_threads(struct play *p, const struct words *words, size_t names)
{
    const char *what = names < words->result ? words->at[names] : "ends";
    size_t      found = 0;

    for (size_t i = 0; i < names; i++) {
        struct thread *t = find_thread(p, words->at[i], strlen(words->at[i]));

        if (!t)
            continue;
        found++;
        if (!strcmp(what, "blocks"))
            await_blocked(t);
        else if (!strcmp(what, "not_woken"))
            check_not_woken(p, t);
        else if (!strcmp(what, "ends"))
            join_thread(p, t, words);
        else
            stop(p, "\n    threads can end or block, not: ", what);
    }
    if (!found)
        stop(p, "\n    no such thread runs: ", words->at[0]);
}

/* "one of A B -> result" */
static void
join_one(struct play *p, const struct words *words)
{
    struct worker *all[THREADS];
    struct thread *threads[THREADS];
    size_t         n = 0;

    for (size_t i = 2; i < words->result; i++) {
        struct thread *t = find_thread(p, words->at[i], strlen(words->at[i]));

        if (t) {
            threads[n] = t;
            all[n++] = t->worker;
        }
    }
    if (!n)
        stop(p, "\n    none of these threads runs", "");
    join_thread(p, threads[worker_await_any_ended(all, n)], words);
}

/* "all of A B -> RESULT RESULT": in any order */
static void
join_all(struct play *p, const struct words *words)
{
    bool is_used[WORDS] = {false};

    if (words->n - words->result != words->result - 2)
        stop(p, "\n    each thread needs one result", "");
    for (size_t i = 2; i < words->result; i++) {
        struct thread *t = find_thread(p, words->at[i], strlen(words->at[i]));
        size_t         r = words->result;

        if (!t)
            stop(p, "\n    no such thread runs: ", words->at[i]);
        (void)worker_join(t->worker);
        t->worker = NULL;
        const char *was = t->call.result;
        while (r < words->n &&
               (is_used[r] || !word_fits(words->at[r], was, strlen(was))))
            r++;
        if (r == words->n)
            stop(p, "\n    a result was: ", was);
        is_used[r] = true;
    }
}

/* ---- lines --------------------------------------------------------------- */

static void
run_line(struct play *p)
{
    struct words words;
    size_t       names = 0;
    const char  *bad = split(&words, p->line.text, p->variable, p->value);

    if (bad)
        stop(p, "\n    ", bad);
    while (names < words.result && isupper((unsigned char)words.at[names][0]))
        names++;
    if (!names && !strcmp(words.at[0], "one")) {
        join_one(p, &words);
    } else if (!names && !strcmp(words.at[0], "all")) {
        join_all(p, &words);
    } else if (names &&
               words.at[names - 1][strlen(words.at[names - 1]) - 1] == ':') {
        start_threads(p, &words, names);
    } else if (names) {
        look_at_threads(p, &words, names);
    } else {
        struct call c = {.run = &p->run, .words = words};

        for (size_t i = 0; i < words.n; i++)
            c.words.at[i] = c.words.text + (words.at[i] - words.text);
        do_step(&c);
        check_result(p, &words, &c);
    }
}

/* Carry out the lines from `from` to `to`; "repeat N" ... "end" N times. */
static void
run_lines(struct play *p, size_t from, size_t to)
{
    const struct line *lines = p->run.scenario->lines;

    for (size_t i = from; i < to; i++) {
        struct words words;
        int64_t      times;
        int          depth = 1;

        p->line = lines[i];
        if (split(&words, lines[i].text, p->variable, p->value) ||
            strcmp(words.at[0], "repeat") != 0) {
            run_line(p);
            continue;
        }
        const size_t begin = i + 1;
        if (words.n != 2 || !read_number(words.at[1], &times))
            stop(p, "\n    'repeat' needs a number", "");
        while (depth && ++i < to) {
            depth += !strncmp(lines[i].text, "repeat ", 7);
            depth -= !strcmp(lines[i].text, "end");
        }
        if (depth)
            stop(p, "\n    'repeat' needs an 'end'", "");
        for (int64_t n = 0; n < times; n++)
            run_lines(p, begin, i);
    }
}

static void
open_queue(struct play *p)
{
    struct words words;
    wq_config    config;
    const char  *bad;

    p->line = p->queue;
    bad = split(&words, p->line.text, p->variable, p->value);
    if (!bad)
        bad = read_config(&p->run, &words, 1, &config);
    if (bad)
        stop(p, "\n    not a config: ", bad);
    p->run.limiter = config.limiter;
    p->run.config = p->queue.text;
    p->run.variable = p->variable;
    p->run.value = p->value;
    const wq_err err = backend.open(&config, &p->run.q);
    if (err)
        stop(p, "\n    the queue cannot be made: ", wq_last_error());
}

/* What must hold at the end of every scenario. */
static void
check_laws(struct play *p)
{
    wq_stats s = {.size = sizeof s}, o = {.size = sizeof o};

    for (struct thread *t = p->threads; t < p->threads + THREADS; t++)
        if (t->worker)
            stop(p, "\n    at the end, this thread still runs: ", t->name);
    if (p->run.lost_counts || wq_read_stats(p->run.q, &s) ||
        (p->run.other && wq_read_stats(p->run.other, &o)))
        return;
    assert_int_equal(s.adds + o.adds, s.gets + o.gets + s.removed + o.removed +
                                          s.displaced + s.deferred +
                                          o.deferred + s.ready + s.dirty);
    assert_int_equal(s.gets + o.gets, s.dones + o.dones + s.held);
}

static void
stop_at_problem(void *play, const char *text)
{
    stop(play, "\n    at the end, wq_check() finds: ", text);
}

/* All that the queue knows agrees (O-35). */
static void
check_queue(struct play *p)
{
    const wq_err err =
        p->run.is_destroyed ? WQ_OK : wq_check(p->run.q, stop_at_problem, p);

    if (err && err != WQ_ENOTSUP)
        stop(p, "\n    wq_check(): ", wq_err_name(err));
}

/* From line `from` on, with a new queue. */
static void
run_once(const struct scenario *s, size_t from, const char *variable,
         const char *value)
{
    struct play *p = calloc(1, sizeof *p);

    assert_non_null(p);
    p->run.scenario = s;
    p->variable = variable;
    p->value = value;
    p->queue = s->queue.text ? s->queue : (struct line){"queue", 0};
    assert_int_equal(pthread_mutex_init(&p->run.lock, NULL), 0);
    p->run.clock = wq_clock_fake_create(0);
    assert_non_null(p->run.clock);
    recorder_init(&p->run.recorder);
    open_queue(p);
    run_lines(p, from, s->n);
    check_laws(p);
    check_queue(p);
    if (!p->run.is_destroyed)
        wq_destroy(p->run.q);
    wq_destroy(p->run.other);
    if (!recorder_agrees(&p->run.recorder, &p->run.recorder.last))
        stop(p, "\n    at the end, the sums of changes are not the stats", "");
    wq_clock_destroy(p->run.clock);
    for (size_t i = 0; i < p->run.loans_n; i++)
        free(p->run.loans[i].name);
    free(p->run.loans);
    (void)pthread_mutex_destroy(&p->run.lock);
    free(p);
}

/* "for NAME in VALUE, VALUE, ..." as the first line: once for each value. */
static void
run_scenario(void **state)
{
    const struct scenario *s = *state;
    char                   copy[LINE_LEN], name[32], *rest = NULL;
    int                    end = 0;

    if (!s->n || sscanf(s->lines[0].text, "for %31s in %n", name, &end) != 1 ||
        !end) {
        run_once(s, 0, NULL, NULL);
        return;
    }
    (void)snprintf(copy, sizeof copy, "%s", s->lines[0].text + end);
    for (char *value = strtok_r(copy, ",", &rest); value;
         value = strtok_r(NULL, ",", &rest))
        run_once(s, 1, name, value + strspn(value, " "));
}

const struct CMUnitTest *
wq_tests(size_t *n)
{
    static struct CMUnitTest *tests; /* used until the program ends */
    struct scenario          *all = read_scenarios(scenario_file, n);

    free(tests);
    tests = calloc(*n + 1, sizeof *tests);
    if (!tests)
        abort();
    for (size_t i = 0; i < *n; i++)
        tests[i] = (struct CMUnitTest){.name = all[i].name,
                                       .test_func = run_scenario,
                                       .initial_state = &all[i]};
    return tests;
}
