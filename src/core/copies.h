/* SPDX-License-Identifier: MIT */
/* copies.h: which keys does wq_each() visit next?
 *
 * A batch of keys that are copied under a lock and visited without it.
 */
#ifndef WQ_CORE_COPIES_H
#define WQ_CORE_COPIES_H

#include <string.h>

#include <wq/inspect.h>

enum {
    WQ__COPIES_KEYS = 64,
    WQ__COPIES_LONGEST = WQ_KEY_MAX + 1, /* with its NUL */
    WQ__COPIES_BYTES = 2 * WQ__COPIES_LONGEST,
};

struct wq__copies {
    size_t      len;   /* how many */
    size_t      bytes; /* used bytes of `text` */
    wq_key      keys[WQ__COPIES_KEYS];
    wq_key_info infos[WQ__COPIES_KEYS];
    char        text[WQ__COPIES_BYTES]; /* the keys, each with a NUL */
};

static inline void
wq__copies_clear(struct wq__copies *c)
{
    c->len = c->bytes = 0;
}

/* Is there space for one more key, however long? */
static inline bool
wq__copies_have_space(const struct wq__copies *c)
{
    return c->len < WQ__COPIES_KEYS &&
           c->bytes <= WQ__COPIES_BYTES - WQ__COPIES_LONGEST;
}

/* There must be space. */
static inline void
wq__copies_add(struct wq__copies *c, wq_key key, const wq_key_info *info)
{
    char *text = c->text + c->bytes;

    memcpy(text, key.data, key.len);
    text[key.len] = '\0';
    c->keys[c->len] = (wq_key){text, key.len};
    c->infos[c->len] = *info;
    c->bytes += key.len + 1;
    c->len++;
}

#endif
