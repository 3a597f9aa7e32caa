/* SPDX-License-Identifier: MIT */
/* scripts.c: how is a script called, and its reply read?
 *
 * By its digest: the server keeps scripts until it is restarted, or somebody
 * flushes them; then it answers NOSCRIPT, nothing has happened, and the script
 * is loaded and called again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error/error.h"
#include "port/time.h"
#include "store.h"

/* Made by CMake from lua/: each is head.lua, common.lua and its own file. */
#include "scripts_text.h"

static const struct {
    const char          *sha;
    const unsigned char *text;
    size_t               len;
} scripts[WQ__SCRIPTS] = {
    [WQ__SCRIPT_STEP] = {step_sha, step_text, sizeof step_text},
    [WQ__SCRIPT_READ] = {read_sha, read_text, sizeof read_text},
    [WQ__SCRIPT_COMMIT] = {commit_sha, commit_text, sizeof commit_text},
    [WQ__SCRIPT_SESSION] = {session_sha, session_text, sizeof session_text},
    [WQ__SCRIPT_VIEW] = {view_sha, view_text, sizeof view_text},
};

void
wq__names_init(struct wq__names *names, const char *queue, unsigned parts,
               int part)
{
    static const char *const kinds[WQ__KEYS] = {
        "k",    "ready", "due",  "held", "sess",
        "meta", "idle",  "dead", "used", "none"}; /* none: see cluster.c */

    char of_part[32] = "";

    if (part != WQ__PART_WHOLE)
        (void)snprintf(of_part, sizeof of_part, "/%u.%d", parts, part);
    for (size_t i = 0; i < WQ__KEYS; i++)
        (void)snprintf(names->name[i], sizeof names->name[i], "wq:{%s%s}:%s",
                       queue, of_part, kinds[i]);
}

/* ---- arguments ------------------------------------------------------------ */

/* EVALSHA, digest, number of keys, keys: set by wq__script_run(). */
enum { BEFORE = 3 + WQ__KEYS };

static void
append(struct wq__args *a, const void *data, size_t len)
{
    if (a->len == a->cap) {
        const size_t    cap = a->cap ? a->cap * 2 : 64;
        struct wq__arg *at = realloc(a->at, cap * sizeof *at);
        if (!at) {
            a->no_memory = true;
            return;
        }
        a->at = at;
        a->cap = cap;
    }
    a->at[a->len++] = (struct wq__arg){data, len};
}

void
wq__args_begin(struct wq__args *a)
{
    a->len = 0;
    a->text_len = 0;
    a->no_memory = false;
    for (int i = 0; i < BEFORE; i++)
        append(a, "", 0);
}

void
wq__args_bytes(struct wq__args *a, const void *data, size_t len)
{
    append(a, len ? data : "", len);
}

/* `data` is NULL until they are sent: the copies may move. */
unsigned char *
wq__args_space(struct wq__args *a, size_t len)
{
    if (!len) {
        append(a, "", 0);
        return NULL;
    }
    if (a->text_cap - a->text_len < len) {
        const size_t cap = (a->text_len + len) * 2;
        char        *text = realloc(a->text, cap);
        if (!text) {
            a->no_memory = true;
            return NULL;
        }
        a->text = text;
        a->text_cap = cap;
    }
    a->text_len += len;
    append(a, NULL, len);
    return (unsigned char *)a->text + a->text_len - len;
}

void
wq__args_copy(struct wq__args *a, const void *data, size_t len)
{
    unsigned char *to = wq__args_space(a, len);

    if (to)
        memcpy(to, data, len);
}

void
wq__args_int(struct wq__args *a, int64_t n)
{
    char      text[24];
    const int len = snprintf(text, sizeof text, "%" PRId64, n);

    wq__args_copy(a, text, (size_t)len);
}

void
wq__args_fini(struct wq__args *a)
{
    free(a->at);
    free(a->text);
    *a = (struct wq__args){.at = NULL};
}

