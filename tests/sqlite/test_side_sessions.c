/* SPDX-License-Identifier: MIT */
/* test_side_sessions.c: which sessions live, and who finds out that one does
 * not? */
#include "sqlite/fixture.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

static bool
is_live(struct wq__side *s, int64_t id, int64_t now_ns)
{
    lock(s);
    const bool live = wq__side_is_live(s, id, now_ns);
    unlock(s);
    return live;
}

static void
end(struct wq__side *s)
{
    lock(s);
    wq__side_end(s);
    unlock(s);
}

static size_t
count_sessions(uint32_t queue)
{
    lock(f.a);
    const size_t n = wq__side_sessions(f.a, queue);
    unlock(f.a);
    return n;
}

static int64_t
next_end(struct wq__side *s)
{
    lock(s);
    const int64_t ns = wq__side_next_end(s, QUEUE);
    unlock(s);
    return ns;
}

/* ---- begin and end ------------------------------------------------------- */

TEST(session_lives_until_it_ends)
{
    const int64_t id = begin(f.a);

    assert_true(id > 0);
    assert_true(is_live(f.a, id, 0));
    assert_true(is_live(f.b, id, INT64_MAX - 1));
    assert_false(is_live(f.b, id + 1, 0));
    assert_false(is_live(f.b, 0, 0));
    assert_false(wq__side_is_ended(f.a, 0));
    assert_true(wq__side_is_ended(f.b, 0)); /* has none */
    assert_int_equal(find_ended(f.b, 0, true), 0);

    end(f.a);
    assert_false(is_live(f.b, id, 0));
    assert_true(wq__side_is_ended(f.a, 0));
    assert_int_equal(find_ended(f.b, 0, true), 0);
    end(f.a); /* harmless */
}

TEST(sessions_are_counted_by_queue)
{
    (void)begin(f.a);
    assert_int_equal(count_sessions(QUEUE), 1);
    (void)begin_of(f.b, OTHER_QUEUE, 5);
    assert_int_equal(count_sessions(QUEUE), 1);
    assert_int_equal(count_sessions(OTHER_QUEUE), 1);
    assert_int_equal(find_ended(f.a, 10, true), 0); /* not of this queue */
    end(f.b);
    assert_int_equal(count_sessions(OTHER_QUEUE), 0);
}

TEST(slots_are_used_again)
{
    for (int i = 0; i < 3 * WQ__SIDE_SESSIONS; i++) {
        (void)begin(f.a);
        assert_int_equal(f.a->slot, 0);
        end(f.a);
    }
    assert_int_equal(f.a->m->top, 0);
}

TEST(next_session_ends_the_one_before)
{
    const int64_t first = begin(f.a);
    const int64_t second = begin(f.a);

    assert_int_not_equal(first, second);
    assert_int_equal(find_ended(f.b, 0, false), first);
    assert_int_equal(find_ended(f.b, 0, false), first); /* until it is buried */
    assert_false(is_live(f.b, first, 0));
    assert_true(is_live(f.b, second, 0));
    bury(f.b, first);
    assert_int_equal(find_ended(f.b, 0, true), 0);
}

TEST(handle_that_is_closed_ends_its_session)
{
    const int64_t id = begin(f.a);

    assert_int_equal(find_ended(f.b, 0, true), 0);
    wq__side_close(f.a, false);
    f.a = NULL;
    assert_int_equal(find_ended(f.b, 0, false), id);
}

/* ---- by time ------------------------------------------------------------- */

TEST(session_ends_by_time)
{
    const int64_t id = begin_of(f.a, QUEUE, 10);

    (void)begin(f.b);
    assert_int_equal(next_end(f.b), 10);
    assert_int_equal(next_end(f.a), WQ_FOREVER); /* of others */
    assert_false(wq__side_is_ended(f.a, 9));
    assert_int_equal(find_ended(f.b, 9, true), 0);
    assert_true(wq__side_is_ended(f.a, 10));
    assert_int_equal(find_ended(f.b, 10, false), id);
    assert_false(wq__side_renew(f.a, 5, 20)); /* never again */
    assert_true(wq__side_is_ended(f.a, 5));
    assert_int_equal(next_end(f.b), WQ_FOREVER);
}

TEST(renewed_session_is_not_found_ended)
{
    (void)begin_of(f.a, QUEUE, 10);
    assert_true(wq__side_renew(f.a, 9, 20));
    assert_int_equal(find_ended(f.b, 19, true), 0);
    assert_int_equal(next_end(f.b), 20);
    assert_true(wq__side_renew(f.a, 19, WQ_FOREVER));
    assert_int_equal(find_ended(f.b, INT64_MAX - 1, true), 0);
}

