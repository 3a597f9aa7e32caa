/* SPDX-License-Identifier: MIT */
/* test_text.c: is text written as it should be, wherever it goes? */
#include "support/wq_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/mem.h"
#include "support/counting.h"
#include "support/json.h"
#include "text/escape.h"
#include "text/number.h"
#include "text/text.h"
#include "text/utf8.h"

#define LEN(array) (sizeof(array) / sizeof *(array))

/* ---- the buffer ---------------------------------------------------------- */

TEST(buffer_grows_and_keeps_what_it_holds)
{
    struct counting mem;
    struct wq__text t;

    counting_init(&mem);
    wq__text_init(&t, &mem.allocator);
    for (int i = 0; i < 20000; i++)
        wq__text_char(&t, (char)('a' + i % 26));
    assert_int_equal(t.len, 20000);
    for (int i = 0; i < 20000; i++)
        assert_int_equal(t.data[i], 'a' + i % 26);
    wq__text_fini(&t);
    assert_int_equal(mem.bytes, 0);
}

TEST(zeroed_buffer_grows_by_malloc)
{
    struct wq__text t = {0};

    for (int i = 0; i < 5000; i++)
        wq__text_str(&t, "ab");
    assert_int_equal(t.err, WQ_OK);
    assert_int_equal(t.len, 10000);
    assert_memory_equal(t.data, "abab", 4);
    wq__text_fini(&t);
    assert_null(t.data);
}

TEST(buffer_without_memory_stops_with_an_error)
{
    struct counting mem;
    struct wq__text t;

    counting_init(&mem);
    wq__text_init(&t, &mem.allocator);
    wq__text_str(&t, "kept");
    counting_fail(&mem, 1, COUNTING_ONCE);
    for (int i = 0; i < 5000; i++)
        wq__text_str(&t, "much ");
    assert_int_equal(t.err, WQ_ENOMEM);
    const size_t len = t.len;
    wq__text_str(&t, "more"); /* there is memory again: still nothing */
    assert_int_equal(t.len, len);
    assert_memory_equal(t.data, "kept", 4);
    wq__text_fini(&t);
    assert_int_equal(mem.bytes, 0);
}

struct spilled {
    char     text[200];
    size_t   len;
    unsigned writes;
    unsigned fail_at; /* which write fails; 0: none */
};

static wq_err
keep(void *ctx, const char *text, size_t len)
{
    struct spilled *s = ctx;

    if (++s->writes == s->fail_at)
        return WQ_EIO;
    memcpy(s->text + s->len, text, len);
    s->len += len;
    return WQ_OK;
}

static struct wq__text
open_spilling(struct spilled *s)
{
    static char     buffer[4];
    struct wq__text t;

    wq__text_spill(&t, buffer, sizeof buffer, keep, s);
    return t;
}

TEST(buffer_that_spills_passes_all_on_in_order)
{
    struct spilled  s = {.len = 0};
    struct wq__text t = open_spilling(&s);

    wq__text_str(&t, "abc");
    assert_int_equal(s.writes, 0);
    wq__text_str(&t, "defghijklm");
    wq__text_flush(&t);
    wq__text_flush(&t); /* nothing left: not written */
    assert_int_equal(t.err, WQ_OK);
    assert_int_equal(s.writes, 4);
    assert_int_equal(s.len, 13);
    assert_memory_equal(s.text, "abcdefghijklm", 13);
}

TEST(buffer_whose_write_fails_does_not_write_again)
{
    struct spilled  s = {.fail_at = 2};
    struct wq__text t = open_spilling(&s);

    wq__text_str(&t, "abcdefghijklm");
    wq__text_flush(&t);
    assert_int_equal(t.err, WQ_EIO);
    assert_int_equal(s.writes, 2);
}

/* ---- numbers ------------------------------------------------------------- */

static void
expect_text(struct wq__text *t, const char *expected)
{
    assert_int_equal(t->err, WQ_OK);
    wq__text_char(t, '\0');
    assert_string_equal(t->data, expected);
    wq__text_fini(t);
}

TEST(numbers_are_written_exactly)
{
    static const struct {
        int64_t     n;
        const char *text;
    } rows[] = {
        {0, "0"},
        {-7, "-7"},
        {10, "10"},
        {INT64_MAX, "9223372036854775807"},
        {INT64_MIN, "-9223372036854775808"},
    };
    struct wq__text t;

    for (size_t i = 0; i < LEN(rows); i++) {
        wq__text_init(&t, &wq__mem_default);
        wq__text_i64(&t, rows[i].n);
        expect_text(&t, rows[i].text);
    }
    wq__text_init(&t, &wq__mem_default);
    wq__text_u64(&t, UINT64_MAX);
    expect_text(&t, "18446744073709551615");
}

