/* SPDX-License-Identifier: MIT */
/* api.h: one request to the Kubernetes API server. */
#ifndef API_H
#define API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the server is, and who we are. The strings must outlive all clients. */
struct api_config {
    const char *server;     /* "https://host:port" */
    const char *ca_file;    /* NULL: the authorities that the system trusts */
    const char *token_file; /* NULL: send no token */
    const char *cert_file;  /* certificate of the client; NULL: none */
    const char *key_file;   /* its key */
    bool        insecure;   /* do not check the server's certificate */
    int64_t     request_ms; /* how long a request may take, watches apart */
};

/* A connection to the server. Each thread has its own. */
struct api_client;

/* NULL: out of memory. `config` must outlive the client. */
struct api_client *api_client_create(const struct api_config *config);
void               api_client_destroy(struct api_client *client);

/* End the request or the sleep of another thread, and all later ones, at once.
 * The only function that another thread may call. */
void api_client_stop(struct api_client *client);
bool api_client_stopped(const struct api_client *client);

struct api_request {
    const char *method; /* NULL: GET */
    const char *path;   /* from the first '/' on */
    const char *body;   /* JSON; NULL: none */
    /* For answers without an end: called with each complete line. Returns NULL,
     * or the reason why the request must end. No function: the answer is
     * collected. */
    const char *(*on_line)(void *ctx, const char *line, size_t len);
    void   *ctx;
    int64_t total_ms;   /* 0: request_ms of the config */
    int64_t silence_ms; /* how long no byte may come; 0: as total_ms */
};

/* Valid until the next request of the client. */
struct api_answer {
    long        status;         /* of HTTP; 0: there was no whole answer */
    int64_t     retry_after_ms; /* what the server asks for; 0: nothing */
    const char *body;           /* ends with a NUL */
    size_t      len;
    const char *error; /* why status is 0, else "" */
};

/* Send a request, and wait for the answer. A request that the server refuses
 * with 401 is sent once more with a token that is read again, because tokens
 * are replaced while a program runs. */
struct api_answer api_call(struct api_client        *client,
                           const struct api_request *request);

/* Sleep; api_client_stop() ends it. */
void api_sleep(struct api_client *client, int64_t ms);

/* Milliseconds of a clock that is never set. */
int64_t api_now_ms(void);

#endif
