/* SPDX-License-Identifier: MIT */
/* view.c: what is in the file, for programs and people to look at?
 *
 * Cost: stats O(HELD keys), depths O(READY and WAITING keys), a walk O(n) in
 * steps of some hundred rows, a check and a recount O(n).
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/span.h"
#include "error/error.h"
#include "store.h"

/* A statement whose first parameter is the queue. */
static sqlite3_stmt *
about_queue(struct wq__sqlite *e, enum wq__statement which)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, which);

    if (s)
        (void)sqlite3_bind_int64(s, 1, e->queue);
    return s;
}

wq_err
wq__sqlite_next(struct wq__sqlite *e, enum wq__statement which, int64_t *out)
{
    sqlite3_stmt *s = about_queue(e, which);
    const int     code = s ? wq__db_step(s) : SQLITE_ERROR;

    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return wq__db_error(&e->db, "read");
    *out = code == SQLITE_ROW ? sqlite3_column_int64(s, 0) : WQ_FOREVER;
    (void)sqlite3_reset(s);
    return WQ_OK;
}

/* The earliest deadline, or end of a cooldown. */
static wq_err
find_next(struct wq__sqlite *e, int64_t *out)
{
    int64_t      due_ns = WQ_FOREVER, cool_ns = WQ_FOREVER;
    const wq_err err = wq__sqlite_next(e, WQ__SQL_NEXT_DUE, &due_ns);

    if (err)
        return err;
    const wq_err other = wq__sqlite_next(e, WQ__SQL_NEXT_COOL, &cool_ns);
    if (!other)
        *out = due_ns < cool_ns ? due_ns : cool_ns;
    return other;
}

wq_err
wq__sqlite_refresh_next(struct wq__sqlite *e)
{
    if (!e->rows.stale_next)
        return WQ_OK;
    e->rows.stale_next = false;
    return find_next(e, &e->rows.counts.next_ns);
}

static wq_err
count_rows(struct wq__sqlite *e, struct wq__row_counts *out)
{
    sqlite3_stmt *s = about_queue(e, WQ__SQL_COUNT);

    if (!s || wq__db_step(s) != SQLITE_ROW)
        return wq__db_error(&e->db, "count the keys of");
    *out = (struct wq__row_counts){
        .ready = (uint64_t)sqlite3_column_int64(s, 0),
        .held = (uint64_t)sqlite3_column_int64(s, 1),
        .dirty = (uint64_t)sqlite3_column_int64(s, 2),
        .waiting = (uint64_t)sqlite3_column_int64(s, 3),
        .dead = (uint64_t)sqlite3_column_int64(s, 4),
        .known = (uint64_t)sqlite3_column_int64(s, 5),
    };
    (void)sqlite3_reset(s);
    return find_next(e, &out->next_ns);
}

wq_err
wq__sqlite_recount(struct wq__sqlite *e)
{
    const wq_err err = count_rows(e, &e->rows.counts);

    e->counted |= !err;
    return err;
}

/* ---- keys ----------------------------------------------------------------- */

/* Visit the row that a statement has arrived at. *full: no space for it. */
static wq_err
visit(struct wq__sqlite *e, struct wq__op *op, sqlite3_stmt *s, bool *full)
{
    wq_key_info    info = {.size = sizeof info};
    struct wq__row row;
    wq_key         key;
    wq_err         err = wq__row_read(e, s, &row, &key);

    if (!err)
        err = wq__row_describe(&e->rows, key, &row, &info);
    if (err)
        return err;
    *full = info.states & op->as.walk.states &&
            !op->as.walk.found(op->as.walk.ctx, key, &info);
    if (!*full)
        op->as.walk.cursor = (uint64_t)row.id;
    return WQ_OK;
}

