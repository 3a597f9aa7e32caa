/* SPDX-License-Identifier: MIT */
/* status.c: what does `wq status` print? How many keys are in which state. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "options/url.h"
#include "queue/open.h"
#include "queue/server.h"
#include "verbs/print.h"
#include "verbs/verbs.h"

/* Prints the count; the caller adds a note, and ends the line. */
static void
begin_count(struct print *print, const char *state, size_t n)
{
    print_state(print, state);
    text_print(&print->line, "%*s  %8zu", (int)(7 - strlen(state)), "", n);
}

/* "server   HOST:PORT, Redis 7.0.15, primary[, 8 partitions]" */
static void
print_server(struct print *print, const struct server *server)
{
    wq__text_str(&print->line, "server   ");
    print_key(print, wq_str(server->name));
    if (*server->version)
        text_print(&print->line, ", %s", server->version);
    if (*server->role)
        text_print(&print->line, ", %s", server->role);
    if (server->partitions > 1)
        text_print(&print->line, ", %u partitions", server->partitions);
    print_line(print);
}

static void
print_people(struct print *print, const struct options *options,
             const wq_stats *stats, const struct server *server)
{
    const char *url = url_shown(options->queue);

    wq__text_str(&print->line, "queue    ");
    print_key(print, wq_str(url));
    print_line(print);
    if (server)
        print_server(print, server);
    begin_count(print, "READY", stats->ready);
    print_line(print);
    begin_count(print, "HELD", stats->held);
    if (stats->holders)
        text_print(&print->line, "  by %zu holder%s", stats->holders,
                   stats->holders == 1 ? "" : "s");
    if (stats->dirty)
        text_print(&print->line, ", %zu to run again", stats->dirty);
    if (stats->held && stats->longest_ns >= 0)
        text_print(&print->line, ", the longest for %s",
                   print_time(stats->longest_ns));
    print_line(print);
    begin_count(print, "WAITING", stats->waiting);
    if (stats->waiting && stats->next_ns < WQ_FOREVER)
        text_print(&print->line, "  the next in %s",
                   print_time(stats->next_ns));
    print_line(print);
    begin_count(print, "DEAD", stats->dead);
    if (stats->dead)
        wq__text_str(&print->line, "  see wq list --state=dead, wq retry");
    print_line(print);
}

static void
add_seconds(struct wq__text *line, const char *name, int64_t ns)
{
    text_print(line, ",\"%s\":%" PRId64 ".%06" PRId64, name, ns / 1000000000,
               ns % 1000000000 / 1000);
}

static void
print_json(struct print *print, const struct options *options,
           const wq_stats *stats, const struct server *server)
{
    struct wq__text *line = &print->line;
    const char      *url = url_shown(options->queue);

    wq__text_str(line, "{\"queue\":");
    wq__text_json(line, url, strlen(url));
    wq__text_str(line, ",\"name\":");
    wq__text_json(line, options->name, strlen(options->name));
    text_print(line,
               ",\"ready\":%zu,\"held\":%zu,\"dirty\":%zu,\"waiting\":%zu,"
               "\"dead\":%zu,\"known\":%zu,\"holders\":%zu",
               stats->ready, stats->held, stats->dirty, stats->waiting,
               stats->dead, stats->known, stats->holders);
    if (stats->waiting && stats->next_ns < WQ_FOREVER)
        add_seconds(line, "next_in", stats->next_ns);
    if (stats->held && stats->longest_ns >= 0)
        add_seconds(line, "longest", stats->longest_ns);
    if (server) {
        wq__text_str(line, ",\"server\":");
        server_json(server, line);
    }
    wq__text_char(line, '}');
    print_line(print);
}

int
verb_status(const struct options *options)
{
    struct print  print;
    struct server server;
    wq_stats      stats = {.size = sizeof stats};
    wq_queue     *q;

    if (!queue_open(options, WQ_CONFIG(.ages = true), &q))
        return STATUS_ERROR;
    const wq_err         err = wq_read_stats(q, &stats);
    const struct server *known = server_read(q, &server) ? &server : NULL;
    print_init(&print);
    if (err)
        queue_fail(options, "read the numbers", err);
    else if (options->json)
        print_json(&print, options, &stats, known);
    else
        print_people(&print, options, &stats, known);
    print_fini(&print);
    wq_destroy(q);
    return err ? STATUS_ERROR : STATUS_OK;
}
