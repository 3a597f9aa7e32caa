/* SPDX-License-Identifier: MIT */
/* sqlite.c: a program outside this tree with a queue in a file. The key of one
 * handle is there for the next one. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef BY_NAME
#include <wq/wq.h>
#else
#include <wq/sqlite.h>
#endif

static int
fail(const char *what)
{
    fprintf(stderr, "sqlite: %s: %s\n", what, wq_last_error());
    return 1;
}

int
main(void)
{
    const char *url = "sqlite:consumer.db?queue=jobs&sync=lazy";
    wq_queue   *q;
    wq_item    *item;

    (void)unlink("consumer.db");
#ifndef BY_NAME
    if (wq_register_scheme("sqlite", wq_open_sqlite))
        return fail("register");
#endif
    if (wq_open(url, NULL, &q) || wq_add_str(q, "a"))
        return fail("the first handle");
    wq_destroy(q);
    if (wq_open(url, NULL, &q) || wq_get_within(q, 0, &item) ||
        strcmp(item->key.data, "a") != 0 || wq_done(q, item))
        return fail("the second handle");
    wq_destroy(q);
    return 0;
}
