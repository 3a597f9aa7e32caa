/* SPDX-License-Identifier: MIT */
/* layer.c: checking the arguments of a layer; see layer.h. */
#include "layer/layer.h"

#include "error/error.h"

wq_err
wq__layer_check(const char *who, const wq_queue *inner, const wq_config *config,
                wq_queue **out, struct wq__config *checked)
{
    if (!inner)
        return wq_fail(WQ_EINVAL, "%s: inner is NULL", who);
    if (!out)
        return wq_fail(WQ_EINVAL, "%s: out is NULL", who);
    const wq_err err = wq__config_read(config, checked);
    return err ? err : wq__config_check_for_layer(&checked->user);
}
