/* SPDX-License-Identifier: MIT */
/* keymap.c: which key does a line of the input add? See keymap.h. */
#include "input/keymap.h"

#include <regex.h>

#include "process/words.h"

/* The first group of the expression, or its match. No bytes: it does not match,
 * or the group takes no part in the match. */
static wq_key
match(const struct regex *expression, const char *line)
{
    regmatch_t        found[2];
    const size_t      groups = expression->regex.re_nsub > 0;
    const regmatch_t *part = &found[groups];

    if (regexec(&expression->regex, line, groups + 1, found, 0) != 0 ||
        part->rm_so < 0)
        return wq_bytes(line, 0);
    return wq_bytes(line + part->rm_so, (size_t)(part->rm_eo - part->rm_so));
}

wq_err
keymap_find(struct keymap *map, wq_key line, wq_key *key)
{
    const struct options *options = map->options;

    if (!options->mapped && !options->colsep.set) {
        *key = line;
        return WQ_OK;
    }
    text_clear(&map->copy);
    wq__text_add(&map->copy, line.data, line.len);
    const char *copy = text_terminate(&map->copy);
    if (!copy)
        return WQ_ENOMEM;
    *key = wq_bytes(copy, line.len);
    if (options->key.set)
        *key = match(&options->key, copy);
    else if (options->key_column)
        *key = column_of(options, *key, options->key_column);
    else if (options->key_const)
        *key = wq_str(options->key_const);
    return key->len > 0 ? WQ_OK : WQ_ENOTFOUND;
}

void
keymap_fini(struct keymap *map)
{
    wq__text_fini(&map->copy);
}
