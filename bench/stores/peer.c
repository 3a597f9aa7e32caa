/* SPDX-License-Identifier: MIT */
/* peer.c: how fast is another queue, which has a program of its own? See
 * stores.h.
 */
#include <stdio.h>

#include "bench.h"
#include "stores/stores.h"

void
peer_measure(struct peer *p, size_t round, const char *where)
{
    char   command[1024];
    double cycles, wall, cpu;

    if (!p->program)
        return;
    (void)snprintf(command, sizeof command, "%s '%s' %zu %.0f '%s'", p->program,
                   p->mode, p->threads, span_ns() / 1e6, where);
    FILE *pipe = popen(command, "re");
    must(pipe != NULL, "popen");
    const bool read = fscanf(pipe, "%lf %lf %lf", &cycles, &wall, &cpu) == 3;
    if (pclose(pipe) != 0 || !read) {
        printf("bench: '%s' failed; measuring without %s\n", command, p->name);
        p->program = NULL;
        return;
    }
    p->per_second[round] = cycles / wall;
    p->cpu_us[round] = cpu * 1e6 / cycles;
}

double
peer_print(struct peer *p, size_t rounds)
{
    if (!p->program)
        return 0;
    const double per_second = bench_median(p->per_second, rounds);
    printf("| %s | %s | %zu | %.0f | %.1f | %.1f |\n", p->name, p->mode,
           p->threads, per_second, 1e6 / per_second,
           bench_median(p->cpu_us, rounds));
    return per_second;
}
