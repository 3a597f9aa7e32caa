/* SPDX-License-Identifier: MIT */
/* test_backend.c: what does the library do for a backend of somebody's own? */
#include "fixture.h"

#include <stdlib.h>

#include <wq/backend.h>
#include <wq/workers.h>

#include "support/handlers.h"
#include "support/look.h"

/* A backend that remembers which verb was called last, and with what. */
struct parrot {
    wq_queue    base;
    const char *verb;
    int64_t     timeout_ns;
    wq_key      key;
    wq_err      answer;
};

static struct parrot *
parrot_of(const wq_queue *q)
{
    return (struct parrot *)(void *)(uintptr_t)q;
}

static wq_err
say(const wq_queue *q, const char *verb)
{
    parrot_of(q)->verb = verb;
    return parrot_of(q)->answer;
}

static wq_err
say_key(wq_queue *q, const char *verb, wq_key key)
{
    parrot_of(q)->key = key;
    return say(q, verb);
}

static wq_err
say_timeout(wq_queue *q, const char *verb, int64_t timeout_ns)
{
    parrot_of(q)->timeout_ns = timeout_ns;
    return say(q, verb);
}

/* A verb without arguments and results. */
#define PLAIN_VERB(name)                                                       \
    static void parrot_##name(wq_queue *q)                                     \
    {                                                                          \
        (void)say(q, #name);                                                   \
    }

PLAIN_VERB(destroy)
PLAIN_VERB(shutdown)
PLAIN_VERB(interrupt)

static wq_err
parrot_add(wq_queue *q, wq_key key)
{
    return say_key(q, "add", key);
}

static wq_err
parrot_drain(wq_queue *q, int64_t timeout_ns)
{
    return say_timeout(q, "drain", timeout_ns);
}

static wq_err
parrot_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    (void)out;
    return say_timeout(q, "get", timeout_ns);
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
    return say_key(q, "done_key", key);
}

static wq_err
parrot_len(wq_queue *q, size_t *out)
{
    *out = 42;
    return say(q, "len");
}

static bool
parrot_shutting_down(const wq_queue *q)
{
    (void)say(q, "shutting_down");
    return true;
}

#define VERB(name) .name = parrot_##name

static const wq_backend whole = {.size = sizeof whole,
                                 .name = "parrot",
                                 VERB(destroy),
                                 VERB(add),
                                 VERB(get),
                                 VERB(done),
                                 VERB(done_key),
                                 VERB(len),
                                 VERB(shutdown),
                                 VERB(drain),
                                 VERB(shutting_down),
                                 VERB(interrupt)};

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
    const size_t least = offsetof(wq_backend, done_key);
    wq_backend   b = whole;
    wq_queue     q = {.backend = NULL};

    for (b.size = 0; b.size < least; b.size++)
        assert_refused(&b);
    assert_err(wq_backend_init(&q, &b), WQ_OK);
    b.size = sizeof b + sizeof(void *);
    assert_refused(&b);
    b.size = SIZE_MAX;
    assert_refused(&b);
}

/* ---- tables of older releases -------------------------------------------- */

/* A table that ends before a verb. What follows is not part of it. */
static union {
    wq_backend verbs;
    char       bytes[sizeof(wq_backend) + 64];
} early;

static void
must_not_be_called(void)
{
    abort();
}

static void
ignore_loss(void *ctx, const wq_item *item)
{
    (void)ctx;
    (void)item;
}

static wq_err
write_nowhere(void *ctx, const char *data, size_t n)
{
    (void)ctx;
    (void)data;
    (void)n;
    return WQ_OK;
}

static void
ignore(wq_err err)
{
    (void)err;
}

/* Every function that ends loans, for a queue with one key. */
static void
end_loans(wq_queue *q)
{
    wq_item *items[2] = {NULL, NULL};
    size_t   n = 0;

    ignore(wq_get_many(q, items, 1, 0, &n));
    ignore(wq_done_many(q, items, n));
    add(q, "foo");
    ignore(wq_next(q, 0, &items[0]));
    (void)wq_hold_left(q, items[0]);
    ignore(wq_next_with(q, wq_result_after(1), 0, &items[0]));
    ignore(wq_next_with(q, wq_result_done(), 0, &items[0]));
    add(q, "foo");
    items[0] = take(q);
    ignore(wq_finish(q, items[0], wq_result_bury()));
    add(q, "foo");
    items[0] = take(q);
    ignore(wq_finish_many(q, items, NULL, NULL, 1));
    add(q, "foo");
    items[0] = take(q);
    ignore(wq_finish(q, items[0], wq_result_drop()));
    add(q, "foo");
    ignore(wq_work_one(q, WQ_WORKERS(.handler = handle_done), 0));
}

