/* SPDX-License-Identifier: MIT */
/* network.h: how do tests have several hosts on one machine?
 *
 *     host 0, 10.77.0.1 ──┐
 *     host 1, 10.77.0.2 ──┼── switch
 *     host 2, 10.77.0.3 ──┘
 *
 * Each host is a network namespace with an interface `wq0`; the process itself is
 * in that of the switch, where it cuts and joins links. All of it goes away with
 * the process and its children. Needs no root rights, but a kernel that lets
 * users make namespaces, and the command `ip`.
 */
#ifndef WQ_TEST_REDIS_NETWORK_H
#define WQ_TEST_REDIS_NETWORK_H

enum { NETWORK_HOSTS = 3 };

/* Make them, once. NULL: done; else why this machine cannot. To be called while
 * the process has one thread. */
const char *network_make(void);

/* Is the command `ip` there? */
int network_has_tools(void);

/* From now on this thread, its later threads and children are on that host; -1:
 * at the switch. */
void network_enter(int host);

const char *network_address(int host);

/* The link of a host carries nothing. */
void network_cut(int host);

/* What `from` sends to `to` is lost; not the other direction. */
void network_lose(int from, int to);

/* All is as in the beginning. */
void network_join_all(void);

#endif
