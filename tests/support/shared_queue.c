/* SPDX-License-Identifier: MIT */
/* shared_queue.c: opening shared queues in tests; see shared_queue.h. */
#include "support/shared_queue.h"

#include <wq/backend.h>
#include <wq/limiter.h>

#include "config/config.h"
#include "shared/shared.h"
#include "support/memory_store.h"

static wq_err
join(struct memory_store *store, const struct shared_queue_options *options,
     const wq_config *config, struct wq__engine **engine, wq_queue **out)
{
    struct wq__config  checked;
    struct wq__terms   terms;
    struct wq__engine *e = NULL;

    if (!out)
        return wq_fail(WQ_EINVAL, "shared_queue_join: out is NULL");
    wq_err err = wq__config_read(config, &checked);
    if (!err)
        err = wq__shared_check(&checked.user, &terms);
    if (err)
        return err;
    terms.max_expiries = options->max_expiries;
    err = memory_store_engine(store, &terms, options->lease_ns, &e);
    if (err)
        return err;
    const struct wq__shared_options shell = {
        .config = &checked.user, .manual_renew = options->manual_renew};
    err = wq__shared_create(e, &shell, out);
    if (err)
        e->ops->close(e, false);
    else if (engine)
        *engine = e;
    return err;
}

wq_err
shared_queue_join(struct memory_store               *store,
                  const struct shared_queue_options *options,
                  const wq_config *config, struct wq__engine **engine,
                  wq_queue **out)
{
    const struct shared_queue_options none = {.lease_ns = 0};
    const wq_err                      err =
        join(store, options ? options : &none, config, engine, out);

    /* The store has a limiter of its own, made from the description. */
    wq_limiter_destroy(wq__config_limiter(config));
    return err;
}

/* The store of the last shared_queue_open(): a weak reference. Atomic because
 * tests open queues in several threads. */
static struct memory_store *_Atomic last;

wq_err
shared_queue_open(const wq_config *config, wq_queue **out)
{
    struct memory_store *store =
        memory_store_create(config ? config->clock : NULL);

    if (!store) {
        wq_limiter_destroy(wq__config_limiter(config));
        return WQ_ENOMEM;
    }
    const wq_err err = shared_queue_join(store, NULL, config, NULL, out);
    memory_store_destroy(store);
    last = store;
    return err;
}

wq_err
shared_queue_open_again(const wq_config *config, wq_queue **out)
{
    return shared_queue_join(last, NULL, config, NULL, out);
}
