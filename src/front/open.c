/* SPDX-License-Identifier: MIT */
/* open.c: which backend opens a URL?
 *
 * The one that is registered for the scheme; otherwise a library that is named
 * after the scheme. A URL may contain a password, so no message quotes more of
 * it than the scheme. Registered schemes are few: a table with a lock.
 */
#include <stdio.h>

#include <wq/limiter.h>

#include "config/config.h"
#include "error/error.h"
#include "front/check.h"
#include "port/load.h"
#include "port/lock.h"

enum {
    SCHEMES = 16,    /* documented in wq.h */
    SCHEME_MAX = 32, /* bytes, with the NUL; longer than any in use */
};

struct scheme {
    char      name[SCHEME_MAX]; /* the part before a '+' */
    wq_opener open;             /* NULL: this place is free */
};

static struct wq__lock lock = WQ__LOCK_STATIC; /* guards `schemes` */
static struct scheme   schemes[SCHEMES];

static bool
is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

/* The length of the scheme at the beginning of `s`; 0: there is none. Letters,
 * digits, '-' and '.': nothing of it can name a directory. */
static size_t
scheme_len(const char *s)
{
    size_t n = 0;

    if (!is_letter(s[0]))
        return 0;
    while (is_letter(s[n]) || (s[n] >= '0' && s[n] <= '9') || s[n] == '-' ||
           s[n] == '.')
        n++;
    return n < SCHEME_MAX ? n : 0;
}

/* ---- registering ---------------------------------------------------------- */

/* With the lock: the place of a scheme; NULL: it has none. `name` "": a free
 * place. */
static struct scheme *
find(const char *name)
{
    for (size_t i = 0; i < SCHEMES; i++)
        if (strcmp(schemes[i].name, name) == 0)
            return &schemes[i];
    return NULL;
}

wq_err
wq_register_scheme(const char *scheme, wq_opener opener)
{
    if (!scheme || scheme_len(scheme) == 0 || scheme[scheme_len(scheme)])
        return wq_fail(WQ_EINVAL,
                       "wq_register_scheme: a scheme begins with a lower case "
                       "letter and has such letters, digits, '-' and '.', at "
                       "most %d bytes",
                       SCHEME_MAX - 1);
    if (strcmp(scheme, "mem") == 0)
        return wq_fail(WQ_EINVAL, "wq_register_scheme: 'mem' is built in");

    wq__lock_take(&lock);
    struct scheme *place = find(scheme);
    if (!place && opener)
        place = find("");
    if (place) {
        (void)snprintf(place->name, sizeof place->name, "%s",
                       opener ? scheme : "");
        place->open = opener;
    }
    wq__lock_release(&lock);
    return place || !opener
               ? WQ_OK
               : wq_fail(WQ_EFULL, "wq_register_scheme: there are %d already",
                         SCHEMES);
}

static wq_opener
registered(const char *name)
{
    wq__lock_take(&lock);
    const struct scheme *place = find(name);
    const wq_opener      opener = place ? place->open : NULL;
    wq__lock_release(&lock);
    return opener;
}

/* ---- opening -------------------------------------------------------------- */

/* The path of a URL in memory must be empty: "mem:" or "mem://". */
static wq_err
open_memory(const char *url, const wq_config *config, wq_queue **out)
{
    const char *rest = strchr(url, ':') + 1;

    if (*rest && strcmp(rest, "//") != 0) {
        wq_limiter_destroy(wq__config_limiter(config));
        return wq_fail(WQ_EINVAL,
                       "wq_open: nothing may follow 'mem:' in the URL");
    }
    return wq_create(config, out);
}

/* Load libwq-SCHEME.so.0.1. Programs may be linked without a loader, so a library
 * that cannot be loaded is an answer, not a defect. */
static wq_opener
load(const char *name)
{
    char        file[SCHEME_MAX + 24], symbol[SCHEME_MAX + 16];
    const char *why = "";

    (void)snprintf(file, sizeof file, "libwq-%s.so." WQ_SOVERSION, name);
    (void)snprintf(symbol, sizeof symbol, "wq_open_%s", name);
    for (char *c = symbol; *c; c++)
        if (*c == '-' || *c == '.')
            *c = '_';
    const wq_opener opener = (wq_opener)wq__load(file, symbol, &why);
    if (opener)
        return opener;
    why = why ? why : "no reason given";
    if (strcmp(name, "sqlite") == 0 || strcmp(name, "redis") == 0)
        (void)wq_fail(WQ_ENOTSUP,
                      "wq_open: cannot load libwq-%s (%s): install it where "
                      "the dynamic linker looks (ldconfig), or link the "
                      "program with it, and call wq_register_scheme(\"%s\", "
                      "%s)",
                      name, why, name, symbol);
    else
        (void)wq_fail(WQ_ENOTSUP,
                      "wq_open: '%s:' is not the scheme of a backend of wq "
                      "(mem:, sqlite:, redis:), and libwq-%s cannot be loaded "
                      "(%s)",
                      name, name, why);
    return NULL;
}

static wq_err
refuse(const wq_config *config, wq_err err)
{
    wq_limiter_destroy(wq__config_limiter(config));
    return err;
}

/* "scheme:" or "scheme+more:"; `len` is the length of the first part. */
static bool
has_scheme(const char *url, size_t len)
{
    size_t part = len;

    while (part && url[len] == '+') {
        part = scheme_len(url + len + 1);
        len += 1 + part;
    }
    return part && url[len] == ':';
}

/* Call an opener with a config that it can read as a whole. It owns the limiter
 * from then on. If it fails without a sentence of its own, set one. */
static wq_err
open_with(wq_opener opener, const char *name, const char *url,
          const wq_config *config, wq_queue **out)
{
    struct wq__config checked;
    wq_err            err = wq__config_read(config, &checked);

    if (err)
        return refuse(config, err);
    checked.user.size = sizeof checked.user; /* not the caller's */
    const unsigned before = wq__fail_count();
    err = opener(url, &checked.user, out);
    if (err && wq__fail_count() == before)
        return wq_fail(err, "wq_open: the backend of '%s:' returned %s: %s",
                       name, wq_err_name(err), wq_strerror(err));
    return err;
}

wq_err
wq_open(const char *url, const wq_config *config, wq_queue **out)
{
    char         name[SCHEME_MAX];
    const size_t len = url ? scheme_len(url) : 0;

    if (!out || !url)
        return refuse(config, wq_fail(WQ_EINVAL, "wq_open: %s is NULL",
                                      url ? "out" : "url"));
    if (!has_scheme(url, len))
        return refuse(config,
                      wq_fail(WQ_EINVAL,
                              "wq_open: the URL does not begin with a scheme "
                              "in lower case, such as 'mem:'"));
    memcpy(name, url, len);
    name[len] = '\0';
    if (strcmp(name, "mem") == 0)
        return open_memory(url, config, out);
    wq_opener opener = registered(name);
    if (!opener && strcmp(name, "rediss") == 0) { /* TLS: the same backend */
        name[len - 1] = '\0';
        opener = registered(name);
    }
    if (!opener)
        opener = load(name);
    return opener ? open_with(opener, name, url, config, out)
                  : refuse(config, WQ_ENOTSUP);
}