/* Copies have their final place. */
static void
settle(struct wq__args *a)
{
    size_t at = 0;

    for (size_t i = 0; i < a->len; i++)
        if (!a->at[i].data) {
            a->at[i].data = a->text + at;
            at += a->at[i].len;
        }
}

/* ---- calling -------------------------------------------------------------- */

static wq_err
load(struct wq__wire *w, enum wq__script script)
{
    const struct wq__arg args[] = {{"SCRIPT", 6},
                                   {"LOAD", 4},
                                   {scripts[script].text, scripts[script].len}};
    redisReply          *reply = NULL;
    wq_err               err = wq__wire_call(w, args, 3, &reply);

    if (err)
        return err == WQ_EIO ? WQ_EAWAY : err; /* only a script is loaded */
    if (wq__reply_is_error(reply, NULL))
        err = wq_fail(WQ_EAWAY, "redis: %s refuses a script: %.120s",
                      w->target->name, reply->str);
    freeReplyObject(reply);
    return err;
}

/* What an error reply of a script means: WQ_EAWAY if it has not begun to write. The
 * server refuses one that needs memory (OOM), or that writes to a replica, before
 * it begins. A command that it refuses in the middle of a script, for want of a
 * right or because a key has another type, undoes nothing: WQ_EIO. */
static wq_err
refuse(const struct wq__wire *w, const redisReply *reply)
{
    static const char rights[] =
        "does not let this user run a command, or use a key, that wq needs: "
        "docs/backends.md has the rights";
    static const struct {
        wq_err      err;
        const char *word, *what;
    } known[] = {
        {WQ_EAWAY, "OOM",
         "is out of memory (maxmemory): nothing can be added; raise maxmemory, "
         "or get keys"},
        {WQ_EAWAY, "READONLY",
         "is a replica, which is read-only: connect to the primary"},
        {WQ_EAWAY, "LOADING", "is loading its data into memory"},
        {WQ_EAWAY, "BUSY", "is running a script of another client"},
        {WQ_EAWAY, "MISCONF", "cannot write to its disk, and refuses changes"},
        {WQ_EAWAY, "NOREPLICAS",
         "has fewer replicas than min-replicas-to-write"},
        {WQ_EAWAY, "MASTERDOWN", "is a replica without a primary"},
        {WQ_EAWAY, "NOPERM",
         "does not let this user run the scripts of wq, or use the keys of "
         "this queue: docs/backends.md has the rights"},
        {WQ_EAWAY, "NOAUTH", "asks for a user and a password"},
        {WQ_EAWAY, "ASK", "is moving the queue to another node of its cluster"},
        {WQ_EAWAY, "TRYAGAIN",
         "is moving the queue to another node of its cluster"},
        {WQ_EAWAY, "CLUSTERDOWN", "is a node of a cluster that is down"},
        {WQ_EIO, "WRONGTYPE",
         "has keys of another program where those of this queue should be: use "
         "another name, or delete them"},
        {WQ_EIO, "ERR The user executing the script", rights},
        {WQ_EIO, "ERR ACL failure in script", rights}, /* Valkey */
    };

    const bool names_right = wq__reply_is_error(reply, "NOPERM");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (wq__reply_is_error(reply, known[i].word))
            return wq_fail(known[i].err, "redis: %s %s%s%.90s", w->target->name,
                           known[i].what, names_right ? ": " : "",
                           names_right ? reply->str : "");
    if (wq__reply_is_error(reply, "MOVED"))
        return wq_fail(WQ_EAWAY,
                       "redis: the node of the cluster that has the queue "
                       "cannot be reached: %.100s",
                       reply->str);
    return wq_fail(WQ_EIO, "redis: %s answers: %.150s", w->target->name,
                   reply->str);
}

