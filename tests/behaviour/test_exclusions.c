/* SPDX-License-Identifier: MIT */
/* test_exclusions.c: which fields of wq_config need or exclude each other? */
#include "configs.h"

#include <wq/backend.h>

struct row {
    const char      *text; /* for the message if it fails */
    const wq_config *config;
    wq_err           expected;
};

#define ROW(expected, ...)                                                     \
    {                                                                          \
#__VA_ARGS__, WQ_CONFIG(__VA_ARGS__), expected                         \
    }

/* Each row of an array: what does `create` say to its config? */
#define check_rows(rows, create)                                               \
    do {                                                                       \
        for (size_t i_ = 0; i_ < sizeof(rows) / sizeof(rows)[0]; i_++)         \
            check_row(&(rows)[i_], create);                                    \
    } while (0)

static void
check_row(const struct row *row, wq_err (*create)(const wq_config *config))
{
    const wq_err err = create(row->config);

    if (err != row->expected)
        fail_msg("%s: %s, expected %s", row->text, wq_err_name(err),
                 wq_err_name(row->expected));
}

static void
ignore(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    (void)ctx, (void)key, (void)retries, (void)why;
}

/* O-20 O-87 */
TEST(overflow_needs_a_bound)
{
    const struct row rows[] = {
        ROW(WQ_EINVAL, .overflow = WQ_OVERFLOW_BLOCK),
        ROW(WQ_EINVAL, .overflow = WQ_OVERFLOW_DROP_OLDEST),
        ROW(WQ_OK, .on_drop = ignore),
        ROW(WQ_OK, .max_len = 1),
        ROW(WQ_OK, .max_len = 1, .overflow = WQ_OVERFLOW_BLOCK),
        ROW(WQ_OK, .max_len = 1, .overflow = WQ_OVERFLOW_DROP_OLDEST),
        ROW(WQ_OK, .max_len = 1, .overflow = WQ_OVERFLOW_DROP_OLDEST,
            .on_drop = ignore),
        ROW(WQ_OK, .max_len = SIZE_MAX),
        ROW(WQ_EINVAL, .max_len = 1, .overflow = (wq_overflow)3),
        ROW(WQ_EINVAL, .max_len = 1, .overflow = (wq_overflow)77),
        ROW(WQ_OK, .max_bytes = 1),
        ROW(WQ_OK, .max_bytes = 1, .overflow = WQ_OVERFLOW_BLOCK),
        ROW(WQ_OK, .max_bytes = 1, .overflow = WQ_OVERFLOW_DROP_OLDEST),
        ROW(WQ_OK, .max_bytes = 1, .on_drop = ignore),
    };

    check_rows(rows, try_config);
}

/* O-20 O-80 O-87 O-89 */
TEST(order_excludes_fields_that_order_keys)
{
    const struct row rows[] = {
        ROW(WQ_OK, .order = &order_of_nothing, .max_len = 1),
        ROW(WQ_OK, .order = &order_of_nothing, .max_len = 1,
            .overflow = WQ_OVERFLOW_BLOCK),
        ROW(WQ_ENOTSUP, .order = &order_of_nothing, .max_len = 1,
            .overflow = WQ_OVERFLOW_DROP_OLDEST),
        ROW(WQ_ENOTSUP, .order = &order_of_nothing, .max_bytes = 1),
        ROW(WQ_ENOTSUP, .order = &order_of_nothing,
            .group = wq_group_before_slash),
        ROW(WQ_ENOTSUP, .order = &order_of_nothing, .max_ready_ns = 1),
    };

    check_rows(rows, try_config);
}

/* O-20 O-80 O-89 */
TEST(bound_of_groups_needs_groups_and_excludes_ageing)
{
    int              ctx;
    const struct row rows[] = {
        ROW(WQ_EINVAL, .group_max_held = 1),
        ROW(WQ_OK, .group_ctx = &ctx),
        ROW(WQ_OK, .group = wq_group_before_slash, .group_ctx = &ctx,
            .group_max_held = SIZE_MAX),
        ROW(WQ_ENOTSUP, .max_ready_ns = 1, .group = wq_group_before_slash,
            .group_max_held = 1),
        ROW(WQ_OK, .max_ready_ns = 1, .ages = true, .max_len = 1,
            .max_bytes = 1, .group = wq_group_before_slash),
        ROW(WQ_EINVAL, .max_ready_ns = -1),
        ROW(WQ_EINVAL, .max_ready_ns = INT64_MIN),
        ROW(WQ_OK, .max_ready_ns = WQ_FOREVER),
    };

    check_rows(rows, try_config);
}

/* O-20 */
TEST(any_name_is_accepted)
{
    static char      longer[5000];
    const struct row rows[] = {
        ROW(WQ_OK, .name = ""),
        ROW(WQ_OK, .name = "pods \"1\"\n\xff"),
        ROW(WQ_OK, .name = longer),
    };

    memset(longer, 'n', sizeof longer - 1);
    check_rows(rows, try_config);
}

/* Both kinds of layer must give the same answer. */
static wq_err
try_layers(const wq_config *config)
{
    wq_queue    *inner = open_queue(NULL), *out = NULL;
    const wq_err err = wq_delaying_wrap(inner, config, &out);

    assert_err(wq_rate_limiting_wrap(inner, config, &out), err);
    assert_null(out);
    wq_destroy(inner);
    return err;
}

/* O-18 */
TEST(layer_has_no_bytes_groups_or_ageing)
{
    const struct row rows[] = {
        ROW(WQ_ENOTSUP, .max_bytes = 1),
        ROW(WQ_ENOTSUP, .group = wq_group_before_slash),
        ROW(WQ_EINVAL, .group_max_held = 1),
        ROW(WQ_ENOTSUP, .max_ready_ns = 1),
        ROW(WQ_EINVAL, .max_ready_ns = -1),
    };

    check_rows(rows, try_layers);
}

WQ_TESTS(test(overflow_needs_a_bound),
         test(order_excludes_fields_that_order_keys),
         test(bound_of_groups_needs_groups_and_excludes_ageing),
         test(any_name_is_accepted), test(layer_has_no_bytes_groups_or_ageing));
