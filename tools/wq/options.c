/* SPDX-License-Identifier: MIT */
/* options.c: what was asked for on the command line?
 *
 * The table below is all there is to know about an option: parsing, --help and
 * the completions read it. A new option is a line here and a field in
 * `struct options`.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <wq/version.h>

#include "listen.h"
#include "tell.h"

/* ------------------------------------------- options with a mind of their own
 */

/* They return NULL, or what is wrong with the value. */

static const char *
set_null(struct options *o, const char *value)
{
    (void)value;
    o->delimiter = '\0';
    return NULL;
}

static const char *
set_delimiter(struct options *o, const char *value)
{
    return value_delimiter(value, &o->delimiter) ? NULL : "is not a character";
}

static const char *
set_file(struct options *o, const char *value)
{
    const char **files = realloc(o->files, (o->n_files + 1) * sizeof *o->files);

    if (!files)
        return strerror(errno);
    o->files = files;
    o->files[o->n_files++] = value;
    return NULL;
}

static const char *
set_input(struct options *o, const char *value)
{
    o->jsonl = strcmp(value, "jsonl") == 0;
    return o->jsonl || strcmp(value, "text") == 0 ? NULL : "is not a format";
}

static const char *
set_slots(struct options *o, const char *value)
{
    int64_t n;

    if (!value_number(value, 0, 1000000, &n))
        return "is not a number of processes";
    if (n == 0)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    o->slots = n > 0 ? (unsigned)n : 1;
    return NULL;
}

static const char *
set_replace(struct options *o, const char *value)
{
    o->replace = value;
    return *value ? NULL : "is empty";
}

static const char *
set_stop_signal(struct options *o, const char *value)
{
    return value_signal(value, &o->stop_signal) ? NULL : "is not a signal";
}

static const char *
set_env_key(struct options *o, const char *value)
{
    o->env_key = value;
    return *value && !strchr(value, '=') ? NULL : "is not a name";
}

static const char *
set_priority(struct options *o, const char *value)
{
    int64_t n;

    if (!value_number(value, INT_MIN, INT_MAX, &n))
        return "is not a priority";
    o->priority = (int)n;
    return NULL;
}

static const char *
set_retries(struct options *o, const char *value)
{
    int64_t n = RETRIES_FOREVER;

    if (strcmp(value, "inf") != 0 &&
        !value_number(value, 0, RETRIES_FOREVER - 1, &n))
        return "is not a number of retries";
    o->retries = (unsigned)n;
    return NULL;
}

static const char *
set_backoff(struct options *o, const char *value)
{
    return value_backoff(value, &o->backoff) ? NULL : "is not a backoff";
}

static const char *
set_no_retry(struct options *o, const char *value)
{
    return value_codes(value, &o->no_retry) ? NULL : "is no list of exit codes";
}

static const char *
set_rate(struct options *o, const char *value)
{
    return value_rate(value, &o->rate) ? NULL : "is not a rate";
}

static const char *
set_halt(struct options *o, const char *value)
{
    return value_halt(value, &o->halt) ? NULL : "does not say when";
}

static const char *
set_group(struct options *o, const char *value)
{
    (void)value;
    o->grouping = GROUP_RUN;
    return NULL;
}

static const char *
set_line_buffer(struct options *o, const char *value)
{
    (void)value;
    o->grouping = GROUP_LINE;
    return NULL;
}

static const char *
set_ungroup(struct options *o, const char *value)
{
    (void)value;
    o->grouping = GROUP_NONE;
    return NULL;
}

static const char *
set_tag(struct options *o, const char *value)
{
    o->tag = value;
    o->tagged = true;
    return NULL;
}

static const char *
set_json(struct options *o, const char *value)
{
    o->json = true;
    o->json_file = value;
    return NULL;
}

static const char *
set_progress(struct options *o, const char *value)
{
    static const char *const names[] = {"auto", "always", "never"};

    for (unsigned i = 0; i < 3; i++)
        if (strcmp(value, names[i]) == 0) {
            o->progress = (enum show)i;
            return NULL;
        }
    return "is not a way to show it";
}

