/* SPDX-License-Identifier: MIT */
/* completion.c: what do shells need to complete a command line?
 *
 * A script for each shell, made from the rows of verbs.c and table.c.
 */
#include <string.h>

#include "options/options.h"
#include "options/table.h"

/* ------------------------------------------------------------------ bash -- */

/* Candidates are separated by newlines: names of files may contain spaces. No
 * space is appended to a word that ends with = or a colon. Bash splits
 * --name=a:b into five words. bash-completion, if loaded, completes the
 * arguments of COMMAND. */
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
    "        _wq_words '";
static const char bash_verbs[] = "help --help --version --completion='\n"
                                 "        return\n"
                                 "    fi\n"
                                 "    if [[ $prev == --completion= ]]; then\n"
                                 "        _wq_words 'bash zsh fish'\n"
                                 "        return\n"
                                 "    fi\n"
                                 "    case ${COMP_WORDS[1]} in\n";

/* Where does COMMAND begin? */
static const char bash_search[] =
    "        for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "            case ${COMP_WORDS[i]} in\n"
    "            --) _wq_command $((i + 1)); return ;;\n"
    "            =|:) ((i++)) ;;\n";
static const char bash_found[] =
    "            -*) ;;\n"
    "            *) _wq_command \"$i\"; return ;;\n"
    "            esac\n"
    "        done\n";

/* The pattern "-P|-j|--max-procs". */
static void
print_bash_names(FILE *to, const struct row *row)
{
    const char letters[] = {row->letter, row->alias, '\0'};

    for (const char *c = letters; *c; c++)
        fprintf(to, "-%c%s", *c, c[1] || row->name ? "|" : "");
    if (row->name)
        fprintf(to, "--%s", row->name);
}

/* The candidates for a value: none, paths, or words. */
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

/* Skips options and their values up to COMMAND, and completes that. */
static void
print_bash_search(FILE *to, enum verb verb)
{
    fputs(bash_search, to);
    for (const struct row *row = row_first(verb); row;
         row = row_next(row, verb))
        if (row->arg && !row_is_optional(row)) {
            fputs("            ", to);
            print_bash_names(to, row);
            fputs(") [[ ${COMP_WORDS[i+1]} == = ]] || ((i++)) ;;\n", to);
        }
    fputs(bash_found, to);
}

static void
print_bash_verb(FILE *to, enum verb verb)
{
    fprintf(to, "    %s)\n", verbs_table[verb].name);
    if (verbs_table[verb].runs)
        print_bash_search(to, verb);
    fputs("        case $prev in\n", to);
    for (const struct row *row = row_first(verb); row;
         row = row_next(row, verb))
        if (row->arg) {
            fputs("        ", to);
            if (!row_is_optional(row)) {
                print_bash_names(to, row);
                fputs(row->name ? "|" : "", to);
            }
            if (row->name)
                fprintf(to, "--%s=", row->name);
            fputs(") ", to);
            print_bash_values(to, row);
        }
    fprintf(to,
            "        esac\n        if [[ $cur != -* ]]; then\n"
            "            %s\n            return\n        fi\n"
            "        _wq_words '",
            verbs_table[verb].runs ? "_wq_command \"$COMP_CWORD\"" : ":");
    for (const struct row *row = row_first(verb); row;
         row = row_next(row, verb))
        if (row->name)
            fprintf(to, "--%s%s ", row->name,
                    row->arg && !row_is_optional(row) ? "=" : "");
    fputs("' ;;\n", to);
}

static void
complete_bash(FILE *to)
{
    fputs(bash_begin, to);
    for (enum verb verb = 0; verb < VERBS; verb++)
        fprintf(to, "%s ", verbs_table[verb].name);
    fputs(bash_verbs, to);
    for (enum verb verb = 0; verb < VERBS; verb++)
        print_bash_verb(to, verb);
    fputs("    esac\n}\ncomplete -F _wq wq\n", to);
}

/* ------------------------------------------------------------------- zsh -- */

