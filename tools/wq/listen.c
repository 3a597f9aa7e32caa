/* SPDX-License-Identifier: MIT */
/* listen.c: what can be asked over HTTP? See listen.h.
 *
 * libmicrohttpd reads requests and writes answers; it has an epoll of its own,
 * which our loop watches, and no thread. A client that is slow does not hold
 * anybody up: a stream gets its next event when it has taken the last one.
 */
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "address.h"
#include "history.h"
#include "keys.h"
#include "metrics.h"
#include "pace.h"
#include "page.h"
#include "state.h"
#include "tell.h"

#define MS INT64_C(1000000)

/* How often streams are told: when something has changed, and anyway. */
#define SOON_NS (250 * MS)
#define REGULAR_NS (1000 * MS)
/* How long the end waits for those who look. */
#define PARTING_NS (300 * MS)

/* A browser opens up to six connections for each that looks. */
#define MOST_STREAMS 16
#define MOST_CONNECTIONS 128
#define IDLE_SECONDS 60

/* Somebody who reads /events. Owned by the response, which frees it. */
struct stream {
    struct listener       *listener;
    struct MHD_Connection *connection;
    struct keys            keys;         /* what is looked for, and found */
    uint64_t               history_from; /* samples before it were sent */
    struct text            out;          /* the event under way */
    size_t                 sent;         /* of it */
    int64_t                told_ns;      /* when the event was made */
    bool                   asleep; /* all is sent: suspended, until the next */
    bool                   last;   /* nothing comes after `out` */
    struct stream         *next;   /* of the listener's */
};

struct listener {
    const struct options *options;
    struct loop          *loop;
    struct runner        *runner;
    struct address        address;
    struct MHD_Daemon    *daemon;
    struct watch          watch;    /* the daemon's epoll */
    struct watch          arrivals; /* who wants to be let in */
    struct timer          again;    /* when the daemon wants to be called */
    struct timer          tick;
    struct view           view; /* the last one taken */
    struct pace           pace;
    struct history        history;
    struct keys_ration    ration;
    struct stream        *streams;
    size_t                n_streams;
    bool                  finished; /* the program is about to end */
};

/* ---- answers ------------------------------------------------------------- */

static bool
add_header(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

/* What all answers have: nobody keeps them, guesses what they are, or shows
 * them within other pages. */
static enum MHD_Result
send_response(struct MHD_Connection *client, unsigned status, const char *type,
              struct MHD_Response *response)
{
    if (!response)
        return MHD_NO;
    const enum MHD_Result sent =
        add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) &&
                add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
                           "no-store") &&
                add_header(response, "X-Content-Type-Options", "nosniff") &&
                add_header(response, "Referrer-Policy", "no-referrer") &&
                add_header(response, "Cross-Origin-Resource-Policy",
                           "same-origin")
            ? MHD_queue_response(client, status, response)
            : MHD_NO;
    MHD_destroy_response(response);
    return sent;
}

static enum MHD_Result
send_words(struct MHD_Connection *client, unsigned status, const char *words)
{
    return send_response(
        client, status, "text/plain; charset=utf-8",
        MHD_create_response_from_buffer(strlen(words), (void *)words,
                                        MHD_RESPMEM_PERSISTENT));
}

/* Takes `text` over. No memory: hangs up. */
static enum MHD_Result
send_text(struct MHD_Connection *client, const char *type, struct text *text)
{
    struct MHD_Response *response = NULL;

    if (!text->failed)
        response = MHD_create_response_from_buffer(text->len, text->data,
                                                   MHD_RESPMEM_MUST_FREE);
    if (!response)
        text_fini(text);
    return send_response(client, MHD_HTTP_OK, type, response);
}

/* ---- the page ------------------------------------------------------------ */

/* In the page it stands where a number used once shall be. */
static const char placeholder[] = "NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN";
#define NONCE_LEN (sizeof placeholder - 1)

static bool
make_nonce(char nonce[NONCE_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char     bytes[NONCE_LEN / 2];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++) {
        nonce[2 * i] = digits[bytes[i] >> 4];
        nonce[2 * i + 1] = digits[bytes[i] & 15];
    }
    nonce[NONCE_LEN] = '\0';
    return true;
}

