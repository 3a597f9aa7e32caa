/* SPDX-License-Identifier: MIT */
/* catalogue.c: which sides and rows are there, and which targets has wq? */
#include "driver.h"

#define GO "not built; scripts/bench.sh builds it with a Go toolchain"

const struct peer peers[] = {
    {"wq", "bench_wq", NULL, "not built"},
    {"client-go", "bench_go", "client-go", GO},
    {"controller-runtime", "bench_go", "controller-runtime", GO},
    {"glib", "bench_glib", NULL, "not built; needs the headers of GLib"},
    {"naive", "bench_naive", NULL, "not built"},
    {"floor", "bench_floor", NULL, "not built"},
    {"ring", "bench_ring", NULL, "not built"},
    {"futex", "bench_futex", NULL, "not built; needs Linux"},
};
const size_t n_peers = sizeof peers / sizeof peers[0];

static const struct shown shown[KINDS][MOST_SHOWN] = {
    [PER_KEY] = {{"ns", "", "ns", 1}},
    [TIMES] = {{"p50_ns", ", p50", "us", 1000},
               {"p99_ns", ", p99", "us", 1000},
               {"max_ns", ", max", "us", 1000}},
    [BYTES] = {{"bytes", "", "bytes", 1},
               {"rss_bytes", ", process", "bytes", 1}},
    [PROCESSOR] = {{"cpu_us", "", "us", 1}},
    [LONGEST] = {{"max_ns", "", "us", 1000}},
};

const struct shown *
shown_of(size_t row, size_t i)
{
    if (i == MOST_SHOWN || !shown[rows[row].kind][i].figure)
        return NULL;
    return &shown[rows[row].kind][i];
}

const struct row rows[] = {
    {"cycle", ONE_THREAD, PER_KEY, .title = "add, get, done, 1 k keys in turn"},
    {"cycle-beside", ONE_THREAD, PER_KEY,
     .title = "the same beside a thread that sleeps"},
    {"metrics", ONE_THREAD, PER_KEY, .title = "cycle, metrics on"},
    {"fill-1k", ONE_THREAD, PER_KEY, .title = "fill 1 k, then drain"},
    {"fill-100k", ONE_THREAD, PER_KEY, .title = "fill 100 k, then drain"},
    {"fill-1m", ONE_THREAD, PER_KEY, .title = "fill 1 M, then drain"},
    {"fill-10m", ONE_THREAD, PER_KEY, .title = "fill 10 M, then drain"},
    {"growth", ONE_THREAD, LONGEST, .title = "longest add of 10 M"},
    {"long-200", ONE_THREAD, PER_KEY, .title = "cycle, keys of 200 bytes"},
    {"long-4k", ONE_THREAD, PER_KEY, .title = "cycle, keys of 4 KiB"},
    {"queues", ONE_THREAD, PER_KEY,
     .title = "10 k queues: create, one key, destroy"},
    {"dup-1k", ONE_THREAD, PER_KEY, .title = "duplicate add, 1 k pending"},
    {"dup-1m", ONE_THREAD, PER_KEY, .title = "duplicate add, 1 M pending"},
    {"priority", ONE_THREAD, PER_KEY,
     .title = "fill 100 k of 5 priorities, drain"},
    {"next", ONE_THREAD, PER_KEY,
     .title = "fill 100 k, wq_next (others: get, done)"},
    {"batch", ONE_THREAD, PER_KEY,
     .title = "batches of 32 (others: one by one)"},
    {"1x1", CROWDS, PER_KEY, .title = "1 producer x 1 consumer"},
    {"2x2", CROWDS, PER_KEY, .title = "2 x 2"},
    {"4x4", CROWDS, PER_KEY, .title = "4 x 4"},
    {"8x8", CROWDS, PER_KEY, .title = "8 x 8"},
    {"8x8-on-2", CROWDS, PER_KEY, .title = "8 x 8 on two processors", "8x8", 2},
    {"1x2", CROWDS, PER_KEY, .title = "1 producer x 2 consumers"},
    {"1x8", CROWDS, PER_KEY, .title = "1 producer x 8 consumers"},
    {"8x1", CROWDS, PER_KEY, .title = "8 producers x 1 consumer"},
    {"batch-4x4", CROWDS, PER_KEY,
     .title = "4 x 4, batches of 32 (others: one by one)"},
    {"hot-key", CROWDS, PER_KEY, .title = "8 producers add one key"},
    {"pool", CROWDS, PER_KEY, .title = "pool of 8, empty handlers"},
    {"pool-slow", CROWDS, TIMES,
     .title = "pool of 8, handlers of 1 ms: a worker is free"},
    {"ping-pong", CROWDS, PER_KEY, .title = "ping-pong, there and back"},
    {"fair", CROWDS, TIMES, .title = "4 x 4: from add to get"},
    {"after-100k", WAITING, PER_KEY, .title = "add_after 100 k, and fire"},
    {"after-1m", WAITING, PER_KEY, .title = "add_after 1 M, and fire"},
    {"late", WAITING, TIMES, .title = "lateness of timers"},
    {"wake", WAITING, TIMES, .title = "wake-up of a sleeping consumer"},
    {"idle", WAITING, PROCESSOR,
     .title = "processor time of an idle queue in 1 s"},
    {"trickle-1k", WAITING, PROCESSOR,
     .title = "processor time a key, 1,000 a second"},
    {"trickle-10k", WAITING, PROCESSOR,
     .title = "processor time a key, 10,000 a second"},
    {"limiter", LIMITERS, PER_KEY,
     .title = "limiter: when, forget, 100 k keys"},
    {"limited", LIMITERS, PER_KEY,
     .title = "add_rate_limited 100 k; get, forget, done"},
    {"limited-each", LIMITERS, PER_KEY, .title = "the same, key by key"},
    {"memory-pending", MEMORY, BYTES, .title = "a pending key, of 1 M"},
    {"memory-waiting", MEMORY, BYTES, .title = "a waiting key, of 1 M"},
    {"memory-10m", MEMORY, BYTES, .title = "a pending key, of 10 M"},
    {"memory-queues", MEMORY, BYTES, .title = "a queue with one key"},
};
const size_t n_rows = sizeof rows / sizeof rows[0];
_Static_assert(sizeof rows / sizeof rows[0] <= MOST_ROWS, "raise MOST_ROWS");
_Static_assert(sizeof peers / sizeof peers[0] <= MOST_SIDES, "more sides");

