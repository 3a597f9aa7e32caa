/* SPDX-License-Identifier: MIT */
/* test_config.c: of which configs can a queue be made?
 *
 * A struct that tells its size may come from an older header (shorter) or a
 * newer one (longer). What the library does not know must be zero.
 */
#include "fixture.h"

#include <stdlib.h>

/* ---- plug-ins that do as little as they may ----------------------------- */

static wq_err
push_nothing(void *self, wq_key key, int priority)
{
    (void)self, (void)key, (void)priority;
    return WQ_OK;
}

static bool
pop_nothing(void *self, wq_key *out)
{
    (void)self, (void)out;
    return false;
}

static size_t
len_of_nothing(void *self)
{
    (void)self;
    return 0;
}

static void *
plain_alloc(void *ctx, size_t n)
{
    (void)ctx;
    return malloc(n);
}

static void
plain_free(void *ctx, void *p, size_t n)
{
    (void)ctx, (void)n;
    free(p);
}

static const wq_order any_order = {
    .size = sizeof(wq_order),
    .push = push_nothing,
    .pop = pop_nothing,
    .len = len_of_nothing,
};

static const wq_allocator any_allocator = {
    .size = sizeof(wq_allocator),
    .alloc = plain_alloc,
    .free = plain_free,
};

static void
assert_accepted(const wq_config *config)
{
    wq_queue *q = NULL;

    assert_err(wq_create(config, &q), WQ_OK);
    assert_non_null(q);
    wq_destroy(q);
}

static void
assert_refused(const wq_config *config)
{
    char            mark;
    wq_queue *const untouched = (wq_queue *)(void *)&mark;
    wq_queue       *q = untouched;

    assert_err(wq_create(config, &q), WQ_EINVAL);
    assert_ptr_equal(q, untouched);
}

/* ---- defaults ----------------------------------------------------------- */

/* O-01 */
TEST(no_config_means_all_defaults)
{
    wq_queue *q = NULL;

    assert_err(wq_create(NULL, &q), WQ_OK);

    assert_int_equal(wq_len(q), 0);
    assert_false(wq_shutting_down(q));
    add(q, "foo");
    add(q, "bar");
    work_on(q, "foo");
    work_on(q, "bar");
    wq_destroy(q);
}

/* O-01 O-02 */
TEST(config_with_only_its_size_means_all_defaults)
{
    assert_accepted(&(wq_config){.size = sizeof(wq_config)});
    assert_accepted(WQ_CONFIG(.order = NULL));
}

/* O-01 O-14 */
TEST(nowhere_to_put_the_queue_is_an_error)
{
    assert_err(wq_create(NULL, NULL), WQ_EINVAL);
    assert_err(wq_create(WQ_CONFIG(.order = NULL), NULL), WQ_EINVAL);
}

/* O-02: what is pointed to is copied, so it may go. */
TEST(config_need_not_outlive_create)
{
    wq_queue    *q = NULL;
    wq_allocator allocator = any_allocator;
    wq_config    config = {.size = sizeof config, .allocator = &allocator};

    assert_err(wq_create(&config, &q), WQ_OK);
    memset(&allocator, 0, sizeof allocator);
    memset(&config, 0, sizeof config);

    add(q, "foo");
    work_on(q, "foo");
    wq_destroy(q);
}

/* ---- size of the config ------------------------------------------------- */

/* O-02 */
TEST(config_without_size_is_refused)
{
    assert_refused(&(wq_config){.size = 0});
}

/* O-02 */
TEST(config_size_that_ends_within_a_field_is_refused)
{
    for (size_t size = 1; size < sizeof(wq_config); size++)
        if (size % sizeof(void *) != 0)
            assert_refused(&(wq_config){.size = size});
    assert_refused(&(wq_config){.size = sizeof(wq_config) + 1});
    assert_refused(&(wq_config){.size = SIZE_MAX});
}

/* O-02: of an older program, that knew fewer fields. What is behind its end is
 * not looked at. */
TEST(shorter_config_is_accepted_and_not_read_beyond_its_end)
{
    const wq_order nonsense = {.size = 1};

    assert_accepted(&(wq_config){.size = sizeof(size_t)});
    assert_accepted(
        &(wq_config){.size = offsetof(wq_config, order), .order = &nonsense});
    assert_refused(&(wq_config){.size = sizeof(wq_config), .order = &nonsense});
}

/* A config of a release to come. */
struct longer_config {
    wq_config config;
    void     *unknown[2];
};

