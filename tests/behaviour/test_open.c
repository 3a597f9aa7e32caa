/* SPDX-License-Identifier: MIT */
/* test_open.c: which backend does wq_open() choose, and what does it refuse?
 *
 * A library that is loaded by its name is in tests/open.
 */
#include "fixture.h"

#include <stdio.h>

#include <wq/limiter.h>

#include "support/probe.h"

#define LEN(array) (sizeof(array) / sizeof *(array))

static wq_queue *const untouched = (wq_queue *)(void *)&untouched;

/* What the openers below were called with. */
static struct {
    unsigned    calls[2];
    const char *url;
    wq_err      err; /* what they return; WQ_OK: they open a queue in memory */
} opened;

static wq_err
open_with(unsigned which, const char *url, const wq_config *config,
          wq_queue **out)
{
    opened.calls[which]++;
    opened.url = url;
    if (!opened.err)
        return wq_create(config, out);
    wq_limiter_destroy(config ? config->limiter : NULL);
    return opened.err;
}

static wq_err
open_first(const char *url, const wq_config *config, wq_queue **out)
{
    return open_with(0, url, config, out);
}

static wq_err
open_second(const char *url, const wq_config *config, wq_queue **out)
{
    return open_with(1, url, config, out);
}

/* Open `url` with a limiter that counts; the queue is destroyed again. The
 * limiter is gone in every case. */
static wq_err
try_open(const char *url)
{
    static struct probe probe;
    wq_queue           *q = untouched;
    const wq_err        err = probe_open(&probe, url, &q);

    if (err)
        assert_ptr_equal(q, untouched);
    else
        wq_destroy(q);
    assert_int_equal(probe.destroys, 1);
    return err;
}

static int
forget_openers(void **state)
{
    (void)state;
    memset(&opened, 0, sizeof opened);
    return 0;
}

#define with_openers(name) test_with(name, forget_openers, forget_openers)

/* ---- memory -------------------------------------------------------------- */

/* S-11 */
TEST(mem_is_a_queue_in_memory)
{
    static const char *const urls[] = {"mem:", "mem://"};

    for (size_t i = 0; i < LEN(urls); i++) {
        wq_queue *q;

        assert_err(try_open(urls[i]), WQ_OK);
        assert_err(wq_open(urls[i], NULL, &q), WQ_OK);
        add(q, "foo");
        work_on(q, "foo");
        wq_destroy(q);
    }
}

/* S-11 */
TEST(mem_with_more_behind_it_is_refused)
{
    static const char *const urls[] = {"mem:x", "mem:/", "mem://host",
                                       "mem:?queue=a"};

    for (size_t i = 0; i < LEN(urls); i++)
        assert_err(try_open(urls[i]), WQ_EINVAL);
}

/* S-11 S-05 */
TEST(mem_refuses_what_create_refuses)
{
    wq_queue *q = untouched;

    assert_err(wq_open("mem:", WQ_CONFIG(.waiting = (wq_waiting)77), &q),
               WQ_EINVAL);
    assert_err(wq_open("mem:", WQ_CONFIG(.waiting = WQ_WAITING_LEAVE), &q),
               WQ_ENOTSUP);
    assert_ptr_equal(q, untouched);
}

/* ---- what is no scheme --------------------------------------------------- */

/* S-11 */
TEST(url_without_a_scheme_is_refused)
{
    static const char *const urls[] = {
        "",          ":",
        "mem",       "sqlite",
        "A:",        "Mem:",
        "9p:x",      "../x:",
        "/tmp/x:",   "./x:",
        "x/y:",      "x/../../tmp/y:",
        "sq lite:x", "sqlite\n:x",
        "-x:",       "a-very-long-scheme-of-more-than-31-bytes:",
        "jobs.db",   "C:\\jobs.db",
        "+mem:",     "mem+",
    };

    for (size_t i = 0; i < LEN(urls); i++) {
        const wq_err err = try_open(urls[i]);

        if (err != WQ_EINVAL)
            fail_msg("'%s': %s", urls[i], wq_err_name(err));
        assert_non_null(strstr(wq_last_error(), "scheme"));
    }
    assert_err(try_open(NULL), WQ_EINVAL);
}

