/* SPDX-License-Identifier: MIT */
/* test_side.c: is the directory beside a database made, checked and locked as
 * side.h says? */
#include "sqlite/fixture.h"

#include <sys/mman.h>

#include "support/entries.h"

/* ---- making it ----------------------------------------------------------- */

TEST(directory_is_fresh_once)
{
    assert_true(opens_fresh());
    assert_false(opens_fresh());
}

static void
report_fresh(struct child *self, void *arg)
{
    struct wq__side *s = NULL;
    bool             fresh = false;

    (void)arg;
    hear_byte(self->from);
    _exit(wq__side_open(f.db, &s, &fresh) ? 2 : fresh);
}

TEST(processes_that_open_at_once_make_one_directory)
{
    enum { N = 8, ROUNDS = 20 };

    for (int round = 0; round < ROUNDS; round++) {
        struct child c[N];
        int          fresh = 0;

        for (int i = 0; i < N; i++)
            c[i] = start(report_fresh, NULL);
        for (int i = 0; i < N; i++)
            say_byte(c[i].to);
        for (int i = 0; i < N; i++) {
            const int status = end_of(&c[i]);
            assert_in_range(status, 0, 1);
            fresh += status;
        }
        assert_int_equal(fresh, 1);
        remove_tree(f.side);
    }
}

static mode_t
mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

TEST(files_have_the_rights_of_the_database)
{
    char         bell[128];
    const mode_t umask_before = umask(0077);

    assert_int_equal(chmod(f.db, 0664), 0);
    f.a = open_side();
    (void)begin(f.a);
    assert_true(wq__side_fd(f.a) >= 0);
    (void)umask(umask_before);

    (void)snprintf(bell, sizeof bell, "%s/bell.0", f.side);
    assert_int_equal(mode_of(f.side), 0775);
    assert_int_equal(mode_of(f.state), 0664);
    assert_int_equal(mode_of(bell), 0664);
}

TEST(rights_follow_those_of_the_database)
{
    assert_true(opens_fresh());
    assert_int_equal(mode_of(f.side), 0700);
    assert_int_equal(chmod(f.db, 0640), 0);
    assert_false(opens_fresh());
    assert_int_equal(mode_of(f.side), 0750);
    assert_int_equal(mode_of(f.state), 0640);
}

TEST(all_names_of_a_database_have_one_directory)
{
    char link[128];

    assert_true(opens_fresh());
    (void)snprintf(link, sizeof link, "%s/link.db", f.dir);
    assert_int_equal(symlink("q.db", link), 0);

    struct wq__side *s = NULL;
    bool             fresh = true;
    assert_err(wq__side_open(link, &s, &fresh), WQ_OK);
    assert_false(fresh);
    assert_string_equal(s->dir, f.side);
    wq__side_close(s, false);
}

/* ---- making it again ----------------------------------------------------- */

static void
cut_state(off_t size)
{
    assert_int_equal(truncate(f.state, size), 0);
}

TEST(file_of_a_killed_maker_is_made_again)
{
    assert_true(opens_fresh());
    cut_state(0);
    assert_true(opens_fresh());
    cut_state(100);
    assert_true(opens_fresh());
    cut_state((off_t)sizeof(struct wq__side_state) - 1);
    assert_true(opens_fresh());

    f.a = open_side(); /* killed before the last step */
    atomic_store(&f.a->m->magic, 0);
    assert_true(opens_fresh());
    assert_err(wq__side_lock(f.a), WQ_EAWAY); /* it is another one now */
}

TEST(directory_of_another_boot_is_made_again)
{
    f.a = open_side();
    f.a->m->boot[0] ^= 1;
    *wq__side_last_number(f.a) = 7;
    assert_true(opens_fresh());
    assert_int_equal(*wq__side_last_number(f.a), 0);
    assert_false(opens_fresh());
}

static void
replace_database(void)
{
    char other[128];

    (void)snprintf(other, sizeof other, "%s/other.db", f.dir);
    make_file(other);
    assert_int_equal(rename(other, f.db), 0);
}

TEST(directory_of_another_database_is_made_again)
{
    assert_true(opens_fresh());
    replace_database();
    assert_true(opens_fresh());
    assert_false(opens_fresh());
}

