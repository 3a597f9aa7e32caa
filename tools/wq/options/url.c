/* SPDX-License-Identifier: MIT */
/* url.c: what does the URL of a queue say? See url.h. */
#include "options/url.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define SQLITE "sqlite:"
#define UNIX_SOCKET "redis+unix:///"

enum { URL_LONGEST = 1000 }; /* bytes of a URL that is shown */

bool
url_is(const char *text)
{
    const size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-.");

    return len > 0 && islower((unsigned char)*text) && text[len] == ':';
}

bool
url_is_memory(const char *url)
{
    return strncmp(url, "mem:", 4) == 0;
}

bool
url_is_sqlite(const char *url)
{
    return strncmp(url, SQLITE, strlen(SQLITE)) == 0;
}

/* redis:, rediss:, redis+unix: */
bool
url_is_redis(const char *url)
{
    return strncmp(url, "redis", 5) == 0 && strchr(":s+", url[5]) && url[5];
}

/* ---------------------------------------------------------------- bytes -- */

static int
digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool
url_decode(char *text)
{
    char *to = text;

    for (; *text; text++) {
        if (*text != '%') {
            *to++ = *text;
            continue;
        }
        const int high = digit(text[1]), low = high < 0 ? -1 : digit(text[2]);
        if (low < 0 || (high == 0 && low == 0))
            return false;
        *to++ = (char)(high * 16 + low);
        text += 2;
    }
    *to = '\0';
    return true;
}

/* ------------------------------------------------------------- passwords -- */

/* What follows a colon of HOST:PORT[,HOST:PORT...] and is not a port may be a
 * password whose host was forgotten. */
static const char *
find_stray_password(const char *authority, const char **end)
{
    const size_t len = strcspn(authority, "/?#");

    *end = authority + strcspn(authority, "?#");
    for (size_t i = 0; i < len; i++) {
        if (authority[i] == '[') /* an IPv6 address has colons */
            i += strcspn(authority + i, "]");
        else if (authority[i] == ':') {
            i += 1 + strspn(authority + i + 1, "0123456789");
            if (i < len && authority[i] != ',')
                return strchr(authority, ':') + 1;
        }
    }
    return NULL;
}

/* Where "//" begins, if it follows the scheme, in lower case or not; else where
 * the text begins. */