TEST(renewal_that_comes_too_late_ends_the_session)
{
    const int64_t id = begin_of(f.a, QUEUE, 10);

    assert_false(wq__side_renew(f.a, 10, 20));
    assert_false(wq__side_renew(f.a, 9, 20));
    assert_int_equal(find_ended(f.b, 0, false), id);
}

TEST(session_that_is_asked_for_too_late_has_ended)
{
    const int64_t id = begin_of(f.a, QUEUE, 10);

    assert_false(is_live(f.b, id, 10));
    assert_false(wq__side_renew(f.a, 9, 20));
}

TEST(own_session_is_found_ended)
{
    const int64_t id = begin_of(f.a, QUEUE, 10);

    assert_int_equal(find_ended(f.a, 9, true), 0);
    assert_int_equal(find_ended(f.a, 10, false), id);
    bury(f.a, id);
    assert_int_equal(f.a->slot, -1);
    assert_false(wq__side_is_locked(f.b, 1, 0));
}

/* The holder of a buried session still has the lock of its slot. */
TEST(slot_is_not_used_again_before_its_holder_knows)
{
    bury(f.b, begin_of(f.a, QUEUE, 10)); /* as if found ended */
    const int64_t id = begin(f.b);
    assert_int_equal(f.b->slot, 1);
    assert_false(wq__side_renew(f.a, 5, 20));
    assert_true(wq__side_is_ended(f.a, 5));
    (void)begin(f.a);
    assert_int_equal(f.a->slot, 0);
    assert_true(is_live(f.a, id, 0));
}

/* ---- renewal against end ------------------------------------------------- */

enum { ROUNDS = 20000, SPREAD = 200 };

static struct {
    struct meeting meeting;
    bool           renewed;
} race;

static void *
renew_in_each_round(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        meet(&race.meeting);
        spin(i % SPREAD);
        race.renewed = wq__side_renew(f.a, 9, 100); /* just in time */
        meet(&race.meeting);
    }
    return NULL;
}

TEST(session_is_renewed_or_ended_never_both)
{
    pthread_t thread;
    int       renewals = 0;

    memset(&race, 0, sizeof race);
    assert_int_equal(pthread_create(&thread, NULL, renew_in_each_round, NULL),
                     0);
    (void)begin(f.b);
    for (int i = 0; i < ROUNDS; i++) {
        const int64_t id = begin_of(f.a, QUEUE, 10);
        lock(f.b);
        meet(&race.meeting);
        spin(i / SPREAD % SPREAD);
        const int64_t found = wq__side_find_ended(f.b, QUEUE, 10, false);
        meet(&race.meeting);
        if (race.renewed ? found != 0 : found != id)
            fail_msg("round %d: renewed: %d, found ended: %d", i, race.renewed,
                     found != 0);
        renewals += race.renewed;
        if (found)
            wq__side_bury(f.b, found);
        unlock(f.b);
        end(f.a);
    }
    (void)pthread_join(thread, NULL);
    print_message("%d of %d rounds: renewed\n", renewals, ROUNDS);
}

/* ---- by death ------------------------------------------------------------ */

TEST(killed_process_is_found)
{
    int64_t      id;
    struct child c = start_session(&id);

    assert_int_equal(find_ended(f.a, 0, true), 0);
    assert_true(is_live(f.a, id, 0));
    kill_child(&c);
    assert_int_equal(find_ended(f.a, 0, true), id);
    bury(f.a, id);
    assert_int_equal(find_ended(f.a, 0, true), 0);
}

TEST(dead_session_does_not_live)
{
    int64_t      id;
    struct child c = start_session(&id);

    kill_child(&c);
    assert_false(is_live(f.a, id, 0));
}

