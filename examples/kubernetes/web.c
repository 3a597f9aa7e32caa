/* SPDX-License-Identifier: MIT */
/* web.c: what do Prometheus and the kubelet ask?
 *
 *     /metrics   the queue's metrics, and those of the store and the watch
 *     /healthz   200 while no handler hangs; the kubelet restarts us otherwise.
 *                An API server that is away does not count: a restart of this
 *                process would not help
 *     /readyz    200 once the store has had all objects
 */
#include "web.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

struct web {
    struct MHD_Daemon       *daemon;
    const struct controller *controller;
    wq_registry             *metrics;
};

static enum MHD_Result
answer(struct MHD_Connection *client, unsigned status, const char *text)
{
    struct MHD_Response *const page = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);

    (void)MHD_add_response_header(page, MHD_HTTP_HEADER_CONTENT_TYPE,
                                  wq_text_type(WQ_TEXT_PROMETHEUS));
    const enum MHD_Result sent = MHD_queue_response(client, status, page);
    MHD_destroy_response(page);
    return sent;
}

static enum MHD_Result
answer_metrics(const struct web *web, struct MHD_Connection *client)
{
    enum { OURS = 1024 };
    char  *text;
    size_t len;

    if (wq_registry_text(web->metrics, WQ_TEXT_PROMETHEUS, &text, &len))
        return MHD_NO; /* out of memory: close */
    char *const all = realloc(text, len + OURS);
    if (!all) {
        free(text);
        return MHD_NO;
    }
    (void)controller_metrics(web->controller, all + len, OURS);
    const enum MHD_Result sent = answer(client, MHD_HTTP_OK, all);
    free(all);
    return sent;
}

static enum MHD_Result
serve(void *arg, struct MHD_Connection *client, const char *url,
      const char *method, const char *version, const char *upload,
      size_t *upload_size, void **state)
{
    const struct web *const web = arg;
    const char *const       sick = controller_sick(web->controller);

    (void)version;
    (void)upload;
    (void)upload_size;
    (void)state;
    if (strcmp(method, "GET") != 0)
        return answer(client, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
    if (strcmp(url, "/metrics") == 0)
        return answer_metrics(web, client);
    if (strcmp(url, "/healthz") == 0)
        return sick ? answer(client, MHD_HTTP_INTERNAL_SERVER_ERROR, sick)
                    : answer(client, MHD_HTTP_OK, "ok\n");
    if (strcmp(url, "/readyz") == 0)
        return controller_ready(web->controller)
                   ? answer(client, MHD_HTTP_OK, "ok\n")
                   : answer(client, MHD_HTTP_SERVICE_UNAVAILABLE,
                            "the first list is not complete\n");
    return answer(client, MHD_HTTP_NOT_FOUND,
                  "try /metrics, /healthz or /readyz\n");
}

struct web *
web_start(uint16_t port, const struct controller *controller,
          wq_registry *metrics)
{
    struct web *const web = calloc(1, sizeof *web);

    if (!web)
        return NULL;
    web->controller = controller;
    web->metrics = metrics;
    web->daemon = MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD, port, NULL,
                                   NULL, serve, web, MHD_OPTION_END);
    if (!web->daemon) {
        free(web);
        return NULL;
    }
    return web;
}

uint16_t
web_port(const struct web *web)
{
    return MHD_get_daemon_info(web->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

void
web_stop(struct web *web)
{
    if (!web)
        return;
    MHD_stop_daemon(web->daemon);
    free(web);
}
