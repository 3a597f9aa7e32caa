/* SPDX-License-Identifier: MIT */
/* metrics_server.c: a server with the metrics of all queues, for Prometheus.
 *
 *     metrics_server [PORT]    serves http://localhost:PORT/ (9090) until Enter
 *     metrics_server --once    fetches its own page once, at any port
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <wq/metrics.h>

/* begin: server */
/* Answer in the format that the client accepts. */
static enum MHD_Result
serve(void *registry, struct MHD_Connection *client, const char *url,
      const char *method, const char *version, const char *upload,
      size_t *upload_size, void **state)
{
    const char   *accept = MHD_lookup_connection_value(client, MHD_HEADER_KIND,
                                                       MHD_HTTP_HEADER_ACCEPT);
    const wq_text format = wq_text_accepted(accept);
    char         *text;
    size_t        len;

    (void)url;
    (void)method;
    (void)version;
    (void)upload;
    (void)upload_size;
    (void)state;
    if (wq_registry_text(registry, format, &text, &len))
        return MHD_NO; /* out of memory: close */
    struct MHD_Response *page =
        MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
    (void)MHD_add_response_header(page, MHD_HTTP_HEADER_CONTENT_TYPE,
                                  wq_text_type(format));
    const enum MHD_Result sent = MHD_queue_response(client, MHD_HTTP_OK, page);
    MHD_destroy_response(page);
    return sent;
}

static struct MHD_Daemon *
start(uint16_t port, wq_registry *registry)
{
    return MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD, port, NULL, NULL,
                            serve, registry, MHD_OPTION_END);
}
/* end: server */

/* A client that accepts OpenMetrics; prints the answer. */
static int
fetch(struct MHD_Daemon *server)
{
    static const char request[] = "GET / HTTP/1.0\r\n"
                                  "Accept: application/openmetrics-text\r\n"
                                  "\r\n";
    const uint16_t    port =
        MHD_get_daemon_info(server, MHD_DAEMON_INFO_BIND_PORT)->port;
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    static char page[65536];
    size_t      len = 0;
    ssize_t     n = 0;
    const int   s = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(s, (const struct sockaddr *)&address, sizeof address) == 0 &&
        write(s, request, sizeof request - 1) == sizeof request - 1)
        while ((n = read(s, page + len, sizeof page - 1 - len)) > 0)
            len += (size_t)n;
    (void)close(s);
    fputs(page, stdout);
    return !strstr(page, " 200 OK") || !strstr(page, "openmetrics-text") ||
           !strstr(page, "workqueue_adds_total{name=\"pods\"} 2\n");
}

int
main(int argc, char **argv)
{
    const int    once = argc > 1 && strcmp(argv[1], "--once") == 0;
    const int    port = once ? 0 : argc > 1 ? atoi(argv[1]) : 9090;
    wq_registry *registry;
    wq_queue    *q;

    if (wq_registry_create(&registry) ||
        wq_create(
            WQ_CONFIG(.name = "pods", .metrics = wq_registry_sink(registry)),
            &q) ||
        wq_add_str(q, "default/nginx") || wq_add_str(q, "default/redis"))
        return 1;
    struct MHD_Daemon *server = start((uint16_t)port, registry);
    if (!server)
        return 1;

    const int failed = once ? fetch(server) : getchar() == EOF;
    MHD_stop_daemon(server);
    wq_destroy(q);
    wq_registry_destroy(registry);
    return failed;
}
