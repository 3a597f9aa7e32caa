/* SPDX-License-Identifier: MIT */
/* syscalls.h: how does a test see the library's system calls?
 *
 * It stands in the C library's way: syscall() is defined here and asks the
 * test, which may answer itself, before it goes on to the real one. Included
 * once in a program, on Linux, where _GNU_SOURCE is defined.
 */
#ifndef WQ_TEST_SYSCALLS_H
#define WQ_TEST_SYSCALLS_H

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* The test's: true if it has answered, by *result and errno. */
static bool intercept(long number, const long arguments[6], long *result);

/* The C library's own. */
typedef long (*caller)(long, ...);

static caller
next_caller(void)
{
    static _Atomic(caller) next;
    caller                 found = atomic_load(&next);

    if (!found) {
        void *symbol = dlsym(RTLD_NEXT, "syscall");
        memcpy(&found, &symbol, sizeof found);
        atomic_store(&next, found);
    }
    return found;
}

long
syscall(long number, ...)
{
    long    a[6], result;
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (intercept(number, a, &result))
        return result;
    return next_caller()(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#endif
