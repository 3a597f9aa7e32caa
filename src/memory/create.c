/* SPDX-License-Identifier: MIT */
/* create.c: how does a queue come to be?
 *
 * wq_create(): checks the config, and makes an in-memory queue with a hash key
 * nobody can guess.
 */
#include "core/config.h"
#include "memory/memory.h"
#include "port/random.h"

wq_err
wq_create(const wq_config *config, wq_queue **out)
{
    struct wq__config checked;
    uint64_t          random[2];

    if (!out)
        return WQ_EINVAL;
    wq_err err = wq__config_read(config, &checked);
    if (!err)
        err = wq__random(random, sizeof random);
    if (err)
        return err;
    return wq__memory_create(&checked.user, wq__hash_key_of(random), out);
}
