/* SPDX-License-Identifier: MIT */
/* main.c: how long does a key take, with wq and with other queues?
 *
 * Every row runs on every side in turn, round after round, and every round
 * begins with another side, so that other load on the machine affects all sides
 * alike. The program prints medians with minimum and maximum, ratios of
 * medians, which depend least on the machine, and the demands with what was
 * reached. It exits with 1 if a side failed, since no figure is valid then; a
 * demand that was not reached is not a failure.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"

/* Whose figures are being read. */
struct place {
    size_t row, peer;
    bool   any; /* at least one was read */
};

static void
take_figure(void *ctx, const char *name, const char *value)
{
    struct place       *at = ctx;
    const struct shown *what;

    for (size_t i = 0; (what = shown_of(at->row, i)); i++)
        if (!strcmp(what->figure, name)) {
            keep(at->row, i, at->peer, strtod(value, NULL));
            at->any = true;
        }
}

static bool
measure(const struct options *o, size_t r, size_t p)
{
    struct place at = {r, p, false};
    const char  *args[3] = {NULL, NULL, NULL};
    size_t       n = 0;

    if (peers[p].arg)
        args[n++] = peers[p].arg;
    args[n++] = rows[r].program ? rows[r].program : rows[r].name;
    if (o->quick)
        args[n] = "--quick";
    const enum ran ran =
        run_program(peers[p].program, args, rows[r].cpus, take_figure, &at);
    return ran == RAN_NOT || (ran == RAN && at.any);
}

static bool
run_round(const struct options *o, size_t round)
{
    for (size_t r = 0; r < n_rows; r++) {
        if (!wants_row(o, &rows[r]))
            continue;
        for (size_t i = 0; i < n_peers; i++) {
            const size_t p = (i + round) % n_peers;
            if (wants_peer(o, &peers[p]) && is_there(&peers[p]) &&
                !measure(o, r, p))
                return false;
        }
        (void)fputc('.', stderr);
    }
    (void)fputc('\n', stderr);
    return true;
}

static void
report_missing_sides(const struct options *o)
{
    for (size_t p = 0; p < n_peers; p++)
        if (wants_peer(o, &peers[p]) && !is_there(&peers[p]))
            (void)fprintf(stderr, "wq_bench: skipping side %s: %s\n",
                          peers[p].name, peers[p].absent);
}

/* bench_wq measures them. */
static int
features(const struct options *o)
{
    char path[MOST_PATH];

    program_path(path, "bench_wq");
    (void)execl(path, path, "--features", o->quick ? "--quick" : NULL, NULL);
    perror(path);
    return 1;
}

int
main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv);

    if (o.features)
        return features(&o);
    report_missing_sides(&o);
    read_machine();
    measure_quiet(&o);
    for (size_t round = 0; round < o.rounds; round++)
        if (!run_round(&o, round)) {
            (void)fprintf(stderr,
                          "wq_bench: a side failed; no figure is valid\n");
            return 1;
        }
    measure_quiet(&o);
    report(stdout, &o, false);
    bool ok = true;
    if (o.json)
        ok &= write_json(&o);
    if (o.plots)
        ok &= write_plots(&o);
    return !ok;
}
