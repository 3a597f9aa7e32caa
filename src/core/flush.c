/* SPDX-License-Identifier: MIT */
/* flush.c: turns, and what is owed of them; see flush.h. */
#include "core/flush.h"

static size_t
owed_of_closed(const struct wq__flush *f)
{
    size_t sum = 0;

    for (uint64_t turn = f->first; turn != f->turn; turn++)
        sum += f->owed[turn % WQ__TURNS];
    return sum;
}

static void
close_turn(struct wq__flush *f, size_t owed)
{
    const size_t of_open = owed - owed_of_closed(f);

    f->owed[f->turn % WQ__TURNS] = of_open;
    f->turn++;
    f->close_next = false;
}

/* Turns finish in order. One that finishes makes room to close another. */
static void
finish_turns(struct wq__flush *f, size_t owed)
{
    while (f->first != f->turn && f->owed[f->first % WQ__TURNS] == 0) {
        f->first++;
        if (f->close_next)
            close_turn(f, owed);
    }
}

uint64_t
wq__flush_begin(struct wq__flush *f, size_t owed)
{
    const uint64_t turn = f->turn;

    if (owed == owed_of_closed(f))
        return turn - 1; /* the open turn owes nothing */
    if (turn - f->first < WQ__TURNS - 1)
        close_turn(f, owed);
    else
        f->close_next = true;
    return turn;
}

void
wq__flush_end_run(struct wq__flush *f, unsigned mark, size_t owed)
{
    if (mark == wq__flush_mark(f))
        return;
    assert(f->owed[mark] > 0);
    f->owed[mark]--;
    finish_turns(f, owed);
}
