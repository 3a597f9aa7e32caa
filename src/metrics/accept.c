/* SPDX-License-Identifier: MIT */
/* accept.c: which text format does a client accept, and what is its media type?
 *
 * The header Accept is a list of media types, each with parameters:
 *
 *     application/openmetrics-text;version=1.0.0;q=0.5, text/plain;q=0.3
 */
#include <wq/metrics.h>

#include <string.h>

static const char openmetrics[] = "application/openmetrics-text";

/* Media types ignore case; ASCII only, independent of the locale. */
static char
lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static const char *
skip_spaces(const char *s)
{
    while (*s == ' ' || *s == '\t')
        s++;
    return s;
}

/* Does `s` begin with the whole word `word`? */
static bool
is_word(const char *s, const char *word)
{
    for (; *word; s++, word++)
        if (lower(*s) != *word)
            return false;
    s = skip_spaces(s);
    return *s == '\0' || *s == ';' || *s == ',' || *s == '=';
}

/* The next ';' or ',' outside of quoted strings, or the end. */
static const char *
skip_part(const char *s)
{
    bool quoted = false;

    for (; *s && (quoted || (*s != ';' && *s != ',')); s++) {
        if (quoted && *s == '\\' && s[1])
            s++;
        else if (*s == '"')
            quoted = !quoted;
    }
    return s;
}

/* Is `s` the parameter q=0, which means "not acceptable"? */
static bool
is_refusal(const char *s)
{
    if (!is_word(s, "q"))
        return false;
    s = skip_spaces(s + 1);
    if (*s != '=')
        return false;
    s = skip_spaces(s + 1);
    const size_t zeros = strspn(s, "0.");
    s = skip_spaces(s + zeros);
    return zeros > 0 && (*s == '\0' || *s == ';' || *s == ',');
}

wq_text
wq_text_accepted(const char *accept)
{
    const char *s = accept ? accept : "";

    while (*s) {
        s = skip_spaces(s);
        bool wanted = is_word(s, openmetrics);
        for (s = skip_part(s); *s == ';'; s = skip_part(s)) {
            s = skip_spaces(s + 1);
            if (is_refusal(s))
                wanted = false;
        }
        if (wanted)
            return WQ_TEXT_OPENMETRICS;
        if (*s)
            s++;
    }
    return WQ_TEXT_PROMETHEUS;
}

const char *
wq_text_type(wq_text format)
{
    return format == WQ_TEXT_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}
