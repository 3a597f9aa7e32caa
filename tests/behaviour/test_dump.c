/* SPDX-License-Identifier: MIT */
/* test_dump.c: what does wq_dump() write, and when does it fail? */
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <wq/inspect.h>

#include "support/json.h"
#include "support/stub_queue.h"
#include "support/worker.h"

enum { CAPACITY = 1 << 20 };

static struct stub_queue stub;

static struct {
    char     text[CAPACITY];
    size_t   len;
    unsigned writes;
    unsigned fail_at; /* which write fails; 0: none */
} out;

static wq_err
keep(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    if (++out.writes == out.fail_at)
        return WQ_EFULL;
    assert_true(out.len + len < CAPACITY);
    memcpy(out.text + out.len, text, len);
    out.len += len;
    out.text[out.len] = '\0';
    return WQ_OK;
}

static int
begin(void **state)
{
    (void)state;
    stub_queue_init(&stub);
    out.text[0] = '\0';
    out.len = out.writes = out.fail_at = 0;
    return 0;
}

/* The dump, of which every line is JSON. */
static const char *
dump(void)
{
    out.len = 0;
    assert_err(wq_dump(&stub.base, keep, NULL), WQ_OK);
    for (const char *line = out.text; *line;) {
        const char *end = strchr(line, '\n');
        assert_non_null(end);
        if (!json_is_valid(line, (size_t)(end - line)))
            fail_msg("no JSON: %.*s", (int)(end - line), line);
        line = end + 1;
    }
    return out.text;
}

/* O-34: fields that are not kept or do not apply are left out. */
TEST(first_line_describes_the_queue)
{
    assert_string_equal(
        dump(), "{\"queue\":null,\"ready\":0,\"offered\":0,\"held\":0,"
                "\"dirty\":0,\"waiting\":0,\"known\":0,\"bytes\":0,"
                "\"groups\":0,\"sleeping\":0,"
                "\"shutting_down\":false,\"paused\":false,"
                "\"adds\":0,\"merged\":0,\"retries\":0,\"gets\":0,"
                "\"dones\":0,\"removed\":0,\"displaced\":0,\"deferred\":0,"
                "\"overdue\":0,\"drops\":0,\"dead\":0,"
                "\"holders\":0,\"lost\":0,\"expired\":0,"
                "\"connects\":0}\n");

    stub.name = "a \"queue\"\n";
    stub.counts = (wq_stats){
        .ready = 1,
        .held = 2,
        .dirty = 3,
        .waiting = 4,
        .known = 17,
        .sleeping = 5,
        .next_ns = 6,
        .unfinished_ns = 7,
        .longest_ns = 8,
        .shutting_down = true,
        .paused = true,
        .offered = 18,
        .bytes = 19,
        .groups = 20,
        .overdue = 21,
        .adds = UINT64_MAX,
        .merged = 10,
        .retries = 11,
        .gets = 12,
        .dones = 13,
        .removed = 14,
        .displaced = 15,
        .deferred = 18,
        .drops = 16,
        .dead = 22,
        .holders = 23,
        .lost = 24,
        .expired = 25,
        .connects = 26,
    };
    assert_string_equal(
        dump(),
        "{\"queue\":\"a \\\"queue\\\"\\n\",\"ready\":1,\"offered\":18,"
        "\"held\":2,\"dirty\":3,\"waiting\":4,\"known\":17,\"bytes\":19,"
        "\"groups\":20,\"sleeping\":5,\"next_ns\":6,"
        "\"unfinished_ns\":7,"
        "\"longest_ns\":8,\"shutting_down\":true,\"paused\":true,"
        "\"adds\":18446744073709551615,\"merged\":10,\"retries\":11,"
        "\"gets\":12,\"dones\":13,\"removed\":14,\"displaced\":15,"
        "\"deferred\":18,\"overdue\":21,\"drops\":16,"
        "\"dead\":22,\"holders\":23,\"lost\":24,\"expired\":25,"
        "\"connects\":26}\n");
}

/* These keys have these lines, after that of the queue. */
static void
assert_key_lines(const struct stub_key *keys, size_t n, const char *lines)
{
    stub.keys = keys;
    stub.keys_len = n;
    assert_string_equal(strchr(dump(), '\n') + 1, lines);
}

/* O-34 */
TEST(each_key_has_a_line)
{
    const struct stub_key keys[] = {
        {{"default/nginx", 13},
         {.states = WQ_STATE_READY,
          .ready_ns = 1500,
          .held_ns = -1,
          .wait_ns = -1}},
        {{"b", 1},
         {.states = WQ_STATE_HELD | WQ_STATE_DIRTY | WQ_STATE_WAITING |
                    WQ_STATE_BACKOFF,
          .priority = -5,
          .requeues = 3,
          .ready_ns = 0,
          .held_ns = 2,
          .wait_ns = 1,
          .fence = 9}},
    };

    assert_key_lines(
        keys, 2,
        "{\"key\":\"default/nginx\",\"states\":[\"READY\"],\"priority\":0,"
        "\"ready_ns\":1500}\n"
        "{\"key\":\"b\",\"states\":[\"HELD\",\"DIRTY\",\"WAITING\",\"BACKOFF\"]"
        ",\"priority\":-5,\"requeues\":3,\"ready_ns\":0,\"held_ns\":2,"
        "\"wait_ns\":1,\"fence\":9}\n");
}

