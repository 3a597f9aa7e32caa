/* SPDX-License-Identifier: MIT */
/* open.c: can this queue be opened in this server?
 *
 * What the server says of itself (INFO) is checked before anything is written:
 * settings that lose keys are refused, or reported, with the line to put into
 * its configuration. A user who may not run INFO is not kept from anything.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <wq/limiter.h>

#include "config/config.h"
#include "config/read.h"
#include "core/mem.h"
#include "error/error.h"
#include "port/time.h"
#include "shared/shared.h"
#include "spread.h"

#define DEFAULT_LEASE_NS WQ_SECONDS(30)
#define DEFAULT_TIMEOUT_NS WQ_SECONDS(5)
#define DEFAULT_CONFIRM_NS WQ_SECONDS(1)
#define SHORTEST_LEASE_NS WQ_MS(10)
/* A hundred years: times that far from now are still numbers of the clock. */
#define LONGEST_NS (WQ_SECONDS(3600) * 24 * 36500)
enum { DEFAULT_EXPIRIES = 5, NAME_MAX_BYTES = 64, OLDEST = 7 };

/* ---- options -------------------------------------------------------------- */

static bool
is_name(const char *name)
{
    size_t n = 0;

    while (name[n] &&
           (isalnum((unsigned char)name[n]) || strchr("._-", name[n])))
        n++;
    return n > 0 && n <= NAME_MAX_BYTES && !name[n];
}

/* What the server allows as the name of a connection. */
static bool
is_client(const char *name)
{
    size_t n = 0;

    while (name[n] > ' ' && name[n] <= '~')
        n++;
    return n > 0 && n < WQ_HOLDER_BYTES && !name[n];
}

static wq_err
check_options(const wq_redis_options *o)
{
    if (o->lease_ns < 0 || o->timeout_ns < 0 || o->replicas_timeout_ns < 0)
        return wq_fail(WQ_EINVAL, "wq_redis_options.%s is negative",
                       o->lease_ns < 0     ? "lease_ns"
                       : o->timeout_ns < 0 ? "timeout_ns"
                                           : "replicas_timeout_ns");
    if (o->replicas_timeout_ns && !o->replicas)
        return wq_fail(WQ_EINVAL,
                       "redis: replicas_timeout is given without replicas");
    if (o->lease_ns > LONGEST_NS || o->timeout_ns > LONGEST_NS ||
        o->replicas_timeout_ns > LONGEST_NS)
        return wq_fail(WQ_EINVAL,
                       "redis: a %s must not be longer than 36500 days",
                       o->lease_ns > LONGEST_NS ? "lease" : "timeout");
    if (o->lease_ns && o->lease_ns < SHORTEST_LEASE_NS)
        return wq_fail(WQ_EINVAL, "redis: a lease must be 10ms or longer");
    if (o->queue && !is_name(o->queue)) /* not quoted: it may be a password */
        return wq_fail(
            WQ_EINVAL,
            "redis: the name of the queue must have 1 to %d letters, "
            "digits, '.', '_' and '-', and nothing else",
            NAME_MAX_BYTES);
    if (o->password && o->password_file)
        return wq_fail(WQ_EINVAL,
                       "redis: both a password and a password_file are given");
    if (o->client && !is_client(o->client))
        return wq_fail(WQ_EINVAL,
                       "redis: the option 'client' must be 1 to %d printable "
                       "ASCII characters without spaces",
                       WQ_HOLDER_BYTES - 1);
    if (o->partitions > WQ__PARTS_MAX)
        return wq_fail(WQ_EINVAL,
                       "redis: partitions=%u is too many; use 1 to %d",
                       o->partitions, WQ__PARTS_MAX);
    if (!o->cert_file != !o->key_file)
        return wq_fail(WQ_EINVAL, "redis: %s is given without %s",
                       o->cert_file ? "cert_file" : "key_file",
                       o->cert_file ? "key_file" : "cert_file");
    return WQ_OK;
}

