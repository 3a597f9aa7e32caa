/* SPDX-License-Identifier: MIT */
/* open.c: which queue does the user mean, and can it be opened? */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wq/limiter.h>

#include "config/config.h"
#include "config/read.h"
#include "core/mem.h"
#include "error/error.h"
#include "port/random.h"
#include "shared/gets.h"
#include "shared/shared.h"
#include "shared/url.h"
#include "store.h"

#define DEFAULT_LEASE_NS WQ_SECONDS(30)
#define DEFAULT_BUSY_NS WQ_SECONDS(5)
enum { DEFAULT_EXPIRIES = 5, NAME_MAX_BYTES = 255 };

/* ---- options -------------------------------------------------------------- */

static wq_err
check_options(const wq_sqlite_options *o)
{
    if ((unsigned)o->sync > WQ_SQLITE_SYNC_LAZY)
        return wq_fail(WQ_EINVAL,
                       "wq_sqlite_options.sync is %d: not a wq_sqlite_sync",
                       (int)o->sync);
    if ((unsigned)o->hold > WQ_SQLITE_HOLD_LEASE)
        return wq_fail(WQ_EINVAL,
                       "wq_sqlite_options.hold is %d: not a wq_sqlite_hold",
                       (int)o->hold);
    if (o->lease_ns < 0 || o->busy_ns < 0)
        return wq_fail(WQ_EINVAL, "wq_sqlite_options.%s is negative",
                       o->lease_ns < 0 ? "lease_ns" : "busy_ns");
    if (o->lease_ns && o->hold != WQ_SQLITE_HOLD_LEASE)
        return wq_fail(WQ_EINVAL,
                       "wq_sqlite_options.lease_ns needs WQ_SQLITE_HOLD_LEASE");
    if (o->holder_pid < 0)
        return wq_fail(WQ_EINVAL, "wq_sqlite_options.holder_pid is negative");
    if (o->holder_pid && o->hold == WQ_SQLITE_HOLD_LEASE)
        return wq_fail(WQ_EINVAL,
                       "wq_sqlite_options.holder_pid: with hold=lease a key "
                       "cannot be held for another process");
    if (o->queue && (!*o->queue || strlen(o->queue) > NAME_MAX_BYTES))
        return wq_fail(WQ_EINVAL,
                       "wq_sqlite_options.queue has %zu bytes; 1 to %d are "
                       "allowed",
                       strlen(o->queue), NAME_MAX_BYTES);
    return WQ_OK;
}

static wq_err
read_options(const wq_sqlite_options *from, wq_sqlite_options *out)
{
    wq_err err = WQ_OK;

    *out = (wq_sqlite_options){.size = sizeof *out};
    if (from)
        err = wq__read_sized(from, "wq_sqlite_options", NULL, sizeof *out, out);
    if (!err)
        err = check_options(out);
    if (err)
        return err;
    if (!out->queue)
        out->queue = "default";
    if (!out->lease_ns)
        out->lease_ns = DEFAULT_LEASE_NS;
    if (!out->busy_ns)
        out->busy_ns = DEFAULT_BUSY_NS;
    if (!out->max_expiries)
        out->max_expiries = DEFAULT_EXPIRIES;
    return WQ_OK;
}

/* ---- opening -------------------------------------------------------------- */

static struct wq__sqlite *
make_engine(const char *path, const wq_sqlite_options *o,
            const struct wq__terms *terms, wq_clock *clock)
{
    const bool         lease = o->hold == WQ_SQLITE_HOLD_LEASE;
    struct wq__sqlite *e = calloc(1, sizeof *e);
    char              *copy = strdup(path);

    if (!e || !copy) {
        free(e);
        free(copy);
        return NULL;
    }
    e->base.ops = &wq__sqlite_ops;
    wq__lock_init(&e->sync_lock);
    e->base.lease_ns = lease ? o->lease_ns : 0;
    e->sync = o->sync;
    e->holder_pid = o->holder_pid;
    e->path = copy;
    wq__rows_init(&e->rows, &wq__sqlite_rows, terms);
    e->rows.terms.max_expiries =
        o->max_expiries == UINT_MAX ? 0 : o->max_expiries;
    wq__sqlite_clock_init(e, clock);
    return e;
}

/* With the writer lock: the tables are there. */
static wq_err
ensure_tables(struct wq__sqlite *e, const wq_sqlite_options *o)
{
    bool   empty;
    wq_err err = wq__db_check(&e->db, &empty);

    if (!err && empty)
        err = o->no_create
                  ? wq_fail(WQ_ENOTFOUND, "sqlite: '%s' is empty", e->path)
                  : wq__db_make(&e->db, o->sync);
    if (!err)
        err = wq__db_set_up(&e->db, o->sync);
    if (!err)
        err = wq__db_secret(&e->db, e->secret);
    return err ? err : wq__db_queue(&e->db, o->queue, !o->no_create, &e->queue);
}

