/* SPDX-License-Identifier: MIT */
/* create.c: is this a config a queue can be made of?
 *
 * wq_create(): checks what the user filled in, then makes the in-memory queue
 * with a hash key nobody can guess.
 */
#include <string.h>

#include "memory/memory.h"
#include "port/random.h"

/* Read a struct whose first member tells its size into `out`, which has
 * `known` bytes. The program may have been compiled against an older header (what
 * it does not have is zero) or a newer one (what we do not know must be zero). */
static wq_err
read_sized(const void *from, size_t known, void *out)
{
    const size_t size = *(const size_t *)from; /* its first member */

    if (size < sizeof size || size % sizeof(void *) != 0)
        return WQ_EINVAL;
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)from)[i])
            return WQ_EINVAL;
    memset(out, 0, known);
    memcpy(out, from, size < known ? size : known);
    return WQ_OK;
}

static wq_err
read_order(const wq_order *from, wq_order *out)
{
    const wq_err err = read_sized(from, sizeof *out, out);
    if (err)
        return err;
    return out->push && out->pop && out->len ? WQ_OK : WQ_EINVAL;
}

static wq_err
read_allocator(const wq_allocator *from, wq_allocator *out)
{
    const wq_err err = read_sized(from, sizeof *out, out);
    if (err)
        return err;
    return out->alloc && out->free ? WQ_OK : WQ_EINVAL;
}

wq_err
wq_create(const wq_config *config, wq_queue **out)
{
    const wq_config     defaults = {.size = sizeof defaults};
    wq_config           checked;
    wq_order            order;
    wq_allocator        allocator;
    struct wq__hash_key secret = {.mask = UINT32_MAX};
    uint64_t            random[2];

    if (!out)
        return WQ_EINVAL;
    wq_err err =
        read_sized(config ? config : &defaults, sizeof checked, &checked);
    if (!err && checked.order) {
        err = read_order(checked.order, &order);
        checked.order = &order;
    }
    if (!err && checked.allocator) {
        err = read_allocator(checked.allocator, &allocator);
        checked.allocator = &allocator;
    }
    if (!err)
        err = wq__random(random, sizeof random);
    if (err)
        return err;

    secret.k0 = random[0];
    secret.k1 = random[1];
    return wq__memory_create(&checked, secret, out);
}