static enum MHD_Result
serve_page(struct listener *l, struct MHD_Connection *client)
{
    struct text page = {0};
    struct text policy = {0};
    char        nonce[NONCE_LEN + 1];

    (void)l;
    text_add(&page, page_html, page_html_len);
    if (page.failed || !make_nonce(nonce))
        return text_fini(&page), MHD_NO;
    for (char *at = page.data; (at = strstr(at, placeholder));)
        memcpy(at, nonce, NONCE_LEN);
    text_print(&policy,
               "default-src 'none'; script-src 'nonce-%s'; style-src "
               "'nonce-%s'; img-src data:; connect-src 'self'; base-uri "
               "'none'; form-action 'none'; frame-ancestors 'none'",
               nonce, nonce);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        page.len, page.data, MHD_RESPMEM_MUST_FREE);
    const bool guarded =
        response && !policy.failed &&
        add_header(response, "Content-Security-Policy", policy.data);
    text_fini(&policy);
    if (!response)
        text_fini(&page);
    else if (!guarded)
        MHD_destroy_response(response);
    return guarded ? send_response(client, MHD_HTTP_OK,
                                   "text/html; charset=utf-8", response)
                   : MHD_NO;
}

/* ---- numbers ------------------------------------------------------------- */

static void
take_view(struct listener *l)
{
    view_take(l->runner, &l->view);
    pace_take(&l->pace, &l->view);
    history_take(&l->history, &l->view);
}

static enum MHD_Result
serve_metrics(struct listener *l, struct MHD_Connection *client)
{
    const wq_text format = wq_text_accepted(MHD_lookup_connection_value(
        client, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT));
    struct text   text = {0};

    take_view(l);
    if (!metrics_add(l->runner, &l->view, format, &text))
        text.failed = true;
    return send_text(client, wq_text_type(format), &text);
}

static enum MHD_Result
serve_health(struct listener *l, struct MHD_Connection *client)
{
    (void)l;
    return send_words(client, MHD_HTTP_OK, "ok\n");
}

/* What ?q= and ?show= ask for; false: nothing there is. */
static bool
read_query(struct MHD_Connection *client, struct keys *keys)
{
    const char *text = NULL;
    size_t      len = 0;
    const char *show =
        MHD_lookup_connection_value(client, MHD_GET_ARGUMENT_KIND, "show");

    (void)MHD_lookup_connection_value_n(client, MHD_GET_ARGUMENT_KIND, "q", 1,
                                        &text, &len);
    keys->wanted = keys_state_named(show ? show : "");
    if (!keys->wanted || len > sizeof keys->search)
        return false;
    if (text)
        memcpy(keys->search, text, len);
    keys->search_len = len;
    return true;
}

static const char bad_query[] =
    "q has at most 1024 bytes; show is running, retrying, waiting or ready\n";

static bool
add_state(struct listener *l, const struct keys *keys, uint64_t history_from,
          struct text *out)
{
    return state_add(
        &(struct state){
            .runner = l->runner,
            .view = &l->view,
            .pace = &l->pace,
            .history = &l->history,
            .history_from = history_from,
            .keys = keys,
            .finished = l->finished,
        },
        out);
}

static enum MHD_Result
serve_view(struct listener *l, struct MHD_Connection *client)
{
    struct keys *keys = calloc(1, sizeof *keys);
    struct text  text = {0};

    if (!keys)
        return MHD_NO;
    if (!read_query(client, keys)) {
        free(keys);
        return send_words(client, MHD_HTTP_BAD_REQUEST, bad_query);
    }
    take_view(l);
    (void)keys_look(keys, l->runner, &l->view, &l->ration);
    (void)add_state(l, keys, 0, &text);
    text_print(&text, "\n");
    free(keys);
    return send_text(client, "application/json", &text);
}

/* ---- streams ------------------------------------------------------------- */

/* The next event, of the view that was taken. Out of memory: the stream ends,
 * and the browser will ask again. */
static void
write_event(struct stream *s)
{
    struct listener *l = s->listener;

    if (!s->told_ns || keys_may_look(&l->ration, &l->view))
        (void)keys_look(&s->keys, l->runner, &l->view, &l->ration);
    text_clear(&s->out);
    s->sent = 0;
    text_print(&s->out, "event: state\ndata: ");
    s->last = !add_state(l, &s->keys, s->history_from, &s->out) || l->finished;
    text_print(&s->out, "\n\n");
    s->history_from = l->history.n;
    s->told_ns = l->view.now_ns;
}

