/* SPDX-License-Identifier: MIT */
/* rows.c: how is the row of a key found, read and written?
 *
 * Cost: that of SQLite, some microseconds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/hash.h"
#include "error/error.h"
#include "store.h"

/* The columns of WQ__ROW_COLUMNS, and the parameters of INSERT and UPDATE, which
 * are one more. */
enum column {
    ID,
    KEY,
    ST,
    FLAGS,
    RANK,
    SEQ,
    PRIO,
    SINCE,
    HPRIO,
    GOT,
    QUEUE, /* only of INSERT */
};

/* Likewise, of WQ__EXTRA_COLUMNS and SET_EXTRA. */
enum extra_column {
    DUE,
    ARRIVAL,
    DPRIO,
    COOL,
    LATEST,
    COOL_NEXT,
    COOL_WAIT,
    COOL_UNTIL,
    FAILS,
    FAILED,
    EXPIRIES,
    TOKENS,
    TOKENS_NS,
    EXTRA_ID, /* only of SET_EXTRA */
    EXTRA_QUEUE,
};

/* ---- the id of a key ------------------------------------------------------ */

/* How many keys may have the same hash. The hash has 59 bits and a secret: that
 * two keys have the same one is not to be expected. A number of the file format:
 * view.c relies on it, too. */
enum { PLACES = 16 };

/* The first id that a row of `key` may have; the others follow. A row may have
 * any of them: who looks for a key looks at all, so a row that is deleted leaves
 * no gap. */
static int64_t
first_place(const struct wq__sqlite *e, wq_key key)
{
    const uint64_t hash =
        wq__siphash13(e->secret[0] ^ e->queue, e->secret[1], key.data, key.len);
    const int64_t place = (int64_t)(hash >> 1 & ~(uint64_t)(PLACES - 1));

    return place ? place : PLACES; /* 0 is no row */
}

bool
wq__row_is_in_place(const struct wq__sqlite *e, wq_key key, int64_t id)
{
    const int64_t place = first_place(e, key);

    return id >= place && id < place + PLACES;
}

/* ---- reading -------------------------------------------------------------- */

static bool
is_set(sqlite3_stmt *s, enum extra_column column)
{
    return sqlite3_column_type(s, (int)column) != SQLITE_NULL;
}

/* The numbers of the file's flags in the core's. */
static const struct {
    unsigned row, core;
} flags[] = {
    {WQ__ROW_DIRTY, WQ__DIRTY},
    {WQ__ROW_BACKOFF, WQ__BACKOFF},
    {WQ__ROW_COVERS_ADD, WQ__COVERS_ADD},
    {WQ__ROW_DEBOUNCED, WQ__DEBOUNCED},
};

static void
read_states(sqlite3_stmt *s, struct wq__row *row)
{
    const int      st = sqlite3_column_int(s, ST);
    const unsigned set = (unsigned)sqlite3_column_int(s, FLAGS);

    row->dead = st == WQ__ROW_DEAD;
    row->image.states = st == WQ__ROW_READY  ? WQ__READY
                        : st == WQ__ROW_HELD ? WQ__HELD
                                             : 0;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (set & flags[i].row)
            row->image.states |= flags[i].core;
}

static void
read_holder(sqlite3_stmt *s, struct wq__row *row)
{
    struct wq__image *image = &row->image;

    row->owner = sqlite3_column_int64(s, RANK);
    image->fence = (uint64_t)sqlite3_column_int64(s, SEQ);
    image->priority = sqlite3_column_int(s, PRIO);
    image->held_priority = sqlite3_column_int(s, HPRIO);
    image->held_ns = sqlite3_column_int64(s, GOT);
}

static void
read_extra(sqlite3_stmt *s, struct wq__row *row)
{
    struct wq__image *image = &row->image;

    if (is_set(s, DUE))
        image->states |= WQ__WAITING;
    if (is_set(s, COOL))
        image->states |= WQ__COOLDOWN;
    image->at_ns = sqlite3_column_int64(s, is_set(s, DUE) ? DUE : COOL);
    image->arrival = (uint64_t)sqlite3_column_int64(s, ARRIVAL);
    image->wait_priority = sqlite3_column_int(s, DPRIO);
    image->throttled = is_set(s, LATEST);
    image->latest_ns = sqlite3_column_int64(s, LATEST);
    image->next_cooldown_ns = sqlite3_column_int64(s, COOL_NEXT);
    image->wait_cooldown_ns = sqlite3_column_int64(s, COOL_WAIT);
    image->cooldown_until_ns = sqlite3_column_int64(s, COOL_UNTIL);
    row->fails = (uint32_t)sqlite3_column_int64(s, FAILS);
    row->failed_ns = sqlite3_column_int64(s, FAILED);
    row->expiries = (uint32_t)sqlite3_column_int64(s, EXPIRIES);
    row->has_bucket = is_set(s, TOKENS);
    row->tokens = sqlite3_column_double(s, TOKENS);
    row->tokens_ns = sqlite3_column_int64(s, TOKENS_NS);
}