TEST(seconds_are_exact_decimals)
{
    static const struct {
        uint64_t    seconds;
        uint32_t    ns;
        const char *text;
    } rows[] = {
        {0, 0, "0"},
        {0, 1, "0.000000001"},
        {0, 50000, "0.00005"},
        {0, 999999999, "0.999999999"},
        {1, 0, "1"},
        {100, 500000000, "100.5"},
        {UINT64_MAX, 10, "18446744073709551615.00000001"},
    };

    for (size_t i = 0; i < LEN(rows); i++) {
        struct wq__text t;

        wq__text_init(&t, &wq__mem_default);
        wq__text_seconds(&t, rows[i].seconds, rows[i].ns);
        expect_text(&t, rows[i].text);
    }
}

/* ---- UTF-8 --------------------------------------------------------------- */

static void
expect_agreement(const char *bytes, size_t n)
{
    bool         valid;
    const size_t len = wq__utf8_next(bytes, n, &valid);
    const size_t expected = utf8_length(bytes, n);

    if (valid != (expected > 0) || (valid && len != expected) || len == 0 ||
        len > n)
        fail_msg("%02x %02x %02x %02x, %zu of them: valid %d, %zu bytes",
                 (unsigned char)bytes[0], (unsigned char)bytes[1],
                 (unsigned char)bytes[2], (unsigned char)bytes[3], n, valid,
                 len);
}

/* Against another decoder: every beginning of two bytes, with others behind
 * that are at the edges of what is allowed. */
TEST(utf8_is_recognised)
{
    static const char edges[] = {0x00,       0x7f,       (char)0x80,
                                 (char)0x8f, (char)0xbf, (char)0xc0};

    for (int two = 0; two < 65536; two++)
        for (size_t i = 0; i < sizeof edges; i++)
            for (size_t k = 0; k < sizeof edges; k++) {
                const char b[] = {(char)(two >> 8), (char)two, edges[i],
                                  edges[k]};
                for (size_t n = 1; n <= sizeof b; n++)
                    expect_agreement(b, n);
            }
}

#define R WQ__UTF8_REPLACEMENT
#define GREEN "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"

#define BYTES(literal) literal, sizeof literal - 1

static void
write_base64(struct wq__text *t, const char *bytes, size_t n)
{
    wq__text_base64(t, bytes, n);
}

/* What is not UTF-8 is replaced, once for each beginning; the last one is
 * Unicode's own example. Base64 has the test vectors of RFC 4648, section 10;
 * the last two digits of the alphabet; bytes whose highest bit is set; and the
 * whole alphabet. */