/* MHD: fill the buffer. */
static ssize_t
read_stream(void *stream, uint64_t position, char *buffer, size_t room)
{
    struct stream *s = stream;
    const size_t   left = s->out.len - s->sent;
    const size_t   n = left < room ? left : room;

    (void)position;
    if (s->out.failed || (!n && s->last))
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!n) {
        s->asleep = true;
        MHD_suspend_connection(s->connection);
        return 0;
    }
    memcpy(buffer, s->out.data + s->sent, n);
    s->sent += n;
    return (ssize_t)n;
}

/* MHD: nobody reads it any more. */
static void
free_stream(void *stream)
{
    struct stream  *s = stream;
    struct stream **at = &s->listener->streams;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->listener->n_streams--;
    text_fini(&s->out);
    free(s);
}

static void tick(void *listener);

static enum MHD_Result
serve_events(struct listener *l, struct MHD_Connection *client)
{
    struct stream *s;

    if (l->n_streams >= MOST_STREAMS)
        return send_words(client, MHD_HTTP_SERVICE_UNAVAILABLE,
                          "too many are looking already\n");
    if (!(s = calloc(1, sizeof *s)))
        return MHD_NO;
    if (!read_query(client, &s->keys)) {
        free(s);
        return send_words(client, MHD_HTTP_BAD_REQUEST, bad_query);
    }
    s->listener = l;
    s->connection = client;
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, 16384, read_stream, s, free_stream);
    if (!response) {
        free(s);
        return MHD_NO;
    }
    s->next = l->streams;
    l->streams = s;
    l->n_streams++;
    take_view(l);
    write_event(s);
    loop_timer_set(l->loop, &l->tick, loop_now(l->loop) + SOON_NS, tick, l);
    return send_response(client, MHD_HTTP_OK, "text/event-stream", response);
}

static void
wake(struct stream *s)
{
    if (!s->asleep)
        return;
    s->asleep = false;
    MHD_resume_connection(s->connection);
}

/* ---- requests ------------------------------------------------------------ */

static const struct {
    const char *path;
    enum MHD_Result (*serve)(struct listener *l, struct MHD_Connection *client);
} places[] = {
    {"/", serve_page},         {"/metrics", serve_metrics},
    {"/view", serve_view},     {"/healthz", serve_health},
    {"/events", serve_events},
};

static bool
is_for_us(const struct listener *l, struct MHD_Connection *client)
{
    return l->address.is_local ||
           address_is_host(MHD_lookup_connection_value(client, MHD_HEADER_KIND,
                                                       MHD_HTTP_HEADER_HOST));
}

/* MHD: a request has come. */
static enum MHD_Result
serve(void *listener, struct MHD_Connection *client, const char *url,
      const char *method, const char *version, const char *upload,
      size_t *upload_size, void **state)
{
    static int seen;

    (void)version, (void)upload;
    if (!*state) { /* its head is here; the answer is for all of it */
        *state = &seen;
        return MHD_YES;
    }
    if (*upload_size) {
        *upload_size = 0; /* read, and of no interest */
        return MHD_YES;
    }
    if (!is_for_us(listener, client))
        return send_words(client, MHD_HTTP_MISDIRECTED_REQUEST,
                          "ask by address, or for localhost\n");
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
        strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return send_words(client, MHD_HTTP_METHOD_NOT_ALLOWED,
                          "only GET and HEAD\n");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strcmp(url, places[i].path) == 0)
            return places[i].serve(listener, client);
    return send_words(client, MHD_HTTP_NOT_FOUND,
                      "there are /, /metrics, /healthz, /view and /events\n");
}

/* ---- the loop ------------------------------------------------------------ */

static void on_again(void *listener);

/* Is there room for one more connection? */
static bool
has_room(const struct listener *l)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

    return info && info->num_connections < MOST_CONNECTIONS;
}

static void
pump(struct listener *l)
{
    MHD_UNSIGNED_LONG_LONG ms;

    (void)MHD_run(l->daemon);
    /* The rest waits in line until somebody has gone. */
    loop_rewatch(l->loop, &l->arrivals, has_room(l) ? EPOLLIN : 0);
    if (MHD_get_timeout(l->daemon, &ms) == MHD_YES)
        loop_timer_set(l->loop, &l->again, loop_now(l->loop) + (int64_t)ms * MS,
                       on_again, l);
    else
        loop_timer_clear(l->loop, &l->again);
}

static void
on_again(void *listener)
{
    pump(listener);
}

static void
on_ready(void *listener, uint32_t events)
{
    (void)events;
    pump(listener);
}

/* The daemon would accept them itself, but once it has had as many as it may
 * have it sometimes does not begin again (0.9.75). */
