/* SPDX-License-Identifier: MIT */
/* progress.c: how is progress shown? See progress.h.
 *
 *     [########............] 41%  820 done  3 failed  2 retrying  1175 ready
 *     12s  68.3/s  17s left
 *     failed: src/x.c: exit 2 (attempt 1): error: expected ';'
 *     retrying: src/b.c: timed out (attempt 2)
 *      1   1.2s  src/a.c
 *      2   340ms src/b.c (attempt 3)
 *
 * The numbers take as many lines as they need; the latest failure of each kind
 * and each run take one line, as far as they fit on the terminal. Drawing is one
 * write(): it moves up to the start of the display, then writes line by line,
 * each cleared to its end. Between two drawings the cursor is in the first column
 * below the display. Other writers call display_hide() first, which moves up and
 * clears to the end of the screen.
 *
 * The size of the terminal is read each time: that costs one system call, ten
 * times a second, and SIGWINCH could arrive between two drawings.
 */
#include "display/progress.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/report.h"
#include "base/text.h"
#include "display/printable.h"
#include "display/rate.h"
#include "display/reason.h"

#define MS INT64_C(1000000)

/* Programs that end earlier show nothing. */
#define FIRST_NS (150 * MS)
#define DRAW_NS (100 * MS)

/* Plain lines: after 1 and 3 seconds, then every 5. */
#define PLAIN_FIRST_NS (1000 * MS)
#define PLAIN_SECOND_NS (2000 * MS)
#define PLAIN_NS (5000 * MS)

/* For the latest failure, in a plain line. */
#define PLAIN_COLUMNS 100

#define MAX_LINES 64
#define MAX_COLUMNS 400
#define BAR 20 /* columns, without the brackets */

struct progress {
    const struct options *options;
    struct loop          *loop;
    struct runner        *runner;
    struct timer          timer;
    bool                  plain; /* lines, not a display */
    bool                  colour;
    bool                  silent;  /* suspended */
    unsigned              printed; /* plain lines */
    struct printable      printable;
    struct run_rate       rate;

    size_t          columns, rows; /* of the terminal, when last read */
    struct wq__text out;           /* what is being drawn */
    size_t          used;          /* columns of its last line */
    /* What is on the terminal: columns of each line. If the terminal has become
     * narrower, a line may take two rows. */
    size_t lines[MAX_LINES];
    size_t n_lines;
};

/* ---- the numbers --------------------------------------------------------- */

/* Parts of the text, for the display and for plain lines. */
struct words {
    char   text[16][48];
    int    colour[16]; /* of SGR; 0: none */
    size_t n;
};

__attribute__((format(printf, 3, 4))) static void
add_word(struct words *w, int colour, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(w->text[w->n], sizeof w->text[w->n], format, arguments);
    va_end(arguments);
    w->colour[w->n++] = colour;
}

enum { RED = 31, GREEN = 32, YELLOW = 33, FAINT = 2 };

static void
add_numbers(const struct run_rate *rate, const struct view *v, struct words *w)
{
    const double  per_second = rate_runs(rate);
    const int64_t left_ns = rate_left_ns(rate, v);
    char          time[16];

    if (v->phase >= PHASE_DRAINING)
        add_word(w, YELLOW, "%s", phase_name(v->phase));
    add_word(w, GREEN, "%" PRIu64 " done", v->counts.ok);
    add_word(w, v->counts.failed ? RED : 0, "%" PRIu64 " failed",
             v->counts.failed);
    if (v->retrying)
        add_word(w, YELLOW, "%zu retrying", v->retrying);
    if (v->waiting > v->retrying)
        add_word(w, 0, "%zu waiting", v->waiting - v->retrying);
    add_word(w, 0, "%zu ready", v->ready);
    add_word(w, 0, "%zu running", v->running);
    add_word(w, FAINT, "%s", report_time(v->now_ns - v->started_ns, time));
    add_word(w, FAINT, per_second < 10 ? "%.1f/s" : "%.0f/s", per_second);
    if (left_ns >= 0 && v->left)
        add_word(w, FAINT, "%s left", report_time(left_ns, time));
}