static const char *
set_resume(struct options *o, const char *value)
{
    (void)value;
    if (o->resume == RESUME_NO) /* --resume-failed says more */
        o->resume = RESUME_ALL;
    return NULL;
}

static const char *
set_resume_failed(struct options *o, const char *value)
{
    (void)value;
    o->resume = RESUME_FAILED;
    return NULL;
}

static const char *
set_queue(struct options *o, const char *value)
{
    (void)o;
    return strcmp(value, "mem:") == 0
               ? NULL
               : "is not a queue that this wq can use: it has no other than "
                 "the one in its memory";
}

static const char *
set_name(struct options *o, const char *value)
{
    o->name = value;
    return *value ? NULL : "is empty";
}

static const char *
set_listen(struct options *o, const char *value)
{
    o->listen = value;
    return listen_check(value);
}

/* ------------------------------------------------------------ the table -- */

/* What follows the name, and what becomes of it. */
enum kind {
    FLAG,     /* nothing; the bool becomes true */
    DURATION, /* an int64_t of ns */
    STRING,   /* a const char * */
    CALL,     /* `set` knows */
    HELP,
    VERSION,
    COMPLETION,
};

struct row {
    const char *group;  /* heading; NULL: that of the row before */
    char        letter; /* 0: none */
    char        alias;  /* another letter; 0: none */
    const char *name;   /* NULL: only a letter */
    const char *arg;    /* NULL: none; "[=X]": may be left out */
    enum kind   kind;
    size_t      field; /* FLAG, DURATION, STRING: where in struct options */
    const char *(*set)(struct options *o, const char *value); /* CALL */
    const char *accepted; /* for messages; NULL: anything */
    const char *words;    /* for completion: words, or <file> <dir> <command> */
    const char *help;
};

#define AT(field) offsetof(struct options, field)
#define TIMES "200ms, 5s, 1h30m, or a number of seconds"

