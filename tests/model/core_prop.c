/* SPDX-License-Identifier: MIT */
/* core_prop.c: the core held against the model; see core_prop.h. */
#include "model/core_prop.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "model/model.h"
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
    OPERATIONS,
};

/* The weights are what the cases in fuzz/corpus/core were written with: change
 * one and those mean something else. */
static const struct {
    const char *name;
    unsigned    weight; /* of 256 bytes, how many mean this */
} operations[OPERATIONS] = {
    [ADD] = {"add", 41},
    [ADD_BACKOFF] = {"add_backoff", 12},
    [ADMIT] = {"admit", 6},
    [ADD_AFTER] = {"add_after", 28},
    [ADD_RESPECT] = {"add_respecting", 6},
    [ADD_AT] = {"add_at", 8},
    [PASS] = {"pass", 14},
    [PASS_TO] = {"pass_to", 2},
    [GET] = {"get", 48},
    [DONE] = {"done", 44},
    [DONE_KEY] = {"done_key", 14},
    [DONE_AGAIN] = {"done_again", 8},
    [DONE_COPY] = {"done_copy", 4},
    [DONE_RANDOM] = {"done_random", 4},
    [NO_MEMORY] = {"no_memory", 8},
    [NO_PUSH] = {"no_push", 4},
    [SHUT_DOWN] = {"shut_down", 1},
    [RENEW] = {"renew", 2},
    [DROP] = {"drop_waiting", 2},
};

static const int64_t extremes[] = {
    INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX,
};
enum { EXTREMES = sizeof extremes / sizeof extremes[0] };

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
    KEY_BYTES = 400, /* the longest key: beyond WQ__KEY_INLINE */
    TRACE = 40,      /* operations a report shows */
    STEP_UNIT = 10,  /* times are multiples of this, so that many are equal */
    STALE_MAX = 8,   /* items remembered after done */
};

/* The ready order as a plug-in: an array of keys, from one end or the other. */
struct plug_in {
    enum model_order order;
    wq_key           keys[MODEL_KEYS];
    size_t           len;
    int              refuse; /* as the model's */
};

struct trace {
    enum operation op;
    int            a, b; /* what it was given */
    wq_err         answer;
};

struct world {
    const uint8_t *next, *end; /* the bytes left to read */

    struct counting     mem;
    struct wq__core     core;
    struct wq__hash_key secret;
    struct plug_in      plug_in;
    wq_order            order;
    bool                has_plug_in;

    bool         respect;
    struct model model;
    int          keys; /* how many of the model's are used */
    int64_t      now;

    wq_item *items[MODEL_KEYS];  /* by key, while held */
    uint64_t fences[MODEL_KEYS]; /* by key, the last one seen */
    wq_item *stale[STALE_MAX];
    size_t   stales;

    bool         plug_in_refused; /* during this operation */
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

/* ---- the plug-in -------------------------------------------------------- */

static struct world *the_world; /* the plug-in tells it of refusals */

static wq_err
plug_in_push(void *self, wq_key key, int priority)
{
    struct plug_in *p = self;

    (void)priority;
    if (p->refuse > 0 && --p->refuse == 0) {
        the_world->plug_in_refused = true;
        return WQ_ENOMEM;
    }
    p->keys[p->len++] = key;
    return WQ_OK;
}

static bool
plug_in_pop(void *self, wq_key *out)
{
    struct plug_in *p = self;

    if (p->len == 0)
        return false;
    p->len--;
    if (p->order == MODEL_LIFO) {
        *out = p->keys[p->len];
    } else {
        *out = p->keys[0];
        memmove(p->keys, p->keys + 1, p->len * sizeof p->keys[0]);
    }
    return true;
}

static size_t
plug_in_len(void *self)
{
    return ((const struct plug_in *)self)->len;
}

/* ---- reports ------------------------------------------------------------ */

static void
say(struct core_prop_report *r, const char *text)
{
    const size_t used = strlen(r->text);
    (void)snprintf(r->text + used, sizeof r->text - used, "%s", text);
}

static void
say_traces(struct world *w)
{
    const size_t steps = w->report->steps;
    char         line[100];

    for (size_t i = steps > TRACE ? steps - TRACE : 0; i < steps; i++) {
        const struct trace *t = &w->traces[i % TRACE];
        (void)snprintf(line, sizeof line, "  step %zu: %s %d %d -> %s\n", i,
                       operations[t->op].name, t->a, t->b,
                       wq_err_name(t->answer));
        say(w->report, line);
    }
}

/* Note the first failure of a run; true if `ok`. */
static bool
check(struct world *w, bool ok, const char *what, long long expected,
      long long got)
{
    char line[200];

    if (ok || w->report->text[0])
        return ok;
    (void)snprintf(line, sizeof line, "step %zu: %s: expected %lld, got %lld\n",
                   w->report->steps - 1, what, expected, got);
    say(w->report, line);
    say_traces(w);
    return false;
}

static void
equal(struct world *w, const char *what, long long expected, long long got)
{
    (void)check(w, expected == got, what, expected, got);
}

/* ---- life --------------------------------------------------------------- */

static void
begin(struct world *w)
{
    const enum model_order order = w->plug_in.order;

    w->plug_in = (struct plug_in){.order = order};
    w->order = (wq_order){
        .size = sizeof w->order,
        .self = &w->plug_in,
        .push = plug_in_push,
        .pop = plug_in_pop,
        .len = plug_in_len,
    };
    wq__core_init(&w->core, w->secret, w->has_plug_in ? &w->order : NULL,
                  &w->mem.allocator);
    model_init(&w->model, order);
    w->core.respect = w->model.respect = w->respect;
    memset(w->items, 0, sizeof w->items);
    memset(w->fences, 0, sizeof w->fences);
    w->stales = 0;
}

static void
end(struct world *w)
{
    wq__core_fini(&w->core);
    equal(w, "bytes that stay", 0, (long long)w->mem.bytes);
}

static void
create(struct world *w, const uint8_t *data, size_t len,
       struct core_prop_report *report)
{
    static const uint32_t masks[] = {UINT32_MAX, 0, 1, 3};