/* S-11 */
TEST(open_without_an_out_parameter_destroys_the_limiter)
{
    struct probe probe = {.delay_ns = 1};

    assert_err(
        wq_open(
            "mem:", WQ_CONFIG(.limiter = wq_limiter_create(&probe_ops, &probe)),
            NULL),
        WQ_EINVAL);
    assert_int_equal(probe.destroys, 1);
}

/* S-11: it names the library, and nothing of the URL behind the scheme. */
TEST(unknown_scheme_is_explained_without_the_url)
{
    static const char *const urls[] = {
        "nosuch://user:secret@host/0?queue=secret", "nosuch:secret",
        "nosuch+tls://user:secret@host"};

    for (size_t i = 0; i < LEN(urls); i++) {
        assert_err(try_open(urls[i]), WQ_ENOTSUP);
        assert_non_null(strstr(wq_last_error(), "libwq-nosuch"));
        assert_null(strstr(wq_last_error(), "secret"));
        assert_null(strstr(wq_last_error(), "user"));
        assert_null(strstr(wq_last_error(), "host"));
    }
}

/* ---- registered schemes -------------------------------------------------- */

/* S-11 */
TEST(registered_opener_gets_the_whole_url)
{
    static const char *const urls[] = {"first:", "first://user:pw@host/x?y=z",
                                       "first+tls://host", "first+a+b:c"};

    assert_err(wq_register_scheme("first", open_first), WQ_OK);
    for (size_t i = 0; i < LEN(urls); i++) {
        assert_err(try_open(urls[i]), WQ_OK);
        assert_string_equal(opened.url, urls[i]);
        assert_int_equal(opened.calls[0], i + 1);
    }
    assert_err(try_open("firs:"), WQ_ENOTSUP);
    assert_err(try_open("first2:"), WQ_ENOTSUP);
    assert_int_equal(opened.calls[0], LEN(urls));
    assert_err(wq_register_scheme("first", NULL), WQ_OK);
}

/* S-11 */
TEST(error_of_an_opener_reaches_the_caller)
{
    static const wq_err errors[] = {WQ_EAWAY, WQ_EVERSION, WQ_EIO, WQ_ENOTSUP};

    assert_err(wq_register_scheme("first", open_first), WQ_OK);
    for (size_t i = 0; i < LEN(errors); i++) {
        opened.err = errors[i];
        assert_err(try_open("first:"), errors[i]);
    }
    assert_err(wq_register_scheme("first", NULL), WQ_OK);
}

static size_t config_size; /* that the opener saw */

/* Says nothing about its failure. */
static wq_err
open_quietly(const char *url, const wq_config *config, wq_queue **out)
{
    (void)url;
    (void)out;
    config_size = config->size;
    wq_limiter_destroy(config->limiter);
    return WQ_EAWAY;
}

/* S-11 O-02: also without a config, and with that of an older program. */
TEST(opener_gets_a_whole_config)
{
    size_t    size = sizeof size;
    wq_queue *q = NULL;

    assert_err(wq_register_scheme("quiet", open_quietly), WQ_OK);
    assert_err(wq_open("quiet:", (const wq_config *)(void *)&size, &q),
               WQ_EAWAY);
    assert_int_equal(config_size, sizeof(wq_config));
    config_size = 0;
    assert_err(wq_open("quiet:", NULL, &q), WQ_EAWAY);
    assert_int_equal(config_size, sizeof(wq_config));
    config_size = 0;
    assert_err(wq_open("quiet:", WQ_CONFIG(.waiting = (wq_waiting)77), &q),
               WQ_EINVAL);
    assert_int_equal(config_size, 0);
    assert_err(wq_register_scheme("quiet", NULL), WQ_OK);
}

