/* SPDX-License-Identifier: MIT */
/* rows.c: how does the row of a key become a record of the scratch core, and the
 * record a row again?
 *
 * Cost of a read or a write: that of SQLite, some microseconds; of the core:
 * some hundred nanoseconds.
 */
#include <inttypes.h>

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
    PRIO,
    SEQ,
    SINCE,
    HPRIO,
    FENCE,
    OWNER,
    GOT,
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
    COLUMNS,
    QUEUE = COLUMNS, /* only of INSERT */
    HASH,
};

int64_t
wq__sqlite_hash(const struct wq__sqlite *e, wq_key key)
{
    return (
        int64_t)(wq__siphash13(e->secret[0], e->secret[1], key.data, key.len) >>
                 1);
}

bool
wq__row_is_known(const struct wq__row *row)
{
    return row->dead || row->image.states;
}

/* ---- reading -------------------------------------------------------------- */

static bool
is_set(sqlite3_stmt *s, enum column column)
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
    if (is_set(s, DUE))
        row->image.states |= WQ__WAITING;
    if (is_set(s, COOL))
        row->image.states |= WQ__COOLDOWN;
}

static void
read_throttle(sqlite3_stmt *s, struct wq__image *image)
{
    image->throttled = is_set(s, LATEST);
    image->latest_ns = sqlite3_column_int64(s, LATEST);
    image->next_cooldown_ns = sqlite3_column_int64(s, COOL_NEXT);
    image->wait_cooldown_ns = sqlite3_column_int64(s, COOL_WAIT);
    image->cooldown_until_ns = sqlite3_column_int64(s, COOL_UNTIL);
}

void
wq__row_read(sqlite3_stmt *s, struct wq__row *row, wq_key *key)
{
    struct wq__image *image = &row->image;

    *row = (struct wq__row){.id = sqlite3_column_int64(s, ID)};
    if (key)
        *key = (wq_key){sqlite3_column_blob(s, KEY),
                        (size_t)sqlite3_column_bytes(s, KEY)};
    read_states(s, row);
    image->priority = sqlite3_column_int(s, PRIO);
    row->seq = sqlite3_column_int64(s, SEQ);
    image->since_ns = sqlite3_column_int64(s, SINCE);
    image->held_priority = sqlite3_column_int(s, HPRIO);
    image->fence = (uint64_t)sqlite3_column_int64(s, FENCE);
    row->owner = sqlite3_column_int64(s, OWNER);
    image->held_ns = sqlite3_column_int64(s, GOT);
    image->at_ns = sqlite3_column_int64(s, is_set(s, DUE) ? DUE : COOL);
    image->arrival = (uint64_t)sqlite3_column_int64(s, ARRIVAL);
    image->wait_priority = sqlite3_column_int(s, DPRIO);
    read_throttle(s, image);
    row->fails = (uint32_t)sqlite3_column_int64(s, FAILS);
    row->failed_ns = sqlite3_column_int64(s, FAILED);
    row->expiries = (uint32_t)sqlite3_column_int64(s, EXPIRIES);
    row->has_bucket = is_set(s, TOKENS);
    row->tokens = sqlite3_column_double(s, TOKENS);
    row->tokens_ns = sqlite3_column_int64(s, TOKENS_NS);
}

wq_err
wq__row_find(struct wq__sqlite *e, wq_key key, struct wq__row *row)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_BY_KEY);

    if (!s)
        return wq__db_error(&e->db, "read");
    (void)sqlite3_bind_int64(s, 1, wq__sqlite_hash(e, key));
    (void)sqlite3_bind_int64(s, 2, e->queue);
    (void)sqlite3_bind_blob(s, 3, key.data, (int)key.len, SQLITE_STATIC);
    const int code = wq__db_step(s);
    if (code == SQLITE_ROW) {
        wq__row_read(s, row, NULL);
        (void)sqlite3_reset(s);
        return WQ_OK;
    }
    *row = (struct wq__row){.id = 0};
    return code == SQLITE_DONE ? WQ_OK : wq__db_error(&e->db, "read");
}

