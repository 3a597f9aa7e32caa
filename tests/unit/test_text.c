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

/* ---- the buffer ---------------------------------------------------------- */

static void
assert_text(struct wq__text *t, const char *expected)
{
    assert_int_equal(t->err, WQ_OK);
    wq__text_char(t, '\0');
    assert_string_equal(t->data, expected);
    wq__text_fini(t);
}

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

TEST(buffer_without_memory_stops_and_says_so)
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

TEST(buffer_that_spills_passes_all_on_in_order)
{
    struct spilled  s = {.len = 0};
    struct wq__text t;
    char            buffer[4];

    wq__text_spill(&t, buffer, sizeof buffer, keep, &s);
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
    struct wq__text t;
    char            buffer[4];

    wq__text_spill(&t, buffer, sizeof buffer, keep, &s);
    wq__text_str(&t, "abcdefghijklm");
    wq__text_flush(&t);
    assert_int_equal(t.err, WQ_EIO);
    assert_int_equal(s.writes, 2);
}

/* ---- numbers ------------------------------------------------------------- */

static void
assert_seconds(uint64_t seconds, uint32_t ns, const char *expected)
{
    struct wq__text t;

    wq__text_init(&t, &wq__mem_default);
    wq__text_seconds(&t, seconds, ns);
    assert_text(&t, expected);
}

static void
assert_i64(int64_t n, const char *expected)
{
    struct wq__text t;

    wq__text_init(&t, &wq__mem_default);
    wq__text_i64(&t, n);
    assert_text(&t, expected);
}

TEST(numbers_are_written_exactly)
{
    struct wq__text t;

    assert_i64(0, "0");
    assert_i64(-7, "-7");
    assert_i64(10, "10");
    assert_i64(INT64_MAX, "9223372036854775807");
    assert_i64(INT64_MIN, "-9223372036854775808");
    wq__text_init(&t, &wq__mem_default);
    wq__text_u64(&t, UINT64_MAX);
    assert_text(&t, "18446744073709551615");
}

TEST(seconds_are_exact_decimals)
{
    assert_seconds(0, 0, "0");
    assert_seconds(0, 1, "0.000000001");
    assert_seconds(0, 50000, "0.00005");
    assert_seconds(0, 999999999, "0.999999999");
    assert_seconds(1, 0, "1");
    assert_seconds(100, 500000000, "100.5");
    assert_seconds(UINT64_MAX, 10, "18446744073709551615.00000001");
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
TEST(utf8_is_told_from_what_is_not)
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

static void
assert_replaced(const char *bytes, const char *expected)
{
    struct wq__text t;

    assert_int_equal(wq__utf8_valid(bytes, strlen(bytes)),
                     strcmp(bytes, expected) == 0);
    wq__text_init(&t, &wq__mem_default);
    wq__utf8_add(&t, bytes, strlen(bytes));
    assert_text(&t, expected);
}

#define R WQ__UTF8_REPLACEMENT

/* The last is Unicode's own example. */
TEST(what_is_not_utf8_is_replaced_once_for_each_beginning)
{
    assert_replaced("", "");
    assert_replaced("plain", "plain");
    assert_replaced("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
                    "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
    assert_replaced("\xe2\x82", R);               /* cut off */
    assert_replaced("\xf0\x9f\x98z", R "z");      /* by another one */
    assert_replaced("\x80\x80", R R);             /* no beginning */
    assert_replaced("\xc0\xaf", R R);             /* overlong */
    assert_replaced("\xe0\x80\x80", R R R);       /* overlong */
    assert_replaced("\xed\xa0\x80", R R R);       /* a surrogate */
    assert_replaced("\xf4\x90\x80\x80", R R R R); /* too large */
    assert_replaced("\xff\xfe", R R);             /* never in UTF-8 */
    assert_replaced("a\xf1\x80\x80\xe1\x80\xc2"
                    "b\x80"
                    "c\x80\xbf"
                    "d",
                    "a" R R R "b" R "c" R R "d");
}

/* ---- escapes ------------------------------------------------------------- */

static void
assert_escaped(void (*write)(struct wq__text *, const char *, size_t),
               const char *bytes, size_t n, const char *expected)
{
    struct wq__text t;

    wq__text_init(&t, &wq__mem_default);
    write(&t, bytes, n);
    assert_text(&t, expected);
}

TEST(json_strings_are_escaped)
{
    assert_escaped(wq__text_json, "", 0, "\"\"");
    assert_escaped(wq__text_json, "a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\"");
    assert_escaped(wq__text_json, "\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"");
    assert_escaped(wq__text_json, "\0\x01\x1f\x7f", 4,
                   "\"\\u0000\\u0001\\u001f\x7f\"");
    assert_escaped(wq__text_json, "\xc3\xbc\xff", 3, "\"\xc3\xbc" R "\"");
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

TEST(label_values_are_escaped)
{
    assert_escaped(wq__text_label, "", 0, "\"\"");
    assert_escaped(wq__text_label, "a\"b\\c\nd\te", 9,
                   "\"a\\\"b\\\\c\\nd\te\"");
    assert_escaped(wq__text_label, "\xc3\xbc\xe2\x82", 4, "\"\xc3\xbc" R "\"");
}

static void
assert_base64(const char *bytes, size_t n, const char *expected)
{
    struct wq__text t;

    wq__text_init(&t, &wq__mem_default);
    wq__text_base64(&t, bytes, n);
    assert_text(&t, expected);
}

/* RFC 4648, section 10. */
TEST(base64_of_the_test_vectors_is_that_of_the_rfc)
{
    static const char *const expected[] = {
        "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};

    for (size_t n = 0; n <= 6; n++)
        assert_base64("foobar", n, expected[n]);
}

/* The last two digits of the alphabet, and bytes whose highest bit is set. */
TEST(base64_has_all_digits_and_keeps_all_bits)
{
    assert_base64("\x00\xff", 2, "AP8=");
    assert_base64("\xfb\xef\xbe\xff\xff\xff", 6, "++++////");
    assert_base64("\x00\x10\x83\x10\x51\x87\x20\x92\x8b\x30\xd3\x8f"
                  "\x41\x14\x93\x51\x55\x97\x61\x96\x9b\x71\xd7\x9f"
                  "\x82\x18\xa3\x92\x59\xa7\xa2\x9a\xab\xb2\xdb\xaf"
                  "\xc3\x1c\xb3\xd3\x5d\xb7\xe3\x9e\xbb\xf3\xdf\xbf",
                  48,
                  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef"
                  "ghijklmnopqrstuvwxyz0123456789+/");
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

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (!json_is_valid(good[i], strlen(good[i])))
            fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (json_is_valid(bad[i], strlen(bad[i])))
            fail_msg("accepted: %s", bad[i]);
}

WQ_TESTS(test(buffer_grows_and_keeps_what_it_holds),
         test(buffer_without_memory_stops_and_says_so),
         test(buffer_that_spills_passes_all_on_in_order),
         test(buffer_whose_write_fails_does_not_write_again),
         test(numbers_are_written_exactly), test(seconds_are_exact_decimals),
         test(utf8_is_told_from_what_is_not),
         test(what_is_not_utf8_is_replaced_once_for_each_beginning),
         test(json_strings_are_escaped), test(every_byte_makes_a_json_string),
         test(label_values_are_escaped),
         test(base64_of_the_test_vectors_is_that_of_the_rfc),
         test(base64_has_all_digits_and_keeps_all_bits),
         test(json_reader_knows_json));