/* O-34 */
TEST(key_that_is_not_utf8_is_also_written_in_base64)
{
    const wq_key_info info = {
        .states = WQ_STATE_READY, .ready_ns = -1, .held_ns = -1, .wait_ns = -1};
    const struct stub_key keys[] = {
        {{"\0\xff", 2}, info},
        {{"a\"\n\0", 4}, info},
    };

    assert_key_lines(
        keys, 2,
        "{\"key\":\"\\u0000\xef\xbf\xbd\",\"key_base64\":\"AP8=\",\"states\":"
        "[\"READY\"],\"priority\":0}\n"
        "{\"key\":\"a\\\"\\n\\u0000\",\"states\":[\"READY\"],\"priority\":0}"
        "\n");
}

/* O-34: a line is one write unless it is very long. */
TEST(long_keys_are_written_whole)
{
    static char     bytes[WQ_KEY_MAX];
    struct stub_key key = {.info = {.states = WQ_STATE_READY}};

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    stub.keys = &key;
    stub.keys_len = 1;
    key.key.data = bytes;
    for (key.key.len = 1; key.key.len < 1200; key.key.len++) {
        out.writes = 0;
        (void)dump();
        assert_true(key.key.len > 100 || out.writes == 2);
    }
    key.key.len = WQ_KEY_MAX;
    assert_non_null(strstr(dump(), "\"key_base64\":\"AAcOFRwj"));
    assert_true(out.len > 2 * (size_t)WQ_KEY_MAX);
}

/* O-34 */
TEST(write_that_fails_ends_the_dump)
{
    struct stub_key keys[5];

    for (int i = 0; i < 5; i++)
        keys[i] = (struct stub_key){{"key", 3}, {.states = WQ_STATE_READY}};
    stub.keys = keys;
    stub.keys_len = 5;
    for (unsigned n = 1; n <= 6; n++) {
        out.writes = 0;
        out.len = 0;
        out.fail_at = n;
        assert_err(wq_dump(&stub.base, keep, NULL), WQ_EFULL);
        assert_int_equal(out.writes, n);
    }
    out.writes = 0;
    out.fail_at = 7;
    assert_err(wq_dump(&stub.base, keep, NULL), WQ_OK);
    assert_int_equal(out.writes, 6);
}

/* O-34 */
TEST(dump_returns_the_errors_of_the_queue)
{
    assert_err(wq_dump(NULL, keep, NULL), WQ_EINVAL);
    assert_err(wq_dump(&stub.base, NULL, NULL), WQ_EINVAL);
    stub.stats_err = WQ_EIO;
    assert_err(wq_dump(&stub.base, keep, NULL), WQ_EIO);
    stub.stats_err = WQ_OK;
    stub.backend.each = NULL;
    assert_err(wq_dump(&stub.base, keep, NULL), WQ_ENOTSUP);
    assert_int_equal(out.writes, 0);

    stub_queue_init(&stub);
    stub.backend.stats = NULL;
    assert_err(wq_dump(&stub.base, keep, NULL), WQ_ENOTSUP);
    assert_int_equal(out.writes, 0);
    stub_queue_init(&stub);
    stub.each_err = WQ_ENOMEM;
    assert_err(wq_dump(&stub.base, keep, NULL), WQ_ENOMEM);
}

/* O-34 */
TEST(dump_can_be_written_to_a_file)
{
    char  line[1000] = "";
    FILE *file = tmpfile();

    assert_non_null(file);
    stub.name = "pods";
    assert_err(wq_dump(&stub.base, wq_write_file, file), WQ_OK);
    rewind(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_memory_equal(line, "{\"queue\":\"pods\",", 16);
    assert_null(fgets(line, sizeof line, file));
    assert_int_equal(fclose(file), 0);
}

static int
dump_when_cancelled(struct worker *self)
{
    (void)pthread_cancel(pthread_self());
    return (int)wq_dump(&stub.base, wq_write_file, self->arg) + 1;
}

/* O-73: a thread that was cancelled inside would not return. */
TEST(dump_to_a_file_is_no_cancellation_point)
{
    FILE *file = tmpfile();

    assert_non_null(file);
    (void)setvbuf(file, NULL, _IONBF, 0);
    struct worker *w = worker_start(dump_when_cancelled, file);
    assert_int_equal(worker_join(w), WQ_OK + 1);
    assert_int_equal(fclose(file), 0);
}

#define dump_test(name) test_with(name, begin, NULL)

WQ_TESTS(dump_test(first_line_describes_the_queue),
         dump_test(each_key_has_a_line),
         dump_test(key_that_is_not_utf8_is_also_written_in_base64),
         dump_test(long_keys_are_written_whole),
         dump_test(write_that_fails_ends_the_dump),
         dump_test(dump_returns_the_errors_of_the_queue),
         dump_test(dump_can_be_written_to_a_file),
         dump_test(dump_to_a_file_is_no_cancellation_point));
