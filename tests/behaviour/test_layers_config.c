/* SPDX-License-Identifier: MIT */
/* test_layers_config.c: which configs do the layers of backend.h accept, who owns
 * the inner queue and the limiter, and what do the layers do without memory?
 */
#include "layered.h"

#include <wq/inspect.h>

#include "support/counting.h"
#include "support/plain_queue.h"
#include "support/plug_in.h"

/* The inner queue still belongs to the caller, and works. */
static void
assert_mine(wq_queue *q)
{
    assert_false(wq_shutting_down(q));
    add(q, "foo");
    work_on(q, "foo");
}

/* ---- configs ------------------------------------------------------------- */

/* O-18 O-14 */
TEST(layer_without_an_inner_queue_is_refused)
{
    wq_queue *out = NULL;

    assert_err(wq_delaying_wrap(NULL, NULL, &out), WQ_EINVAL);
    assert_err(wq_rate_limiting_wrap(NULL, NULL, &out), WQ_EINVAL);
    assert_null(out);
}

/* O-18 O-02: a layer cannot make its inner queue work in another way. */
TEST(layer_with_a_config_it_does_not_support_is_refused)
{
    struct plug_in p = {.refuse = 0};
    const wq_order order = plug_in_order(&p), no_order = {.size = 0};
    const struct {
        const wq_config *config;
        wq_err           err;
        const char      *name;
    } rows[] = {
        {WQ_CONFIG(.order = &order), WQ_ENOTSUP, "order"},
        {WQ_CONFIG(.waiting = WQ_WAITING_KEEP), WQ_ENOTSUP, "KEEP"},
        {WQ_CONFIG(.waiting = WQ_WAITING_FLUSH), WQ_ENOTSUP, "FLUSH"},
        {WQ_CONFIG(.waiting = WQ_WAITING_FLUSH_ALL), WQ_ENOTSUP, "FLUSH_ALL"},
        {WQ_CONFIG(.retry = WQ_RETRY_ONCE), WQ_ENOTSUP, "ONCE"},
        {WQ_CONFIG(.retry = WQ_RETRY_RESPECT), WQ_ENOTSUP, "RESPECT"},
        {WQ_CONFIG(.real_time = true), WQ_ENOTSUP, "real_time"},
        {WQ_CONFIG(.ages = true), WQ_ENOTSUP, "ages"},
        {WQ_CONFIG(.order = &no_order), WQ_EINVAL, "bad order"},
        {WQ_CONFIG(.waiting = (wq_waiting)7), WQ_EINVAL, "bad waiting"},
        {WQ_CONFIG(.retry = 8), WQ_EINVAL, "bad retry"},
        {&(wq_config){.size = 0}, WQ_EINVAL, "size 0"},
        {&(wq_config){.size = sizeof(wq_config) - 1}, WQ_EINVAL, "small size"},
    };
    wq_queue *inner = open_queue(NULL), *out = NULL;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (wq_delaying_wrap(inner, rows[i].config, &out) != rows[i].err ||
            wq_rate_limiting_wrap(inner, rows[i].config, &out) != rows[i].err)
            fail_msg("%s: not %s", rows[i].name, wq_err_name(rows[i].err));
    assert_err(wq_delaying_wrap(inner, NULL, NULL), WQ_EINVAL);
    assert_err(wq_rate_limiting_wrap(inner, NULL, NULL), WQ_EINVAL);
    assert_null(out);
    assert_mine(inner);
    wq_destroy(inner);
}

/* ---- who owns what ------------------------------------------------------- */

/* D-17 O-18 */
TEST(layer_destroys_its_inner_queue_once)
{
    struct bare  *b;
    struct timed *t = wrap_bare(&b);
    atomic_int    destroys = 0;

    b->destroys = &destroys;
    wrap_limits(t, WQ_CONFIG(.limiter = NULL));
    timed_destroy(t);

    assert_int_equal(destroys, 1);
}

/* O-18 D-17 L-24 L-31 */
TEST(limits_that_are_refused_destroy_the_limiter)
{
    const wq_allocator no_free = {.size = sizeof no_free};
    wq_queue          *plain = NULL, *inner = open_queue(NULL), *out = NULL;
    struct probe       probe = {.delay_ns = MS};

    assert_err(plain_create(PLAIN_BASE, &plain), WQ_OK);
    const struct {
        wq_queue *inner, **out;
        wq_config config;
        wq_err    err;
    } bad[] = {
        {NULL, &out, {.size = sizeof(wq_config)}, WQ_EINVAL},
        {inner, NULL, {.size = sizeof(wq_config)}, WQ_EINVAL},
        {plain, &out, {.size = sizeof(wq_config)}, WQ_ENOTSUP}, /* no delays */
        {inner, &out, {.size = sizeof(wq_config), .ages = true}, WQ_ENOTSUP},
        {inner,
         &out,
         {.size = sizeof(wq_config), .allocator = &no_free},
         WQ_EINVAL},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        wq_config config = bad[i].config;
        config.limiter = wq_limiter_create(&probe_ops, &probe);
        assert_err(wq_rate_limiting_wrap(bad[i].inner, &config, bad[i].out),
                   bad[i].err);
        assert_int_equal(probe.destroys, i + 1);
    }
    assert_err(
        wq_rate_limiting_wrap(
            inner, WQ_CONFIG(.limiter = wq_limiter_exponential(-1, 1)), &out),
        WQ_EINVAL);
    assert_null(out);
    assert_mine(plain);
    assert_mine(inner);
    wq_destroy(plain);
    wq_destroy(inner);
}

