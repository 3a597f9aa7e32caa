/* SPDX-License-Identifier: MIT */
/* test_config.c: which configs does wq_create() accept?
 *
 * A struct that begins with its size may come from an older header (shorter) or
 * from a newer one (longer). The part that the library does not know must be
 * zero.
 */
#include "configs.h"

#include "support/counting.h"

static void
assert_accepted(const wq_config *config)
{
    assert_err(try_config(config), WQ_OK);
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
TEST(create_without_an_out_parameter_is_refused)
{
    assert_err(wq_create(NULL, NULL), WQ_EINVAL);
    assert_err(wq_create(WQ_CONFIG(.order = NULL), NULL), WQ_EINVAL);
}

/* O-02: what it points to is copied. */
TEST(config_need_not_outlive_create)
{
    struct counting mem;

    counting_init(&mem);
    wq_allocator allocator = mem.allocator;
    wq_config    config = {.size = sizeof config, .allocator = &allocator};
    wq_queue    *q = open_queue(&config);
    memset(&allocator, 0, sizeof allocator);
    memset(&config, 0, sizeof config);

    add(q, "foo");
    work_on(q, "foo");
    wq_destroy(q);
}

/* ---- size of the config ------------------------------------------------- */

/* O-02 */
TEST(config_of_size_0_or_part_of_a_field_is_refused)
{
    assert_refused(&(wq_config){.size = 0});
    for (size_t size = 1; size < sizeof(wq_config); size++)
        if (size % sizeof(void *) != 0)
            assert_refused(&(wq_config){.size = size});
    assert_refused(&(wq_config){.size = sizeof(wq_config) + 1});
    assert_refused(&(wq_config){.size = SIZE_MAX});
}

/* O-02: the config of a program that was compiled with an older header. */
TEST(shorter_config_is_accepted_and_not_read_beyond_its_end)
{
    const wq_order nonsense = {.size = 1};

    assert_accepted(&(wq_config){.size = sizeof(size_t)});
    assert_accepted(
        &(wq_config){.size = offsetof(wq_config, order), .order = &nonsense});
    assert_refused(&(wq_config){.size = sizeof(wq_config), .order = &nonsense});
}

/* A config of a later release. */
struct longer_config {
    wq_config config;
    void     *unknown[2];
};

/* O-02 */
TEST(longer_config_is_refused_when_something_unknown_is_set)
{
    for (size_t at = sizeof(wq_config); at < sizeof(struct longer_config);
         at++) {
        struct longer_config longer = {.config.size = sizeof longer};

        assert_accepted(&longer.config);
        ((unsigned char *)&longer)[at] = 1;
        assert_refused(&longer.config);
    }
}

/* ---- orders and allocators ----------------------------------------------- */

/* A struct of functions that a config points to. */
union plug_in {
    size_t        size; /* both begin with it */
    wq_order      order;
    wq_allocator  allocator;
    unsigned char bytes[sizeof(wq_order) + sizeof(void *)];
};

static const struct kind {
    const char *name;
    size_t      size;
    size_t      least;       /* the size without optional functions */
    size_t      required[3]; /* where the functions are that it must have */
    size_t      required_n;
} kinds[] = {
    {.name = "wq_order",
     .size = sizeof(wq_order),
     .least = offsetof(wq_order, destroy),
     .required = {offsetof(wq_order, push), offsetof(wq_order, pop),
                  offsetof(wq_order, len)},
     .required_n = 3},
    {.name = "wq_allocator",
     .size = sizeof(wq_allocator),
     .least = sizeof(wq_allocator),
     .required = {offsetof(wq_allocator, alloc), offsetof(wq_allocator, free)},
     .required_n = 2},
};

/* One that has all required functions. */
static union plug_in
whole(const struct kind *kind)
{
    static struct counting mem;
    union plug_in          p;

    memset(&p, 0, sizeof p);
    counting_init(&mem);
    if (kind == &kinds[0])
        p.order = order_of_nothing;
    else
        p.allocator = mem.allocator;
    return p;
}

/* What does wq_create() return for a config with this plug-in? */
static void
try_plug_in(const struct kind *kind, const union plug_in *p, wq_err expected)
{
    wq_config config = {.size = sizeof config};

    if (kind == &kinds[0])
        config.order = &p->order;
    else
        config.allocator = &p->allocator;
    const wq_err err = try_config(&config);
    if (err != expected)
        fail_msg("%s of %zu bytes: %s", kind->name, p->size, wq_err_name(err));
}

static void
try_size(const struct kind *kind, size_t size, wq_err expected)
{
    union plug_in p = whole(kind);

    p.size = size;
    try_plug_in(kind, &p, expected);
}

/* O-02 */
TEST(plug_in_needs_its_required_functions_only)
{
    for (const struct kind *kind = kinds; kind < kinds + 2; kind++) {
        try_size(kind, kind->size, WQ_OK);
        for (size_t i = 0; i < kind->required_n; i++) {
            union plug_in p = whole(kind);

            memset(p.bytes + kind->required[i], 0, sizeof(void (*)(void)));
            try_plug_in(kind, &p, WQ_EINVAL);
        }
    }
}

/* O-02 */
TEST(plug_in_of_a_wrong_size_is_refused)
{
    for (const struct kind *kind = kinds; kind < kinds + 2; kind++) {
        for (size_t size = 0; size < kind->least; size++)
            try_size(kind, size, WQ_EINVAL);
        try_size(kind, kind->least, WQ_OK);
        try_size(kind, kind->size - 1, WQ_EINVAL);
        try_size(kind, kind->size + 1, WQ_EINVAL);
    }
}

/* O-02 */
TEST(longer_plug_in_is_refused_when_something_unknown_is_set)
{
    for (const struct kind *kind = kinds; kind < kinds + 2; kind++) {
        union plug_in p = whole(kind);

        p.size = kind->size + sizeof(void *);
        try_plug_in(kind, &p, WQ_OK);
        p.bytes[kind->size] = 1;
        try_plug_in(kind, &p, WQ_EINVAL);
    }
}

WQ_TESTS(test(no_config_means_all_defaults),
         test(config_with_only_its_size_means_all_defaults),
         test(create_without_an_out_parameter_is_refused),
         test(config_need_not_outlive_create),
         test(config_of_size_0_or_part_of_a_field_is_refused),
         test(shorter_config_is_accepted_and_not_read_beyond_its_end),
         test(longer_config_is_refused_when_something_unknown_is_set),
         test(plug_in_needs_its_required_functions_only),
         test(plug_in_of_a_wrong_size_is_refused),
         test(longer_plug_in_is_refused_when_something_unknown_is_set));
