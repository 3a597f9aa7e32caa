/* SPDX-License-Identifier: MIT */
/* backend.c: is this a backend that can stand behind a wq_queue? */
#include "error/error.h"

/* The verbs of release 0.1; later ones are optional. */
#define SIZE_0_1 (offsetof(wq_backend, resume) + sizeof(void (*)(void)))

static wq_err
check_required(const wq_backend *b)
{
    const struct {
        bool        is_set;
        const char *name;
    } required[] = {
        {b->name, "name"},         {b->destroy, "destroy"},
        {b->add, "add"},           {b->get, "get"},
        {b->done, "done"},         {b->len, "len"},
        {b->shutdown, "shutdown"}, {b->shutting_down, "shutting_down"},
    };

    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (!required[i].is_set)
            return wq_fail(WQ_EINVAL, "wq_backend.%s is NULL",
                           required[i].name);
    return WQ_OK;
}

wq_err
wq_backend_init(wq_queue *q, const wq_backend *b)
{
    if (!q)
        return wq_fail(WQ_EINVAL, "wq_backend_init: q is NULL");
    if (!b)
        return wq_fail(WQ_EINVAL, "wq_backend_init: backend is NULL");
    if (b->size < SIZE_0_1 || b->size > sizeof *b)
        return wq_fail(WQ_EINVAL,
                       "wq_backend.size is %zu: use sizeof(wq_backend)",
                       b->size);
    const wq_err err = check_required(b);
    if (err)
        return err;

    q->backend = b;
    return WQ_OK;
}
