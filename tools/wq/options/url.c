/* SPDX-License-Identifier: MIT */
/* url.c: what does the URL of a queue say? See url.h. */
#include "options/url.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SQLITE "sqlite:"

enum { HOST_BYTES = 65 }; /* the longest name that Linux allows, and a NUL */

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

const char *
url_find_option(const char *url, const char *name, const char **end)
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

/* "HOST:PID", with '_' for what a URL does not allow. */
static void
put_client(char *to, int holder)
{
    char host[HOST_BYTES] = "";

    if (gethostname(host, sizeof host) || !*host)
        (void)strcpy(host, "unknown");
    for (char *c = host; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(".-", *c))
            *c = '_';
    (void)sprintf(to, "%s:%d", host, holder);
}

/* Append "?NAME=" or "&NAME=" to the end of a URL, which is at `to`. */
static char *
put_name(char *to, const char *url, const char *name)
{
    const char last = to[-1];

    if (last != '?' && last != '&')
        *to++ = strchr(url, '?') ? '&' : '?';
    return to + sprintf(to, "%s=", name);
}

/* The options that url_complete() appends to the URL that ends at `to`. */
static void
put_options(char *to, const char *url, bool existing, int holder)
{
    const char *end = NULL;

    *to = '\0';
    if (url_is_redis(url)) {
        if (holder && !url_find_option(url, "client", &end))
            put_client(put_name(to, url, "client"), holder);
        return;
    }
    if (existing && !url_find_option(url, "create", &end)) {
        to = stpcpy(put_name(to, url, "create"), "no");
        url = "?"; /* an option is there */
    }
    if (holder)
        (void)sprintf(put_name(to, url, "holder"), "%d", holder);
}

char *
url_complete(const char *url, bool existing, int holder)
{
    enum { OPTIONS = HOST_BYTES + 64 }; /* bytes of those that are appended */
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
    if (text && (sqlite || url_is_redis(url)))
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
    const char *name = url_find_option(url, "queue", &end);

    char *copy = name && end > name ? strndup(name, (size_t)(end - name))
                                    : strdup("default");

    if (copy)
        (void)url_decode(copy); /* the backend refuses what is wrong */
    return copy;
}
