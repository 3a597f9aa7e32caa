/* SPDX-License-Identifier: MIT */
/* probe.h: which calls did a limiter get?
 *
 * A limiter that answers one delay for every key, and counts its calls:
 *
 *     struct probe p = {.delay_ns = 5};
 *     ... WQ_CONFIG(.limiter = wq_limiter_create(&probe_ops, &p)) ...
 *     assert_int_equal(p.whens, 1);
 *
 * Threads: any number may call it; delay_ns is set before.
 */
#ifndef WQ_TEST_PROBE_H
#define WQ_TEST_PROBE_H

#include <stdatomic.h>

#include <wq/limiter.h>

struct probe {
    int64_t                   delay_ns; /* what it answers */
    atomic_int                whens, forgets, undos, destroys;
    _Atomic(size_t)           key_len; /* of the key of the last call */
    _Atomic(const wq_clock *) clock;   /* of the last set_clock() */
    wq_queue
        *calls; /* when() calls this queue once, with the key; NULL: none */
};

/* All functions. num_requeues() is whens minus undos, for every key. */
extern const wq_limiter_ops probe_ops;

/* wq_open() with this probe, which begins anew, as the limiter. */
wq_err probe_open(struct probe *p, const char *url, wq_queue **out);

#endif
