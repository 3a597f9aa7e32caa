/* SPDX-License-Identifier: MIT */
/* row_view.c: what do the rows of a store tell programs and people?
 *
 * Cost: some hundred nanoseconds a row.
 */
#include "shared/rows.h"

static void
describe_dead(const struct wq__row *row, wq_key_info *info)
{
    info->states = WQ_STATE_DEAD;
    info->priority = row->image.priority;
    info->ready_ns = info->held_ns = info->wait_ns = -1;
    info->fence = 0;
}

wq_err
wq__row_describe(struct wq__rows *r, wq_key key, const struct wq__row *row,
                 wq_key_info *info)
{
    struct wq__core *c = &r->scratch;
    const uint32_t   hash = wq__core_hash(c, key);
    const wq_err     err = wq__row_import(r, key, row, NULL);

    if (err)
        return err;
    if (row->dead)
        describe_dead(row, info);
    else
        wq__core_key_info(c, key, hash, r->now_ns, info);
    wq__core_expel(c, key, hash);
    if (!r->terms.ages)
        info->ready_ns = info->held_ns = -1;
    info->requeues = wq__row_requeues(r, row);
    info->group = (wq_key){0};
    info->expiries = row->expiries;
    info->holder[0] = '\0';
    if (info->states & WQ_STATE_HELD)
        r->store->name_holder(r, row->owner, info->holder);
    return WQ_OK;
}

const char *
wq__row_problem(struct wq__rows *r, wq_key key, const struct wq__row *row)
{
    if (key.len == 0 || key.len > WQ_KEY_MAX)
        return "its key is empty or too long";
    if (!row->dead && row->image.states && !wq__image_is_possible(&row->image))
        return "impossible states";
    const wq_err err = wq__row_import(r, key, row, NULL);
    if (err)
        return wq_strerror(err);
    const char *broken = wq__core_check(&r->scratch);
    wq__core_expel(&r->scratch, key, wq__core_hash(&r->scratch, key));
    return broken;
}

void
wq__depths_add(wq_depth *out, size_t max, size_t *n, int priority, size_t keys)
{
    const size_t stored = *n < max ? *n : max;
    size_t       i = 0;

    while (i < stored && out[i].priority != priority)
        i++;
    if (i < stored)
        out[i].keys += keys;
    else if (*n < max)
        out[(*n)++] = (wq_depth){priority, keys};
    else
        ++*n;
}
