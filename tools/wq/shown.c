/* SPDX-License-Identifier: MIT */
/* shown.c: how does a key look on a terminal? See shown.h.
 *
 * Cost: O(bytes of the key), of which there are at most 64 Ki.
 */
#include "shown.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

/* What one step through a key finds. */
struct glyph {
    size_t bytes;    /* of the key */
    size_t columns;  /* on the terminal */
    size_t len;      /* of text */
    char   text[12]; /* what to write: the bytes, or an escape */
};

/* ---- bytes --------------------------------------------------------------- */

/* The character at the beginning of `n` bytes, and how many it takes; 0 bytes:
 * none. Overlong forms, surrogates and what is above U+10FFFF are none. */
static size_t
decode(const unsigned char *b, size_t n, uint32_t *character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t          need = b[0] < 0x80             ? 1
                                 : (b[0] & 0xe0) == 0xc0 ? 2
                                 : (b[0] & 0xf0) == 0xe0 ? 3
                                 : (b[0] & 0xf8) == 0xf0 ? 4
                                                         : 0;

    if (!need || need > n)
        return 0;
    uint32_t c = need == 1 ? b[0] : b[0] & (0x7fU >> need);
    for (size_t i = 1; i < need; i++) {
        if ((b[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (b[i] & 0x3f);
    }
    if (c < least[need] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *character = c;
    return need;
}

/* Characters that are not seen, or that change how others are: zero-width,
 * line and paragraph separators, directions. */
static bool
is_format(uint32_t c)
{
    return c == 0xad || c == 0x61c || c == 0x180e ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

/* ---- one step ------------------------------------------------------------ */

/* `width`: of the number, in hexadecimal digits; 2, 4 or 6. */
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

/* How many columns the locale in use gives a character; -1: not printable. */
static int
columns_of(const struct shown *s, uint32_t c)
{
    if (c < 0x7f)
        return c < 0x20 ? -1 : 1;
    return s->utf8 && !is_format(c) ? wcwidth((wchar_t)c) : -1;
}

static void
step(const struct shown *s, const unsigned char *b, size_t n, struct glyph *g)
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

/* ---- all of them --------------------------------------------------------- */

/* What is being written. */
struct out {
    char  *text;
    size_t len;
    size_t room;    /* bytes that text has */
    size_t columns; /* used so far */
};

static void
put(struct out *o, const char *text, size_t len, size_t columns)
{
    if (len > o->room - o->len)
        return; /* marks upon marks: a column has no more room */
    memcpy(o->text + o->len, text, len);
    o->len += len;
    o->columns += columns;
}

static size_t
measure(const struct shown *s, const unsigned char *b, size_t len)
{
    struct glyph g;
    size_t       columns = 0;

    for (size_t i = 0; i < len; i += g.bytes) {
        step(s, b + i, len - i, &g);
        columns += g.columns;
    }
    return columns;
}

/* As many from the beginning as fit `head`, as many from the end as `tail`. */
static void
put_ends(const struct shown *s, const unsigned char *b, size_t len,
         size_t total, size_t head, size_t tail, struct out *o)
{
    struct glyph g;
    size_t       at = 0;        /* its column, were all of it shown */
    bool         cut = false;   /* the head is written, and the mark */
    bool         again = false; /* the tail has begun */

    for (size_t i = 0; i < len; i += g.bytes) {
        step(s, b + i, len - i, &g);
        const bool first = !cut && at + g.columns <= head;
        if (!first && !cut) {
            cut = true;
            put(o, s->utf8 ? "\xe2\x80\xa6" : "~", s->utf8 ? 3 : 1, 1);
        }
        /* A mark would stand upon the dots. */
        again = again || (cut && g.columns && at >= total - tail);
        if (first || again)
            put(o, g.text, g.len, g.columns);
        at += g.columns;
    }
}

size_t
shown_key(
    const struct shown *s, const void *key, size_t len, size_t columns,
    /* It is written to. NOLINTNEXTLINE(readability-non-const-parameter) */
    char *out, size_t *used)
{
    struct out     o = {.text = out, .room = SHOWN_ROOM(columns)};
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

/* ---- which terminal ------------------------------------------------------ */

static bool
says_utf8(const char *locale)
{
    const char *codeset = strchr(locale, '.');

    return codeset && (strncasecmp(codeset, ".utf-8", 6) == 0 ||
                       strncasecmp(codeset, ".utf8", 5) == 0);
}

void
shown_init(struct shown *s)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char              *locale = NULL;

    for (size_t i = 0; i < 3 && (!locale || !*locale); i++)
        locale = getenv(names[i]);
    *s = (struct shown){.utf8 = !locale || !*locale || says_utf8(locale)};
    if (s->utf8)
        s->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    s->utf8 = s->locale != NULL; /* else no width is known */
}

void
shown_fini(struct shown *s)
{
    if (s->locale)
        freelocale((locale_t)s->locale);
    *s = (struct shown){0};
}