/* O-18: so one config can serve both layers. */
TEST(delaying_layer_does_not_use_the_limiter_of_the_config)
{
    wq_queue    *inner = NULL, *out = NULL;
    struct probe probe = {.delay_ns = MS};

    assert_err(plain_create(PLAIN_BASE, &inner), WQ_OK);
    wq_limiter *limiter = wq_limiter_create(&probe_ops, &probe);
    assert_err(wq_delaying_wrap(
                   inner, WQ_CONFIG(.limiter = limiter, .ages = true), &out),
               WQ_ENOTSUP);
    assert_err(
        wq_delaying_wrap(
            inner, WQ_CONFIG(.limiter = wq_limiter_exponential(-1, 1)), &out),
        WQ_OK);
    assert_int_equal(probe.destroys, 0);
    wq_limiter_destroy(limiter);
    assert_int_equal(probe.destroys, 1);
    wq_destroy(out);
}

/* O-18 L-24 */
TEST(limiter_that_has_an_owner_is_refused_to_a_layer)
{
    struct counting mem;
    wq_limiter     *limiter = wq_limiter_exponential(MS, S);
    wq_queue       *owner = open_queue(WQ_CONFIG(.limiter = limiter));
    wq_queue       *inner = open_queue(NULL), *out = NULL;

    counting_init(&mem);
    assert_err(wq_rate_limiting_wrap(
                   inner,
                   WQ_CONFIG(.limiter = limiter, .allocator = &mem.allocator),
                   &out),
               WQ_EINVAL);
    assert_null(out);
    assert_int_equal(mem.bytes, 0);
    assert_mine(inner);
    wq_destroy(inner);
    assert_err(wq_add_rate_limited(owner, wq_str("foo")), WQ_OK);
    wq_destroy(owner);
}

/* O-18: the limiter belongs to the rate-limiting layer. */
TEST(one_config_serves_both_layers)
{
    struct timed   *t = timed_begin(0);
    struct bare    *b = bare_create(WQ_CONFIG(.clock = t->clock));
    const wq_config config = {.size = sizeof config,
                              .clock = t->clock,
                              .limiter = wq_limiter_exponential(MS, S),
                              .max_retries = 1};
    wq_queue       *delaying = NULL;

    assert_err(wq_delaying_wrap(&b->base, &config, &delaying), WQ_OK);
    assert_err(wq_rate_limiting_wrap(delaying, &config, &t->q), WQ_OK);

    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_OK);
    assert_due_in(t, "foo", MS);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_EGIVENUP);
    timed_destroy(t);
}

/* ---- without memory ------------------------------------------------------ */

/* O-18: each allocation of both in turn. */
TEST(layer_without_memory_leaves_the_queue_to_the_caller)
{
    struct counting mem;
    struct timed   *t = timed_begin(0);
    struct bare    *b = bare_create(WQ_CONFIG(.clock = t->clock));
    wq_queue       *delaying = NULL;
    struct probe    probe = {.delay_ns = MS};
    counting_init(&mem);
    wq_config config = {.size = sizeof config,
                        .clock = t->clock,
                        .limiter = wq_limiter_create(&probe_ops, &probe),
                        .allocator = &mem.allocator};

    counting_fail(&mem, 1, COUNTING_ONCE);
    assert_err(wq_delaying_wrap(&b->base, &config, &delaying), WQ_ENOMEM);
    assert_null(delaying);
    assert_mine(&b->base);
    assert_err(wq_delaying_wrap(&b->base, &config, &delaying), WQ_OK);
    counting_fail(&mem, 1, COUNTING_ONCE);
    assert_err(wq_rate_limiting_wrap(delaying, &config, &t->q), WQ_ENOMEM);
    assert_null(t->q);
    assert_mine(delaying);
    assert_int_equal(probe.destroys, 1);
    config.limiter = wq_limiter_create(&probe_ops, &probe);
    assert_err(wq_rate_limiting_wrap(delaying, &config, &t->q), WQ_OK);
    counting_heal(&mem);
    assert_true(mem.bytes > 0);
    timed_destroy(t);

    assert_int_equal(probe.destroys, 2);
    assert_int_equal(mem.bytes, 0);
}

