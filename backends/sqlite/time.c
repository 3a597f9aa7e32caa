/* SPDX-License-Identifier: MIT */
/* time.c: what time is it, for all processes and boots that use the file?
 *
 * The store's time is CLOCK_BOOTTIME plus an epoch (clock/offset.h), which is in
 * the file with the id of the boot. The first process after a boot sets the
 * epoch so that the store's time is the wall clock's, but never earlier than
 * what the file has seen: deadlines count the time in which the machine was off.
 *
 * Hand-outs, arrivals and places in the ready order are numbers that only grow.
 * The last one is in the side directory. The file has a ceiling, below which all
 * numbers are; it moves up rarely. If the directory is lost, numbers go on from
 * the ceiling, or from the wall clock in nanoseconds if that is larger: so also
 * after an old copy of the file was restored.
 */
#include <stdio.h>
#include <string.h>

#include "port/time.h"
#include "store.h"

/* How many numbers are reserved at a time: one more write in a million. */
enum { RESERVE = 1 << 20 };

/* ---- the clock ------------------------------------------------------------ */

/* The clocks of the system begin anew with each boot: they cannot be meant. */
void
wq__sqlite_clock_init(struct wq__sqlite *e, wq_clock *given)
{
    wq__offset_clock_init(&e->clock, 0);
    if (!given || given == wq_clock_monotonic() || given == wq_clock_boottime())
        given = &e->clock.base;
    e->base.clock = given;
}

/* ---- the epoch ------------------------------------------------------------ */

struct meta {
    int64_t number;   /* the ceiling */
    char    boot[40]; /* of the epoch */
    int64_t epoch_ns;
    int64_t seen_ns; /* the store's time was at least this */
};

static wq_err
read_meta(struct wq__sqlite *e, struct meta *out)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_GET_META);

    if (!s || wq__db_step(s) != SQLITE_ROW)
        return wq__db_error(&e->db, "read the table 'meta' of");
    const unsigned char *boot = sqlite3_column_text(s, 1);
    out->number = sqlite3_column_int64(s, 0);
    (void)snprintf(out->boot, sizeof out->boot, "%s",
                   boot ? (const char *)boot : "");
    out->epoch_ns = sqlite3_column_int64(s, 2);
    out->seen_ns = sqlite3_column_int64(s, 3);
    (void)sqlite3_reset(s);
    return WQ_OK;
}

static wq_err
write_meta(struct wq__sqlite *e, const struct meta *m)
{
    sqlite3_stmt *s = wq__db_statement(&e->db, WQ__SQL_SET_META);

    if (s) {
        (void)sqlite3_bind_int64(s, 1, m->number);
        (void)sqlite3_bind_text(s, 2, m->boot, -1, SQLITE_TRANSIENT);
        (void)sqlite3_bind_int64(s, 3, m->epoch_ns);
        (void)sqlite3_bind_int64(s, 4, m->seen_ns);
    }
    if (!s || wq__db_step(s) != SQLITE_DONE)
        return wq__db_error(&e->db, "write the table 'meta' of");
    e->wrote = true;
    e->sync_first = true; /* fences below the ceiling are handed out now */
    return WQ_OK;
}

/* The id of this boot; "" where the system has none. */
static void
read_boot(char *out, size_t len)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    out[0] = '\0';
    if (!file)
        return;
    if (fgets(out, (int)len, file))
        out[strcspn(out, "\n")] = '\0';
    (void)fclose(file);
}

static bool
is_own_clock(const struct wq__sqlite *e)
{
    return e->base.clock == &e->clock.base;
}

/* Another boot, or a first one: its time is the wall clock's, but does not go
 * back. */
static void
begin_boot(struct meta *m, const char *boot)
{
    const int64_t wall_ns = wq__time_wall();
    const int64_t start_ns = wall_ns > m->seen_ns ? wall_ns : m->seen_ns;

    (void)snprintf(m->boot, sizeof m->boot, "%s", boot);
    m->epoch_ns = start_ns - wq__time_boottime();
    m->seen_ns = start_ns;
}

wq_err
wq__sqlite_begin_epoch(struct wq__sqlite *e, bool fresh)
{
    struct meta m = {.number = 0};
    char        boot[sizeof m.boot];
    wq_err      err = read_meta(e, &m);

    if (err)
        return err;
    read_boot(boot, sizeof boot);
    const bool other_boot = strcmp(boot, m.boot) != 0;
    if (other_boot)
        begin_boot(&m, boot);
    wq__offset_clock_set(&e->clock, m.epoch_ns);
    e->ceiling = m.number;
    e->rows.number = *wq__side_last_number(e->side);
    if (fresh || !e->rows.number) {
        const int64_t wall_ns = wq__time_wall();
        e->rows.number =
            m.number > wall_ns || !is_own_clock(e) ? m.number : wall_ns;
    }
    if (other_boot || e->rows.number > e->ceiling) {
        m.number = e->ceiling = e->rows.number + RESERVE;
        err = write_meta(e, &m);
    }
    return err;
}

/* ---- numbers -------------------------------------------------------------- */

wq_err
wq__sqlite_reserve(struct wq__sqlite *e)
{
    struct meta m = {.number = 0};

    if (e->rows.number <= e->ceiling)
        return WQ_OK;
    const wq_err err = read_meta(e, &m);
    if (err)
        return err;
    e->ceiling = m.number; /* another process may have moved it */
    if (e->rows.number <= e->ceiling)
        return WQ_OK;
    m.number = e->ceiling = e->rows.number + RESERVE;
    m.seen_ns = is_own_clock(e) ? e->rows.now_ns : m.seen_ns;
    return write_meta(e, &m);
}
