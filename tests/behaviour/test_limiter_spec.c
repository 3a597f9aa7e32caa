/* SPDX-License-Identifier: MIT */
/* test_limiter_spec.c: do limiters and their descriptions say the same?
 *
 * Through <wq/limiter.h> alone.
 */
#include "sentence.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>

#include <wq/limiter.h>

#include "support/fields.h"
#include "support/probe.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

#define SPEC(...)                                                              \
    ((wq_limiter_spec){.size = sizeof(wq_limiter_spec), __VA_ARGS__})

/* As an argument of a combination. */
#define MAX_OF(...)                                                            \
    wq_limiter_max_of(sizeof(wq_limiter *[]){__VA_ARGS__} /                    \
                          sizeof(wq_limiter *),                                \
                      (wq_limiter *[]){__VA_ARGS__})

static wq_limiter *
exponential(void)
{
    return wq_limiter_exponential(5 * MS, SECOND);
}

static wq_limiter *
capped(wq_limiter *l, int64_t max_ns)
{
    return wq_limiter_with_max_wait(l, max_ns);
}

static wq_limiter *
own(void)
{
    static struct probe p;

    return wq_limiter_create(&probe_ops, &p);
}

#define SPEC_FIELD(member) FIELD(wq_limiter_spec, member)

static const struct field spec_fields[] = {
    SPEC_FIELD(size),       SPEC_FIELD(parts),      SPEC_FIELD(jitter),
    SPEC_FIELD(base_ns),    SPEC_FIELD(max_ns),     SPEC_FIELD(seed),
    SPEC_FIELD(max_keys),   SPEC_FIELD(ttl_ns),     SPEC_FIELD(burst),
    SPEC_FIELD(fast_ns),    SPEC_FIELD(slow_ns),    SPEC_FIELD(max_fast),
    SPEC_FIELD(item_burst), SPEC_FIELD(max_wait_ns)};

static void
assert_same_spec(const wq_limiter_spec *a, const wq_limiter_spec *b)
{
    assert_same_fields(spec_fields, a, b);
    assert_true(a->factor == b->factor);
    assert_true(a->rate == b->rate);
    assert_true(a->item_rate == b->item_rate);
}

/* The description of `l`, which is destroyed. */
static wq_limiter_spec
described(wq_limiter *l)
{
    wq_limiter_spec spec = SPEC(.seed = 99); /* is overwritten */

    assert_err(wq_limiter_describe(l, &spec), WQ_OK);
    wq_limiter_destroy(l);
    return spec;
}

/* ---- describing ---------------------------------------------------------- */

#define EXPONENTIAL .base_ns = 5 * MS, .max_ns = SECOND, .factor = 2

/* L-33: each row is a limiter and what it does. */
TEST(description_has_every_number_of_the_limiter)
{
    const struct {
        wq_limiter     *limiter;
        wq_limiter_spec spec;
    } rows[] = {
        {exponential(), SPEC(.parts = WQ_PART_EXPONENTIAL, EXPONENTIAL)},
        {wq_limiter_exponential(0, 0),
         SPEC(.parts = WQ_PART_EXPONENTIAL, .factor = 2)},
        {wq_limiter_exponential_with(NULL),
         SPEC(.parts = WQ_PART_EXPONENTIAL, .base_ns = 5 * MS,
              .max_ns = 1000 * SECOND, .factor = 2)},
        {wq_limiter_exponential_with(
             WQ_EXPONENTIAL(.base_ns = 1, .max_ns = 2,
                            .jitter = WQ_JITTER_EQUAL, .seed = 3, .max_keys = 4,
                            .ttl_ns = 5, .factor = 6.5)),
         SPEC(.parts = WQ_PART_EXPONENTIAL, .base_ns = 1, .max_ns = 2,
              .jitter = WQ_JITTER_EQUAL, .seed = 3, .max_keys = 4, .ttl_ns = 5,
              .factor = 6.5)},
        {wq_limiter_fast_slow(1, 2, 3),
         SPEC(.parts = WQ_PART_FAST_SLOW, .fast_ns = 1, .slow_ns = 2,
              .max_fast = 3)},
        {wq_limiter_bucket(0.5, 7),
         SPEC(.parts = WQ_PART_BUCKET, .rate = 0.5, .burst = 7)},
        {wq_limiter_item_bucket(WQ_RATE_INF, 0),
         SPEC(.parts = WQ_PART_ITEM_BUCKET, .item_rate = WQ_RATE_INF)},
        {wq_limiter_default(),
         SPEC(.parts = WQ_PART_EXPONENTIAL | WQ_PART_BUCKET, .base_ns = 5 * MS,
              .max_ns = 1000 * SECOND, .factor = 2, .rate = 10, .burst = 100)},
        {wq_limiter_max_of(0, NULL), SPEC(.parts = 0)},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const wq_limiter_spec spec = described(rows[i].limiter);
        assert_same_spec(&spec, &rows[i].spec);
    }
}

