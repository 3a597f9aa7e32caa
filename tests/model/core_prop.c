/* SPDX-License-Identifier: MIT */
/* core_prop.c: the core held against the model; see core_prop.h. */
#include "model/core_prop.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "model/model.h"
#include "model/plug_in.h"
#include "support/counting.h"

/* ---- the operations ----------------------------------------------------- */

enum operation {
    ADD,         /* key */
    ADD_BACKOFF, /* key, offset from now: it failed */
    ADMIT,       /* key: an add accepted before the shutdown */
    ADD_AFTER,   /* key, offset from now: small, often equal */
    ADD_RESPECT, /* key: an add that respects a backoff */
    ADD_AT,      /* key, which extreme time */
    PASS,        /* how far: time passes and what is due is promoted */
    PASS_TO,     /* which extreme time, once */
    GET,         /* */
    DONE,        /* which of the held items */
    DONE_KEY,    /* key, held or not */
    DONE_AGAIN,  /* an item that was done before */
    DONE_COPY,   /* a copy of a held item */
    DONE_RANDOM, /* slot: an item that came from nowhere */
    NO_MEMORY,   /* which allocation of the next operation is refused */
    NO_PUSH,     /* which push the plug-in refuses */
    SHUT_DOWN,   /* */
    RENEW,       /* the core ends and another one begins */
    DROP,        /* nothing waits any more */
    ADD_WITH,    /* form, priority, time, how many, keys */
    REMOVE,      /* key */
    CANCEL,      /* key: its deadline */
    DONE_MANY,   /* which of the held items, and what is wrong with them */
    WALK,        /* how far: over all keys */
    FLUSH,       /* */
    ERRAND,      /* key: what is asked for it is waited for */
    REMOVE_LATE, /* key, on or off: at its done */
    PAUSE,       /* on or off */
    HASTEN,      /* backoffs too? shut down, and all deadlines come now */
    OPERATIONS,
};

/* The weights are what the cases in fuzz/corpus/core were written with: change
 * one and those mean something else. */
static const struct {
    const char *name;
    unsigned    weight; /* of 256 bytes, how many mean this */
} operations[OPERATIONS] = {
    [ADD] = {"add", 24},
    [ADD_BACKOFF] = {"add_backoff", 9},
    [ADMIT] = {"admit", 4},
    [ADD_AFTER] = {"add_after", 14},
    [ADD_RESPECT] = {"add_respecting", 4},
    [ADD_AT] = {"add_at", 6},
    [PASS] = {"pass", 14},
    [PASS_TO] = {"pass_to", 2},
    [GET] = {"get", 42},
    [DONE] = {"done", 36},
    [DONE_KEY] = {"done_key", 10},
    [DONE_AGAIN] = {"done_again", 4},
    [DONE_COPY] = {"done_copy", 1},
    [DONE_RANDOM] = {"done_random", 1},
    [NO_MEMORY] = {"no_memory", 6},
    [NO_PUSH] = {"no_push", 4},
    [SHUT_DOWN] = {"shut_down", 1},
    [RENEW] = {"renew", 2},
    [DROP] = {"drop_waiting", 1},
    [ADD_WITH] = {"add_with", 30},
    [REMOVE] = {"remove", 8},
    [CANCEL] = {"cancel", 5},
    [DONE_MANY] = {"done_many", 4},
    [WALK] = {"walk", 4},
    [FLUSH] = {"flush", 7},
    [ERRAND] = {"errand", 4},
    [REMOVE_LATE] = {"remove_at_done", 4},
    [PAUSE] = {"pause", 4},
    [HASTEN] = {"hasten", 1},
};

static const int64_t extremes[] = {
    INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX,
};
enum { EXTREMES = sizeof extremes / sizeof extremes[0] };

static const int priorities[] = {0, 1, 5, -1, -5, 6, INT_MAX, INT_MIN};
enum { PRIORITIES = sizeof priorities / sizeof priorities[0] };

static enum operation
decode(uint8_t byte)
{
    unsigned from = 0;

    for (int op = 0; op < OPERATIONS; op++) {
        from += operations[op].weight;
        if (byte < from)
            return (enum operation)op;
    }
    return ADD;
}

/* ---- the world ---------------------------------------------------------- */

enum {
    KEY_BYTES = 400,  /* the longest key: beyond WQ__KEY_INLINE */
    TRACE = 40,       /* operations a report shows */
    STEP_UNIT = 10,   /* times are multiples of this, so that many are equal */
    STALE_MAX = 8,    /* items remembered after done */
    BOUND_LEAST = 3,  /* the smallest max_len */
    BYTES_LEAST = 50, /* the smallest max_bytes */
    ERRANDS = 4,      /* under way at a time */
    THREADS = 3,      /* that get keys */
};

struct trace {
    enum operation op;
    int            a, b, c;           /* what it was given */
    int            keys[MODEL_BATCH]; /* likewise */
    int            n;                 /* how many of these */
    int64_t        now;
    wq_err         answer;
};

/* A walk that is under way while other things happen. */
struct walk {
    bool    under_way;
    wq__ref cursor;
    bool    stayed[MODEL_KEYS]; /* it had a state all the time */
    int     seen[MODEL_KEYS];   /* how often */
};

/* A flush, by the number it has in the model. */
struct flush {
    bool     is_under_way;
    uint64_t turn;
};

/* What was asked for a key before a moment. */
struct errand {
    bool              is_under_way;
    int               key;
    struct wq__errand core;
    struct model_runs runs;
};

struct world {
    const uint8_t *next, *end; /* the bytes left to read */

    struct counting     mem;
    struct wq__core     core;
    struct wq__hash_key secret;
    struct plug_in      plug_in;
    wq_order            order;
    bool                has_plug_in;

    bool         respect, ages;
    size_t       max_len, max_bytes;
    bool         grouped;
    size_t       max_held;  /* keys of a group; 0: any number */
    int64_t      max_ready; /* then a key is overdue; 0: never */
    struct model model;
    int          keys; /* how many of the model's are used */
    int64_t      now;

    wq_item    *items[MODEL_KEYS];  /* by key, while held */
    uint64_t    fences[MODEL_KEYS]; /* by key, the last one seen */
    wq_item    *stale[STALE_MAX];
    size_t      stales;
    struct walk walk;

    struct flush  flushes[MODEL_FLUSHES];
    struct errand errands[ERRANDS];

    struct trace traces[TRACE];

