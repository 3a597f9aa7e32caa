/* SPDX-License-Identifier: MIT */
/* keymap.c: which key does a line of the input add? See keymap.h. */
#include "input/keymap.h"

#include "process/words.h"

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
        *key = regex_find(&options->key, copy);
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
