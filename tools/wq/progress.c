/* SPDX-License-Identifier: MIT */
/* progress.c: how does the display look? See progress.h.
 *
 *     [########............] 41%  820 done  3 failed  2 retrying  1175 ready
 *     12s  68.3/s  17s left
 *      1   1.2s  src/a.c
 *      2   340ms src/b.c (attempt 3)
 *
 * The numbers take as many lines as they need, the slots one each, as many as
 * the terminal has room for. Drawing is one write(): up to where the display
 * began, then line by line, each cleared to its end. Between two drawings the
 * cursor stands in the first column below it; so who writes next need only be
 * preceded by clear(), which goes up and clears all to the end of the screen.
 *
 * The size of the terminal is asked for each time: that is one system call of
 * ten a second at most, and SIGWINCH could come between two.
 */
#include "progress.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "json.h"
#include "pace.h"
#include "shown.h"
#include "tell.h"

#define MS INT64_C(1000000)

/* Nothing is shown of what is over before anybody could have read it. */
#define FIRST_NS (150 * MS)
#define DRAW_NS (100 * MS)

/* Plain lines: after 1 and 3 seconds, then every 5. */
#define PLAIN_FIRST_NS (1000 * MS)
#define PLAIN_SECOND_NS (2000 * MS)
#define PLAIN_NS (5000 * MS)

#define MOST_LINES 64
#define MOST_COLUMNS 400
#define BAR 20 /* columns, without its ends */

struct progress {
    const struct options *options;
    struct loop          *loop;
    struct runner        *runner;
    struct timer          timer;
    bool                  plain; /* lines, not a display */
    bool                  colour;
    bool                  silent; /* suspended */
    unsigned              said;   /* plain lines */
    struct shown          shown;
    struct pace           pace;

    size_t      columns, rows; /* of the terminal, when last asked */
    struct text out;           /* what is being drawn */
    size_t      used;          /* columns of its last line */
    /* What stands on the terminal: columns of each line. Where it has become
     * narrower since, a line may have become two. */
    size_t lines[MOST_LINES];
    size_t n_lines;
};

/* ---- words --------------------------------------------------------------- */

/* What the numbers are, for both kinds. */
struct words {
    char   text[16][48];
    int    colour[16]; /* of SGR; 0: none */
    size_t n;
};

__attribute__((format(printf, 3, 4))) static void
say(struct words *w, int colour, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(w->text[w->n], sizeof w->text[w->n], format, arguments);
    va_end(arguments);
    w->colour[w->n++] = colour;
}