static wq_err
fill_in_defaults(wq_redis_options *o)
{
    if (!o->queue)
        o->queue = "default";
    if (!o->lease_ns)
        o->lease_ns = DEFAULT_LEASE_NS;
    if (!o->timeout_ns)
        o->timeout_ns = DEFAULT_TIMEOUT_NS < o->lease_ns / 4
                            ? DEFAULT_TIMEOUT_NS
                            : o->lease_ns / 4;
    if (!o->partitions)
        o->partitions = 1;
    if (!o->max_expiries)
        o->max_expiries = DEFAULT_EXPIRIES;
    if (!o->replicas_timeout_ns)
        o->replicas_timeout_ns = DEFAULT_CONFIRM_NS < o->timeout_ns / 2
                                     ? DEFAULT_CONFIRM_NS
                                     : o->timeout_ns / 2;
    return o->replicas_timeout_ns < o->timeout_ns
               ? WQ_OK
               : wq_fail(WQ_EINVAL,
                         "redis: replicas_timeout must be less than timeout, "
                         "which is %" PRId64 " ms",
                         o->timeout_ns / 1000000);
}

static wq_err
copy_if(char **to, const char *text)
{
    if (!text)
        return WQ_OK;
    wq__wipe(*to);
    *to = strdup(text);
    return *to ? WQ_OK : wq_fail(WQ_ENOMEM, "wq_redis_open: out of memory");
}

static wq_err
use_password(struct wq__login *l, const char *password, const char *from)
{
    l->from = from;
    return copy_if(&l->password, password);
}

/* The login of the sentinels. */
static wq_err
fill_in_route(struct wq__route *r, const wq_redis_options *o)
{
    if (!r->primary &&
        (o->sentinel_user || o->sentinel_password || o->sentinel_password_file))
        return wq_fail(WQ_EINVAL,
                       "redis: sentinel_user and sentinel_password are for "
                       "redis+sentinel:// only");
    if (o->sentinel_password && o->sentinel_password_file)
        return wq_fail(WQ_EINVAL, "redis: both a sentinel_password and a "
                                  "sentinel_password_file are given");
    wq_err err = copy_if(&r->login.user, o->sentinel_user);
    if (!err && o->sentinel_password)
        err = use_password(&r->login, o->sentinel_password, "the options");
    if (!err && o->sentinel_password_file)
        err = wq__login_use_file(&r->login, o->sentinel_password_file,
                                 "sentinel_password_file");
    r->login.hint = "sentinel_password_file=PATH in the URL";
    return err;
}

/* The URL has been read. */
static wq_err
fill_in_login(struct wq__login *l, const wq_redis_options *o)
{
    const char *environment = getenv("WQ_REDIS_PASSWORD");

    if (l->user && *l->user && o->user)
        return wq_fail(WQ_EINVAL, "redis: a user is given twice: before the "
                                  "host of the URL and as an option");
    wq_err err = copy_if(&l->user, o->user);

    l->from = l->password ? "the URL" : NULL;
    l->hint = "password_file=PATH in the URL, or WQ_REDIS_PASSWORD in the "
              "environment";
    if (!err && l->password && o->password_file)
        err = wq_fail(WQ_EINVAL,
                      "redis: the URL has a password, and a password_file");
    if (!err && o->password)
        err = use_password(l, o->password, "the options");
    if (!err && o->password_file)
        err = wq__login_use_file(l, o->password_file, "password_file");
    if (!err && !l->from && environment && *environment)
        err = use_password(l, environment, "WQ_REDIS_PASSWORD");
    if (!err && !l->from && l->user && *l->user)
        err = use_password(l, "", NULL); /* the server decides */
    return err;
}

/* "HOST:PID", unless the program has chosen another name. */
static void
name_client(const char *chosen, char out[WQ_HOLDER_BYTES])
{
    char host[WQ_HOLDER_BYTES - sizeof ":-2147483648" + 1] = "";

    if (gethostname(host, sizeof host - 1) || !*host)
        (void)snprintf(host, sizeof host, "unknown");
    for (char *c = host; *c; c++)
        if (*c <= ' ' || *c > '~')
            *c = '?';
    if (chosen)
        (void)snprintf(out, WQ_HOLDER_BYTES, "%s", chosen);
    else
        (void)snprintf(out, WQ_HOLDER_BYTES, "%s:%d", host, (int)getpid());
}

