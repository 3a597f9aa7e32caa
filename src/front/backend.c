/* SPDX-License-Identifier: MIT */
/* backend.c: is this backend complete? */
#include "error/error.h"

/* The shortest table: up to the last required verb. */
#define SIZE_LEAST                                                             \
    (offsetof(wq_backend, shutting_down) + sizeof(void (*)(void)))

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
    if (b->size < SIZE_LEAST || b->size > sizeof *b)
        return wq_fail(WQ_EINVAL,
                       "wq_backend.size is %zu: use sizeof(wq_backend)",
                       b->size);
    const wq_err err = check_required(b);
    if (err)
        return err;

    q->backend = b;
    return WQ_OK;
}