    struct core_prop_report *report;
};

static int
read_byte(struct world *w)
{
    return w->next < w->end ? *w->next++ : 0;
}

static int
read_key(struct world *w)
{
    return read_byte(w) % w->keys;
}

/* ---- keys --------------------------------------------------------------- */

/* The bytes of key number `n`: every seventh is long, long ones differ only at
 * their end, and each short one begins like the next shorter. */
static wq_key
key_of(int n)
{
    static unsigned char bytes[MODEL_KEYS][KEY_BYTES];
    unsigned char       *b = bytes[n];

    if (!b[0])
        memset(b, 'k', KEY_BYTES);
    if (n % 7 != 6)
        return (wq_key){b, (size_t)n + 1};
    b[KEY_BYTES - 1 - n] = (unsigned char)n;
    return (wq_key){b, (size_t)(KEY_BYTES - n)};
}

static int
number_of(const struct world *w, wq_key key)
{
    for (int n = 0; n < w->keys; n++) {
        const wq_key k = key_of(n);
        if (k.len == key.len && memcmp(k.data, key.data, k.len) == 0)
            return n;
    }
    return -1;
}

static uint32_t
hash_of(const struct world *w, int n)
{
    return wq__core_hash(&w->core, key_of(n));
}

/* Groups are a part of their keys' bytes; that of every fifth key is empty. */
static int
group_of(int n)
{
    return n % MODEL_GROUPS;
}

static wq_key
group_name(int n)
{
    return (wq_key){key_of(n).data, (size_t)group_of(n)};
}

static uint32_t
group_hash(const struct world *w, int n)
{
    return group_of(n) ? wq__core_hash(&w->core, group_name(n)) : 0;
}

/* ---- reports ------------------------------------------------------------ */

static void
say(struct core_prop_report *r, const char *text)
{
    const size_t used = strlen(r->text);
    (void)snprintf(r->text + used, sizeof r->text - used, "%s", text);
}

static void
say_trace(struct world *w, size_t step)
{
    const struct trace *t = &w->traces[step % TRACE];
    char                text[160];

    (void)snprintf(text, sizeof text, "  step %zu at %" PRId64 ": %s %d %d %d",
                   step, t->now, operations[t->op].name, t->a, t->b, t->c);
    say(w->report, text);
    for (int i = 0; i < t->n; i++) {
        (void)snprintf(text, sizeof text, "%s%d", i ? "," : " keys ",
                       t->keys[i]);
        say(w->report, text);
    }
    (void)snprintf(text, sizeof text, " -> %s\n", wq_err_name(t->answer));
    say(w->report, text);
}

/* Note the first failure of a run; true if `ok`. */
static bool
check(struct world *w, bool ok, const char *what, long long expected,
      long long got)
{
    const size_t steps = w->report->steps;
    char         line[200];

    if (ok || w->report->text[0])
        return ok;
    (void)snprintf(line, sizeof line, "step %zu: %s: expected %lld, got %lld\n",
                   steps - 1, what, expected, got);
    say(w->report, line);
    for (size_t i = steps > TRACE ? steps - TRACE : 0; i < steps; i++)
        say_trace(w, i);
    return false;
}

static void
equal(struct world *w, const char *what, long long expected, long long got)
{
    (void)check(w, expected == got, what, expected, got);
}

/* ---- life --------------------------------------------------------------- */

static void
set_up_core(struct world *w)
{
    w->core.respect = w->respect;
    w->core.max_len = w->max_len;
    if (w->ages)
        wq__core_keep_ages(&w->core);
    if (w->grouped)
        wq__core_have_groups(&w->core, w->max_held);
    if (w->max_ready)
        wq__core_serve_after(&w->core, w->max_ready);
    if (w->max_bytes)
        wq__core_bound_bytes(&w->core, w->max_bytes);
}

static void
set_up_model(struct world *w)
{
    struct model *m = &w->model;

    model_init(m, w->plug_in.order);
    m->is_flat = w->has_plug_in && !w->plug_in.is_full;
    m->gives = !m->is_flat;
    m->respect = w->respect;
    m->max_len = w->max_len;
    m->max_bytes = w->max_bytes;
    m->grouped = w->grouped;
    m->max_held = w->max_held;
    m->max_ready = w->max_ready;
    for (int n = 0; n < MODEL_KEYS; n++) {
        m->lens[n] = key_of(n).len;
        m->groups[n] = group_of(n);
    }
}

static void
begin(struct world *w)
{
    const struct plug_in plug_in = {
        .order = w->plug_in.order,
        .is_full = w->plug_in.is_full,
    };

    w->plug_in = plug_in;
    w->order = plug_in_order(&w->plug_in);
    wq__core_init(&w->core, w->secret, w->has_plug_in ? &w->order : NULL,
                  &w->mem.allocator);
    set_up_core(w);
    set_up_model(w);
    memset(w->items, 0, sizeof w->items);
    memset(w->fences, 0, sizeof w->fences);
    memset(w->flushes, 0, sizeof w->flushes);
    memset(w->errands, 0, sizeof w->errands);
    w->walk.under_way = false;
    w->stales = 0;
}

static void
end(struct world *w)
{
    wq__core_fini(&w->core);
    equal(w, "bytes that stay", 0, (long long)w->mem.bytes);
}

/* What does not go with a plug-in. */
static void
make_special(struct world *w, int special, int size)
{
    const int groups = special % 4;

    if (w->has_plug_in)
        return;
    w->grouped = groups != CORE_PROP_NO_GROUPS;
    w->max_held = groups > CORE_PROP_GROUPS ? (size_t)groups - 1 : 0;
    if (special & CORE_PROP_AGEING && !w->max_held)
        w->max_ready = (1 + special / 16) * STEP_UNIT;
    w->ages |= w->max_ready != 0;
    if (special & CORE_PROP_BYTES)
        w->max_bytes = BYTES_LEAST + (size_t)size * 3;
}

static void
create(struct world *w, const uint8_t *data, size_t len,
       struct core_prop_report *report)
{
    static const uint32_t masks[] = {UINT32_MAX, 0, 1, 3};

    memset(w, 0, sizeof *w);
    w->report = report;
    report->steps = 0;
    report->text[0] = '\0';
    w->next = data;
    w->end = data + len;
    counting_init(&w->mem);

