/* SPDX-License-Identifier: MIT */
/* fork.h: is this process a child of the one that made an object?
 *
 * How many forks lie between this process and the one that loaded the library.
 * An object stores the number when it is created: if the number is another one
 * later, the object is a parent's. No system call.
 */
#ifndef WQ_PORT_FORK_H
#define WQ_PORT_FORK_H

/* Begin to count, if that did not happen yet; returns the number. */
unsigned wq__fork_begin(void);

/* The number, for code that has called wq__fork_begin(). */
extern unsigned wq__forks;

#endif
