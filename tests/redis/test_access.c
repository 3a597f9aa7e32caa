/* SPDX-License-Identifier: MIT */
/* test_access.c: how does a handle get into a server: rights, passwords? (S-21) */
#define _GNU_SOURCE
#include "redis/fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct redis_server server;

static void
write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int
stop(void **state)
{
    (void)state;
    redis_server_stop(&server);
    return 0;
}

/* All verbs that use another command of the server. */
static void
use(wq_queue *q)
{
    wq_depth depths[4];
    size_t   n = 0;

    assert_err(wq_add(q, wq_str("a")), WQ_OK);
    assert_err(wq_add_after(q, wq_str("b"), WQ_SECONDS(100)), WQ_OK);
    wq_item *item = take_key(q, "a");
    assert_err(wq_renew(q), WQ_OK);
    assert_err(wq_finish(q, item, wq_result_retry()), WQ_OK);
    assert_err(wq_remove(q, wq_str("b")), WQ_OK);
    (void)stats_of(q);
    assert_err(wq_read_depths(q, depths, 4, &n), WQ_OK);
    check(q);
    item = NULL;
    assert_err(wq_get_within(q, WQ_SECONDS(60), &item), WQ_OK);
    assert_err(wq_finish(q, item, wq_result_bury()), WQ_OK);
}

/* The line of docs/backends.md. */
TEST(user_with_the_documented_rights_can_do_all)
{
    wq_queue *q = NULL, *other = NULL;
    char      url[600], path[200];

    (void)state;
    need_server();
    redis_server_start(&server, NULL);
    assert_string_equal(
        redis_server_say(
            &server,
            "ACL SETUSER agent on >s3cret ~wq:{orders}:* resetchannels -@all "
            "+evalsha +script|load +info +auth +select +client|setname +time "
            "+blpop +rpush +pexpire +del +zadd +zrem +zremrangebyrank +zscore "
            "+zcard +zcount "
            "+zrange +zrangebyscore +zrangebylex +zlexcount +hget +hset +hdel "
            "+hmget "
            "+hlen +hincrby +hscan"),
        "OK");
    (void)snprintf(path, sizeof path, "%s/password", server.dir);
    write_file(path, "s3cret\nsecond line\n");
    (void)snprintf(url, sizeof url,
                   "redis+unix://agent@%s?queue=orders&password_file=%s&db=0",
                   server.socket, path);
    assert_err(wq_open_redis(url, NULL, &q), WQ_OK);
    use(q);
    wq_destroy(q);

    (void)snprintf(url, sizeof url, "redis+unix://agent:s3cret@%s?queue=others",
                   server.socket);
    assert_err(wq_open_redis(url, NULL, &other), WQ_EAWAY);
    last_error_has("does not let this user run");
}

/* Its password may be right again later: the handle goes on. */
TEST(login_that_is_refused_later_is_tried_again)
{
    wq_queue *q = NULL;
    char      url[400];

    (void)state;
    need_server();
    redis_server_start(&server, NULL);
    tell(&server, "ACL SETUSER agent on >s3cret ~* &* +@all");
    (void)snprintf(url, sizeof url, "redis+unix://agent:s3cret@%s",
                   server.socket);
    assert_err(wq_open_redis(url, NULL, &q), WQ_OK);
    tell(&server, "ACL SETUSER agent resetpass >other");
    (void)redis_server_say(&server, "CLIENT KILL USER agent");
    assert_err(wq_add(q, wq_str("k")), WQ_EAWAY);
    last_error_has("refuses the user or the password");
    tell(&server, "ACL SETUSER agent resetpass >s3cret");
    wq_err err = WQ_EAWAY;
    for (int i = 0; err == WQ_EAWAY && i < 3000; i++) {
        err = wq_add(q, wq_str("k"));
        if (err)
            (void)poll(NULL, 0, 1);
    }
    assert_err(err, WQ_OK);
    wq_destroy(q);
}

