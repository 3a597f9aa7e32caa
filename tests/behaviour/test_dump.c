/* SPDX-License-Identifier: MIT */
/* test_dump.c: is a dump what a person, or a tool for JSON lines, can read? */
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <wq/inspect.h>

#include "support/json.h"
#include "support/told_queue.h"
#include "support/worker.h"

enum { ROOM = 1 << 20 };

static struct told told;

static struct {
    char     text[ROOM];
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
    assert_true(out.len + len < ROOM);
    memcpy(out.text + out.len, text, len);
    out.len += len;
    out.text[out.len] = '\0';
    return WQ_OK;
}

static int
begin(void **state)
{
    (void)state;
    told_init(&told);
    out.text[0] = '\0';
    out.len = out.writes = out.fail_at = 0;
    return 0;
}

/* The dump, of which every line is JSON. */
static const char *
dump(void)
{
    out.len = 0;
    assert_err(wq_dump(&told.base, keep, NULL), WQ_OK);
    for (const char *line = out.text; *line;) {
        const char *end = strchr(line, '\n');
        assert_non_null(end);
        if (!json_is_valid(line, (size_t)(end - line)))
            fail_msg("no JSON: %.*s", (int)(end - line), line);
        line = end + 1;
    }
    return out.text;
}

/* O-34: what is not kept, or does not apply, is left out. */
TEST(first_line_is_the_queue)
{
    assert_string_equal(
        dump(), "{\"queue\":null,\"ready\":0,\"offered\":0,\"held\":0,"
                "\"dirty\":0,\"waiting\":0,\"known\":0,\"bytes\":0,"
                "\"groups\":0,\"sleeping\":0,"
                "\"shutting_down\":false,\"paused\":false,"
                "\"adds\":0,\"merged\":0,\"retries\":0,\"gets\":0,"
                "\"dones\":0,\"removed\":0,\"displaced\":0,\"deferred\":0,"
                "\"overdue\":0,\"drops\":0}\n");

    told.name = "a \"queue\"\n";
    told.counts = (wq_stats){
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
        "\"deferred\":18,\"overdue\":21,\"drops\":16}\n");
}

/* O-34 */
TEST(each_key_has_a_line)
{
    const struct told_key keys[] = {
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

    told.keys = keys;
    told.keys_len = 2;
    assert_string_equal(
        strchr(dump(), '\n'),
        "\n{\"key\":\"default/nginx\",\"states\":[\"READY\"],\"priority\":0,"
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
    const struct told_key keys[] = {
        {{"\0\xff", 2}, info},
        {{"a\"\n\0", 4}, info},
    };

    told.keys = keys;
    told.keys_len = 2;
    assert_string_equal(
        strchr(dump(), '\n'),
        "\n{\"key\":\"\\u0000\xef\xbf\xbd\",\"key_base64\":\"AP8=\",\"states\":"
        "[\"READY\"],\"priority\":0}\n"
        "{\"key\":\"a\\\"\\n\\u0000\",\"states\":[\"READY\"],\"priority\":0}"
        "\n");
}

/* O-34: keys of all lengths, all bytes; a line goes out in one write unless it
 * is very long. */
TEST(long_keys_are_told_in_full)
{
    static char     bytes[WQ_KEY_MAX];
    struct told_key key = {.info = {.states = WQ_STATE_READY}};

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    told.keys = &key;
    told.keys_len = 1;
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
    struct told_key keys[5];

    for (int i = 0; i < 5; i++)
        keys[i] = (struct told_key){{"key", 3}, {.states = WQ_STATE_READY}};
    told.keys = keys;
    told.keys_len = 5;
    for (unsigned n = 1; n <= 6; n++) {
        out.writes = 0;
        out.len = 0;
        out.fail_at = n;
        assert_err(wq_dump(&told.base, keep, NULL), WQ_EFULL);
        assert_int_equal(out.writes, n);
    }
    out.writes = 0;
    out.fail_at = 7;
    assert_err(wq_dump(&told.base, keep, NULL), WQ_OK);
    assert_int_equal(out.writes, 6);
}

/* O-34 */
TEST(dump_passes_on_what_the_queue_says)
{
    assert_err(wq_dump(NULL, keep, NULL), WQ_EINVAL);
    assert_err(wq_dump(&told.base, NULL, NULL), WQ_EINVAL);
    told.stats_err = WQ_EIO;
    assert_err(wq_dump(&told.base, keep, NULL), WQ_EIO);
    told.stats_err = WQ_OK;
    told.backend.each = NULL;
    assert_err(wq_dump(&told.base, keep, NULL), WQ_ENOTSUP);
    assert_int_equal(out.writes, 0);

    told_init(&told);
    told.backend.stats = NULL;
    assert_err(wq_dump(&told.base, keep, NULL), WQ_ENOTSUP);
    assert_int_equal(out.writes, 0);
    told_init(&told);
    told.each_err = WQ_ENOMEM;
    assert_err(wq_dump(&told.base, keep, NULL), WQ_ENOMEM);
}

/* O-34 */
TEST(dump_goes_to_a_file)
{
    char  line[1000] = "";
    FILE *file = tmpfile();

    assert_non_null(file);
    told.name = "pods";
    assert_err(wq_dump(&told.base, wq_write_file, file), WQ_OK);
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
    return (int)wq_dump(&told.base, wq_write_file, self->arg) + 1;
}

/* O-73: the write is no cancellation point. A thread that ended inside would
 * not return. */
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

WQ_TESTS(dump_test(first_line_is_the_queue), dump_test(each_key_has_a_line),
         dump_test(key_that_is_not_utf8_is_also_written_in_base64),
         dump_test(long_keys_are_told_in_full),
         dump_test(write_that_fails_ends_the_dump),
         dump_test(dump_passes_on_what_the_queue_says),
         dump_test(dump_goes_to_a_file),
         dump_test(dump_to_a_file_is_no_cancellation_point));