/* 850ms, 4.2s, 38s, 3m07s, 2h05m, 4d03h: at most six columns. */
static const char *
say_time(int64_t ns, char text[16])
{
    const int64_t ms = ns < 0 ? 0 : ns / MS;
    const int64_t s = ms / 1000;

    if (ms < 1000)
        (void)snprintf(text, 16, "%" PRId64 "ms", ms);
    else if (s < 10)
        (void)snprintf(text, 16, "%" PRId64 ".%" PRId64 "s", s, ms / 100 % 10);
    else if (s < 60)
        (void)snprintf(text, 16, "%" PRId64 "s", s);
    else if (s < 3600)
        (void)snprintf(text, 16, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
    else if (s < 86400)
        (void)snprintf(text, 16, "%" PRId64 "h%02" PRId64 "m", s / 3600,
                       s / 60 % 60);
    else
        (void)snprintf(text, 16, "%" PRId64 "d%02" PRId64 "h", s / 86400,
                       s / 3600 % 24);
    return text;
}

enum { RED = 31, GREEN = 32, YELLOW = 33, FAINT = 2 };

static void
say_numbers(const struct pace *pace, const struct view *v, struct words *w)
{
    static const char *const ending[] = {
        [PHASE_RUNNING] = "",          [PHASE_FINISHING] = "",
        [PHASE_DRAINING] = "draining", [PHASE_STOPPING] = "stopping",
        [PHASE_KILLING] = "killing",
    };
    const double  rate = pace_runs(pace);
    const int64_t left_ns = pace_left_ns(pace, v);
    char          time[16];

    if (*ending[v->phase])
        say(w, YELLOW, "%s", ending[v->phase]);
    say(w, GREEN, "%" PRIu64 " done", v->ok);
    say(w, v->failed ? RED : 0, "%" PRIu64 " failed", v->failed);
    if (v->retrying)
        say(w, YELLOW, "%zu retrying", v->retrying);
    if (v->waiting > v->retrying)
        say(w, 0, "%zu waiting", v->waiting - v->retrying);
    say(w, 0, "%zu ready", v->ready);
    say(w, 0, "%zu running", v->running);
    say(w, FAINT, "%s", say_time(v->now_ns - v->started_ns, time));
    say(w, FAINT, rate < 10 ? "%.1f/s" : "%.0f/s", rate);
    if (left_ns >= 0 && v->left)
        say(w, FAINT, "%s left", say_time(left_ns, time));
}

/* ---- plain lines --------------------------------------------------------- */

static void
tell_plainly(struct progress *p, const struct view *v)
{
    struct words w = {.n = 0};
    char         line[512] = "";
    size_t       len = 0;

    say_numbers(&p->pace, v, &w);
    for (size_t i = 0; i < w.n && len < sizeof line; i++)
        len += (size_t)snprintf(line + len, sizeof line - len, "%s%s",
                                i ? ", " : "", w.text[i]);
    tell("%s", line);
}

/* ---- the terminal -------------------------------------------------------- */

static void
ask_size(struct progress *p)
{
    struct winsize size = {0};

    (void)ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
    p->columns = size.ws_col ? size.ws_col : 80;
    p->rows = size.ws_row ? size.ws_row : 24;
    if (p->columns > MOST_COLUMNS)
        p->columns = MOST_COLUMNS;
}

/* Would a write() wait? It would after Ctrl-S, and the loop must not wait. */
static bool
is_held(void)
{
    struct pollfd terminal = {.fd = STDERR_FILENO, .events = POLLOUT};

    return poll(&terminal, 1, 0) == 0;
}

/* In the background we would write into what somebody else shows, or be
 * stopped by SIGTTOU. A terminal that is not ours to control has no say. */
static bool
in_background(void)
{
    const pid_t group = tcgetpgrp(STDERR_FILENO);

    return group > 0 && group != getpgrp();
}

static void
put(struct progress *p, const char *text)
{
    text_add(&p->out, text, strlen(text));
}

/* Up to the first column of the first line that is drawn. */
static void
put_up(struct progress *p)
{
    size_t up = 0;

    for (size_t i = 0; i < p->n_lines; i++)
        up += p->lines[i] > p->columns
                  ? (p->lines[i] + p->columns - 1) / p->columns
                  : 1;
    put(p, "\r");
    if (up)
        text_print(&p->out, "\033[%zuA", up);
}

/* One write(): the terminal has all of it, or is gone, which is not ours to
 * tell. */
static void
flush(struct progress *p)
{
    if (!p->out.failed) {
        const ssize_t sent = write(STDERR_FILENO, p->out.data, p->out.len);
        (void)sent;
    }
    text_clear(&p->out);
}

/* The display is gone, and the cursor where it began. */
static void
clear(void *progress)
{
    struct progress *p = progress;

    if (!p->n_lines)
        return;
    ask_size(p);
    text_clear(&p->out);
    put_up(p);
    put(p, "\033[J");
    flush(p);
    p->n_lines = 0;
}

/* ---- drawing ------------------------------------------------------------- */

/* Is there room for one more line? The last of the terminal stays free: there
 * the cursor stands. */
static bool
has_room(const struct progress *p, size_t lines)
{
    return lines < MOST_LINES && lines + 1 < p->rows;
}

static void
end_line(struct progress *p, size_t *lines)
{
    put(p, "\033[K\n");
    p->lines[(*lines)++] = p->used;
    p->used = 0;
}

static void
put_coloured(struct progress *p, int colour, const char *text)
{
    if (colour && p->colour && *text)
        text_print(&p->out, "\033[%dm%s\033[m", colour, text);
    else
        put(p, text);
    p->used += strlen(text); /* of ASCII */
}

/* How much of what is known is settled; only where nothing more will come. */
static void
put_bar(struct progress *p, const struct view *v)
{
    const uint64_t settled = v->ok + v->failed;
    const uint64_t all = settled + v->left;
    char           bar[BAR + 16];

    if (!v->finite || !all || p->columns < BAR + 30)
        return;
    const unsigned part = (unsigned)((double)settled / (double)all * 100);
    const size_t   filled = part * BAR / 100;
    bar[0] = '[';
    memset(bar + 1, '#', filled);
    memset(bar + 1 + filled, '.', BAR - filled);
    (void)snprintf(bar + 1 + BAR, sizeof bar - 1 - BAR, "] %u%%", part);
    put_coloured(p, 0, bar);
}

static void
put_numbers(struct progress *p, const struct view *v, size_t *lines)
{
    struct words w = {.n = 0};

    say_numbers(&p->pace, v, &w);
    put_bar(p, v);
    for (size_t i = 0; i < w.n; i++) {
        if (p->used && p->used + 2 + strlen(w.text[i]) >= p->columns) {
            if (!has_room(p, *lines + 1))
                break;
            end_line(p, lines);
        }
        if (p->used)
            put_coloured(p, 0, "  ");
        if (strlen(w.text[i]) < p->columns)
            put_coloured(p, w.colour[i], w.text[i]);
    }
    end_line(p, lines);
}

static void
put_run(struct progress *p, const struct view *v, const struct run *run,
        size_t *lines)
{
    char   head[48];
    char   tail[32] = "";
    char   time[16];
    char   key[SHOWN_ROOM(MOST_COLUMNS)];
    size_t used;

    (void)snprintf(head, sizeof head, "%3u  %-6s ", run->slot,
                   say_time(v->now_ns - run->started_ns, time));
    if (run->attempt > 1)
        (void)snprintf(tail, sizeof tail, " (attempt %u)", run->attempt);
    if (p->columns <= strlen(head) + strlen(tail) + 8)
        *tail = '\0';
    if (p->columns <= strlen(head) + 8)
        *head = '\0';
    const size_t room = p->columns - 1 - strlen(head) - strlen(tail);
    put_coloured(p, FAINT, head);
    const size_t len =
        shown_key(&p->shown, run->key.data, run->key.len, room, key, &used);
    text_add(&p->out, key, len);
    p->used += used;
    put_coloured(p, YELLOW, tail);
    end_line(p, lines);
}

static void
put_runs(struct progress *p, const struct view *v, size_t *lines)
{
    size_t             n;
    struct run *const *runs = view_runs(p->runner, &n);
    char               more[48];

    for (size_t i = 0; i < n; i++) {
        if (!has_room(p, *lines))
            return;
        if (i + 1 < n && !has_room(p, *lines + 1)) {
            (void)snprintf(more, sizeof more, "     and %zu more", n - i);
            if (strlen(more) < p->columns)
                put_coloured(p, FAINT, more);
            end_line(p, lines);
            return;
        }
        put_run(p, v, runs[i], lines);
    }
}

static void
draw(struct progress *p, const struct view *v)
{
    size_t lines = 0;

    if (p->silent || in_background() || is_held())
        return;
    ask_size(p);
    text_clear(&p->out);
    p->used = 0;
    /* What was written since may lack a newline. A line of spaces ends where it
     * began if that was the first column, else on the next line. */
    if (!p->n_lines)
        text_print(&p->out, "%*s", (int)p->columns, "");
    put_up(p);
    if (p->rows > 1) {
        put_numbers(p, v, &lines);
        put_runs(p, v, &lines);
    }
    put(p, "\033[J");
    p->n_lines = lines;
    flush(p);
}

/* ---- time ---------------------------------------------------------------- */

static void
on_time(void *progress)
{
    struct progress *p = progress;
    struct view      v;

    view_take(p->runner, &v);
    pace_take(&p->pace, &v);
    if (p->plain)
        tell_plainly(p, &v);
    else
        draw(p, &v);
    const int64_t wait_ns = !p->plain   ? DRAW_NS
                            : p->said++ ? PLAIN_NS
                                        : PLAIN_SECOND_NS;
    loop_timer_set(p->loop, &p->timer, loop_now(p->loop) + wait_ns, on_time, p);
}

/* ---- life ---------------------------------------------------------------- */

static bool
is_set(const char *name)
{
    const char *value = getenv(name);

    return value && *value;
}

/* Can the cursor be moved there? */
static bool
is_terminal(void)
{
    const char *term = getenv("TERM");

    return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

bool
progress_create(const struct options *options, struct loop *loop,
                struct runner *runner, struct progress **out)
{
    const bool terminal = is_terminal();
    /* Children that write by themselves would write into the display. */
    const bool disturbed = options->grouping == GROUP_NONE &&
                           (isatty(STDOUT_FILENO) || isatty(STDERR_FILENO));

    *out = NULL;
    if (options->progress == SHOW_NEVER || options->quiet ||
        (options->progress == SHOW_AUTO && (!terminal || disturbed)))
        return true;
    struct progress *p = calloc(1, sizeof *p);
    if (!p) {
        tell_errno("--progress");
        return false;
    }
    p->options = options;
    p->loop = loop;
    p->runner = runner;
    p->plain = !terminal || disturbed;
    p->colour = !p->plain && !is_set("NO_COLOR");
    shown_init(&p->shown);
    if (!p->plain)
        tell_display(clear, p);
    loop_timer_set(loop, &p->timer,
                   loop_now(loop) + (p->plain ? PLAIN_FIRST_NS : FIRST_NS),
                   on_time, p);
    *out = p;
    return true;
}

void
progress_destroy(struct progress *p)
{
    if (!p)
        return;
    loop_timer_clear(p->loop, &p->timer);
    clear(p);
    if (!p->plain)
        tell_display(NULL, NULL);
    shown_fini(&p->shown);
    text_fini(&p->out);
    free(p);
}

void
progress_suspend(struct progress *p)
{
    if (!p)
        return;
    clear(p);
    p->silent = true;
}

void
progress_resume(struct progress *p)
{
    if (p)
        p->silent = false;
}