static const struct row table[] = {
    {"Input", '0', 0, "null", NULL, CALL, 0, set_null, NULL, NULL,
     "keys end with NUL, not with a newline"},
    {NULL, 'd', 0, "delimiter", "C", CALL, 0, set_delimiter,
     "one character, or \\n \\t \\0 \\xHH and the like", NULL,
     "keys end with C"},
    {NULL, 'a', 0, "arg-file", "FILE", CALL, 0, set_file, NULL, "<file>",
     "read keys from FILE, not stdin (repeat for more)"},
    {NULL, 0, 0, "input", "FORMAT", CALL, 0, set_input, "text, jsonl",
     "text jsonl", "jsonl: {\"key\":\"a\",\"after\":\"5s\",\"priority\":1}"},
    {NULL, 0, 0, "list", "CMD", STRING, AT(list), NULL, NULL, "<command>",
     "read the keys that the shell command CMD prints"},
    {NULL, 0, 0, "resync", "DUR", DURATION, AT(resync_ns), NULL, TIMES, NULL,
     "... and again every DUR; do not exit"},
    {NULL, 'f', 0, "follow", NULL, FLAG, AT(follow), NULL, NULL, NULL,
     "do not exit at the end of input"},

    {"Running", 'P', 'j', "max-procs", "N", CALL, 0, set_slots,
     "0 (as many as there are CPUs) to 1000000", NULL,
     "N runs at the same time (1; 0: as many as CPUs)"},
    {NULL, 'I', 0, NULL, "REPL", CALL, 0, set_replace, "any text", NULL,
     "what stands for the key ({}; absent: at the end)"},
    {NULL, 0, 0, "timeout", "DUR", DURATION, AT(timeout_ns), NULL, TIMES, NULL,
     "stop a run that takes longer: it failed"},
    {NULL, 0, 0, "kill-after", "DUR", DURATION, AT(kill_after_ns), NULL, TIMES,
     NULL, "... and kill it if it does not stop (10s)"},
    {NULL, 0, 0, "stop-signal", "SIG", CALL, 0, set_stop_signal,
     "TERM, SIGTERM, 15 and the like", "TERM INT HUP QUIT USR1 USR2 KILL",
     "how it is told to stop (TERM)"},
    {NULL, 0, 0, "env-key", "NAME", CALL, 0, set_env_key,
     "the name of a variable", NULL, "the variable that has the key (WQ_KEY)"},
    {NULL, 't', 0, "verbose", NULL, FLAG, AT(verbose), NULL, NULL, NULL,
     "print each command on stderr before it is run"},
    {NULL, 0, 0, "dry-run", NULL, FLAG, AT(dry_run), NULL, NULL, NULL,
     "print the commands, run none"},

    {"Queue", 0, 0, "debounce", "DUR", DURATION, AT(debounce_ns), NULL, TIMES,
     NULL, "run a key when it has not come again for DUR"},
    {NULL, 0, 0, "debounce-max", "DUR", DURATION, AT(debounce_max_ns), NULL,
     TIMES, NULL, "... but no later than DUR after it first came"},
    {NULL, 0, 0, "after", "DUR", DURATION, AT(after_ns), NULL, TIMES, NULL,
     "every key waits for DUR"},
    {NULL, 0, 0, "priority", "N", CALL, 0, set_priority,
     "a whole number; higher runs first", NULL,
     "of keys that do not say it (0); higher runs first"},
    {NULL, 0, 0, "queue", "URL", CALL, 0, set_queue,
     "mem:", "mem:", "where keys are kept: mem:"},
    {NULL, 0, 0, "name", "Q", CALL, 0, set_name, "any text", NULL,
     "of the queue, in metrics and WQ_QUEUE (run)"},

    {"Retry", 0, 0, "retries", "N", CALL, 0, set_retries, "0, 1, 2, ... or inf",
     "inf", "retry a failed key N times (5; inf: for ever)"},
    {NULL, 0, 0, "backoff", "B[,MAX[,F]]", CALL, 0, set_backoff,
     "BASE[,MAX[,FACTOR]] such as 1s,5m,2", NULL,
     "after up to B, then F times longer (1s,5m,2)"},
    {NULL, 0, 0, "no-retry-codes", "LIST", CALL, 0, set_no_retry,
     "exit codes from 1 to 255 such as 65,66,70-78", NULL,
     "exit codes not to retry: 65,70-78"},
    {NULL, 0, 0, "rate", "N/s[:BURST]", CALL, 0, set_rate,
     "N/s, N/m, N/h or N/d, and :BURST, such as 10/s or 100/m:20", NULL,
     "start no more than N runs a second (/m, /h)"},

    {"Ending", 0, 0, "halt", "WHEN", CALL, 0, set_halt,
     "never, or {now|soon},{fail|success|done}={N|P%}",
     "never now,fail=1 soon,fail=1 now,success=1 soon,success=1",
     "stop early: now,fail=1 soon,fail=10% now,success=1"},
    {NULL, 0, 0, "drain-timeout", "DUR", DURATION, AT(drain_timeout_ns), NULL,
     TIMES, NULL, "when stopped: let runs go on for DUR, then stop them"},
    {NULL, 0, 0, "pending-file", "FILE", STRING, AT(pending_file), NULL, NULL,
     "<file>", "write keys that are left to FILE, NUL-separated"},
    {NULL, 0, 0, "resume", NULL, CALL, 0, set_resume, NULL, NULL,
     "skip keys that are in the --joblog"},
    {NULL, 0, 0, "resume-failed", NULL, CALL, 0, set_resume_failed, NULL, NULL,
     "skip keys that succeeded, says the --joblog"},

    {"Output", 0, 0, "group", NULL, CALL, 0, set_group, NULL, NULL,
     "the output of a run stays together (default)"},
    {NULL, 0, 0, "line-buffer", NULL, CALL, 0, set_line_buffer, NULL, NULL,
     "... line by line"},
    {NULL, 0, 0, "ungroup", NULL, CALL, 0, set_ungroup, NULL, NULL,
     "... as it comes"},
    {NULL, 0, 0, "tag", "[=FMT]", CALL, 0, set_tag, NULL, NULL,
     "begin each line with the key and a tab, or FMT"},
    {NULL, 0, 0, "results", "DIR", STRING, AT(results), NULL, NULL, "<dir>",
     "keep the output of each run below DIR"},
    {NULL, 0, 0, "joblog", "FILE", STRING, AT(joblog), NULL, NULL, "<file>",
     "log each run, as GNU parallel does"},
    {NULL, 0, 0, "json", "[=FILE]", CALL, 0, set_json, NULL, "<file>",
     "write what happens, as JSON, to stdout or FILE"},
    {NULL, 0, 0, "progress", "WHEN", CALL, 0, set_progress,
     "auto, always, never", "auto always never",
     "show it on stderr (auto: if that is a terminal)"},
    {NULL, 'q', 0, "quiet", NULL, FLAG, AT(quiet), NULL, NULL, NULL,
     "no progress, no closing line"},
    {NULL, 0, 0, "summary", NULL, FLAG, AT(summary), NULL, NULL, NULL,
     "the closing line even so"},
    {NULL, 0, 0, "listen", "ADDR", CALL, 0, set_listen,
     "127.0.0.1:PORT, [::1]:PORT, unix:PATH", "127.0.0.1: unix:",
     "serve a page and /metrics: 127.0.0.1:PORT, unix:PATH"},

    {"Help", 'h', 0, "help", NULL, HELP, 0, NULL, NULL, NULL, "this text"},
    {NULL, 0, 0, "version", NULL, VERSION, 0, NULL, NULL, NULL, "which wq"},
    {NULL, 0, 0, "completion", "SHELL", COMPLETION, 0, NULL, "bash, zsh, fish",
     "bash zsh fish", "completions for bash, zsh, fish"},
};

