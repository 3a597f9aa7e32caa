/* SPDX-License-Identifier: MIT */
/* listen_none.c: what can be asked over HTTP, where wq is built without
 * libmicrohttpd? Nothing, and --listen says so.
 */
#include "listen.h"

#include "tell.h"

static const char missing[] = "this wq was built without libmicrohttpd";

const char *
listen_check(const char *address)
{
    (void)address;
    return missing;
}

bool
listen_create(const struct options *options, struct loop *loop,
              struct runner *runner, struct listener **out)
{
    (void)loop, (void)runner;
    *out = NULL;
    if (!options->listen)
        return true;
    tell("--listen=%s: %s", options->listen, missing);
    return false;
}

void
listen_destroy(struct listener *listener)
{
    (void)listener;
}