static long
connections(void)
{
    const char *at = strstr(redis_server_say(&server, "INFO stats"),
                            "total_connections_received:");

    return at ? strtol(at + 27, NULL, 10) : -1;
}

/* It cannot be woken: it looks once a second, and does not connect all the
 * time. */
TEST(user_who_may_not_sleep_on_the_server_looks)
{
    wq_queue *q = NULL;
    wq_item  *item = NULL;
    char      url[400];

    (void)state;
    need_server();
    redis_server_start(&server, NULL);
    assert_string_equal(
        redis_server_say(&server,
                         "ACL SETUSER agent on nopass ~* &* +@all -blpop"),
        "OK");
    (void)snprintf(url, sizeof url, "redis+unix://agent:x@%s", server.socket);
    assert_err(wq_open_redis(url, NULL, &q), WQ_OK);
    const long before = connections();
    assert_err(wq_get_within(q, WQ_MS(300), &item), WQ_ETIMEDOUT);
    assert_true(connections() - before < 10);
    wq_destroy(q);
}

TEST(password_of_the_environment_is_used)
{
    static const char *const args[] = {"--requirepass", "s3cret", NULL};
    wq_queue                *q = NULL;

    (void)state;
    need_server();
    redis_server_start(&server, args);
    assert_int_equal(setenv("WQ_REDIS_PASSWORD", "s3cret", 1), 0);
    const wq_err err = wq_open_redis(url_of(server.socket, "q"), NULL, &q);
    (void)unsetenv("WQ_REDIS_PASSWORD");
    assert_err(err, WQ_OK);
    use(q);
    wq_destroy(q);
}

/* A new password is in the file when the server asks for it. */
TEST(password_file_is_read_at_every_login)
{
    wq_queue *q = NULL;
    char      url[600], path[200];

    (void)state;
    need_server();
    redis_server_start(&server, NULL);
    tell(&server, "ACL SETUSER agent on >s3cret ~* &* +@all");
    (void)snprintf(path, sizeof path, "%s/password", server.dir);
    write_file(path, "s3cret\n");
    (void)snprintf(url, sizeof url,
                   "redis+unix://agent@%s?queue=q&password_file=%s",
                   server.socket, path);
    assert_err(wq_open_redis(url, NULL, &q), WQ_OK);
    tell(&server, "ACL SETUSER agent resetpass >other");
    (void)redis_server_say(&server, "CLIENT KILL USER agent");
    assert_err(wq_add(q, wq_str("k")), WQ_EAWAY);
    last_error_has("(from password_file): WRONGPASS");
    write_file(path, "other\n");
    assert_err(add_in_the_end(q, "k"), WQ_OK);
    (void)redis_server_say(&server, "CLIENT KILL USER agent");
    assert_int_equal(unlink(path), 0);
    assert_err(wq_add(q, wq_str("k")), WQ_EAWAY); /* s3cret */
    last_error_has("(from the password file as it was at first: it cannot");
    write_file(path, "other\n");
    assert_err(add_in_the_end(q, "k"), WQ_OK);
    assert_err(wq_done(q, take_key(q, "k")), WQ_OK);
    use(q);
    wq_destroy(q);
}

/* The connections of user `agent` end; the handle logs in again. */
static void
log_in_again(wq_queue *q)
{
    (void)redis_server_say(&server, "CLIENT KILL USER agent");
    assert_err(add_in_the_end(q, "k"), WQ_OK);
    assert_err(wq_done(q, take_key(q, "k")), WQ_OK);
    assert_non_null(
        strstr(redis_server_say(&server, "CLIENT LIST"), " user=agent "));
}