/* ---- the scratch core ----------------------------------------------------- */

wq_err
wq__row_check(const struct wq__sqlite *e, wq_key key, const struct wq__row *row)
{
    if (key.len > 0 && key.len <= WQ_KEY_MAX &&
        wq__image_is_possible(&row->image))
        return WQ_OK;
    return wq_fail(WQ_EAWAY,
                   "sqlite: row %" PRId64 " of the table 'key' in '%s' is "
                   "damaged: run 'wq fsck'",
                   row->id, e->path);
}

/* The next hand-out and the next arrival get the next numbers. */
wq_err
wq__row_import(struct wq__sqlite *e, wq_key key, const struct wq__row *row,
               wq_item **item)
{
    struct wq__core         *c = &e->scratch;
    const struct wq__numbers last = {.fence = (uint64_t)e->number,
                                     .arrival = (uint64_t)e->number};

    if (item)
        *item = NULL;
    if (!row->dead && row->image.states) {
        const wq_err damage = wq__row_check(e, key, row);
        if (damage)
            return damage;
        const wq_err err =
            wq__core_import(c, key, wq__core_hash(c, key), &row->image, item);
        if (err)
            return err;
    }
    wq__core_set_numbers(c, last);
    return WQ_OK;
}

void
wq__row_export(struct wq__sqlite *e, wq_key key, struct wq__row *row)
{
    struct wq__core *c = &e->scratch;
    const uint32_t   hash = wq__core_hash(c, key);

    wq__core_export(c, key, hash, &row->image);
    wq__core_expel(c, key, hash);
    const struct wq__numbers last = wq__core_numbers(c);
    if ((int64_t)last.fence > e->number)
        e->number = (int64_t)last.fence;
    if ((int64_t)last.arrival > e->number)
        e->number = (int64_t)last.arrival;
}

/* ---- writing -------------------------------------------------------------- */

static void
bind(sqlite3_stmt *s, enum column column, int64_t value, bool set)
{
    if (set)
        (void)sqlite3_bind_int64(s, (int)column + 1, value);
    else
        (void)sqlite3_bind_null(s, (int)column + 1);
}

static void
bind_states(sqlite3_stmt *s, const struct wq__row *row)
{
    const unsigned states = row->image.states;
    unsigned       set = 0;

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
    const bool runs = row->dead || image->states & (WQ__READY | WQ__DIRTY);
    const bool waits = image->states & WQ__WAITING;
    const bool cools = image->states & WQ__COOLDOWN;

    bind_states(s, row);
    bind(s, PRIO, image->priority, runs);
    bind(s, SEQ, row->seq, row->dead || image->states & WQ__READY);
    bind(s, SINCE, image->since_ns, runs);
    bind(s, HPRIO, image->held_priority, held);
    bind(s, FENCE, (int64_t)image->fence, held);
    bind(s, OWNER, row->owner, held);
    bind(s, GOT, image->held_ns, held);
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

static wq_err
execute(struct wq__sqlite *e, sqlite3_stmt *s)
{
    if (!s || wq__db_step(s) != SQLITE_DONE)
        return wq__db_error(&e->db, "write to");
    e->wrote = true;
    return WQ_OK;
}

static wq_err
insert(struct wq__sqlite *e, wq_key key, struct wq__row *row)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_INSERT);

    if (s) {
        bind_row(s, row);
        bind(s, QUEUE, e->queue, true);
        bind(s, HASH, wq__sqlite_hash(e, key), true);
        (void)sqlite3_bind_blob(s, KEY + 1, key.data, (int)key.len,
                                SQLITE_STATIC);
    }
    const wq_err err = execute(e, s);
    if (!err)
        row->id = sqlite3_last_insert_rowid(e->db.sqlite);
    return err;
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

