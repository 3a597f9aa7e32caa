/* SPDX-License-Identifier: MIT */
/* core_kind.h: which kind of core does a test want? */
#ifndef WQ_TEST_CORE_KIND_H
#define WQ_TEST_CORE_KIND_H

#include "core/core.h"

struct core_kind {
    bool    ages;           /* they are kept */
    bool    grouped;        /* keys have groups */
    size_t  max_held;       /* of a group; 0: any number */
    int64_t serve_after_ns; /* then a READY key is overdue; 0: never */
    size_t  max_bytes;      /* of all keys; 0: any number */
};

/* A core without keys becomes one of this kind. */
static inline void
core_set_kind(struct wq__core *core, const struct core_kind *kind)
{
    if (kind->ages)
        wq__core_keep_ages(core);
    if (kind->grouped)
        wq__core_have_groups(core, kind->max_held);
    if (kind->serve_after_ns)
        wq__core_serve_after(core, kind->serve_after_ns);
    if (kind->max_bytes)
        wq__core_bound_bytes(core, kind->max_bytes);
}

#endif
