/* SPDX-License-Identifier: MIT */
/* load.c: loading a library by name; see load.h. */
#include "port/load.h"

#include <dlfcn.h>
#include <string.h>

wq__loaded *
wq__load(const char *file, const char *symbol, const char **why)
{
    wq__loaded *found = NULL;
    void       *lib = strchr(file, '/') ? NULL : dlopen(file, RTLD_NOW);

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