static void
expect_refused(wq_err err, const char *word)
{
    struct wq__side *s = NULL;
    bool             fresh;

    assert_err(wq__side_open(f.db, &s, &fresh), err);
    assert_null(s);
    if (!strstr(wq_last_error(), word))
        fail_msg("'%s' does not say '%s'", wq_last_error(), word);
    if (!strstr(wq_last_error(), f.db))
        fail_msg("'%s' does not say '%s'", wq_last_error(), f.db);
}

TEST(directory_with_live_sessions_is_not_made_again)
{
    (void)begin(f.a);

    f.a->m->layout++;
    expect_refused(WQ_EVERSION, "release");
    f.a->m->layout--;
    f.a->m->boot[0] ^= 1;
    expect_refused(WQ_ENOTSUP, "another machine");
    f.a->m->boot[0] ^= 1;
    replace_database();
    expect_refused(WQ_EAWAY, "replaced");

    wq__side_end(f.a);
    assert_true(opens_fresh());
}

static void
wait_for_byte(struct child *self, void *arg)
{
    (void)arg;
    hear_byte(self->from);
}

/* A script holds keys without a handle, so without a lock. */
TEST(directory_with_a_live_script_is_not_made_again)
{
    struct child c = start(wait_for_byte, NULL);
    int64_t      id;

    lock(f.a);
    assert_err(wq__side_begin_for(f.a, QUEUE, (uint32_t)c.pid, &id), WQ_OK);
    unlock(f.a);

    f.a->m->layout++;
    expect_refused(WQ_EVERSION, "scripts");
    kill_child(&c);
    assert_true(opens_fresh());
}

/* ---- what cannot be opened ----------------------------------------------- */

TEST(missing_database_is_an_error)
{
    assert_int_equal(unlink(f.db), 0);
    expect_refused(WQ_EIO, "No such file");
}

TEST(file_in_place_of_the_directory_is_an_error)
{
    make_file(f.side);
    expect_refused(WQ_EIO, "remove what is in its place");
    assert_int_equal(unlink(f.side), 0);
    assert_int_equal(symlink(f.dir, f.side), 0);
    expect_refused(WQ_EIO, "remove what is in its place");
}

/* Root may write everywhere, so it becomes nobody. */
static void
open_without_rights(struct child *self, void *arg)
{
    struct wq__side *s = NULL;
    bool             fresh;

    (void)self, (void)arg;
    if (geteuid() == 0 && setuid(65534) != 0)
        _exit(3);
    const wq_err err = wq__side_open(f.db, &s, &fresh);
    if (err != WQ_EAWAY)
        _exit(4);
    _exit(!strstr(wq_last_error(), f.side) ||
          !strstr(wq_last_error(), "Permission denied") ||
          !strstr(wq_last_error(), "right"));
}

TEST(read_only_directory_is_an_error)
{
    assert_int_equal(chmod(f.db, 0666), 0);
    assert_int_equal(chmod(f.dir, 0555), 0);
    struct child c = start(open_without_rights, NULL);
    assert_int_equal(end_of(&c), 0);
    assert_int_equal(chmod(f.dir, 0755), 0);
}

TEST(directory_of_another_user_is_an_error)
{
    if (geteuid() != 0)
        wq_test_skip("needs root");
    assert_true(opens_fresh());
    assert_int_equal(chmod(f.dir, 0755), 0);
    struct child c = start(open_without_rights, NULL);
    assert_int_equal(end_of(&c), 0);
}

TEST(root_gives_the_files_to_the_owner_of_the_database)
{
    struct stat st;

    if (geteuid() != 0)
        wq_test_skip("needs root");
    assert_int_equal(chown(f.db, 65534, 65534), 0);
    assert_true(opens_fresh());
    assert_int_equal(stat(f.side, &st), 0);
    assert_int_equal(st.st_uid, 65534);
    assert_int_equal(stat(f.state, &st), 0);
    assert_int_equal(st.st_uid, 65534);
    assert_int_equal(st.st_gid, 65534);
}

/* ---- the writer lock ----------------------------------------------------- */

static bool
is_free(struct wq__side *s)
{
    return !wq__side_is_locked(s, 0, 1);
}