/* L-33 */
TEST(description_of_a_combination_has_all_its_parts)
{
    const wq_limiter_spec spec = described(capped(
        MAX_OF(exponential(), MAX_OF(wq_limiter_fast_slow(1, 2, 3)),
               MAX_OF(wq_limiter_bucket(4, 5), wq_limiter_item_bucket(6, 7))),
        8));

    assert_same_spec(&spec,
                     &SPEC(.parts = 31, EXPONENTIAL, .fast_ns = 1, .slow_ns = 2,
                           .max_fast = 3, .rate = 4, .burst = 5, .item_rate = 6,
                           .item_burst = 7, .max_wait_ns = 8));
}

/* L-33: the smaller of two nested ones; the same around each part; a part
 * without a delay has none. */
TEST(maximum_wait_of_the_whole_is_described)
{
    wq_limiter *const rows[] = {
        capped(exponential(), 8),
        capped(capped(exponential(), 8), 9),
        capped(capped(exponential(), 9), 8),
        MAX_OF(capped(exponential(), 8)),
        MAX_OF(wq_limiter_max_of(0, NULL), capped(exponential(), 8)),
        MAX_OF(capped(exponential(), 8), wq_limiter_max_of(0, NULL)),
        MAX_OF(capped(exponential(), 8), capped(wq_limiter_max_of(0, NULL), 5)),
        capped(MAX_OF(capped(exponential(), 9)), 8),
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const wq_limiter_spec spec = described(rows[i]);
        assert_same_spec(&spec,
                         &SPEC(.parts = WQ_PART_EXPONENTIAL | WQ_PART_MAX_WAIT,
                               EXPONENTIAL, .max_wait_ns = 8));
    }
    const wq_limiter_spec both = described(
        MAX_OF(capped(exponential(), 8), capped(wq_limiter_bucket(1, 2), 8)));
    assert_same_spec(
        &both,
        &SPEC(.parts = WQ_PART_EXPONENTIAL | WQ_PART_BUCKET | WQ_PART_MAX_WAIT,
              EXPONENTIAL, .rate = 1, .burst = 2, .max_wait_ns = 8));
    const wq_limiter_spec forever =
        described(capped(wq_limiter_max_of(0, NULL), WQ_FOREVER));
    assert_same_spec(
        &forever, &SPEC(.parts = WQ_PART_MAX_WAIT, .max_wait_ns = WQ_FOREVER));
}

/* L-33 */
TEST(limiter_of_a_queue_can_be_described)
{
    wq_limiter     *l = exponential();
    wq_queue       *q = open_queue(WQ_CONFIG(.limiter = l));
    wq_limiter_spec spec = SPEC(.parts = 0);

    assert_err(wq_add_rate_limited_str(q, "one"), WQ_OK);
    assert_err(wq_limiter_describe(l, &spec), WQ_OK);
    assert_same_spec(&spec, &SPEC(.parts = WQ_PART_EXPONENTIAL, EXPONENTIAL));
    wq_destroy(q);
}

/* The limiter, which is destroyed, has no description. */
static void
assert_indescribable(wq_limiter *l, const char *why)
{
    const wq_limiter_spec before = SPEC(.parts = 99, .base_ns = 98);
    wq_limiter_spec       out = before;

    assert_says(wq_limiter_describe(l, &out), WQ_ENOTSUP,
                "wq_limiter_describe: %s", why);
    assert_same_spec(&out, &before);
    wq_limiter_destroy(l);
}