/* `model`: that of the whole queue, for a partition: passwords are read once. */
static wq_err
fill_in_target(struct wq__target *t, const wq_redis_options *o,
               const struct wq__target *model)
{
    wq_err err = model ? wq__login_copy(&t->login, &model->login)
                       : fill_in_login(&t->login, o);

    name_client(o->client, t->client);
    if (!err)
        err = copy_if(&t->ca_file, o->ca_file);
    if (!err)
        err = copy_if(&t->cert_file, o->cert_file);
    if (!err)
        err = copy_if(&t->key_file, o->key_file);
    if (!err && !t->tls && (t->ca_file || t->cert_file))
        err = wq_fail(WQ_EINVAL,
                      "redis: %s is given, but the URL is not rediss://",
                      t->ca_file ? "ca_file" : "cert_file");
    t->timeout_ns = o->timeout_ns;
    if (err)
        return err;
    return model ? wq__login_copy(&t->route.login, &model->route.login)
                 : fill_in_route(&t->route, o);
}

/* ---- the server ----------------------------------------------------------- */

/* How many replicas have all data: "slaveN:ip=...,state=online,...". */
static unsigned
count_online(const char *info)
{
    unsigned n = 0;

    for (const char *at = info; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        const size_t len = strcspn(at, "\r\n");
        const char  *state = strstr(at, "state=online");
        n += strncmp(at, "slave", 5) == 0 && at[5] >= '0' && at[5] <= '9' &&
             state && state < at + len;
    }
    return n;
}

/* The value of a line "name:value\r\n" of INFO; "": there is none. */
static void
find_info(const char *info, const char *name, char *out, size_t size)
{
    const size_t len = strlen(name);

    *out = '\0';
    for (const char *at = info; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, name, len) == 0 && at[len] == ':') {
            (void)snprintf(out, size, "%.*s",
                           (int)strcspn(at + len + 1, "\r\n"), at + len + 1);
            return;
        }
    }
}

__attribute__((format(printf, 2, 3))) static void
warn(const wq_redis_options *o, const char *format, ...)
{
    char    text[400];
    va_list args;

    if (!o->on_warning)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    o->on_warning(o->warning_ctx, text);
}

static wq_err
check_info(const struct wq__target *t, const wq_redis_options *o,
           const char *info)
{
    char version[32], role[16], policy[32], aof[8], cluster[8], mode[16],
        primary[160];
    struct wq__address at;

    find_info(info, "redis_version", version, sizeof version);
    find_info(info, "role", role, sizeof role);
    find_info(info, "master_host", at.host, sizeof at.host);
    find_info(info, "master_port", at.port, sizeof at.port);
    wq__address_print(&at, primary, sizeof primary);
    find_info(info, "maxmemory_policy", policy, sizeof policy);
    find_info(info, "aof_enabled", aof, sizeof aof);
    find_info(info, "cluster_enabled", cluster, sizeof cluster);
    find_info(info, "redis_mode", mode, sizeof mode);
    if (strcmp(mode, "sentinel") == 0)
        return wq_fail(
            WQ_EINVAL,
            "redis: %s is a sentinel: use redis+sentinel://HOST/NAME "
            "with the name of the primary",
            t->name);
    if (*version && atoi(version) < OLDEST)
        return wq_fail(WQ_ENOTSUP,
                       "redis: %s is release %s; 7.0 or later is needed",
                       t->name, version);
    if (strcmp(role, "slave") == 0 && strcmp(cluster, "1") != 0)
        return wq_fail(WQ_EAWAY,
                       "redis: %s is a replica, which is read-only: connect to "
                       "its primary, %s",
                       t->name, primary);
    if (strncmp(policy, "allkeys", 7) == 0)
        return wq_fail(WQ_EINVAL,
                       "redis: %s evicts keys when its memory is full: put "
                       "'maxmemory-policy noeviction' into its configuration",
                       t->name);
    if (strcmp(aof, "0") == 0)
        warn(o,
             "redis: %s loses what it was told last, or all, when it is "
             "restarted: put 'appendonly yes' into its configuration",
             t->name);
    if (strcmp(role, "master") == 0 && count_online(info) < o->replicas)
        warn(o,
             "redis: %s has %u replicas that are online, and replicas=%u are "
             "to confirm every call: until they are online, calls fail "
             "(WQ_EIO), although they may have been carried out",
             t->name, count_online(info), o->replicas);
    return WQ_OK;
}

