/* SPDX-License-Identifier: MIT */
/* test_rows.c: what becomes of a transaction of rows when memory runs out in the
 * middle of an add? The store is a list of the rows that were written. */
#include "support/wq_test.h"

#include "shared/rows.h"
#include "support/counting.h"

static struct {
    struct wq__rows rows;
    struct counting mem;
    size_t          written, saves, undone;
} f;

static wq_err
find(struct wq__rows *r, wq_key key, struct wq__row *row)
{
    (void)r, (void)key;
    *row = (struct wq__row){.id = 0};
    return WQ_OK;
}

static wq_err
write_row(struct wq__rows *r, wq_key key, const struct wq__row *before,
          struct wq__row *row, bool empty)
{
    (void)r, (void)key, (void)before, (void)empty;
    row->id = (int64_t)++f.written;
    return WQ_OK;
}

static wq_err
save(struct wq__rows *r)
{
    (void)r;
    f.saves++;
    return WQ_OK;
}

static wq_err
end_save(struct wq__rows *r, bool undo)
{
    (void)r;
    f.undone += undo;
    return WQ_OK;
}

static void
name_holder(struct wq__rows *r, int64_t session, char out[WQ_HOLDER_BYTES])
{
    (void)r, (void)session, (void)out;
}

static const struct wq__row_store store = {.find = find,
                                           .write = write_row,
                                           .save = save,
                                           .end_save = end_save,
                                           .name_holder = name_holder};

/* The scratch core allocates through `mem`. */
static void
set_up_rows(const struct wq__terms *terms)
{
    const struct wq__row_counts none = {.next_ns = WQ_FOREVER};

    memset(&f, 0, sizeof f);
    counting_init(&f.mem);
    wq__rows_init(&f.rows, &store, terms);
    wq__core_fini(&f.rows.scratch);
    wq__core_init(&f.rows.scratch, (struct wq__hash_key){.mask = UINT32_MAX},
                  NULL, &f.mem.allocator);
    wq__rows_begin(&f.rows, 1, 0, &none);
}

static void
tear_down_rows(void)
{
    wq__rows_fini(&f.rows);
    assert_int_equal(f.mem.bytes, 0);
}

/* The second key is long: the scratch core needs memory for it. */
static struct wq__op
add_two(const wq_add_options *how)
{
    static char   large[WQ_KEY_MAX];
    static wq_key keys[2];

    memset(large, 'x', sizeof large);
    keys[0] = wq_str("small");
    keys[1] = (wq_key){large, sizeof large};
    return (struct wq__op){.kind = WQ__OP_ADD,
                           .as.add = {.how = how, .keys = keys, .n = 2}};
}

static wq_err
carry_out(struct wq__op *op)
{
    struct wq__did did = {.adds = 0};

    return wq__rows_carry_out(&f.rows, op, &did);
}

/* Fails the n-th allocation of an add until one is made for the second key. */
static wq_err
add_until_second_fails(const struct wq__terms *terms, struct wq__op *op)
{
    for (uint64_t n = 1;; n++) {
        set_up_rows(terms);
        counting_fail(&f.mem, n, COUNTING_FROM_NOW);
        const wq_err err = carry_out(op);
        if (op->err != WQ_ENOMEM)
            fail_msg("no allocation for the second key failed");
        if (f.written)
            return err;
        assert_int_equal(err, WQ_OK); /* the first key: nothing to take back */
        assert_false(f.rows.torn);
        tear_down_rows();
    }
}

static void
expect_end(const struct wq__terms *terms, wq_err end, size_t undone)
{
    static const wq_add_options how = {.size = sizeof how};
    struct wq__op               op = add_two(&how);

    assert_int_equal(add_until_second_fails(terms, &op), end);
    assert_int_equal(f.saves, undone);
    assert_int_equal(f.undone, undone);
    assert_int_equal(f.rows.counts.ready, 0);
    tear_down_rows();
}

/* S-14 */
TEST(add_that_runs_out_of_memory_halfway_ends_the_transaction)
{
    expect_end(&(struct wq__terms){.max_len = 0}, WQ_ENOMEM, 0);
}

/* S-14 */
TEST(add_with_a_savepoint_that_runs_out_of_memory_is_taken_back)
{
    expect_end(&(struct wq__terms){.max_len = 10}, WQ_OK, 1);
}

WQ_TESTS(
    cmocka_unit_test(add_that_runs_out_of_memory_halfway_ends_the_transaction),
    cmocka_unit_test(
        add_with_a_savepoint_that_runs_out_of_memory_is_taken_back));