TEST(handles_of_one_process_exclude_each_other)
{
    lock(f.a);
    assert_false(is_free(f.b));
    assert_err(wq__side_lock_byte(f.b, 0), WQ_ESTATE);
    unlock(f.a);
    assert_true(is_free(f.b));
    lock(f.b);
    assert_false(is_free(f.a));
    unlock(f.b);
}

static void
hold_lock(struct child *self, void *arg)
{
    struct wq__side *s = open_side();

    (void)arg;
    lock(s);
    say_byte(self->to);
    hear_byte(self->from);
}

TEST(lock_is_freed_by_kill)
{
    struct child c = start(hold_lock, NULL);

    hear_byte(c.from);
    assert_false(is_free(f.a));
    stop_child(&c);
    assert_false(is_free(f.a));
    kill_child(&c);
    assert_true(is_free(f.a));
    lock(f.a);
    unlock(f.a);
}

/* A count that is read and written back: a lost update shows two holders. */
static void
count_up(struct child *self, void *arg)
{
    struct wq__side *s = open_side();

    (void)self, (void)arg;
    for (int i = 0; i < 2000; i++) {
        if (wq__side_lock(s))
            _exit(1);
        volatile int64_t *n = wq__side_last_number(s);
        const int64_t     was = *n;
        if (i % 64 == 0)
            (void)usleep(1);
        *n = was + 1;
        unlock(s);
    }
}

TEST(processes_hold_the_lock_one_at_a_time)
{
    enum { N = 4 };
    struct child c[N];

    for (int i = 0; i < N; i++)
        c[i] = start(count_up, NULL);
    for (int i = 0; i < N; i++)
        assert_int_equal(end_of(&c[i]), 0);
    assert_int_equal(*wq__side_last_number(f.a), N * 2000);
}

static void
expect_away(void)
{
    assert_err(wq__side_lock(f.a), WQ_EAWAY);
    if (!strstr(wq_last_error(), f.side) ||
        !strstr(wq_last_error(), "deleted or replaced"))
        fail_msg("%s", wq_last_error());
    assert_err(wq__side_lock_byte(f.b, 0), WQ_OK); /* it is released */
    wq__side_unlock_byte(f.b, 0);
}

TEST(deleted_directory_is_noticed_by_lock)
{
    remove_tree(f.side);
    expect_away();
    assert_true(opens_fresh());
    expect_away();
}

TEST(moved_directory_is_noticed_by_lock)
{
    char moved[128];

    (void)snprintf(moved, sizeof moved, "%s.old", f.side);
    assert_int_equal(rename(f.side, moved), 0);
    expect_away();
    assert_true(opens_fresh());
    expect_away();
}

TEST(cut_file_is_noticed_by_lock)
{
    cut_state(4096);
    assert_err(wq__side_lock(f.a), WQ_EAWAY);
}

/* ---- numbers ------------------------------------------------------------- */

TEST(handles_share_numbers)
{
    lock(f.a);
    wq__side_counts(f.a, 1)->keys.ready = 3;
    wq__side_counts(f.a, WQ__SIDE_QUEUES)->keys.dead = 4;
    *wq__side_last_number(f.a) = 5;
    *wq__side_commits(f.a) = 6;
    unlock(f.a);
    lock(f.b);
    assert_int_equal(wq__side_counts(f.b, 1)->keys.ready, 3);
    assert_int_equal(wq__side_counts(f.b, WQ__SIDE_QUEUES)->keys.dead, 4);
    assert_int_equal(wq__side_counts(f.b, 2)->valid, 0);
    assert_int_equal(*wq__side_last_number(f.b), 5);
    assert_int_equal(*wq__side_commits(f.b), 6);
    unlock(f.b);
}

TEST(synced_only_grows)
{
    wq__side_raise_synced(f.a, 5);
    wq__side_raise_synced(f.b, 3);
    assert_int_equal(wq__side_synced(f.a), 5);
    wq__side_raise_synced(f.b, 8);
    assert_int_equal(wq__side_synced(f.a), 8);
}

/* ---- descriptors --------------------------------------------------------- */

static int
count_descriptors(void)
{
    return (int)entries_of("/proc/self/fd");
}

