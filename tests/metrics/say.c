/* SPDX-License-Identifier: MIT */
/* say.c: what would a scraper get?
 *
 *     say prometheus     the text of some queues, with names that are hard to
 *     say openmetrics    write, in either format
 *     say json FILE      nothing; fails if the file is no JSON
 *
 * For the scripts beside it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wq/metrics.h>

#include "support/json.h"
#include "support/told_queue.h"

static const char *const names[] = {
    "pods", "quo\"te", "back\\slash", "new\nline", "gr\xc3\xbc\xc3\x9f", "\xff",
};
enum { QUEUES = sizeof names / sizeof names[0], PRIORITIES = 30 };

static int
check(int ok, const char *what)
{
    if (!ok)
        fprintf(stderr, "say: %s\n", what);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int
say_text(wq_text format)
{
    static struct told told[QUEUES];
    static wq_depth    depths[PRIORITIES];
    void              *handles[QUEUES];
    wq_registry       *registry;

    if (wq_registry_create(&registry))
        return check(0, "no memory");
    const wq_metrics *sink = wq_registry_sink(registry);
    for (int i = 0; i < PRIORITIES; i++)
        depths[i] = (wq_depth){.priority = i - 10, .keys = (size_t)i};
    for (int i = 0; i < QUEUES; i++) {
        told_init(&told[i]);
        told[i].depths = depths;
        told[i].depths_len = PRIORITIES;
        told[i].counts = (wq_stats){.ready = 3,
                                    .waiting = 2,
                                    .adds = 9,
                                    .unfinished_ns = 1500,
                                    .longest_ns = 1000};
        if (sink->open(sink->self, &told[i].base, names[i], &handles[i]))
            return check(0, "no memory");
        for (int64_t ns = 1; ns < INT64_C(5000000000000); ns *= 7)
            sink->latency(handles[i], ns);
        sink->work(handles[i], 1);
    }
    const wq_err err =
        wq_registry_write(registry, format, wq_write_file, stdout);
    for (int i = 0; i < QUEUES; i++)
        sink->close(handles[i]);
    wq_registry_destroy(registry);
    return check(!err, wq_strerror(err));
}

static int
say_json(const char *path)
{
    static char text[1 << 20];
    FILE       *file = fopen(path, "r");

    if (!file)
        return check(0, path);
    const size_t len = fread(text, 1, sizeof text, file);
    const int    whole = feof(file);
    (void)fclose(file);
    return check(whole && json_is_valid(text, len), "the file is no JSON");
}

int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "prometheus") == 0)
        return say_text(WQ_TEXT_PROMETHEUS);
    if (argc == 2 && strcmp(argv[1], "openmetrics") == 0)
        return say_text(WQ_TEXT_OPENMETRICS);
    if (argc == 3 && strcmp(argv[1], "json") == 0)
        return say_json(argv[2]);
    return check(0, "prometheus, openmetrics, or json FILE?");
}