/* Before its parent has called wait(). */
TEST(zombie_is_found)
{
    int64_t      id;
    struct child c = start_session(&id);
    siginfo_t    info;

    assert_int_equal(kill(c.pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(find_ended(f.a, 0, true), id);
    (void)end_of(&c);
}

TEST(stopped_process_keeps_its_session)
{
    int64_t      id;
    struct child c = start_session(&id);

    stop_child(&c);
    assert_int_equal(find_ended(f.a, 0, true), 0);
    assert_true(is_live(f.a, id, 0));
    kill_child(&c);
    assert_int_equal(find_ended(f.a, 0, true), id);
}

TEST(several_dead_sessions_are_found_by_one_probe)
{
    enum { N = 5 };
    struct child c[N];
    int64_t      ids[N];

    for (int i = 0; i < N; i++)
        c[i] = start_session(&ids[i]);
    for (int i = 0; i < N; i++)
        kill_child(&c[i]);
    int64_t found = find_ended(f.a, 0, true);
    for (int i = 0; i < N; i++) {
        assert_int_equal(found, ids[i]);
        bury(f.a, found);
        found = find_ended(f.a, 0, false);
    }
    assert_int_equal(found, 0);
}

/* One that does not exec(), and outlives its parent. */
static void
hold_session_with_child(struct child *self, void *arg)
{
    struct wq__side *s = open_side();
    const int64_t    id = begin(s);
    const bool       bare = arg != NULL;
    /* A bare system call runs no handlers: the child keeps the descriptors. */
    const pid_t child =
        bare ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();

    if (child == 0) {
        say(self->to, &id, sizeof id);
        hear_byte(self->from); /* until the test has closed the pipe */
        _exit(0);
    }
    (void)pause();
}

static void
expect_found_despite_child(void *bare)
{
    struct child c = start(hold_session_with_child, bare);
    int64_t      id;
    int          status;

    hear(c.from, &id, sizeof id);
    assert_int_equal(find_ended(f.a, 0, true), 0);
    assert_int_equal(kill(c.pid, SIGKILL), 0);
    assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
    assert_int_equal(wq__side_is_locked(f.a, 1, 1), bare != NULL);
    assert_int_equal(find_ended(f.a, 0, true), id);
    (void)close(c.to);
    (void)close(c.from);
}

TEST(forked_child_does_not_keep_its_dead_parents_session)
{
    expect_found_despite_child(NULL);
}

TEST(bare_clone_does_not_keep_its_dead_parents_session)
{
    expect_found_despite_child(&f);
}

static void
exec_with_session(struct child *self, void *arg)
{
    struct wq__side *s = open_side();
    const int64_t    id = begin(s);

    (void)arg;
    say(self->to, &id, sizeof id);
    hear_byte(self->from);
    /* Closed by exec(). */
    (void)fcntl(self->to, F_SETFD, FD_CLOEXEC);
    (void)execl("/bin/sleep", "sleep", "100", (char *)NULL);
    _exit(1);
}

TEST(process_that_runs_another_program_is_found)
{
    struct child c = start(exec_with_session, NULL);
    int64_t      id;
    char         byte;

    hear(c.from, &id, sizeof id);
    assert_int_equal(find_ended(f.a, 0, true), 0);
    say_byte(c.to);
    assert_int_equal(read(c.from, &byte, 1), 0);
    /* The kernel closes descriptors in ascending order; the pipe may have been
     * closed before the last of them. */
    while (find_ended(f.a, 0, true) != id)
        (void)usleep(1000);
    kill_child(&c);
}

/* Its first thread has ended: its state is that of a zombie. */
static void *
live_on(void *arg)
{
    const struct child *self = arg;

    hear_byte(self->from);
    _exit(0);
}

static void
end_first_thread(struct child *self, void *arg)
{
    struct wq__side *s = open_side();
    const int64_t    id = begin(s);
    pthread_t        thread;

    (void)arg;
    if (pthread_create(&thread, NULL, live_on, self) != 0)
        _exit(1);
    say(self->to, &id, sizeof id);
    pthread_exit(NULL);
}

static char
state_of(pid_t pid)
{
    char  path[64], state = '?';
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %*s %c", &state), 1);
    (void)fclose(file);
    return state;
}

TEST(process_without_its_first_thread_lives)
{
    struct child c = start(end_first_thread, NULL);
    int64_t      id;

    hear(c.from, &id, sizeof id);
    while (state_of(c.pid) != 'Z')
        (void)usleep(1000);
    assert_int_equal(find_ended(f.a, 0, true), 0);
    assert_true(is_live(f.a, id, 0));
    say_byte(c.to);
    const int status = end_of(&c);
#ifdef __SANITIZE_ADDRESS__ /* takes what that thread's stack had for a leak */
    (void)status;
#else
    assert_int_equal(status, 0);
#endif
    assert_int_equal(find_ended(f.a, 0, true), id);
}

/* A later process has the pid of the holder: it started at another time. */
TEST(later_process_with_the_same_pid_is_not_the_holder)
{
    int64_t      id;
    struct child c = start_session(&id);

    atomic_fetch_add(&f.a->m->slots[0].start, 1);
    assert_int_equal(find_ended(f.a, 0, true), id);
    kill_child(&c);
}

TEST(pids_of_other_namespaces_mean_nothing)
{
    int64_t      id;
    struct child c = start_session(&id);

    atomic_fetch_add(&f.a->m->slots[0].pid_ns, 1);
    atomic_store(&f.a->m->slots[0].pid, INT32_MAX); /* no such process here */
    assert_int_equal(find_ended(f.a, 0, true), 0);
    kill_child(&c);
    assert_int_equal(find_ended(f.a, 0, true), id);
}

struct far_session {
    pid_t   pid; /* -1: namespaces cannot be made */
    int64_t id;
};

/* The first process of a namespace has pid 1 there. */
static void
hold_session_in_namespace(struct child *self, void *arg)
{
    struct far_session far = {.pid = -1};

    (void)arg;
    if (unshare(CLONE_NEWPID) == 0) {
        const struct child inner = start(hold_session, NULL);
        hear(inner.from, &far.id, sizeof far.id);
        far.pid = inner.pid;
    }
    say(self->to, &far, sizeof far);
    (void)pause();
}

TEST(process_of_another_namespace_is_found)
{
    struct child       c = start(hold_session_in_namespace, NULL);
    struct far_session far;
    int64_t            found = 0;

    hear(c.from, &far, sizeof far);
    if (far.pid < 0) {
        kill_child(&c);
        wq_test_skip("needs the right to make a pid namespace");
    }
    assert_true(is_live(f.a, far.id, 0));
    assert_int_equal(find_ended(f.a, 0, true), 0);
    assert_int_equal(kill(far.pid, SIGKILL), 0);
    while (found == 0) /* it is not our child: nobody can wait for its end */
        found = find_ended(f.a, 0, true);
    assert_int_equal(found, far.id);
    kill_child(&c);
}

/* ---- too many ------------------------------------------------------------ */

enum { PROCESSES = 8, EACH = WQ__SIDE_SESSIONS / PROCESSES };

static void
hold_many_sessions(struct child *self, void *arg)
{
    for (int i = 0; i < EACH; i++)
        (void)begin_of(open_side(), arg ? OTHER_QUEUE : QUEUE, WQ_FOREVER);
    say_byte(self->to);
    hear_byte(self->from);
}

TEST(sessions_beyond_the_maximum_are_refused)
{
    struct child c[PROCESSES];
    int64_t      id = 0;

    for (int i = 0; i < PROCESSES; i++)
        c[i] = start(hold_many_sessions, i ? NULL : &f);
    for (int i = 0; i < PROCESSES; i++)
        hear_byte(c[i].from);
    lock(f.a);
    assert_err(wq__side_begin(f.a, QUEUE, WQ_FOREVER, &id), WQ_EFULL);
    assert_non_null(strstr(wq_last_error(), f.side));
    unlock(f.a);

    /* A queue that others use: its sessions are theirs to bury. */
    kill_child(&c[1]);
    lock(f.a);
    assert_err(wq__side_begin(f.a, QUEUE, WQ_FOREVER, &id), WQ_EFULL);
    unlock(f.a);
    for (int i = 0; i < EACH; i++)
        bury(f.a, find_ended(f.a, 0, i == 0));
    assert_int_equal(find_ended(f.a, 0, true), 0);
    (void)begin(f.a);
    end(f.a);

    /* A queue that nobody uses any more. */
    struct child more = start(hold_many_sessions, NULL);
    hear_byte(more.from);
    kill_child(&c[0]);
    assert_int_equal(count_sessions(OTHER_QUEUE), EACH);
    (void)begin(f.a);
    assert_int_equal(count_sessions(OTHER_QUEUE), 0);

    kill_child(&more);
    for (int i = 2; i < PROCESSES; i++)
        kill_child(&c[i]);
}

WQ_TESTS(with_handles(session_lives_until_it_ends),
         with_handles(sessions_are_counted_by_queue),
         with_handles(slots_are_used_again),
         with_handles(next_session_ends_the_one_before),
         with_handles(handle_that_is_closed_ends_its_session),
         with_handles(session_ends_by_time),
         with_handles(renewed_session_is_not_found_ended),
         with_handles(renewal_that_comes_too_late_ends_the_session),
         with_handles(session_that_is_asked_for_too_late_has_ended),
         with_handles(own_session_is_found_ended),
         with_handles(slot_is_not_used_again_before_its_holder_knows),
         with_handles(session_is_renewed_or_ended_never_both),
         with_handles(killed_process_is_found),
         with_handles(dead_session_does_not_live),
         with_handles(zombie_is_found),
         with_handles(stopped_process_keeps_its_session),
         with_handles(several_dead_sessions_are_found_by_one_probe),
         with_handles(forked_child_does_not_keep_its_dead_parents_session),
         with_handles(bare_clone_does_not_keep_its_dead_parents_session),
         with_handles(process_that_runs_another_program_is_found),
         with_handles(process_without_its_first_thread_lives),
         with_handles(later_process_with_the_same_pid_is_not_the_holder),
         with_handles(pids_of_other_namespaces_mean_nothing),
         with_handles(process_of_another_namespace_is_found),
         with_handles(sessions_beyond_the_maximum_are_refused));