/* Escapes for single quotes and for the brackets of _arguments. */
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
        fprintf(to, "%s:", row_is_optional(row) ? ":" : "");
        print_zsh_text(to, row_is_optional(row) ? "value" : row->arg);
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
print_zsh_verb(FILE *to, enum verb verb)
{
    fprintf(to, "    %s) _arguments -S \\\n", verbs_table[verb].name);
    for (const struct row *row = row_first(verb); row;
         row = row_next(row, verb)) {
        const char letter[] = {'-', row->letter, '\0'};
        const char alias[] = {'-', row->alias, '\0'};
        char       name[64];
        (void)snprintf(name, sizeof name, "--%s", row->name ? row->name : "");
        const char mark = row_is_optional(row) ? '-' : row->arg ? '=' : '\0';
        if (row->name)
            print_zsh_row(to, row, name, mark);
        if (row->letter)
            print_zsh_row(to, row, letter, row->arg ? '+' : '\0');
        if (row->alias)
            print_zsh_row(to, row, alias, row->arg ? '+' : '\0');
    }
    fprintf(to, "        %s ;;\n",
            verbs_table[verb].runs
                ? "'(-):command:_command_names -e' '*::arguments:_normal'"
                : "'*:key:()'");
}

static void
complete_zsh(FILE *to)
{
    fputs("#compdef wq\n_wq() {\n    if ((CURRENT == 2)); then\n"
          "        compadd ",
          to);
    for (enum verb verb = 0; verb < VERBS; verb++)
        fprintf(to, "%s ", verbs_table[verb].name);
    fputs("help -- --help --version --completion=\n"
          "        return\n    fi\n    shift words\n    ((CURRENT--))\n"
          "    case $words[1] in\n",
          to);
    for (enum verb verb = 0; verb < VERBS; verb++)
        print_zsh_verb(to, verb);
    /* In a directory of $fpath the file is the body of _wq, and its first call
     * must complete already. */
    fputs("    esac\n}\n"
          "if [[ $funcstack[1] == _wq ]]; then\n    _wq \"$@\"\nelse\n"
          "    compdef _wq wq\nfi\n",
          to);
}

/* ------------------------------------------------------------------ fish -- */

/* In single quotes. */
static void
print_fish_text(FILE *to, const char *text)
{
    fputc('\'', to);
    for (; *text; text++)
        fprintf(to, *text == '\'' ? "\\%c" : "%c", *text);
    fputc('\'', to);
}

static void
print_fish_row(FILE *to, enum verb verb, const struct row *row)
{
    fprintf(to, "complete -c wq -n '__fish_seen_subcommand_from %s'",
            verbs_table[verb].name);
    if (row->letter)
        fprintf(to, " -s %c", row->letter);
    if (row->alias)
        fprintf(to, " -s %c", row->alias);
    if (row->name)
        fprintf(to, " -l %s", row->name);
    if (row->arg && !row_is_optional(row))
        fputs(" -r", to);
    if (row->words && row->words[0] != '<')
        fprintf(to, " -f -a '%s'", row->words);
    else if (row->words && row->words[1] == 'd')
        fputs(" -f -a '(__fish_complete_directories)'", to);
    else if (row->words)
        fputs(" -F", to);
    fputs(" -d ", to);
    print_fish_text(to, row->help);
    fputc('\n', to);
}

static void
print_fish_verb(FILE *to, enum verb verb)
{
    const struct verb_row *about = &verbs_table[verb];

    fprintf(to, "complete -c wq -n __fish_use_subcommand -f -a %s -d ",
            about->name);
    print_fish_text(to, about->summary);
    fprintf(to, "\ncomplete -c wq -n '__fish_seen_subcommand_from %s' %s\n",
            about->name,
            about->runs ? "-x -a '(__fish_complete_subcommand --fcs-skip=2)'"
                        : "-f");
    for (const struct row *row = row_first(verb); row;
         row = row_next(row, verb))
        print_fish_row(to, verb, row);
}

static void
complete_fish(FILE *to)
{
    fputs("# fish completion for wq\n"
          "complete -c wq -n __fish_use_subcommand -f -a help\n"
          "complete -c wq -n __fish_use_subcommand -l version\n"
          "complete -c wq -n __fish_use_subcommand -l completion -x -a 'bash "
          "zsh fish'\n",
          to);
    for (enum verb verb = 0; verb < VERBS; verb++)
        print_fish_verb(to, verb);
}

/* ------------------------------------------------------------ the choice -- */

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