/* No row there: as if all columns were NULL; wq_check() complains. */
static wq_err
fetch_extra(struct wq__sqlite *e, struct wq__row *row)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_EXTRA);

    if (s)
        (void)sqlite3_bind_int64(s, 1, row->id);
    const int code = s ? wq__db_step(s) : SQLITE_ERROR;
    if (code == SQLITE_ROW) {
        read_extra(s, row);
        (void)sqlite3_reset(s);
        return WQ_OK;
    }
    return code == SQLITE_DONE ? WQ_OK : wq__db_error(&e->db, "read");
}

wq_err
wq__row_read(struct wq__sqlite *e, sqlite3_stmt *s, struct wq__row *row,
             wq_key *key)
{
    *row = (struct wq__row){.id = sqlite3_column_int64(s, ID)};
    *key = (wq_key){sqlite3_column_blob(s, KEY),
                    (size_t)sqlite3_column_bytes(s, KEY)};
    read_states(s, row);
    if (row->image.states & WQ__HELD) {
        read_holder(s, row);
    } else {
        row->image.priority = sqlite3_column_int(s, RANK);
        row->seq = sqlite3_column_int64(s, SEQ);
    }
    row->image.since_ns = sqlite3_column_int64(s, SINCE);
    return sqlite3_column_int(s, FLAGS) & WQ__ROW_EXTRA ? fetch_extra(e, row)
                                                        : WQ_OK;
}

wq_err
wq__row_fetch(struct wq__sqlite *e, sqlite3_stmt *s, struct wq__row *row,
              wq_key *key)
{
    wq_key    found;
    const int code = s ? wq__db_step(s) : SQLITE_ERROR;

    if (code != SQLITE_ROW)
        return code == SQLITE_DONE ? WQ_ENOTFOUND
                                   : wq__db_error(&e->db, "read");
    const wq_err err = wq__row_read(e, s, row, &found);
    *key = (wq_key){e->key, found.len};
    if (found.len > 0 && found.len <= sizeof e->key)
        memcpy(e->key, found.data, found.len);
    else
        key->len = 0; /* damaged: wq__row_check() says so */
    (void)sqlite3_reset(s);
    return err;
}

static wq_err
find(struct wq__rows *r, wq_key key, struct wq__row *row)
{
    struct wq__sqlite *e = wq__sqlite_of(r);
    sqlite3_stmt      *s = wq__db_statement(&e->db, WQ__SQL_BY_KEY);
    wq_key             same;

    if (s) {
        const int64_t place = first_place(e, key);

        (void)sqlite3_bind_int64(s, 1, place);
        (void)sqlite3_bind_int64(s, 2, place + PLACES - 1);
        (void)sqlite3_bind_int64(s, 3, e->queue);
        (void)sqlite3_bind_blob(s, 4, key.data, (int)key.len, SQLITE_STATIC);
    }
    const wq_err err = wq__row_fetch(e, s, row, &same);
    if (err == WQ_ENOTFOUND)
        *row = (struct wq__row){.id = 0};
    return err == WQ_ENOTFOUND ? WQ_OK : err;
}

static wq_err
fetch_until(struct wq__sqlite *e, enum wq__statement which, int64_t bound_ns,
            struct wq__row *row, wq_key *key)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, which);

    if (s) {
        (void)sqlite3_bind_int64(s, 1, e->queue);
        (void)sqlite3_bind_int64(s, 2, bound_ns);
    }
    return wq__row_fetch(e, s, row, key);
}

static wq_err
fetch_ready(struct wq__sqlite *e, struct wq__row *row, wq_key *key)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_FIRST_READY);

    if (s)
        (void)sqlite3_bind_int64(s, 1, e->queue);
    wq_err err = wq__row_fetch(e, s, row, key);
    if (err == WQ_ENOTFOUND && e->rows.counts.ready) { /* that is wrong */
        err = wq__sqlite_recount(e);
        return err ? err : WQ_ENOTFOUND;
    }
    return err;
}

static wq_err
first(struct wq__rows *r, enum wq__row_order order, int64_t bound_ns,
      struct wq__row *row, wq_key *key)
{
    struct wq__sqlite *e = wq__sqlite_of(r);
    wq_err             err = WQ_ENOTFOUND;

