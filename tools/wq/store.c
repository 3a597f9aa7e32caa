/* SPDX-License-Identifier: MIT */
/* store.c: where is output kept until it may go out? */
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tell.h"

/* A store that is used again keeps so much memory: what most runs need. */
#define KEPT (64 * (size_t)1024)

/* ------------------------------------------------------------- the file -- */

static const char *
directory(void)
{
    const char *dir = getenv("TMPDIR");

    if (dir && *dir)
        return dir;
    return access("/var/tmp", W_OK | X_OK) == 0 ? "/var/tmp" : "/tmp";
}

/* O_TMPFILE never has a name; file systems without it get one for a moment. */
static int
open_nameless(void)
{
    char *path;
    int   fd = open(directory(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 || asprintf(&path, "%s/wq-XXXXXX", directory()) < 0)
        return fd;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(path);
    free(path);
    return fd;
}

static void
refuse(struct store *store)
{
    static bool told;

    store->refused = true;
    if (!told)
        tell_errno("cannot keep output in a file in %s, memory has to do",
                   directory());
    told = true;
}

/* Writes to the end of the file as much as it takes. Returns how much. */
static size_t
write_file(struct store *store, const char *data, size_t len)
{
    size_t done = 0;

    if (store->fd < 0 && (store->fd = open_nameless()) < 0) {
        refuse(store);
        return 0;
    }
    while (done < len) {
        const ssize_t n = write(store->fd, data + done, len - done);
        if (n > 0) {
            done += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            refuse(store);
            break;
        }
    }
    store->in_file += done;
    return done;
}

/* ----------------------------------------------------------- the memory -- */

static bool
reserve(struct store *store, size_t len)
{
    size_t room = store->room ? store->room : 4096;

    if (len <= store->room - store->len)
        return true;
    while (room - store->len < len)
        room *= 2; /* a pipe is read in pieces: it does not overflow */
    char *data = realloc(store->data, room);
    if (!data)
        return false;
    store->data = data;
    store->room = room;
    return true;
}

static bool
keep(struct store *store, const char *data, size_t len)
{
    if (!reserve(store, len))
        return false;
    (void)memcpy(store->data + store->len, data, len);
    store->len += len;
    return true;
}

/* What is in memory goes to the file, as far as it takes it. */
static void
spill(struct store *store)
{
    const size_t done =
        store->len > 0 ? write_file(store, store->data, store->len) : 0;

    store->len -= done;
    if (done > 0 && store->len > 0)
        (void)memmove(store->data, store->data + done, store->len);
}

/* -------------------------------------------------------------- offered -- */

bool
store_add(struct store *store, const void *data, size_t len)
{
    const char *from = data;
    size_t      done = 0;

    if (len == 0)
        return true;
    if (store->len + len > STORE_MOST && !store->refused) {
        spill(store);
        if (!store->refused && len > STORE_MOST / 2)
            done = write_file(store, from, len);
    }
    return done == len || keep(store, from + done, len - done);
}

bool
store_is_empty(const struct store *store)
{
    return store->len == 0 && store->in_file == 0;
}

void
store_clear(struct store *store)
{
    if (store->fd >= 0)
        (void)close(store->fd);
    store->fd = -1;
    store->in_file = 0;
    store->len = 0;
    store->refused = false;
    if (store->room > KEPT) {
        free(store->data);
        store->data = NULL;
        store->room = 0;
    }
}

void
store_fini(struct store *store)
{
    store_clear(store);
    free(store->data);
    store->data = NULL;
    store->room = 0;
}

size_t
store_read(const struct store *store, uint64_t at, void *data, size_t len)
{
    ssize_t n;

    if (len > store->in_file - at)
        len = (size_t)(store->in_file - at);
    do
        n = pread(store->fd, data, len, (off_t)at);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        return (size_t)n;
    if (n == 0)
        errno = EIO; /* somebody has cut it off */
    tell_errno("cannot read back output from a file in %s", directory());
    return 0;
}