/* O-02 */
TEST(longer_config_is_accepted_when_the_unknown_part_is_zero)
{
    const struct longer_config longer = {.config.size = sizeof longer};

    assert_accepted(&longer.config);
}

/* O-02 */
TEST(longer_config_is_refused_when_something_unknown_is_set)
{
    for (size_t at = sizeof(wq_config); at < sizeof(struct longer_config);
         at++) {
        struct longer_config longer = {.config.size = sizeof longer};

        ((unsigned char *)&longer)[at] = 1;
        assert_refused(&longer.config);
    }
}

/* ---- orders ------------------------------------------------------------- */

static void
assert_order_refused(wq_order order)
{
    assert_refused(WQ_CONFIG(.order = &order));
}

/* O-02 */
TEST(order_needs_push_pop_and_len_only)
{
    wq_order order = any_order;

    assert_accepted(WQ_CONFIG(.order = &order));
    order.push = NULL;
    assert_order_refused(order);
    order = any_order;
    order.pop = NULL;
    assert_order_refused(order);
    order = any_order;
    order.len = NULL;
    assert_order_refused(order);
}

/* O-02 */
TEST(order_of_a_wrong_size_is_refused)
{
    wq_order order = any_order;

    for (order.size = 0; order.size < offsetof(wq_order, destroy); order.size++)
        assert_order_refused(order);
    order.size = sizeof order - 1;
    assert_order_refused(order);
    order.size = sizeof order + 1;
    assert_order_refused(order);
}

/* O-02: it has all that is required. */
TEST(shorter_order_without_destroy_is_accepted)
{
    wq_order order = any_order;

    order.size = offsetof(wq_order, destroy);
    assert_accepted(WQ_CONFIG(.order = &order));
}

/* O-02 */
TEST(longer_order_is_refused_when_something_unknown_is_set)
{
    struct {
        wq_order order;
        void    *unknown;
    } longer = {.order = any_order};

    longer.order.size = sizeof longer;
    assert_accepted(WQ_CONFIG(.order = &longer.order));
    longer.unknown = &longer;
    assert_refused(WQ_CONFIG(.order = &longer.order));
}

/* ---- allocators --------------------------------------------------------- */

static void
assert_allocator_refused(wq_allocator allocator)
{
    assert_refused(WQ_CONFIG(.allocator = &allocator));
}

/* O-02 */
TEST(allocator_needs_both_functions)
{
    wq_allocator allocator = any_allocator;

    assert_accepted(WQ_CONFIG(.allocator = &allocator));
    allocator.alloc = NULL;
    assert_allocator_refused(allocator);
    allocator = any_allocator;
    allocator.free = NULL;
    assert_allocator_refused(allocator);
}

/* O-02 */
TEST(allocator_of_a_wrong_size_is_refused)
{
    wq_allocator allocator = any_allocator;

    for (allocator.size = 0; allocator.size < sizeof allocator;
         allocator.size++)
        assert_allocator_refused(allocator);
    allocator.size = sizeof allocator + 1;
    assert_allocator_refused(allocator);
}

/* O-02 */
TEST(longer_allocator_is_refused_when_something_unknown_is_set)
{
    struct {
        wq_allocator allocator;
        void        *unknown;
    } longer = {.allocator = any_allocator};

    longer.allocator.size = sizeof longer;
    assert_accepted(WQ_CONFIG(.allocator = &longer.allocator));
    longer.unknown = &longer;
    assert_refused(WQ_CONFIG(.allocator = &longer.allocator));
}

WQ_TESTS(test(no_config_means_all_defaults),
         test(config_with_only_its_size_means_all_defaults),
         test(nowhere_to_put_the_queue_is_an_error),
         test(config_need_not_outlive_create),
         test(config_without_size_is_refused),
         test(config_size_that_ends_within_a_field_is_refused),
         test(shorter_config_is_accepted_and_not_read_beyond_its_end),
         test(longer_config_is_accepted_when_the_unknown_part_is_zero),
         test(longer_config_is_refused_when_something_unknown_is_set),
         test(order_needs_push_pop_and_len_only),
         test(order_of_a_wrong_size_is_refused),
         test(shorter_order_without_destroy_is_accepted),
         test(longer_order_is_refused_when_something_unknown_is_set),
         test(allocator_needs_both_functions),
         test(allocator_of_a_wrong_size_is_refused),
         test(longer_allocator_is_refused_when_something_unknown_is_set));