    const int kind = read_byte(w);
    const int size = read_byte(w);
    const int special = read_byte(w);
    w->secret =
        (struct wq__hash_key){.k0 = 7, .k1 = 8, .mask = masks[kind % 4]};
    w->has_plug_in = kind / 4 % 4 >= 2;
    w->plug_in.order = kind / 4 % 4 == 3 ? MODEL_LIFO : MODEL_FIFO;
    w->plug_in.is_full = kind & CORE_PROP_FULL;
    w->respect = kind & CORE_PROP_RESPECT;
    w->ages = kind & CORE_PROP_AGES;
    w->max_len = kind & CORE_PROP_BOUNDED ? BOUND_LEAST + (size_t)size / 33 : 0;
    w->keys = 8 + size % (MODEL_KEYS - 7);
    make_special(w, special, size);
    begin(w);
}

/* ---- the same in both worlds' words ------------------------------------- */

static wq_err
as_error(enum model_answer answer)
{
    static const wq_err errors[] = {
        [MODEL_OK] = WQ_OK,
        [MODEL_NOTHING] = WQ_ENOTFOUND,
        [MODEL_WRONG_STATE] = WQ_ESTATE,
        [MODEL_SHUT] = WQ_ESHUTDOWN,
        [MODEL_REFUSED] = WQ_ENOMEM,
        [MODEL_FULL] = WQ_EFULL,
        [MODEL_CANNOT] = WQ_ENOTSUP,
    };
    return errors[answer];
}

static wq_added
as_added(enum model_effect effect)
{
    static const wq_added added[] = {
        [MODEL_NEW] = WQ_ADDED_NEW,
        [MODEL_MERGED] = WQ_ADDED_MERGED,
        [MODEL_MADE_DIRTY] = WQ_ADDED_DIRTY,
        [MODEL_RAISED] = WQ_ADDED_RAISED,
        [MODEL_SCHEDULED] = WQ_ADDED_SCHEDULED,
        [MODEL_SOONER] = WQ_ADDED_SOONER,
        [MODEL_LATER] = WQ_ADDED_LATER,
        [MODEL_KEPT] = WQ_ADDED_KEPT,
    };
    return added[effect];
}

static struct wq__how
as_how(const struct model_how *how)
{
    static const wq_if_waiting policies[] = {
        [MODEL_KEEP] = WQ_IF_WAITING_KEEP,
        [MODEL_MERGE] = WQ_IF_WAITING_MERGE,
        [MODEL_REPLACE] = WQ_IF_WAITING_REPLACE,
        [MODEL_DROP] = WQ_IF_WAITING_IGNORE,
    };
    struct wq__how core = {
        .kind = WQ__ADD_NOW,
        .now = how->now,
        .span = how->span,
        .max_wait = how->max_wait,
        .priority = how->priority,
        .backoff = how->backoff,
        .respect = how->respect,
        .displace = how->displace,
        .waiting = policies[how->policy],
    };

    if (how->kind == MODEL_AT)
        core.kind = WQ__ADD_AT;
    if (how->kind == MODEL_DEBOUNCE)
        core.kind = WQ__ADD_DEBOUNCE;
    if (how->kind == MODEL_THROTTLE)
        core.kind = WQ__ADD_THROTTLE;
    return core;
}

/* How long it is from one time to another; not less than nothing. */
static int64_t
age(int64_t from, int64_t to)
{
    if (to <= from)
        return 0;
    return from < 0 && to > INT64_MAX + from ? INT64_MAX : to - from;
}

/* Was memory refused in this operation? Then the core may have failed where the
 * model, which needs none, would not; L6: the model stays as it is. */
static bool
failed_for_memory(struct world *w, wq_err err)
{
    return err == WQ_ENOMEM && w->mem.refused && !w->plug_in.refused;
}

static void
compare(struct world *w, wq_err err, enum model_answer answer)
{
    equal(w, "answer", as_error(answer), err);
}

/* ---- adds --------------------------------------------------------------- */

/* The plain adds know neither groups nor bytes. */
static bool
needs_add_with(const struct world *w)
{
    return w->grouped || w->max_bytes;
}

/* A NUL follows the bytes of every key that is shown. */
static void
check_end(struct world *w, wq_key key)
{
    equal(w, "byte behind a key", 0,
          ((const unsigned char *)key.data)[key.len]);
}

/* Who made room; then they are buried. */
static void
read_victims(struct world *w, wq__ref victim, struct model_victims *out)
{
    out->n = 0;
    while (victim && out->n < MODEL_KEYS) {
        const wq_key key = wq__core_victim_key(&w->core, victim);

        check_end(w, key);
        out->keys[out->n++] = number_of(w, key);
        victim = wq__core_bury(&w->core, victim);
    }
}

/* For how much an add that was refused needs room. One that never fits need not
 * be counted to its end. */
static void
compare_needs(struct world *w, struct model_space expected,
              struct wq__space needs)
{
    if (!model_ever_fits(&w->model, expected)) {
        equal(w, "could it ever fit", false,
              wq__core_ever_fits(&w->core, needs));
        return;
    }
    equal(w, "keys that do not fit", (long long)expected.keys,
          (long long)needs.keys);
    equal(w, "bytes that do not fit", (long long)expected.bytes,
          (long long)needs.bytes);
    equal(w, "is there room", false,
          wq__space_holds(wq__core_room(&w->core), needs));
}

/* An errand looks at its key between operations: to it, a run that an add puts
 * off and asks for again is one run. */
static void
renew_errands(struct world *w, const struct model *before)
{
    for (int i = 0; i < ERRANDS; i++) {
        struct errand *e = &w->errands[i];

        if (!e->is_under_way || !model_is_wanted(before, e->key) ||
            !model_is_wanted(&w->model, e->key))
            continue;
        const struct model_key *old = &before->keys[e->key];
        const struct model_key *new = &w->model.keys[e->key];
        if (old->dirty && e->runs.next == old->runs.next)
            e->runs.next = new->runs.next;
        if (old->ready && e->runs.run == old->runs.run)
            e->runs.run = new->runs.run;
    }
}

static wq_err
add_batch(struct world *w, const struct model_how *how,
          struct model_pick *expected, size_t n)
{
    static struct model  before;
    const struct wq__how core_how = as_how(how);
    struct wq__pick      picks[MODEL_BATCH] = {{0}};
    wq_key               keys[MODEL_BATCH];
    struct wq__space     needs = {SIZE_MAX, SIZE_MAX};
    struct model_victims victims;
    wq__ref              first = 0;

