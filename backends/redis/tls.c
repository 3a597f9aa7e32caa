/* SPDX-License-Identifier: MIT */
/* tls.c: how is a connection encrypted, and the server known?
 *
 * By OpenSSL. The certificate of the server must be signed by an authority that
 * the system, or ca_file, trusts, and be of the host in the URL: there is no way
 * to turn that off. OpenSSL's own socket functions would raise SIGPIPE; so it
 * reads and writes through ours.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "wire.h"

#include "error/error.h"

/* ---- the socket, for OpenSSL ---------------------------------------------- */

static int
fd_of(BIO *bio)
{
    return *(const int *)BIO_get_data(bio);
}

static int
write_bio(BIO *bio, const char *data, int len)
{
    const ssize_t n = send(fd_of(bio), data, (size_t)len, MSG_NOSIGNAL);

    BIO_clear_retry_flags(bio);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)n;
}

static int
read_bio(BIO *bio, char *data, int len)
{
    const ssize_t n = recv(fd_of(bio), data, (size_t)len, 0);

    BIO_clear_retry_flags(bio);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)n;
}

static long
control_bio(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO *
make_bio(struct wq__wire *w)
{
    static BIO_METHOD *method; /* never freed: one for all; a race makes two */
    BIO_METHOD        *m = __atomic_load_n(&method, __ATOMIC_ACQUIRE);

    if (!m) {
        m = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "wq");
        if (!m || !BIO_meth_set_write(m, write_bio) ||
            !BIO_meth_set_read(m, read_bio) ||
            !BIO_meth_set_ctrl(m, control_bio))
            return NULL;
        __atomic_store_n(&method, m, __ATOMIC_RELEASE);
    }
    BIO *bio = BIO_new(m);
    if (bio) {
        BIO_set_data(bio, &w->fd);
        BIO_set_init(bio, 1);
    }
    return bio;
}

/* ---- errors --------------------------------------------------------------- */

static wq_err
fail_tls(const struct wq__wire *w, wq_err err, const char *what)
{
    const unsigned long code = ERR_peek_last_error();
    const char         *reason = code ? ERR_reason_error_string(code) : NULL;

    ERR_clear_error();
    return wq_fail(err, "redis: %s: %s%s%s", w->target->name, what,
                   reason ? ": " : "", reason ? reason : "");
}

/* ---- the context ---------------------------------------------------------- */

/* `path` is that of an option, and OpenSSL does not like it. */
static wq_err
refuse_file(const struct wq__wire *w, const char *option, const char *path)
{
    char      what[300];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return wq_fail(WQ_EINVAL, "redis: cannot read %s '%s': %s", option,
                       path, strerror(errno));
    (void)close(fd);
    (void)snprintf(what, sizeof what, "cannot use %s '%.200s'", option, path);
    return fail_tls(w, WQ_EINVAL, what);
}

static wq_err
load_files(const struct wq__wire *w, SSL_CTX *ctx)
{
    const struct wq__target *t = w->target;

    if (!t->ca_file && SSL_CTX_set_default_verify_paths(ctx) != 1)
        return fail_tls(w, WQ_EINVAL, "cannot use the system's authorities");
    if (t->ca_file && SSL_CTX_load_verify_locations(ctx, t->ca_file, NULL) != 1)
        return refuse_file(w, "ca_file", t->ca_file);
    if (t->cert_file &&
        SSL_CTX_use_certificate_chain_file(ctx, t->cert_file) != 1)
        return refuse_file(w, "cert_file", t->cert_file);
    if (t->key_file &&
        (SSL_CTX_use_PrivateKey_file(ctx, t->key_file, SSL_FILETYPE_PEM) != 1 ||
         SSL_CTX_check_private_key(ctx) != 1))
        return refuse_file(w, "key_file", t->key_file);
    return WQ_OK;
}

/* Wires of one engine connect from several threads: open.c makes it first. */
static wq_err
make_context(struct wq__wire *w)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    if (!ctx)
        return fail_tls(w, WQ_EINVAL, "cannot begin TLS");
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    const wq_err err = load_files(w, ctx);
    if (err) {
        SSL_CTX_free(ctx);
        return err;
    }
    w->target->tls_ctx = ctx;
    return WQ_OK;
}

void
wq__tls_free_context(struct wq__target *t)
{
    SSL_CTX_free(t->tls_ctx);
    t->tls_ctx = NULL;
}