/* Open the file and what is beside it. */
static wq_err
attach(struct wq__sqlite *e, const wq_sqlite_options *o, bool *fresh)
{
    bool   empty;
    wq_err err = wq__db_open(&e->db, e->path, !o->no_create, o->busy_ns);

    /* A file that is not ours is not touched: nothing is made beside it. */
    if (!err)
        err = wq__db_check(&e->db, &empty);
    if (!err)
        err = wq__side_open(e->path, &e->side, fresh);
    if (!err)
        err = wq__side_lock(e->side);
    if (err)
        return err;
    err = ensure_tables(e, o);
    wq__db_count_frames(&e->db, &e->wal_frames);
    wq__side_unlock(e->side);
    return err;
}

/* What wq_sqlite_open() was called with. */
struct call {
    const char              *path;
    const wq_sqlite_options *options;
};

static wq_err
open_engine(void *ctx, const struct wq__terms *terms, wq_clock *clock,
            struct wq__engine **out)
{
    const struct call *call = ctx;
    bool               fresh = false;
    struct wq__sqlite *e = make_engine(call->path, call->options, terms, clock);

    if (!e)
        return wq_fail(WQ_ENOMEM, "wq_sqlite_open: out of memory");
    wq_err err = attach(e, call->options, &fresh);
    if (!err)
        err = wq__sqlite_join(e, fresh);
    if (err)
        wq__sqlite_free(e, false);
    else
        *out = &e->base;
    return err;
}

static wq_err
open_queue(const char *path, const wq_sqlite_options *options,
           const wq_config *config, wq_queue **out)
{
    wq_sqlite_options o;
    struct call       call = {path, &o};

    if (!path || !*path || !out)
        return wq_fail(WQ_EINVAL, "wq_sqlite_open: %s",
                       !out ? "out is NULL" : "the path is empty");
    if (strncmp(path, "sqlite:", 7) == 0)
        return wq_fail(WQ_EINVAL,
                       "wq_sqlite_open: the path begins with 'sqlite:'; use "
                       "wq_open() for a URL, or './%s'",
                       path);
    const wq_err err = read_options(options, &o);
    return err ? err
               : wq__shared_open(config, o.manual_renew, open_engine, &call,
                                 out);
}

wq_err
wq_sqlite_open(const char *path, const wq_sqlite_options *options,
               const wq_config *config, wq_queue **out)
{
    const wq_err err = open_queue(path, options, config, out);

    /* The engine applies its description. */
    wq_limiter_destroy(wq__config_limiter(config));
    return err;
}

/* ---- holds of other processes --------------------------------------------- */

/* NULL: it is another kind of queue. */
static struct wq__sqlite *
engine_of(wq_queue *q)
{
    return (struct wq__sqlite *)(void *)wq__shared_engine(q, &wq__sqlite_ops);
}

wq_err
wq_sqlite_resume(wq_queue *q, wq_key key, wq_item **out)
{
    const struct wq__sqlite *e = engine_of(q);

    if (!e || !e->holder_pid || !out || !key.data || key.len == 0 ||
        key.len > WQ_KEY_MAX)
        return wq_fail(WQ_EINVAL, "wq_sqlite_resume: %s",
                       !e || !e->holder_pid
                           ? "the queue was not opened with a holder_pid"
                           : "out is NULL, or the key is empty or too long");
    const wq_err err = wq__shared_resume_hold(q, 0, key, out);
    if (err == WQ_ENOTFOUND)
        return wq_fail(err,
                       "wq_sqlite_resume: process %d does not hold the key",
                       e->holder_pid);
    return err;
}

/* ---- URLs ----------------------------------------------------------------- */

static wq_err
refuse_value(const char *name, const char *value, const char *allowed)
{
    return wq__url_refuse("sqlite", name, value, allowed);
}

/* One of the words, by its number. */
static bool
read_word(const char *text, const char *const *words, size_t n, int *out)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, words[i]) == 0) {
            *out = (int)i;
            return true;
        }
    return false;
}