    switch (order) {
    case WQ__FIRST_READY:
        return fetch_ready(e, row, key);
    case WQ__FIRST_DUE:
        err = fetch_until(e, WQ__SQL_FIRST_DUE, bound_ns, row, key);
        return err == WQ_ENOTFOUND
                   ? fetch_until(e, WQ__SQL_FIRST_COOL, bound_ns, row, key)
                   : err;
    case WQ__FIRST_USED:
        return fetch_until(e, WQ__SQL_FIRST_FULL, bound_ns, row, key);
    }
    return err;
}

static wq_err
damaged(struct wq__rows *r, wq_key key, const struct wq__row *row)
{
    (void)key;
    return wq_fail(WQ_EAWAY,
                   "sqlite: row %" PRId64 " of the table 'key' in '%s' is "
                   "damaged: run 'wq fsck', and restore a backup",
                   row->id, wq__sqlite_of(r)->path);
}

/* ---- writing -------------------------------------------------------------- */

static void
bind(sqlite3_stmt *s, int column, int64_t value, bool set)
{
    if (set)
        (void)sqlite3_bind_int64(s, column + 1, value);
    else
        (void)sqlite3_bind_null(s, column + 1);
}

/* Has it anything that is in the table `extra`? */
static bool
has_extra(const struct wq__row *row)
{
    return row->image.states & (WQ__WAITING | WQ__COOLDOWN) || row->fails ||
           row->expiries || row->has_bucket;
}

static void
bind_states(sqlite3_stmt *s, const struct wq__row *row)
{
    const unsigned states = row->image.states;
    unsigned       set = has_extra(row) ? WQ__ROW_EXTRA : 0;

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (states & flags[i].core)
            set |= flags[i].row;
    bind(s, ST,
         row->dead            ? WQ__ROW_DEAD
         : states & WQ__READY ? WQ__ROW_READY
         : states & WQ__HELD  ? WQ__ROW_HELD
                              : WQ__ROW_OTHER,
         true);
    bind(s, FLAGS, set, true);
}

static void
bind_row(sqlite3_stmt *s, const struct wq__row *row)
{
    const struct wq__image *image = &row->image;
    const bool              held = image->states & WQ__HELD;
    const bool              dirty = image->states & WQ__DIRTY;
    const bool placed = row->dead || image->states & (WQ__READY | WQ__HELD);

    bind_states(s, row);
    bind(s, RANK, held ? row->owner : image->priority, placed);
    bind(s, SEQ, held ? (int64_t)image->fence : row->seq, placed);
    bind(s, PRIO, image->priority, dirty);
    bind(s, SINCE, image->since_ns,
         row->dead || image->states & (WQ__READY | WQ__DIRTY));
    bind(s, HPRIO, image->held_priority, held);
    bind(s, GOT, image->held_ns, held);
}

static void
bind_extra(sqlite3_stmt *s, const struct wq__row *row)
{
    const struct wq__image *image = &row->image;
    const bool              waits = image->states & WQ__WAITING;
    const bool              cools = image->states & WQ__COOLDOWN;

    bind(s, DUE, image->at_ns, waits);
    bind(s, ARRIVAL, (int64_t)image->arrival, waits || cools);
    bind(s, DPRIO, image->wait_priority, waits);
    bind(s, COOL, image->at_ns, cools);
    bind(s, LATEST, image->latest_ns, image->throttled);
    bind(s, COOL_NEXT, image->next_cooldown_ns, image->throttled);
    bind(s, COOL_WAIT, image->wait_cooldown_ns, image->throttled);
    bind(s, COOL_UNTIL, image->cooldown_until_ns, image->throttled);
    bind(s, FAILS, row->fails, row->fails);
    bind(s, FAILED, row->failed_ns, row->fails);
    bind(s, EXPIRIES, row->expiries, row->expiries);
    if (row->has_bucket)
        (void)sqlite3_bind_double(s, TOKENS + 1, row->tokens);
    else
        (void)sqlite3_bind_null(s, TOKENS + 1);
    bind(s, TOKENS_NS, row->tokens_ns, row->has_bucket);
}

/* `code` is the result of a statement that writes. */
static wq_err
judge(struct wq__sqlite *e, int code)
{
    e->locked = (code & 0xff) == SQLITE_BUSY;
    if (code != SQLITE_DONE)
        return wq__db_error(&e->db, "write to");
    e->wrote = true;
    return WQ_OK;
}

static wq_err
execute(struct wq__sqlite *e, sqlite3_stmt *s)
{
    return judge(e, s ? wq__db_step(s) : SQLITE_ERROR);
}

