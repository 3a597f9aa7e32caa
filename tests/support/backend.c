/* SPDX-License-Identifier: MIT */
/* backend.c: the backend of programs that do not define one: in memory. It has
 * a file of its own, so that the linker takes it only where it is needed. */
#include "support/backend.h"

static const struct backend_skip skips[] = {
    {"two_handles_agree_with_the_model", "a queue in memory has one handle"},
    {NULL, NULL},
};

const struct backend backend = {
    .open = wq_create,
    .lacks = "other" BACKEND_AND_FD,
    .skips = skips,
};
