/* SPDX-License-Identifier: MIT */
/* api.c: how does a request reach the API server, and its answer us?
 *
 * libcurl does HTTP and TLS. A client is one easy handle in a multi handle of
 * its own: curl_multi_poll() sleeps until a byte arrives or another thread
 * calls curl_multi_wakeup(), so that a watch can be ended at any time, and an
 * idle one costs nothing.
 */
#include "api.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The longest answer or line: an object has at most 1.5 MB in etcd, and a page
 * of a list has 100 objects, most of them small. */
enum { MAX_BODY = 256 << 20, MAX_LINE = 16 << 20, MAX_TOKEN = 64 << 10 };

/* Tokens of service accounts are replaced long before they expire. */
enum { TOKEN_MS = 60000, CONNECT_MS = 10000 };

struct api_client {
    const struct api_config *config;
    CURL                    *easy;
    CURLM                   *multi;
    struct curl_slist       *headers;
    atomic_bool              stopped; /* set by any thread, before the wakeup */
    char                    *token;   /* NULL: not read yet, or none */
    int64_t                  token_ms; /* when it was read */
    char                    *bytes; /* of the answer that were not consumed */
    size_t                   len, capacity;
    int64_t                  heard_ms; /* when the last byte came */
    const struct api_request *request; /* the current one */
    const char               *why;     /* why we ended it; NULL: we did not */
    char                      error[CURL_ERROR_SIZE];
};

int64_t
api_now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- what arrives ------------------------------------------------------- */

/* Append, with a NUL after it. False: out of memory. */
static bool
append(struct api_client *c, const char *data, size_t n)
{
    if (c->len + n >= c->capacity) {
        const size_t capacity = 2 * (c->len + n) + 4096;
        char *const  bytes = realloc(c->bytes, capacity);
        if (!bytes)
            return false;
        c->bytes = bytes;
        c->capacity = capacity;
    }
    memcpy(c->bytes + c->len, data, n);
    c->len += n;
    c->bytes[c->len] = '\0';
    return true;
}

/* begin: lines */
/* Hand on the complete lines, and keep the rest: a line may arrive in any
 * number of pieces. `fresh`: from where on there may be a newline. */
static bool
take_lines(struct api_client *c, size_t fresh)
{
    size_t      begin = 0;
    const char *newline;

    while ((newline = memchr(c->bytes + fresh, '\n', c->len - fresh))) {
        const size_t end = (size_t)(newline - c->bytes);
        c->why =
            c->request->on_line(c->request->ctx, c->bytes + begin, end - begin);
        if (c->why)
            return false;
        begin = fresh = end + 1;
    }
    c->len -= begin;
    if (begin > 0)
        memmove(c->bytes, c->bytes + begin, c->len);
    if (c->len > MAX_LINE)
        c->why = "a line is too long";
    return c->len <= MAX_LINE;
}
/* end: lines */

/* Called by libcurl with a part of the answer; another number than n ends the
 * request. */
static size_t
receive(char *data, size_t size, size_t n, void *arg)
{
    struct api_client *const c = arg;
    const size_t             before = c->len;
    long                     status = 0;

    (void)size; /* 1 */
    c->heard_ms = api_now_ms();
    if (c->len + n > MAX_BODY || !append(c, data, n)) {
        c->why = "the answer is too long";
        return 0;
    }
    (void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200 && c->request->on_line)
        return take_lines(c, before) ? n : 0;
    return n;
}

/* ---- who we are --------------------------------------------------------- */

/* Read the token again. If it cannot be read, the old one stays. */
static void
read_token(struct api_client *c)
{
    errno = 0;
    FILE *const file = fopen(c->config->token_file, "r");
    char *const token = file ? calloc(1, MAX_TOKEN) : NULL;

    c->token_ms = api_now_ms();
    if (token && fread(token, 1, MAX_TOKEN - 1, file) > 0) {
        token[strcspn(token, " \r\n\t")] = '\0';
        free(c->token);
        c->token = token;
    } else {
        (void)fprintf(stderr, "widgets: cannot read the token in '%s': %s\n",
                      c->config->token_file,
                      errno ? strerror(errno) : "it is empty");
        free(token);
    }
    if (file)
        (void)fclose(file);
}

/* ---- a request ---------------------------------------------------------- */