/* L-34 E-03 */
TEST(limiter_that_no_description_fits_is_refused)
{
    const char *const users = "it has functions of wq_limiter_create()";
    const char *const waits = "its parts have different maximum waits";

    assert_indescribable(own(), users);
    assert_indescribable(MAX_OF(exponential(), capped(own(), 1)), users);
    assert_indescribable(MAX_OF(exponential(), MAX_OF(exponential())),
                         "two of its parts are exponential");
    assert_indescribable(
        capped(MAX_OF(wq_limiter_fast_slow(1, 2, 3), exponential(),
                      wq_limiter_fast_slow(1, 2, 3)),
               1),
        "two of its parts are fast-slow");
    assert_indescribable(
        MAX_OF(wq_limiter_bucket(1, 1), wq_limiter_bucket(1, 1)),
        "two of its parts are buckets");
    assert_indescribable(
        MAX_OF(wq_limiter_item_bucket(1, 1), wq_limiter_item_bucket(2, 1)),
        "two of its parts are item buckets");
    assert_indescribable(
        MAX_OF(capped(exponential(), 1), wq_limiter_bucket(1, 1)), waits);
    assert_indescribable(
        MAX_OF(exponential(), capped(wq_limiter_bucket(1, 1), 1)), waits);
    assert_indescribable(
        MAX_OF(exponential(), capped(wq_limiter_bucket(1, 1), 0)), waits);
    assert_indescribable(
        MAX_OF(capped(exponential(), 1), capped(wq_limiter_bucket(1, 1), 2)),
        waits);
}

/* L-34 E-03 */
TEST(bad_arguments_of_describe_are_refused)
{
    wq_limiter     *l = exponential();
    wq_limiter_spec spec = SPEC(.parts = 0), odd = {.size = ODD};

    assert_says(wq_limiter_describe(NULL, &spec), WQ_EINVAL,
                "wq_limiter_describe: limiter is NULL");
    assert_says(wq_limiter_describe(l, NULL), WQ_EINVAL,
                "wq_limiter_describe: out is NULL");
    assert_says(wq_limiter_describe(l, &odd), WQ_EINVAL,
                "wq_limiter_spec.size is 13: use sizeof(wq_limiter_spec)");
    wq_limiter_destroy(l);

    l = wq_limiter_exponential_with(WQ_EXPONENTIAL(.allocator = &broke));
    assert_err(wq_limiter_describe(l, &spec), WQ_ENOMEM);
    assert_string_equal(
        wq_last_error(),
        "wq_limiter_describe: limiter: wq_limiter_exponential: out of memory");
    assert_same_spec(&spec, &SPEC(.parts = 0));
}

/* L-33 L-34: a program that was compiled with a newer or an older header. */
TEST(description_is_written_as_far_as_its_size_reaches)
{
    struct {
        wq_limiter_spec known;
        void           *more;
    } newer = {.known = {.size = sizeof newer}};
    wq_limiter_spec older = {.size = offsetof(wq_limiter_spec, max_wait_ns),
                             .max_wait_ns = 77};
    wq_limiter     *l = exponential();

    assert_err(wq_limiter_describe(l, &newer.known), WQ_OK);
    assert_int_equal(newer.known.size, sizeof newer);
    assert_int_equal(newer.known.max_ns, SECOND);
    assert_err(wq_limiter_describe(l, &older), WQ_OK);
    assert_int_equal(older.size, offsetof(wq_limiter_spec, max_wait_ns));
    assert_int_equal(older.max_ns, SECOND);
    assert_int_equal(older.max_wait_ns, 77);

    l = capped(l, 5);
    assert_says(wq_limiter_describe(l, &older), WQ_ENOTSUP,
                "wq_limiter_spec.size is %zu: the limiter needs fields beyond "
                "it",
                older.size);
    newer.more = &newer;
    assert_err(wq_limiter_describe(l, &newer.known), WQ_EINVAL);
    wq_limiter_destroy(l);
}

/* ---- limiters from descriptions ------------------------------------------ */

/* 0 to sides - 1, the same in every run (Marsaglia's xorshift). */
static size_t
roll(size_t sides)
{
    static uint64_t state = 1;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)((state >> 11) % sides);
}

