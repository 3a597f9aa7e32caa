/* SPDX-License-Identifier: MIT */
/* printable.c: how is a key shown on a terminal? See printable.h.
 *
 * Cost: O(bytes of the key), at most 64 Ki.
 */
#include "display/printable.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

#include "base/text.h"

/* One character of a key, and how it is shown. */
struct glyph {
    size_t bytes;    /* of the key */
    size_t columns;  /* on the terminal */
    size_t len;      /* of text */
    char   text[12]; /* to write: the bytes, or an escape */
};

/* ---- bytes --------------------------------------------------------------- */

/* The character at `b`, and its number of bytes; 0: it is not UTF-8. */
static size_t
decode(const unsigned char *b, size_t n, uint32_t *character)
{
    bool         valid;
    const size_t len = wq__utf8_next((const char *)b, n, &valid);
    uint32_t     c = len == 1 ? b[0] : b[0] & (0x7fU >> len);

    for (size_t i = 1; i < len; i++)
        c = c << 6 | (b[i] & 0x3f);
    *character = c;
    return valid ? len : 0;
}

/* Invisible characters, and those that change how others are shown: zero-width,
 * line and paragraph separators, directions. */
static bool
is_format(uint32_t c)
{
    return c == 0xad || c == 0x61c || c == 0x180e ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

/* ---- one character ------------------------------------------------------- */

/* `width`: hexadecimal digits; 2, 4 or 6. */
static void
escape(struct glyph *g, uint32_t c, int width)
{
    const char *letter = c == '\n'   ? "n"
                         : c == '\t' ? "t"
                         : c == '\r' ? "r"
                                     : "";
    int         len;

    if (*letter)
        len = snprintf(g->text, sizeof g->text, "\\%s", letter);
    else
        len = snprintf(g->text, sizeof g->text, "\\%c%0*x",
                       width == 2   ? 'x'
                       : width == 4 ? 'u'
                                    : 'U',
                       width, (unsigned)c);
    g->len = g->columns = (size_t)len;
}

static void
take(struct glyph *g, const unsigned char *b, size_t columns)
{
    memcpy(g->text, b, g->bytes);
    g->len = g->bytes;
    g->columns = columns;
}

/* The columns of a character in the current locale; -1: not printable. */
static int
columns_of(const struct printable *s, uint32_t c)
{
    if (c < 0x7f)
        return c < 0x20 ? -1 : 1;
    return s->utf8 && !is_format(c) ? wcwidth((wchar_t)c) : -1;
}

static void
step(const struct printable *s, const unsigned char *b, size_t n,
     struct glyph *g)
{
    uint32_t c = 0;

    g->bytes = decode(b, n, &c);
    if (!g->bytes) {
        g->bytes = 1;
        escape(g, b[0], 2);
        return;
    }
    const int columns = columns_of(s, c);
    if (columns >= 0)
        take(g, b, (size_t)columns);
    else
        escape(g, c, c < 0x80 ? 2 : c < 0x10000 ? 4 : 6);
}

/* ---- the whole key ------------------------------------------------------- */

/* The output. */
struct out {
    char  *text;
    size_t len;
    size_t size;    /* of `text` */
    size_t columns; /* used so far */
};

static void
put(struct out *o, const char *text, size_t len, size_t columns)
{
    if (len > o->size - o->len)
        return; /* too many combining marks */
    memcpy(o->text + o->len, text, len);
    o->len += len;
    o->columns += columns;
}

static size_t
measure(const struct printable *s, const unsigned char *b, size_t len)
{
    struct glyph g;
    size_t       columns = 0;

    for (size_t i = 0; i < len; i += g.bytes) {
        step(s, b + i, len - i, &g);
        columns += g.columns;
    }
    return columns;
}

/* Writes `head` columns from the beginning and `tail` columns from the end. */
static void
put_ends(const struct printable *s, const unsigned char *b, size_t len,
         size_t total, size_t head, size_t tail, struct out *o)
{
    struct glyph g;
    size_t       at = 0;        /* column in the whole key */
    bool         cut = false;   /* the head and the ellipsis are written */
    bool         again = false; /* the tail has begun */

    for (size_t i = 0; i < len; i += g.bytes) {
        step(s, b + i, len - i, &g);
        const bool first = !cut && at + g.columns <= head;
        if (!first && !cut) {
            cut = true;
            put(o, s->utf8 ? "\xe2\x80\xa6" : "~", s->utf8 ? 3 : 1, 1);
        }
        /* The tail must not begin with a mark that would combine with the
         * ellipsis. */
        again = again || (cut && g.columns && at >= total - tail);
        if (first || again)
            put(o, g.text, g.len, g.columns);
        at += g.columns;
    }
}

size_t
printable_key(
    const struct printable *s, const void *key, size_t len, size_t columns,
    /* It is written to. NOLINTNEXTLINE(readability-non-const-parameter) */
    char *out, size_t *used)
{
    struct out     o = {.text = out, .size = PRINTABLE_SIZE(columns)};
    const locale_t before = s->locale ? uselocale((locale_t)s->locale) : 0;
    const size_t   total = measure(s, key, len);

    if (total <= columns)
        put_ends(s, key, len, total, total, 0, &o);
    else if (columns > 0)
        put_ends(s, key, len, total, columns / 2, columns - columns / 2 - 1,
                 &o);
    if (s->locale)
        (void)uselocale(before);
    *used = o.columns;
    return o.len;
}

/* ---- the terminal -------------------------------------------------------- */

static bool
says_utf8(const char *locale)
{
    const char *codeset = strchr(locale, '.');

    return codeset && (strncasecmp(codeset, ".utf-8", 6) == 0 ||
                       strncasecmp(codeset, ".utf8", 5) == 0);
}

void
printable_init(struct printable *s)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char              *locale = NULL;

    for (size_t i = 0; i < 3 && (!locale || !*locale); i++)
        locale = getenv(names[i]);
    *s = (struct printable){.utf8 = !locale || !*locale || says_utf8(locale)};
    if (s->utf8)
        s->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    s->utf8 = s->locale != NULL; /* without a locale no width is known */
}

void
printable_fini(struct printable *s)
{
    if (s->locale)
        freelocale((locale_t)s->locale);
    *s = (struct printable){0};
}
