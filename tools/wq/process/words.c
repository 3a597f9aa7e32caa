/* SPDX-License-Identifier: MIT */
/* words.c: which words are replaced, and by what? See words.h. */
#include "process/words.h"

#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

/* -------------------------------------------------------------- find them -- */

static const struct {
    const char    *text;
    enum word_kind kind;
} fixed[] = {
    {"{.}", WORD_WITHOUT_EXTENSION},
    {"{/}", WORD_BASENAME},
    {"{/.}", WORD_BASENAME_WITHOUT_EXTENSION},
    {"{//}", WORD_DIRNAME},
    {"{line}", WORD_LINE},
    {"{#}", WORD_NUMBER},
    {"{%}", WORD_SLOT},
};

/* "{12}"; at most seven digits, as --key-column has them. */
static bool
read_column(const char *text, struct word *out)
{
    unsigned n = 0;
    size_t   i = 1;

    for (; i < 8 && text[i] >= '0' && text[i] <= '9'; i++)
        n = 10 * n + (unsigned)(text[i] - '0');
    if (n == 0 || text[i] != '}')
        return false;
    *out = (struct word){.kind = WORD_COLUMN, .column = n, .len = i + 1};
    return true;
}

/* Does the text begin with a word? */
static bool
read_word(const struct options *options, const char *text, struct word *out)
{
    const size_t len = strlen(options->replace);

    if (strncmp(text, options->replace, len) == 0) {
        *out = (struct word){.kind = WORD_KEY, .len = len};
        return true;
    }
    if (*text != '{')
        return false;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        const size_t n = strlen(fixed[i].text);
        if (strncmp(text, fixed[i].text, n) == 0) {
            *out = (struct word){.kind = fixed[i].kind, .len = n};
            return true;
        }
    }
    return options->colsep.set && read_column(text, out);
}

const char *
word_find(const struct options *options, const char *text, struct word *out)
{
    for (; *text; text++)
        if (read_word(options, text, out))
            return text;
    return NULL;
}

bool
word_is_of_key(const struct word *word)
{
    return word->kind != WORD_NUMBER && word->kind != WORD_SLOT;
}

bool
word_is_constant(const struct options *options, const struct word *word)
{
    if (word->kind == WORD_LINE || word->kind == WORD_COLUMN)
        return !options->mapped;
    return word_is_of_key(word);
}

/* ------------------------------------------------------------ what they are */

static wq_key
part(wq_key from, size_t begin, size_t end)
{
    return wq_bytes((const char *)from.data + begin, end - begin);
}

/* All behind the last slash. */
static wq_key
basename_of(wq_key key)
{
    const char *slash = memrchr(key.data, '/', key.len);

    return slash ? part(key, (size_t)(slash - (const char *)key.data) + 1,
                        key.len)
                 : key;
}

/* Without the last dot and what follows it, unless a slash does. */
static wq_key
without_extension(wq_key key)
{
    const wq_key last = basename_of(key);
    const char  *dot = memrchr(last.data, '.', last.len);

    return dot ? part(key, 0, (size_t)(dot - (const char *)key.data)) : key;
}

/* As dirname(1). */
static wq_key
dirname_of(wq_key key)
{
    const char *s = key.data;
    size_t      n = key.len;

    while (n > 0 && s[n - 1] == '/')
        n--;
    while (n > 0 && s[n - 1] != '/')
        n--;
    while (n > 0 && s[n - 1] == '/')
        n--;
    if (n > 0)
        return part(key, 0, n);
    return key.len > 0 && s[0] == '/' ? part(key, 0, 1) : wq_str(".");
}

/* A separator of no bytes does not separate. */
wq_key
column_of(const struct options *options, wq_key line, unsigned n)
{
    const char *at = line.data;
    const char *end = at + line.len;
    regmatch_t  found;

    if (options->by_blanks)
        at += strspn(at, " \t");
    for (; regexec(&options->colsep.regex, at, 1, &found,
                   at == line.data ? 0 : REG_NOTBOL) == 0 &&
           found.rm_eo > found.rm_so;
         at += found.rm_eo)
        if (--n == 0)
            return wq_bytes(at, (size_t)found.rm_so);
    return n == 1 ? wq_bytes(at, (size_t)(end - at)) : wq_bytes(end, 0);
}

static wq_key
number(char buffer[WORD_MAX], uint64_t n)
{
    (void)snprintf(buffer, WORD_MAX, "%" PRIu64, n);
    return wq_str(buffer);
}

wq_key
word_value(const struct options *options, const struct word *word,
           const struct run *run, char buffer[WORD_MAX])
{
    switch (word->kind) {
    case WORD_WITHOUT_EXTENSION:
        return without_extension(run->key);
    case WORD_BASENAME:
        return basename_of(run->key);
    case WORD_BASENAME_WITHOUT_EXTENSION:
        return without_extension(basename_of(run->key));
    case WORD_DIRNAME:
        return dirname_of(run->key);
    case WORD_LINE:
        return run->line;
    case WORD_COLUMN:
        return column_of(options, run->line, word->column);
    case WORD_NUMBER:
        return number(buffer, run->number);
    case WORD_SLOT:
        return number(buffer, run->slot);
    default:
        return run->key;
    }
}