/* Some duration: 0, short, long, or the longest. */
static int64_t
roll_time(void)
{
    switch (roll(4)) {
    case 0:
        return 0;
    case 1:
        return (int64_t)roll(1000);
    case 2:
        return (int64_t)roll(1000) * MS;
    default:
        return roll(10) ? SECOND : WQ_FOREVER;
    }
}

/* Any sound description. */
static wq_limiter_spec
roll_spec(void)
{
    const double    rates[] = {-1, 0, 0.1, 10, 1000, WQ_RATE_INF};
    const double    factors[] = {1, 1.1, 1.5, 2, 3, 1e300};
    wq_limiter_spec s = SPEC(.parts = (unsigned)roll(32));

    if (s.parts & WQ_PART_EXPONENTIAL) {
        s.jitter = (wq_jitter)roll(3);
        s.base_ns = roll_time();
        s.max_ns = roll_time();
        s.factor = factors[roll(6)];
        s.seed = 1 + roll(1000);
        s.max_keys = roll(4);
        s.ttl_ns = roll_time();
    }
    if (s.parts & WQ_PART_FAST_SLOW) {
        s.fast_ns = roll_time();
        s.slow_ns = roll_time();
        s.max_fast = (unsigned)roll(5);
    }
    if (s.parts & WQ_PART_BUCKET) {
        s.rate = rates[roll(6)];
        s.burst = (unsigned)roll(5);
    }
    if (s.parts & WQ_PART_ITEM_BUCKET) {
        s.item_rate = rates[roll(6)];
        s.item_burst = (unsigned)roll(5);
    }
    if (s.parts & WQ_PART_MAX_WAIT)
        s.max_wait_ns = roll_time();
    return s;
}

/* The same limiter, by the constructors of its parts. */
static wq_limiter *
construct(const wq_limiter_spec *s)
{
    wq_limiter *parts[4];
    size_t      n = 0;

    if (s->parts & WQ_PART_ITEM_BUCKET)
        parts[n++] = wq_limiter_item_bucket(s->item_rate, s->item_burst);
    if (s->parts & WQ_PART_BUCKET)
        parts[n++] = wq_limiter_bucket(s->rate, s->burst);
    if (s->parts & WQ_PART_FAST_SLOW)
        parts[n++] = wq_limiter_fast_slow(s->fast_ns, s->slow_ns, s->max_fast);
    if (s->parts & WQ_PART_EXPONENTIAL)
        parts[n++] = wq_limiter_exponential_with(
            WQ_EXPONENTIAL(.base_ns = s->base_ns, .max_ns = s->max_ns,
                           .jitter = s->jitter, .seed = s->seed,
                           .max_keys = s->max_keys, .ttl_ns = s->ttl_ns,
                           .factor = s->factor));
    wq_limiter *whole = wq_limiter_max_of(n, parts);
    return s->parts & WQ_PART_MAX_WAIT ? capped(whole, s->max_wait_ns) : whole;
}

/* Call one function of both, with one of four keys. */
static void
use_both(wq_limiter *a, wq_limiter *b, wq_clock *clock)
{
    const char  *names[] = {"one", "two", "three", "four"};
    const wq_key key = wq_str(names[roll(4)]);

    switch (roll(8)) {
    case 0:
        wq_limiter_forget(a, key);
        wq_limiter_forget(b, key);
        break;
    case 1:
        wq_limiter_undo(a, key);
        wq_limiter_undo(b, key);
        break;
    case 2:
        wq_clock_fake_step(clock, (int64_t)roll(1000) * MS);
        break;
    default:
        assert_int_equal(wq_limiter_when(a, key), wq_limiter_when(b, key));
        assert_int_equal(wq_limiter_num_requeues(a, key),
                         wq_limiter_num_requeues(b, key));
    }
}

