/* SPDX-License-Identifier: MIT */
/* print_metrics.c: what would a scraper get?
 *
 *     print_metrics prometheus     print the text of some queues, whose names
 *     print_metrics openmetrics    need escapes, in either format
 *     print_metrics json FILE      print nothing; fail if the file is not JSON
 *
 * For the scripts in this directory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wq/metrics.h>

#include "support/json.h"
#include "support/stub_queue.h"

static const char *const names[] = {
    "pods", "quo\"te", "back\\slash", "new\nline", "gr\xc3\xbc\xc3\x9f", "\xff",
};
enum { QUEUES = sizeof names / sizeof names[0], PRIORITIES = 30 };

static int
check(int ok, const char *what)
{
    if (!ok)
        fprintf(stderr, "print_metrics: %s\n", what);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int
print_text(wq_text format)
{
    static struct stub_queue stub[QUEUES];
    static wq_depth          depths[PRIORITIES];
    void                    *handles[QUEUES];
    wq_registry             *registry;

    if (wq_registry_create(&registry))
        return check(0, "out of memory");
    const wq_metrics *sink = wq_registry_sink(registry);
    for (int i = 0; i < PRIORITIES; i++)
        depths[i] = (wq_depth){.priority = i - 10, .keys = (size_t)i};
    for (int i = 0; i < QUEUES; i++) {
        stub_queue_init(&stub[i]);
        stub[i].depths = depths;
        stub[i].depths_len = PRIORITIES;
        stub[i].counts = (wq_stats){.ready = 3,
                                    .waiting = 2,
                                    .adds = 9,
                                    .unfinished_ns = 1500,
                                    .longest_ns = 1000};
        if (sink->open(sink->self, &stub[i].base, names[i], &handles[i]))
            return check(0, "out of memory");
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
check_json(const char *path)
{
    static char text[1 << 20];
    FILE       *file = fopen(path, "r");

    if (!file)
        return check(0, path);
    const size_t len = fread(text, 1, sizeof text, file);
    const int    whole = feof(file);
    (void)fclose(file);
    return check(whole && json_is_valid(text, len), "the file is not JSON");
}

int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "prometheus") == 0)
        return print_text(WQ_TEXT_PROMETHEUS);
    if (argc == 2 && strcmp(argv[1], "openmetrics") == 0)
        return print_text(WQ_TEXT_OPENMETRICS);
    if (argc == 3 && strcmp(argv[1], "json") == 0)
        return check_json(argv[2]);
    return check(0,
                 "usage: print_metrics prometheus | openmetrics | json FILE");
}
