/* SPDX-License-Identifier: MIT */
/* sessions.c: which holders have ended, and what becomes of their keys?
 *
 * `owner` of a HELD row is a session. Which sessions live is known to the side
 * directory. The keys of a session that has died, or whose time is over, become
 * READY behind those that are, in the order in which they were handed out, and
 * each counts an expiry. A transaction gives back a bounded number of them.
 *
 * A session is ended for good before its first key is given back, so it cannot
 * renew itself meanwhile, and a finish that comes late finds another fence.
 */
#include <stdlib.h>

#include "store.h"

/* How many holds are given back in one transaction. */
enum { RETURNS = 256 };

/* ---- one session ---------------------------------------------------------- */

/* The first hold of `owner` after `fence`. WQ_ENOTFOUND: there is none. */
static wq_err
first_hold(struct wq__sqlite *e, int64_t owner, int64_t fence,
           struct wq__row *row, wq_key *key)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_HELD_BY);

    if (s) {
        (void)sqlite3_bind_int64(s, 1, e->queue);
        (void)sqlite3_bind_int64(s, 2, owner);
        (void)sqlite3_bind_int64(s, 3, fence);
    }
    const wq_err err = wq__row_fetch(e, s, row, key);
    return err ? err : wq__row_check(&e->rows, *key, row);
}

/* Give back holds of `owner`, at most *left. WQ_ENOTFOUND: none are left. */
static wq_err
return_holds(struct wq__sqlite *e, int64_t owner, bool expired, size_t *left)
{
    struct wq__row row = {.id = 0};
    wq_key         key = {0};
    wq_err         err = WQ_OK;

    while (!err && *left) {
        err = first_hold(e, owner, INT64_MIN, &row, &key);
        if (err)
            return err;
        err = wq__rows_give_back(&e->rows, key, &row, expired);
        --*left;
    }
    return err;
}

/* ---- all ------------------------------------------------------------------ */

/* One session in each transaction: its slot is free after the commit. */
wq_err
wq__sqlite_settle_others(struct wq__sqlite *e, struct wq__did *did)
{
    size_t        left = RETURNS;
    const int64_t id =
        wq__side_find_ended(e->side, e->queue, e->rows.now_ns, false);

    if (!id)
        return WQ_OK;
    e->rows.more_to_do = true;
    const wq_err err = return_holds(e, id, true, &left);
    did->expired += RETURNS - left;
    if (err == WQ_ENOTFOUND)
        e->buries = id;
    return err == WQ_ENOTFOUND ? WQ_OK : err;
}

wq_err
wq__sqlite_return_own(struct wq__sqlite *e, bool expired)
{
    size_t       left = SIZE_MAX;
    const wq_err err = return_holds(e, e->session, expired, &left);

    return err == WQ_ENOTFOUND ? WQ_OK : err;
}

/* ---- releasing ------------------------------------------------------------ */

static int
compare_fences(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static bool
is_known(const uint64_t *fences, size_t n, uint64_t fence)
{
    return n && bsearch(&fence, fences, n, sizeof *fences, compare_fences);
}

/* A fence names one hold of the queue. */
static uint64_t *
sorted_fences(const struct wq__known *known, size_t n)
{
    uint64_t *fences = malloc((n + 1) * sizeof *fences);

    for (size_t i = 0; fences && i < n; i++)
        fences[i] = known[i].fence;
    if (fences)
        qsort(fences, n, sizeof *fences, compare_fences);
    return fences;
}

static wq_err
release(struct wq__sqlite *e, const uint64_t *fences, size_t n)
{
    struct wq__row row = {.id = 0};
    wq_key         key = {0};
    int64_t        after = INT64_MIN;

    for (;;) {
        wq_err err = first_hold(e, e->session, after, &row, &key);
        if (err)
            return err == WQ_ENOTFOUND ? WQ_OK : err;
        after = (int64_t)row.image.fence;
        if (is_known(fences, n, row.image.fence))
            continue;
        err = wq__rows_give_back(&e->rows, key, &row, false);
        if (err)
            return err;
    }
}

wq_err
wq__sqlite_release(struct wq__sqlite *e, const struct wq__known *known,
                   size_t n)
{
    uint64_t *fences = sorted_fences(known, n);

    if (!fences)
        return WQ_ENOMEM;
    const wq_err err = release(e, fences, n);
    free(fences);
    return err;
}

/* ---- orphans -------------------------------------------------------------- */

static wq_err
next_owner(struct wq__sqlite *e, int64_t after, int64_t *owner)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_OWNER_AFTER);

    if (!s)
        return wq__db_error(&e->db, "read");
    (void)sqlite3_bind_int64(s, 1, e->queue);
    (void)sqlite3_bind_int64(s, 2, after);
    const int code = wq__db_step(s);
    if (code == SQLITE_ROW) {
        *owner = sqlite3_column_int64(s, 0);
        (void)sqlite3_reset(s);
        return WQ_OK;
    }
    return code == SQLITE_DONE ? WQ_ENOTFOUND : wq__db_error(&e->db, "read");
}

wq_err
wq__sqlite_adopt_orphans(struct wq__sqlite *e)
{
    int64_t owner = INT64_MIN;
    wq_err  err;

    while (!(err = next_owner(e, owner, &owner))) {
        size_t left = SIZE_MAX;

        if (wq__side_is_live(e->side, owner, e->rows.now_ns))
            continue;
        err = return_holds(e, owner, true, &left);
        if (err && err != WQ_ENOTFOUND)
            return err;
    }
    return err == WQ_ENOTFOUND ? WQ_OK : err;
}
