/* SPDX-License-Identifier: MIT */
/* notes.c: what is remembered of a key besides what the queue knows? */
#include "run/notes.h"

#include <stdlib.h>
#include <string.h>

/* With so many notes for each bucket, on average, the table grows. */
enum { FIRST_BUCKETS = 64 };

/* FNV-1a. */
static uint64_t
hash_of(wq_key key)
{
    const unsigned char *s = key.data;
    uint64_t             hash = 14695981039346656037U;

    for (size_t i = 0; i < key.len; i++)
        hash = (hash ^ s[i]) * 1099511628211U;
    return hash ^ hash >> 32;
}

/* Where the note of the key is linked, or could be. */
static struct note **
place(const struct notes *notes, wq_key key, uint64_t hash)
{
    struct note **at = &notes->buckets[hash & (notes->n_buckets - 1)];

    while (*at && ((*at)->hash != hash || (*at)->len != key.len ||
                   memcmp((*at)->key, key.data, key.len) != 0))
        at = &(*at)->next;
    return at;
}

struct note *
notes_find(const struct notes *notes, wq_key key)
{
    return notes->n > 0 ? *place(notes, key, hash_of(key)) : NULL;
}

static bool
grow(struct notes *notes)
{
    const size_t  n = notes->n_buckets ? 2 * notes->n_buckets : FIRST_BUCKETS;
    struct note **buckets = calloc(n, sizeof *buckets);

    if (!buckets)
        return notes->n_buckets > 0; /* longer chains */
    for (size_t i = 0; i < notes->n_buckets; i++)
        for (struct note *note = notes->buckets[i], *next; note; note = next) {
            next = note->next;
            struct note **to = &buckets[note->hash & (n - 1)];
            note->next = *to;
            *to = note;
        }
    free(notes->buckets);
    notes->buckets = buckets;
    notes->n_buckets = n;
    return true;
}

struct note *
notes_get(struct notes *notes, wq_key key)
{
    if (notes->n >= notes->n_buckets && !grow(notes))
        return NULL;
    const uint64_t hash = hash_of(key);
    struct note  **at = place(notes, key, hash);
    if (*at)
        return *at;
    struct note *note = malloc(sizeof *note + key.len);
    if (!note)
        return NULL;
    *note = (struct note){.hash = hash, .len = key.len};
    (void)memcpy(note->key, key.data, key.len);
    *at = note;
    notes->n++;
    return note;
}

bool
note_set_line(struct note *note, wq_key line)
{
    if (!note->line || line.len > note->line_len) {
        char *more = realloc(note->line, line.len + 1);
        if (!more)
            return false;
        note->line = more;
    }
    *(char *)mempcpy(note->line, line.data, line.len) = '\0';
    note->line_len = line.len;
    note->lines++;
    return true;
}

void
note_drop_line(struct note *note)
{
    free(note->line);
    note->line = NULL;
    note->line_len = 0;
}

static void
release(struct note *note)
{
    note_drop_line(note);
    free(note);
}

void
notes_drop(struct notes *notes, struct note *note)
{
    *place(notes, wq_bytes(note->key, note->len), note->hash) = note->next;
    notes->n--;
    release(note);
}

void
notes_fini(struct notes *notes)
{
    for (size_t i = 0; i < notes->n_buckets; i++)
        for (struct note *note = notes->buckets[i], *next; note; note = next) {
            next = note->next;
            release(note);
        }
    free(notes->buckets);
    *notes = (struct notes){0};
}
