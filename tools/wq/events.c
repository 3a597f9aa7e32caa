/* SPDX-License-Identifier: MIT */
/* events.c: what happens, for machines?
 *
 * Every line has "event" and "time" (seconds since 1970, to the microsecond).
 * Times that are spans are in seconds, too. A line is written when it happens.
 */
#include "events.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "json.h"
#include "tell.h"

struct events {
    struct output *output; /* for stdout; NULL: not there */
    const char    *file;   /* name of it; NULL: none */
    int            fd;     /* of it; -1: none (any more) */
    bool           failed; /* it could not be written */
    void (*tap)(void *ctx, const char *json, size_t len); /* NULL: none */
    void       *ctx;
    struct text line; /* at hand; ends with a newline for the file alone */
};

/* --------------------------------------------------------------- writing -- */

static bool
somebody_listens(const struct events *events)
{
    return events && (events->output || events->fd >= 0 || events->tap);
}

static void
write_file(struct events *events)
{
    const char *data = events->line.data;
    size_t      len = events->line.len;

    while (len > 0) {
        const ssize_t n = write(events->fd, data, len);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            tell_errno("--json: cannot write to '%s'; it ends here",
                       events->file);
            events->failed = true;
            (void)close(events->fd);
            events->fd = -1;
            return;
        }
    }
}

static struct text *
begin(struct events *events, const char *name)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    text_clear(&events->line);
    text_print(&events->line, "{\"event\":\"%s\",\"time\":%lld.%06ld", name,
               (long long)now.tv_sec, now.tv_nsec / 1000);
    return &events->line;
}

static void
end(struct events *events)
{
    struct text *line = &events->line;

    text_add(line, "}", 1);
    if (line->failed) {
        if (!events->failed)
            tell("--json: out of memory: events are missing");
        events->failed = true;
        return;
    }
    if (events->tap)
        events->tap(events->ctx, line->data, line->len);
    if (events->output)
        output_line(events->output, line->data, line->len);
    if (events->fd < 0)
        return;
    text_add(line, "\n", 1);
    if (!line->failed)
        write_file(events);
}

static void
add_key(struct text *line, wq_key key)
{
    text_add(line, ",", 1);
    json_key(line, key.data, key.len);
}

static void
add_seconds(struct text *line, const char *name, int64_t ns)
{
    text_print(line, ",\"%s\":%" PRId64 ".%06" PRId64, name, ns / 1000000000,
               ns % 1000000000 / 1000);
}

static void
add_count(struct text *line, const char *name, uint64_t n)
{
    text_print(line, ",\"%s\":%" PRIu64, name, n);
}

/* ----------------------------------------------------------------- words -- */

static const char *
how_word(wq_added how)
{
    switch (how) {
    case WQ_ADDED_NEW:
        return "new";
    case WQ_ADDED_MERGED:
        return "merged";
    case WQ_ADDED_DIRTY:
        return "dirty";
    case WQ_ADDED_RAISED:
        return "raised";
    case WQ_ADDED_SCHEDULED:
        return "scheduled";
    case WQ_ADDED_SOONER:
        return "sooner";
    case WQ_ADDED_LATER:
        return "later";
    case WQ_ADDED_KEPT:
        return "kept";
    }
    return "unknown";
}

static const char *
outcome_word(enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_RUNNING:
        return "running";
    case OUTCOME_OK:
        return "ok";
    case OUTCOME_REQUEUE:
        return "requeue";
    case OUTCOME_RETRY:
        return "retry";
    case OUTCOME_FAILED:
        return "failed";
    case OUTCOME_STOPPED:
        return "stopped";
    }
    return "unknown";
}

static const char *
phase_word(enum phase phase)
{
    switch (phase) {
    case PHASE_RUNNING:
        return "running";
    case PHASE_FINISHING:
        return "finishing";
    case PHASE_DRAINING:
        return "draining";
    case PHASE_STOPPING:
        return "stopping";
    case PHASE_KILLING:
        return "killing";
    }
    return "unknown";
}

/* ---------------------------------------------------------------- events -- */