TEST(password_file_is_found_from_another_directory)
{
    wq_queue *q = NULL;
    char      url[400], path[200], *here = getcwd(NULL, 0);

    (void)state;
    need_server();
    assert_non_null(here);
    redis_server_start(&server, NULL);
    tell(&server, "ACL SETUSER agent on >s3cret ~* &* +@all");
    (void)snprintf(path, sizeof path, "%s/password", server.dir);
    write_file(path, "s3cret\n");
    (void)snprintf(url, sizeof url, "redis+unix://agent@%s", server.socket);
    assert_int_equal(chdir(server.dir), 0);
    const wq_redis_options *o = WQ_REDIS_OPTIONS(.password_file = "password");
    const wq_err            err = wq_redis_open(url, o, NULL, &q);
    assert_int_equal(chdir("/"), 0);
    assert_err(err, WQ_OK);
    tell(&server, "ACL SETUSER agent resetpass >other");
    write_file(path, "other\n");
    log_in_again(q);
    wq_destroy(q);
    assert_int_equal(chdir(here), 0);
    free(here);
}

/* As of a shell's <(...): it can be read once. */
static void
expect_pipe_is_read_once(const char *options)
{
    wq_queue *q = NULL;
    char      url[400];
    int       ends[2];

    need_server();
    redis_server_start(&server, NULL);
    tell(&server, "ACL SETUSER agent on >s3cret ~* &* +@all");
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "s3cret\n", 7), 7);
    (void)close(ends[1]); /* so to read it again is not to wait */
    (void)snprintf(url, sizeof url,
                   "redis+unix://agent@%s?password_file=/dev/fd/%d%s",
                   server.socket, ends[0], options);
    assert_err(wq_open_redis(url, NULL, &q), WQ_OK);
    log_in_again(q); /* the pipe is open, and empty */
    (void)close(ends[0]);
    log_in_again(q);
    wq_destroy(q);
}

TEST(password_file_may_be_a_pipe)
{
    (void)state;
    expect_pipe_is_read_once("");
}

TEST(password_file_of_partitions_may_be_a_pipe)
{
    (void)state;
    expect_pipe_is_read_once("&partitions=3");
}

/* ---- servers that refuse ---------------------------------------------------- */

static struct {
    const char *says;
    int         listener;
} stranger;

/* Says it when the first command has come, and closes the connection. */
static void *
refuse_one(void *unused)
{
    char      bytes[4096];
    const int fd = accept(stranger.listener, NULL, NULL);

    (void)unused;
    if (fd < 0 || read(fd, bytes, sizeof bytes) <= 0 ||
        write(fd, stranger.says, strlen(stranger.says)) < 0)
        abort();
    (void)close(fd);
    return NULL;
}

/* Open a queue with a login in a server that says no more than that. */
static void
refused_by_stranger(const char *login, const char *says, const char *words)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    char               url[400];
    wq_queue          *q = NULL;
    pthread_t          thread;

    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "/tmp/wq-stranger-%d",
                   (int)getpid());
    (void)unlink(addr.sun_path);
    stranger.says = says;
    stranger.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(stranger.listener >= 0);
    assert_int_equal(bind(stranger.listener,
                          (const struct sockaddr *)(const void *)&addr,
                          sizeof addr),
                     0);
    assert_int_equal(listen(stranger.listener, 4), 0);
    assert_int_equal(pthread_create(&thread, NULL, refuse_one, NULL), 0);
    (void)snprintf(url, sizeof url, "redis+unix://%s%s", login, addr.sun_path);
    const wq_err err = wq_open_redis(url, NULL, &q);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(stranger.listener);
    (void)unlink(addr.sun_path);
    last_error_has(words);
    assert_err(err, WQ_EINVAL);
    assert_null(strstr(wq_last_error(), "s3cret"));
}

TEST(server_in_protected_mode_is_named_as_the_cause)
{
    static const char says[] = "-DENIED Redis is running in protected mode\r\n";

    (void)state;
    refused_by_stranger("", says, "is in protected mode");
    refused_by_stranger("u:s3cret@", says, "is in protected mode");
    refused_by_stranger("", "-NOGO we do not serve you\r\n",
                        "refuses this client: NOGO we do not serve you");
}