    for (size_t i = 0; i < n; i++) {
        keys[i] = key_of(expected[i].key);
        picks[i] = (struct wq__pick){
            .hash = hash_of(w, expected[i].key),
            .skip = expected[i].skip,
            .at_once = expected[i].at_once,
            .at = expected[i].at,
            .group = group_name(expected[i].key),
            .group_hash = group_hash(w, expected[i].key),
        };
    }
    const wq_err err =
        wq__core_add_with(&w->core, &core_how, keys, picks, n, &needs, &first);

    if (failed_for_memory(w, err))
        return err;
    read_victims(w, first, &victims);
    before = w->model;
    const struct model_space space = model_needs(&w->model, expected, n);
    compare(w, err, model_add_with(&w->model, how, expected, n, &victims));
    equal(w, "did the right keys make room", true, victims.are_right);
    if (err == WQ_EFULL)
        compare_needs(w, space, needs);
    for (size_t i = 0; !err && i < n; i++)
        equal(w, "what the add did", as_added(expected[i].did), picks[i].added);
    renew_errands(w, &before);
    return err;
}

static wq_err
perform_plain_add(struct world *w, enum operation op, int n)
{
    const uint32_t    hash = hash_of(w, n);
    const bool        admit = op == ADMIT;
    wq_added          what = WQ_ADDED_NEW;
    enum model_effect did = MODEL_NEW;

    if (needs_add_with(w))
        return add_batch(w,
                         &(struct model_how){.kind = MODEL_NOW, .now = w->now},
                         &(struct model_pick){.key = n}, 1);
    const wq_err err = (admit ? wq__core_admit : wq__core_add)(
        &w->core, key_of(n), hash, w->now, &what);

    if (failed_for_memory(w, err))
        return err;
    compare(w, err,
            (admit ? model_admit : model_add)(&w->model, n, w->now, &did));
    if (!err)
        equal(w, "what the add did", as_added(did), what);
    return err;
}

static wq_err
perform_add_after(struct world *w, int n, int64_t at, bool backoff)
{
    const struct model_how how = {
        .kind = MODEL_AT, .now = w->now, .backoff = backoff};
    struct model_pick    pick = {.key = n, .at = at};
    struct model_victims nobody = {.n = 0};
    wq_added             what = WQ_ADDED_NEW;

    if (needs_add_with(w))
        return add_batch(w, &how, &pick, 1);
    const wq_err err = wq__core_add_after(&w->core, key_of(n), hash_of(w, n),
                                          w->now, at, backoff, &what);

    if (failed_for_memory(w, err))
        return err;
    compare(w, err, model_add_with(&w->model, &how, &pick, 1, &nobody));
    if (!err)
        equal(w, "what the add did", as_added(pick.did), what);
    return err;
}

static wq_err
perform_add_respecting(struct world *w, int key)
{
    const struct model_how how = {
        .kind = MODEL_NOW, .now = w->now, .respect = true};
    struct model_pick pick = {.key = key};

    return add_batch(w, &how, &pick, 1);
}

/* All priorities are possible, some are frequent. */
static int
priority_of(int byte)
{
    return byte < 200 ? priorities[byte % PRIORITIES] : byte - 220;
}

/* The bytes of an add: what kind, which policy, who makes room, ... */
static struct model_how
read_how(const struct world *w, const struct trace *t)
{
    struct model_how how = {
        .kind = (enum model_kind)(t->a % 4),
        .policy = (enum model_policy)(t->a / 4 % 4),
        .now = w->now,
        .priority = priority_of(t->b),
        .displace = !w->has_plug_in && t->a / 16 % 2,
        .backoff = t->a / 32 % 2,
        .respect = t->a / 64 % 2,
    };

    if (how.kind == MODEL_DEBOUNCE || how.kind == MODEL_THROTTLE) {
        how.policy = MODEL_KEEP; /* callers cannot say otherwise */
        how.span = t->c < 250 ? (1 + t->c % 6) * STEP_UNIT : INT64_MAX;
    }
    if (how.kind == MODEL_DEBOUNCE)
        how.max_wait = t->c / 8 % 4 * 4 * STEP_UNIT;
    how.backoff &= how.kind == MODEL_AT;
    how.respect &= how.kind == MODEL_NOW || how.kind == MODEL_AT;
    return how;
}

/* One key, now, with a priority and nothing else, has a way of its own. */
static bool
is_urgent(const struct world *w, const struct trace *t,
          const struct model_how *how)
{
    return t->n == 1 && t->c % 2 && !needs_add_with(w) &&
           how->kind == MODEL_NOW && how->policy == MODEL_KEEP &&
           !how->displace && !how->respect;
}

static wq_err
perform_add_urgent(struct world *w, const struct model_how *how, int n)
{
    struct model_pick    pick = {.key = n};
    struct model_victims nobody = {.n = 0};
    wq_added             what = WQ_ADDED_NEW;
    const wq_err err = wq__core_add_urgent(&w->core, key_of(n), hash_of(w, n),
                                           w->now, how->priority, &what);

    if (failed_for_memory(w, err))
        return err;
    compare(w, err, model_add_with(&w->model, how, &pick, 1, &nobody));
    if (!err)
        equal(w, "what the add did", as_added(pick.did), what);
    return err;
}

/* O-50: several keys, perhaps one of them twice; of a batch that failed (a
 * backoff) some may run at once, and one may be left alone. */
static wq_err
perform_add_with(struct world *w, const struct trace *t)
{
    const struct model_how how = read_how(w, t);
    struct model_pick      picks[MODEL_BATCH];

    if (is_urgent(w, t, &how))
        return perform_add_urgent(w, &how, t->keys[0]);
    for (int i = 0; i < t->n; i++) {
        const int delay = (t->c + i) % 8;
        picks[i] = (struct model_pick){
            .key = t->keys[i],
            .skip = t->a / 128 % 2 && i == 1,
            .at_once = how.backoff && delay == 0,
            .at = w->now + delay * STEP_UNIT,
        };
    }
    return add_batch(w, &how, picks, (size_t)t->n);
}

/* ---- taking back, and time ---------------------------------------------- */

static wq_err
perform_remove(struct world *w, int n)
{
    const wq_err err =
        wq__core_remove(&w->core, key_of(n), hash_of(w, n), w->now);

    compare(w, err, model_remove(&w->model, n, w->now));
    return err;
}

