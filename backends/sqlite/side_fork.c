/* SPDX-License-Identifier: MIT */
/* side_fork.c: what happens to the descriptors of sides in a child of fork()?
 *
 * The child closes them at once. A child that does not exec() would otherwise
 * keep the file description open, and with it the locks of its parent: the
 * session of a dead parent would seem to live for as long as the child.
 *
 * A fork() waits while a thread opens or closes the file that has the locks, so
 * that it is never open without being in the list. Other descriptors may leak
 * into a child in the moment they are made, which harms nobody.
 */
#include <pthread.h>
#include <unistd.h>

#include "side_inside.h"

/* Guards the list. A child is born with it taken, by its only thread. */
static pthread_mutex_t  mutex = PTHREAD_MUTEX_INITIALIZER;
static struct wq__side *sides; /* those with descriptors; owned by handles */

void
wq__side_close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

void
wq__side_close_all(struct wq__side *s)
{
    wq__side_close_fd(&s->state_fd);
    wq__side_close_fd(&s->dir_fd);
    wq__side_close_fd(&s->kick_fd);
    wq__side_close_fd(&s->bell_fd);
    wq__side_close_fd(&s->news_fd);
    wq__side_close_fd(&s->look_fd);
    for (int i = 0; i < WQ__SIDE_PEERS; i++)
        wq__side_close_fd(&s->peers[i].fd);
    for (int i = 0; i < WQ__SIDE_BELLS; i++)
        wq__side_close_fd(&s->bells[i].fd);
    wq__beacon_fini(&s->beacon);
}

static void
before_fork(void)
{
    (void)pthread_mutex_lock(&mutex);
}

static void
in_parent(void)
{
    (void)pthread_mutex_unlock(&mutex);
}

/* Takes no lock of a side: a thread that does not exist here may have it. */
static void
in_child(void)
{
    for (struct wq__side *s = sides; s; s = s->next)
        wq__side_close_all(s);
    (void)pthread_mutex_unlock(&mutex);
}

static void
notice_forks(void)
{
    (void)pthread_atfork(before_fork, in_parent, in_child);
}

void
wq__side_hold_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, notice_forks);
    (void)pthread_mutex_lock(&mutex);
}

void
wq__side_let_forks(void)
{
    (void)pthread_mutex_unlock(&mutex);
}

void
wq__side_enlist(struct wq__side *s)
{
    s->prev = NULL;
    s->next = sides;
    if (sides)
        sides->prev = s;
    sides = s;
}

void
wq__side_delist(struct wq__side *s)
{
    *(s->prev ? &s->prev->next : &sides) = s->next;
    if (s->next)
        s->next->prev = s->prev;
}
