/* SPDX-License-Identifier: MIT */
/* test_errors.c: what do errors say of themselves, the library of itself? */
#include "fixture.h"

static const struct {
    wq_err      err;
    int         number;
    const char *name;
    const char *message;
} every[] = {
#define ROW(name, number, message) {name, number, #name, message},
    WQ_ERRORS(ROW)
#undef ROW
};

enum { ERRORS = sizeof every / sizeof every[0] };

/* E-01 */
TEST(every_error_has_its_name_and_message)
{
    for (int i = 0; i < ERRORS; i++) {
        assert_string_equal(wq_err_name(every[i].err), every[i].name);
        assert_string_equal(wq_strerror(every[i].err), every[i].message);
        assert_true(strlen(every[i].message) > 0);
    }
}

/* E-01 */
TEST(no_two_errors_share_number_name_or_message)
{
    for (int i = 0; i < ERRORS; i++)
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(every[i].number, every[j].number);
            assert_string_not_equal(every[i].name, every[j].name);
            assert_string_not_equal(every[i].message, every[j].message);
        }
}

/* E-01: a number, once given, stays. */
TEST(numbers_of_errors_are_what_they_were)
{
    assert_int_equal(WQ_OK, 0);
    assert_int_equal(WQ_EINVAL, 1);
    assert_int_equal(WQ_ENOMEM, 2);
    assert_int_equal(WQ_ESHUTDOWN, 3);
    assert_int_equal(WQ_ETIMEDOUT, 4);
    assert_int_equal(WQ_EFULL, 5);
    assert_int_equal(WQ_ESTATE, 6);
    assert_int_equal(WQ_ENOTFOUND, 7);
    assert_int_equal(WQ_EINTERRUPTED, 8);
    assert_int_equal(WQ_EIO, 9);
    assert_int_equal(WQ_ELOST, 10);
    assert_int_equal(WQ_ENOTSUP, 11);
    assert_int_equal(WQ_ETOOLONG, 12);
    assert_int_equal(WQ_EGIVENUP, 13);
    assert_int_equal(WQ_EDROPPED, 14);
}

static void
assert_is_unknown(int number)
{
    const wq_err err = (wq_err)number;

    assert_non_null(wq_err_name(err));
    assert_non_null(wq_strerror(err));
    for (int i = 0; i < ERRORS; i++) {
        assert_string_not_equal(wq_err_name(err), every[i].name);
        assert_string_not_equal(wq_strerror(err), every[i].message);
    }
}

/* E-01: of a later release, say. */
TEST(unknown_numbers_have_a_name_and_a_message_too)
{
    assert_is_unknown(ERRORS);
    assert_is_unknown(255);
    assert_is_unknown(INT32_MAX);
}

/* E-02 */
TEST(linked_version_is_that_of_the_header)
{
    assert_int_equal(wq_version(), WQ_VERSION);
}

/* E-02 */
TEST(versions_compare_as_numbers)
{
    assert_true(WQ_VERSION_ENCODE(0, 1, 0) < WQ_VERSION_ENCODE(0, 1, 1));
    assert_true(WQ_VERSION_ENCODE(0, 1, 999) < WQ_VERSION_ENCODE(0, 2, 0));
    assert_true(WQ_VERSION_ENCODE(0, 999, 999) < WQ_VERSION_ENCODE(1, 0, 0));
}

WQ_TESTS(test(every_error_has_its_name_and_message),
         test(no_two_errors_share_number_name_or_message),
         test(numbers_of_errors_are_what_they_were),
         test(unknown_numbers_have_a_name_and_a_message_too),
         test(linked_version_is_that_of_the_header),
         test(versions_compare_as_numbers));