static wq_err
read_option(void *ctx, const char *name, const char *value)
{
    wq_sqlite_options       *o = ctx;
    static const char *const syncs[] = {"adds", "all", "lazy"};
    static const char *const holds[] = {"process", "lease"};
    static const char *const yes_no[] = {"yes", "no"};
    int                      word = 0;
    unsigned long            n = 0;

    if (strcmp(name, "queue") == 0) {
        o->queue = value;
    } else if (strcmp(name, "sync") == 0) {
        if (!read_word(value, syncs, 3, &word))
            return refuse_value(name, value, "adds, all or lazy");
        o->sync = (wq_sqlite_sync)word;
    } else if (strcmp(name, "hold") == 0) {
        if (!read_word(value, holds, 2, &word))
            return refuse_value(name, value, "process or lease");
        o->hold = (wq_sqlite_hold)word;
    } else if (strcmp(name, "lease") == 0) {
        if (!wq__url_duration(value, &o->lease_ns))
            return refuse_value(name, value, WQ__URL_DURATIONS);
    } else if (strcmp(name, "busy") == 0) {
        if (!wq__url_duration(value, &o->busy_ns))
            return refuse_value(name, value, WQ__URL_DURATIONS);
    } else if (strcmp(name, "max_expiries") == 0) {
        if (!wq__url_count(value, UINT_MAX, &n))
            return refuse_value(name, value, "a number");
        o->max_expiries = (unsigned)n;
    } else if (strcmp(name, "holder") == 0) {
        if (!wq__url_count(value, INT_MAX, &n) || n == 0)
            return refuse_value(name, value, "the id of a process");
        o->holder_pid = (int)n;
    } else if (strcmp(name, "create") == 0) {
        if (!read_word(value, yes_no, 2, &word))
            return refuse_value(name, value, "yes or no");
        o->no_create = word;
    } else {
        return wq_fail(WQ_EINVAL,
                       "sqlite: there is no option '%s' in a URL; options: "
                       "queue, sync, hold, lease, busy, max_expiries, holder, "
                       "create",
                       name);
    }
    return WQ_OK;
}

/* `url` without its scheme: cut it into pieces, in place. */
static wq_err
read_url(char *url, char **path, wq_sqlite_options *o)
{
    char *options = strchr(url, '?');

    if (options)
        *options++ = '\0';
    *path = strncmp(url, "///", 3) == 0 ? url + 2 : url;
    if (strncmp(*path, "//", 2) == 0)
        return wq_fail(WQ_EINVAL,
                       "sqlite: '//' in the URL begins a host, which "
                       "files do not have; use sqlite:PATH, or "
                       "sqlite:///PATH for an absolute one");
    if (!wq__url_decode(*path))
        return wq_fail(WQ_EINVAL,
                       "sqlite: '%%' in the URL must be followed by two "
                       "hexadecimal digits, not 00");
    return wq__url_options("sqlite", options, "", read_option, o);
}

wq_err
wq_open_sqlite(const char *url, const wq_config *config, wq_queue **out)
{
    const wq_sqlite_hold unset = (wq_sqlite_hold)-1;
    wq_sqlite_options    o = {.size = sizeof o, .hold = unset};
    char                *path = NULL;
    const char          *rest = url ? strchr(url, ':') : NULL;
    char                *copy = rest ? strdup(rest + 1) : NULL;
    wq_err err = !rest   ? wq_fail(WQ_EINVAL, "sqlite: the URL is sqlite:PATH")
                 : !copy ? wq_fail(WQ_ENOMEM, "wq_open: out of memory")
                         : read_url(copy, &path, &o);

    if (o.hold == unset) /* lease=30s alone is enough */
        o.hold = o.lease_ns ? WQ_SQLITE_HOLD_LEASE : WQ_SQLITE_HOLD_PROCESS;
    if (err)
        wq_limiter_destroy(wq__config_limiter(config));
    else
        err = wq_sqlite_open(path, &o, config, out);
    free(copy);
    return err;
}

/* ---- the file as a whole -------------------------------------------------- */

const char *
wq_sqlite_version(void)
{
    return sqlite3_libversion();
}

static wq_err
visit_queues(struct wq__db *db, bool (*visit)(void *ctx, const char *name),
             void          *ctx)
{
    sqlite3_stmt *s = NULL;
    int           code = SQLITE_ERROR;
    bool          goes_on = true;

    if (sqlite3_prepare_v2(db->sqlite, "SELECT name FROM queue ORDER BY name",
                           -1, &s, NULL) == SQLITE_OK)
        while (goes_on && (code = sqlite3_step(s)) == SQLITE_ROW)
            goes_on = visit(ctx, (const char *)sqlite3_column_text(s, 0));
    const wq_err err =
        code == SQLITE_DONE || !goes_on ? WQ_OK : wq__db_error(db, "read");
    (void)sqlite3_finalize(s);
    return err;
}

wq_err
wq_sqlite_each_queue(const char *path,
                     bool (*visit)(void *ctx, const char *name), void *ctx)
{
    struct wq__db db;
    bool          empty = true;

    if (!path || !visit)
        return wq_fail(WQ_EINVAL, "wq_sqlite_each_queue: %s is NULL",
                       path ? "visit" : "path");
    wq_err err = wq__db_open(&db, path, false, DEFAULT_BUSY_NS);
    if (!err)
        err = wq__db_check(&db, &empty);
    if (!err && !empty)
        err = visit_queues(&db, visit, ctx);
    wq__db_close(&db);
    return err;
}