const struct demand demands[] = {
    {"one thread: cycle", "cycle", "ns", AT_LEAST, .bound = 3},
    {"one thread: fill and drain, 1 k", "fill-1k", "ns", AT_LEAST, .bound = 3},
    {"one thread: fill and drain, 100 k", "fill-100k", "ns", AT_LEAST,
     .bound = 4},
    {"one thread: fill and drain, 1 M", "fill-1m", "ns", AT_LEAST, .bound = 3},
    {"duplicate add, 1 M", "dup-1m", "ns", AT_LEAST, .bound = 2.5},
    {"duplicate add, 1 k", "dup-1k", "ns", AT_LEAST, .bound = 1.8},
    {"1 x 1", "1x1", "ns", AT_LEAST, .bound = 5},
    {"2 x 2", "2x2", "ns", AT_LEAST, .bound = 4},
    {"4 x 4", "4x4", "ns", AT_LEAST, .bound = 5},
    {"8 x 8", "8x8", "ns", AT_LEAST, .bound = 4},
    {"8 x 8 on two processors", "8x8-on-2", "ns", AT_LEAST, .bound = 4.5},
    {"1 x 2", "1x2", "ns", AT_LEAST, .bound = 3},
    {"1 x 8", "1x8", "ns", AT_LEAST, .bound = 3},
    {"8 x 1", "8x1", "ns", AT_LEAST, .bound = 3},
    {"pool, empty handlers", "pool", "ns", AT_LEAST, .bound = 3},
    {"pool, handlers of 1 ms: p99 of ns that a worker is free", "pool-slow",
     "p99_ns", NO_MORE, .bound = 100000},
    {"batch against single verbs", "batch", "ns", AT_LEAST, .bound = 1.3,
     .side = "wq", .base = "cycle"},
    {"next against single verbs", "next", "ns", AT_LEAST, .bound = 1.3,
     .side = "wq", .base = "fill-100k"},
    {"batch against single verbs, 4 x 4", "batch-4x4", "ns", AT_LEAST,
     .bound = 2, .side = "wq", .base = "4x4"},
    {"ping-pong", "ping-pong", "ns", AT_LEAST, .bound = 2.5},
    {"wake-up against a futex, p50", "wake", "p50_ns", AT_MOST, .bound = 1.15,
     .side = "futex"},
    {"processor time a key, 1,000 a second", "trickle-1k", "cpu_us", AT_MOST,
     .bound = 1},
    {"processor time a key, 10,000 a second", "trickle-10k", "cpu_us", AT_MOST,
     .bound = 1},
    {"add_after 100 k, firing included", "after-100k", "ns", AT_LEAST,
     .bound = 4},
    {"add_after 1 M, firing included", "after-1m", "ns", AT_LEAST, .bound = 8},
    {"limiter: when and forget", "limiter", "ns", AT_LEAST, .bound = 3},
    {"add_rate_limited", "limited", "ns", AT_LEAST, .bound = 3},
    {"add_rate_limited, key by key", "limited-each", "ns", AT_LEAST,
     .bound = 3},
    {"cycle with metrics on", "metrics", "ns", AT_LEAST, .bound = 3},
    {"priority fill and drain, against controller-runtime", "priority", "ns",
     AT_LEAST, .bound = 10, .side = "controller-runtime"},
    {"memory per pending key", "memory-pending", "bytes", AT_MOST, .bound = 1},
    {"memory per pending key, 10 M", "memory-10m", "bytes", AT_MOST,
     .bound = 1},
    {"fill and drain, 10 M", "fill-10m", "ns", AT_LEAST, .bound = 3},
    {"longest add of 10 M, in ns", "growth", "max_ns", NO_MORE,
     .bound = 1000000},
    {"fill and drain: 1 M against 1 k", "fill-1m", "ns", AT_MOST, .bound = 4,
     .side = "wq", .base = "fill-1k"},
    {"cycle against the floor", "cycle", "ns", AT_MOST, .bound = 1.6,
     .side = "floor"},
    {"4 x 4: from add to get, p99", "fair", "p99_ns", AT_MOST, .bound = 1},
    {"4 x 4: from add to get, max", "fair", "max_ns", AT_MOST, .bound = 1},
    {"idle queue: us of processor time in 1 s", "idle", "cpu_us", NO_MORE,
     .bound = 100},
};
const size_t n_demands = sizeof demands / sizeof demands[0];

static const struct {
    const char *title, *file;
} groups[GROUPS] = {
    [ONE_THREAD] = {"One thread", "one-thread"},
    [CROWDS] = {"Many threads", "crowds"},
    [WAITING] = {"Deadlines and sleep", "waiting"},
    [LIMITERS] = {"Limiters", "limiters"},
    [MEMORY] = {"Memory", "memory"},
};

const char *
group_title(enum group g)
{
    return groups[g].title;
}

const char *
group_file(enum group g)
{
    return groups[g].file;
}
