/* SPDX-License-Identifier: MIT */
/* regex.c: what does a regular expression of the user match? See regex.h. */
#include "options/regex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void
regex_fini(struct regex *expression)
{
    if (expression->set)
        regfree(&expression->regex);
    expression->set = false;
}

/* Writes a tab for \\t, as users of parallel expect. Returns an escape that means
 * something in other dialects, but not in this one; 0: there is none. */
static char
translate(char *text)
{
    char *to = text;

    for (; *text; text++) {
        if (*text == '\\' && text[1] == 't') {
            *to++ = '\t';
            text++;
            continue;
        }
        *to++ = *text;
        if (*text != '\\' || !text[1])
            continue;
        if (isalnum((unsigned char)text[1]) && !strchr("sSwWbB", text[1]))
            return text[1];
        *to++ = *++text;
    }
    *to = '\0';
    return 0;
}

const char *
regex_compile(struct regex *expression, const char *text)
{
    static char  why[160] = "is not a regular expression: ";
    static char  foreign[] = "has \\x, which POSIX does not have: write [0-9] "
                             "for a digit, and so on";
    const size_t len = strlen("is not a regular expression: ");
    char        *own = strdup(text);

    if (!*text || !own) {
        free(own);
        return own ? "is empty" : "is too much: out of memory";
    }
    regex_fini(expression);
    const char escape = translate(own);
    if (escape) {
        foreign[strlen("has \\")] = escape;
        free(own);
        return foreign;
    }
    const int err = regcomp(&expression->regex, own, REG_EXTENDED);
    free(own);
    expression->set = err == 0;
    if (err)
        (void)regerror(err, &expression->regex, why + len, sizeof why - len);
    return err ? why : NULL;
}

wq_key
regex_find(const struct regex *expression, const char *text)
{
    regmatch_t        found[2];
    const size_t      groups = expression->regex.re_nsub > 0;
    const regmatch_t *part = &found[groups];

    if (regexec(&expression->regex, text, groups + 1, found, 0) != 0 ||
        part->rm_so < 0)
        return wq_bytes(text, 0);
    return wq_bytes(text + part->rm_so, (size_t)(part->rm_eo - part->rm_so));
}