wq_err
wq__sqlite_walk(struct wq__sqlite *e, struct wq__op *op)
{
    enum { ROWS = 256 }; /* in one batch: some, not all */
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_WALK);
    wq_err        err = WQ_OK;
    bool          full = false;
    int           n = 0, code = SQLITE_ROW;

    if (!s)
        return wq__db_error(&e->db, "read");
    (void)sqlite3_bind_int64(s, 1, (int64_t)op->as.walk.cursor);
    (void)sqlite3_bind_int64(s, 2, e->queue);
    (void)sqlite3_bind_int(s, 3, ROWS);
    while (!err && !full && (code = wq__db_step(s)) == SQLITE_ROW) {
        err = visit(e, op, s, &full);
        n++;
    }
    (void)sqlite3_reset(s);
    if (!err && code != SQLITE_ROW && code != SQLITE_DONE)
        err = wq__db_error(&e->db, "read");
    op->as.walk.ended = !err && !full && n < ROWS;
    return err;
}

/* ---- numbers -------------------------------------------------------------- */

/* The ages of the HELD keys. */
static wq_err
read_ages(struct wq__sqlite *e, wq_stats *out)
{
    sqlite3_stmt *s = about_queue(e, WQ__SQL_HELD_TIMES);

    if (!s || wq__db_step(s) != SQLITE_ROW)
        return wq__db_error(&e->db, "read");
    const double n = sqlite3_column_double(s, 0);
    const double sum = n * (double)e->rows.now_ns - sqlite3_column_double(s, 2);
    out->longest_ns =
        n > 0 ? wq__span_between(sqlite3_column_int64(s, 1), e->rows.now_ns)
              : 0;
    out->unfinished_ns =
        sum >= 9.2e18 ? INT64_MAX : (int64_t)(sum > 0 ? sum : 0);
    if (out->unfinished_ns < out->longest_ns || n == 1)
        out->unfinished_ns = out->longest_ns;
    (void)sqlite3_reset(s);
    return WQ_OK;
}

static wq_err
read_holders(struct wq__sqlite *e, size_t *out)
{
    sqlite3_stmt *s = about_queue(e, WQ__SQL_HOLDERS);

    if (!s || wq__db_step(s) != SQLITE_ROW)
        return wq__db_error(&e->db, "read");
    *out = (size_t)sqlite3_column_int64(s, 0);
    (void)sqlite3_reset(s);
    return WQ_OK;
}

/* Counts are those of the handles: the shell knows them. */
wq_err
wq__sqlite_read_stats(struct wq__sqlite *e, wq_stats *out)
{
    int64_t due_ns = WQ_FOREVER;
    wq_err  err = wq__sqlite_next(e, WQ__SQL_NEXT_DUE, &due_ns);

    if (err)
        return err;
    *out = (wq_stats){.size = out->size,
                      .next_ns = wq__span_until(e->rows.now_ns, due_ns),
                      .unfinished_ns = -1,
                      .longest_ns = -1};
    wq__rows_fill_in(&e->rows.counts, out);
    err = read_holders(e, &out->holders);
    return err || !e->rows.terms.ages ? err : read_ages(e, out);
}

wq_err
wq__sqlite_read_depths(struct wq__sqlite *e, wq_depth *out, size_t max,
                       size_t *n)
{
    sqlite3_stmt *s = about_queue(e, WQ__SQL_DEPTHS);
    int           code = SQLITE_ERROR;

    *n = 0;
    wq__depths_add(out, max, n, 0, 0); /* always in use */
    while (s && (code = wq__db_step(s)) == SQLITE_ROW)
        wq__depths_add(out, max, n, sqlite3_column_int(s, 0),
                       (size_t)sqlite3_column_int64(s, 1));
    return code == SQLITE_DONE ? WQ_OK : wq__db_error(&e->db, "read");
}

/* ---- the check ------------------------------------------------------------ */

struct check {
    struct wq__sqlite *e;
    void (*problem)(void *ctx, const char *text);
    void *ctx;
};

