/* SPDX-License-Identifier: MIT */
/* side_wq.c: the library, as a user calls it. */
#include "bench.h"

static void *
create(void)
{
    wq_queue *q;
    must(wq_create(NULL, &q) == WQ_OK, "wq_create");
    return q;
}

static void
add(void *q, wq_key key)
{
    must(wq_add(q, key) == WQ_OK, "wq_add");
}

static bool
get(void *q, void **item)
{
    wq_item     *got;
    const wq_err err = wq_get(q, &got);

    must(err == WQ_OK || err == WQ_ESHUTDOWN, "wq_get");
    *item = err ? NULL : got;
    return err == WQ_OK;
}

static void
done(void *q, void *item)
{
    must(wq_done(q, item) == WQ_OK, "wq_done");
}

static void
shutdown(void *q)
{
    wq_shutdown(q);
}

static void
destroy(void *q)
{
    wq_destroy(q);
}

const struct side side_wq = {
    .name = "wq",
    .what = "this library",
    .create = create,
    .add = add,
    .get = get,
    .done = done,
    .shutdown = shutdown,
    .destroy = destroy,
};