static wq_err
perform_cancel(struct world *w, int n)
{
    const wq_err err =
        wq__core_cancel(&w->core, key_of(n), hash_of(w, n), w->now);

    compare(w, err, model_cancel(&w->model, n, w->now));
    return err;
}

static wq_err
perform_remove_late(struct world *w, int n, bool on)
{
    const wq_err err =
        wq__core_remove_at_done(&w->core, key_of(n), hash_of(w, n), on);

    compare(w, err, model_remove_at_done(&w->model, n, on));
    return err;
}

/* At the end of time there is no later, and what is left alone for ever is not
 * any more: that is not asked. */
static wq_err
perform_pass(struct world *w, int64_t now)
{
    if (now == INT64_MAX && model_throttles(&w->model))
        now--;
    wq__core_promote(&w->core, now);
    model_pass(&w->model, now, WQ__OFFER_AGAIN_NS);
    return WQ_OK;
}

/* ---- waiting for work, and pausing -------------------------------------- */

static wq_err
perform_flush(struct world *w)
{
    const int i = model_begin_flush(&w->model);

    if (i >= 0)
        w->flushes[i] = (struct flush){
            .is_under_way = true,
            .turn = wq__core_begin_flush(&w->core),
        };
    return WQ_OK;
}

/* O-81: when the runs are done that it waits for, and not before. Of many
 * flushes some may finish later, but not later than when there is no work. */
static void
compare_flushes(struct world *w)
{
    for (int i = 0; i < MODEL_FLUSHES; i++) {
        struct flush *f = &w->flushes[i];

        if (!f->is_under_way)
            continue;
        const bool is_over = model_flush_is_over(&w->model, i);
        const bool must_be = w->model.flushes[i].is_exact
                                 ? is_over
                                 : is_over && model_idle(&w->model);
        const bool has_finished = wq__core_has_flushed(&w->core, f->turn);
        check(w, is_over || !has_finished, "a flush finished too early", 0, 1);
        check(w, has_finished || !must_be, "a flush has not finished", 1, 0);
        if (has_finished) {
            f->is_under_way = false;
            model_end_flush(&w->model, i);
        }
    }
}

static wq_err
perform_errand(struct world *w, int n)
{
    const struct model_key *k = &w->model.keys[n];

    for (int i = 0; i < ERRANDS; i++)
        if (!w->errands[i].is_under_way) {
            w->errands[i] = (struct errand){
                .is_under_way = true,
                .key = n,
                .core = wq__core_errand(&w->core, key_of(n), hash_of(w, n)),
                .runs = {.run = k->ready || k->held ? k->runs.run : 0,
                         .next = k->dirty ? k->runs.next : 0},
            };
            break;
        }
    return WQ_OK;
}

/* O-83 */
static void
compare_errands(struct world *w)
{
    for (int i = 0; i < ERRANDS; i++) {
        struct errand *e = &w->errands[i];

        if (!e->is_under_way)
            continue;
        const bool is_served = wq__core_is_served(&w->core, key_of(e->key),
                                                  hash_of(w, e->key), &e->core);
        equal(w, "is an errand served", !model_owes(&w->model, e->key, e->runs),
              is_served);
        e->is_under_way = !is_served;
    }
}

static wq_err
perform_pause(struct world *w, bool paused)
{
    wq__core_pause(&w->core, paused);
    model_pause(&w->model, paused);
    return WQ_OK;
}

/* ---- get and done ------------------------------------------------------- */

/* The thread that gets key number `n`. */
static uint32_t
thread_of(int n)
{
    return (uint32_t)(1 + n % THREADS);
}

/* What the item shows of key number `n`, which the model has handed out. */
static void
compare_item(struct world *w, wq_item *item, int n)
{
    const struct model_key *k = &w->model.keys[n];

    equal(w, "priority of an item", k->held_priority, item->priority);
    check(w, item->fence > w->fences[n], "fence must grow beyond",
          (long long)w->fences[n], (long long)item->fence);
    if (w->ages)
        equal(w, "latency", age(k->since, w->now), wq__core_latency(item));
    check_end(w, item->key);
    wq__core_note_holder(item, thread_of(n));
    w->fences[n] = item->fence;
    w->items[n] = item;
}

static wq_err
perform_get(struct world *w)
{
    wq_item     *item = NULL;
    int          expected = -1;
    const wq_err err = wq__core_get(&w->core, w->now, &item);

    if (failed_for_memory(w, err))
        return err;
    compare(w, err, model_get(&w->model, w->now, &expected));
    if (err || expected < 0)
        return err;
    const int got = number_of(w, item->key);
    equal(w, "key handed out", expected, got);
    if (got >= 0)
        compare_item(w, item, got);
    return err;
}

/* The `i`th held key, counted around; -1 when none is held. */
static int
held_key(const struct world *w, int i)
{
    const size_t held = model_held(&w->model);

    if (held == 0)
        return -1;
    i %= (int)held;
    for (int n = 0;; n++)
        if (w->model.keys[n].held && i-- == 0)
            return n;
}

static wq_err
finish(struct world *w, int n, wq_err err, int64_t work)
{
    const int64_t got = w->model.keys[n].got;

    compare(w, err, model_done(&w->model, n, w->now));
    if (!err) {
        equal(w, "time of work", w->ages ? age(got, w->now) : -1, work);
        w->stale[w->stales++ % STALE_MAX] = w->items[n];
        w->items[n] = NULL;
    }
    return err;
}

static wq_err
perform_done(struct world *w, int which)
{
    const int n = held_key(w, which);
    int64_t   work = -1;

    if (n < 0)
        return WQ_OK;
    const wq_err err = wq__core_done(&w->core, w->items[n], w->now, &work);
    return finish(w, n, err, work);
}

static wq_err
perform_done_key(struct world *w, int n)
{
    int64_t      work = -1;
    const wq_err err =
        wq__core_done_key(&w->core, key_of(n), hash_of(w, n), w->now, &work);

    return finish(w, n, err, work);
}

/* One that is not in use for another loan; NULL: there is none. */
static wq_item *
stale_item(const struct world *w, int which)
{
    if (w->stales == 0)
        return NULL;
    const size_t i =
        (size_t)which % (w->stales < STALE_MAX ? w->stales : STALE_MAX);
    for (int n = 0; n < w->keys; n++)
        if (w->items[n] == w->stale[i])
            return NULL;
    return w->stale[i];
}

