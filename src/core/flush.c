/* SPDX-License-Identifier: MIT */
/* flush.c: epochs and their unfinished runs; see flush.h. */
#include "core/flush.h"

static size_t
unfinished_of_closed(const struct wq__flush *f)
{
    size_t sum = 0;

    for (uint64_t epoch = f->first; epoch != f->epoch; epoch++)
        sum += f->unfinished[epoch % WQ__EPOCHS];
    return sum;
}

static void
close_epoch(struct wq__flush *f, size_t unfinished)
{
    const size_t of_open = unfinished - unfinished_of_closed(f);

    f->unfinished[f->epoch % WQ__EPOCHS] = of_open;
    f->epoch++;
    f->close_next = false;
}

/* Epochs finish in order. When one has finished, another can be closed. */
static void
finish_epochs(struct wq__flush *f, size_t unfinished)
{
    while (f->first != f->epoch && f->unfinished[f->first % WQ__EPOCHS] == 0) {
        f->first++;
        if (f->close_next)
            close_epoch(f, unfinished);
    }
}

uint64_t
wq__flush_begin(struct wq__flush *f, size_t unfinished)
{
    const uint64_t epoch = f->epoch;

    if (unfinished == unfinished_of_closed(f))
        return epoch - 1; /* the open epoch has none */
    if (epoch - f->first < WQ__EPOCHS - 1)
        close_epoch(f, unfinished);
    else
        f->close_next = true;
    return epoch;
}

void
wq__flush_end_run(struct wq__flush *f, unsigned mark, size_t unfinished)
{
    if (mark == wq__flush_mark(f))
        return;
    assert(f->unfinished[mark] > 0);
    f->unfinished[mark]--;
    finish_epochs(f, unfinished);
}
