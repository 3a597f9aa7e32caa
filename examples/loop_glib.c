/* SPDX-License-Identifier: MIT */
/* loop_glib.c: a queue in a main loop of GLib, which GTK uses, too. */
#include <glib-unix.h>

#include "loop.h"

/* begin: loop */
static GMainLoop *loop;

static gboolean
on_keys(gint fd, GIOCondition condition, gpointer q)
{
    (void)fd;
    (void)condition;
    if (work_on_keys(q))
        return G_SOURCE_CONTINUE;
    g_main_loop_quit(loop);
    return G_SOURCE_REMOVE;
}

static gboolean
on_term(gpointer q)
{
    wq_shutdown(q); /* on_keys() sees it */
    return G_SOURCE_CONTINUE;
}

static void
run(wq_queue *q, int fd)
{
    loop = g_main_loop_new(NULL, FALSE);
    const guint term = g_unix_signal_add(SIGTERM, on_term, q);
    (void)g_unix_fd_add(fd, G_IO_IN, on_keys, q);
    g_main_loop_run(loop);
    (void)g_source_remove(term);
    g_main_loop_unref(loop);
}
/* end: loop */

int
main(int argc, char **argv)
{
    wq_queue *q = open_queue(argc, argv);
    const int fd = wq_fd(q);

    if (fd < 0) {
        perror("loop_glib");
        return 1;
    }
    run(q, fd);
    return close_queue(q);
}