/* S-11 E-03: not the sentence of an earlier failure. */
TEST(failure_of_an_opener_without_a_sentence_gets_one)
{
    assert_err(wq_register_scheme("quiet", open_quietly), WQ_OK);
    assert_err(try_open("nothing:"), WQ_ENOTSUP);
    assert_err(try_open("quiet://user:secret@host"), WQ_EAWAY);
    assert_non_null(strstr(wq_last_error(), "'quiet:' returned WQ_EAWAY"));
    assert_null(strstr(wq_last_error(), "secret"));
    assert_err(wq_register_scheme("quiet", NULL), WQ_OK);
}

/* S-11 */
TEST(later_registration_replaces_the_earlier_one)
{
    assert_err(wq_register_scheme("first", open_first), WQ_OK);
    assert_err(wq_register_scheme("first", open_second), WQ_OK);
    assert_err(try_open("first:"), WQ_OK);
    assert_int_equal(opened.calls[0], 0);
    assert_int_equal(opened.calls[1], 1);
    assert_err(wq_register_scheme("first", NULL), WQ_OK);
    assert_err(try_open("first:"), WQ_ENOTSUP);
    assert_err(wq_register_scheme("first", NULL), WQ_OK); /* again */
    assert_err(wq_register_scheme("never", NULL), WQ_OK);
}

/* S-11 */
TEST(scheme_that_cannot_be_registered_is_refused)
{
    static const char *const schemes[] = {
        "",       "mem",
        "A",      "x:",
        "x+y",    "../x",
        "/tmp/x", "x/y",
        "9p",     "x y",
        "-x",     ".x",
        "x_y",    "a-very-long-scheme-of-more-than-31-bytes"};

    for (size_t i = 0; i < LEN(schemes); i++)
        if (wq_register_scheme(schemes[i], open_first) != WQ_EINVAL)
            fail_msg("'%s' was registered", schemes[i]);
    assert_err(wq_register_scheme(NULL, open_first), WQ_EINVAL);
    assert_err(try_open("mem:"), WQ_OK);
    assert_int_equal(opened.calls[0], 0);
}

/* S-11 */
TEST(sixteen_schemes_can_be_registered)
{
    char scheme[32];

    for (int i = 0; i < 16; i++) {
        (void)snprintf(scheme, sizeof scheme, "s%d", i);
        assert_err(wq_register_scheme(scheme, open_first), WQ_OK);
    }
    assert_err(wq_register_scheme("s16", open_first), WQ_EFULL);
    assert_err(wq_register_scheme("s7", open_second), WQ_OK); /* replaced */
    assert_err(try_open("s7:"), WQ_OK);
    assert_int_equal(opened.calls[1], 1);
    assert_err(wq_register_scheme("s3", NULL), WQ_OK);
    assert_err(wq_register_scheme("s16", open_first), WQ_OK);
    assert_err(try_open("s16:"), WQ_OK);
    assert_err(try_open("s3:"), WQ_ENOTSUP);
    for (int i = 0; i < 17; i++) {
        (void)snprintf(scheme, sizeof scheme, "s%d", i);
        assert_err(wq_register_scheme(scheme, NULL), WQ_OK);
    }
}

WQ_TESTS(test(mem_is_a_queue_in_memory),
         test(mem_with_more_behind_it_is_refused),
         test(mem_refuses_what_create_refuses),
         test(url_without_a_scheme_is_refused),
         test(open_without_an_out_parameter_destroys_the_limiter),
         test(unknown_scheme_is_explained_without_the_url),
         with_openers(registered_opener_gets_the_whole_url),
         with_openers(error_of_an_opener_reaches_the_caller),
         with_openers(opener_gets_a_whole_config),
         with_openers(failure_of_an_opener_without_a_sentence_gets_one),
         with_openers(later_registration_replaces_the_earlier_one),
         with_openers(scheme_that_cannot_be_registered_is_refused),
         with_openers(sixteen_schemes_can_be_registered));
