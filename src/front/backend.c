/* SPDX-License-Identifier: MIT */
/* backend.c: is this a backend that can stand behind a wq_queue? */
#include <wq/backend.h>

/* The verbs of release 0.1; later ones are optional. */
#define SIZE_0_1 (offsetof(wq_backend, resume) + sizeof(void (*)(void)))

wq_err
wq_backend_init(wq_queue *q, const wq_backend *b)
{
    if (!q || !b || b->size < SIZE_0_1 || b->size > sizeof *b)
        return WQ_EINVAL;
    if (!b->name || !b->destroy || !b->add || !b->get || !b->done || !b->len ||
        !b->shutdown || !b->shutting_down)
        return WQ_EINVAL;

    q->backend = b;
    return WQ_OK;
}