/* Every other function whose verb is optional. */
static void
call_optional(wq_queue *q)
{
    const wq_key key = wq_str("foo");
    wq_stats     stats = {.size = sizeof stats};
    wq_key_info  info = {.size = sizeof info};
    wq_depth     depth;
    size_t       n = 0;

    ignore(wq_add_after(q, key, 1));
    ignore(wq_add_rate_limited(q, key));
    ignore(wq_forget(q, key));
    (void)wq_num_requeues(q, key);
    ignore(wq_count_drops(q, 0));
    ignore(wq_add_one(q, key, WQ_ADD(.priority = 1)));
    ignore(wq_cancel_after(q, key));
    ignore(wq_read_stats(q, &stats));
    ignore(wq_read_depths(q, &depth, 1, &n));
    ignore(wq_read_key(q, key, &info));
    ignore(wq_each(q, 0, count_visit, &n));
    ignore(wq_dump(q, write_nowhere, NULL));
    (void)wq_fd(q);
    ignore(wq_pause(q));
    ignore(wq_resume(q));
    ignore(wq_flush(q, 0));
    ignore(wq_flush_key(q, key, 0));
    ignore(wq_wait_idle(q, 0));
    ignore(wq_remove(q, key));
    ignore(wq_remove_wait(q, key, 0));
    ignore(wq_done_key(q, key));
    ignore(wq_renew(q));
    ignore(wq_revive(q, key));
    wq_interrupt(q);
}

static void
run_pool(wq_queue *q)
{
    wq_workers *pool;

    add(q, "foo");
    assert_err(wq_workers_start(q,
                                WQ_WORKERS(.threads = 1, .handler = handle_done,
                                           .on_lost = ignore_loss),
                                &pool),
               WQ_OK);
    assert_err(wq_workers_destroy(pool), WQ_OK);
}

/* Both layers, around `q`, which they destroy. */
static void
wrap(wq_queue *q)
{
    wq_queue *delaying, *limiting;

    assert_err(wq_delaying_wrap(q, NULL, &delaying), WQ_OK);
    assert_err(wq_rate_limiting_wrap(delaying, NULL, &limiting), WQ_OK);
    end_loans(limiting);
    call_optional(limiting);
    ignore(wq_shutdown_with_drain_within(limiting, 0));
    wq_destroy(limiting);
}

/* A queue in memory whose table ends before the verb at `end`. */
static wq_queue *
open_early(size_t end)
{
    wq_queue *q;
    void (*const trap)(void) = must_not_be_called;

    assert_err(wq_create(NULL, &q), WQ_OK);
    early.verbs = *q->backend;
    early.verbs.size = end;
    for (size_t at = end; at + sizeof trap <= sizeof early; at += sizeof trap)
        memcpy(early.bytes + at, &trap, sizeof trap);
    assert_err(wq_backend_init(q, &early.verbs), WQ_OK);
    return q;
}

/* O-09: no function calls a verb beyond the end of the table. */
TEST(backend_of_an_older_release_lacks_later_verbs)
{
    const size_t verb = sizeof(void (*)(void));

    for (size_t end = offsetof(wq_backend, done_key); end <= sizeof(wq_backend);
         end += verb) {
        wq_queue *q = open_early(end);

        add(q, "foo");
        end_loans(q);
        call_optional(q);
        run_pool(q);
        ignore(wq_shutdown_with_drain_within(q, 0));
        wq_destroy(q);
        wrap(open_early(end));
    }
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
    wq_item        item = {.loan = 0}, *out = NULL;

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
    wq_item        item = {.loan = 0}, *out = NULL;

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
         test(backend_of_an_older_release_lacks_later_verbs),
         test(backend_without_a_required_verb_is_refused),
         test(verbs_a_backend_may_lack_are_not_supported_then),
         test_with(every_call_reaches_the_verb_of_its_name, make_parrot, NULL),
         test_with(keys_and_times_reach_the_verbs_unchanged, make_parrot, NULL),
         test_with(answers_of_the_verbs_reach_the_caller, make_parrot, NULL),
         test_with(bad_arguments_do_not_reach_the_verbs, make_parrot, NULL));
