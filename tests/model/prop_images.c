/* SPDX-License-Identifier: MIT */
/* prop_images.c: is a core the same after all its keys have left it as images
 * and come back? See prop_world.h. */
#include "model/prop_world.h"

#include <stdlib.h>
#include <string.h>

#include "core/inside.h"
#include "support/image_fields.h"

/* Keys by number, in the order in which they come back. */
struct order {
    int    keys[MODEL_KEYS];
    size_t len;
};

struct images {
    struct wq__image of[MODEL_KEYS]; /* by key */
};

static void
append(struct world *w, struct order *order, int n)
{
    if (prop_check(w, n >= 0 && order->len < MODEL_KEYS, "key in order", 0, n))
        order->keys[order->len++] = n;
}

/* READY keys, as the core would hand them out within a priority. */
static void
append_ready(struct world *w, struct order *order)
{
    const struct wq__levels *l = &w->core.ready.levels;

    for (uint32_t i = 0; i < l->fresh; i++)
        for (wq__ref ref = i && !l->at[i].holders ? 0 : l->at[i].first; ref;
             ref = wq__core_rec(&w->core, ref)->next)
            append(w, order,
                   prop_number(w, wq__rec_key(wq__core_rec(&w->core, ref))));
}

/* HELD keys by fence, then the others, the last first: of them the heap knows
 * the order. */
static void
append_others(struct world *w, struct order *order, const struct images *images)
{
    for (uint64_t least = 0;;) {
        int next = -1;

        for (int n = 0; n < w->keys; n++)
            if (images->of[n].states & WQ__HELD &&
                images->of[n].fence > least &&
                (next < 0 || images->of[n].fence < images->of[next].fence))
                next = n;
        if (next < 0)
            break;
        least = images->of[next].fence;
        append(w, order, next);
    }
    for (int n = w->keys; n-- > 0;)
        if (images->of[n].states &&
            !(images->of[n].states & (WQ__READY | WQ__HELD)))
            append(w, order, n);
}

static void
compare_images(struct world *w, const struct wq__image *a,
               const struct wq__image *b)
{
    for (size_t i = 0; i < sizeof image_fields / sizeof *image_fields; i++)
        prop_equal(w, image_fields[i].name, field_value(&image_fields[i], a),
                   field_value(&image_fields[i], b));
}

/* L6: without memory nothing has changed, and a second try succeeds. */
static void
retry_import(struct world *w, int n, const struct wq__image *image)
{
    struct wq__image now;

    prop_check(w, w->mem.refused != 0, "refused allocations", 1, 0);
    prop_audit(w);
    wq__core_export(&w->core, prop_key(n), prop_hash(w, n), &now);
    prop_equal(w, "states without memory", 0, now.states);
    prop_heal(w);
    prop_equal(w, "import with memory", WQ_OK,
               wq__core_import(&w->core, prop_key(n), prop_hash(w, n), image,
                               &w->items[n]));
}

static void
import(struct world *w, int n, const struct wq__image *image)
{
    struct wq__image again;
    const wq_err err = wq__core_import(&w->core, prop_key(n), prop_hash(w, n),
                                       image, &w->items[n]);

    if (err) {
        prop_equal(w, "import", WQ_ENOMEM, err);
        retry_import(w, n, image);
    }
    wq__core_export(&w->core, prop_key(n), prop_hash(w, n), &again);
    compare_images(w, image, &again);
    prop_check(w,
               w->items[n] ==
                   wq__core_find_item(&w->core, prop_key(n), prop_hash(w, n)),
               "item of an import", 0, 1);
}

static void
compare_with_an_empty_core(struct world *w)
{
    const struct wq__core *c = &w->core;

    prop_audit(w);
    prop_equal(w, "records after all left", 0, (long long)c->recs.live);
    prop_equal(w, "loans after all left", 0, (long long)c->loans.live);
    prop_equal(w, "entries after all left", 0, (long long)c->waiting.len);
    prop_equal(w, "throttle states after all left", 0,
               (long long)c->throttle_states.live);
    prop_equal(w, "levels after all left", 1, c->ready.levels.used);
}

void
prop_rebuild(struct world *w)
{
    const struct wq__numbers numbers = wq__core_numbers(&w->core);
    static struct images     images;
    struct order             order = {.len = 0};

    for (int n = 0; n < w->keys; n++) {
        wq__core_export(&w->core, prop_key(n), prop_hash(w, n), &images.of[n]);
        prop_equal(w, "is an image possible", true,
                   wq__image_is_possible(&images.of[n]));
    }
    append_ready(w, &order);
    append_others(w, &order, &images);
    prop_equal(w, "keys that leave", (long long)w->core.index.len,
               (long long)order.len);
    for (int n = 0; n < w->keys; n++)
        wq__core_expel(&w->core, prop_key(n), prop_hash(w, n));
    compare_with_an_empty_core(w);

    /* Lower than those of the images: imports raise them. */
    wq__core_set_numbers(&w->core, (struct wq__numbers){0});
    for (size_t i = 0; i < order.len; i++)
        import(w, order.keys[i], &images.of[order.keys[i]]);
    prop_audit(w);
    wq__core_set_numbers(&w->core, numbers);
    w->walk.under_way = false; /* records have moved */
}
