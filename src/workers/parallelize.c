/* SPDX-License-Identifier: MIT */
/* parallelize.c: how does work run in parallel without a queue?
 *
 * Chunks are numbered; a thread that is free takes the next number. The calling
 * thread takes part, so that the work is done even if no other thread can be
 * started.
 *
 * Cost: one atomic addition for each chunk.
 */
#include <stdatomic.h>

#include "core/mem.h"
#include "error/error.h"
#include "port/race.h"
#include "port/thread.h"
#include "workers/config.h"
#include "workers/pool.h"

struct job {
    void (*work)(void *ctx, size_t piece);
    bool (*cancelled)(void *ctx); /* or NULL */
    void       *ctx;
    size_t      pieces;
    size_t      chunk;
    size_t      chunks;
    wq_workers *pool; /* the caller is one of its threads; or NULL */
    /* The next chunk; relaxed: starting and joining the threads orders
     * everything else. */
    _Atomic size_t next;
    atomic_bool    cut_off; /* a piece was not begun; likewise */
};

/* False: cancelled. */
static bool
do_chunk(struct job *job, size_t begin)
{
    const size_t left = job->pieces - begin;
    const size_t end = begin + (left < job->chunk ? left : job->chunk);

    for (size_t piece = begin; piece < end; piece++) {
        if (job->cancelled && job->cancelled(job->ctx)) {
            atomic_store_explicit(&job->cut_off, true, memory_order_relaxed);
            return false;
        }
        job->work(job->ctx, piece);
    }
    return true;
}

static void
take_part(struct job *job)
{
    size_t i;

    do
        i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
    while (i < job->chunks && do_chunk(job, i * job->chunk));
}

static void
help(void *arg)
{
    struct job *job = arg;

    wq__workers_current = job->pool;
    take_part(job);
}

/* Start up to `wanted` helpers, as many as the system allows. */
static size_t
start_helpers(struct job *job, struct wq__thread *helpers, size_t wanted)
{
    size_t n = 0;

    while (n < wanted && !wq__thread_start(&helpers[n], help, job, ""))
        n++;
    return n;
}

static void
do_job(struct job *job, size_t workers, const wq_allocator *mem)
{
    const size_t       most = workers < job->chunks ? workers : job->chunks;
    struct wq__thread *helpers =
        most > 1 ? wq__mem_array(mem, most - 1, sizeof *helpers) : NULL;
    const size_t n = helpers ? start_helpers(job, helpers, most - 1) : 0;

    take_part(job);
    for (size_t i = 0; i < n; i++)
        wq__thread_join(&helpers[i]);
    wq__mem_free(mem, helpers, (most - 1) * sizeof *helpers);
}

wq_err
wq_parallelize(int workers, size_t                          pieces,
               void (*work)(void *ctx, size_t piece), void *ctx,
               const wq_parallel_options *options)
{
    struct wq__parallel_options checked;

    if (workers < 1)
        return wq_fail(WQ_EINVAL,
                       "wq_parallelize: workers is %d: at least 1 is needed",
                       workers);
    if (!work)
        return wq_fail(WQ_EINVAL, "wq_parallelize: work is NULL");
    const wq_err err = wq__parallel_options_read(options, &checked);
    if (err || !pieces)
        return err;

    const size_t chunk = checked.user.chunk;
    struct job   job = {
          .work = work,
          .cancelled = checked.user.cancelled,
          .ctx = ctx,
          .pieces = pieces,
          .chunk = chunk,
          .chunks = pieces / chunk + (pieces % chunk != 0),
          .pool = wq__workers_current,
    };
    wq__race_disable_checking(&job.cut_off, sizeof job.cut_off);
    do_job(&job, (size_t)workers, &checked.allocator);
    wq__race_enable_checking(&job.cut_off, sizeof job.cut_off);
    return atomic_load(&job.cut_off) ? WQ_EINTERRUPTED : WQ_OK;
}