/* L-33 L-35 */
TEST(limiter_from_a_description_has_it_and_its_delays)
{
    for (int round = 0; round < 1000; round++) {
        wq_limiter_spec s = roll_spec(), got = SPEC(.parts = 0);
        wq_clock       *clock = wq_clock_fake_create(0);
        wq_limiter     *made = wq_limiter_from_spec(&s);

        assert_err(wq_limiter_describe(made, &got), WQ_OK);
        assert_same_spec(&got, &s);
        /* Options of 0 are defaults, so there is no constructor for these. */
        if (s.parts & WQ_PART_EXPONENTIAL && (!s.base_ns || !s.max_ns)) {
            s.base_ns = s.max_ns = SECOND;
            wq_limiter_destroy(made);
            made = wq_limiter_from_spec(&s);
        }
        wq_limiter *other = construct(&s);
        wq_limiter_set_clock(made, clock);
        wq_limiter_set_clock(other, clock);
        for (int i = 0; i < 100; i++)
            use_both(made, other, clock);
        wq_limiter_destroy(made);
        wq_limiter_destroy(other);
        wq_clock_destroy(clock);
    }
}

/* L-35 */
TEST(description_with_other_fields_set_is_read)
{
    const wq_limiter_spec spec = described(
        wq_limiter_from_spec(&SPEC(.parts = WQ_PART_EXPONENTIAL, .base_ns = 1,
                                   .max_ns = 2, .fast_ns = -1, .rate = NAN,
                                   .item_rate = NAN, .max_wait_ns = -1)));

    assert_same_spec(&spec, &SPEC(.parts = WQ_PART_EXPONENTIAL, .base_ns = 1,
                                  .max_ns = 2, .factor = 2));
}

/* L-35 L-31 L-36 E-03 */
static void
assert_refused(const wq_limiter_spec *spec, const char *why)
{
    wq_limiter *l = NULL;

    assert_says((l = wq_limiter_from_spec(spec), wq_limiter_error(l)),
                WQ_EINVAL, "%s", why);
    assert_non_null(l);
    (void)wq_fail(WQ_EIO, "an older sentence");
    assert_int_equal(wq_limiter_spec_delay(spec, 0, 0), WQ_FOREVER);
    assert_string_equal(wq_last_error(), why);
}

