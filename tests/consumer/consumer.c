/* SPDX-License-Identifier: MIT */
/* consumer.c: can a C program outside this tree use the installed library? */
#include <wq/backend.h>
#include <wq/version.h>
#include <wq/wq.h>

#include <stdio.h>
#include <string.h>

/* Print what went wrong; 1, for main to return. */
static int
failed(const char *step, wq_err err)
{
    fprintf(stderr, "%s: %s\n", step, wq_strerror(err));
    return 1;
}

int
main(void)
{
    if (wq_version() != WQ_VERSION)
        return failed("the header is not the library's", WQ_EINVAL);

    wq_queue *q = NULL;
    wq_err    err = wq_create(WQ_CONFIG(.order = NULL), &q);
    if (err)
        return failed("create", err);
    err = wq_add_str(q, "default/hello");
    if (err)
        return failed("add", err);

    wq_item *item = NULL;
    err = wq_get(q, &item);
    if (err)
        return failed("get", err);
    if (item->key.len != strlen("default/hello"))
        return failed("another key", WQ_ESTATE);
    err = wq_done(q, item);
    if (err)
        return failed("done", err);

    wq_destroy(q);
    return 0;
}
