/* SPDX-License-Identifier: MIT */
/* test_flush.c: do turns tell which runs a flush waits for? First alone
 * (flush.h), then as the core uses them (core.h). */
#include "unit/core_fixture.h"

#include "core/flush.h"
#include "unit/dice.h"

/* ---- turns alone --------------------------------------------------------- */

enum { RUNS = 64, FLUSHES = 16 };

/* A few runs, each with its mark, as records have it. */
static struct {
    struct wq__flush f;
    bool             owed[RUNS];
    unsigned         mark[RUNS];
    uint64_t         asked[RUNS]; /* when: a number that grows */
    size_t           n;           /* how many are owed */
    uint64_t         now;
} s;

static void
begin(void)
{
    memset(&s, 0, sizeof s);
    s.f.first = s.f.turn = 1;
}

static void
ask(size_t run)
{
    assert_false(s.owed[run]);
    s.owed[run] = true;
    s.mark[run] = wq__flush_mark(&s.f);
    s.asked[run] = ++s.now;
    s.n++;
}

static void
end(size_t run)
{
    assert_true(s.owed[run]);
    s.owed[run] = false;
    s.n--;
    if (wq__flush_is_under_way(&s.f)) /* as the core does */
        wq__flush_end_run(&s.f, s.mark[run], s.n);
}

static uint64_t
flush(void)
{
    return wq__flush_begin(&s.f, s.n);
}

static bool
over(uint64_t turn)
{
    return wq__flush_has_finished(&s.f, turn);
}

/* O-81 */
TEST(flush_of_nothing_is_over_at_once)
{
    begin();
    assert_true(over(flush()));
    ask(0);
    end(0);
    assert_true(over(flush()));
    assert_false(wq__flush_is_under_way(&s.f));
}

/* O-81 */
TEST(flush_is_over_when_its_last_run_ends)
{
    begin();
    ask(0);
    ask(1);
    const uint64_t turn = flush();
    ask(2);
    assert_false(over(turn));
    end(2);
    end(0);
    assert_false(over(turn));
    end(1);
    assert_true(over(turn));
    assert_false(wq__flush_is_under_way(&s.f));
}

/* O-81: a flush that has nothing of its own waits for the one before. */
TEST(flush_without_runs_of_its_own_opens_no_turn)
{
    begin();
    ask(0);
    const uint64_t first = flush();
    const uint64_t second = flush();
    assert_int_equal(first, second);
    assert_int_equal(s.f.turn - s.f.first, 1);
    end(0);
    assert_true(over(second));
}

/* O-81: turns end in order, whichever run ends first. */
TEST(later_turn_is_not_over_before_an_earlier_one)
{
    begin();
    ask(0);
    const uint64_t first = flush();
    ask(1);
    const uint64_t second = flush();
    end(1);
    assert_false(over(second));
    end(0);
    assert_true(over(first));
    assert_true(over(second));
}

/* O-81: the fourth is closed when the first is over, and waits for what came
 * until then. */
TEST(fourth_turn_is_closed_when_the_first_is_over)
{
    uint64_t turns[4];

    begin();
    for (size_t i = 0; i < 4; i++) {
        ask(i);
        turns[i] = flush();
    }
    assert_true(s.f.close_next);
    ask(4); /* the fourth waits for this, too */
    end(0);
    assert_true(over(turns[0]));
    assert_false(s.f.close_next);
    ask(5); /* but not for this */
    for (size_t i = 1; i < 4; i++) {
        assert_false(over(turns[i]));
        end(i);
        assert_int_equal(over(turns[i]), i < 3);
    }
    end(4);
    assert_true(over(turns[3]));
    assert_false(wq__flush_is_under_way(&s.f));
}

/* O-81: the fourth has lost all its runs when it is closed at last. */
TEST(turn_that_is_closed_empty_is_over)
{
    uint64_t turns[4];

    begin();
    for (size_t i = 0; i < 4; i++) {
        ask(i);
        turns[i] = flush();
    }
    end(3);
    assert_false(over(turns[3]));
    end(1);
    end(2);
    end(0);
    for (size_t i = 0; i < 4; i++)
        assert_true(over(turns[i]));
    assert_false(wq__flush_is_under_way(&s.f));
}

struct waiter {
    bool     waits;
    uint64_t turn;
    uint64_t began; /* the runs asked before are waited for */
};

static bool
owes_before(uint64_t moment)
{
    for (size_t i = 0; i < RUNS; i++)
        if (s.owed[i] && s.asked[i] <= moment)
            return true;
    return false;
}

/* A flush never ends too soon; and it ends when all runs have that were asked
 * before the moment its turn was closed, which is that of the call while no more
 * than three are under way. */
static void
check(struct waiter *w, bool exact)
{
    const bool is_over = over(w->turn);

    if (is_over && owes_before(w->began))
        fail_msg("a flush ended before its runs");
    if (!is_over && exact && !owes_before(w->began))
        fail_msg("a flush waits for later runs");
    if (!is_over && s.n == 0)
        fail_msg("a flush waits for nothing");
    w->waits = !is_over;
}

