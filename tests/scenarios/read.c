/* SPDX-License-Identifier: MIT */
/* read.c: how is a file of scenarios read, and what do its words mean? */
#include "scenarios/scenario.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- words --------------------------------------------------------------- */

const char *
split(struct words *out, const char *text, const char *variable,
      const char *value)
{
    size_t len = 0;

    *out = (struct words){.n = 0};
    for (const char *at = text; *at;) {
        const bool is_variable = *at == '$' && variable &&
                                 !strncmp(at + 1, variable, strlen(variable));
        const char  *from = is_variable ? value : at;
        const size_t n = is_variable ? strlen(value) : 1;

        if (len + n >= sizeof out->text)
            return "the line is too long";
        memcpy(out->text + len, from, n);
        len += n;
        at += is_variable ? 1 + strlen(variable) : 1;
    }

    char *rest = NULL;
    for (char *word = strtok_r(out->text, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest)) {
        if (out->n == WORDS)
            return "the line has too many words";
        if (!strcmp(word, "->")) {
            if (out->result)
                return "the line has two results";
            out->result = out->n;
            if (!out->n)
                return "the line has a result and no step";
        } else {
            out->at[out->n++] = word;
        }
    }
    if (!out->result)
        out->result = out->n;
    else if (out->result == out->n)
        return "'->' needs a result";
    return out->n ? NULL : "the line is empty";
}

bool
read_number(const char *word, int64_t *out)
{
    char *end;

    if (!strcmp(word, "max")) {
        *out = INT64_MAX;
        return true;
    }
    *out = strtoll(word, &end, 10);
    return end != word && !*end;
}

bool
read_duration(const char *word, int64_t *out)
{
    static const struct {
        const char *unit;
        int64_t     ns;
    } units[] = {{"ns", 1},
                 {"us", 1000},
                 {"ms", WQ_MS(1)},
                 {"s", WQ_SECONDS(1)},
                 {"m", WQ_SECONDS(60)},
                 {"h", WQ_SECONDS(3600)}};

    const bool is_forever = !strncmp(word, "forever", 7);

    if (!strcmp(word, "min") || !strcmp(word, "0")) {
        *out = *word == 'm' ? INT64_MIN : 0;
        return true;
    }
    *out = is_forever ? WQ_FOREVER : 0;
    word += is_forever ? 7 : 0;
    if (is_forever && !*word)
        return true;
    do {
        char         *end;
        const int64_t n = strtoll(word, &end, 10);
        const size_t  len = strcspn(end, "+-");
        size_t        i = 0;

        while (i < 6 && (strlen(units[i].unit) != len ||
                         strncmp(units[i].unit, end, len) != 0))
            i++;
        if (end == word || i == 6)
            return false;
        *out += n * units[i].ns;
        word = end + len;
    } while (*word);
    return true;
}

int
find_name(const char *const *names, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(names[i], word))
            return (int)i;
    return -1;
}

/* ---- keys ---------------------------------------------------------------- */

struct keys
keys_of(char *const *words, size_t n)
{
    return (struct keys){.words = words, .n = n};
}

/* Copy `word` with \xNN replaced by the byte it means. */
static void
unescape(struct keys *k, const char *word)
{
    size_t len = 0;

    while (*word && len < sizeof k->bytes - 1) {
        unsigned byte;

        if (sscanf(word, "\\x%2x", &byte) == 1) {
            k->bytes[len++] = (char)byte;
            word += 4;
        } else {
            k->bytes[len++] = *word++;
        }
    }
    k->bytes[len] = '\0';
    k->key = wq_bytes(k->bytes, len);
}

bool
next_key(struct keys *k)
{
    char        word[LINE_LEN];
    const char *range;
    long        from, to;
    int         end = 0;

    if (!k->n)
        return false;
    range = strchr(k->words[0], '{');
    if (!range || sscanf(range, "{%ld..%ld}%n", &from, &to, &end) != 2 ||
        !end) {
        unescape(k, k->words[0]);
    } else {
        if (!k->in_range)
            k->next = from;
        (void)snprintf(word, sizeof word, "%.*s%ld%s",
                       (int)(range - k->words[0]), k->words[0], k->next,
                       range + end);
        unescape(k, word);
        k->in_range = k->next++ < to;
    }
    if (!k->in_range) {
        k->words++;
        k->n--;
    }
    return true;
}

size_t
put_key(char *out, size_t size, size_t len, wq_key key)
{
    const unsigned char *bytes = key.data;

    for (size_t i = 0; i < key.len && len + 5 < size; i++)
        len += (size_t)snprintf(out + len, size - len,
                                isgraph(bytes[i]) ? "%c" : "\\x%02x", bytes[i]);
    return len;
}

/* ---- files --------------------------------------------------------------- */

static _Noreturn void
refuse(const char *path, int number, const char *why)
{
    fprintf(stderr, "%s:%d: %s\n", path, number, why);
    exit(EXIT_FAILURE);
}

static void *
grow(void *p, size_t n, size_t size)
{
    p = realloc(p, n * size);
    if (!p)
        abort();
    return p;
}

/* The line without indentation, comment and trailing spaces. */
static char *
trim(char *line)
{
    char *comment = *line == '#' ? line : strstr(line, " #");

    if (comment)
        *comment = '\0';
    while (*line == ' ')
        line++;
    for (size_t n = strlen(line); n && isspace((unsigned char)line[n - 1]);)
        line[--n] = '\0';
    return line;
}

