/* SPDX-License-Identifier: MIT */
/* prop_world.c: which world do the first bytes stand for, and what do reports
 * say about it? See prop_world.h. */
#include "model/prop_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/words.h"
#include "support/core_kind.h"

enum {
    KEY_BYTES = 400,  /* the longest key: beyond WQ__KEY_INLINE */
    BOUND_LEAST = 3,  /* the smallest max_len */
    BYTES_LEAST = 50, /* the smallest max_bytes */
};

/* ---- keys --------------------------------------------------------------- */

/* The bytes of key number `n`: every seventh is long, long ones differ only at
 * their end, and each short one begins like the next shorter. */
wq_key
prop_key(int n)
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

int
prop_number(const struct world *w, wq_key key)
{
    for (int n = 0; n < w->keys; n++) {
        const wq_key k = prop_key(n);
        if (k.len == key.len && memcmp(k.data, key.data, k.len) == 0)
            return n;
    }
    return -1;
}

uint32_t
prop_hash(const struct world *w, int n)
{
    return wq__core_hash(&w->core, prop_key(n));
}

/* Groups are a part of their keys' bytes; that of every fifth key is empty. */
int
prop_group(int n)
{
    return n % MODEL_GROUPS;
}

uint32_t
prop_thread(int n)
{
    return (uint32_t)(1 + n % PROP_THREADS);
}

/* ---- times -------------------------------------------------------------- */

int64_t
prop_age(int64_t from, int64_t to)
{
    if (to <= from)
        return 0;
    return from < 0 && to > INT64_MAX + from ? INT64_MAX : to - from;
}

int64_t
prop_extreme(int which)
{
    static const int64_t extremes[] = {
        INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX,
    };
    enum { EXTREMES = sizeof extremes / sizeof extremes[0] };

    return extremes[which % EXTREMES];
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
    const struct trace *t = &w->traces[step % PROP_TRACE];
    char                text[160];

    (void)snprintf(text, sizeof text, "  step %zu at %" PRId64 ": %s %d %d %d",
                   step, t->now, t->name, t->a, t->b, t->c);
    say(w->report, text);
    for (int i = 0; i < t->n; i++) {
        (void)snprintf(text, sizeof text, "%s%d", i ? "," : " keys ",
                       t->keys[i]);
        say(w->report, text);
    }
    (void)snprintf(text, sizeof text, " -> %s\n", wq_err_name(t->answer));
    say(w->report, text);
}

bool
prop_check(struct world *w, bool ok, const char *what, long long expected,
           long long got)
{
    const size_t steps = w->report->steps;
    char         line[200];

    if (ok || w->report->text[0])
        return ok;
    (void)snprintf(line, sizeof line, "step %zu: %s: expected %lld, got %lld\n",
                   steps - 1, what, expected, got);
    say(w->report, line);
    for (size_t i = steps > PROP_TRACE ? steps - PROP_TRACE : 0; i < steps; i++)
        say_trace(w, i);
    return false;
}

void
prop_equal(struct world *w, const char *what, long long expected, long long got)
{
    (void)prop_check(w, expected == got, what, expected, got);
}

void
prop_compare(struct world *w, wq_err err, enum model_answer answer)
{
    prop_equal(w, "answer", model_error(answer), err);
}

void
prop_audit(struct world *w)
{
    const char *broken = wq__core_check(&w->core);
    if (broken)
        (void)prop_check(w, false, broken, 0, 1);
}

void
prop_check_end(struct world *w, wq_key key)
{
    prop_equal(w, "byte behind a key", 0,
               ((const unsigned char *)key.data)[key.len]);
}

bool
prop_failed_for_memory(const struct world *w, wq_err err)
{
    return err == WQ_ENOMEM && w->mem.refused && !w->plug_in.refused;
}

void
prop_heal(struct world *w)
{
    counting_heal(&w->mem);
    w->mem.refused = 0;
}

/* ---- life --------------------------------------------------------------- */

static void
set_up_core(struct world *w)
{
    w->core.respect = w->respect;
    w->core.max_len = w->max_len;
    core_set_kind(&w->core,
                  &(struct core_kind){w->ages, w->grouped, w->max_held,
                                      w->max_ready, w->max_bytes});
}

static void
set_up_model(struct world *w)
{
    struct model *m = &w->model;

    model_init(m, w->plug_in.newest_first ? MODEL_LIFO : MODEL_FIFO);
    m->is_flat = w->has_plug_in && !w->plug_in.is_full;
    m->respect = w->respect;
    m->max_len = w->max_len;
    m->max_bytes = w->max_bytes;
    m->gives = !m->is_flat;
    m->grouped = w->grouped;
    m->max_held = w->max_held;
    m->max_ready = w->max_ready;
    for (int n = 0; n < MODEL_KEYS; n++) {
        m->lens[n] = prop_key(n).len;
        m->groups[n] = prop_group(n);
    }
}

void
prop_begin(struct world *w)
{
    const struct plug_in plug_in = {
        .newest_first = w->plug_in.newest_first,
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

void
prop_end(struct world *w)
{
    wq__core_fini(&w->core);
    prop_equal(w, "bytes that stay", 0, (long long)w->mem.bytes);
}

int
prop_read_byte(struct world *w)
{
    return w->next < w->end ? *w->next++ : 0;
}

/* What does not go with a plug-in, and in part not with images. */
static void
make_special(struct world *w, int special, int size)
{
    const int groups = special % 4;

    if (w->has_plug_in)
        return;
    if (special & CORE_PROP_BYTES)
        w->max_bytes = BYTES_LEAST + (size_t)size * 3;
    if (w->rebuilt)
        return;
    w->grouped = groups != CORE_PROP_NO_GROUPS;
    w->max_held = groups > CORE_PROP_GROUPS ? (size_t)groups - 1 : 0;
    if (special & CORE_PROP_AGEING && !w->max_held)
        w->max_ready = (1 + special / 16) * PROP_STEP_UNIT;
    w->ages |= w->max_ready != 0;
}

void
prop_create(struct world *w, const uint8_t *data, size_t len,
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

    const int kind = prop_read_byte(w);
    const int size = prop_read_byte(w);
    const int special = prop_read_byte(w);
    w->secret =
        (struct wq__hash_key){.k0 = 7, .k1 = 8, .mask = masks[kind % 4]};
    w->has_plug_in = kind / 4 % 4 >= 2;
    w->rebuilt = kind / 4 % 4 == 1;
    w->plug_in.newest_first = kind / 4 % 4 == 3;
    w->plug_in.is_full = kind & CORE_PROP_FULL;
    w->respect = kind & CORE_PROP_RESPECT;
    w->ages = kind & CORE_PROP_AGES;
    w->max_len = kind & CORE_PROP_BOUNDED ? BOUND_LEAST + (size_t)size / 33 : 0;
    w->keys = 8 + size % (MODEL_KEYS - 7);
    make_special(w, special, size);
    prop_begin(w);
}
