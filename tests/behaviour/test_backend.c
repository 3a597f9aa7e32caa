/* SPDX-License-Identifier: MIT */
/* test_backend.c: what does the library do for a backend of somebody's own? */
#include "fixture.h"

#include <wq/backend.h>

/* A backend that remembers which verb was called last, and with what. */
struct parrot {
    wq_queue    base;
    const char *verb;
    int64_t     timeout_ns;
    wq_key      key;
    wq_err      answer;
};

static wq_err
say(const wq_queue *q, const char *verb)
{
    struct parrot *p = (struct parrot *)(void *)(uintptr_t)q;

    p->verb = verb;
    return p->answer;
}

static void
parrot_destroy(wq_queue *q)
{
    (void)say(q, "destroy");
}

static wq_err
parrot_add(wq_queue *q, wq_key key)
{
    ((struct parrot *)(void *)q)->key = key;
    return say(q, "add");
}

static wq_err
parrot_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    (void)out;
    ((struct parrot *)(void *)q)->timeout_ns = timeout_ns;
    return say(q, "get");
}

static wq_err
parrot_done(wq_queue *q, wq_item *item)
{
    (void)item;
    return say(q, "done");
}

static wq_err
parrot_done_key(wq_queue *q, wq_key key)
{
    ((struct parrot *)(void *)q)->key = key;
    return say(q, "done_key");
}

static wq_err
parrot_len(wq_queue *q, size_t *out)
{
    *out = 42;
    return say(q, "len");
}

static void
parrot_shutdown(wq_queue *q)
{
    (void)say(q, "shutdown");
}

static wq_err
parrot_drain(wq_queue *q, int64_t timeout_ns)
{
    ((struct parrot *)(void *)q)->timeout_ns = timeout_ns;
    return say(q, "drain");
}

static bool
parrot_shutting_down(const wq_queue *q)
{
    (void)say(q, "shutting_down");
    return true;
}

static void
parrot_interrupt(wq_queue *q)
{
    (void)say(q, "interrupt");
}

static const wq_backend whole = {
    .size = sizeof(wq_backend),
    .name = "parrot",
    .destroy = parrot_destroy,
    .add = parrot_add,
    .get = parrot_get,
    .done = parrot_done,
    .done_key = parrot_done_key,
    .len = parrot_len,
    .shutdown = parrot_shutdown,
    .drain = parrot_drain,
    .shutting_down = parrot_shutting_down,
    .interrupt = parrot_interrupt,
};

/* ---- what wq_backend_init() checks -------------------------------------- */

static void
assert_refused(const wq_backend *b)
{
    wq_queue q = {.backend = NULL};

    assert_err(wq_backend_init(&q, b), WQ_EINVAL);
    assert_null(q.backend);
}

/* O-09 */
TEST(backend_with_all_verbs_is_accepted)
{
    wq_queue q = {.backend = NULL};

    assert_err(wq_backend_init(&q, &whole), WQ_OK);
    assert_ptr_equal(q.backend, &whole);
}

/* O-09 O-14 */
TEST(backend_or_queue_that_is_not_there_is_refused)
{
    assert_err(wq_backend_init(NULL, &whole), WQ_EINVAL);
    assert_err(wq_backend_init(NULL, NULL), WQ_EINVAL);
    assert_refused(NULL);
}

/* O-09 */
TEST(backend_of_a_size_no_release_had_is_refused)
{
    wq_backend b = whole;

    for (b.size = 0; b.size < sizeof b; b.size++)
        assert_refused(&b);
    b.size = sizeof b + sizeof(void *);
    assert_refused(&b);
    b.size = SIZE_MAX;
    assert_refused(&b);
}

/* O-09 */
TEST(backend_without_a_required_verb_is_refused)
{
#define WITHOUT(member)                                                        \
    do {                                                                       \
        wq_backend b = whole;                                                  \
        b.member = NULL;                                                       \
        assert_refused(&b);                                                    \
    } while (0)
    WITHOUT(name);
    WITHOUT(destroy);
    WITHOUT(add);
    WITHOUT(get);
    WITHOUT(done);
    WITHOUT(len);
    WITHOUT(shutdown);
    WITHOUT(shutting_down);
#undef WITHOUT
}

/* O-09 */
TEST(verbs_a_backend_may_lack_are_not_supported_then)
{
    wq_queue   q = {.backend = NULL};
    wq_backend b = whole;

    b.done_key = NULL;
    b.drain = NULL;
    b.interrupt = NULL;
    assert_err(wq_backend_init(&q, &b), WQ_OK);

    assert_err(wq_done_key(&q, wq_str("foo")), WQ_ENOTSUP);
    assert_err(wq_shutdown_with_drain(&q), WQ_ENOTSUP);
    assert_err(wq_shutdown_with_drain_within(&q, 0), WQ_ENOTSUP);
    assert_err(wq_count_drops(&q, 1), WQ_ENOTSUP);
    wq_interrupt(&q);
    assert_err(wq_flush(&q, WQ_FOREVER), WQ_ENOTSUP);
    assert_err(wq_wait_idle(&q, WQ_FOREVER), WQ_ENOTSUP);
    assert_err(wq_flush_key(&q, wq_str("foo"), WQ_FOREVER), WQ_ENOTSUP);
    assert_err(wq_remove_wait(&q, wq_str("foo"), WQ_FOREVER), WQ_ENOTSUP);
    assert_err(wq_pause(&q), WQ_ENOTSUP);
    assert_err(wq_resume(&q), WQ_ENOTSUP);
}

