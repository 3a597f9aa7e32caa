/* SPDX-License-Identifier: MIT */
/* test_flush.c: do turns show which runs a flush waits for? First alone
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
    uint64_t         since[RUNS]; /* a number that grows */
    size_t           n;           /* how many are owed */
    uint64_t         now;
} s;

static void
begin(void)
{
    memset(&s, 0, sizeof s);
    s.f.first = s.f.epoch = 1;
}

static void
owe(size_t run)
{
    assert_false(s.owed[run]);
    s.owed[run] = true;
    s.mark[run] = wq__flush_mark(&s.f);
    s.since[run] = ++s.now;
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

/* owe RUN; end RUN; flush NAME: a number; over NAME; not NAME; and is a flush
 * under way? idle; busy */
static bool
act(const char *const *word)
{
    static uint64_t turns[8];
    const size_t    n = (size_t)number(word[1]);

    if (is(word[0], "owe"))
        owe(n);
    else if (is(word[0], "end"))
        end(n);
    else if (is(word[0], "flush"))
        turns[n] = flush();
    else if (is(word[0], "over") || is(word[0], "not"))
        expect_word(over(turns[n]) ? "over" : "not", word[0]);
    else
        expect_word(wq__flush_is_under_way(&s.f) ? "busy" : "idle", word[0]);
    return true;
}

static void
check_turns(void)
{
    assert_true(s.f.epoch - s.f.first < WQ__EPOCHS);
}

static const struct scene turns[] = {
    /* O-81 */
    {"a flush of nothing is over at once",
     "flush 0; over 0; owe 0; end 0; flush 1; over 1; idle"},
    /* O-81 */
    {"a flush is over when its last run ends",
     "owe 0; owe 1; flush 0; owe 2; not 0; end 2; end 0; not 0; end 1; over 0; "
     "idle"},
    /* O-81 */
    {"a flush without runs of its own waits for the one before",
     "owe 0; flush 0; flush 1; not 1; end 0; over 1; idle"},
    /* O-81 */
    {"turns end in order, whichever run ends first",
     "owe 0; flush 0; owe 1; flush 1; end 1; not 1; end 0; over 0; over 1"},
    /* O-81: it waits for run 4, too, but not for run 5. */
    {"the fourth turn is closed when the first is over",
     "owe 0; flush 0; owe 1; flush 1; owe 2; flush 2; owe 3; flush 3; owe 4; "
     "end 0; over 0; owe 5; not 1; end 1; over 1; not 2; end 2; over 2; not 3; "
     "end 3; not 3; end 4; over 3; idle"},
    /* O-81 */
    {"a turn that is closed empty is over",
     "owe 0; flush 0; owe 1; flush 1; owe 2; flush 2; owe 3; flush 3; end 3; "
     "not 3; end 1; end 2; end 0; over 0; over 1; over 2; over 3; idle"},
};

TEST(flush_is_over_when_the_runs_of_its_turn_are)
{
    for (size_t i = 0; i < LEN(turns); i++) {
        begin();
        script_run(&turns[i], act, check_turns);
    }
}

TEST(flush_without_runs_of_its_own_opens_no_turn)
{
    begin();
    owe(0);
    assert_int_equal(flush(), flush());
    assert_int_equal(s.f.epoch - s.f.first, 1);
}

TEST(turn_is_closed_next_while_there_are_too_many)
{
    begin();
    for (size_t i = 0; i < 4; i++) {
        owe(i);
        (void)flush();
    }
    assert_true(s.f.close_next);
    end(0);
    assert_false(s.f.close_next);
}

struct waiter {
    bool     waits;
    uint64_t turn;
    uint64_t began; /* it waits for the runs owed since before */
};

static bool
owes_before(uint64_t moment)
{
    for (size_t i = 0; i < RUNS; i++)
        if (s.owed[i] && s.since[i] <= moment)
            return true;
    return false;
}

/* A flush never ends too soon; and it ends when all runs have ended that were
 * owed before its turn was closed: at the call, while no more than three flushes
 * are under way. */
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
                owe(run);
            }
            for (int k = 0; k < most; k++)
                if (waiters[k].waits)
                    check(&waiters[k], most < WQ__EPOCHS);
            check_turns();
        }
    }
}

/* ---- the core ------------------------------------------------------------ */

static const struct scene core_scenes[] = {
    /* O-81: every way in which a run ends, or is not owed any more. */
    {"runs end at done and when the key is removed",
     "add a NEW; add b NEW; add c NEW; get a; remove absent ENOTFOUND; "
     "flush 0; unflushed 0; done a; unflushed 0; remove b OK; unflushed 0; "
     "get c; add c DIRTY; flush 1; done c; flushed 0; unflushed 1; run c; "
     "flushed 1"},
    /* O-81 O-84 */
    {"both runs of a key that is removed at done end",
     "add a NEW; get a; add a DIRTY; flush 0; mark a OK; unflushed 0; done a; "
     "flushed 0; states a -; removed 1"},
    /* O-84 */
    {"only a HELD key can be marked, and unmarked",
     "mark a ENOTFOUND; add a NEW; mark a ENOTFOUND; get a; mark a OK; "
     "unmark a OK; add a DIRTY; done a; run a"},
    /* O-81: a WAITING key has an old mark, and gets a new one. */
    {"a run is of the turn in which it becomes READY",
     "add a NEW; add a @10 SCHEDULED; add b NEW; flush 0; run a; pass 10; "
     "run b; flushed 0; flushing 0; run a"},
    /* O-82 */
    {"a core is idle when nothing is READY or HELD",
     "idle 1; add w @10 SCHEDULED; idle 1; add a NEW; idle 0; get a; idle 0; "
     "done a; idle 1"},
};

TEST(core_ends_runs_for_flushes)
{
    run_scenes(core_scenes, LEN(core_scenes), open_core);
}

WQ_TESTS(test(flush_is_over_when_the_runs_of_its_turn_are),
         test(flush_without_runs_of_its_own_opens_no_turn),
         test(turn_is_closed_next_while_there_are_too_many),
         test(random_flushes_end_neither_early_nor_never),
         test(core_ends_runs_for_flushes));
