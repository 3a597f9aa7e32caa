/* SPDX-License-Identifier: MIT */
/* load.c: loading a library by name; see load.h. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* dl_iterate_phdr() */
#endif
#include "port/load.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#if defined(__linux__)
#include <link.h>

static int
is_file(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    return info->dlpi_name && strchr(info->dlpi_name, '/') != NULL;
}

/* A library that a static program loads brings a second C library along, whose
 * threads and thread-local variables were never set up: it crashes. Such a
 * program is one that no file has been loaded for, not even the C library. */
static bool
is_static(void)
{
    return dl_iterate_phdr(is_file, NULL) == 0;
}
#else
static bool
is_static(void)
{
    return false;
}
#endif

wq__loaded *
wq__load(const char *file, const char *symbol, const char **why)
{
    wq__loaded *found = NULL;

    if (is_static()) {
        *why = "the program is linked statically";
        return NULL;
    }
    void *lib = strchr(file, '/') ? NULL : dlopen(file, RTLD_NOW);
    if (!lib) {
        *why = strchr(file, '/') ? "the name has a directory" : dlerror();
        return NULL;
    }
    /* POSIX: the address of a function fits into a void pointer. */
    void *address = dlsym(lib, symbol);
    if (!address) {
        *why = "it does not export the symbol"; /* dlclose() frees dlerror() */
        (void)dlclose(lib);
        return NULL;
    }
    memcpy(&found, &address, sizeof found);
    return found;
}
