/* SPDX-License-Identifier: MIT */
/* loans.c: items on loan to workers; see loans.h. */
#include "core/loans.h"

#include <string.h>

#include "core/mem.h"

void
wq__loans_init(struct wq__loans *l, const wq_allocator *mem)
{
    *l = (struct wq__loans){
        .mem = mem,
        .fresh = WQ__LOANS_FIRST,
        .limit = WQ__LOANS_FIRST,
    };
}

static size_t
block_len(size_t block)
{
    return (size_t)WQ__LOANS_FIRST << block;
}

void
wq__loans_fini(struct wq__loans *l)
{
    for (size_t i = 0; i < WQ__LOANS_BLOCKS; i++)
        wq__mem_free(l->mem, l->blocks[i], block_len(i) * sizeof *l->blocks[i]);
    wq__loans_init(l, l->mem);
}

/* A new block doubles the range of numbers. */
wq_err
wq__loans_grow(struct wq__loans *l)
{
    size_t i = 0;

    while (i < WQ__LOANS_BLOCKS && l->blocks[i])
        i++;
    if (i + 1 >= WQ__LOANS_BLOCKS)
        return WQ_ENOMEM; /* 32 bits have no more numbers */
    l->blocks[i] = wq__mem_array(l->mem, block_len(i), sizeof *l->blocks[i]);
    if (!l->blocks[i])
        return WQ_ENOMEM;
    l->limit = 2 * l->limit;
    return WQ_OK;
}

void
wq__loans_note_age(struct wq__loans *l, struct wq__loan *loan, int64_t now)
{
    loan->got = now;
    loan->newer = 0;
    loan->older = l->newest;
    *(l->newest ? &wq__loans_at(l, l->newest)->newer : &l->oldest) =
        loan->item.loan;
    l->newest = loan->item.loan;
    l->got_sum += (uint64_t)now;
}

void
wq__loans_forget_age(struct wq__loans *l, const struct wq__loan *loan)
{
    *(loan->older ? &wq__loans_at(l, loan->older)->newer : &l->oldest) =
        loan->newer;
    *(loan->newer ? &wq__loans_at(l, loan->newer)->older : &l->newest) =
        loan->older;
    l->got_sum -= (uint64_t)loan->got;
}