/* What a caller must know of a call that changes keys. */
static wq_err
say_whether(enum wq__script script, wq_err err)
{
    static const char maybe[] = "; it may have happened";
    const bool        changes =
        script == WQ__SCRIPT_STEP || script == WQ__SCRIPT_COMMIT;
    char text[WQ__SENTENCE_BYTES];

    (void)snprintf(text, sizeof text, "%s", wq_last_error());
    if (err == WQ_EIO && changes && !strstr(text, "may have happened"))
        (void)wq_fail(err, "%.*s%s", (int)(sizeof text - sizeof maybe), text,
                      maybe);
    return err;
}

/* The arguments are complete; what comes before them is filled in. */
static void
complete(struct wq__args *args, const struct wq__names *names,
         enum wq__script script)
{
    settle(args);
    args->at[0] = (struct wq__arg){"EVALSHA", 7};
    args->at[1] = (struct wq__arg){scripts[script].sha, 40};
    args->at[2] = (struct wq__arg){"10", 2};
    for (size_t i = 0; i < WQ__KEYS; i++)
        args->at[3 + i] =
            (struct wq__arg){names->name[i], strlen(names->name[i])};
}

wq_err
wq__script_send_ahead(struct wq__wire *w, const struct wq__names *names,
                      enum wq__script script, struct wq__args *args)
{
    if (args->no_memory)
        return WQ_ENOMEM;
    complete(args, names, script);
    return wq__wire_send_ahead(w, args->at, args->len);
}

wq_err
wq__script_run(struct wq__wire *w, const struct wq__names *names,
               enum wq__script script, struct wq__args *args, redisReply **out)
{
    redisReply *reply = NULL;
    wq_err      err = WQ_OK;

    *out = NULL;
    if (args->no_memory)
        return WQ_ENOMEM;
    complete(args, names, script);
    for (int tries = 0; tries < 5; tries++) {
        bool again = false;

        err = wq__wire_call(w, args->at, args->len, &reply);
        if (err)
            return say_whether(script, err);
        if (!wq__reply_is_error(reply, NULL)) {
            wq__route_served(w);
            *out = reply;
            return WQ_OK;
        }
        const bool missing = wq__reply_is_error(reply, "NOSCRIPT");
        wq__wire_keep_replies(w); /* they are lost if it closes the wire */
        wq__route_note(w, reply, &again);
        err = missing ? load(w, script) : again ? WQ_OK : refuse(w, reply);
        freeReplyObject(reply);
        if (err)
            return say_whether(script, err);
    }
    return wq_fail(WQ_EAWAY,
                   "redis: %s forgets its scripts at once, or the "
                   "nodes of its cluster do not agree",
                   w->target->name);
}

/* ---- replies -------------------------------------------------------------- */

const redisReply *
wq__reply_at(const redisReply *reply, size_t i)
{
    static const redisReply none = {.type = REDIS_REPLY_NIL};

    return reply->type == REDIS_REPLY_ARRAY && i < reply->elements
               ? reply->element[i]
               : &none;
}

wq_key
wq__reply_bytes(const redisReply *reply, size_t i)
{
    const redisReply *at = wq__reply_at(reply, i);

    return at->type == REDIS_REPLY_STRING ? (wq_key){at->str, (size_t)at->len}
                                          : (wq_key){"", 0};
}

int64_t
wq__reply_int(const redisReply *reply, size_t i)
{
    const redisReply *at = wq__reply_at(reply, i);

    return at->type == REDIS_REPLY_INTEGER  ? at->integer
           : at->type == REDIS_REPLY_STRING ? strtoll(at->str, NULL, 10)
                                            : 0;
}

void
wq__reply_counts(const redisReply *list, size_t from,
                 struct wq__row_counts *out)
{
    uint64_t *const numbers[] = {&out->ready,   &out->held, &out->dirty,
                                 &out->waiting, &out->dead, &out->known};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = (uint64_t)wq__reply_int(list, from + i);
    out->next_ns = WQ_FOREVER;
}

bool
wq__reply_is(const redisReply *reply, const char *status)
{
    const wq_key at = wq__reply_bytes(reply, 0);

    return at.len == strlen(status) && memcmp(at.data, status, at.len) == 0;
}
