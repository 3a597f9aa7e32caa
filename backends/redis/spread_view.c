/* SPDX-License-Identifier: MIT */
/* spread_view.c: what can be seen of a queue with partitions? See spread.h.
 *
 * The sum of what can be seen of each of them, one after the other: so not of one
 * moment. If one of them is away, there is no sum.
 */
#include <stdlib.h>

#include "spread.h"

/* Run a look in partition `p`. */
static wq_err
look_at(struct wq__spread *s, unsigned p, struct wq__op *op)
{
    op->next = NULL;
    wq__spread_ask(s, p, op);
    return wq__spread_run_shares(s);
}

static int64_t
sum_of_ages(int64_t a, int64_t b)
{
    return a < 0 || b < 0 ? -1 : a > INT64_MAX - b ? INT64_MAX : a + b;
}

static void
add_stats(wq_stats *to, const wq_stats *more)
{
    to->ready += more->ready;
    to->offered += more->offered;
    to->held += more->held;
    to->dirty += more->dirty;
    to->waiting += more->waiting;
    to->dead += more->dead;
    to->known += more->known;
    to->unfinished_ns = sum_of_ages(to->unfinished_ns, more->unfinished_ns);
    if (more->longest_ns > to->longest_ns)
        to->longest_ns = more->longest_ns;
    if (more->next_ns < to->next_ns)
        to->next_ns = more->next_ns;
}

static wq_err
read_stats(struct wq__spread *s, struct wq__op *op)
{
    struct wq__ids holders = {.at = NULL};
    wq_stats       sum = {
              .size = op->as.stats->size, .longest_ns = -1, .next_ns = WQ_FOREVER};
    wq_err err = WQ_OK;

    op->err = WQ_OK;
    for (unsigned p = 0; p < s->n && !err && !op->err; p++) {
        wq_stats      one = {.size = op->as.stats->size};
        struct wq__op copy = {.kind = WQ__OP_STATS, .as.stats = &one};

        s->part[p]->holders = &holders;
        err = look_at(s, p, &copy);
        s->part[p]->holders = NULL;
        op->err = copy.err;
        add_stats(&sum, &one);
    }
    sum.holders = holders.len;
    free(holders.at);
    if (!err && !op->err)
        *op->as.stats = sum;
    return err;
}

/* All priorities of partition `p`; *list is to be freed. */
static wq_err
list_depths(struct wq__spread *s, unsigned p, wq_depth **list, size_t *n,
            wq_err *result)
{
    size_t cap = 16;
    wq_err err = WQ_OK;

    *list = NULL;
    for (*n = cap + 1; !err && !*result && *n > cap;) {
        free(*list);
        cap = *n;
        *list = calloc(cap, sizeof **list);
        if (!*list) {
            *result = WQ_ENOMEM;
            break;
        }
        struct wq__op copy = {.kind = WQ__OP_DEPTHS};
        copy.as.depths.out = *list;
        copy.as.depths.max = cap;
        copy.as.depths.n = n;
        err = look_at(s, p, &copy);
        *result = copy.err;
    }
    return err;
}

static wq_err
read_depths(struct wq__spread *s, struct wq__op *op)
{
    wq_depth *all = NULL;
    size_t    cap = 0, len = 0;
    wq_err    err = WQ_OK;

    op->err = WQ_OK;
    for (unsigned p = 0; p < s->n && !err && !op->err; p++) {
        wq_depth *list;
        size_t    n = 0;

        err = list_depths(s, p, &list, &n, &op->err);
        wq_depth *more =
            err || op->err ? NULL : realloc(all, (cap + n) * sizeof *all);
        if (more) {
            all = more;
            cap += n;
            for (size_t i = 0; i < n; i++)
                wq__depths_add(all, cap, &len, list[i].priority, list[i].keys);
        } else if (!err && !op->err) {
            op->err = WQ_ENOMEM;
        }
        free(list);
    }
    if (!err && !op->err) {
        *op->as.depths.n = len;
        for (size_t i = 0; i < len && i < op->as.depths.max; i++)
            op->as.depths.out[i] = all[i];
    }
    free(all);
    return err;
}

static wq_err
walk(struct wq__spread *s, struct wq__op *op)
{
    struct wq__op copy = *op;
    const wq_err  err = look_at(s, op->as.walk.part, &copy);

    if (err)
        return err;
    op->err = copy.err;
    op->as.walk.cursor = copy.as.walk.cursor;
    op->as.walk.ended = copy.as.walk.ended;
    if (!op->err && op->as.walk.ended && op->as.walk.part + 1 < s->n) {
        op->as.walk.part++;
        op->as.walk.cursor = 0;
        op->as.walk.ended = false;
    }
    return WQ_OK;
}

static wq_err
check(struct wq__spread *s, struct wq__op *op)
{
    wq_err err = WQ_OK;

    op->err = WQ_OK;
    for (unsigned p = 0; p < s->n && !err && !op->err; p++) {
        struct wq__op copy = *op;

        err = look_at(s, p, &copy);
        op->err = copy.err;
    }
    return err;
}

wq_err
wq__spread_look(struct wq__spread *s, struct wq__op *op)
{
    switch (op->kind) {
    case WQ__OP_STATS:
        return read_stats(s, op);
    case WQ__OP_DEPTHS:
        return read_depths(s, op);
    case WQ__OP_WALK:
        return walk(s, op);
    default:
        return check(s, op);
    }
}