/* O-81: random runs and flushes, against a list of them all. */
TEST(random_flushes_end_neither_early_nor_never)
{
    struct dice dice = dice_seeded("random_flushes");

    for (int most = 1; most <= FLUSHES; most++) {
        struct waiter waiters[FLUSHES] = {{0}};

        begin();
        for (int i = 0; i < 5000; i++) {
            const size_t run = dice_roll(&dice, RUNS);
            if (dice_roll(&dice, 4) == 0) {
                struct waiter *w = &waiters[dice_roll(&dice, (size_t)most)];
                if (!w->waits)
                    *w = (struct waiter){true, flush(), s.now};
            } else if (s.owed[run]) {
                end(run);
            } else if (dice_roll(&dice, 3) == 0) {
                ask(run);
            }
            for (int k = 0; k < most; k++)
                if (waiters[k].waits)
                    check(&waiters[k], most < WQ__TURNS);
            assert_true(s.f.turn - s.f.first < WQ__TURNS);
        }
    }
}

/* ---- the core ------------------------------------------------------------ */

static bool
flushed(uint64_t turn)
{
    expect_sound();
    return wq__core_has_flushed(&f.core, turn);
}

/* O-81: every way in which a run ends, or is not owed any more. */
TEST(core_ends_runs_at_done_and_when_taken_back)
{
    add("done", 0, WQ_ADDED_NEW);
    add("removed", 0, WQ_ADDED_NEW);
    add("dirty", 0, WQ_ADDED_NEW);
    wq_item *done_item = get("done");
    (void)take_back("absent", 0);
    const uint64_t turn = wq__core_begin_flush(&f.core);
    assert_false(flushed(turn));
    done(done_item);
    assert_false(flushed(turn));
    assert_int_equal(take_back("removed", 0), WQ_OK);
    assert_false(flushed(turn));
    wq_item *item = get("dirty");
    add("dirty", 0, WQ_ADDED_DIRTY); /* later */
    const uint64_t next = wq__core_begin_flush(&f.core);
    done(item);
    assert_true(flushed(turn));
    assert_false(flushed(next));
    done(get("dirty"));
    assert_true(flushed(next));
}

/* O-81 O-84: the DIRTY run is taken back, and the HELD one ends. */
TEST(core_ends_both_runs_of_a_key_removed_at_done)
{
    add("a", 0, WQ_ADDED_NEW);
    wq_item *item = get("a");
    add("a", 0, WQ_ADDED_DIRTY);
    const uint64_t turn = wq__core_begin_flush(&f.core);
    assert_int_equal(
        wq__core_remove_at_done(&f.core, wq_str("a"), hash_of("a"), true),
        WQ_OK);
    expect_sound();
    assert_false(flushed(turn));
    done(item);
    assert_true(flushed(turn));
    expect_states("a", 0);
    assert_int_equal(counts_at(0).removed, 1);
}

/* O-84: only a HELD key can be marked; the mark can be taken away. */
TEST(core_marks_held_keys_only)
{
    assert_int_equal(
        wq__core_remove_at_done(&f.core, wq_str("a"), hash_of("a"), true),
        WQ_ENOTFOUND);
    add("a", 0, WQ_ADDED_NEW);
    assert_int_equal(
        wq__core_remove_at_done(&f.core, wq_str("a"), hash_of("a"), true),
        WQ_ENOTFOUND);
    wq_item *item = get("a");
    for (int on = 1; on >= 0; on--)
        assert_int_equal(wq__core_remove_at_done(&f.core, wq_str("a"),
                                                 hash_of("a"), on != 0),
                         WQ_OK);
    add("a", 0, WQ_ADDED_DIRTY);
    done(item);
    done(get("a"));
}

/* O-81: a record that only waits has an old mark, and gets a new one. */
TEST(core_marks_a_run_when_it_is_asked_for)
{
    add("a", 0, WQ_ADDED_NEW);
    add_at("a", 10, WQ_ADDED_SCHEDULED);
    add("b", 0, WQ_ADDED_NEW);
    const uint64_t turn = wq__core_begin_flush(&f.core);
    done(get("a"));
    pass_to(10); /* "a" again: it is of the next turn */
    done(get("b"));
    assert_true(flushed(turn));
    assert_int_equal(f.core.flush.first, f.core.flush.turn);
    done(get("a"));
}

/* O-82 */
TEST(core_is_idle_when_nothing_is_ready_or_held)
{
    assert_true(wq__core_idle(&f.core));
    add_at("w", 10, WQ_ADDED_SCHEDULED);
    assert_true(wq__core_idle(&f.core));
    add("a", 0, WQ_ADDED_NEW);
    assert_false(wq__core_idle(&f.core));
    wq_item *item = get("a");
    assert_false(wq__core_idle(&f.core));
    done(item);
    assert_true(wq__core_idle(&f.core));
}

WQ_TESTS(test(flush_of_nothing_is_over_at_once),
         test(flush_is_over_when_its_last_run_ends),
         test(flush_without_runs_of_its_own_opens_no_turn),
         test(later_turn_is_not_over_before_an_earlier_one),
         test(fourth_turn_is_closed_when_the_first_is_over),
         test(turn_that_is_closed_empty_is_over),
         test(random_flushes_end_neither_early_nor_never),
         core_test(core_ends_runs_at_done_and_when_taken_back),
         core_test(core_ends_both_runs_of_a_key_removed_at_done),
         core_test(core_marks_held_keys_only),
         core_test(core_marks_a_run_when_it_is_asked_for),
         core_test(core_is_idle_when_nothing_is_ready_or_held));
