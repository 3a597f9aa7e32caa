/* SPDX-License-Identifier: MIT */
/* network.c: hosts in network namespaces; see network.h. */
#define _GNU_SOURCE
#include "redis/network.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/must.h"

static int  spaces[NETWORK_HOSTS + 1]; /* descriptors; the last: the switch */
static bool is_cut[NETWORK_HOSTS];
static bool loses[NETWORK_HOSTS][NETWORK_HOSTS];

/* ---- small words ---------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static bool
ip(const char *format, ...)
{
    char    words[160], command[200];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format, args);
    va_end(args);
    (void)snprintf(command, sizeof command, "ip %s 2>/dev/null", words);
    return system(command) == 0;
}

static bool
put(const char *path, const char *text)
{
    const int  fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool ok = fd >= 0 && write(fd, text, strlen(text)) > 0;

    if (fd >= 0)
        (void)close(fd);
    return ok;
}

static int
this_space(void)
{
    return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

int
network_has_tools(void)
{
    return system("ip -V >/dev/null 2>&1") == 0;
}

const char *
network_address(int host)
{
    static const char *const addresses[NETWORK_HOSTS] = {
        "10.77.0.1", "10.77.0.2", "10.77.0.3"};

    return addresses[host];
}

void
network_enter(int host)
{
    MUST(setns(spaces[host < 0 ? NETWORK_HOSTS : host], CLONE_NEWNET) == 0);
}

/* ---- making --------------------------------------------------------------- */

/* This process is root of a user namespace of its own. */
static bool
become_root(void)
{
    char       users[32], groups[32];
    const long uid = (long)getuid(), gid = (long)getgid();

    (void)snprintf(users, sizeof users, "0 %ld 1", uid);
    (void)snprintf(groups, sizeof groups, "0 %ld 1", gid);
    return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 &&
           put("/proc/self/setgroups", "deny") &&
           put("/proc/self/uid_map", users) &&
           put("/proc/self/gid_map", groups);
}

/* The hardware address of a host's interface: so no host has to ask for it. */
static void
name_card(char out[24], int host)
{
    (void)snprintf(out, 24, "02:77:00:00:00:%02x", host + 1);
}

static bool
set_neighbour(int host, int other, const char *card)
{
    network_enter(host);
    const bool ok = ip("neigh replace %s lladdr %s dev wq0 nud permanent",
                       network_address(other), card);
    network_enter(-1);
    return ok;
}

static bool
make_host(int host)
{
    char card[24];

    name_card(card, host);
    if (unshare(CLONE_NEWNET))
        return false;
    spaces[host] = this_space();
    network_enter(-1);
    bool ok = ip("link add wqs%d type veth peer name wqh%d", host, host) &&
              ip("link set wqh%d netns /proc/%ld/fd/%d", host, (long)getpid(),
                 spaces[host]) &&
              ip("link set wqs%d master wqswitch up", host);
    network_enter(host);
    ok = ok && ip("link set wqh%d name wq0 address %s", host, card) &&
         ip("addr add %s/24 dev wq0", network_address(host)) &&
         ip("link set lo up") && ip("link set wq0 up");
    network_enter(-1);
    return ok;
}

static bool
know_neighbours(int host)
{
    bool ok = true;

    for (int other = 0; other < NETWORK_HOSTS; other++) {
        char card[24];

        name_card(card, other);
        ok = ok && (other == host || set_neighbour(host, other, card));
    }
    return ok;
}

const char *
network_make(void)
{
    static bool made;
    bool        ok = true;

    if (made)
        return NULL;
    if (!become_root())
        return "the kernel does not let this user make network namespaces";
    made = true;
    spaces[NETWORK_HOSTS] = this_space();
    if (!ip("link add wqswitch type bridge") || !ip("link set wqswitch up"))
        return "the kernel has no bridges";
    for (int host = 0; host < NETWORK_HOSTS && ok; host++)
        ok = make_host(host);
    for (int host = 0; host < NETWORK_HOSTS && ok; host++)
        ok = know_neighbours(host);
    return ok ? NULL : "the kernel has no pairs of interfaces (veth)";
}

/* ---- damage --------------------------------------------------------------- */

void
network_cut(int host)
{
    MUST(ip("link set wqs%d down", host));
    is_cut[host] = true;
}

void
network_lose(int from, int to)
{
    MUST(set_neighbour(from, to, "02:77:00:00:00:ff"));
    loses[from][to] = true;
}

void
network_join_all(void)
{
    for (int host = 0; host < NETWORK_HOSTS; host++) {
        if (is_cut[host])
            MUST(ip("link set wqs%d up", host));
        is_cut[host] = false;
        for (int to = 0; to < NETWORK_HOSTS; to++) {
            char card[24];

            name_card(card, to);
            if (loses[host][to])
                MUST(set_neighbour(host, to, card));
            loses[host][to] = false;
        }
    }
}