/* At the first place that is free. */
static wq_err
insert(struct wq__sqlite *e, wq_key key, struct wq__row *row)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_INSERT);
    const int64_t place = first_place(e, key);
    int           code = s ? SQLITE_CONSTRAINT : SQLITE_ERROR;

    if (s) {
        bind_row(s, row);
        bind(s, QUEUE, e->queue, true);
        (void)sqlite3_bind_blob(s, KEY + 1, key.data, (int)key.len,
                                SQLITE_STATIC);
    }
    for (int i = 0; i < PLACES && (code & 0xff) == SQLITE_CONSTRAINT; i++) {
        row->id = place + i;
        bind(s, ID, row->id, true);
        code = wq__db_step(s);
    }
    return judge(e, code);
}

static wq_err
update(struct wq__sqlite *e, const struct wq__row *row)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_UPDATE);

    if (s) {
        bind_row(s, row);
        bind(s, ID, row->id, true);
    }
    return execute(e, s);
}

static wq_err
delete_from(struct wq__sqlite *e, enum wq__statement which, int64_t id)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, which);

    if (s)
        (void)sqlite3_bind_int64(s, 1, id);
    return execute(e, s);
}

static wq_err
set_extra(struct wq__sqlite *e, const struct wq__row *row)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_SET_EXTRA);

    if (s) {
        bind_extra(s, row);
        bind(s, EXTRA_ID, row->id, true);
        bind(s, EXTRA_QUEUE, e->queue, true);
    }
    return execute(e, s);
}

static wq_err
write_row(struct wq__rows *r, wq_key key, const struct wq__row *before,
          struct wq__row *row, bool empty)
{
    struct wq__sqlite *e = wq__sqlite_of(r);
    const wq_err       err = empty     ? delete_from(e, WQ__SQL_DELETE, row->id)
                             : row->id ? update(e, row)
                                       : insert(e, key, row);

    if (!err && !empty && has_extra(row))
        return set_extra(e, row);
    return !err && has_extra(before)
               ? delete_from(e, WQ__SQL_DELETE_EXTRA, row->id)
               : err;
}

/* ---- savepoints ----------------------------------------------------------- */

static wq_err
save(struct wq__rows *r)
{
    return wq__db_run(&wq__sqlite_of(r)->db, WQ__SQL_SAVEPOINT);
}

static wq_err
end_save(struct wq__rows *r, bool undo)
{
    struct wq__db *db = &wq__sqlite_of(r)->db;
    const wq_err   err = undo ? wq__db_run(db, WQ__SQL_ROLLBACK_TO) : WQ_OK;

    return err ? err : wq__db_run(db, WQ__SQL_RELEASE);
}

/* ---- the bucket of all keys ----------------------------------------------- */

static wq_err
read_bucket(struct wq__rows *r, struct wq__fill *level, bool *there)
{
    struct wq__sqlite *e = wq__sqlite_of(r);
    sqlite3_stmt      *s = wq__db_statement(&e->db, WQ__SQL_GET_BUCKET);

    if (s)
        (void)sqlite3_bind_int64(s, 1, e->queue);
    if (!s || wq__db_step(s) != SQLITE_ROW)
        return wq__db_error(&e->db, "read");
    *there = sqlite3_column_type(s, 0) != SQLITE_NULL;
    *level = (struct wq__fill){sqlite3_column_double(s, 0),
                               sqlite3_column_int64(s, 1)};
    (void)sqlite3_reset(s);
    return WQ_OK;
}

wq_err
wq__sqlite_save_bucket(struct wq__sqlite *e)
{
    const struct wq__row_bucket *bucket = &e->rows.bucket;

    if (!bucket->moved)
        return WQ_OK;
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_SET_BUCKET);
    if (s) {
        (void)sqlite3_bind_int64(s, 1, e->queue);
        (void)sqlite3_bind_double(s, 2, bucket->level.tokens);
        (void)sqlite3_bind_int64(s, 3, bucket->level.last_ns);
    }
    return execute(e, s);
}

/* ---- interface ------------------------------------------------------------ */

struct wq__sqlite *
wq__sqlite_of(struct wq__rows *r)
{
    return (struct wq__sqlite *)(void *)((char *)r -
                                         offsetof(struct wq__sqlite, rows));
}

static void
name_holder(struct wq__rows *r, int64_t session, char out[WQ_HOLDER_BYTES])
{
    const uint32_t pid = wq__side_pid_of(wq__sqlite_of(r)->side, session);

    if (pid)
        (void)snprintf(out, WQ_HOLDER_BYTES, "%" PRIu32, pid);
}

const struct wq__row_store wq__sqlite_rows = {
    damaged, find, first, write_row, save, end_save, read_bucket, name_holder};
