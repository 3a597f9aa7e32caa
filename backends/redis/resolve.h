/* SPDX-License-Identifier: MIT */
/* resolve.h: which addresses has a host, by a deadline?
 *
 * Numbers are read at once. A name is looked up by the system's resolver, which
 * has timeouts of its own, often longer than ours, and cannot be interrupted: so
 * a thread calls it, and the caller waits until the deadline. A lookup that takes
 * longer goes on, and the next attempt waits for the same one: there is at most
 * one thread for each connection.
 *
 * The thread is detached: to join it would be to wait for the resolver. It
 * touches nothing but its lookup, which it shares with the caller, and the
 * library is never unloaded (CMakeLists.txt).
 */
#ifndef WQ_REDIS_RESOLVE_H
#define WQ_REDIS_RESOLVE_H

#include <stdint.h>

struct addrinfo;
struct wq__lookup; /* one that goes on */

/* The addresses of `host` for TCP in *out; free them by freeaddrinfo(). Returns
 * 0, or an error for gai_strerror(); EAI_AGAIN: the deadline, of wq__time_now(),
 * has passed, and *pending goes on. *pending is NULL at first. */
int wq__resolve(struct wq__lookup **pending, const char *host, const char *port,
                int64_t deadline_ns, struct addrinfo **out);

/* Nobody waits for it any more. NULL: nothing happens. */
void wq__resolve_abandon(struct wq__lookup **pending);

#endif