#define ROWS (sizeof table / sizeof *table)

static bool
optional(const struct row *row)
{
    return row->arg && row->arg[0] == '[';
}

/* ------------------------------------------------------------------ help -- */

/* "-P, --max-procs=N" */
static int
print_name(FILE *to, const struct row *row)
{
    int n = row->letter
                ? fprintf(to, "-%c%s", row->letter, row->name ? ", " : " ")
                : 0;

    if (row->name)
        n += fprintf(to, "--%s%s", row->name,
                     row->arg && !optional(row) ? "=" : "");
    return n + fprintf(to, "%s", row->arg ? row->arg : "");
}

void
options_help(FILE *to)
{
    fputs("Usage: wq run [OPTION]... [--] COMMAND [ARG]...\n"
          "Read keys, run COMMAND for each: never twice at once for the same "
          "key, once\nmore if it came again meanwhile, again later if it "
          "failed.\n",
          to);
    for (size_t i = 0; i < ROWS; i++) {
        fprintf(to, "%-8s", table[i].group ? table[i].group : "");
        int column = 8 + print_name(to, &table[i]);
        for (; column < 27; column++)
            fputc(' ', to);
        fprintf(to, " %s\n", table[i].help);
    }
}

/* ----------------------------------------------------------- completions -- */

/* An answer is a line, for names of files may hold spaces. A word that goes on,
 * such as --rate=, is not ended by a space. Bash splits --name=a:b into five.
 * What COMMAND takes is asked of bash-completion, if that is there. */
static const char bash_begin[] =
    "# bash completion for wq\n"
    "_wq_words() {\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
    "    if [[ ${COMPREPLY[0]} == *[=:] ]]; then compopt -o nospace; fi\n"
    "}\n"
    "_wq_paths() {\n"
    "    mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$cur\")\n"
    "    compopt -o filenames\n"
    "}\n"
    "# COMMAND is word $1.\n"
    "_wq_command() {\n"
    "    if ((COMP_CWORD == $1)); then\n"
    "        _wq_paths -c\n"
    "    elif declare -F _command_offset >/dev/null; then\n"
    "        _command_offset \"$1\"\n"
    "    else\n"
    "        _wq_paths -f\n"
    "    fi\n"
    "}\n"
    "_wq() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} "
    "prev=${COMP_WORDS[COMP_CWORD-1]} i\n"
    "    if [[ $cur == = ]]; then cur='' prev=$prev=;\n"
    "    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}=;\n"
    "    elif [[ $cur == : || $prev == : ]]; then return; fi\n"
    "    if ((COMP_CWORD == 1)); then\n"
    "        _wq_words 'run help --help --version --completion='\n"
    "        return\n"
    "    fi\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do # where does COMMAND begin?\n"
    "        case ${COMP_WORDS[i]} in\n"
    "        --) _wq_command $((i + 1)); return ;;\n"
    "        =|:) ((i++)) ;;\n";