TEST(strings_are_written_as_each_format_wants)
{
    static const struct {
        void (*write)(struct wq__text *, const char *, size_t);
        const char *bytes;
        size_t      n;
        const char *text;
    } rows[] = {
        {wq__utf8_add, BYTES(""), ""},
        {wq__utf8_add, BYTES("plain"), "plain"},
        {wq__utf8_add, BYTES(GREEN), GREEN},
        {wq__utf8_add, BYTES("\xe2\x82"), R},               /* cut off */
        {wq__utf8_add, BYTES("\xf0\x9f\x98z"), R "z"},      /* by another one */
        {wq__utf8_add, BYTES("\x80\x80"), R R},             /* no beginning */
        {wq__utf8_add, BYTES("\xc0\xaf"), R R},             /* overlong */
        {wq__utf8_add, BYTES("\xe0\x80\x80"), R R R},       /* overlong */
        {wq__utf8_add, BYTES("\xed\xa0\x80"), R R R},       /* a surrogate */
        {wq__utf8_add, BYTES("\xf4\x90\x80\x80"), R R R R}, /* too large */
        {wq__utf8_add, BYTES("\xff\xfe"), R R},             /* never in UTF-8 */
        {wq__utf8_add,
         BYTES("a\xf1\x80\x80\xe1\x80\xc2"
               "b\x80"
               "c\x80\xbf"
               "d"),
         "a" R R R "b" R "c" R R "d"},
        {wq__text_json, BYTES(""), "\"\""},
        {wq__text_json, BYTES("a\"b\\c/d"), "\"a\\\"b\\\\c/d\""},
        {wq__text_json, BYTES("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\""},
        {wq__text_json, BYTES("\0\x01\x1f\x7f"),
         "\"\\u0000\\u0001\\u001f\\u007f\""},
        {wq__text_json, BYTES("\xc3\xbc\xff"), "\"\xc3\xbc" R "\""},
        {wq__text_label, BYTES(""), "\"\""},
        {wq__text_label, BYTES("a\"b\\c\nd\te"), "\"a\\\"b\\\\c\\nd\te\""},
        {wq__text_label, BYTES("\xc3\xbc\xe2\x82"), "\"\xc3\xbc" R "\""},
        {write_base64, BYTES(""), ""},
        {write_base64, BYTES("f"), "Zg=="},
        {write_base64, BYTES("fo"), "Zm8="},
        {write_base64, BYTES("foo"), "Zm9v"},
        {write_base64, BYTES("foob"), "Zm9vYg=="},
        {write_base64, BYTES("fooba"), "Zm9vYmE="},
        {write_base64, BYTES("foobar"), "Zm9vYmFy"},
        {write_base64, BYTES("\x00\xff"), "AP8="},
        {write_base64, BYTES("\xfb\xef\xbe\xff\xff\xff"), "++++////"},
        {write_base64,
         BYTES("\x00\x10\x83\x10\x51\x87\x20\x92\x8b\x30\xd3\x8f"
               "\x41\x14\x93\x51\x55\x97\x61\x96\x9b\x71\xd7\x9f"
               "\x82\x18\xa3\x92\x59\xa7\xa2\x9a\xab\xb2\xdb\xaf"
               "\xc3\x1c\xb3\xd3\x5d\xb7\xe3\x9e\xbb\xf3\xdf\xbf"),
         "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"
         "ghijklmnopqrstuvwxyz0123456789+/"},
    };

    for (size_t i = 0; i < LEN(rows); i++) {
        struct wq__text t;

        wq__text_init(&t, &wq__mem_default);
        rows[i].write(&t, rows[i].bytes, rows[i].n);
        expect_text(&t, rows[i].text);
        if (rows[i].write == wq__utf8_add)
            assert_int_equal(wq__utf8_valid(rows[i].bytes, rows[i].n),
                             strcmp(rows[i].bytes, rows[i].text) == 0);
    }
}

TEST(every_byte_makes_a_json_string)
{
    struct wq__text t;
    char            bytes[256];

    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    wq__text_init(&t, &wq__mem_default);
    wq__text_json(&t, bytes, sizeof bytes);
    assert_int_equal(t.err, WQ_OK);
    assert_true(json_is_valid(t.data, t.len));
    wq__text_fini(&t);
}

TEST(key_that_is_not_utf8_is_written_in_base64_too)
{
    struct wq__text t;

    wq__text_init(&t, &wq__mem_default);
    wq__text_key(&t, "a", 1);
    expect_text(&t, "\"key\":\"a\"");
    wq__text_init(&t, &wq__mem_default);
    wq__text_key(&t, "\xff", 1);
    expect_text(&t, "\"key\":\"" R "\",\"key_base64\":\"/w==\"");
}

/* ---- the reader of JSON, which other tests rely on ----------------------- */

TEST(json_reader_knows_json)
{
    static const char *const good[] = {
        "{}",
        " [ ] ",
        "[1,-0.5e+3,true,false,null]",
        "{\"a\":{\"b\":[{}]}}",
        "\"\\u00e9\xc3\xa9\"",
    };
    static const char *const bad[] = {
        "",         "{",   "[1,]",       "{\"a\"}",   "{a:1}", "[1 2]",
        "01",       "1.",  "\"\n\"",     "\"\\x\"",   "nul",   "{}{}",
        "\"\xff\"", "[1}", "{\"a\":1,}", "\"\\u12\"", "-",     "\"open",
    };

    for (size_t i = 0; i < LEN(good); i++)
        if (!json_is_valid(good[i], strlen(good[i])))
            fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < LEN(bad); i++)
        if (json_is_valid(bad[i], strlen(bad[i])))
            fail_msg("accepted: %s", bad[i]);
}

WQ_TESTS(test(buffer_grows_and_keeps_what_it_holds),
         test(zeroed_buffer_grows_by_malloc),
         test(buffer_without_memory_stops_with_an_error),
         test(buffer_that_spills_passes_all_on_in_order),
         test(buffer_whose_write_fails_does_not_write_again),
         test(numbers_are_written_exactly), test(seconds_are_exact_decimals),
         test(utf8_is_recognised),
         test(strings_are_written_as_each_format_wants),
         test(key_that_is_not_utf8_is_written_in_base64_too),
         test(every_byte_makes_a_json_string), test(json_reader_knows_json));
