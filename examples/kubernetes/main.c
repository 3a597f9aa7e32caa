/* SPDX-License-Identifier: MIT */
/* main.c: where is the server, and when do we stop? Flags and signals. */
#include <curl/curl.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "controller.h"
#include "web.h"

static const char usage[] =
    "usage: widgets [OPTION...]\n"
    "Sets status.size of every Widget to its spec.size.\n"
    "\n"
    "In a pod it finds the server and its credentials by itself. Elsewhere:\n"
    "  --server URL            https://host:port of the API server\n"
    "  --ca-file FILE          authority that signed the server's certificate\n"
    "  --token-file FILE       bearer token; read again when it is replaced\n"
    "  --cert-file FILE        certificate of the client, PEM\n"
    "  --key-file FILE         and its key\n"
    "  --insecure              do not check the server's certificate\n"
    "  --service-account DIR   where a pod has its token and ca.crt\n"
    "\n"
    "  --namespace NAME        only this one (default: all)\n"
    "  --workers N             threads that reconcile (4)\n"
    "  --page N                objects of a page of a list (100)\n"
    "  --port N                of /metrics, /healthz, /readyz (8080; 0: any)\n"
    "Seconds, also with a fraction:\n"
    "  --resync S              how often all objects are checked (600; 0: "
    "never)\n"
    "  --drain S               how long the end may take after SIGTERM (20)\n"
    "  --request-timeout S     how long a request may take (30)\n"
    "  --watch-timeout S       how long a watch lasts, at least (300)\n"
    "  --silence S             how long a watch may be silent (120)\n"
    "  --retry S               the first pause after a failure (0.2)\n"
    "  --retry-max S           the longest one (30)\n";

struct options {
    struct controller_config controller;
    const char              *service_account;
    int64_t                  resync_ms, drain_ms;
    unsigned                 port;
    bool                     help;
};

__attribute__((format(printf, 1, 2))) static void
fail(const char *format, ...)
{
    va_list arguments;

    (void)fputs("widgets: ", stderr);
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputs("\nwidgets: --help lists the options\n", stderr);
    exit(2);
}

/* ---- flags -------------------------------------------------------------- */

static int64_t
milliseconds(const char *flag, const char *text, double least)
{
    char        *end;
    const double seconds = strtod(text, &end);

    if (end == text || *end || !(seconds >= least) || seconds > 1e5)
        fail("--%s: '%s' is not a number of seconds from %g to 100000", flag,
             text, least);
    return (int64_t)(seconds * 1000 + 0.999);
}

static unsigned
number(const char *flag, const char *text, unsigned least, unsigned most)
{
    char *end;

    errno = 0;
    const unsigned long n = strtoul(text, &end, 10);
    if (errno || end == text || *end || strchr(text, '-') || n < least ||
        n > most)
        fail("--%s: '%s' is not a number from %u to %u", flag, text, least,
             most);
    return (unsigned)n;
}

/* A flag, and the one place where its value goes. */
struct flag {
    const char  *name;
    const char **text;
    int64_t     *ms;
    double       least_s;
    unsigned    *n;
    unsigned     least, most;
    bool        *set; /* has no value */
};

static void
take(const struct flag *flag, const char *value)
{
    if (flag->text)
        *flag->text = value;
    else if (flag->ms)
        *flag->ms = milliseconds(flag->name, value, flag->least_s);
    else if (flag->n)
        *flag->n = number(flag->name, value, flag->least, flag->most);
    else
        *flag->set = true;
}

static void
parse(int argc, char **argv, struct options *o)
{
    struct controller_config *const c = &o->controller;

    const struct flag flags[] = {
        {"server", .text = &c->api.server},
        {"ca-file", .text = &c->api.ca_file},
        {"token-file", .text = &c->api.token_file},
        {"cert-file", .text = &c->api.cert_file},
        {"key-file", .text = &c->api.key_file},
        {"insecure", .set = &c->api.insecure},
        {"service-account", .text = &o->service_account},
        {"namespace", .text = &c->namespace},
        {"workers", .n = &c->workers, .least = 1, .most = 1000},
        {"page", .n = &c->tuning.page, .least = 1, .most = 100000},
        {"port", .n = &o->port, .most = 65535},
        {"resync", .ms = &o->resync_ms},
        {"drain", .ms = &o->drain_ms},
        {"request-timeout", .ms = &c->api.request_ms, .least_s = 0.001},
        {"watch-timeout", .ms = &c->tuning.watch_ms, .least_s = 0.001},
        {"silence", .ms = &c->tuning.silence_ms, .least_s = 0.001},
        {"retry", .ms = &c->tuning.retry_ms, .least_s = 0.001},
        {"retry-max", .ms = &c->tuning.pause_ms, .least_s = 0.001},
        {"help", .set = &o->help},
    };
    enum { FLAGS = sizeof flags / sizeof *flags };
    struct option names[FLAGS + 1] = {0}; /* for getopt_long() */
    int           i = 0, found;

    for (i = 0; i < FLAGS; i++)
        names[i] = (struct option){.name = flags[i].name,
                                   .has_arg = flags[i].set ? no_argument
                                                           : required_argument};
    while ((found = getopt_long(argc, argv, "", names, &i)) == 0)
        take(&flags[i], optarg);
    if (found != -1) /* getopt_long() has said why */
        fail("the options are wrong");
    if (optind < argc)
        fail("'%s' is not an option", argv[optind]);
}

/* ---- the server --------------------------------------------------------- */

