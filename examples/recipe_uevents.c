/* SPDX-License-Identifier: MIT */
/* recipe_uevents.c: how does a device manager follow the kernel's events?
 *
 *     recipe_uevents           follows the kernel's devices until it is killed;
 *                              where that is not allowed, as with --fake
 *     recipe_uevents --fake    a few events of its own, in a tree of its own
 */
#define _GNU_SOURCE /* SOCK_CLOEXEC, mkdtemp(), nftw() */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/netlink.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <wq/workers.h>

static const char *sys = "/sys"; /* where devices are directories */
static wq_queue   *q;
static atomic_int  there, gone; /* what runs have seen */

/* begin: handler */
/* The event named a device. Was it added, changed or removed? The tree knows. */
static wq_result
reconcile(void *ctx, const wq_item *item)
{
    const char *device = item->key.data;
    char        path[4096];

    (void)ctx;
    (void)snprintf(path, sizeof path, "%s%s", sys, device);
    const bool exists = access(path, F_OK) == 0;
    printf("%s: %s\n", device, exists ? "configure it" : "forget it");
    atomic_fetch_add(exists ? &there : &gone, 1);
    return wq_result_done();
}
/* end: handler */

/* begin: list */
static wq_err
add_device(const char *device)
{
    return wq_add_one_str(
        q, device, WQ_ADD(.debounce_ns = WQ_MS(20), .max_wait_ns = WQ_MS(500)));
}

/* A directory with a file "uevent" is a device. */
static int
add_if_device(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    if (kind != FTW_F || strcmp(path + at->base, "uevent") != 0)
        return 0;
    char device[4096];
    (void)snprintf(device, sizeof device, "%.*s",
                   (int)((size_t)at->base - 1 - strlen(sys)),
                   path + strlen(sys));
    return add_device(device) ? 1 : 0;
}

/* For the start, and for events that were lost. */
static bool
add_all(void)
{
    char devices[256];

    (void)snprintf(devices, sizeof devices, "%s/devices", sys);
    return nftw(devices, add_if_device, 16, FTW_PHYS) == 0;
}
/* end: list */

/* begin: source */
/* A socket that receives the kernel's events; -1 and errno: there is none. */
static int
open_kernel(void)
{
    const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK, .nl_groups = 1};
    const int                s =
        socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);

    if (s < 0 || bind(s, (const struct sockaddr *)&kernel, sizeof kernel) == 0)
        return s;
    (void)close(s);
    return -1;
}

/* An event is "add@/devices/x", then "NAME=value", each with its NUL. */
static const char *
device_of(const char *event, const char *end)
{
    for (; event < end; event += strlen(event) + 1)
        if (strncmp(event, "DEVPATH=", 8) == 0)
            return event + 8;
    return NULL;
}

/* Add the device of the next event. Returns false if none came in time. */
static bool
add_event(int s)
{
    char               event[8192];
    struct sockaddr_nl from = {0};
    socklen_t          from_len = sizeof from;
    const ssize_t      n = recvfrom(s, event, sizeof event - 1, 0,
                                    (struct sockaddr *)&from, &from_len);

    if (n < 0)
        return errno == ENOBUFS && add_all(); /* the kernel had no room */
    if (from.nl_family == AF_NETLINK && from.nl_pid != 0)
        return true; /* any process may send here: trust only the kernel */
    event[n] = '\0';
    const char *device = device_of(event, event + n);
    if (device && add_device(device))
        fprintf(stderr, "%s: cannot be added\n", device);
    return true;
}
/* end: source */

/* ---- a source of its own ------------------------------------------------- */

static char tree[] = "/tmp/wq-uevents-XXXXXX";

static void
send_event(int s, const char *action, const char *device)
{
    char      event[256];
    const int n = snprintf(event, sizeof event,
                           "%s@%s%cACTION=%s%cDEVPATH=%s%cSUBSYSTEM=block",
                           action, device, 0, action, 0, device, 0);

    (void)send(s, event, (size_t)n + 1, 0);
}

/* The path of a part of the tree. */
static const char *
in_tree(const char *part)
{
    static char path[64];

    (void)snprintf(path, sizeof path, "%s%s", tree, part);
    return path;
}

static bool
make_disk(void)
{
    if (mkdir(in_tree("/devices"), 0700) ||
        mkdir(in_tree("/devices/disk"), 0700))
        return false;
    const int file =
        open(in_tree("/devices/disk/uevent"), O_CREAT | O_WRONLY, 0600);
    return file >= 0 && close(file) == 0;
}

/* A disk comes and changes; a stick comes and goes. */
static int
open_fake(void)
{
    int pair[2];

    if (!mkdtemp(tree) ||
        socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair))
        return -1;
    if (!make_disk())
        return -1;
    sys = tree;
    send_event(pair[1], "add", "/devices/disk");
    send_event(pair[1], "add", "/devices/stick");
    send_event(pair[1], "change", "/devices/disk");
    send_event(pair[1], "remove", "/devices/stick");
    return pair[0];
}

static void
remove_tree(void)
{
    (void)unlink(in_tree("/devices/disk/uevent"));
    (void)rmdir(in_tree("/devices/disk"));
    (void)rmdir(in_tree("/devices"));
    (void)rmdir(tree);
}

int
main(int argc, char **argv)
{
    bool        fake = argc > 1 && strcmp(argv[1], "--fake") == 0;
    wq_workers *pool;
    int         s = fake ? -1 : open_kernel();

    if (!fake && s < 0) {
        perror("no events of the kernel, so some of our own");
        fake = true;
    }
    if (fake)
        s = open_fake();
    const struct timeval wait = {.tv_usec = 10000};
    if (s < 0 || setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) ||
        wq_create(WQ_CONFIG(.waiting = WQ_WAITING_FLUSH), &q) ||
        wq_workers_start(q, WQ_WORKERS(.threads = 2, .handler = reconcile),
                         &pool))
        return 1;
    if (!add_all()) /* after the socket is open: nothing is missed */
        perror("devices");
    while (add_event(s) || !fake)
        ;
    const wq_err err = wq_workers_drain(pool, WQ_SECONDS(60));
    wq_workers_destroy(pool);
    wq_destroy(q);
    (void)close(s);
    remove_tree();
    return !err && atomic_load(&there) > 0 && atomic_load(&gone) > 0 ? 0 : 1;
}