/* ---- a connection --------------------------------------------------------- */

/* The name in the certificate: a host, or an address. */
static bool
set_name(SSL *ssl, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1)
        return true;
    ERR_clear_error();
    return SSL_set1_host(ssl, host) == 1 &&
           SSL_set_tlsext_host_name(ssl, host) == 1;
}

static wq_err
prepare(struct wq__wire *w)
{
    SSL *ssl = SSL_new(w->target->tls_ctx);
    BIO *bio = ssl ? make_bio(w) : NULL;

    if (!bio || !set_name(ssl, w->at.host)) {
        BIO_free(bio);
        SSL_free(ssl);
        return fail_tls(w, WQ_EAWAY, "cannot begin TLS");
    }
    SSL_set_bio(ssl, bio, bio); /* owns it */
    SSL_set_connect_state(ssl);
    w->ssl = ssl;
    return WQ_OK;
}

static short
events_of(int error)
{
    return error == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
}

static bool
wants_more(int error)
{
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

static const char *
advice(const struct wq__target *t, long verdict)
{
    switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return "use a host in the URL that the certificate names";
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return "renew it, or set the clock of this machine";
    default:
        return t->ca_file ? "is the authority that has signed it in ca_file?"
                          : "name the authority by ca_file";
    }
}

static wq_err
refuse(struct wq__wire *w)
{
    const long verdict = SSL_get_verify_result(w->ssl);

    if (verdict == X509_V_OK)
        return fail_tls(w, WQ_EAWAY, "TLS failed (is this a port for TLS?)");
    ERR_clear_error();
    return wq_fail(WQ_EINVAL,
                   "redis: %s: its certificate is not trusted: %s; %s",
                   w->target->name, X509_verify_cert_error_string(verdict),
                   advice(w->target, verdict));
}

wq_err
wq__tls_begin(struct wq__wire *w, int64_t deadline_ns)
{
    wq_err err = w->target->tls_ctx ? WQ_OK : make_context(w);

    if (!err)
        err = prepare(w);
    while (!err) {
        const int code = SSL_do_handshake(w->ssl);
        if (code == 1)
            return WQ_OK;
        const int error = SSL_get_error(w->ssl, code);
        if (!wants_more(error))
            return refuse(w);
        if (!wq__wire_await(w->fd, events_of(error), deadline_ns))
            return fail_tls(w, WQ_EAWAY,
                            "TLS takes too long (is this a port for TLS?)");
    }
    return err;
}

/* What a call of OpenSSL returned, as send() and recv() would. */
static long
result_of(struct wq__wire *w, int code, short *wants)
{
    if (code > 0)
        return code;
    const int           cause = errno;
    const int           error = SSL_get_error(w->ssl, code);
    const unsigned long said = ERR_peek_error();
    w->tls_why = said ? ERR_reason_error_string(said) : NULL;
    ERR_clear_error();
    if (wants_more(error)) {
        *wants = events_of(error);
        errno = EAGAIN;
        return -1;
    }
    if (error == SSL_ERROR_ZERO_RETURN)
        return 0;
    errno = error == SSL_ERROR_SYSCALL && cause ? cause : EPROTO;
    return -1;
}

long
wq__tls_write(struct wq__wire *w, const void *data, size_t len, short *wants)
{
    const int most = len > 1 << 20 ? 1 << 20 : (int)len;

    ERR_clear_error();
    errno = 0;
    return result_of(w, SSL_write(w->ssl, data, most), wants);
}

long
wq__tls_read(struct wq__wire *w, void *data, size_t len, short *wants)
{
    ERR_clear_error();
    errno = 0;
    return result_of(w, SSL_read(w->ssl, data, (int)len), wants);
}

bool
wq__tls_is_stale(struct wq__wire *w)
{
    char  byte;
    short wants;

    ERR_clear_error();
    errno = 0;
    return result_of(w, SSL_peek(w->ssl, &byte, 1), &wants) >= 0 ||
           errno != EAGAIN;
}

void
wq__tls_end(struct wq__wire *w, bool forked)
{
    if (!forked && w->fd >= 0 && SSL_is_init_finished(w->ssl))
        (void)SSL_shutdown(w->ssl); /* one try; nobody waits for the answer */
    ERR_clear_error();
    SSL_free(w->ssl);
    w->ssl = NULL;
}