/* begin: incluster */
/* In a pod the kubelet sets two variables, and mounts the token and the
 * certificate of the cluster's authority. */
static void
find_server(struct options *o, char *server, char *ca, char *token, size_t size)
{
    struct api_config *const api = &o->controller.api;
    const char *const        host = getenv("KUBERNETES_SERVICE_HOST");
    const char *const        port = getenv("KUBERNETES_SERVICE_PORT");

    if (api->server)
        return;
    if (!host || !port)
        fail("no --server, and KUBERNETES_SERVICE_HOST and _PORT are not set: "
             "not in a pod?");
    (void)snprintf(server, size,
                   strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s",
                   host, port);
    (void)snprintf(ca, size, "%s/ca.crt", o->service_account);
    (void)snprintf(token, size, "%s/token", o->service_account);
    api->server = server;
    if (!api->ca_file)
        api->ca_file = ca;
    if (!api->token_file)
        api->token_file = token;
}
/* end: incluster */

static void
check_file(const char *flag, const char *path)
{
    if (path && access(path, R_OK))
        fail("%s: cannot read '%s': %s", flag, path, strerror(errno));
}

static void
check(const struct options *o)
{
    const struct api_config *const api = &o->controller.api;
    const bool https = strncmp(api->server, "https://", 8) == 0;

    if (!https && strncmp(api->server, "http://", 7) != 0)
        fail("--server: '%s' does not begin with https:// or http://",
             api->server);
    if (!https && api->token_file)
        fail("--token-file: a token is not sent without TLS; use https://");
    if (!api->cert_file != !api->key_file)
        fail("--cert-file and --key-file need each other");
    check_file("--ca-file", api->ca_file);
    check_file("--token-file", api->token_file);
    check_file("--cert-file", api->cert_file);
    check_file("--key-file", api->key_file);
    if (api->insecure)
        (void)fputs("widgets: --insecure: anybody can be the server\n", stderr);
}

/* ---- signals ------------------------------------------------------------ */

static void
leave_at_once(int number)
{
    _exit(128 + number);
}

/* begin: signals */
/* Wait for a signal to end, and resync meanwhile. */
static void
wait_for_end(const sigset_t *ends, struct controller *c, int64_t resync_ms)
{
    int64_t due_ms = api_now_ms() + resync_ms;

    for (;;) {
        const int64_t left_ms = due_ms - api_now_ms();
        if (resync_ms && left_ms <= 0) {
            controller_resync(c);
            due_ms = api_now_ms() + resync_ms;
            continue;
        }
        const struct timespec left = {.tv_sec = (time_t)(left_ms / 1000),
                                      .tv_nsec = left_ms % 1000 * 1000000};
        const int             got = resync_ms ? sigtimedwait(ends, NULL, &left)
                                              : sigwaitinfo(ends, NULL);
        if (got > 0)
            return;
    }
}

/* Finish the work within the limit; a second signal leaves at once. */
static bool
drain(const sigset_t *ends, struct controller *c, int64_t drain_ms)
{
    (void)signal(SIGTERM, leave_at_once);
    (void)signal(SIGINT, leave_at_once);
    (void)pthread_sigmask(SIG_UNBLOCK, ends, NULL);
    (void)fputs("widgets: draining\n", stderr);
    return controller_drain(c, drain_ms);
}
/* end: signals */

int
main(int argc, char **argv)
{
    struct options o = {
        .controller = {.workers = 4,
                       .api.request_ms = 30000,
                       .tuning = {.page = 100,
                                  .watch_ms = 300000,
                                  .silence_ms = 120000,
                                  .retry_ms = 200,
                                  .pause_ms = 30000}},
        .service_account = "/var/run/secrets/kubernetes.io/serviceaccount",
        .resync_ms = 600000,
        .drain_ms = 20000,
        .port = 8080,
    };
    char     server[4096], ca[4096], token[4096];
    sigset_t ends;

    parse(argc, argv, &o);
    if (o.help)
        return fputs(usage, stdout) == EOF;
    find_server(&o, server, ca, token, sizeof server);
    check(&o);
    srand((unsigned)time(NULL) ^ (unsigned)getpid());

    /* All threads inherit the mask: only wait_for_end() gets these signals. */
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &ends, NULL);
    (void)signal(SIGPIPE, SIG_IGN);

    if (curl_global_init(CURL_GLOBAL_DEFAULT) ||
        wq_registry_create(&o.controller.metrics)) {
        (void)fputs("widgets: out of memory\n", stderr);
        return 1;
    }
    struct controller *const c = controller_start(&o.controller);
    struct web *const        web =
        c ? web_start((uint16_t)o.port, c, o.controller.metrics) : NULL;
    if (!web) {
        (void)fprintf(stderr, "widgets: cannot %s\n",
                      c ? "listen; use another --port" : "start its threads");
        _exit(1);
    }
    (void)fprintf(stderr, "widgets: serving /metrics at port %u\n",
                  (unsigned)web_port(web));

    wait_for_end(&ends, c, o.resync_ms);
    if (!drain(&ends, c, o.drain_ms)) {
        (void)fputs("widgets: work remains; the next start does it\n", stderr);
        _exit(1); /* handlers still run: nothing can be freed */
    }
    web_stop(web);
    controller_destroy(c);
    wq_registry_destroy(o.controller.metrics);
    curl_global_cleanup();
    (void)fputs("widgets: all work is done\n", stderr);
    return 0;
}
