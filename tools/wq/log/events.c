/* SPDX-License-Identifier: MIT */
/* events.c: what does --json write?
 *
 * Every line has "event" and "time" (seconds since 1970, to the microsecond).
 * Durations are in seconds, too.
 */
#include "log/events.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/report.h"
#include "base/write.h"
#include "queue/words.h"

/* --------------------------------------------------------------- writing -- */

static bool
is_enabled(const struct events *events)
{
    return events->output || events->fd >= 0;
}

static void
write_file(struct events *events)
{
    if (write_all(events->fd, events->line.data, events->line.len, NULL))
        return;
    report_errno("--json: cannot write to '%s'; nothing more is written there",
                 events->file);
    events->failed = true;
    (void)close(events->fd);
    events->fd = -1;
}

static struct wq__text *
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
    struct wq__text *line = &events->line;

    wq__text_char(line, '}');
    if (line->err) {
        if (!events->failed)
            report("--json: out of memory: events are missing");
        events->failed = true;
        return;
    }
    if (events->output)
        output_line(events->output, line->data, line->len);
    if (events->fd < 0)
        return;
    wq__text_char(line, '\n');
    if (!line->err)
        write_file(events);
}

static void
add_key(struct wq__text *line, wq_key key)
{
    wq__text_char(line, ',');
    wq__text_key(line, key.data, key.len);
}

static void
add_seconds(struct wq__text *line, const char *name, int64_t ns)
{
    text_print(line, ",\"%s\":%" PRId64 ".%06" PRId64, name, ns / 1000000000,
               ns % 1000000000 / 1000);
}

static void
add_count(struct wq__text *line, const char *name, uint64_t n)
{
    text_print(line, ",\"%s\":%" PRIu64, name, n);
}

/* ----------------------------------------------------------------- words -- */

static const char *const outcome_words[] = {
    [OUTCOME_RUNNING] = "running",     [OUTCOME_OK] = "ok",
    [OUTCOME_REQUEUE] = "requeue",     [OUTCOME_RETRY] = "retry",
    [OUTCOME_FAILED] = "failed",       [OUTCOME_STOPPED] = "stopped",
    [OUTCOME_RESTARTED] = "restarted", [OUTCOME_LOST] = "lost",
};

/* ---------------------------------------------------------------- events -- */

void
events_added(struct events *events, wq_key key, wq_added how, int priority,
             int64_t after_ns)
{
    if (!is_enabled(events))
        return;
    struct wq__text *line = begin(events, "added");
    add_key(line, key);
    text_print(line, ",\"how\":\"%s\",\"priority\":%d", word_added(how),
               priority);
    if (after_ns > 0)
        add_seconds(line, "after", after_ns);
    end(events);
}

void
events_skipped(struct events *events, wq_key key)
{
    if (!is_enabled(events))
        return;
    add_key(begin(events, "skipped"), key);
    end(events);
}

/* The members that "started" and "finished" have in common. */
static struct wq__text *
begin_run(struct events *events, const char *name, const struct run *run)
{
    struct wq__text *line = begin(events, name);

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
    if (!is_enabled(events))
        return;
    (void)begin_run(events, "started", run);
    end(events);
}

void
events_finished(struct events *events, const struct run *run)
{
    if (!is_enabled(events))
        return;
    struct wq__text *line = begin_run(events, "finished", run);
    const int64_t    ran_ns =
        run->started_ns > 0 ? run->ended_ns - run->started_ns : 0;
    text_print(line, ",\"outcome\":\"%s\"", outcome_words[run->outcome]);
    if (run->signal)
        text_print(line, ",\"signal\":%d", run->signal);
    else
        text_print(line, ",\"exit\":%d", run->exit_code);
    if (run->timed_out)
        wq__text_str(line, ",\"timed_out\":true");
    add_seconds(line, "seconds", ran_ns);
    if (run->outcome == OUTCOME_RETRY || run->outcome == OUTCOME_REQUEUE)
        add_seconds(line, "retry_in", run->retry_in_ns);
    end(events);
}

void
events_phase(struct events *events, enum phase phase, const char *why)
{
    if (!is_enabled(events))
        return;
    struct wq__text *line = begin(events, "phase");
    text_print(line, ",\"phase\":\"%s\",\"why\":", phase_name(phase));
    wq__text_json(line, why, strlen(why));
    end(events);
}

void
events_summary(struct events *events, const struct view *view, int status)
{
    if (!is_enabled(events))
        return;
    struct wq__text *line = begin(events, "summary");
    add_count(line, "keys", view->counts.ok + view->counts.failed + view->left);
    add_count(line, "ok", view->counts.ok);
    add_count(line, "failed", view->counts.failed);
    add_count(line, "left", view->left);
    add_count(line, "adds", view->counts.adds);
    add_count(line, "merged", view->counts.merged);
    add_count(line, "skipped", view->counts.skipped);
    add_count(line, "unmatched", view->counts.unmatched);
    add_count(line, "bad", view->counts.bad);
    add_count(line, "runs", view->counts.runs);
    add_count(line, "retries", view->counts.retries);
    add_count(line, "tempfails", view->counts.tempfails);
    add_count(line, "restarts", view->counts.restarts);
    add_count(line, "timeouts", view->counts.timeouts);
    add_count(line, "lost", view->counts.lost);
    add_seconds(line, "seconds", view->now_ns - view->started_ns);
    if (view->unread)
        wq__text_str(line, ",\"unread\":true");
    if (status < 0) /* wq will kill itself with that signal */
        text_print(line, ",\"signal\":%d", -status);
    else
        text_print(line, ",\"status\":%d", status);
    end(events);
}

/* ------------------------------------------------------- open and close -- */

bool
events_open(struct events *events, const struct options *options,
            struct output *output)
{
    *events = (struct events){.fd = -1, .file = options->json_file};
    if (options->json && !events->file)
        events->output = output;
    if (!options->json || !events->file)
        return true;
    events->fd =
        open(events->file, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
             0666);
    if (events->fd >= 0)
        return true;
    report_errno("--json: cannot open '%s'", events->file);
    return false;
}

void
events_close(struct events *events)
{
    if (events->fd >= 0)
        (void)close(events->fd);
    wq__text_fini(&events->line);
}

bool
events_failed(const struct events *events)
{
    return events->failed;
}