void
events_added(struct events *events, wq_key key, wq_added how, int priority,
             int64_t after_ns)
{
    if (!somebody_listens(events))
        return;
    struct text *line = begin(events, "added");
    add_key(line, key);
    text_print(line, ",\"how\":\"%s\",\"priority\":%d", how_word(how),
               priority);
    if (after_ns > 0)
        add_seconds(line, "after", after_ns);
    end(events);
}

void
events_skipped(struct events *events, wq_key key)
{
    if (!somebody_listens(events))
        return;
    add_key(begin(events, "skipped"), key);
    end(events);
}

/* What started and finished have in common. */
static struct text *
begin_run(struct events *events, const char *name, const struct run *run)
{
    struct text *line = begin(events, name);

    add_key(line, run->key);
    add_count(line, "run", run->number);
    text_print(line, ",\"slot\":%u,\"attempt\":%u,\"priority\":%d", run->slot,
               run->attempt, run->priority);
    if (run->pid > 0)
        text_print(line, ",\"pid\":%lld", (long long)run->pid);
    return line;
}

void
events_started(struct events *events, const struct run *run)
{
    if (!somebody_listens(events))
        return;
    (void)begin_run(events, "started", run);
    end(events);
}

void
events_finished(struct events *events, const struct run *run)
{
    if (!somebody_listens(events))
        return;
    struct text  *line = begin_run(events, "finished", run);
    const int64_t ran_ns =
        run->started_ns > 0 ? run->ended_ns - run->started_ns : 0;
    text_print(line, ",\"outcome\":\"%s\"", outcome_word(run->outcome));
    if (run->signal)
        text_print(line, ",\"signal\":%d", run->signal);
    else
        text_print(line, ",\"exit\":%d", run->exit_code);
    if (run->timed_out)
        text_print(line, ",\"timed_out\":true");
    add_seconds(line, "seconds", ran_ns);
    if (run->outcome == OUTCOME_RETRY || run->outcome == OUTCOME_REQUEUE)
        add_seconds(line, "retry_in", run->retry_in_ns);
    end(events);
}

void
events_phase(struct events *events, enum phase phase, const char *why)
{
    if (!somebody_listens(events))
        return;
    struct text *line = begin(events, "phase");
    text_print(line, ",\"phase\":\"%s\",\"why\":", phase_word(phase));
    json_string(line, why, strlen(why));
    end(events);
}

void
events_summary(struct events *events, const struct view *view, int status)
{
    if (!somebody_listens(events))
        return;
    struct text *line = begin(events, "summary");
    add_count(line, "keys", view->ok + view->failed + view->left);
    add_count(line, "ok", view->ok);
    add_count(line, "failed", view->failed);
    add_count(line, "left", view->left);
    add_count(line, "adds", view->adds);
    add_count(line, "merged", view->merged);
    add_count(line, "skipped", view->skipped);
    add_count(line, "bad", view->bad);
    add_count(line, "runs", view->runs);
    add_count(line, "retries", view->retries);
    add_count(line, "tempfails", view->tempfails);
    add_count(line, "timeouts", view->timeouts);
    add_seconds(line, "seconds", view->now_ns - view->started_ns);
    if (status < 0) /* it will kill itself with that signal */
        text_print(line, ",\"signal\":%d", -status);
    else
        text_print(line, ",\"status\":%d", status);
    end(events);
}

/* ------------------------------------------------------------------ life -- */

bool
events_create(const struct options *options, struct output *output,
              struct events **out)
{
    struct events *events = calloc(1, sizeof *events);

    if (!events) {
        tell("out of memory");
        return false;
    }
    events->fd = -1;
    events->file = options->json_file;
    if (options->json && !events->file)
        events->output = output;
    if (options->json && events->file) {
        events->fd =
            open(events->file,
                 O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
        if (events->fd < 0) {
            tell_errno("--json: cannot open '%s'", events->file);
            free(events);
            return false;
        }
    }
    *out = events;
    return true;
}

void
events_destroy(struct events *events)
{
    if (!events)
        return;
    if (events->fd >= 0)
        (void)close(events->fd);
    text_fini(&events->line);
    free(events);
}

void
events_tap(struct events *events,
           void (*line)(void *ctx, const char *json, size_t len), void *ctx)
{
    events->tap = line;
    events->ctx = ctx;
}

bool
events_failed(const struct events *events)
{
    return events && events->failed;
}
