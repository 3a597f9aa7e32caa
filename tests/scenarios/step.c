/* SPDX-License-Identifier: MIT */
/* step.c: how does a step read its arguments and report its result? See step.h.
 */
#include "scenarios/step.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- results ------------------------------------------------------------- */

void
set_result(struct call *c, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(c->result, sizeof c->result, format, args);
    va_end(args);
}

const char *
error_word(wq_err err)
{
    return wq_err_name(err) + strlen("WQ_");
}

/* True if `err` is an error, which is the result then. */
bool
report(struct call *c, wq_err err)
{
    if (err) {
        c->failed = true;
        set_result(c, "%s", error_word(err));
    }
    return err != WQ_OK;
}

/* Append a word to the result. */
void
append(struct call *c, const char *format, ...)
{
    size_t  len = strlen(c->result);
    va_list args;

    if (len && len + 1 < sizeof c->result)
        c->result[len++] = ' ';
    va_start(args, format);
    (void)vsnprintf(c->result + len, sizeof c->result - len, format, args);
    va_end(args);
}

/* ---- arguments ----------------------------------------------------------- */

/* Argument `i`, from 1 on; NULL: there are fewer. */
const char *
argument(const struct call *c, size_t i)
{
    return i < c->words.result ? c->words.at[i] : NULL;
}

/* The keys from argument `first` on. */
struct keys
arguments(const struct call *c, size_t first)
{
    return keys_of(c->words.at + first,
                   c->words.result > first ? c->words.result - first : 0);
}

bool
need_duration(struct call *c, size_t i, int64_t *out)
{
    const char *word = argument(c, i);

    if (word && read_duration(word, out))
        return true;
    wrong(c, "'%s' is not a duration", word ? word : "");
    return false;
}

/* The timeout is argument `i`. Without it, a step in the scenario's own thread
 * does not wait, and one in another thread waits for ever. */
bool
read_timeout(struct call *c, size_t i, int64_t *out)
{
    *out = c->may_wait ? WQ_FOREVER : 0;
    return !argument(c, i) || need_duration(c, i, out);
}

bool
need_key(struct call *c, size_t i, struct keys *out)
{
    *out = arguments(c, i);
    if (next_key(out))
        return true;
    wrong(c, "a key is missing");
    return false;
}

/* ---- loans --------------------------------------------------------------- */

/* Remember the item by its key. The fence must grow with every hand-out. */
void
keep_loan(struct call *c, wq_item *item)
{
    struct run *run = c->run;
    char        name[LINE_LEN], *name_copy;

    (void)put_key(name, sizeof name, 0, item->key);
    (void)pthread_mutex_lock(&run->lock);
    size_t i = 0;
    while (i < run->loans_n && strcmp(run->loans[i].name, name) != 0)
        i++;
    if (i == run->loans_n) {
        run->loans = realloc(run->loans, (i + 1) * sizeof *run->loans);
        if (!run->loans || !(name_copy = strdup(name)))
            abort();
        run->loans[run->loans_n++] = (struct loan){.name = name_copy};
    }
    if (item->fence <= run->loans[i].fence)
        wrong(c, "'%s' was handed out with a fence that did not grow", name);
    run->loans[i].item = item;
    run->loans[i].fence = item->fence;
    (void)pthread_mutex_unlock(&run->lock);
}

/* The item of the last hand-out of the key; NULL: there was none. */
wq_item *
find_loan(struct call *c, wq_key key)
{
    struct run *run = c->run;
    char        name[LINE_LEN];
    wq_item    *item = NULL;

    (void)put_key(name, sizeof name, 0, key);
    (void)pthread_mutex_lock(&run->lock);
    for (size_t i = 0; i < run->loans_n; i++)
        if (!strcmp(run->loans[i].name, name))
            item = run->loans[i].item;
    (void)pthread_mutex_unlock(&run->lock);
    if (!item)
        wrong(c, "'%s' was not handed out", name);
    return item;
}

/* "KEY@PRIORITY" */
void
append_key(struct call *c, const wq_item *item)
{
    char name[LINE_LEN] = "";

    (void)put_key(name, sizeof name, 0, item->key);
    append(c, "%s@%d", name, item->priority);
}

/* A key that was handed out. */
void
append_item(struct call *c, wq_item *item)
{
    append_key(c, item);
    keep_loan(c, item);
}

/* ---- the table ----------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(struct call *c);
} steps[] = {
#define STEP__ROW(name) {#name, do_##name},
    STEPS(STEP__ROW)
#undef STEP__ROW
};

static int
find_step(const char *word)
{
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (!strcmp(steps[i].name, word))
            return (int)i;
    return -1;
}

bool
is_step(const char *word)
{
    return find_step(word) >= 0;
}

/* With the lock. */
static wq_err
open_other(struct run *run)
{
    struct words words;
    wq_config    config;

    if (run->other)
        return WQ_OK;
    if (split(&words, run->config, run->variable, run->value) ||
        read_config(run, &words, 1, &config))
        return WQ_EINVAL;
    return backend.again(&config, &run->other);
}

/* "other STEP": by a second handle, which the first such step opens. */
static void
choose_handle(struct call *c)
{
    struct words *w = &c->words;

    c->q = c->run->q;
    if (strcmp(w->at[0], "other") != 0)
        return;
    for (size_t i = 1; i < w->n; i++)
        w->at[i - 1] = w->at[i];
    w->n--;
    w->result--;
    (void)pthread_mutex_lock(&c->run->lock);
    const wq_err err = open_other(c->run);
    c->q = c->run->other;
    (void)pthread_mutex_unlock(&c->run->lock);
    if (err)
        wrong(c, "a second handle cannot be opened: %s", error_word(err));
}

void
do_step(struct call *c)
{
    choose_handle(c);
    if (c->failed)
        return;
    const int i = find_step(c->words.at[0]);

    if (i < 0)
        wrong(c, "there is no step '%s'", c->words.at[0]);
    else
        steps[i].run(c);
    if (!*c->result)
        set_result(c, "OK");
}
