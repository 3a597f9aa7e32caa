/* SPDX-License-Identifier: MIT */
/* radix.c: sorting deadlines; see radix.h. */
#include "core/radix.h"

enum {
    BUCKETS = 256,
    FEW = WQ_DEBUG ? 3 : 24, /* 3: rare paths become daily ones */
};

/* Deadlines as numbers without a sign, in the same order. */
static uint64_t
bits_of(const struct wq__wait *e, bool by_arrival)
{
    return by_arrival ? e->seq : (uint64_t)e->at ^ (UINT64_C(1) << 63);
}

static void
sort_few(struct wq__wait *entries, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const struct wq__wait entry = entries[i];
        size_t                at = i;

        for (; at && wq__wait_before(&entry, &entries[at - 1]); at--)
            entries[at] = entries[at - 1];
        entries[at] = entry;
    }
}

/* By which eight bits to divide. */
struct digit {
    bool     by_arrival;
    unsigned shift;
};

static unsigned
digit_of(const struct wq__wait *e, struct digit d)
{
    return (unsigned)(bits_of(e, d.by_arrival) >> d.shift) & (BUCKETS - 1);
}

/* False: all are equal, which arrival numbers are not. */
static bool
choose_digit(const struct wq__wait *entries, size_t n, struct digit *d)
{
    uint64_t at = 0, seq = 0;

    for (size_t i = 1; i < n; i++) {
        at |= bits_of(&entries[i], false) ^ bits_of(&entries[0], false);
        seq |= entries[i].seq ^ entries[0].seq;
    }
    const uint64_t differ = at ? at : seq;
    if (!differ)
        return false;
    const unsigned highest = 63 - (unsigned)__builtin_clzll(differ);
    *d = (struct digit){!at, highest > 7 ? highest - 7 : 0};
    return true;
}

/* Divide into buckets; the i-th ends before ends[i]. `next`: the first place of
 * each that has not its entry yet. Entries are moved in cycles: each goes to its
 * bucket, and the one that was there goes on. */
static void
divide(struct wq__wait *entries, size_t n, struct digit d,
       uint32_t ends[BUCKETS])
{
    uint32_t next[BUCKETS] = {0}, sum = 0;

    for (size_t i = 0; i < n; i++)
        next[digit_of(&entries[i], d)]++;
    for (size_t b = 0; b < BUCKETS; b++) {
        const uint32_t len = next[b];
        next[b] = sum;
        sum += len;
        ends[b] = sum;
    }
    for (size_t b = 0; b < BUCKETS; b++)
        while (next[b] < ends[b]) {
            struct wq__wait entry = entries[next[b]];
            for (unsigned to; (to = digit_of(&entry, d)) != b;) {
                struct wq__wait      *place = &entries[next[to]++];
                const struct wq__wait other = *place;
                *place = entry;
                entry = other;
            }
            entries[next[b]++] = entry;
        }
}

void
wq__radix_sort(struct wq__wait *entries, size_t n)
{
    uint32_t     ends[BUCKETS];
    size_t       begin = 0;
    struct digit d;

    if (n <= FEW) {
        sort_few(entries, n);
        return;
    }
    if (!choose_digit(entries, n, &d))
        return;
    divide(entries, n, d, ends);
    for (size_t b = 0; b < BUCKETS; b++) {
        wq__radix_sort(entries + begin, ends[b] - begin);
        begin = ends[b];
    }
}