static void
prepare(struct api_client *c, const struct api_request *request)
{
    const struct api_config *const config = c->config;
    CURL *const                    easy = c->easy;
    char                           url[4096];

    (void)snprintf(url, sizeof url, "%s%s", config->server, request->path);
    curl_easy_reset(easy); /* keeps the connection */
    (void)curl_easy_setopt(easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https,http");
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "wq-widgets/1");
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, c->headers);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, c);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, c->error);
    /* One request at a time: HTTP/2 would have no use. */
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION,
                           (long)CURL_HTTP_VERSION_1_1);
    /* A peer that vanished is noticed even if no byte is due. */
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 30L);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 10L);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    (void)curl_easy_setopt(
        easy, CURLOPT_TIMEOUT_MS,
        (long)(request->total_ms ? request->total_ms : config->request_ms));

    /* libcurl checks the certificate and the host's name unless told not to. */
    if (config->ca_file)
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, config->ca_file);
    /* The file may be replaced: every connection reads it. */
    (void)curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
    if (config->insecure) {
        (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (config->cert_file) {
        (void)curl_easy_setopt(easy, CURLOPT_SSLCERT, config->cert_file);
        (void)curl_easy_setopt(easy, CURLOPT_SSLKEY, config->key_file);
    }
    if (c->token) {
        (void)curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        (void)curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, c->token);
    }

    if (request->body)
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
    if (request->method)
        (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

/* begin: perform */
/* Run the request that was prepared. libcurl keeps its own timeouts; this loop
 * adds two reasons to end: silence, and another thread's wish. */
static CURLcode
perform(struct api_client *c, int64_t silence_ms)
{
    CURLcode code = CURLE_ABORTED_BY_CALLBACK;
    int      running, left;
    CURLMsg *message;

    if (curl_multi_add_handle(c->multi, c->easy))
        return CURLE_FAILED_INIT;
    c->heard_ms = api_now_ms();
    while (!c->why && !curl_multi_perform(c->multi, &running)) {
        if (!running) {
            message = curl_multi_info_read(c->multi, &left);
            code = message ? message->data.result : CURLE_RECV_ERROR;
            break;
        }
        const int64_t patience_ms = c->heard_ms + silence_ms - api_now_ms();
        if (atomic_load(&c->stopped))
            c->why = "stopped";
        else if (patience_ms <= 0)
            c->why = "the server was silent for too long";
        else
            (void)curl_multi_poll(c->multi, NULL, 0, (int)patience_ms, NULL);
    }
    /* Closes the connection if there is more to come. */
    (void)curl_multi_remove_handle(c->multi, c->easy);
    return code;
}
/* end: perform */

static struct api_answer
call_once(struct api_client *c, const struct api_request *request)
{
    struct api_answer answer = {.body = "", .error = ""};
    const int64_t     total_ms =
        request->total_ms ? request->total_ms : c->config->request_ms;
    curl_off_t wait_s = 0;

    c->request = request;
    c->why = NULL;
    c->error[0] = '\0';
    c->len = 0;
    if (!append(c, "", 0)) {
        answer.error = "out of memory";
        return answer;
    }
    prepare(c, request);
    const CURLcode code =
        perform(c, request->silence_ms ? request->silence_ms : total_ms);
    if (code != CURLE_OK) {
        answer.error = c->why        ? c->why
                       : c->error[0] ? c->error
                                     : curl_easy_strerror(code);
        return answer;
    }
    (void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &answer.status);
    (void)curl_easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &wait_s);
    answer.retry_after_ms = (int64_t)wait_s * 1000;
    answer.body = c->bytes;
    answer.len = c->len;
    return answer;
}

struct api_answer
api_call(struct api_client *c, const struct api_request *request)
{
    const bool has_token = c->config->token_file;

    if (has_token && (!c->token || api_now_ms() - c->token_ms > TOKEN_MS))
        read_token(c);
    struct api_answer answer = call_once(c, request);
    if (answer.status == 401 && has_token) {
        read_token(c);
        answer = call_once(c, request);
    }
    return answer;
}

void
api_sleep(struct api_client *c, int64_t ms)
{
    const int64_t end_ms = api_now_ms() + ms;

    while (!atomic_load(&c->stopped) && (ms = end_ms - api_now_ms()) > 0)
        (void)curl_multi_poll(c->multi, NULL, 0, (int)ms, NULL);
}

/* ---- a client ----------------------------------------------------------- */

void
api_client_destroy(struct api_client *c)
{
    if (!c)
        return;
    curl_easy_cleanup(c->easy);
    if (c->multi)
        (void)curl_multi_cleanup(c->multi);
    curl_slist_free_all(c->headers);
    free(c->token);
    free(c->bytes);
    free(c);
}

struct api_client *
api_client_create(const struct api_config *config)
{
    struct api_client *const c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->config = config;
    c->easy = curl_easy_init();
    c->multi = curl_multi_init();
    c->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (!c->easy || !c->multi || !c->headers) {
        api_client_destroy(c);
        return NULL;
    }
    return c;
}

void
api_client_stop(struct api_client *c)
{
    atomic_store(&c->stopped, true);
    (void)curl_multi_wakeup(c->multi);
}

bool
api_client_stopped(const struct api_client *c)
{
    return atomic_load(&c->stopped);
}