/* What people want to know of it. */
static void
note_server(struct wq__redis *e, const char *info)
{
    char valkey[16], redis[16], role[16];

    find_info(info, "valkey_version", valkey, sizeof valkey);
    find_info(info, "redis_version", redis, sizeof redis);
    find_info(info, "role", role, sizeof role);
    (void)snprintf(e->version, sizeof e->version, "%s %s",
                   *valkey ? "Valkey" : "Redis", *valkey ? valkey : redis);
    (void)snprintf(e->role, sizeof e->role, "%s",
                   strcmp(role, "master") == 0  ? "primary"
                   : strcmp(role, "slave") == 0 ? "replica"
                                                : role);
}

/* INFO says it, if the user may know. */
static wq_err
check_server(struct wq__redis *e, const wq_redis_options *o)
{
    const struct wq__arg args[] = {{"INFO", 4}, {"everything", 10}};
    redisReply          *reply = NULL;
    wq_err               err = wq__wire_call(&e->wire, args, 2, &reply);

    if (err)
        return err == WQ_EIO ? WQ_EAWAY : err;
    if (wq__reply_is_error(reply, "LOADING"))
        err = wq_fail(WQ_EAWAY, "redis: %s is loading its data into memory",
                      e->target.name);
    else if (wq__reply_is_error(reply, NULL))
        warn(o, "redis: %s does not say how it is configured: %.100s",
             e->target.name, reply->str);
    else if (reply->type == REDIS_REPLY_STRING) {
        note_server(e, reply->str);
        err = check_info(&e->target, o, reply->str);
    }
    if (!err && reply->type == REDIS_REPLY_STRING &&
        strstr(reply->str, "cluster_enabled:1"))
        err = wq__cluster_begin(&e->wire);
    freeReplyObject(reply);
    return err;
}

/* ---- opening -------------------------------------------------------------- */

/* Each partition has its share of the bucket of all keys: together they let pass
 * no more than one bucket. */
static wq_err
divide_terms(struct wq__terms *terms, unsigned parts)
{
    wq_limiter_spec *l = &terms->limiter;

    if (parts == 1)
        return WQ_OK;
    if (terms->max_len)
        return wq_fail(WQ_ENOTSUP,
                       "redis: max_len cannot be kept over several partitions: "
                       "use a queue without partitions");
    if (l->rate != WQ_RATE_INF)
        l->rate /= parts;
    if (l->burst)
        l->burst = l->burst < parts ? 1 : l->burst / parts;
    return WQ_OK;
}