/* A delaying layer that allocates by `mem`, around a bare queue. */
static struct timed *
wrap_counting(struct counting *mem)
{
    struct bare *b;

    counting_init(mem);
    return wrap_bare_with(&mem->allocator, &b);
}

/* O-18: it is handed over by the next call. */
TEST(layer_without_memory_does_not_lose_a_due_key)
{
    struct counting mem;
    struct timed   *t = wrap_counting(&mem);

    add_after(t, "foo", S);
    step(t, S);
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    (void)wq_len(t->q);
    counting_heal(&mem);
    work_on(t->q, "foo");
    timed_destroy(t);
    assert_int_equal(mem.bytes, 0);
}

/* R-03 L-30 */
TEST(layer_takes_back_a_retry_that_found_no_memory)
{
    struct counting mem;
    struct timed   *t = wrap_counting(&mem);

    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S)));
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_ENOMEM);
    counting_heal(&mem);

    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 0);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_OK);
    assert_due_in(t, "foo", MS);
    timed_destroy(t);
}

/* ---- retries ------------------------------------------------------------- */

/* R-02 O-14 */
TEST(rate_limiting_layer_refuses_bad_keys)
{
    struct bare  *b;
    struct timed *t = wrap_bare(&b);

    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S)));
    assert_err(wq_add_rate_limited(t->q, wq_str("")), WQ_EINVAL);
    assert_err(wq_forget(t->q, wq_str("")), WQ_EINVAL);
    assert_int_equal(wq_num_requeues(t->q, wq_str("")), 0);
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* on_drop: adds the key again. */
static void
add_again(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    struct timed *t = ctx;

    if (retries == 1 && why == WQ_EGIVENUP)
        (void)!wq_add(t->q, key);
}

/* Both layers; one retry, then add_again(). `mem` may be NULL. */
static struct timed *
wrap_giving_up(const wq_allocator *mem)
{
    struct bare  *b;
    struct timed *t = wrap_bare(&b);

    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S),
                             .allocator = mem, .max_retries = 1,
                             .on_drop = add_again, .drop_ctx = t));
    return t;
}

/* O-17 O-18 */
TEST(layer_gives_up_after_so_many_retries)
{
    struct timed *t = wrap_giving_up(NULL);

    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_OK);
    assert_due_in(t, "foo", MS);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_EGIVENUP);

    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 0);
    work_on(t->q, "foo");
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-17 O-18: there is no memory to copy the key for on_drop. */
TEST(layer_without_memory_does_not_give_up)
{
    static char     bytes[WQ_KEY_MAX];
    const wq_key    key = {bytes, sizeof bytes};
    struct counting mem;
    counting_init(&mem);
    struct timed *t = wrap_giving_up(&mem.allocator);

    memset(bytes, 'k', sizeof bytes);
    assert_err(wq_add_rate_limited(t->q, key), WQ_OK);
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    assert_err(wq_add_rate_limited(t->q, key), WQ_ENOMEM);
    assert_none_due(t); /* on_drop was not called */
    assert_int_equal(wq_num_requeues(t->q, key), 1);

    counting_heal(&mem);
    assert_err(wq_add_rate_limited(t->q, key), WQ_EGIVENUP);
    assert_int_equal(wq_len(t->q), 1);
    timed_destroy(t);
    assert_int_equal(mem.bytes, 0);
}

/* O-62: a layer has no metrics; the inner queue has. */
TEST(drops_of_a_layer_count_in_the_inner_queue)
{
    struct timed *t = timed_create(WQ_CONFIG(.order = NULL));
    wq_queue     *memory = t->q;
    wq_stats      counts = {.size = sizeof counts};

    wrap_delays(t, memory, NULL);
    wrap_limits(t, WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S),
                             .max_retries = 1));
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_OK);
    assert_err(wq_add_rate_limited(t->q, wq_str("foo")), WQ_EGIVENUP);
    assert_err(wq_count_drops(t->q, 2), WQ_OK);

    assert_err(wq_read_stats(memory, &counts), WQ_OK);
    assert_int_equal(counts.drops, 1 + 2);
    timed_destroy(t);
}

WQ_TESTS(test(layer_without_an_inner_queue_is_refused),
         test(layer_with_a_config_it_does_not_support_is_refused),
         test(layer_destroys_its_inner_queue_once),
         test(limits_that_are_refused_destroy_the_limiter),
         test(delaying_layer_does_not_use_the_limiter_of_the_config),
         test(limiter_that_has_an_owner_is_refused_to_a_layer),
         test(one_config_serves_both_layers),
         test(layer_without_memory_leaves_the_queue_to_the_caller),
         test(layer_without_memory_does_not_lose_a_due_key),
         test(layer_takes_back_a_retry_that_found_no_memory),
         test(rate_limiting_layer_refuses_bad_keys),
         test(layer_gives_up_after_so_many_retries),
         test(layer_without_memory_does_not_give_up),
         test(drops_of_a_layer_count_in_the_inner_queue));