/* ---- plain lines --------------------------------------------------------- */

static void
print_plainly(struct progress *p, const struct view *v)
{
    const struct failures *failures = view_failures(p->runner);
    const struct failure  *last = failures_at(failures, failures->count);
    struct words           w = {.n = 0};
    char                   line[512] = "";
    char                   reason[PRINTABLE_SIZE(PLAIN_COLUMNS)] = "";
    size_t                 len = 0, reason_len = 0, used;

    add_numbers(&p->rate, v, &w);
    for (size_t i = 0; i < w.n && len < sizeof line; i++)
        len += (size_t)snprintf(line + len, sizeof line - len, "%s%s",
                                i ? ", " : "", w.text[i]);
    if (last)
        reason_len =
            reason_print(&p->printable, last, PLAIN_COLUMNS, reason, &used);
    report("%s%s%.*s", line, last ? "; last failure: " : "", (int)reason_len,
           reason);
}

/* ---- the terminal -------------------------------------------------------- */

static void
read_size(struct progress *p)
{
    struct winsize size = {0};

    (void)ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
    p->columns = size.ws_col ? size.ws_col : 80;
    p->rows = size.ws_row ? size.ws_row : 24;
    if (p->columns > MAX_COLUMNS)
        p->columns = MAX_COLUMNS;
}

/* Would a write() block? It would after Ctrl-S, and the loop must not block. */
static bool
is_blocked(void)
{
    struct pollfd terminal = {.fd = STDERR_FILENO, .events = POLLOUT};

    return poll(&terminal, 1, 0) == 0;
}

/* In the background we would write into the output of the foreground process, or
 * be stopped by SIGTTOU. tcgetpgrp() fails for a terminal that does not control
 * us. */
static bool
in_background(void)
{
    const pid_t group = tcgetpgrp(STDERR_FILENO);

    return group > 0 && group != getpgrp();
}

static void
put(struct progress *p, const char *text)
{
    wq__text_str(&p->out, text);
}

/* Moves to the first column of the first line of the display. */
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

/* An error of the terminal cannot be reported. */
static void
flush(struct progress *p)
{
    if (!p->out.err) {
        const ssize_t sent = write(STDERR_FILENO, p->out.data, p->out.len);
        (void)sent;
    }
    text_clear(&p->out);
}

/* Removes the display; the cursor is where it began. */
static void
hide(void *progress)
{
    struct progress *p = progress;

    if (!p->n_lines)
        return;
    read_size(p);
    text_clear(&p->out);
    put_up(p);
    put(p, "\033[J");
    flush(p);
    p->n_lines = 0;
}

/* ---- drawing ------------------------------------------------------------- */

/* Does one more line fit? The last row of the terminal is for the cursor. */
static bool
line_fits(const struct progress *p, size_t lines)
{
    return lines < MAX_LINES && lines + 1 < p->rows;
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
    p->used += strlen(text); /* it is ASCII */
}