static wq_err
expect_not_lent(struct world *w, const wq_item *item)
{
    int64_t      work;
    const wq_err err = wq__core_done(&w->core, item, w->now, &work);

    equal(w, "answer", WQ_ESTATE, err);
    return err;
}

/* O-06: an item that was done is refused, until its memory is used for another
 * loan: then to say done would end that. */
static wq_err
perform_done_again(struct world *w, int which)
{
    const wq_item *item = stale_item(w, which);
    return item ? expect_not_lent(w, item) : WQ_OK;
}

static wq_err
perform_done_copy(struct world *w, int which)
{
    const int n = held_key(w, which);

    if (n < 0)
        return WQ_OK;
    const wq_item copy = *w->items[n];
    return expect_not_lent(w, &copy);
}

static wq_err
perform_done_random(struct world *w, int low, int high)
{
    const wq_item foreign = {
        .key = key_of(0),
        .slot = (uint32_t)low | (uint32_t)high << 8,
    };
    return expect_not_lent(w, &foreign);
}

/* O-60: some items, and perhaps one that spoils it. */
static wq_err
perform_done_many(struct world *w, int which, int how)
{
    enum { ITEMS = 4 };
    const size_t held = model_held(&w->model);
    const size_t n = held < ITEMS - 1 ? held : ITEMS - 1;
    wq_item     *items[ITEMS], copy, *stale = stale_item(w, which);
    int          keys[ITEMS];
    size_t       all = n;
    wq_err       err = WQ_OK;

    if (n == 0)
        return WQ_OK;
    for (size_t i = 0; i < n; i++) {
        keys[i] = held_key(w, which + (int)i);
        items[i] = w->items[keys[i]];
    }
    copy = *items[0];
    if (how % 4 == 1)
        items[all++] = items[which % (int)n];
    else if (how % 4 == 2)
        items[all++] = &copy;
    else if (how % 4 == 3 && stale)
        items[all++] = stale;
    equal(w, "all are on loan", all == n,
          wq__core_are_lent(&w->core, items, all));
    for (size_t i = 0; all == n && i < n && !err; i++) {
        int64_t work = -1;
        err = wq__core_done(&w->core, items[i], w->now, &work);
        err = finish(w, keys[i], err, work);
    }
    return err;
}

/* ---- looking ------------------------------------------------------------ */

static unsigned
states_of(const struct world *w, int n)
{
    const struct model_key *k = &w->model.keys[n];
    unsigned                states = 0;

    states |= model_is_ready(&w->model, n) ? WQ_STATE_READY : 0;
    states |= k->held ? WQ_STATE_HELD : 0;
    states |= k->dirty ? WQ_STATE_DIRTY : 0;
    states |= k->waiting ? WQ_STATE_WAITING : 0;
    states |= k->waiting && k->backoff ? WQ_STATE_BACKOFF : 0;
    return states;
}

static int64_t
until(const struct world *w, int64_t at)
{
    return at == INT64_MAX ? INT64_MAX : age(w->now, at);
}

/* O-32: all that is said of key number `n`. */
static void
compare_info(struct world *w, int n, const wq_key_info *info)
{
    const struct model_key *k = &w->model.keys[n];
    const unsigned          states = states_of(w, n);
    const bool              wanted = states & (WQ_STATE_READY | WQ_STATE_DIRTY);

    equal(w, "states of a key", states, info->states);
    equal(w, "priority of a key", model_priority(&w->model, n), info->priority);
    equal(w, "how long a key is READY",
          w->ages && wanted ? age(k->since, w->now) : -1, info->ready_ns);
    equal(w, "how long a key is held",
          w->ages && k->held ? age(k->got, w->now) : -1, info->held_ns);
    equal(w, "how long a key waits on", k->waiting ? until(w, k->at) : -1,
          info->wait_ns);
    equal(w, "fence of a key", k->held ? (long long)w->fences[n] : 0,
          (long long)info->fence);
}

static void
compare_keys(struct world *w)
{
    for (int n = 0; n < w->keys; n++) {
        wq_key_info info;

        wq__core_look(&w->core, key_of(n), hash_of(w, n), w->now, &info);
        compare_info(w, n, &info);
        const unsigned inside =
            wq__core_states(&w->core, key_of(n), hash_of(w, n));
        equal(w, "WAITING, inside", w->model.keys[n].waiting,
              (inside & WQ__WAITING) != 0);
        equal(w, "BACKOFF, inside", (info.states & WQ_STATE_BACKOFF) != 0,
              (inside & WQ__BACKOFF) != 0);
        equal(w, "is a key held by its thread", w->model.keys[n].held,
              wq__core_is_held_by(&w->core, key_of(n), hash_of(w, n),
                                  thread_of(n)));
        equal(w, "is a key held by another thread", false,
              wq__core_is_held_by(&w->core, key_of(n), hash_of(w, n),
                                  thread_of(n) + 1));
    }
}

static void
compare_threads(struct world *w)
{
    for (uint32_t thread = 0; thread <= THREADS; thread++) {
        bool holds_any = false;

        for (int n = 0; n < w->keys; n++)
            holds_any |= w->model.keys[n].held && thread_of(n) == thread;
        equal(w, "does a thread hold any key", holds_any,
              wq__core_holds_any(&w->core, thread));
    }
}

/* O-31 */
static void
compare_depths(struct world *w)
{
    wq_depth depths[2 * MODEL_KEYS + 1];
    size_t   n = 0, all;

    wq__core_depths(&w->core, depths, 2 * MODEL_KEYS + 1, &n);
    equal(w, "priorities in use", (long long)model_levels(&w->model),
          (long long)n);
    for (size_t i = 0; i < n; i++) {
        equal(w, "keys of a priority",
              model_depth(&w->model, depths[i].priority),
              (long long)depths[i].keys);
        for (size_t k = 0; k < i; k++)
            check(w, depths[k].priority != depths[i].priority,
                  "a priority is named twice", 0, depths[i].priority);
    }
    wq__core_depths(&w->core, NULL, 0, &all);
    equal(w, "priorities that are counted only", (long long)n, (long long)all);
}