static void
on_arrival(void *listener, uint32_t events)
{
    struct listener        *l = listener;
    struct sockaddr_storage from = {0};
    socklen_t               len = sizeof from;

    (void)events;
    const int fd = accept4(l->address.fd, (struct sockaddr *)&from, &len,
                           SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
        loop_rewatch(l->loop, &l->arrivals, 0); /* until the next tick */
        return;
    }
    if (fd >= 0) /* if it is not taken, it is closed */
        (void)MHD_add_connection(l->daemon, fd, (struct sockaddr *)&from, len);
    pump(l);
}

/* Has something happened between the two? Ages do not count. */
static bool
has_changed(const struct view *a, const struct view *b)
{
    return a->adds != b->adds || a->runs != b->runs || a->ok != b->ok ||
           a->failed != b->failed || a->retries != b->retries ||
           a->ready != b->ready || a->waiting != b->waiting ||
           a->running != b->running || a->slots != b->slots ||
           a->phase != b->phase;
}

static void
tick(void *listener)
{
    struct listener  *l = listener;
    const struct view before = l->view;

    take_view(l);
    const bool changed = has_changed(&before, &l->view);
    for (struct stream *s = l->streams; s; s = s->next)
        if (s->asleep &&
            (changed || l->view.now_ns - s->told_ns >= REGULAR_NS)) {
            write_event(s);
            wake(s);
        }
    pump(l);
    loop_timer_set(l->loop, &l->tick,
                   loop_now(l->loop) + (l->streams ? SOON_NS : REGULAR_NS),
                   tick, l);
}

/* ---- life ---------------------------------------------------------------- */

const char *
listen_check(const char *address)
{
    static char why[320];

    return address_check(address, why, sizeof why) ? NULL : why;
}

static bool
start(struct listener *l)
{
    l->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0,
        NULL, NULL, serve, l, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)MOST_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_SECONDS, MHD_OPTION_END);
    if (!l->daemon)
        return false;
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info &&
           loop_watch(l->loop, &l->watch, info->epoll_fd, EPOLLIN, on_ready,
                      l) &&
           loop_watch(l->loop, &l->arrivals, l->address.fd, EPOLLIN, on_arrival,
                      l);
}

bool
listen_create(const struct options *options, struct loop *loop,
              struct runner *runner, struct listener **out)
{
    char             why[320];
    struct listener *l;

    *out = NULL;
    if (!options->listen)
        return true;
    if (!(l = calloc(1, sizeof *l))) {
        tell_errno("--listen");
        return false;
    }
    l->options = options;
    l->loop = loop;
    l->runner = runner;
    if (!address_open(&l->address, options->listen, why, sizeof why)) {
        tell("--listen=%s: %s", options->listen, why);
        free(l);
        return false;
    }
    if (!start(l)) {
        tell_errno("--listen=%s", options->listen);
        listen_destroy(l);
        return false;
    }
    if (!options->quiet || l->address.chosen)
        tell("listening on %s", l->address.url);
    /* The program has not begun yet: there is nothing to see before. */
    loop_timer_set(loop, &l->tick, loop_now(loop), tick, l);
    *out = l;
    return true;
}

/* Let the streams have their last event, as far as they take it in time. */
static void
part(struct listener *l)
{
    struct pollfd epoll = {.fd = l->watch.fd, .events = POLLIN};
    const int64_t end_ns = loop_refresh(l->loop) + PARTING_NS;

    l->finished = true;
    take_view(l);
    for (int64_t now_ns = loop_now(l->loop); l->streams && now_ns < end_ns;
         now_ns = loop_refresh(l->loop)) {
        for (struct stream *s = l->streams; s; s = s->next)
            if (s->asleep) {
                write_event(s);
                wake(s);
            }
        (void)MHD_run(l->daemon);
        if (l->streams)
            (void)poll(&epoll, 1, 10);
    }
    /* The daemon must not be stopped while one of them sleeps. */
    for (struct stream *s = l->streams; s; s = s->next)
        wake(s);
}

void
listen_destroy(struct listener *l)
{
    if (!l)
        return;
    if (l->daemon) {
        if (l->streams)
            part(l);
        loop_unwatch(l->loop, &l->watch);
        loop_unwatch(l->loop, &l->arrivals);
        loop_timer_clear(l->loop, &l->again);
        loop_timer_clear(l->loop, &l->tick);
        MHD_stop_daemon(l->daemon);
    }
    address_close(&l->address);
    free(l);
}
