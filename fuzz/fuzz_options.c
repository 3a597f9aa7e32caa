/* SPDX-License-Identifier: MIT */
/* fuzz_options.c: which command lines are accepted?
 *
 * The input is a command line, one argument on each line; the first is the verb
 * (`run` if there is no such verb), the last also serves as a key. Options that
 * are accepted are within the limits that options/options.h states, go together,
 * and are the same when they are parsed once more; the words in COMMAND are
 * replaced by parts of the key.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "options/options.h"
#include "options/url.h"
#include "process/words.h"

enum { ARGS = 32 };

struct line {
    char *argv[ARGS + 1];
    int   argc;
};

/* Some expressions take regcomp() hours or gigabytes: a{999}{999}{999}, and each
 * + doubles what is before it; fifty * in a row take a second. The user who
 * writes them is the one who waits. Multiplies the copies that all + and all numbers behind a brace ask for. */
static bool
is_huge_regex(const char *text)
{
    unsigned long copies = 1;

    if (strstr(text, "********"))
        return true;
    for (; copies < 1000 && (text = strpbrk(text, "+{")); text++) {
        const size_t        low = strspn(text + 1, "0123456789");
        const char         *high = text + 1 + low + (text[1 + low] == ',');
        const unsigned long n = strtoul(text + 1, NULL, 10);
        const unsigned long m = strtoul(high, NULL, 10);
        const unsigned long most = *text == '+' ? 2 : n > m ? n : m;
        copies *= most > 1000 ? 1000 : most > 1 ? most : 1;
    }
    return copies >= 1000;
}

static void
must(bool holds, const char *what)
{
    if (!holds)
        fuzz_fail("accepted, but wrong: %s", what);
}

static void
check_numbers(const struct options *o)
{
    must(o->delimiter >= 0 && o->delimiter <= 255, "delimiter");
    must(o->slots >= 1 && o->max_args >= 1 && o->count >= 1, "a count");
    must(o->resync_ns >= 0 && o->timeout_ns >= 0 && o->kill_after_ns >= 0 &&
             o->debounce_ns >= 0 && o->debounce_max_ns >= 0 &&
             o->after_ns >= 0 && o->output_grace_ns >= 0 && o->wait_ns >= 0 &&
             o->drain_timeout_ns >= -1 && o->again_ns >= -1,
         "a duration");
    must(o->stop_signal > 0 && o->load >= 0 && o->memfree >= 0 &&
             o->holder >= 0,
         "an amount");
    must(o->backoff.max_ns >= o->backoff.base_ns && o->backoff.factor >= 1 &&
             isfinite(o->backoff.factor) && isfinite(o->rate.per_second),
         "backoff or rate");
}

static void
check_texts(const struct options *o)
{
    must(o->replace && *o->replace && o->env_key && o->name, "an empty text");
    must(!o->shared || (o->queue && url_is(o->queue)), "the URL");
    must(!o->shared || !url_is_memory(o->queue), "mem: is not shared");
    must(verbs_table[o->verb].runs ? o->command && o->command[0] && !o->operands
                                   : o->operands && !o->command,
         "the operands");
    must(!o->tagged || o->tag, "the tag");
    must(!o->resume || o->joblog, "--resume without --joblog");
    if (o->queue)
        must(strlen(url_shown(o->queue)) < 2000, "the URL that is shown");
}

/* Every word is found, and its value is of the key or of the buffer. */
static void
replace_words(const struct options *o, const char *key)
{
    const struct run run = {.key = wq_bytes(key, strlen(key)),
                            .line = wq_bytes(key, strlen(key)),
                            .number = 18446744073709551615U,
                            .slot = 4294967295U};
    char             buffer[WORD_MAX];
    struct word      word;

    for (char **arg = o->command; arg && *arg; arg++)
        for (const char *at = *arg; (at = word_find(o, at, &word));
             at += word.len) {
            const wq_key value = word_value(o, &word, &run, buffer);
            must(word.len > 0 && value.len <= run.key.len + WORD_MAX,
                 "a word of COMMAND");
            must(!value.len || !memchr(value.data, 0, value.len),
                 "a NUL in a word");
        }
}

static enum action
parse(struct options *o, const struct line *line)
{
    struct line       own = *line; /* getopt_long() permutes it */
    const enum verb   verb = verb_named(own.argv[0]);
    const enum action action =
        options_parse(o, verb == VERBS ? VERB_RUN : verb, own.argc, own.argv);

    if (action == ACTION_RUN) {
        check_numbers(o);
        check_texts(o);
        replace_words(o, line->argv[line->argc - 1]);
    }
    return action;
}

/* Parse it twice. */
static void
try(const struct line *line)
{
    struct options    one, two;
    const enum action action = parse(&one, line);

    must(parse(&two, line) == action, "another answer the second time");
    if (action == ACTION_RUN)
        must(one.slots == two.slots && one.retries == two.retries &&
                 one.shared == two.shared && one.verb == two.verb &&
                 one.timeout_ns == two.timeout_ns &&
                 strcmp(one.name, two.name) == 0,
             "other options the second time");
    options_fini(&one);
    options_fini(&two);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char       *text = fuzz_text(data, len), *rest = text;
    struct line line = {.argc = 0};

    if (!is_huge_regex(text)) {
        for (char *arg; line.argc < ARGS && (arg = fuzz_split(&rest, '\n'));)
            line.argv[line.argc++] = arg;
        try(&line);
    }
    free(text);
    return 0;
}