/* The part of all keys that is settled; only if the input has ended. */
static void
put_bar(struct progress *p, const struct view *v)
{
    const uint64_t settled = v->counts.ok + v->counts.failed;
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

    add_numbers(&p->rate, v, &w);
    put_bar(p, v);
    for (size_t i = 0; i < w.n; i++) {
        if (p->used && p->used + 2 + strlen(w.text[i]) >= p->columns) {
            if (!line_fits(p, *lines + 1))
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

/* The latest failure of a kind; NULL: there is none. */
static void
put_failure(struct progress *p, int colour, const char *kind,
            const struct failure *failure, size_t *lines)
{
    char   text[PRINTABLE_SIZE(MAX_COLUMNS)];
    size_t used;

    if (!failure || !line_fits(p, *lines + 1) || p->columns < strlen(kind) + 16)
        return;
    put_coloured(p, colour, kind);
    const size_t len = reason_print(&p->printable, failure,
                                    p->columns - 1 - p->used, text, &used);
    wq__text_add(&p->out, text, len);
    p->used += used;
    end_line(p, lines);
}

static void
put_failures(struct progress *p, const struct view *v, size_t *lines)
{
    const struct failures *failures = view_failures(p->runner);

    put_failure(p, RED, "failed: ", failures_at(failures, failures->count),
                lines);
    if (v->retrying)
        put_failure(p, YELLOW, "retrying: ", failures_last_retry(failures),
                    lines);
}

static void
put_run(struct progress *p, const struct view *v, const struct run *run,
        size_t *lines)
{
    char   head[48];
    char   tail[32] = "";
    char   time[16];
    char   key[PRINTABLE_SIZE(MAX_COLUMNS)];
    size_t used;

    (void)snprintf(head, sizeof head, "%3u  %-6s ", run->slot,
                   report_time(v->now_ns - run->started_ns, time));
    if (run->attempt > 1)
        (void)snprintf(tail, sizeof tail, " (attempt %u)", run->attempt);
    if (p->columns <= strlen(head) + strlen(tail) + 8)
        *tail = '\0';
    if (p->columns <= strlen(head) + 8)
        *head = '\0';
    const size_t width = p->columns - 1 - strlen(head) - strlen(tail);
    put_coloured(p, FAINT, head);
    const size_t len = printable_key(&p->printable, run->key.data, run->key.len,
                                     width, key, &used);
    wq__text_add(&p->out, key, len);
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
        if (!line_fits(p, *lines))
            return;
        if (i + 1 < n && !line_fits(p, *lines + 1)) {
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

    if (p->silent || in_background() || is_blocked())
        return;
    read_size(p);
    text_clear(&p->out);
    p->used = 0;
    /* What was written since may lack a newline. A line of spaces ends where it
     * began if that was the first column, else on the next line. */
    if (!p->n_lines)
        text_print(&p->out, "%*s", (int)p->columns, "");
    put_up(p);
    if (p->rows > 1) {
        put_numbers(p, v, &lines);
        put_failures(p, v, &lines);
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
    rate_take(&p->rate, &v);
    if (p->plain)
        print_plainly(p, &v);
    else
        draw(p, &v);
    const int64_t wait_ns = !p->plain      ? DRAW_NS
                            : p->printed++ ? PLAIN_NS
                                           : PLAIN_SECOND_NS;
    loop_timer_set(p->loop, &p->timer, loop_now(p->loop) + wait_ns, on_time, p);
}

/* ---- create and destroy -------------------------------------------------- */

static bool
is_set(const char *name)
{
    const char *value = getenv(name);

    return value && *value;
}

/* Is stderr a terminal with a movable cursor? */
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
    /* With --ungroup, children would write into the display. */
    const bool disturbed = options->grouping == GROUP_NONE &&
                           (isatty(STDOUT_FILENO) || isatty(STDERR_FILENO));

    *out = NULL;
    if (options->progress == SHOW_NEVER || options->quiet ||
        (options->progress == SHOW_AUTO && (!terminal || disturbed)))
        return true;
    struct progress *p = calloc(1, sizeof *p);
    if (!p) {
        report_errno("--progress");
        return false;
    }
    p->options = options;
    p->loop = loop;
    p->runner = runner;
    p->plain = !terminal || disturbed;
    p->colour = !p->plain && !is_set("NO_COLOR");
    printable_init(&p->printable);
    if (!p->plain)
        display_set(hide, p);
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
    hide(p);
    if (!p->plain)
        display_set(NULL, NULL);
    printable_fini(&p->printable);
    wq__text_fini(&p->out);
    free(p);
}

void
progress_suspend(struct progress *p)
{
    if (!p)
        return;
    hide(p);
    p->silent = true;
}

void
progress_resume(struct progress *p)
{
    if (p)
        p->silent = false;
}
