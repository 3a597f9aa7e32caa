/* SPDX-License-Identifier: MIT */
/* testscheme.c: a library that wq_open() finds by its name,
 * libwq-testscheme.so.0.1. Its queues are queues in memory. */
#include <stdio.h>

#include <wq/wq.h>

/* What load.c looks at. */
WQ_API int         testscheme_calls(void);
WQ_API const char *testscheme_url(void); /* of the last call */
WQ_API wq_err      wq_open_testscheme(const char *url, const wq_config *config,
                                      wq_queue **out);

static int  calls;
static char last_url[256];

int
testscheme_calls(void)
{
    return calls;
}

const char *
testscheme_url(void)
{
    return last_url;
}

wq_err
wq_open_testscheme(const char *url, const wq_config *config, wq_queue **out)
{
    calls++;
    (void)snprintf(last_url, sizeof last_url, "%s", url);
    return wq_create(config, out);
}
