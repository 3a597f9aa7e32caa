/* SPDX-License-Identifier: MIT */
/* url_identity.c: which queue in Redis does a URL mean?
 *
 *     DB QUEUE /PATH                        redis+unix:
 *     DB QUEUE HOST:PORT,HOST:PORT          redis:, rediss:
 *     DB QUEUE HOST:PORT,HOST:PORT/PRIMARY  redis+sentinel:, rediss+sentinel:
 *
 * The user, the password, TLS and all other options say how the queue is reached.
 * The backend refuses a URL with a mistake, so here its identity may be any text.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "options/url.h"

enum { SERVER_PORT = 6379, SENTINEL_PORT = 26379 };

static void
add_decoded(struct wq__text *to, const char *part, size_t len)
{
    char *copy = strndup(part, len);

    if (!copy) {
        to->err = WQ_ENOMEM;
        return;
    }
    (void)url_decode(copy);
    wq__text_str(to, copy);
    free(copy);
}

/* "NAME", "NAME:PORT", "[ADDRESS]", "[ADDRESS]:PORT" */
static void
add_host(struct wq__text *to, const char *host, size_t len, unsigned long port)
{
    size_t name = 0;

    if (len && *host == '[')
        name = strcspn(host, "]");
    while (name < len && host[name] != ':')
        name++;
    add_decoded(to, host, name < len ? name : len);
    if (name < len)
        port = strtoul(host + name + 1, NULL, 10);
    text_print(to, ":%lu", port);
}

static void
add_hosts(struct wq__text *to, const char *hosts, size_t len,
          unsigned long port)
{
    const char *const end = hosts + len;

    for (;;) {
        const size_t rest = (size_t)(end - hosts);
        const char  *comma = memchr(hosts, ',', rest);
        add_host(to, hosts, comma ? (size_t)(comma - hosts) : rest, port);
        if (!comma)
            return;
        wq__text_char(to, ',');
        hosts = comma + 1;
    }
}

/* The option db=N, or what follows the '/' at `path`. */
static unsigned long
database(const char *url, const char *path)
{
    const char *end = NULL;
    const char *option = url_find_option(url, "db", &end);

    return strtoul(option ? option : *path == '/' ? path + 1 : "", NULL, 10);
}

static void
add_queue(struct wq__text *to, const char *url, const char *path)
{
    char *name = url_queue_name(url);

    if (name)
        text_print(to, "%lu %s ", database(url, path), name);
    else
        to->err = WQ_ENOMEM;
    free(name);
}

/* "[LOGIN@]/PATH" */
static void
add_socket(struct wq__text *to, const char *url, const char *server, size_t len)
{
    const size_t login = strcspn(server, "/");

    add_queue(to, url, "");
    if (login < len)
        add_decoded(to, server + login, len - login);
}

/* "[LOGIN@]HOSTS[/DB]", "[LOGIN@]HOSTS/PRIMARY[/DB]" */
static void
add_server(struct wq__text *to, const char *url, const char *server, size_t len)
{
    const bool  sentinels = strstr(url, "+sentinel://") != NULL;
    const char *end = server + len;
    const char *login = memrchr(server, '@', len);
    const char *hosts = login ? login + 1 : server;
    const char *path = hosts + strcspn(hosts, "/?");
    const char *primary = path;

    if (sentinels && path < end)
        path += 1 + strcspn(path + 1, "/?");
    add_queue(to, url, path);
    add_hosts(to, hosts, (size_t)(primary - hosts),
              sentinels ? SENTINEL_PORT : SERVER_PORT);
    add_decoded(to, primary, (size_t)(path - primary));
}

char *
url_identity(const char *url)
{
    const char     *scheme = strstr(url, "://");
    const char     *server = scheme ? scheme + 3 : url + strlen(url);
    const size_t    len = strcspn(server, "?");
    struct wq__text text = {0};

    if (strncmp(url, "redis+unix:", strlen("redis+unix:")) == 0)
        add_socket(&text, url, server, len);
    else
        add_server(&text, url, server, len);
    if (text_terminate(&text))
        return text.data; /* the caller frees it */
    wq__text_fini(&text);
    return NULL;
}
