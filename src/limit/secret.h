/* SPDX-License-Identifier: MIT */
/* secret.h: which secret does the hash table of a new queue or limiter get?
 *
 * One that no other table of the process has, and that nobody can guess. The
 * system gives each thread 16 random bytes once; SipHash derives one secret
 * after the other from them, by their number. So a program that makes many
 * queues does not make a system call for each table. No secret is ever shown. To
 * compute one from another takes to invert SipHash.
 *
 * A child of fork() begins anew: otherwise parent and child would have the same
 * secrets. Copies that the C library does not know of (_Fork(), clone(), a
 * snapshot of a virtual machine) do have the same ones: as secret as before, but
 * not different.
 *
 * Cost: two short SipHashes. Threads: any; they share nothing.
 */
#ifndef WQ_LIMIT_SECRET_H
#define WQ_LIMIT_SECRET_H

#include <stdbool.h>

#include "core/hash.h"

/* False: the system gave no random numbers. */
bool wq__secret_new(struct wq__hash_key *secret);

#endif
