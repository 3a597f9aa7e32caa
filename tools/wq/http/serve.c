/* SPDX-License-Identifier: MIT */
/* serve.c: what is the answer to an HTTP request? */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "http/listener.h"
#include "http/metrics.h"
#include "http/page.h"
#include "http/state.h"
#include "options/address.h"
#include "queue/server.h"

/* A browser opens up to six connections to a server. */
#define MAX_STREAMS 16

/* ---- responses ----------------------------------------------------------- */

static bool
add_header(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

/* The headers of all responses: do not cache it, do not guess its type, do not
 * load it from other sites. */
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

/* `line` is a constant. */
static enum MHD_Result
send_line(struct MHD_Connection *client, unsigned status, const char *line)
{
    return send_response(
        client, status, "text/plain; charset=utf-8",
        MHD_create_response_from_buffer(strlen(line), (void *)line,
                                        MHD_RESPMEM_PERSISTENT));
}

/* Takes the bytes of `text` over. NULL: out of memory, and they are freed. */
static struct MHD_Response *
make_response(struct wq__text *text)
{
    struct MHD_Response *response = NULL;

    if (!text->err)
        response = MHD_create_response_from_buffer(text->len, text->data,
                                                   MHD_RESPMEM_MUST_FREE);
    if (!response)
        wq__text_fini(text);
    return response;
}

/* ---- / ------------------------------------------------------------------- */

/* Stands in page.html where the nonce belongs. */
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

static bool
add_policy(struct MHD_Response *response, const char *nonce)
{
    struct wq__text policy = {0};

    text_print(&policy,
               "default-src 'none'; script-src 'nonce-%s'; style-src "
               "'nonce-%s'; img-src data:; connect-src 'self'; base-uri "
               "'none'; form-action 'none'; frame-ancestors 'none'",
               nonce, nonce);
    const char *value = text_terminate(&policy);
    const bool  added =
        value && add_header(response, "Content-Security-Policy", value);
    wq__text_fini(&policy);
    return added;
}

static enum MHD_Result
serve_page(struct listener *l, struct MHD_Connection *client)
{
    struct wq__text page = {0};
    char            nonce[NONCE_LEN + 1];

    (void)l;
    wq__text_add(&page, page_html, page_html_len);
    char *at = text_terminate(&page);
    if (!at || !make_nonce(nonce))
        return wq__text_fini(&page), MHD_NO;
    while ((at = strstr(at, placeholder)))
        memcpy(at, nonce, NONCE_LEN);
    struct MHD_Response *response = make_response(&page);
    if (response && !add_policy(response, nonce)) {
        MHD_destroy_response(response);
        response = NULL;
    }
    return send_response(client, MHD_HTTP_OK, "text/html; charset=utf-8",
                         response);
}

/* ---- /metrics, /healthz, /readyz, /view, /events ------------------------- */

void
listener_take_view(struct listener *l)
{
    view_take(l->runner, &l->view);
    rate_take(&l->rate, &l->view);
    history_take(&l->history, &l->view);
}

static enum MHD_Result
serve_metrics(struct listener *l, struct MHD_Connection *client)
{
    const wq_text   format = wq_text_accepted(MHD_lookup_connection_value(
          client, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT));
    struct wq__text text = {0};

    listener_take_view(l);
    if (!metrics_add(l->runner, &l->view, format, &text))
        text.err = WQ_ENOMEM;
    return send_response(client, MHD_HTTP_OK, wq_text_type(format),
                         make_response(&text));
}

static enum MHD_Result
serve_health(struct listener *l, struct MHD_Connection *client)
{
    (void)l;
    return send_line(client, MHD_HTTP_OK, "ok\n");
}

/* Not a reason to restart the program, which waits for the server by itself. */
static enum MHD_Result
serve_ready(struct listener *l, struct MHD_Connection *client)
{
    struct server server;

    if (server_read(view_queue(l->runner), &server) && !server.reachable)
        return send_line(client, MHD_HTTP_SERVICE_UNAVAILABLE,
                         "the server of the queue does not answer\n");
    return send_line(client, MHD_HTTP_OK, "ok\n");
}

/* Reads ?q= and ?show=. False: one of them is not accepted. */
static bool
read_query(struct MHD_Connection *client, struct keys_query *query)
{
    const char *text = NULL;
    size_t      len = 0;
    const char *show =
        MHD_lookup_connection_value(client, MHD_GET_ARGUMENT_KIND, "show");

    (void)MHD_lookup_connection_value_n(client, MHD_GET_ARGUMENT_KIND, "q", 1,
                                        &text, &len);
    query->wanted = keys_state_named(show ? show : "");
    if (!query->wanted || len > sizeof query->search)
        return false;
    if (text)
        memcpy(query->search, text, len);
    query->search_len = len;
    return true;
}

static enum MHD_Result
refuse_query(struct MHD_Connection *client)
{
    return send_line(client, MHD_HTTP_BAD_REQUEST,
                     "q has at most 1024 bytes; show is all, running, "
                     "retrying, waiting, ready or dead\n");
}

bool
listener_add_state(struct listener *l, const struct keys *keys,
                   uint64_t history_from, uint64_t failed_from,
                   struct wq__text *out)
{
    return state_add(
        &(struct state){
            .runner = l->runner,
            .view = &l->view,
            .rate = &l->rate,
            .history = &l->history,
            .history_from = history_from,
            .failed_from = failed_from,
            .keys = keys,
            .finished = l->finished,
        },
        out);
}

static enum MHD_Result
serve_view(struct listener *l, struct MHD_Connection *client)
{
    struct keys_query query;
    struct wq__text   text = {0};

    if (!read_query(client, &query))
        return refuse_query(client);
    struct keys *keys = calloc(1, sizeof *keys);
    if (!keys)
        return MHD_NO;
    keys->query = query;
    listener_take_view(l);
    (void)keys_look(keys, l->runner, &l->view, NULL);
    (void)listener_add_state(l, keys, 0, 1, &text);
    wq__text_str(&text, "\n");
    free(keys);
    return send_response(client, MHD_HTTP_OK, "application/json",
                         make_response(&text));
}

static enum MHD_Result
serve_events(struct listener *l, struct MHD_Connection *client)
{
    struct keys_query query;

    if (l->n_streams >= MAX_STREAMS)
        return send_line(client, MHD_HTTP_SERVICE_UNAVAILABLE,
                         "too many clients read /events\n");
    if (!read_query(client, &query))
        return refuse_query(client);
    connections_answer(l, client, true);
    return send_response(client, MHD_HTTP_OK, "text/event-stream",
                         stream_create(l, client, &query));
}

/* ---- requests ------------------------------------------------------------ */

static const struct {
    const char *path;
    enum MHD_Result (*serve)(struct listener *l, struct MHD_Connection *client);
} paths[] = {
    {"/", serve_page},        {"/metrics", serve_metrics},
    {"/view", serve_view},    {"/healthz", serve_health},
    {"/readyz", serve_ready}, {"/events", serve_events},
};

static bool
is_host_accepted(const struct listener *l, struct MHD_Connection *client)
{
    return l->socket.is_local ||
           address_is_host(MHD_lookup_connection_value(client, MHD_HEADER_KIND,
                                                       MHD_HTTP_HEADER_HOST));
}

enum MHD_Result
serve(void *listener, struct MHD_Connection *client, const char *url,
      const char *method, const char *version, const char *upload,
      size_t *upload_size, void **state)
{
    static int seen;

    (void)version, (void)upload;
    if (!*state) { /* the first call: only the headers have arrived */
        *state = &seen;
        return MHD_YES;
    }
    if (*upload_size) {
        *upload_size = 0; /* a body is read and ignored */
        return MHD_YES;
    }
    connections_answer(listener, client, false);
    if (!is_host_accepted(listener, client))
        return send_line(client, MHD_HTTP_MISDIRECTED_REQUEST,
                         "the Host must be a numeric address or localhost\n");
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
        strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return send_line(client, MHD_HTTP_METHOD_NOT_ALLOWED,
                         "only GET and HEAD are supported\n");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strcmp(url, paths[i].path) == 0)
            return paths[i].serve(listener, client);
    return send_line(client, MHD_HTTP_NOT_FOUND,
                     "not found; served: /, /metrics, /healthz, /readyz, "
                     "/view, /events\n");
}
