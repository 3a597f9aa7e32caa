/* SPDX-License-Identifier: MIT */
/* store.c: where is output kept until it may be printed? */
#include "output/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/report.h"
#include "base/write.h"

/* The memory that a store keeps when it is used again: enough for most runs. */
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

/* On file systems without O_TMPFILE, the file has a name for a moment. */
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
    static bool reported;

    store->refused = true;
    if (!reported)
        report_errno("cannot store output in a file in %s; using memory",
                     directory());
    reported = true;
}

/* Appends to the file; returns how many bytes could be written. */
static size_t
write_file(struct store *store, const char *data, size_t len)
{
    size_t done = 0;

    if (store->fd < 0)
        store->fd = open_nameless();
    if (store->fd < 0 || !write_all(store->fd, data, len, &done))
        refuse(store);
    store->in_file += done;
    return done;
}

/* ----------------------------------------------------------- the memory -- */

/* On failure nothing is kept. */
static bool
keep(struct store *store, const char *data, size_t len)
{
    const size_t before = store->memory.len;

    wq__text_add(&store->memory, data, len);
    if (!store->memory.err)
        return true;
    store->memory.len = before;
    store->memory.err = WQ_OK;
    return false;
}

/* Moves what is in memory to the file, as far as it can be written. */
static void
spill(struct store *store)
{
    struct wq__text *memory = &store->memory;
    const size_t     done =
        memory->len > 0 ? write_file(store, memory->data, memory->len) : 0;

    memory->len -= done;
    if (done > 0 && memory->len > 0)
        (void)memmove(memory->data, memory->data + done, memory->len);
}

/* -------------------------------------------------------- the interface -- */

bool
store_add(struct store *store, const void *data, size_t len)
{
    const char *from = data;
    size_t      done = 0;

    if (len == 0)
        return true;
    if (store->memory.len + len > STORE_MAX && !store->refused) {
        spill(store);
        if (!store->refused && len > STORE_MAX / 2)
            done = write_file(store, from, len);
    }
    return done == len || keep(store, from + done, len - done);
}

size_t
store_move(struct store *store, int pipe)
{
    enum { MOST = 1 << 20 };

    if (store->fd < 0 || store->refused)
        return 0;
    spill(store);
    if (store->memory.len > 0)
        return 0;
    const ssize_t n = splice(pipe, NULL, store->fd, NULL, MOST,
                             SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n <= 0)
        return 0; /* store_add() reports errors */
    store->in_file += (size_t)n;
    return (size_t)n;
}

bool
store_append(struct store *store, const void *data, size_t len)
{
    return !store->refused && write_file(store, data, len) == len;
}

bool
store_is_empty(const struct store *store)
{
    return store->memory.len == 0 && store->in_file == 0;
}

void
store_clear(struct store *store)
{
    if (store->fd >= 0)
        (void)close(store->fd);
    store->fd = -1;
    store->in_file = 0;
    store->refused = false;
    text_clear(&store->memory);
    if (store->memory.cap > KEPT)
        wq__text_fini(&store->memory);
}

void
store_fini(struct store *store)
{
    store_clear(store);
    wq__text_fini(&store->memory);
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
        errno = EIO; /* another process has truncated it */
    report_errno("cannot read stored output from a file in %s", directory());
    return 0;
}
