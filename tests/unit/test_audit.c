/* SPDX-License-Identifier: MIT */
/* test_audit.c: does the auditor see what is broken?
 *
 * A test that relies on wq__core_check() is worth as much as the check. Here a
 * sound core is made, one thing in it is spoiled by hand, and the auditor must
 * name that thing; repaired, the core must be sound again.
 */
#include "unit/core_fixture.h"

#include "core/inside.h"
#include "support/core_kind.h"

/* A core in which every state occurs:
 *
 *     ready1 ready2   READY          held   HELD
 *     wait1  wait2    WAITING        dirty  HELD+DIRTY
 *
 * The group of a key is what is before its '/'.
 */
static void
open_kind(struct core_kind kind, bool has_plug_in)
{
    wq__core_fini(&f.core);
    memset(&f, 0, sizeof f);
    const wq_order order = plug_in_order(&f.plug_in);
    open_with(has_plug_in ? &order : NULL);
    core_set_kind(&f.core, &kind);
    add_grouped("held", 0, 0);
    get("held");
    add_grouped("dirty", 0, 0);
    get("dirty");
    add_grouped("dirty", 0, 0);
    add_grouped("ready1", 0, 0);
    add_grouped("ready2", 0, 0);
    play("add wait1 @100 SCHEDULED; add wait2 @200 SCHEDULED");
}

static int
open_plain(void **state)
{
    (void)state;
    open_kind((struct core_kind){0}, false);
    return 0;
}

/* The core may be left spoiled. */
static int
close_spoiled(void **state)
{
    (void)state;
    wq__core_fini(&f.core);
    assert_int_equal(f.mem.bytes, 0);
    return 0;
}

static wq__ref
ref_of(const char *s)
{
    const wq__ref ref = wq__index_find(&f.core.index, wq_str(s), hash_of(s));
    assert_int_not_equal(ref, 0);
    return ref;
}

static struct wq__rec *
rec_of(const char *s)
{
    return wq__slab_at(&f.core.recs, ref_of(s));
}

static struct wq__loan *
loan_of(const char *s)
{
    return wq__loans_at(&f.core.loans, rec_of(s)->next);
}

static struct wq__slot *
slot_of(const char *s)
{
    const wq__ref    ref = ref_of(s);
    struct wq__slot *slot;

    for (size_t at = 0; (slot = wq__index_next(&f.core.index, &at));)
        if (slot->ref == ref)
            return slot;
    fail_msg("%s has no slot", s);
    return NULL;
}

static void
expect(const char *what, const char *message)
{
    const char *broken = wq__core_check(&f.core);
    if (!broken || strcmp(broken, message) != 0)
        fail_msg("%s: '%s', expected '%s'", what, broken ? broken : "sound",
                 message);
}