/* Servers quote the arguments of commands that they do not know. */
TEST(password_that_the_server_quotes_is_not_shown)
{
    (void)state;
    refused_by_stranger("u:s3cret@",
                        "-ERR unknown command 'AUTH', with args beginning "
                        "with: 'u' 's3cret'\r\n",
                        "(from the URL): ERR unknown command ");
    refused_by_stranger("u:s3cret@",
                        "-ERR unknown command `AUTH`, with args beginning "
                        "with: `u`, `s3cret`, \r\n",
                        "(from the URL): ERR unknown command ");
}

TEST(refusal_names_where_the_password_is_from)
{
    static const char *const args[] = {"--requirepass", "s3cret", NULL};
    wq_queue                *q = NULL;
    char                     url[600];

    (void)state;
    need_server();
    redis_server_start(&server, args);
    (void)snprintf(url, sizeof url, "redis+unix://:wr0ng@%s", server.socket);
    assert_err(wq_open_redis(url, NULL, &q), WQ_EINVAL);
    last_error_has("(from the URL): WRONGPASS");
    (void)snprintf(url, sizeof url, "redis+unix://%s", server.socket);
    const wq_redis_options *o = WQ_REDIS_OPTIONS(.password = "wr0ng");
    assert_err(wq_redis_open(url, o, NULL, &q), WQ_EINVAL);
    last_error_has("(from the options): WRONGPASS");
    assert_int_equal(setenv("WQ_REDIS_PASSWORD", "wr0ng", 1), 0);
    assert_err(wq_open_redis(url, NULL, &q), WQ_EINVAL);
    last_error_has("(from WQ_REDIS_PASSWORD): WRONGPASS");
    assert_int_equal(setenv("WQ_REDIS_PASSWORD", "", 1), 0); /* none */
    assert_err(wq_open_redis(url, NULL, &q), WQ_EINVAL);
    last_error_has("asks for a password");
    (void)snprintf(url, sizeof url, "redis+unix://agent@%s", server.socket);
    assert_err(wq_open_redis(url, NULL, &q), WQ_EINVAL);
    last_error_has("asks for a password");
    (void)unsetenv("WQ_REDIS_PASSWORD");
}

/* It is for people only. */
TEST(user_who_may_not_name_his_connection_can_do_all)
{
    wq_queue *q = NULL;
    char      url[400];

    (void)state;
    need_server();
    redis_server_start(&server, NULL);
    tell(&server, "ACL SETUSER agent on >s3cret ~* &* +@all -client");
    (void)snprintf(url, sizeof url, "redis+unix://agent:s3cret@%s",
                   server.socket);
    assert_err(wq_open_redis(url, NULL, &q), WQ_OK);
    use(q);
    wq_destroy(q);
}

/* What is wrong, and not the name of a script. */
TEST(right_that_is_missing_is_named_as_the_cause)
{
    wq_queue *q = NULL;
    char      url[400];

    (void)state;
    need_server();
    redis_server_start(&server, NULL);
    tell(&server, "ACL SETUSER agent on >s3cret ~* &* +@all -hset");
    (void)snprintf(url, sizeof url, "redis+unix://agent:s3cret@%s",
                   server.socket);
    assert_err(wq_open_redis(url, NULL, &q), WQ_EIO);
    last_error_has("does not let this user run a command, or use a key, that");
    tell(&server, "ACL SETUSER agent +hset");
    (void)redis_server_say(&server, "SET wq:{q}:k text");
    (void)snprintf(url, sizeof url, "redis+unix://agent:s3cret@%s?queue=q",
                   server.socket);
    const wq_err err = wq_open_redis(url, NULL, &q);
    assert_err(err ? err : wq_add(q, wq_str("k")), WQ_EIO);
    last_error_has("has keys of another program");
    wq_destroy(q);
}