static const char bash_middle[] = "        -*) ;;\n"
                                  "        *) _wq_command \"$i\"; return ;;\n"
                                  "        esac\n"
                                  "    done\n"
                                  "    case $prev in\n";

/* As a pattern: "-P|-j|--max-procs" */
static void
print_bash_names(FILE *to, const struct row *row)
{
    const char letters[] = {row->letter, row->alias, '\0'};

    for (const char *c = letters; *c; c++)
        fprintf(to, "-%c%s", *c, c[1] || row->name ? "|" : "");
    if (row->name)
        fprintf(to, "--%s", row->name);
}

/* What may follow: nothing that is known, a path, or words. */
static void
print_bash_values(FILE *to, const struct row *row)
{
    if (!row->words)
        fputs("return ;;\n", to);
    else if (row->words[0] == '<')
        fprintf(to, "_wq_paths -%c; return ;;\n",
                row->words[1]); /* file, dir, command */
    else
        fprintf(to, "_wq_words '%s'; return ;;\n", row->words);
}

static void
complete_bash(FILE *to)
{
    fputs(bash_begin, to);
    for (size_t i = 0; i < ROWS; i++)
        if (table[i].arg && !optional(&table[i])) {
            fputs("        ", to);
            print_bash_names(to, &table[i]);
            fputs(") [[ ${COMP_WORDS[i+1]} == = ]] || ((i++)) ;;\n", to);
        }
    fputs(bash_middle, to);
    for (size_t i = 0; i < ROWS; i++)
        if (table[i].arg) {
            fputs("    ", to);
            if (!optional(&table[i])) {
                print_bash_names(to, &table[i]);
                fputs(table[i].name ? "|" : "", to);
            }
            if (table[i].name)
                fprintf(to, "--%s=", table[i].name);
            fputs(") ", to);
            print_bash_values(to, &table[i]);
        }
    fputs("    esac\n    if [[ $cur != -* ]]; then\n"
          "        _wq_command \"$COMP_CWORD\"\n"
          "        return\n    fi\n    _wq_words '",
          to);
    for (size_t i = 0; i < ROWS; i++)
        if (table[i].name)
            fprintf(to, "--%s%s ", table[i].name,
                    table[i].arg && !optional(&table[i]) ? "=" : "");
    fputs("'\n}\ncomplete -F _wq wq\n", to);
}

/* In zsh's single quotes and its brackets. */
static void
print_zsh_text(FILE *to, const char *text)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", to);
        else if (strchr("[]:\\", *text))
            fprintf(to, "\\%c", *text);
        else
            fputc(*text, to);
}

static void
print_zsh_row(FILE *to, const struct row *row, const char *name, char mark)
{
    fprintf(to, "        '*%s", name);
    if (mark)
        fputc(mark, to);
    fputc('[', to);
    print_zsh_text(to, row->help);
    fputc(']', to);
    if (row->arg) {
        fprintf(to, "%s:", optional(row) ? ":" : "");
        print_zsh_text(to, optional(row) ? "value" : row->arg);
        fputc(':', to);
    }
    if (row->words && row->words[0] != '<')
        fprintf(to, "(%s)", row->words);
    else if (row->words && row->words[1] == 'f')
        fputs("_files", to);
    else if (row->words && row->words[1] == 'd')
        fputs("_files -/", to);
    fputs("' \\\n", to);
}

static void
complete_zsh(FILE *to)
{
    fputs("#compdef wq\n_wq() {\n    if ((CURRENT == 2)); then\n"
          "        compadd run help -- --help --version --completion=\n"
          "        return\n    fi\n    shift words\n    ((CURRENT--))\n"
          "    _arguments -S \\\n",
          to);
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &table[i];
        const char        letter[] = {'-', row->letter, '\0'};
        const char        alias[] = {'-', row->alias, '\0'};
        char              name[64];
        (void)snprintf(name, sizeof name, "--%s", row->name ? row->name : "");
        const char mark = optional(row) ? '-' : row->arg ? '=' : '\0';
        if (row->name)
            print_zsh_row(to, row, name, mark);
        if (row->letter)
            print_zsh_row(to, row, letter, row->arg ? '+' : '\0');
        if (row->alias)
            print_zsh_row(to, row, alias, row->arg ? '+' : '\0');
    }
    /* From a directory of $fpath the file is the function, and the first call
     * of it is to complete already. */
    fputs("        '(-):command:_command_names -e' '*::arguments:_normal'\n}\n"
          "if [[ $funcstack[1] == _wq ]]; then\n    _wq \"$@\"\nelse\n"
          "    compdef _wq wq\nfi\n",
          to);
}