static const char *
skip_scheme(const char *url)
{
    const size_t len = strspn(url, "abcdefghijklmnopqrstuvwxyz"
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");

    return strncmp(url + len, "://", 3) == 0 ? url + len + 1 : url;
}

/* Is what follows the scheme the path of a file, and nothing else? Then '@' and
 * ':' are a part of its name. */
static bool
has_path_only(const char *url)
{
    return url_is_sqlite(url) || url_is_memory(url) ||
           strncmp(url, UNIX_SOCKET, strlen(UNIX_SOCKET)) == 0;
}

/* Where the password of USER:PASSWORD@ begins and ends; NULL: there is none. A
 * password may contain any character, also one that should be encoded: so the
 * last @ counts. Without "//" the word before the first ':' may be a scheme or
 * the user: all between it and the @ is hidden. */
static const char *
find_password(const char *url, const char **end)
{
    const char *rest = skip_scheme(url);
    const bool  slashes = rest != url;

    if (has_path_only(url))
        return NULL;
    rest += slashes ? strlen("//") : 0;
    *end = strrchr(rest, '@');
    if (*end) {
        const char *colon = strchr(rest, ':');
        return colon && colon < *end ? colon + 1 : NULL;
    }
    const char *scheme_end = strchr(url, ':');
    if (!slashes && url_is_redis(url) && scheme_end) /* redis:USER:PASSWORD */
        return find_stray_password(scheme_end + 1, end);
    return slashes ? find_stray_password(rest, end) : NULL;
}

/* Where the value of an option begins and ends. */
static const char *
find_option(const char *url, const char *name, const char **end)
{
    const size_t len = strlen(name);
    const char  *at = strchr(url, '?');

    for (; at; at = strchr(at, '&')) {
        at++;
        if (strncmp(at, name, len) == 0 && at[len] == '=') {
            at += len + 1;
            *end = at + strcspn(at, "&");
            return at;
        }
    }
    return NULL;
}

/* Does the name of an option say "password", also if it is mistyped? What ends
 * with _file is the name of a file. */
static bool
says_password(const char *name, size_t len)
{
    static const char word[] = "pas", file[] = "_file";
    const size_t      word_len = strlen(word), file_len = strlen(file);
    size_t            at = 0;

    if (len >= file_len && strncmp(name + len - file_len, file, file_len) == 0)
        return false;
    while (at + word_len <= len && strncasecmp(name + at, word, word_len) != 0)
        at++;
    return at + word_len <= len;
}

/* Does an option begin at `at`, behind its separator, whose value is a password?
 * Then where that begins and ends: an '&' may be a part of it if no option
 * follows. NULL: no. */
static const char *
find_secret_value(const char *at, const char **end)
{
    const size_t len = strcspn(at, "=:&?;#");

    if (!says_password(at, len) || (at[len] != '=' && at[len] != ':'))
        return NULL;
    at += len + 1;
    *end = at + strcspn(at, "&");
    while (**end && (*end)[1 + strcspn(*end + 1, "&=")] != '=')
        *end += 1 + strcspn(*end + 1, "&");
    return at;
}

/* Put *** for the bytes from `begin` to `end` of a text, which has room for it. */
static void
hide(char *begin, const char *end)
{
    static const char stars[] = "***";

    memmove(begin + strlen(stars), end, strlen(end) + 1);
    memcpy(begin, stars, strlen(stars));
}

/* Hide the values of options whose names say "password". Any separator counts: the
 * right one may be missing. */
static void
hide_options(char *options)
{
    const char *end;

    while ((options = strpbrk(options, "?&;#"))) {
        const char *value = find_secret_value(++options, &end);
        if (value)
            hide(options + (value - options), end);
    }
}

const char *
url_shown(const char *url)
{
    static char text[2 * URL_LONGEST]; /* *** is shorter than "?pas=" */
    const char *end;

    if (strlen(url) > URL_LONGEST)
        return "(a URL that is too long to be shown)";
    memcpy(text, url, strlen(url) + 1);
    hide_options(has_path_only(text) ? text + strcspn(text, "?") : text);
    const char *password = find_password(text, &end);
    if (password)
        hide(text + (password - text), end);
    return text;
}

/* -------------------------------------------------------------- complete -- */

/* Appends the path with %XX for the characters that a URL does not allow. */
static char *
put_encoded(char *to, const char *path)
{
    for (; *path; path++)
        if (strchr("%?#", *path))
            to += sprintf(to, "%%%02X", (unsigned char)*path);
        else
            *to++ = *path;
    return to;
}

/* The options that url_complete() appends, with their separators. */
static void
put_options(char *to, const char *url, bool existing, int holder)
{
    const char *end = NULL;
    char        separator = strchr(url, '?') ? '&' : '?';

    *to = '\0';
    if (existing && !find_option(url, "create", &end)) {
        to += sprintf(to, "%ccreate=no", separator);
        separator = '&';
    }
    if (holder)
        (void)sprintf(to, "%cholder=%d", separator, holder);
}

char *
url_complete(const char *url, bool existing, int holder)
{
    enum { OPTIONS = 64 }; /* bytes of those that are appended */
    const bool  sqlite = url_is_sqlite(url);
    const char *rest = sqlite ? url + strlen(SQLITE) : url;
    const bool  relative = sqlite && *rest && *rest != '/' && *rest != '?';
    char       *cwd = relative ? getcwd(NULL, 0) : NULL;

    if (relative && !cwd)
        return NULL;
    const size_t len = strlen(url) + (cwd ? 3 * strlen(cwd) : 0);
    char        *text = malloc(len + OPTIONS);
    char        *to = text;
    if (text && sqlite)
        to = stpcpy(to, SQLITE);
    if (text && cwd)
        to = stpcpy(put_encoded(to, cwd), "/");
    if (text)
        to = stpcpy(to, rest);
    if (text && sqlite)
        put_options(to, rest, existing, holder);
    free(cwd);
    return text;
}

char *
url_sqlite_path(const char *url)
{
    const char *path = url + strlen(SQLITE);
    char       *copy = strndup(path, strcspn(path, "?"));

    if (copy)
        (void)url_decode(copy); /* the backend refuses what is wrong */
    return copy;
}

char *
url_queue_name(const char *url)
{
    const char *end = NULL;
    const char *name = find_option(url, "queue", &end);

    char *copy = name && end > name ? strndup(name, (size_t)(end - name))
                                    : strdup("default");

    if (copy)
        (void)url_decode(copy); /* the backend refuses what is wrong */
    return copy;
}