/* ---- what stays in memory -------------------------------------------------- */

#define SECRET "correct-horse-battery-staple"

/* How often the bytes are in the memory of malloc(), used or free. Memory of a
 * sanitizer is elsewhere. */
static int
copies_in_heap(const char *bytes)
{
    FILE              *maps = fopen("/proc/self/maps", "re");
    const int          fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    unsigned long long from = 0, to = 0;
    char               line[512];
    int                n = 0;

    assert_non_null(maps);
    assert_true(fd >= 0);
    while (fgets(line, sizeof line, maps) && !strstr(line, "[heap]"))
        ;
    (void)fclose(maps);
    if (strstr(line, "[heap]"))
        (void)sscanf(line, "%llx-%llx", &from, &to);
    const size_t len = (size_t)(to - from);
    char        *copy = mmap(NULL, len + 1, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(copy != MAP_FAILED);
    if (len)
        assert_int_equal(pread(fd, copy, len, (off_t)from), len);
    (void)close(fd);
    for (const char *at = copy;
         (at = memmem(at, len - (size_t)(at - copy), bytes, strlen(bytes)));
         at++)
        n++;
    (void)munmap(copy, len + 1);
    return n;
}

/* What was used and freed last is found, if it was not wiped. */
TEST(password_that_is_refused_does_not_stay_in_memory)
{
    wq_queue *q = NULL;
    char      url[600];

    (void)state;
    need_server();
    redis_server_start(&server, NULL);
    (void)snprintf(url, sizeof url, "redis+unix://somebody-else:%s@%s?queue=q",
                   SECRET, server.socket);
    assert_err(wq_open_redis(url, NULL, &q), WQ_EINVAL);
    assert_int_equal(copies_in_heap(SECRET), 0);
}

/* The handle keeps one, to log in again. */
TEST(password_is_in_memory_only_once)
{
    static const char *const args[] = {"--requirepass", SECRET, NULL};
    wq_queue                *q = NULL;
    char                     url[600], path[200];

    (void)state;
    need_server();
    redis_server_start(&server, args);
    (void)snprintf(url, sizeof url, "redis+unix://:%s@%s?queue=q", SECRET,
                   server.socket);
    assert_err(wq_open_redis(url, NULL, &q), WQ_OK);
    use(q);
    assert_true(copies_in_heap(SECRET) <= 1);
    wq_destroy(q);
    assert_int_equal(copies_in_heap(SECRET), 0);

    (void)snprintf(path, sizeof path, "%s/password", server.dir);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, SECRET "\n", sizeof SECRET), sizeof SECRET);
    (void)close(fd);
    (void)snprintf(url, sizeof url, "redis+unix://%s?queue=q&password_file=%s",
                   server.socket, path);
    assert_err(wq_open_redis(url, NULL, &q), WQ_OK);
    wq_destroy(q);
    assert_int_equal(copies_in_heap(SECRET), 0);
}

#define with_server(name) cmocka_unit_test_teardown(name, stop)

WQ_TESTS(with_server(user_with_the_documented_rights_can_do_all),
         with_server(login_that_is_refused_later_is_tried_again),
         with_server(user_who_may_not_sleep_on_the_server_looks),
         with_server(password_of_the_environment_is_used),
         with_server(password_that_is_refused_does_not_stay_in_memory),
         with_server(password_is_in_memory_only_once),
         with_server(password_file_is_read_at_every_login),
         with_server(password_file_is_found_from_another_directory),
         with_server(password_file_may_be_a_pipe),
         with_server(password_file_of_partitions_may_be_a_pipe),
         test(server_in_protected_mode_is_named_as_the_cause),
         test(password_that_the_server_quotes_is_not_shown),
         with_server(refusal_names_where_the_password_is_from),
         with_server(user_who_may_not_name_his_connection_can_do_all),
         with_server(right_that_is_missing_is_named_as_the_cause));