static wq_err
make_engine(struct wq__redis *e, const wq_redis_options *o, int part,
            const struct wq__terms *terms, wq_clock *clock)
{
    struct wq__terms own = *terms;
    const wq_err     err = divide_terms(&own, o->partitions);

    if (err)
        return err;
    own.max_expiries = o->max_expiries == UINT_MAX ? 0 : o->max_expiries;
    e->base.ops = &wq__redis_ops;
    e->base.distant = true;
    e->base.lease_ns = o->lease_ns;
    wq__rows_init(&e->rows, &wq__redis_rows, &own);
    wq__redis_clock_init(&e->clock, o->lease_ns);
    e->own_clock =
        !clock || clock == wq_clock_monotonic() || clock == wq_clock_boottime();
    e->base.clock = e->own_clock ? &e->clock.base.base : clock;
    e->base.steady_clock = e->own_clock ? wq_clock_boottime() : clock;
    (void)snprintf(e->queue, sizeof e->queue, "%s", o->queue);
    e->parts = o->partitions;
    e->part = part;
    wq__names_init(&e->names, o->queue, e->parts, part);
    e->confirm = (struct wq__confirm){.replicas = o->replicas,
                                      .timeout_ns = o->replicas_timeout_ns,
                                      .touched = e->names.name[WQ__NAME_META]};
    e->side_confirm = e->confirm;
    wq__wire_init(&e->wire, &e->target);
    e->wire.yields = &e->yields;
    wq__wire_init(&e->side_wire, &e->target);
    wq__wire_init(&e->wait_wire, &e->target);
    wq__lock_init(&e->side_lock);
    return wq__redis_wait_init(e);
}

/* A node of a cluster may name another one, which is checked, too. `session` 0:
 * only the number of partitions is checked, and open_parts() stores it. */
static wq_err
join_server(struct wq__redis *e, const wq_redis_options *o, int64_t session)
{
    wq_err         err = check_server(e, o);
    const unsigned moves = atomic_load(&e->target.route.moves);

    if (!err)
        err = session ? wq__redis_join(e, session)
                      : wq__redis_change_session(e, 0, "check");
    if (!err && atomic_load(&e->target.route.moves) != moves)
        err = check_server(e, o);
    return err;
}

/* What wq_redis_open() was called with; the URL has options, too. */
struct call {
    const char             *url;
    const wq_redis_options *options;
    const struct wq__terms *terms;
    wq_clock               *clock;
};

/* An engine that has not connected yet: the whole queue, or a partition of `root`.
 * *o: its options; their texts are gone. */
static wq_err
prepare_engine(const struct call *call, const struct wq__redis *root, int part,
               wq_redis_options *o, struct wq__redis **out)
{
    struct wq__redis *e = calloc(1, sizeof *e);
    char             *copy = NULL;

    if (!e) {
        (void)wq_fail(WQ_ENOMEM, "wq_redis_open: out of memory");
        return WQ_ENOMEM;
    }
    *o = *call->options;
    wq_err err = wq__redis_read_url(call->url, &e->target, o, &copy);
    if (!err)
        err = check_options(o);
    if (!err)
        err = fill_in_defaults(o);
    if (!err)
        err = fill_in_target(&e->target, o, root ? &root->target : NULL);
    if (!err)
        err = make_engine(e, o, part, call->terms, call->clock);
    if (copy) /* its parts end with NULs */
        explicit_bzero(copy, strlen(call->url));
    free(copy);
    if (err)
        wq__redis_free(e, false);
    else
        *out = e;
    return err;
}

/* In a cluster it may be in another server than the others, which is checked,
 * too; what may lose keys was said of the first one. */
static wq_err
join_part(struct wq__redis *e, const struct wq__redis *root,
          wq_redis_options *o, int64_t session)
{
    memcpy(e->version, root->version, sizeof root->version);
    memcpy(e->role, root->role, sizeof root->role);
    if (root->target.route.kind != WQ__ROUTE_CLUSTER)
        return wq__redis_join(e, session);
    o->on_warning = NULL;
    return join_server(e, o, session);
}

/* For a partition after one that hangs: enough for a server that does not. */
static int64_t
shorter(int64_t timeout_ns)
{
    const int64_t part_ns = timeout_ns / 8, least_ns = WQ_MS(200);

    if (part_ns > least_ns)
        return part_ns;
    return timeout_ns < least_ns ? timeout_ns : least_ns;
}

/* If the number of partitions is stored already, one that cannot be reached is out
 * for now: reconcile() brings it in. *hangs: one took long to fail; then the next
 * have little time for it: they may be in the same server. */