/* O-30 */
static void
compare_counts(struct world *w)
{
    const struct model *m = &w->model;
    int64_t             sum = 0, longest = 0;
    wq_stats            counts = {0};

    for (int n = 0; n < w->keys; n++) {
        const int64_t held = m->keys[n].held ? age(m->keys[n].got, w->now) : 0;
        sum += held;
        longest = held > longest ? held : longest;
    }
    wq__core_stats(&w->core, w->now, &counts);
    equal(w, "READY keys", (long long)m->ready_len, (long long)counts.ready);
    equal(w, "HELD keys", (long long)model_held(m), (long long)counts.held);
    equal(w, "DIRTY keys", (long long)model_dirty(m), (long long)counts.dirty);
    equal(w, "WAITING keys", (long long)model_waiting(m),
          (long long)counts.waiting);
    equal(w, "time to the first deadline", until(w, model_first_deadline(m)),
          counts.next_ns);
    equal(w, "unfinished", w->ages ? sum : -1, counts.unfinished_ns);
    equal(w, "longest", w->ages ? longest : -1, counts.longest_ns);
    equal(w, "shut down", m->shut, counts.shutting_down);
    equal(w, "adds", (long long)m->adds, (long long)counts.adds);
    equal(w, "merged", (long long)m->merged, (long long)counts.merged);
    equal(w, "gets", (long long)m->gets, (long long)counts.gets);
    equal(w, "dones", (long long)m->dones, (long long)counts.dones);
    equal(w, "removed", (long long)m->removed, (long long)counts.removed);
    equal(w, "displaced", (long long)m->displaced, (long long)counts.displaced);
    equal(w, "deferred", (long long)m->deferred, (long long)counts.deferred);
    equal(w, "drops", (long long)m->drops, (long long)counts.drops);
    equal(w, "overdue", (long long)m->overdue, (long long)counts.overdue);
    equal(w, "paused", m->paused, counts.paused);
    equal(w, "bytes", w->max_bytes ? (long long)model_bytes(m) : 0,
          (long long)counts.bytes);
    equal(w, "groups", w->grouped ? (long long)model_groups(m) : 0,
          (long long)counts.groups);
    equal(w, "offered", (long long)model_offers(m), (long long)counts.offered);
}

static void
compare_numbers(struct world *w)
{
    const struct wq__core *c = &w->core;
    const struct model    *m = &w->model;
    const size_t           known = model_known(m);

    compare_counts(w);
    equal(w, "len", (long long)m->ready_len, (long long)wq__core_len(c));
    equal(w, "keys", (long long)known, (long long)c->index.len);
    equal(w, "room", (long long)(w->max_len ? w->max_len - known : SIZE_MAX),
          (long long)wq__core_room(c).keys);
    equal(w, "room in bytes",
          (long long)(w->max_bytes ? w->max_bytes - model_bytes(m) : SIZE_MAX),
          (long long)wq__core_room(c).bytes);
    equal(w, "offers", (long long)model_offers(m),
          (long long)wq__core_offers(c));
    equal(w, "idle", model_idle(m), wq__core_idle(c));
    equal(w, "next event", model_next_event(m), wq__core_next_deadline(c));
    equal(w, "empty", m->ready_len == 0 && model_waiting(m) == 0,
          wq__core_empty(c));
    if (w->has_plug_in) {
        const uint64_t raises = w->plug_in.is_full ? m->raises : 0;
        equal(w, "touches", (long long)(m->touches + m->raises - raises),
              (long long)w->plug_in.touches);
        equal(w, "raises", (long long)raises, (long long)w->plug_in.raises);
    }
}

static void
audit(struct world *w)
{
    const char *broken = wq__core_check(&w->core);
    if (broken)
        (void)check(w, false, broken, 0, 1);
}

/* ---- walks -------------------------------------------------------------- */

enum { ALL_FACETS = 31 };

/* Go on by `budget` slots; false: that was the last one. */
static bool
walk_on(struct world *w, wq__ref *cursor, size_t budget, unsigned states,
        int *seen)
{
    wq_key      key;
    wq_key_info info;

    while (
        wq__core_walk(&w->core, cursor, &budget, states, w->now, &key, &info)) {
        const int n = number_of(w, key);
        if (!check(w, n >= 0, "key met on a walk", 0, n))
            return false;
        check_end(w, key);
        compare_info(w, n, &info);
        seen[n]++;
    }
    return budget == 0 && !w->report->text[0];
}

/* O-33: while nothing happens, every key with one of the states is met once. */
static void
walk_all(struct world *w, size_t budget, unsigned states)
{
    int     seen[MODEL_KEYS] = {0};
    wq__ref cursor = 0;

    while (walk_on(w, &cursor, budget, states, seen))
        ;
    for (int n = 0; n < w->keys; n++)
        equal(w, "visits of a key", (states_of(w, n) & states) != 0, seen[n]);
}

static void
note_who_stays(struct world *w)
{
    for (int n = 0; w->walk.under_way && n < w->keys; n++)
        w->walk.stayed[n] &= states_of(w, n) != 0;
}

static void
begin_walk(struct world *w)
{
    w->walk = (struct walk){.under_way = true};
    for (int n = 0; n < w->keys; n++)
        w->walk.stayed[n] = true;
    note_who_stays(w);
}

/* O-33: those that were there all the while were met once. */
static void
end_walk(struct world *w)
{
    for (int n = 0; n < w->keys; n++)
        if (w->walk.stayed[n])
            equal(w, "visits of a key that stayed", 1, w->walk.seen[n]);
    w->walk.under_way = false;
}

static wq_err
perform_walk(struct world *w, int how)
{
    const uint64_t calls = w->mem.calls;

    if (how % 4 == 0) {
        const unsigned states = how < 64 ? 1U << how / 4 % 5 : ALL_FACETS;
        walk_all(w, 1 + (size_t)how / 8 % 3, states);
    } else {
        if (!w->walk.under_way)
            begin_walk(w);
        if (!walk_on(w, &w->walk.cursor, 1 + (size_t)how / 4 % 8, ALL_FACETS,
                     w->walk.seen))
            end_walk(w);
    }
    equal(w, "allocations of a walk", 0, (long long)(w->mem.calls - calls));
    return WQ_OK;
}

/* ---- steps -------------------------------------------------------------- */

static int64_t
extreme(int which)
{
    return extremes[which % EXTREMES];
}

static void
read_batch(struct world *w, struct trace *t)
{
    t->a = read_byte(w);
    t->b = read_byte(w);
    t->c = read_byte(w);
    const int n = read_byte(w);
    t->n = n % 16 < 8 ? 1 : 1 + n % MODEL_BATCH;
    for (int i = 0; i < t->n; i++)
        t->keys[i] = read_key(w);
}