static wq_err delete (struct wq__sqlite *e, const struct wq__row *row)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_DELETE);

    if (s)
        (void)sqlite3_bind_int64(s, 1, row->id);
    return execute(e, s);
}

/* ---- counts --------------------------------------------------------------- */

static void
count(uint64_t *n, bool before, bool after)
{
    *n += (uint64_t)after - (uint64_t)before;
}

static void
count_deadlines(struct wq__sqlite *e, const struct wq__image *was,
                const struct wq__image *is)
{
    const unsigned entry = WQ__WAITING | WQ__COOLDOWN;

    if (is->states & entry && is->at_ns < e->counts.next_ns)
        e->counts.next_ns = is->at_ns;
    if (was->states & entry && was->at_ns <= e->counts.next_ns &&
        (!(is->states & entry) || is->at_ns != was->at_ns))
        e->stale_next = true;
}

static void
count_states(struct wq__sqlite *e, const struct wq__row *was,
             const struct wq__row *is)
{
    const unsigned          a = was->image.states, b = is->image.states;
    struct wq__side_counts *n = &e->counts;

    count(&n->ready, a & WQ__READY, b & WQ__READY);
    count(&n->held, a & WQ__HELD, b & WQ__HELD);
    count(&n->dirty, a & WQ__DIRTY, b & WQ__DIRTY);
    count(&n->waiting, a & WQ__WAITING, b & WQ__WAITING);
    count(&n->dead, was->dead, is->dead);
    count(&n->known, wq__row_is_known(was), wq__row_is_known(is));
    count_deadlines(e, &was->image, &is->image);
    e->made_ready += b & WQ__READY && !(a & WQ__READY);
}

/* ---- saving --------------------------------------------------------------- */

/* Its place in the ready order: the tail, unless it was there already. */
static void
place(struct wq__sqlite *e, const struct wq__row *before, struct wq__row *row)
{
    const bool was = before->image.states & WQ__READY &&
                     before->image.priority == row->image.priority;

    if (row->image.states & WQ__READY && !was)
        row->seq = wq__sqlite_number(e);
}

static bool
is_same(const struct wq__row *a, const struct wq__row *b)
{
    const struct wq__image *i = &a->image, *k = &b->image;

    return a->id == b->id && a->dead == b->dead && a->seq == b->seq &&
           a->owner == b->owner && a->fails == b->fails &&
           a->failed_ns == b->failed_ns && a->expiries == b->expiries &&
           a->has_bucket == b->has_bucket && a->tokens_ns == b->tokens_ns &&
           a->tokens <= b->tokens && a->tokens >= b->tokens &&
           i->states == k->states && i->priority == k->priority &&
           i->since_ns == k->since_ns && i->held_priority == k->held_priority &&
           i->fence == k->fence && i->held_ns == k->held_ns &&
           i->at_ns == k->at_ns && i->arrival == k->arrival &&
           i->wait_priority == k->wait_priority &&
           i->throttled == k->throttled && i->latest_ns == k->latest_ns &&
           i->next_cooldown_ns == k->next_cooldown_ns &&
           i->wait_cooldown_ns == k->wait_cooldown_ns &&
           i->cooldown_until_ns == k->cooldown_until_ns;
}

wq_err
wq__row_write(struct wq__sqlite *e, wq_key key, const struct wq__row *before,
              struct wq__row *row)
{
    wq_err err;

    place(e, before, row);
    const bool empty = !wq__row_is_known(row) && !row->fails &&
                       !row->expiries && !row->has_bucket;
    if (is_same(before, row) || (empty && !row->id))
        return WQ_OK;
    if (empty)
        err = delete (e, row);
    else
        err = row->id ? update(e, row) : insert(e, key, row);
    if (!err)
        count_states(e, before, row);
    return err;
}

wq_err
wq__row_save(struct wq__sqlite *e, wq_key key, const struct wq__row *before,
             struct wq__row *row)
{
    wq__row_export(e, key, row);
    return wq__row_write(e, key, before, row);
}
