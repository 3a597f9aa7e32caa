/* SPDX-License-Identifier: MIT */
/* recipe_inotify.c: how does a program follow a directory?
 *
 *     recipe_inotify [DIRECTORY]    follows it until it is killed; without one,
 *                                   a directory of its own, for a moment
 */
#define _XOPEN_SOURCE 700 /* mkdtemp() */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <wq/workers.h>

static const char *directory;
static atomic_int  runs;
static atomic_long size_of_a; /* what the last run saw; -1: no such file */
static atomic_long size_of_b = 1;

/* begin: handler */
/* The event said which file; the handler finds out what is true now. */
static wq_result
reconcile(void *ctx, const wq_item *item)
{
    const char *name = item->key.data;
    char        path[4096];
    struct stat now;

    (void)ctx;
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    const long size = stat(path, &now) == 0 ? (long)now.st_size : -1;
    if (size < 0 && errno != ENOENT)
        return wq_result_retry();
    printf("%s: %ld bytes\n", name, size);
    atomic_store(*name == 'a' ? &size_of_a : &size_of_b, size);
    atomic_fetch_add(&runs, 1);
    return wq_result_done();
}
/* end: handler */

/* begin: watch */
/* A file that is written in many steps runs once, at the end; a file that
 * never comes to rest runs every half second. */
static wq_err
add_file(wq_queue *q, const char *name)
{
    return wq_add_one_str(
        q, name, WQ_ADD(.debounce_ns = WQ_MS(20), .max_wait_ns = WQ_MS(500)));
}

/* For the start, and for events that the kernel had no room for. */
static wq_err
add_all(wq_queue *q)
{
    DIR                 *list = opendir(directory);
    const struct dirent *entry;
    wq_err               err = list ? WQ_OK : WQ_EIO;

    while (!err && (entry = readdir(list)))
        if (entry->d_name[0] != '.')
            err = add_file(q, entry->d_name);
    if (list)
        (void)closedir(list);
    return err;
}

/* Read what inotify has; returns how many events, or -1. */
static int
add_events(wq_queue *q, int watch)
{
    alignas(struct inotify_event) char buffer[4096];
    const ssize_t                      n = read(watch, buffer, sizeof buffer);
    int                                events = 0;
    wq_err                             err = WQ_OK;

    for (ssize_t at = 0; at < n && !err; events++) {
        const struct inotify_event *event = (const void *)(buffer + at);
        if (event->mask & IN_Q_OVERFLOW)
            err = add_all(q);
        else if (event->len > 0)
            err = add_file(q, event->name);
        at += (ssize_t)(sizeof *event + event->len);
    }
    return err ? -1 : events;
}

/* First watch, then list: what happens in between is not lost. */
static int
start_watching(wq_queue *q)
{
    const int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (watch < 0 ||
        inotify_add_watch(watch, directory,
                          IN_CLOSE_WRITE | IN_MODIFY | IN_DELETE |
                              IN_MOVED_FROM | IN_MOVED_TO) < 0 ||
        add_all(q))
        return -1;
    return watch;
}
/* end: watch */

/* A hundred writes to "a"; "b" comes and goes. */
static void
make_events(void)
{
    char path[256];

    (void)snprintf(path, sizeof path, "%s/a", directory);
    FILE *a = fopen(path, "w");
    for (int i = 0; a && i < 100; i++)
        if (fputc('x', a) == EOF || fflush(a))
            break;
    if (a)
        (void)fclose(a);
    (void)snprintf(path, sizeof path, "%s/b", directory);
    FILE *b = fopen(path, "w");
    if (b)
        (void)fclose(b);
    (void)unlink(path);
}

static bool
is_settled(bool for_ever)
{
    return !for_ever && atomic_load(&size_of_a) == 100 &&
           atomic_load(&size_of_b) == -1;
}

int
main(int argc, char **argv)
{
    char        own[] = "/tmp/wq-inotify-XXXXXX";
    wq_queue   *q;
    wq_workers *pool;
    int         events = 0;

    directory = argc > 1 ? argv[1] : mkdtemp(own);
    if (!directory || wq_create(NULL, &q) ||
        wq_workers_start(q, WQ_WORKERS(.threads = 2, .handler = reconcile),
                         &pool))
        return 1;
    struct pollfd watch = {.fd = start_watching(q), .events = POLLIN};
    if (watch.fd < 0) {
        perror(directory);
        return 1;
    }
    if (argc == 1)
        make_events();
    while (!is_settled(argc > 1)) {
        if (poll(&watch, 1, 10) > 0) {
            const int n = add_events(q, watch.fd);
            if (n < 0)
                return 1;
            events += n;
        }
    }
    wq_workers_destroy(pool);
    wq_destroy(q);
    (void)close(watch.fd);
    printf("%d events, %d runs\n", events, atomic_load(&runs));
    char path[256];
    (void)snprintf(path, sizeof path, "%s/a", directory);
    (void)unlink(path);
    (void)rmdir(directory);
    return events > atomic_load(&runs) ? 0 : 1;
}