/* L-35 L-31 L-36 E-03 */
TEST(bad_descriptions_are_refused)
{
    const struct {
        wq_limiter_spec spec;
        const char     *why;
    } rows[] = {
        {{.size = ODD},
         "wq_limiter_spec.size is 13: use sizeof(wq_limiter_spec)"},
        {SPEC(.parts = 33),
         "wq_limiter_spec.parts is 0x21: has bits that are not in enum "
         "wq_limiter_part"},
        {SPEC(.parts = WQ_PART_EXPONENTIAL, .base_ns = -1),
         "wq_limiter_spec.base_ns is negative (-1)"},
        {SPEC(.parts = WQ_PART_EXPONENTIAL, .max_ns = -2),
         "wq_limiter_spec.max_ns is negative (-2)"},
        {SPEC(.parts = WQ_PART_EXPONENTIAL, .ttl_ns = -3),
         "wq_limiter_spec.ttl_ns is negative (-3)"},
        {SPEC(.parts = WQ_PART_EXPONENTIAL, .jitter = (wq_jitter)3),
         "wq_limiter_spec.jitter is 3: not a wq_jitter"},
        {SPEC(.parts = WQ_PART_EXPONENTIAL, .factor = 0.5),
         "wq_limiter_spec.factor is 0.5: must be finite and at least 1"},
        {SPEC(.parts = WQ_PART_FAST_SLOW, .fast_ns = -4),
         "wq_limiter_spec.fast_ns is negative (-4)"},
        {SPEC(.parts = WQ_PART_FAST_SLOW, .slow_ns = -5),
         "wq_limiter_spec.slow_ns is negative (-5)"},
        {SPEC(.parts = WQ_PART_BUCKET, .rate = HUGE_VAL),
         "wq_limiter_spec.rate is infinite: use WQ_RATE_INF"},
        {SPEC(.parts = WQ_PART_ITEM_BUCKET, .item_rate = NAN),
         "wq_limiter_spec.item_rate is not a number"},
        {SPEC(.parts = WQ_PART_MAX_WAIT, .max_wait_ns = -6),
         "wq_limiter_spec.max_wait_ns is negative (-6)"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_refused(&rows[i].spec, rows[i].why);
    assert_says(wq_limiter_error(wq_limiter_from_spec(NULL)), WQ_EINVAL,
                "wq_limiter_from_spec: spec is NULL");
    (void)wq_fail(WQ_EIO, "an older sentence");
    assert_int_equal(wq_limiter_spec_delay(NULL, 0, 0), WQ_FOREVER);
    assert_string_equal(wq_last_error(), "wq_limiter_spec_delay: spec is NULL");
}

/* ---- what a store does with a description -------------------------------- */

/* L-36 */
TEST(delay_depends_on_the_number_of_failures)
{
    wq_limiter_spec s = SPEC(.parts = WQ_PART_EXPONENTIAL | WQ_PART_FAST_SLOW |
                                      WQ_PART_MAX_WAIT,
                             .base_ns = 1, .max_ns = 100, .fast_ns = 3,
                             .slow_ns = 20, .max_fast = 3);
    const int64_t   both[] = {3, 3, 4, 20, 20, 32, 64, 100, 100};

    for (unsigned n = 0; n < sizeof both / sizeof *both; n++)
        assert_int_equal(wq_limiter_spec_delay(&s, n, 7), both[n]);
    assert_int_equal(wq_limiter_spec_delay(&s, UINT_MAX, 7), 100);
    s.jitter = WQ_JITTER_FULL;
    assert_int_equal(wq_limiter_spec_delay(&s, 6, 50), 50);
    assert_int_equal(wq_limiter_spec_delay(&s, 6, 65), 20);
    s.parts = WQ_PART_BUCKET | WQ_PART_ITEM_BUCKET;
    assert_int_equal(wq_limiter_spec_delay(&s, 6, 50), 0);
}

/* The time until a token of the bucket is there; takes it. */
static int64_t
take_token(wq_bucket *b, int64_t now)
{
    wq_reservation r;

    assert_err(wq_bucket_reserve_n_at(b, now, 1, &r), WQ_OK);
    return wq_reservation_delay_from(&r, now);
}

/* L-36 L-33: the rule at "limiters as data", for one key. */
TEST(store_that_follows_the_rule_gives_the_limiters_delays)
{
    const wq_limiter_spec s =
        SPEC(.parts = 31, .base_ns = 3 * MS, .max_ns = SECOND, .factor = 1.3,
             .fast_ns = 5 * MS, .slow_ns = 20 * MS, .max_fast = 4, .rate = 40,
             .burst = 3, .item_rate = 30, .item_burst = 5,
             .max_wait_ns = 700 * MS);
    wq_clock   *clock = wq_clock_fake_create(0);
    wq_limiter *l = wq_limiter_from_spec(&s);
    wq_bucket  *all = wq_bucket_create(s.rate, s.burst, clock);
    wq_bucket  *item = wq_bucket_create(s.item_rate, s.item_burst, clock);
    unsigned    capped_delays = 0;

    wq_limiter_set_clock(l, clock);
    for (unsigned failures = 0; failures < 300; failures++) {
        const int64_t now = wq_clock_now(clock);
        const int64_t delays[] = {wq_limiter_spec_delay(&s, failures, 0),
                                  take_token(all, now), take_token(item, now)};
        int64_t       longest = 0;

        for (size_t i = 0; i < 3; i++)
            longest = delays[i] > longest ? delays[i] : longest;
        if (longest > s.max_wait_ns) {
            longest = s.max_wait_ns;
            capped_delays++;
        }
        assert_int_equal(wq_limiter_when(l, wq_str("one")), longest);
        wq_clock_fake_step(clock, (int64_t)roll(50) * MS);
    }
    assert_true(capped_delays > 0);
    wq_limiter_destroy(l);
    wq_bucket_destroy(all);
    wq_bucket_destroy(item);
    wq_clock_destroy(clock);
}

WQ_TESTS(test(description_has_every_number_of_the_limiter),
         test(description_of_a_combination_has_all_its_parts),
         test(maximum_wait_of_the_whole_is_described),
         test(limiter_of_a_queue_can_be_described),
         test(limiter_that_no_description_fits_is_refused),
         test(bad_arguments_of_describe_are_refused),
         test(description_is_written_as_far_as_its_size_reaches),
         test(limiter_from_a_description_has_it_and_its_delays),
         test(description_with_other_fields_set_is_read),
         test(bad_descriptions_are_refused),
         test(delay_depends_on_the_number_of_failures),
         test(store_that_follows_the_rule_gives_the_limiters_delays));
