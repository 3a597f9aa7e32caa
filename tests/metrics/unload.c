/* SPDX-License-Identifier: MIT */
/* unload.c: can a program unload the library while threads run that have used
 * metrics?
 *
 *     unload LIBRARY
 *
 * A thread that ends frees its number (src/port/thread_mark.c), by code of the
 * library. If the library is unloaded before, the system must not call that
 * code any more. (O-40)
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wq/metrics.h>

#include "support/stub_queue.h"

enum { TIMES = 3 };

static sem_t             has_reported, may_end;
static const wq_metrics *sink;
static void             *handle;

static void *
report(void *unused)
{
    sink->work(handle, 1);
    (void)sem_post(&has_reported);
    (void)sem_wait(&may_end);
    return unused;
}

/* Is a file of this name mapped? */
static int
is_loaded(const char *path)
{
    char        line[4096];
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    FILE       *maps = fopen("/proc/self/maps", "r");
    int         found = 0;

    if (!maps)
        return 0;
    while (fgets(line, sizeof line, maps))
        found |= strstr(line, name) != NULL;
    (void)fclose(maps);
    return found;
}

/* Find a function of the library. C cannot cast an object pointer to a function
 * pointer. */
static void
look_up(void *library, const char *name, void *function)
{
    void *const found = dlsym(library, name);

    if (!found) {
        fprintf(stderr, "unload: the library has no %s\n", name);
        exit(EXIT_FAILURE);
    }
    memcpy(function, &found, sizeof found);
}

static int
load_report_unload(const char *path)
{
    wq_err (*create)(wq_registry * *out);
    const wq_metrics *(*sink_of)(wq_registry * registry);
    void (*destroy)(wq_registry * registry);
    struct stub_queue stub;
    wq_registry      *registry;
    pthread_t         thread;
    void             *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return fprintf(stderr, "unload: %s\n", dlerror());
    look_up(library, "wq_registry_create", &create);
    look_up(library, "wq_registry_sink", &sink_of);
    look_up(library, "wq_registry_destroy", &destroy);
    stub_queue_init(&stub);
    if (create(&registry))
        return fprintf(stderr, "unload: out of memory\n");
    sink = sink_of(registry);
    if (sink->open(sink->self, &stub.base, "x", &handle) ||
        pthread_create(&thread, NULL, report, NULL) != 0)
        return fprintf(stderr, "unload: out of memory\n");
    (void)sem_wait(&has_reported);
    sink->close(handle);
    destroy(registry);
    (void)dlclose(library);
    if (is_loaded(path))
        return fprintf(stderr, "unload: the library is still loaded\n");
    (void)sem_post(&may_end);
    return pthread_join(thread,
                        NULL); /* a call of unloaded code would crash here */
}

int
main(int argc, char **argv)
{
    if (argc != 2)
        return EXIT_FAILURE;
    (void)sem_init(&has_reported, 0, 0);
    (void)sem_init(&may_end, 0, 0);
    for (int i = 0; i < TIMES; i++)
        if (load_report_unload(argv[1]) != 0)
            return EXIT_FAILURE;
    return EXIT_SUCCESS;
}