/* What the operation is given. */
static void
read_arguments(struct world *w, struct trace *t)
{
    switch (t->op) {
    case ADD:
    case ADMIT:
    case ADD_RESPECT:
    case DONE_KEY:
    case REMOVE:
    case CANCEL:
    case ERRAND:
        t->a = read_key(w);
        break;
    case ADD_BACKOFF:
    case ADD_AFTER:
    case ADD_AT:
    case REMOVE_LATE:
        t->a = read_key(w);
        t->b = read_byte(w);
        break;
    case ADD_WITH:
        read_batch(w, t);
        break;
    case DONE_RANDOM:
    case DONE_MANY:
        t->a = read_byte(w);
        t->b = read_byte(w);
        break;
    case GET:
    case SHUT_DOWN:
    case RENEW:
    case DROP:
    case FLUSH:
    case OPERATIONS:
        break;
    case PAUSE:
    case HASTEN:
    case PASS:
    case PASS_TO:
    case DONE:
    case DONE_AGAIN:
    case DONE_COPY:
    case NO_MEMORY:
    case NO_PUSH:
    case WALK:
        t->a = read_byte(w);
        break;
    }
}

static wq_err
perform_add(struct world *w, const struct trace *t)
{
    switch (t->op) {
    case ADD_RESPECT:
        return perform_add_respecting(w, t->a);
    case ADD_BACKOFF:
    case ADD_AFTER:
        return perform_add_after(w, t->a, w->now + t->b % 8 * STEP_UNIT,
                                 t->op == ADD_BACKOFF);
    case ADD_AT:
        return perform_add_after(w, t->a, extreme(t->b), false);
    case ADD_WITH:
        return perform_add_with(w, t);
    default:
        return perform_plain_add(w, t->op, t->a);
    }
}

static wq_err
perform_done_somehow(struct world *w, const struct trace *t)
{
    switch (t->op) {
    case DONE_KEY:
        return perform_done_key(w, t->a);
    case DONE_AGAIN:
        return perform_done_again(w, t->a);
    case DONE_COPY:
        return perform_done_copy(w, t->a);
    case DONE_RANDOM:
        return perform_done_random(w, t->a, t->b);
    case DONE_MANY:
        return perform_done_many(w, t->a, t->b);
    default:
        return perform_done(w, t->a);
    }
}

static wq_err
perform_shut_down(struct world *w)
{
    wq__core_shut_down(&w->core);
    model_shut_down(&w->model);
    return WQ_OK;
}

static wq_err
perform_hasten(struct world *w, bool backoffs)
{
    (void)perform_shut_down(w);
    wq__core_hasten(&w->core, w->now, backoffs);
    model_hasten(&w->model, w->now, WQ__OFFER_AGAIN_NS, backoffs);
    return WQ_OK;
}

static wq_err
perform(struct world *w, const struct trace *t)
{
    switch (t->op) {
    case ADD:
    case ADMIT:
    case ADD_RESPECT:
    case ADD_BACKOFF:
    case ADD_AFTER:
    case ADD_AT:
    case ADD_WITH:
        return perform_add(w, t);
    case REMOVE:
        return perform_remove(w, t->a);
    case CANCEL:
        return perform_cancel(w, t->a);
    case PASS:
        w->now += t->a % 8 * STEP_UNIT;
        return perform_pass(w, w->now);
    case PASS_TO:
        return perform_pass(w, extreme(t->a));
    case GET:
        return perform_get(w);
    case DONE:
    case DONE_KEY:
    case DONE_AGAIN:
    case DONE_COPY:
    case DONE_RANDOM:
    case DONE_MANY:
        return perform_done_somehow(w, t);
    case WALK:
        return perform_walk(w, t->a);
    case NO_MEMORY:
        counting_fail(&w->mem, (uint64_t)(t->a / 2 % 8 + 1),
                      t->a % 2 ? COUNTING_ONCE : COUNTING_FROM_NOW);
        return WQ_OK;
    case NO_PUSH:
        if (w->has_plug_in)
            w->plug_in.refuse = w->model.refuse = t->a % 4 + 1;
        return WQ_OK;
    case FLUSH:
        return perform_flush(w);
    case ERRAND:
        return perform_errand(w, t->a);
    case REMOVE_LATE:
        return perform_remove_late(w, t->a, t->b % 4 != 0);
    case PAUSE:
        return perform_pause(w, t->a % 4 == 0);
    case HASTEN:
        return perform_hasten(w, t->a % 2);
    case SHUT_DOWN:
        return perform_shut_down(w);
    case RENEW:
        end(w);
        begin(w);
        return WQ_OK;
    case DROP:
        wq__core_drop_waiting(&w->core);
        model_drop_waiting(&w->model);
        return WQ_OK;
    case OPERATIONS:
        break;
    }
    return WQ_OK;
}

static void
step(struct world *w)
{
    struct trace t = {.op = decode((uint8_t)read_byte(w))};

    read_arguments(w, &t);
    t.now = w->now;
    w->plug_in.refused = false;
    w->traces[w->report->steps++ % TRACE] = t;
    t.answer = perform(w, &t);
    if (t.op != NO_MEMORY) { /* it lasts for one operation */
        counting_heal(&w->mem);
        w->mem.refused = 0;
    }
    w->traces[(w->report->steps - 1) % TRACE] = t;
    note_who_stays(w);
    compare_numbers(w);
    compare_flushes(w);
    compare_errands(w);
    if (w->report->steps % 8 == 0) {
        compare_keys(w);
        compare_threads(w);
        compare_depths(w);
    }
    audit(w);
}

/* Everything comes out, in the model's order, and nothing is left. */
static void
take_all_out(struct world *w)
{
    w->plug_in.refuse = w->model.refuse = 0;
    counting_heal(&w->mem);
    w->mem.refused = 0;
    (void)perform_pause(w, false);
    while (!w->report->text[0] && !model_idle(&w->model)) {
        if (model_offers(&w->model))
            (void)perform_get(w);
        else
            (void)perform_done(w, 0);
        compare_flushes(w);
        compare_errands(w);
    }
    compare_numbers(w);
    audit(w);
}

int
core_prop(const uint8_t *data, size_t len, struct core_prop_report *report)
{
    static struct world w; /* too large for a small stack */

    create(&w, data, len, report);
    while (w.next < w.end && !report->text[0])
        step(&w);
    if (!report->text[0])
        take_all_out(&w);
    end(&w);
    return report->text[0] ? -1 : 0;
}