static void
complete_fish(FILE *to)
{
    fputs("# fish completion for wq\n"
          "complete -c wq -n __fish_use_subcommand -f -a run -d 'run a command "
          "for each key'\n"
          "complete -c wq -n __fish_use_subcommand -f -a help\n"
          "complete -c wq -n __fish_use_subcommand -l version\n"
          "complete -c wq -n __fish_use_subcommand -l completion -x -a 'bash "
          "zsh fish'\n"
          "complete -c wq -n '__fish_seen_subcommand_from run' -x "
          "-a '(__fish_complete_subcommand --fcs-skip=2)'\n",
          to);
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &table[i];
        fputs("complete -c wq -n '__fish_seen_subcommand_from run'", to);
        if (row->letter)
            fprintf(to, " -s %c", row->letter);
        if (row->alias)
            fprintf(to, " -s %c", row->alias);
        if (row->name)
            fprintf(to, " -l %s", row->name);
        if (row->arg && !optional(row))
            fputs(" -r", to);
        if (row->words && row->words[0] != '<')
            fprintf(to, " -f -a '%s'", row->words);
        else if (row->words && row->words[1] == 'd')
            fputs(" -f -a '(__fish_complete_directories)'", to);
        else if (row->words)
            fputs(" -F", to);
        fputs(" -d '", to);
        for (const char *s = row->help; *s; s++)
            fprintf(to, *s == '\'' ? "\\%c" : "%c", *s);
        fputs("'\n", to);
    }
}

bool
options_completion(FILE *to, const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        complete_bash(to);
    else if (strcmp(shell, "zsh") == 0)
        complete_zsh(to);
    else if (strcmp(shell, "fish") == 0)
        complete_fish(to);
    else
        return false;
    return true;
}

/* --------------------------------------------------------------- parsing -- */

/* What getopt_long() is to know. Long options are returned as FIRST + row. */
enum { FIRST = 256 };

static void
describe(struct option *longs, char *shorts)
{
    *shorts++ = '+'; /* stop at COMMAND: the rest is its own */
    *shorts++ = ':'; /* tell "no value" from "no such option" */
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &table[i];
        const char        letters[] = {row->letter, row->alias, '\0'};
        for (const char *c = letters; *c; c++) {
            *shorts++ = *c;
            if (row->arg)
                *shorts++ = ':';
        }
        if (row->name)
            *longs++ = (struct option){.name = row->name,
                                       .has_arg = optional(row) ? 2
                                                  : row->arg    ? 1
                                                                : 0,
                                       .val = FIRST + (int)i};
    }
    *shorts = '\0';
    *longs = (struct option){0};
}

static const struct row *
find(int found)
{
    if (found >= FIRST)
        return &table[found - FIRST];
    for (size_t i = 0; i < ROWS; i++)
        if (found == table[i].letter || found == table[i].alias)
            return &table[i];
    return NULL;
}

/* "--retries" or "-I", for messages. */
static const char *
title(const struct row *row)
{
    static char text[64];

    if (row->name)
        (void)snprintf(text, sizeof text, "--%s", row->name);
    else
        (void)snprintf(text, sizeof text, "-%c", row->letter);
    return text;
}

static enum asked
refuse(const struct row *row, const char *value, const char *wrong)
{
    if (row->accepted)
        tell("%s: '%s' %s; accepted: %s", title(row), value, wrong,
             row->accepted);
    else
        tell("%s: '%s' %s", title(row), value, wrong);
    return ASKED_WRONGLY;
}

