/* SPDX-License-Identifier: MIT */
/* load.c: does wq_open() load a library that is named after the scheme, and no
 * other? (S-11)
 *
 *     load DIR
 *
 * DIR is its RPATH, and has libwq-testscheme.so.0.1 and libwq-nosymbol.so.0.1.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <wq/limiter.h>

#include "support/probe.h"

#define LIBRARY "libwq-testscheme.so." WQ_SOVERSION

static int opened_here; /* calls of open_here() */

/* The library, if it is loaded. */
static void *
loaded(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_NOLOAD);
}

static void
expect(int holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "load: %s; last error: %s\n", what, wq_last_error());
    exit(1);
}

/* Call a function of the library that returns an int, or a string. */
static int
calls_of_library(void)
{
    int (*function)(void);
    void *const found = dlsym(loaded(LIBRARY), "testscheme_calls");

    expect(found != NULL, "the library has no testscheme_calls()");
    memcpy(&function, &found, sizeof function);
    return function();
}

static const char *
url_of_library(void)
{
    const char *(*function)(void);
    void *const found = dlsym(loaded(LIBRARY), "testscheme_url");

    expect(found != NULL, "the library has no testscheme_url()");
    memcpy(&function, &found, sizeof function);
    return function();
}

/* Open, and destroy the queue; the limiter must be gone. */
static wq_err
try_open(const char *url)
{
    static struct probe probe;
    wq_queue           *q = NULL;
    const wq_err        err = probe_open(&probe, url, &q);

    if (!err)
        wq_destroy(q);
    expect(probe.destroys == 1, "the limiter was not taken over");
    return err;
}

static wq_err
open_here(const char *url, const wq_config *config, wq_queue **out)
{
    (void)url;
    opened_here++;
    return wq_create(config, out);
}

/* The files are there, but a URL cannot name a directory. */
static void
refuse_directories(const char *dir)
{
    char url[4096];
    const struct {
        const char *before, *after;
    } rows[] = {{"", "/testscheme:"},
                {"", "/" LIBRARY ":"},
                {"../", "/testscheme:"},
                {"./testscheme:", ""},
                {"x/../testscheme:", ""}};

    expect(chdir(dir) == 0, "cannot enter the directory");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)snprintf(url, sizeof url, "%s%s%s", rows[i].before, dir,
                       rows[i].after);
        expect(try_open(url) == WQ_EINVAL, "a directory was accepted");
        expect(!loaded(LIBRARY), "the library was loaded from a directory");
    }
}

int
main(int argc, char **argv)
{
    const char *url = "testscheme+tls://user:secret@host/0?queue=a";

    expect(argc == 2, "a directory is missing");
    expect(!loaded(LIBRARY), "the library is linked");
    refuse_directories(argv[1]);

    expect(try_open(url) == WQ_OK, "the library was not found");
    expect(calls_of_library() == 1, "its opener was not called once");
    expect(strcmp(url_of_library(), url) == 0, "it got another URL");
    expect(try_open("testscheme:") == WQ_OK, "it was not found again");
    expect(calls_of_library() == 2, "its opener was not called twice");

    expect(try_open("nosymbol://user:secret@host") == WQ_ENOTSUP,
           "a library without the function was accepted");
    expect(!strstr(wq_last_error(), "secret"), "the message has a password");
    expect(strstr(wq_last_error(), "libwq-nosymbol") != NULL,
           "the message does not name the library");
    expect(strstr(wq_last_error(), "does not export") != NULL,
           "the message does not say why");

    expect(!wq_register_scheme("testscheme", open_here), "not registered");
    expect(try_open(url) == WQ_OK && opened_here == 1,
           "the registered opener does not come first");
    expect(!wq_register_scheme("testscheme", NULL), "not removed");
    expect(try_open(url) == WQ_OK && calls_of_library() == 3,
           "the library does not come back");
    return 0;
}