    memset(w, 0, sizeof *w);
    the_world = w;
    w->report = report;
    report->steps = 0;
    report->text[0] = '\0';
    w->next = data;
    w->end = data + len;
    counting_init(&w->mem);

    const int kind = read_byte(w);
    w->secret =
        (struct wq__hash_key){.k0 = 7, .k1 = 8, .mask = masks[kind % 4]};
    w->has_plug_in = kind / 4 % 4 >= 2;
    w->plug_in.order = kind / 4 % 4 == 3 ? MODEL_LIFO : MODEL_FIFO;
    w->respect = kind / 16 % 2;
    w->keys = 8 + read_byte(w) % (MODEL_KEYS - 7);
    begin(w);
}

/* ---- performing --------------------------------------------------------- */

/* The same answers in the core's words. */
static wq_err
as_error(enum model_answer answer)
{
    static const wq_err errors[] = {
        [MODEL_OK] = WQ_OK,           [MODEL_NOTHING] = WQ_ENOTFOUND,
        [MODEL_NOT_HELD] = WQ_ESTATE, [MODEL_SHUT] = WQ_ESHUTDOWN,
        [MODEL_REFUSED] = WQ_ENOMEM,
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
        [MODEL_SCHEDULED] = WQ_ADDED_SCHEDULED,
        [MODEL_SOONER] = WQ_ADDED_SOONER,
        [MODEL_LATER] = WQ_ADDED_KEPT,
    };
    return added[effect];
}

/* Was memory refused in this operation? Then the core may have failed where the
 * model, which needs none, would not; L6: the model stays as it is. */
static bool
failed_for_memory(struct world *w, wq_err err)
{
    return err == WQ_ENOMEM && w->mem.refused && !w->plug_in_refused;
}

static void
compare(struct world *w, wq_err err, enum model_answer answer)
{
    equal(w, "answer", as_error(answer), err);
}

static wq_err
add_respecting(struct world *w, wq_key key, uint32_t hash, wq_added *what)
{
    const struct wq__how how = {.kind = WQ__ADD_NOW, .respect = true};
    struct wq__pick      pick = {.hash = hash};
    const wq_err err = wq__core_add_with(&w->core, &how, &key, &pick, 1, NULL);

    *what = pick.added;
    return err;
}

static wq_err
add_to_core(struct world *w, enum operation op, wq_key key, int64_t at,
            wq_added *what)
{
    const uint32_t hash = wq__core_hash(&w->core, key);

    if (op == ADD)
        return wq__core_add(&w->core, key, hash, 0, what);
    if (op == ADMIT)
        return wq__core_admit(&w->core, key, hash, 0, what);
    if (op == ADD_RESPECT)
        return add_respecting(w, key, hash, what);
    return wq__core_add_after(&w->core, key, hash, 0, at, op == ADD_BACKOFF,
                              what);
}

static enum model_answer
add_to_model(struct world *w, enum operation op, int n, int64_t at,
             enum model_effect *did)
{
    if (op == ADD)
        return model_add(&w->model, n, did);
    if (op == ADMIT)
        return model_admit(&w->model, n, did);
    if (op == ADD_RESPECT)
        return model_add_respecting(&w->model, n, did);
    return model_add_after(&w->model, n, at, op == ADD_BACKOFF, did);
}

static wq_err
perform_add(struct world *w, enum operation op, int n, int64_t at)
{
    wq_added          what = WQ_ADDED_NEW;
    enum model_effect did = MODEL_NEW;
    const wq_err      err = add_to_core(w, op, key_of(n), at, &what);

    if (failed_for_memory(w, err))
        return err;
    const enum model_answer answer = add_to_model(w, op, n, at, &did);
    compare(w, err, answer);
    if (!err)
        equal(w, "what the add did", as_added(did), what);
    return err;
}

static wq_err
perform_pass(struct world *w, int64_t now)
{
    wq__core_promote(&w->core, now);
    model_pass(&w->model, now, WQ__OFFER_AGAIN_NS);
    return WQ_OK;
}

static wq_err
perform_get(struct world *w)
{
    wq_item     *item = NULL;
    int          expected = -1;
    const wq_err err = wq__core_get(&w->core, 0, &item);

    if (failed_for_memory(w, err))
        return err;
    compare(w, err, model_get(&w->model, &expected));
    if (err || expected < 0)
        return err;
    const int got = number_of(w, item->key);
    equal(w, "key handed out", expected, got);
    if (got < 0)
        return err;
    check(w, item->fence > w->fences[got], "fence must grow beyond",
          (long long)w->fences[got], (long long)item->fence);
    w->fences[got] = item->fence;
    w->items[got] = item;
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
finish(struct world *w, int n, wq_err err)
{
    compare(w, err, model_done(&w->model, n));
    if (!err) {
        w->stale[w->stales++ % STALE_MAX] = w->items[n];
        w->items[n] = NULL;
    }
    return err;
}

static wq_err
perform_done(struct world *w, int which)
{
    const int n = held_key(w, which);

    if (n < 0)
        return WQ_OK;
    return finish(w, n, wq__core_done(&w->core, w->items[n], 0, NULL));
}

static wq_err
perform_done_key(struct world *w, int n)
{
    const wq_key   key = key_of(n);
    const uint32_t hash = wq__core_hash(&w->core, key);

    return finish(w, n, wq__core_done_key(&w->core, key, hash, 0, NULL));
}

/* O-06: an item that was done is refused, until its memory is used for another
 * loan: then to say done would end that. */
static wq_err
perform_done_again(struct world *w, int which)
{
    if (w->stales == 0)
        return WQ_OK;
    const size_t i =
        (size_t)which % (w->stales < STALE_MAX ? w->stales : STALE_MAX);
    for (int n = 0; n < w->keys; n++)
        if (w->items[n] == w->stale[i])
            return WQ_OK;
    const wq_err err = wq__core_done(&w->core, w->stale[i], 0, NULL);
    equal(w, "answer", WQ_ESTATE, err);
    return err;
}

static wq_err
perform_done_copy(struct world *w, int which)
{
    const int n = held_key(w, which);

    if (n < 0)
        return WQ_OK;
    const wq_item copy = *w->items[n];
    const wq_err  err = wq__core_done(&w->core, &copy, 0, NULL);
    equal(w, "answer", WQ_ESTATE, err);
    return err;
}

static wq_err
perform_done_random(struct world *w, int low, int high)
{
    const wq_item foreign = {
        .key = key_of(0),
        .slot = (uint32_t)low | (uint32_t)high << 8,
    };
    const wq_err err = wq__core_done(&w->core, &foreign, 0, NULL);
    equal(w, "answer", WQ_ESTATE, err);
    return err;
}

static int64_t
extreme(int which)
{
    return extremes[which % EXTREMES];
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
        t->a = read_key(w);
        break;
    case ADD_BACKOFF:
    case ADD_AFTER:
    case ADD_AT:
        t->a = read_key(w);
        t->b = read_byte(w);
        break;
    case DONE_RANDOM:
        t->a = read_byte(w);
        t->b = read_byte(w);
        break;
    case GET:
    case SHUT_DOWN:
    case RENEW:
    case DROP:
    case OPERATIONS:
        break;
    case PASS:
    case PASS_TO:
    case DONE:
    case DONE_AGAIN:
    case DONE_COPY:
    case NO_MEMORY:
    case NO_PUSH:
        t->a = read_byte(w);
        break;
    }
}

static wq_err
perform(struct world *w, const struct trace *t)
{
    switch (t->op) {
    case ADD:
    case ADMIT:
    case ADD_RESPECT:
        return perform_add(w, t->op, t->a, 0);
    case ADD_BACKOFF:
    case ADD_AFTER:
        return perform_add(w, t->op, t->a, w->now + t->b % 8 * STEP_UNIT);
    case ADD_AT:
        return perform_add(w, t->op, t->a, extreme(t->b));
    case PASS:
        w->now += t->a % 8 * STEP_UNIT;
        return perform_pass(w, w->now);
    case PASS_TO:
        return perform_pass(w, extreme(t->a));
    case GET:
        return perform_get(w);
    case DONE:
        return perform_done(w, t->a);
    case DONE_KEY:
        return perform_done_key(w, t->a);
    case DONE_AGAIN:
        return perform_done_again(w, t->a);
    case DONE_COPY:
        return perform_done_copy(w, t->a);
    case DONE_RANDOM:
        return perform_done_random(w, t->a, t->b);
    case NO_MEMORY:
        counting_fail(&w->mem, (uint64_t)(t->a / 2 % 4 + 1),
                      t->a % 2 ? COUNTING_ONCE : COUNTING_FROM_NOW);
        return WQ_OK;
    case NO_PUSH:
        if (w->has_plug_in)
            w->plug_in.refuse = w->model.refuse = t->a % 4 + 1;
        return WQ_OK;
    case SHUT_DOWN:
        wq__core_shut_down(&w->core);
        model_shut_down(&w->model);
        return WQ_OK;
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

/* ---- looking ------------------------------------------------------------ */

static void
compare_numbers(struct world *w)
{
    const struct wq__core *c = &w->core;
    const struct model    *m = &w->model;

    equal(w, "READY keys", (long long)m->ready_len, (long long)wq__core_len(c));
    equal(w, "HELD keys", (long long)model_held(m), (long long)c->held);
    equal(w, "DIRTY keys", (long long)model_dirty(m), (long long)c->dirty);
    equal(w, "WAITING keys", (long long)model_waiting(m),
          (long long)c->waiting.len);
    equal(w, "idle", model_idle(m), wq__core_idle(c));
    equal(w, "next deadline", model_next_deadline(m),
          wq__core_next_deadline(c));
    equal(w, "shut down", m->shut, c->shutting_down);
    equal(w, "empty", m->ready_len == 0 && model_waiting(m) == 0,
          wq__core_empty(c));
}

/* What the core says of every key. */
static void
compare_facets(struct world *w)
{
    for (int n = 0; n < w->keys; n++) {
        const struct model_key *k = &w->model.keys[n];
        const wq_key            key = key_of(n);
        unsigned                expected = 0;

        expected |= model_is_ready(&w->model, n) ? WQ__READY : 0;
        expected |= k->held ? WQ__HELD : 0;
        expected |= k->dirty ? WQ__DIRTY : 0;
        expected |= k->waiting ? WQ__WAITING : 0;
        expected |= k->waiting && k->backoff ? WQ__BACKOFF : 0;
        equal(w, "facets of a key", expected,
              wq__core_facets(&w->core, key, wq__core_hash(&w->core, key)));
    }
}

static void
audit(struct world *w)
{
    const char *broken = wq__core_check(&w->core);
    if (broken)
        (void)check(w, false, broken, 0, 1);
}

static void
step(struct world *w)
{
    struct trace t = {.op = decode((uint8_t)read_byte(w))};

    read_arguments(w, &t);
    w->plug_in_refused = false;
    const wq_err err = perform(w, &t);
    if (t.op != NO_MEMORY) { /* it lasts for one operation */
        counting_heal(&w->mem);
        w->mem.refused = 0;
    }
    t.answer = err;
    w->traces[w->report->steps++ % TRACE] = t;
    compare_numbers(w);
    if (w->report->steps % 8 == 0)
        compare_facets(w);
    audit(w);
}

/* Everything comes out, in the model's order, and nothing is left. */
static void
take_all_out(struct world *w)
{
    w->plug_in.refuse = w->model.refuse = 0;
    counting_heal(&w->mem);
    w->mem.refused = 0;
    while (!w->report->text[0] && !model_idle(&w->model)) {
        if (w->model.ready_len)
            (void)perform_get(w);
        else
            (void)perform_done(w, 0);
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