static enum asked
take(struct options *o, const struct row *row, const char *value)
{
    void       *field = (char *)o + row->field;
    const char *wrong = NULL;

    switch (row->kind) {
    case FLAG:
        *(bool *)field = true;
        return ASKED_RUN;
    case STRING:
        *(const char **)field = value;
        wrong = *value ? NULL : "is empty";
        break;
    case DURATION:
        wrong = value_duration(value, field) ? NULL : "is not a duration";
        break;
    case CALL:
        wrong = row->set(o, value);
        break;
    case HELP:
        options_help(stdout);
        return ASKED_NOTHING;
    case VERSION:
        printf("wq %d.%d.%d\n", WQ_VERSION_MAJOR, WQ_VERSION_MINOR,
               WQ_VERSION_PATCH);
        return ASKED_NOTHING;
    case COMPLETION:
        if (options_completion(stdout, value))
            return ASKED_NOTHING;
        wrong = "is no shell that is known here";
        break;
    }
    return wrong ? refuse(row, value, wrong) : ASKED_RUN;
}

/* `word` is the argument that getopt stumbled over. */
static enum asked
refuse_unknown(int found, const char *word)
{
    const struct row *row = find(optopt);

    if (found == ':' || (row && row->arg && optopt < FIRST))
        tell("%s: needs a value%s%s", row ? title(row) : word,
             row && row->accepted ? "; accepted: " : "",
             row && row->accepted ? row->accepted : "");
    else if (row && optopt >= FIRST)
        tell("%s: takes no value, but has one: '%s'", title(row), word);
    else if (word && strncmp(word, "--", 2) == 0)
        tell("unknown option '%s'; see wq run --help", word);
    else
        tell("unknown option '-%c'; see wq run --help", optopt);
    return ASKED_WRONGLY;
}

/* --tag alone: the key, as COMMAND names it, and a tab. */
static bool
complete_tag(struct options *o)
{
    if (!o->tagged || o->tag)
        return true;
    if (asprintf(&o->tag_text, "%s\t", o->replace) < 0)
        return false;
    o->tag = o->tag_text;
    return true;
}

/* Is what options need given as well, and do they agree? */
static bool
is_given(const struct options *o)
{
    if (!o->command[0])
        tell("which COMMAND? Usage: wq run [OPTION]... [--] COMMAND [ARG]...");
    else if (o->resync_ns && !o->list)
        tell("--resync: repeats --list=CMD, which is not given");
    else if (o->debounce_max_ns && !o->debounce_ns)
        tell("--debounce-max: limits --debounce, which is not given");
    else if (o->debounce_ns && o->after_ns)
        tell("--after and --debounce: a key can wait for one of them only");
    else if (o->resume != RESUME_NO && !o->joblog)
        tell("--resume: reads the --joblog, which is not given");
    else if (o->tagged && o->grouping == GROUP_NONE)
        tell("--tag: with --ungroup wq does not see the output");
    else if (o->results && o->grouping == GROUP_NONE)
        tell("--results: with --ungroup wq does not see the output");
    else
        return true;
    return false;
}

enum asked
options_parse(struct options *out, int argc, char **argv)
{
    struct option longs[ROWS + 1];
    char          shorts[ROWS * 4 + 3];
    enum asked    asked = ASKED_RUN;
    int           found;

    *out = (struct options){
        .delimiter = '\n',
        .slots = 1,
        .replace = "{}",
        .kill_after_ns = 10000000000,
        .stop_signal = SIGTERM,
        .env_key = "WQ_KEY",
        .name = "run",
        .retries = 5,
        .backoff = {.base_ns = 1000000000, .max_ns = 300000000000, .factor = 2},
    };
    describe(longs, shorts);
    opterr = 0;
    optind = 1;
    while (asked == ASKED_RUN &&
           (found = getopt_long(argc, argv, shorts, longs, NULL)) != -1)
        asked = found == '?' || found == ':'
                    ? refuse_unknown(found, argv[optind - 1])
                    : take(out, find(found), optarg);
    out->command = argv + optind;
    if (asked == ASKED_RUN && (!complete_tag(out) || !is_given(out)))
        asked = ASKED_WRONGLY;
    return asked;
}

void
options_fini(struct options *options)
{
    free(options->files);
    free(options->tag_text);
    options->tag_text = NULL;
    options->files = NULL;
    options->n_files = 0;
}
