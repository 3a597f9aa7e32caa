/* SPDX-License-Identifier: MIT */
/* test_last_error.c: does the sentence of a failed call name field and reason?
 */
#include "fixture.h"

#include <errno.h>

#include <wq/backend.h>

#include "support/worker.h"

/* ---- the sentence itself ------------------------------------------------- */

/* 0: it was "" before, and the thread's own after. */
static int
fail_in_another_thread(struct worker *self)
{
    (void)self;
    if (strcmp(wq_last_error(), "") != 0)
        return 1;
    (void)wq_fail(WQ_EIO, "theirs");
    return strcmp(wq_last_error(), "theirs") == 0 ? 0 : 2;
}

/* E-03 */
TEST(each_thread_has_its_own_sentence)
{
    const char *mine = wq_last_error();

    (void)wq_fail(WQ_EIO, "mine");
    assert_int_equal(worker_join(worker_start(fail_in_another_thread, NULL)),
                     0);
    assert_string_equal(wq_last_error(), "mine");
    assert_string_equal(mine, "mine");
}

/* E-04 */
TEST(fail_returns_its_error_and_keeps_errno)
{
    errno = ENOENT;
    assert_err(wq_fail(WQ_ELOST, "%s: %d of %zu", "a", -1, (size_t)2),
               WQ_ELOST);
    assert_int_equal(errno, ENOENT);
    assert_string_equal(wq_last_error(), "a: -1 of 2");
}

/* E-04 */
TEST(sentence_may_quote_the_one_before)
{
    (void)wq_fail(WQ_EIO, "the disk is full");
    (void)wq_fail(WQ_EIO, "my_open: %s", wq_last_error());
    assert_string_equal(wq_last_error(), "my_open: the disk is full");
}

/* E-04: of any length and with any bytes. */
TEST(long_sentence_is_cut_between_characters)
{
    /* Characters of one to four bytes, and bytes that are none. */
    static const struct {
        const char *character;
        size_t      fits; /* bytes of 255 that whole characters take */
    } rows[] = {
        {"x", 255},
        {"\xc3\xbc", 254},
        {"\xe2\x82\xac", 255},
        {"\xf0\x9f\x8e\x89", 252},
        {"\x80", 255},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const size_t bytes = strlen(rows[i].character);
        char         text[401] = "";

        for (size_t at = 0; at + bytes < sizeof text; at += bytes)
            memcpy(text + at, rows[i].character, bytes);
        (void)wq_fail(WQ_EIO, "%s", text);
        assert_int_equal(strlen(wq_last_error()), rows[i].fits);
        assert_memory_equal(wq_last_error(), text, rows[i].fits);
    }
}

WQ_TESTS(test(each_thread_has_its_own_sentence),
         test(fail_returns_its_error_and_keeps_errno),
         test(sentence_may_quote_the_one_before),
         test(long_sentence_is_cut_between_characters));