/* Spoil `place` by giving it `value`, see `message`, repair. */
#define SPOIL(place, value, message)                                           \
    do {                                                                       \
        __typeof__(place) *const spoilt = &(place);                            \
        const __typeof__(place)  saved = *spoilt;                              \
        *spoilt = (__typeof__(place))(value);                                  \
        expect(#place " = " #value, message);                                  \
        *spoilt = saved;                                                       \
        assert_null(wq__core_check(&f.core));                                  \
    } while (0)

/* ---- one record --------------------------------------------------------- */

TEST(auditor_sees_a_record_with_impossible_states)
{
    SPOIL(rec_of("held")->flags, WQ__HELD | WQ__READY,
          "L2: a key is READY and HELD");
    SPOIL(rec_of("ready1")->flags, WQ__READY | WQ__DIRTY,
          "a key is DIRTY but not HELD");
    SPOIL(rec_of("ready1")->flags, 0, "a record without any state was kept");
    SPOIL(rec_of("ready1")->flags, WQ__READY | WQ__NAMED,
          "a call left its mark on a record");
    SPOIL(rec_of("ready1")->flags, WQ__READY | WQ__DEBOUNCED,
          "a key has a backoff or a debounce but no deadline");
    SPOIL(rec_of("ready1")->flags, WQ__READY | WQ__BACKOFF,
          "a key has a backoff or a debounce but no deadline");
    SPOIL(rec_of("ready1")->flags, WQ__READY | WQ__COOLDOWN,
          "a key in its cooldown has no entry in the heap");
}

TEST(auditor_sees_a_record_with_wrong_bytes)
{
    struct wq__rec *rec = rec_of("ready1");

    SPOIL(rec->hash, 12345, "a record's hash is not its key's");
    SPOIL(wq__rec_key_at(rec)[6], 'x', "no NUL follows a key");
    SPOIL(f.core.prefix, 8, "a record has other parts than the others");
}

TEST(auditor_sees_a_loan_that_is_not_its_keys)
{
    static const char mismatch[] =
        "L1: a HELD key and its loan do not name each other";
    static const char other_key[] =
        "a loan shows another key than its record's";
    struct wq__loan *loan = loan_of("held");

    SPOIL(loan->rec, 0, mismatch);
    SPOIL(loan->rec, ref_of("dirty"), mismatch);
    SPOIL(rec_of("held")->next, rec_of("dirty")->next, mismatch);
    SPOIL(rec_of("held")->next, 0, mismatch);
    SPOIL(loan->item.loan, 1, mismatch);
    SPOIL(loan->item.key.data, "held", other_key);
    SPOIL(loan->item.key.len, 3, other_key);
    SPOIL(loan->item.fence, f.core.fence + 1, "a fence from the future");
}

/* ---- the index ---------------------------------------------------------- */

/* Is `ready1` beyond the reach of a search when its slot is moved to `i`? */
static bool
is_lost_at(size_t i)
{
    struct wq__slot *slot = slot_of("ready1"),
                    *there = &f.core.index.only->slots[i];

    if (there->ref)
        return false;
    *there = *slot;
    slot->ref = 0;
    if (!wq__index_find(&f.core.index, wq_str("ready1"), there->hash))
        return true;
    *slot = *there;
    there->ref = 0;
    return false;
}

TEST(auditor_sees_a_key_that_cannot_be_found)
{
    size_t i = 0;

    SPOIL(slot_of("ready1")->hash, slot_of("ready1")->hash ^ 0x80000000U,
          "a slot's hash is not its record's");
    while (i < f.core.index.cap && !is_lost_at(i))
        i++;
    assert_true(i < f.core.index.cap);
    expect("a moved slot", "a key cannot be found, or is there twice");
}

TEST(auditor_sees_a_key_that_is_there_twice)
{
    struct wq__slot *slot = slot_of("ready2");
    struct wq__rec  *rec = rec_of("ready2");

    memcpy(rec->bytes, "ready1", 6);
    rec->hash = rec_of("ready1")->hash;
    slot->hash = rec->hash;
    expect("two keys", "a key cannot be found, or is there twice");
}

/* ---- numbers ------------------------------------------------------------ */

TEST(auditor_sees_numbers_that_do_not_agree)
{
    static const char lost[] =
        "L3: keys that were added got lost, or came twice";

    SPOIL(f.core.index.len, f.core.index.len + 1,
          "the index has miscounted its keys");
    SPOIL(f.core.index.only->len, f.core.index.only->len + 1,
          "a segment has miscounted its keys");
    SPOIL(f.core.index.only->depth, 1,
          "a segment is deeper than its directory");
    SPOIL(f.core.index.deepest, 2, "the index has miscounted its segments");
    SPOIL(f.core.recs.live, f.core.recs.live + 1,
          "index and records differ in number");
    SPOIL(f.core.loans.live, 1, "L1: HELD keys and loans differ in number");
    SPOIL(f.core.loans.live, 3, "L1: HELD keys and loans differ in number");
    SPOIL(f.core.dirty, 0, "DIRTY keys were miscounted");
    SPOIL(f.core.ready.len, 1, "READY keys were miscounted");
    SPOIL(f.core.waiting.len, 1,
          "L5: WAITING keys and deadlines differ in number");
    SPOIL(f.core.max_len, 5, "there are more keys than the bound allows");
    SPOIL(f.core.tally.adds, 4, lost);
    SPOIL(f.core.tally.removed, 1, lost);
    SPOIL(f.core.tally.imported_runs, 1, lost);
    SPOIL(f.core.tally.dones, 1,
          "hand-outs and dones do not agree with what is HELD");
    SPOIL(f.core.tally.imported_loans, 1,
          "hand-outs and dones do not agree with what is HELD");
    SPOIL(f.core.loans.oldest, 1, "ages are kept without need");
}

TEST(auditor_sees_a_plug_in_that_lost_a_key)
{
    open_kind((struct core_kind){0}, true);
    SPOIL(f.plug_in.len, 1,
          "the wq_order and the queue differ on what is READY");
}

TEST(auditor_sees_miscounted_bytes)
{
    static const char bytes[] =
        "keys' bytes were miscounted, or are more than the bound allows";

    open_kind((struct core_kind){.max_bytes = 1000}, false);
    SPOIL(f.core.bytes, 1, bytes);
    SPOIL(f.core.max_bytes, 10, bytes);
    SPOIL(f.core.ready.levels.at[0].bytes, 1,
          "the bytes of the levels' READY keys were miscounted");
}

/* ---- lines and deadlines ------------------------------------------------ */

TEST(auditor_sees_a_broken_ready_list)
{
    SPOIL(f.core.ready.levels.at[0].first, ref_of("wait1"),
          "L2: the ready list holds a key that is not READY");
    SPOIL(rec_of("ready2")->next, ref_of("ready1"),
          "L2: a key is in the ready list twice");
    SPOIL(rec_of("ready1")->next, 0, "the ready list was cut");
    SPOIL(f.core.ready.levels.at[0].last, ref_of("ready1"),
          "the ready list was cut");
    SPOIL(rec_of("ready2")->prev, ref_of("wait1"),
          "the ready list does not lead back");
}

TEST(auditor_sees_a_broken_delay_heap)
{
    struct wq__wait  *entries = f.core.waiting.entries;
    static const char disorder[] = "L4: the delay heap is out of order";

    SPOIL(rec_of("wait2")->wait, 1,
          "L5: a deadline and its key do not name each other");
    SPOIL(entries[0].at, 300, disorder);
    SPOIL(entries[1].seq, f.core.waiting.seq + 1,
          "an arrival number from the future");
    SPOIL(f.core.waiting.reserved, 1,
          "an add left a reservation in the delay heap");
    SPOIL(f.core.waiting.base, 1,
          "L5: a deadline and its key do not name each other");
    entries[1].at = entries[0].at;
    entries[0].seq = 2;
    entries[1].seq = 1;
    expect("equal deadlines", disorder);
}

/* ---- priorities --------------------------------------------------------- */

static struct wq__level *
line_of(const char *s)
{
    return &f.core.ready.levels.at[rec_of(s)->level];
}

static struct wq__wait *
entry_of(const char *s)
{
    return wq__heap_entry(&f.core.waiting, ref_of(s));
}

static int
open_priorities(void **state)
{
    (void)open_plain(state);
    play("add high +5 NEW; add low -5 NEW; add wait5 @150 +5 SCHEDULED");
    return 0;
}

TEST(auditor_sees_broken_levels)
{
    static const char holders[] = "the holders of levels were miscounted";

    SPOIL(rec_of("high")->level, rec_of("low")->level,
          "L4: a key is in the list of another priority");
    SPOIL(line_of("high")->dirty, 1, "the levels' keys were miscounted");
    SPOIL(line_of("high")->holders, 3, holders);
    SPOIL(line_of("high")->holders, 1, holders);
    SPOIL(entry_of("wait5")->level, 0, holders);
    SPOIL(line_of("high")->priority, -5,
          "a level cannot be found, or is there twice");
    SPOIL(f.core.ready.levels.at[0].priority, 1,
          "level 0 is not of priority 0");
    SPOIL(f.core.ready.levels.used, 4, "levels were miscounted");
}

TEST(auditor_sees_miscounted_levels_behind_a_plug_in)
{
    f.core.ready.special = WQ__PLUG_IN; /* the lines are not looked at */
    f.core.ready.plug_in = plug_in_order(&f.plug_in);
    f.plug_in.len = f.core.ready.len;
    SPOIL(line_of("high")->len, 2, "the levels' keys were miscounted");
    f.plug_in.len = 0;
    f.core.ready.special = 0;
}

TEST(auditor_sees_a_heap_of_levels_in_disorder)
{
    uint32_t      *heap = f.core.ready.levels.heap;
    const uint32_t first = heap[0], last = heap[2];

    SPOIL(line_of("high")->place, 0,
          "L4: a level with READY keys is not in the heap of levels");
    SPOIL(line_of("high")->place, line_of("low")->place,
          "a level and its place do not name each other");
    heap[0] = last;
    heap[2] = first;
    f.core.ready.levels.at[last].place = 1;
    f.core.ready.levels.at[first].place = 3;
    expect("two levels", "L4: the heap of levels is out of order");
}

/* ---- pace and ages ------------------------------------------------------ */

static int
open_paces(void **state)
{
    (void)open_plain(state);
    play("add quiet throttle=9 NEW; add often debounce=9 SCHEDULED");
    return 0;
}

static struct wq__throttle_state *
pace_of(const char *s)
{
    return wq__slab_at(&f.core.throttle_states, entry_of(s)->throttle);
}

TEST(auditor_sees_a_broken_pace)
{
    static const char forgotten[] =
        "a debounced or throttled key has no throttle state";

    SPOIL(f.core.cooldowns, 0, "COOLDOWN keys were miscounted");
    SPOIL(rec_of("wait1")->flags, WQ__COOLDOWN,
          "COOLDOWN keys were miscounted");
    SPOIL(entry_of("quiet")->throttle, 0, forgotten);
    SPOIL(entry_of("often")->throttle, 0, forgotten);
    SPOIL(f.core.throttle_states.live, 3, "a throttle state was lost");
    SPOIL(entry_of("quiet")->at, 1000,
          "a throttled key will be forgotten before its hand-out");
    SPOIL(pace_of("quiet")->next_cooldown, 0,
          "a cooldown ends at another time than its state says");
    SPOIL(pace_of("often")->next_cooldown, 9,
          "next_cooldown is set, and the key is neither READY nor DIRTY");
    SPOIL(pace_of("quiet")->wait_cooldown, 9,
          "wait_cooldown is set on a COOLDOWN entry");
}

TEST(auditor_sees_a_cooldown_that_holds_a_priority)
{
    play("add wait5 @150 +5 SCHEDULED");
    entry_of("quiet")->level = entry_of("wait5")->level;
    f.core.ready.levels.at[entry_of("wait5")->level].holders++;
    expect("a level", "a key in its cooldown holds a priority");
}

TEST(auditor_sees_loans_whose_ages_are_wrong)
{
    static const char miscounted[] = "the ages of loans were miscounted";

    open_kind((struct core_kind){.ages = true}, false);
    SPOIL(loan_of("dirty")->older, 0, "the list of ages is broken");
    SPOIL(loan_of("held")->newer, 0, miscounted);
    SPOIL(f.core.loans.newest, f.core.loans.oldest, miscounted);
    SPOIL(loan_of("held")->got, 1, miscounted);
    SPOIL(f.core.loans.got_sum, 1, miscounted);
}

TEST(auditor_sees_a_broken_list_by_age)
{
    static const char broken[] = "the list of READY keys by age is broken";
    static const char cut[] = "the list of READY keys by age was cut";

    open_kind((struct core_kind){.serve_after_ns = 1000}, false);
    SPOIL(wq__rec_age(rec_of("ready2"))->older, 0, broken);
    SPOIL(f.core.ready.oldest, ref_of("wait1"), broken);
    SPOIL(wq__rec_age(rec_of("ready1"))->newer, 0, cut);
    SPOIL(f.core.ready.newest, ref_of("ready1"), cut);
    SPOIL(f.core.ready.oldest, 0, cut);
}

/* ---- groups ------------------------------------------------------------- */

static struct wq__member *
member_of(const char *s)
{
    return wq__rec_member(rec_of(s));
}

static struct wq__group *
group_of(const char *s)
{
    return wq__groups_of(&f.core.ready.groups, rec_of(s));
}

/* The keys of open_kind(), and three groups:
 *
 *     level 0    ready1 ready2    a/1 a/2    b/1
 *     level 5                     a/9
 */
static void
open_bounded_groups(size_t max_held)
{
    open_kind((struct core_kind){.grouped = true, .max_held = max_held}, false);
    add_grouped("a/1", 0, 0);
    add_grouped("a/2", 0, 0);
    add_grouped("b/1", 0, 0);
    add_grouped("a/9", 5, 0);
}

static int
open_groups(void **state)
{
    (void)state;
    open_bounded_groups(0);
    return 0;
}

static const char not_blocked[] =
    "a lane of a blocked group is in its ring, or another one is not";

TEST(auditor_sees_a_broken_lane)
{
    SPOIL(rec_of("a/1")->next, ref_of("wait1"),
          "L2: a lane holds a key that is not READY");
    SPOIL(rec_of("a/1")->next, ref_of("a/9"),
          "L4: a key is in the lane of another priority");
    SPOIL(rec_of("a/1")->next, ref_of("b/1"),
          "a key is in the lane of another group");
    SPOIL(rec_of("a/2")->next, ref_of("a/1"), "L2: a key is in its lane twice");
    SPOIL(rec_of("a/2")->prev, ref_of("b/1"), "a lane does not lead back");
    SPOIL(rec_of("a/1")->next, 0, "a lane was cut");
    SPOIL(member_of("a/1")->last, ref_of("a/1"), "a lane was cut");
    SPOIL(member_of("a/1")->len, 3, "a lane was cut");
}

TEST(auditor_sees_a_broken_ring)
{
    SPOIL(member_of("a/1")->next, ref_of("a/1"),
          "a ring of lanes does not lead back");
    SPOIL(member_of("b/1")->prev, ref_of("b/1"),
          "a ring of lanes does not lead back");
    SPOIL(member_of("a/1")->next, 0, not_blocked);
    SPOIL(f.core.ready.levels.at[0].first, 0,
          "L4: a level does not point to its ring of lanes");
}

TEST(auditor_sees_a_blocked_group_in_a_ring)
{
    open_bounded_groups(3); /* of the keys without a group, two are HELD */
    SPOIL(f.core.ready.groups.max_held, 2, not_blocked);
    SPOIL(f.core.ready.groups.max_held, 1,
          "more keys of a group are HELD than the bound allows");
}

TEST(auditor_sees_miscounted_groups)
{
    static const char all[] = "the groups' keys were miscounted";
    static const char one[] = "a group's keys were miscounted";
    static const char kept[] = "a group is kept that has no key";

    SPOIL(group_of("a/1")->ready, 4, all);
    SPOIL(group_of("a/1")->held, 1, all);
    SPOIL(group_of("a/1")->records, 4, all);
    SPOIL(member_of("a/9")->other, 0, one); /* it is in no lane */
    SPOIL(f.core.ready.groups.offers, 1,
          "groups, or what they offer, were miscounted");
    SPOIL(f.core.ready.groups.live, 2,
          "groups, or what they offer, were miscounted");
    SPOIL(group_of("a/1")->hash, group_of("a/1")->hash ^ 1,
          "a group cannot be found, or is there twice");
    SPOIL(group_of("a/1")->number, 77, kept);

    struct wq__group *a = group_of("a/1"), *b = group_of("b/1");
    b->ready++; /* the sum is right */
    a->ready--;
    expect("READY keys of two groups", one);
    a->ready++;
    b->ready--;
    b->records += 3;
    a->records -= 3;
    expect("records of two groups", kept);
    a->records += 3;
    b->records -= 3;
}

#define audit_test(name) test_with(name, open_plain, close_spoiled)
#define levels_test(name) test_with(name, open_priorities, close_spoiled)
#define pace_test(name) test_with(name, open_paces, close_spoiled)
#define groups_test(name) test_with(name, open_groups, close_spoiled)

WQ_TESTS(audit_test(auditor_sees_a_record_with_impossible_states),
         audit_test(auditor_sees_a_record_with_wrong_bytes),
         audit_test(auditor_sees_a_loan_that_is_not_its_keys),
         audit_test(auditor_sees_a_key_that_cannot_be_found),
         audit_test(auditor_sees_a_key_that_is_there_twice),
         audit_test(auditor_sees_numbers_that_do_not_agree),
         audit_test(auditor_sees_a_plug_in_that_lost_a_key),
         audit_test(auditor_sees_miscounted_bytes),
         audit_test(auditor_sees_a_broken_ready_list),
         audit_test(auditor_sees_a_broken_delay_heap),
         levels_test(auditor_sees_broken_levels),
         levels_test(auditor_sees_miscounted_levels_behind_a_plug_in),
         levels_test(auditor_sees_a_heap_of_levels_in_disorder),
         pace_test(auditor_sees_a_broken_pace),
         pace_test(auditor_sees_a_cooldown_that_holds_a_priority),
         audit_test(auditor_sees_loans_whose_ages_are_wrong),
         audit_test(auditor_sees_a_broken_list_by_age),
         groups_test(auditor_sees_a_broken_lane),
         groups_test(auditor_sees_a_broken_ring),
         groups_test(auditor_sees_a_blocked_group_in_a_ring),
         groups_test(auditor_sees_miscounted_groups));
