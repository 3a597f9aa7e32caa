/* SPDX-License-Identifier: MIT */
/* short_key.h: how is a key kept for display, in little memory?
 *
 * A key has up to 64 KiB. Its first and its last bytes are kept, since its ends
 * say more than its middle, and a hash, so that two keys that differ only in
 * their middle are not taken for the same.
 */
#ifndef WQ_TOOL_SHORT_KEY_H
#define WQ_TOOL_SHORT_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/wq.h>

#include "base/text.h"

/* Longer keys are cut to these bytes, or up to three less. */
#define SHORT_KEY_HEAD 120
#define SHORT_KEY_TAIL 80
#define SHORT_KEY_MAX (SHORT_KEY_HEAD + SHORT_KEY_TAIL)
/* Bytes that short_key_join() needs: "..." and a NUL. */
#define SHORT_KEY_TEXT (SHORT_KEY_MAX + 4)

struct short_key {
    size_t   len;                  /* of the whole key */
    uint64_t hash;                 /* of a key that is cut; else 0 */
    uint8_t  head, tail;           /* bytes of both; no character is split */
    char     bytes[SHORT_KEY_MAX]; /* the head, then the tail */
};

void short_key_set(struct short_key *s, wq_key key);
bool short_key_is(const struct short_key *a, const struct short_key *b);

/* Was the key too long to be kept? */
static inline bool
short_key_is_cut(const struct short_key *s)
{
    return s->len > SHORT_KEY_MAX;
}

/* Add its members to a JSON object: those of wq__text_key(), and for a key that
 * is cut ,"tail":"...","cut":true,"bytes":N. */
void short_key_add(const struct short_key *s, struct wq__text *out);

/* The key with "..." for what is missing. Returns the number of bytes; the key
 * itself may contain NUL. */
size_t short_key_join(const struct short_key *s, char text[SHORT_KEY_TEXT]);

#endif