__attribute__((format(printf, 2, 3))) static void
complain(const struct check *c, const char *format, ...)
{
    char    text[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    c->problem(c->ctx, text);
}

/* Every row that a statement finds is a problem: "%lld" is its first column. */
static wq_err
complain_about(const struct check *c, const char *query, const char *what)
{
    struct wq__sqlite *e = c->e;
    sqlite3_stmt      *s = NULL;
    int                code = SQLITE_ERROR;

    if (sqlite3_prepare_v2(e->db.sqlite, query, -1, &s, NULL) == SQLITE_OK) {
        (void)sqlite3_bind_int64(s, 1, e->queue);
        (void)sqlite3_bind_int64(s, 2, e->rows.number);
        while ((code = sqlite3_step(s)) == SQLITE_ROW)
            complain(c, "row %lld of the table 'key': %s",
                     (long long)sqlite3_column_int64(s, 0), what);
    }
    const wq_err err =
        code == SQLITE_DONE ? WQ_OK : wq__db_error(&e->db, "check");
    (void)sqlite3_finalize(s);
    return err;
}

/* What SQLite itself has to say: "ok", or lines. */
static wq_err
check_integrity(const struct check *c)
{
    struct wq__sqlite *e = c->e;
    sqlite3_stmt      *s = NULL;
    int                code = SQLITE_ERROR;

    if (sqlite3_prepare_v2(e->db.sqlite, "PRAGMA integrity_check", -1, &s,
                           NULL) == SQLITE_OK)
        while ((code = sqlite3_step(s)) == SQLITE_ROW) {
            const char *text = (const char *)sqlite3_column_text(s, 0);
            if (text && strcmp(text, "ok") != 0)
                complain(c, "SQLite: %s", text);
        }
    const wq_err err =
        code == SQLITE_DONE ? WQ_OK : wq__db_error(&e->db, "check");
    (void)sqlite3_finalize(s);
    return err;
}

static const struct {
    const char *query, *what;
} rules[] = {
    {"SELECT id FROM key WHERE queue=?1 AND st NOT IN (1,2,3,4) AND ?2",
     "its state is not 1, 2, 3 or 4"},
    {"SELECT id FROM key WHERE queue=?1 AND st IN (1,4) AND (rank IS NULL OR"
     " seq IS NULL) AND ?2",
     "READY or DEAD without a place in the order"},
    {"SELECT id FROM key WHERE queue=?1 AND st=2 AND (rank IS NULL OR seq IS"
     " NULL) AND ?2",
     "HELD without a holder"},
    {"SELECT id FROM key WHERE queue=?1 AND st=3 AND rank IS NOT NULL AND ?2",
     "a place or a holder of a key that is not READY, HELD or DEAD"},
    {"SELECT id FROM key WHERE queue=?1 AND flags&1 AND st<>2 AND ?2",
     "DIRTY, but not HELD"},
    {"SELECT k.id FROM key k LEFT JOIN extra x ON k.id=x.id WHERE k.queue=?1"
     " AND (flags&16 <> 0) <> (x.id IS NOT NULL) AND ?2",
     "flag 16, but no row in the table 'extra', or the reverse"},
    {"SELECT x.id FROM extra x LEFT JOIN key k ON k.id=x.id WHERE x.queue=?1"
     " AND k.queue IS NOT x.queue AND ?2",
     "no such row, but one in the table 'extra'"},
    {"SELECT k.id FROM key k LEFT JOIN extra x ON k.id=x.id WHERE k.queue=?1"
     " AND flags&2 AND due IS NULL AND ?2",
     "a backoff without a deadline"},
    {"SELECT id FROM extra WHERE queue=?1 AND due IS NOT NULL AND cool IS NOT"
     " NULL AND ?2",
     "WAITING and in a cooldown"},
    {"SELECT k.id FROM extra x JOIN key k ON k.id=x.id WHERE k.queue=?1 AND"
     " st=4 AND (due IS NOT NULL OR cool IS NOT NULL) AND ?2",
     "DEAD, but WAITING"},
    {"SELECT id FROM extra WHERE queue=?1 AND due IS NULL AND cool IS NULL AND"
     " fails IS NULL AND expiries IS NULL AND tokens IS NULL AND ?2",
     "its row in the table 'extra' has nothing to say"},
    {"SELECT id FROM key WHERE queue=?1 AND st=3 AND flags&16=0 AND ?2",
     "the row has nothing to say"},
    {"SELECT k.id FROM key k LEFT JOIN extra x ON k.id=x.id WHERE k.queue=?1"
     " AND max(ifnull(seq,0), ifnull(arrival,0)) > ?2",
     "a number that was not given out yet"},
    {"SELECT a.id FROM key a CROSS JOIN key b NOT INDEXED WHERE a.queue=?1 AND"
     " b.id BETWEEN (a.id&~15) AND a.id-1 AND a.queue=b.queue AND a.key=b.key"
     " AND ?2",
     "the same key as another row"},
    {"SELECT min(id) FROM key WHERE queue=?1 AND st=1 AND rank IS NOT NULL AND"
     " ?2 GROUP BY rank, seq HAVING count(*)>1",
     "the same place in the order as another row"},
};

/* Does the row enter the core, which keeps its laws with it? */
static wq_err
check_row(const struct check *c, sqlite3_stmt *s)
{
    struct wq__sqlite *e = c->e;
    struct wq__row     row;
    wq_key             key;
    const wq_err       err = wq__row_read(e, s, &row, &key);

    if (err)
        return err;
    const char *problem = wq__row_problem(&e->rows, key, &row);
    if (problem)
        complain(c, "row %" PRId64 ": %s", row.id, problem);
    if (!wq__row_is_in_place(e, key, row.id))
        complain(c, "row %" PRId64 ": its id is not the hash of its key",
                 row.id);
    if (row.image.states & WQ__HELD &&
        !wq__side_is_live(e->side, row.owner, e->rows.now_ns))
        complain(c, "row %" PRId64 ": HELD by a process that has ended",
                 row.id);
    return WQ_OK;
}

static wq_err
check_rows(const struct check *c)
{
    struct wq__sqlite *e = c->e;
    sqlite3_stmt      *s = wq__db_statement(&e->db, WQ__SQL_WALK);
    int                code = SQLITE_ERROR;
    wq_err             err = WQ_OK;

    if (!s)
        return wq__db_error(&e->db, "check");
    (void)sqlite3_bind_int64(s, 1, 0);
    (void)sqlite3_bind_int64(s, 2, e->queue);
    (void)sqlite3_bind_int64(s, 3, -1);
    while (!err && (code = wq__db_step(s)) == SQLITE_ROW)
        err = check_row(c, s);
    (void)sqlite3_reset(s);
    return err || code == SQLITE_DONE ? err : wq__db_error(&e->db, "check");
}

static void
compare(const struct check *c, const char *what, uint64_t counted,
        uint64_t there)
{
    if (counted != there)
        complain(c,
                 "%" PRIu64 " keys are counted as %s, but there are %" PRIu64,
                 counted, what, there);
}

static wq_err
check_counts(const struct check *c)
{
    const struct wq__row_counts *n = &c->e->rows.counts;
    struct wq__row_counts        real = {.ready = 0};
    const wq_err                 err = count_rows(c->e, &real);

    if (err)
        return err;
    compare(c, "READY", n->ready, real.ready);
    compare(c, "HELD", n->held, real.held);
    compare(c, "DIRTY", n->dirty, real.dirty);
    compare(c, "WAITING", n->waiting, real.waiting);
    compare(c, "DEAD", n->dead, real.dead);
    compare(c, "known", n->known, real.known);
    if (!c->e->rows.stale_next && n->next_ns != real.next_ns)
        complain(c, "the earliest deadline is not the one that is remembered");
    c->e->rows.counts = real; /* they are only remembered: now they are right */
    c->e->counted = true;
    return WQ_OK;
}

wq_err
wq__sqlite_check(struct wq__sqlite *e,
                 void (*problem)(void *ctx, const char *text), void *ctx)
{
    const struct check c = {e, problem, ctx};
    wq_err             err = check_integrity(&c);

    for (size_t i = 0; i < sizeof rules / sizeof *rules && !err; i++)
        err = complain_about(&c, rules[i].query, rules[i].what);
    if (!err)
        err = check_rows(&c);
    return err ? err : check_counts(&c);
}