static wq_err
open_part(const struct call *call, const struct wq__redis *root, int part,
          int64_t session, bool *hangs, struct wq__redis **out)
{
    const int64_t    begin_ns = wq__time_now();
    wq_redis_options o;
    const wq_err     bad = prepare_engine(call, root, part, &o, out);

    if (bad)
        return bad;
    struct wq__redis *e = *out;
    if (*hangs)
        e->wire.timeout_ns = shorter(o.timeout_ns);
    const wq_err err = join_part(e, root, &o, session);
    e->wire.timeout_ns = o.timeout_ns;
    if (err != WQ_EAWAY || !root->parts_stored)
        return err;
    e->tried_ns = wq__time_now() - begin_ns;
    *hangs |= e->tried_ns > WQ_MS(100);
    atomic_store(&e->out, true);
    atomic_store(&e->away, true);
    warn(call->options,
         "redis: partition %d of the queue cannot be reached, and calls on its "
         "keys fail until it can: %s",
         part, wq_last_error());
    return WQ_OK;
}

/* The number of partitions is stored when all of them are open: an open that
 * fails does not fix it. At least one must be reached. */
static wq_err
open_all_parts(const struct call *call, const struct wq__redis *root,
               int64_t session, struct wq__redis **parts)
{
    bool     hangs = false;
    unsigned reached = 0;

    for (unsigned p = 0; p < root->parts; p++) {
        const wq_err err =
            open_part(call, root, (int)p, session, &hangs, &parts[p]);
        if (err)
            return err;
        reached += !atomic_load(&parts[p]->out);
    }
    return reached ? WQ_OK : WQ_EAWAY;
}

static wq_err
open_parts(const struct call *call, struct wq__redis *root,
           struct wq__engine **out)
{
    struct wq__redis *parts[WQ__PARTS_MAX] = {NULL};
    int64_t           session;
    wq_err            err = wq__redis_new_id(&session);

    if (!err)
        err = open_all_parts(call, root, session, parts);
    if (!err)
        err = wq__redis_change_session(root, 0, "claim");
    wq__wire_close(&root->wire, false);
    if (!err)
        err = wq__spread_open(root, parts, session, out);
    if (!err)
        return WQ_OK;
    const struct wq__sentence said = wq__fail_save();
    for (unsigned p = 0; p < root->parts; p++)
        if (parts[p])
            wq__redis_close(parts[p], false);
    wq__fail_restore(&said);
    return err;
}

static wq_err
open_engine(void *ctx, const struct wq__terms *terms, wq_clock *clock,
            struct wq__engine **out)
{
    struct call      *call = ctx;
    wq_redis_options  o;
    struct wq__redis *e = NULL;
    int64_t           session = 0;

    call->terms = terms;
    call->clock = clock;
    wq_err err = prepare_engine(call, NULL, WQ__PART_WHOLE, &o, &e);
    if (!err && e->parts == 1)
        err = wq__redis_new_id(&session);
    if (!err)
        err = join_server(e, &o, session);
    if (!err && e->parts > 1)
        err = open_parts(call, e, out);
    else if (!err)
        *out = &e->base;
    if (err && e)
        wq__redis_free(e, false);
    return err;
}

static wq_err
open_queue(const char *url, const wq_redis_options *options,
           const wq_config *config, wq_queue **out)
{
    wq_redis_options o = {.size = sizeof o};
    struct call      call = {.url = url, .options = &o};
    wq_err           err = WQ_OK;

    if (!url || !out)
        return wq_fail(WQ_EINVAL, "wq_redis_open: %s is NULL",
                       url ? "out" : "the URL");
    if (options)
        err = wq__read_sized(options, "wq_redis_options", NULL, sizeof o, &o);
    return err ? err
               : wq__shared_open(config, o.manual_renew, open_engine, &call,
                                 out);
}

wq_err
wq_redis_open(const char *url, const wq_redis_options *options,
              const wq_config *config, wq_queue **out)
{
    const wq_err err = open_queue(url, options, config, out);

    /* The engine applies its description. */
    wq_limiter_destroy(wq__config_limiter(config));
    return err;
}

wq_err
wq_open_redis(const char *url, const wq_config *config, wq_queue **out)
{
    return wq_redis_open(url, NULL, config, out);
}
