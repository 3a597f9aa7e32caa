/* SPDX-License-Identifier: MIT */
/* interpose.h: how does a test see the calls of the library to libc?
 *
 * It defines a function of the C library itself, which the library under test,
 * linked in statically, finds first; next_function() is how that one goes on to
 * the real one. With INTERPOSE_SYSCALL defined, syscall() is such a function:
 * it calls the test's intercept() first. Included once in a program where
 * _GNU_SOURCE is defined.
 */
#ifndef WQ_TEST_INTERPOSE_H
#define WQ_TEST_INTERPOSE_H

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

/* Sets a pointer to a function, at `at`, to the C library's own `name`. */
static inline void
next_function(const char *name, void *at)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    memcpy(at, &symbol, sizeof symbol);
}

#ifdef INTERPOSE_SYSCALL

/* The test's: true if it has answered, by *result and errno. */
static bool intercept(long number, const long arguments[6], long *result);

long
syscall(long number, ...)
{
    long (*next)(long, ...);
    long    a[6], result;
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (intercept(number, a, &result))
        return result;
    next_function("syscall", &next);
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#endif
#endif
