/* SPDX-License-Identifier: MIT */
/* regex.c: what does a regular expression of the user match? See regex.h. */
#include "options/regex.h"

#include <string.h>

void
regex_fini(struct regex *expression)
{
    if (expression->set)
        regfree(&expression->regex);
    expression->set = false;
}

const char *
regex_compile(struct regex *expression, const char *text)
{
    static char  why[160] = "is not a regular expression: ";
    const size_t len = strlen("is not a regular expression: ");

    if (!*text)
        return "is empty";
    regex_fini(expression);
    const int err = regcomp(&expression->regex, text, REG_EXTENDED);
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
