/* SPDX-License-Identifier: MIT */
/* place.c: are the files of a queue still where they were opened? See place.h. */
#include "queue/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/url.h"

static const char *const suffixes[PLACE_FILES] = {"", "-wq/state"};

static void
remember(struct place *p, int i, const char *path)
{
    const size_t size = strlen(path) + strlen(suffixes[i]) + 1;

    p->path[i] = malloc(size);
    if (p->path[i])
        (void)snprintf(p->path[i], size, "%s%s", path, suffixes[i]);
    if (p->path[i] && stat(p->path[i], &p->was[i]) != 0) {
        free(p->path[i]);
        p->path[i] = NULL;
    }
}

/* Symbolic links are followed once, as the backend does. */
void
place_init(struct place *p, const char *url)
{
    char *path = url_is_sqlite(url) ? url_sqlite_path(url) : NULL;
    char *real = path ? realpath(path, NULL) : NULL;

    *p = (struct place){.path = {NULL}};
    for (int i = 0; real && i < PLACE_FILES; i++)
        remember(p, i, real);
    free(real);
    free(path);
}

void
place_fini(struct place *p)
{
    for (int i = 0; i < PLACE_FILES; i++)
        free(p->path[i]);
}

/* Any other error than ENOENT may pass. */
bool
place_is_gone(const struct place *p)
{
    for (int i = 0; i < PLACE_FILES; i++) {
        struct stat now;
        if (!p->path[i])
            continue;
        if (stat(p->path[i], &now) != 0) {
            if (errno == ENOENT)
                return true;
        } else if (now.st_dev != p->was[i].st_dev ||
                   now.st_ino != p->was[i].st_ino) {
            return true;
        }
    }
    return false;
}