TEST(descriptors_do_not_leak)
{
    wq_clock *clock = wq_clock_fake_create(0);
    f.a = open_side();
    (void)begin(f.a);
    assert_true(wq__side_fd(f.a) >= 0);
    const int before = count_descriptors();

    for (int i = 0; i < 1000; i++) {
        struct wq__side *s = open_side();
        (void)begin(s);
        (void)begin(s); /* one that is found ended */
        if (i % 2)
            assert_true(wq__side_fd(s) >= 0);
        wq__side_wait(s, QUEUE, clock, 0);
        publish_of(s, QUEUE, WQ__NEWS_OTHER, 0);
        if (i % 4) {
            lock(s);
            wq__side_end(s);
            unlock(s);
        }
        wq__side_close(s, false);
        lock(f.a);
        for (int64_t id; (id = wq__side_find_ended(f.a, QUEUE, 0, false));)
            wq__side_bury(f.a, id);
        wq__side_catch_up(f.a, QUEUE);
        unlock(f.a);
    }
    publish_of(f.a, QUEUE, WQ__NEWS_OTHER, 0);
    assert_int_equal(count_descriptors(), before);
    wq_clock_destroy(clock);
}

static void
count_in_child(struct child *self, void *arg)
{
    (void)self;
    _exit(count_descriptors() != *(int *)arg);
}

TEST(child_of_fork_has_no_descriptors_of_its_parent)
{
    wq_clock *clock = wq_clock_fake_create(0);
    int       before = count_descriptors() + 2; /* its two pipes */

    f.a = open_side();
    f.b = open_side();
    (void)begin(f.a);
    (void)begin(f.b);
    assert_true(wq__side_fd(f.a) >= 0);
    wq__side_wait(f.a, QUEUE, clock, 0);
    publish_of(f.b, QUEUE, WQ__NEWS_OTHER, 0); /* opens the FIFO of a */
    struct child c = start(count_in_child, &before);
    assert_int_equal(end_of(&c), 0);
    wq__side_close(f.a, false);
    f.a = NULL;
    wq_clock_destroy(clock);
}

static void
close_in_child(struct child *self, void *arg)
{
    (void)self, (void)arg;
    wq__side_close(f.a, true);
    f.a = open_side(); /* and it can have its own */
    (void)begin(f.a);
}

TEST(child_that_closes_a_handle_leaves_the_parent_alone)
{
    const int64_t id = begin(f.a);
    struct child  c = start(close_in_child, NULL);

    assert_int_equal(end_of(&c), 0);
    lock(f.b);
    assert_true(wq__side_is_live(f.b, id, 0));
    unlock(f.b);
    assert_true(wq__side_renew(f.a, 0, 10));
}

WQ_TESTS(with_database(directory_is_fresh_once),
         with_database(processes_that_open_at_once_make_one_directory),
         with_database(files_have_the_rights_of_the_database),
         with_database(rights_follow_those_of_the_database),
         with_database(all_names_of_a_database_have_one_directory),
         with_database(file_of_a_killed_maker_is_made_again),
         with_database(directory_of_another_boot_is_made_again),
         with_database(directory_of_another_database_is_made_again),
         with_handles(directory_with_live_sessions_is_not_made_again),
         with_handles(directory_with_a_live_script_is_not_made_again),
         with_database(missing_database_is_an_error),
         with_database(file_in_place_of_the_directory_is_an_error),
         with_database(read_only_directory_is_an_error),
         with_database(directory_of_another_user_is_an_error),
         with_database(root_gives_the_files_to_the_owner_of_the_database),
         with_handles(handles_of_one_process_exclude_each_other),
         with_handles(lock_is_freed_by_kill),
         with_handles(processes_hold_the_lock_one_at_a_time),
         with_handles(deleted_directory_is_noticed_by_lock),
         with_handles(moved_directory_is_noticed_by_lock),
         with_handles(cut_file_is_noticed_by_lock),
         with_handles(handles_share_numbers), with_handles(synced_only_grows),
         with_database(descriptors_do_not_leak),
         with_database(child_of_fork_has_no_descriptors_of_its_parent),
         with_handles(child_that_closes_a_handle_leaves_the_parent_alone));
