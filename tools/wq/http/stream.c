/* SPDX-License-Identifier: MIT */
/* stream.c: how does a client of /events get its events?
 *
 * A slow client does not delay others: its stream gets the next event when it
 * has read the last one. Between two events its connection is suspended.
 */
#include <stdlib.h>
#include <string.h>

#include "http/listener.h"

#define BLOCK 16384 /* size of the buffer of read_stream() */

/* Writes an event from the current view. Out of memory: the stream ends, and
 * the browser reconnects. */
static void
write_event(struct event_stream *s)
{
    struct listener *l = s->listener;

    text_clear(&s->out);
    s->sent = 0;
    wq__text_str(&s->out, "event: state\ndata: ");
    s->last = !listener_add_state(l, &s->keys, s->history_from, s->failed_from,
                                  &s->out) ||
              l->finished;
    wq__text_str(&s->out, "\n\n");
    s->history_from = l->history.n;
    s->failed_from = view_failures(l->runner)->count + 1;
    s->written_ns = l->view.now_ns;
}

/* The MHD_ContentReaderCallback. */
static ssize_t
read_stream(void *stream, uint64_t position, char *buffer, size_t size)
{
    struct event_stream *s = stream;
    const size_t         left = s->out.len - s->sent;
    const size_t         n = left < size ? left : size;

    (void)position;
    if (s->out.err || (!n && s->last))
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!n) {
        s->suspended = true;
        MHD_suspend_connection(s->connection);
        return 0;
    }
    memcpy(buffer, s->out.data + s->sent, n);
    s->sent += n;
    return (ssize_t)n;
}

/* The MHD_ContentReaderFreeCallback. */
static void
free_stream(void *stream)
{
    struct event_stream  *s = stream;
    struct event_stream **at = &s->listener->streams;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->listener->n_streams--;
    wq__text_fini(&s->out);
    free(s);
}

struct MHD_Response *
stream_create(struct listener *l, struct MHD_Connection *client,
              const struct keys_query *query)
{
    struct event_stream *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->listener = l;
    s->connection = client;
    s->keys.query = *query;
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK, read_stream, s, free_stream);
    if (!response) {
        free(s);
        return NULL;
    }
    s->next = l->streams;
    l->streams = s;
    l->n_streams++;
    s->failed_from = 1;
    listener_take_view(l);
    (void)keys_look(&s->keys, l->runner, &l->view, &l->ration);
    write_event(s);
    listener_tick_soon(l);
    return response;
}

/* The stream with the oldest table, of those that are due and did not walk for
 * this view; NULL: none. */
static struct event_stream *
find_oldest(struct listener *l)
{
    struct event_stream *oldest = NULL;

    for (struct event_stream *s = l->streams; s; s = s->next)
        if (s->due && s->keys.taken_ns < l->view.now_ns &&
            (!oldest || s->keys.taken_ns < oldest->keys.taken_ns))
            oldest = s;
    return oldest;
}

void
streams_look(struct listener *l)
{
    struct event_stream *s;

    while (keys_may_look(&l->ration, &l->view) && (s = find_oldest(l)))
        (void)keys_look(&s->keys, l->runner, &l->view, &l->ration);
}

void
stream_continue(struct event_stream *s)
{
    if (!s->suspended)
        return;
    write_event(s);
    stream_resume(s);
}

void
stream_resume(struct event_stream *s)
{
    if (!s->suspended)
        return;
    s->suspended = false;
    MHD_resume_connection(s->connection);
}