static void
set_name(struct scenario *s, const char *title, const char *path, int number)
{
    size_t n = strlen(title), words = 1;

    if (n >= sizeof s->name)
        refuse(path, number, "the title is too long");
    for (size_t i = 0; i <= n; i++) {
        words += title[i] == ' ';
        s->name[i] = title[i] == ' ' ? '_' : title[i];
        if (title[i] && title[i] != ' ' && title[i] != '_' &&
            !isalnum((unsigned char)title[i]))
            refuse(path, number, "a title has letters, digits and spaces only");
    }
    if (words > 10)
        refuse(path, number, "a title has at most ten words");
}

/* Is every step one that exists? A word that ends in ':' or begins with a
 * capital is a thread. */
static void
check_line(const struct scenario *s, struct line line)
{
    static const char *const structure[] = {"for", "repeat", "end", "one",
                                            "all"};
    struct words             words;
    const char              *wrong = split(&words, line.text, NULL, NULL);
    size_t                   at = 0;

    if (wrong)
        refuse(s->file, line.number, wrong);
    while (at < words.n && isupper((unsigned char)words.at[at][0]))
        at++;
    const bool has_thread = at > 0;
    if (has_thread && words.at[at - 1][strlen(words.at[at - 1]) - 1] != ':')
        return; /* "A ends", "A -> x" */
    at += at < words.n && !strcmp(words.at[at], "other");
    if (at == words.n ||
        (!is_step(words.at[at]) && words.at[at][0] != '$' &&
         (has_thread || find_name(structure, 5, words.at[at]) < 0)))
        refuse(s->file, line.number, "there is no such step");
}

/* Is `word` of a line the word `lacking`, alone or with a value? A word that the
 * backend lacks in configs only begins with "queue:". */
static bool
is_lacking_word(const char *lacking, const char *word, bool in_config)
{
    const char *const prefix = "queue:";

    if (!strncmp(lacking, prefix, strlen(prefix))) {
        if (!in_config)
            return false;
        lacking += strlen(prefix);
    }
    const size_t len = strlen(lacking);
    return !strncmp(word, lacking, len) && strchr("=:", word[len]);
}

/* Does the backend lack a word of this line? */
static bool
is_lacking(const char *text)
{
    struct words line, lacking;

    if (!backend.lacks || !text || split(&line, text, NULL, NULL) ||
        split(&lacking, backend.lacks, NULL, NULL))
        return false;
    const bool in_config =
        !strcmp(line.at[0], "queue") || !strcmp(line.at[0], "create");
    for (size_t i = 0; i < line.n; i++)
        for (size_t j = 0; j < lacking.n; j++)
            if (is_lacking_word(lacking.at[j], line.at[i], in_config))
                return true;
    return false;
}

static bool
is_left_out(const struct scenario *s)
{
    bool out = is_lacking(s->queue.text);

    for (size_t i = 0; i < s->n; i++)
        out |= is_lacking(s->lines[i].text);
    return out;
}

/* "queue" alone, or followed by a word with '=', by a flag or by a variable. */
static bool
is_config(const char *text)
{
    const size_t n = strlen("queue");

    if (strncmp(text, "queue", n) != 0)
        return false;
    text += n;
    return !*text || !strncmp(text, " $", 2) || !strncmp(text, " ages", 5) ||
           !strncmp(text, " real_time", 10) || !strncmp(text, " sink", 5) ||
           (*text == ' ' && text[1 + strcspn(text + 1, " =")] == '=');
}

/* The whole file, with a NUL at its end. */
static char *
read_file(const char *path)
{
    FILE  *f = fopen(path, "r");
    char  *text = NULL;
    size_t len = 0, n;

    if (!f)
        refuse(path, 0, "cannot open the file");
    do {
        text = grow(text, len + LINE_LEN, 1);
        n = fread(text + len, 1, LINE_LEN - 1, f);
        len += n;
    } while (n);
    (void)fclose(f);
    text[len] = '\0';
    return text;
}

/* The file that was read last. Used until the program ends. */
static struct {
    char            *text; /* lines point into it */
    struct scenario *all;
    size_t           n;
} the_file;

/* The last scenario has all its lines: leave it out if the backend lacks
 * something. */
static void
end_scenario(void)
{
    if (the_file.n && is_left_out(&the_file.all[the_file.n - 1]))
        free(the_file.all[--the_file.n].lines);
}

static struct scenario *
begin_scenario(const char *path, const char *title, struct line queue,
               int number)
{
    end_scenario();
    the_file.all = grow(the_file.all, ++the_file.n, sizeof *the_file.all);
    struct scenario *s = &the_file.all[the_file.n - 1];
    *s = (struct scenario){.file = path, .queue = queue};
    set_name(s, title, path, number);
    return s;
}

struct scenario *
read_scenarios(const char *path, size_t *n)
{
    struct line      queue = {.text = NULL};
    struct scenario *s = NULL;
    int              number = 0;

    free(the_file.text);
    the_file.n = 0;
    the_file.text = read_file(path);
    for (char *at = the_file.text, *end; at; at = end) {
        const bool is_indented = *at == ' ';

        end = strchr(at, '\n');
        if (end)
            *end++ = '\0';
        const struct line line = {.text = trim(at), .number = ++number};
        if (!*line.text)
            continue;
        if (is_indented && !s)
            refuse(path, number, "a step needs a title before it");
        if (is_config(line.text)) {
            *(is_indented ? &s->queue : &queue) = line;
        } else if (is_indented) {
            check_line(s, line);
            s->lines = grow(s->lines, s->n + 1, sizeof *s->lines);
            s->lines[s->n++] = line;
        } else {
            s = begin_scenario(path, line.text, queue, number);
        }
    }
    end_scenario();
    *n = the_file.n;
    return the_file.all;
}
