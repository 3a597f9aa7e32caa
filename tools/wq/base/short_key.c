/* SPDX-License-Identifier: MIT */
/* short_key.c: how is a key kept for display? See short_key.h. */
#include "base/short_key.h"

#include <string.h>

/* FNV-1a. */
static uint64_t
hash(const unsigned char *bytes, size_t n)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * UINT64_C(1099511628211);
    return h;
}

/* Where the last SHORT_KEY_TAIL bytes begin, or the character after that. */
static size_t
tail_from(const char *bytes, size_t len)
{
    size_t at = len - SHORT_KEY_TAIL;

    while (at < len - SHORT_KEY_TAIL + 3 && (bytes[at] & 0xc0) == 0x80)
        at++;
    return at;
}

void
short_key_set(struct short_key *s, wq_key key)
{
    const char *bytes = key.data;

    *s = (struct short_key){.len = key.len};
    if (!short_key_is_cut(s)) {
        s->head = (uint8_t)key.len;
        memcpy(s->bytes, bytes, key.len);
        return;
    }
    const size_t from = tail_from(bytes, key.len);
    s->hash = hash(key.data, key.len);
    s->head = (uint8_t)text_cut(bytes, key.len, SHORT_KEY_HEAD);
    s->tail = (uint8_t)(key.len - from);
    memcpy(s->bytes, bytes, s->head);
    memcpy(s->bytes + s->head, bytes + from, s->tail);
}

bool
short_key_is(const struct short_key *a, const struct short_key *b)
{
    return a->len == b->len && a->hash == b->hash &&
           memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void
short_key_add(const struct short_key *s, struct wq__text *out)
{
    wq__text_key(out, s->bytes, s->head);
    if (!short_key_is_cut(s))
        return;
    wq__text_str(out, ",\"tail\":");
    wq__text_json(out, s->bytes + s->head, s->tail);
    text_print(out, ",\"cut\":true,\"bytes\":%zu", s->len);
}

size_t
short_key_join(const struct short_key *s, char text[SHORT_KEY_TEXT])
{
    size_t len = s->head;

    memcpy(text, s->bytes, len);
    if (short_key_is_cut(s)) {
        memcpy(text + len, "...", 3);
        memcpy(text + len + 3, s->bytes + s->head, s->tail);
        len += 3 + s->tail;
    }
    text[len] = '\0';
    return len;
}