/* ---- what reaches the verbs --------------------------------------------- */

static int
make_parrot(void **state)
{
    static struct parrot parrot;

    memset(&parrot, 0, sizeof parrot);
    assert_err(wq_backend_init(&parrot.base, &whole), WQ_OK);
    parrot.verb = "nothing";
    *state = &parrot;
    return 0;
}

/* O-09 */
TEST(every_call_reaches_the_verb_of_its_name)
{
    struct parrot *p = *state;
    wq_queue      *q = &p->base;
    wq_item        item = {.slot = 0}, *out = NULL;

    assert_err(wq_add(q, wq_str("foo")), WQ_OK);
    assert_string_equal(p->verb, "add");
    assert_err(wq_get(q, &out), WQ_OK);
    assert_string_equal(p->verb, "get");
    assert_err(wq_done(q, &item), WQ_OK);
    assert_string_equal(p->verb, "done");
    assert_err(wq_done_key(q, wq_str("foo")), WQ_OK);
    assert_string_equal(p->verb, "done_key");
    assert_int_equal(wq_len(q), 42);
    assert_string_equal(p->verb, "len");
    assert_err(wq_shutdown_with_drain(q), WQ_OK);
    assert_string_equal(p->verb, "drain");
    wq_shutdown(q);
    assert_string_equal(p->verb, "shutdown");
    assert_true(wq_shutting_down(q));
    assert_string_equal(p->verb, "shutting_down");
    wq_interrupt(q);
    assert_string_equal(p->verb, "interrupt");
    wq_destroy(q);
    assert_string_equal(p->verb, "destroy");
}

/* O-09 */
TEST(keys_and_times_reach_the_verbs_unchanged)
{
    struct parrot *p = *state;
    wq_queue      *q = &p->base;
    wq_item       *out = NULL;
    const wq_key   key = wq_str("foo");

    assert_err(wq_add(q, key), WQ_OK);
    assert_ptr_equal(p->key.data, key.data);
    assert_int_equal(p->key.len, 3);
    assert_err(wq_get_within(q, 7, &out), WQ_OK);
    assert_int_equal(p->timeout_ns, 7);
    assert_err(wq_get(q, &out), WQ_OK);
    assert_true(p->timeout_ns == WQ_FOREVER);
    assert_err(wq_shutdown_with_drain_within(q, 0), WQ_OK);
    assert_int_equal(p->timeout_ns, 0);
    assert_err(wq_shutdown_with_drain(q), WQ_OK);
    assert_true(p->timeout_ns == WQ_FOREVER);
}

/* O-09 */
TEST(answers_of_the_verbs_reach_the_caller)
{
    struct parrot *p = *state;
    wq_queue      *q = &p->base;
    wq_item        item = {.slot = 0}, *out = NULL;

    p->answer = WQ_EIO;
    assert_err(wq_add(q, wq_str("foo")), WQ_EIO);
    assert_err(wq_get(q, &out), WQ_EIO);
    assert_err(wq_done(q, &item), WQ_EIO);
    assert_err(wq_done_key(q, wq_str("foo")), WQ_EIO);
    assert_err(wq_shutdown_with_drain(q), WQ_EIO);
    assert_int_equal(wq_len(q), 0); /* it failed, whatever it wrote */
}

/* O-09 O-14 */
TEST(bad_arguments_do_not_reach_the_verbs)
{
    struct parrot *p = *state;
    wq_queue      *q = &p->base;
    wq_item       *out = NULL;

    assert_err(wq_add_str(q, ""), WQ_EINVAL);
    assert_err(wq_add_str(q, NULL), WQ_EINVAL);
    assert_err(wq_add(q, (wq_key){"x", WQ_KEY_MAX + 1}), WQ_ETOOLONG);
    assert_err(wq_get(q, NULL), WQ_EINVAL);
    assert_err(wq_get_within(q, -1, &out), WQ_EINVAL);
    assert_err(wq_done(q, NULL), WQ_EINVAL);
    assert_err(wq_done_key(q, wq_str("")), WQ_EINVAL);
    assert_err(wq_done_key(q, (wq_key){"x", WQ_KEY_MAX + 1}), WQ_ETOOLONG);
    assert_err(wq_shutdown_with_drain_within(q, -1), WQ_EINVAL);

    assert_string_equal(p->verb, "nothing");
}

WQ_TESTS(test(backend_with_all_verbs_is_accepted),
         test(backend_or_queue_that_is_not_there_is_refused),
         test(backend_of_a_size_no_release_had_is_refused),
         test(backend_without_a_required_verb_is_refused),
         test(verbs_a_backend_may_lack_are_not_supported_then),
         test_with(every_call_reaches_the_verb_of_its_name, make_parrot, NULL),
         test_with(keys_and_times_reach_the_verbs_unchanged, make_parrot, NULL),
         test_with(answers_of_the_verbs_reach_the_caller, make_parrot, NULL),
         test_with(bad_arguments_do_not_reach_the_verbs, make_parrot, NULL));
