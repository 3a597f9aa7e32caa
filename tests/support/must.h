/* SPDX-License-Identifier: MIT */
/* must.h: what do children of a test have instead of assertions, and share? */
#ifndef WQ_TEST_MUST_H
#define WQ_TEST_MUST_H

/* Ends the process: status 1. */
_Noreturn void must_die(const char *file, int line, const char *what);
#define MUST(condition)                                                        \
    ((condition) ? (void)0 : must_die(__FILE__, __LINE__, #condition))

/* `size` bytes of zeroes that this process shares with its later children, until
 * it ends. */
void *must_share(unsigned long size);

#endif
