/* SPDX-License-Identifier: MIT */
/* test_audit.c: does the auditor see what is broken?
 *
 * A test that leans on wq__core_check() is worth as much as the check. Here a
 * sound core is made, one thing in it is spoiled by hand, and the auditor must
 * name that thing; repaired, it must be content again.
 */
#include "support/wq_test.h"

#include <string.h>

#include "core/core.h"
#include "core/inside.h"
#include "unit/lifo.h"

/* A core in which every state occurs:
 *
 *     ready1 ready2   READY          held   HELD
 *     wait1  wait2    WAITING        dirty  HELD+DIRTY
 */
struct fixture {
    struct wq__core core;
    struct lifo     lifo;
    wq_order        order;
};

static struct fixture f;

static void
must(wq_err err)
{
    assert_int_equal(err, WQ_OK);
}

/* By picks, as queues with groups or a bound in bytes do. */
static void
add_picked(const char *s, int priority)
{
    const struct wq__how how = {.priority = priority};
    const wq_key         key = wq_str(s);
    struct wq__pick      pick = {.hash = wq__core_hash(&f.core, key)};

    pick.group = wq_group_before_slash(NULL, key);
    if (pick.group.len)
        pick.group_hash = wq__core_hash(&f.core, pick.group);
    must(wq__core_add_with(&f.core, &how, &key, &pick, 1, NULL, NULL));
}

static void
add(const char *s)
{
    add_picked(s, 0);
}

static void
add_at(const char *s, int64_t at)
{
    wq_added what;
    must(wq__core_add_after(&f.core, wq_str(s),
                            wq__core_hash(&f.core, wq_str(s)), 0, at, false,
                            &what));
}

static bool   keeps_ages;    /* the next core does */
static bool   has_groups;    /* likewise; all keys are of one group */
static size_t max_held;      /* of which so many may be HELD */
static bool   serves_oldest; /* likewise: ageing */
static size_t max_bytes;     /* likewise */

static void
open_with(const wq_order *order)
{
    const struct wq__hash_key secret = {.k0 = 1, .k1 = 2, .mask = UINT32_MAX};
    wq_item                  *item;

    wq__core_init(&f.core, secret, order, NULL);
    if (keeps_ages)
        wq__core_keep_ages(&f.core);
    if (has_groups)
        wq__core_have_groups(&f.core, max_held);
    if (serves_oldest)
        wq__core_serve_after(&f.core, 1000);
    if (max_bytes)
        wq__core_bound_bytes(&f.core, max_bytes);
    add("held");
    must(wq__core_get(&f.core, 0, &item));
    add("dirty");
    must(wq__core_get(&f.core, 0, &item));
    add("dirty");
    add("ready1");
    add("ready2");
    add_at("wait1", 100);
    add_at("wait2", 200);
    assert_null(wq__core_check(&f.core));
}

static int
open_core(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    open_with(NULL);
    return 0;
}

static int
close_core(void **state)
{
    (void)state;
    wq__core_fini(&f.core);
    return 0;
}

static wq__ref
ref_of(const char *s)
{
    const wq__ref ref = wq__index_find(&f.core.index, wq_str(s),
                                       wq__core_hash(&f.core, wq_str(s)));
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
    const wq__ref ref = ref_of(s);
    for (size_t i = 0; i < f.core.index.cap; i++)
        if (f.core.index.slots[i].ref == ref)
            return &f.core.index.slots[i];
    fail_msg("%s has no slot", s);
    return NULL;
}

static void
expect(const char *message)
{
    const char *broken = wq__core_check(&f.core);
    assert_non_null(broken);
    assert_string_equal(broken, message);
}

/* Spoil `place` by giving it `value`, see `message`, repair. */
#define SPOIL(place, value, message)                                           \
    do {                                                                       \
        __typeof__(place) *const spoilt = &(place);                            \
        const __typeof__(place)  saved = *spoilt;                              \
        *spoilt = (__typeof__(place))(value);                                  \
        expect(message);                                                       \
        *spoilt = saved;                                                       \
        assert_null(wq__core_check(&f.core));                                  \
    } while (0)

TEST(auditor_sees_a_key_ready_and_held)
{
    SPOIL(rec_of("held")->flags, WQ__HELD | WQ__READY,
          "L2: a key is READY and HELD");
}

TEST(auditor_sees_a_key_dirty_but_not_held)
{
    SPOIL(rec_of("ready1")->flags, WQ__READY | WQ__DIRTY,
          "a key is DIRTY but not HELD");
}

TEST(auditor_sees_a_record_without_any_state)
{
    SPOIL(rec_of("ready1")->flags, 0, "a record without any state was kept");
}

TEST(auditor_sees_a_wrong_hash_in_the_record)
{
    SPOIL(rec_of("ready1")->hash, 12345, "a record's hash is not its key's");
}

TEST(auditor_sees_a_loan_that_names_no_record)
{
    SPOIL(loan_of("held")->rec, 0,
          "L1: a HELD key and its loan do not name each other");
}

TEST(auditor_sees_a_loan_that_names_another_record)
{
    SPOIL(loan_of("held")->rec, ref_of("dirty"),
          "L1: a HELD key and its loan do not name each other");
}

TEST(auditor_sees_two_keys_on_one_loan)
{
    SPOIL(rec_of("held")->next, rec_of("dirty")->next,
          "L1: a HELD key and its loan do not name each other");
}

TEST(auditor_sees_a_held_key_without_a_loan)
{
    SPOIL(rec_of("held")->next, 0,
          "L1: a HELD key and its loan do not name each other");
}

TEST(auditor_sees_a_loan_with_the_slot_of_another)
{
    SPOIL(loan_of("held")->item.slot, 1,
          "L1: a HELD key and its loan do not name each other");
}

TEST(auditor_sees_a_loan_that_shows_another_key)
{
    SPOIL(loan_of("held")->item.key.data, "held",
          "a loan shows another key than its record's");
    SPOIL(loan_of("held")->item.key.len, 3,
          "a loan shows another key than its record's");
}

TEST(auditor_sees_a_fence_from_the_future)
{
    SPOIL(loan_of("held")->item.fence, f.core.fence + 1,
          "a fence from the future");
}

TEST(auditor_sees_a_wrong_hash_in_the_slot)
{
    SPOIL(slot_of("ready1")->hash, slot_of("ready1")->hash ^ 0x80000000U,
          "a slot's hash is not its record's");
}

/* Is `ready1` beyond the reach of a search when its slot is moved to `i`? */
static bool
is_lost_at(size_t i)
{
    struct wq__slot *slot = slot_of("ready1"), *there = &f.core.index.slots[i];

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

    while (i < f.core.index.cap && !is_lost_at(i))
        i++;
    assert_true(i < f.core.index.cap);
    expect("a key cannot be found, or is there twice");
}

TEST(auditor_sees_a_key_that_is_there_twice)
{
    struct wq__slot *slot = slot_of("ready2");
    struct wq__rec  *rec = rec_of("ready2");

    memcpy(rec->bytes, "ready1", 6);
    rec->hash = rec_of("ready1")->hash;
    slot->hash = rec->hash;
    expect("a key cannot be found, or is there twice");
}

TEST(auditor_sees_an_index_that_lost_a_key)
{
    SPOIL(f.core.index.len, f.core.index.len + 1,
          "index and records differ in number");
}

TEST(auditor_sees_a_record_that_the_index_does_not_know)
{
    SPOIL(f.core.recs.live, f.core.recs.live + 1,
          "index and records differ in number");
}

TEST(auditor_sees_miscounted_held_keys)
{
    SPOIL(f.core.loans.live, 1, "L1: HELD keys and loans differ in number");
}

TEST(auditor_sees_a_loan_of_nobody)
{
    SPOIL(f.core.loans.live, 3, "L1: HELD keys and loans differ in number");
}

TEST(auditor_sees_miscounted_dirty_keys)
{
    SPOIL(f.core.dirty, 0, "DIRTY keys were miscounted");
}

TEST(auditor_sees_miscounted_ready_keys)
{
    SPOIL(f.core.ready.len, 1, "READY keys were miscounted");
}

TEST(auditor_sees_a_deadline_too_few)
{
    SPOIL(f.core.waiting.len, 1,
          "L5: WAITING keys and deadlines differ in number");
}

TEST(auditor_sees_a_key_in_line_that_is_not_ready)
{
    SPOIL(f.core.ready.levels.at[0].first, ref_of("wait1"),
          "L2: the ready list holds a key that is not READY");
}

TEST(auditor_sees_a_key_twice_in_line)
{
    SPOIL(rec_of("ready2")->next, ref_of("ready1"),
          "L2: a key is in the ready list twice");
}

TEST(auditor_sees_a_line_that_was_cut)
{
    SPOIL(rec_of("ready1")->next, 0, "the ready list was cut");
    SPOIL(f.core.ready.levels.at[0].last, ref_of("ready1"),
          "the ready list was cut");
}

TEST(auditor_sees_a_deadline_and_a_key_that_disagree)
{
    SPOIL(rec_of("wait2")->wait, 1,
          "L5: a deadline and its key do not name each other");
}

TEST(auditor_sees_deadlines_out_of_order)
{
    SPOIL(f.core.waiting.entries[0].at, 300,
          "L4: the delay heap is out of order");
}

TEST(auditor_sees_equal_deadlines_out_of_order)
{
    struct wq__wait *entries = f.core.waiting.entries;

    entries[1].at = entries[0].at;
    entries[0].seq = 2;
    entries[1].seq = 1;
    expect("L4: the delay heap is out of order");
}

TEST(auditor_sees_an_arrival_from_the_future)
{
    SPOIL(f.core.waiting.entries[1].seq, f.core.waiting.seq + 1,
          "an arrival number from the future");
}

/* ---- priorities --------------------------------------------------------- */

static uint32_t
level_of(const char *s)
{
    return rec_of(s)->level;
}

static struct wq__level *
line_of(const char *s)
{
    return &f.core.ready.levels.at[level_of(s)];
}

static struct wq__wait *
entry_of(const char *s)
{
    return wq__heap_entry(&f.core.waiting, ref_of(s));
}

static void
add_how(const char *s, struct wq__how how)
{
    const wq_key    key = wq_str(s);
    struct wq__pick pick = {.hash = wq__core_hash(&f.core, key), .at = 150};

    must(wq__core_add_with(&f.core, &how, &key, &pick, 1, NULL, NULL));
    assert_null(wq__core_check(&f.core));
}

static void
add_priorities(void)
{
    add_how("high", (struct wq__how){.priority = 5});
    add_how("low", (struct wq__how){.priority = -5});
    add_how("wait5", (struct wq__how){.kind = WQ__ADD_AT, .priority = 5});
}

TEST(auditor_sees_a_key_in_the_line_of_another_priority)
{
    add_priorities();
    SPOIL(rec_of("high")->level, level_of("low"),
          "L4: a key stands in another priority's line");
}

TEST(auditor_sees_a_line_that_does_not_lead_back)
{
    SPOIL(rec_of("ready2")->prev, ref_of("wait1"),
          "the ready list does not lead back");
}

TEST(auditor_sees_levels_that_count_too_many)
{
    add_priorities();
    SPOIL(line_of("high")->dirty, 1, "the levels' keys were miscounted");
    f.core.ready.special = WQ__PLUG_IN; /* the lines are not looked at */
    f.core.ready.plug_in = lifo_order(&f.lifo);
    f.lifo.len = f.core.ready.len;
    SPOIL(line_of("high")->len, 2, "the levels' keys were miscounted");
    f.core.ready.special = 0;
}

TEST(auditor_sees_a_level_that_nobody_holds_or_somebody_lost)
{
    add_priorities();
    SPOIL(line_of("high")->holders, 3,
          "a level is held by nobody, or not by somebody");
    SPOIL(line_of("high")->holders, 1,
          "a level is held by nobody, or not by somebody");
    SPOIL(entry_of("wait5")->level, 0,
          "a level is held by nobody, or not by somebody");
}

TEST(auditor_sees_levels_that_cannot_be_found)
{
    add_priorities();
    SPOIL(line_of("high")->priority, -5,
          "a level cannot be found, or is there twice");
    SPOIL(f.core.ready.levels.at[0].priority, 1,
          "level 0 is not of priority 0");
}

TEST(auditor_sees_a_heap_of_levels_in_disorder)
{
    add_priorities();
    uint32_t      *heap = f.core.ready.levels.heap;
    const uint32_t first = heap[0], last = heap[2];

    SPOIL(line_of("high")->place, 0,
          "L4: a line with READY keys is not in the heap of levels");
    SPOIL(line_of("high")->place, line_of("low")->place,
          "a level and its place do not name each other");
    heap[0] = last;
    heap[2] = first;
    f.core.ready.levels.at[last].place = 1;
    f.core.ready.levels.at[first].place = 3;
    expect("L4: the heap of levels is out of order");
}

TEST(auditor_sees_miscounted_levels)
{
    add_priorities();
    SPOIL(f.core.ready.levels.used, 4, "levels were miscounted");
}

/* ---- pace --------------------------------------------------------------- */

static void
add_paces(void)
{
    add_how("quiet", (struct wq__how){.kind = WQ__ADD_THROTTLE, .span = 9});
    add_how("often", (struct wq__how){.kind = WQ__ADD_DEBOUNCE, .span = 9});
}

static struct wq__pace *
pace_of(const char *s)
{
    return wq__slab_at(&f.core.paces, entry_of(s)->pace);
}

TEST(auditor_sees_a_debounce_without_a_deadline)
{
    SPOIL(rec_of("ready1")->flags, WQ__READY | WQ__DEBOUNCED,
          "a key has a backoff or a debounce but no deadline");
    SPOIL(rec_of("ready1")->flags, WQ__READY | WQ__BACKOFF,
          "a key has a backoff or a debounce but no deadline");
}

TEST(auditor_sees_a_key_left_alone_for_no_time)
{
    SPOIL(rec_of("ready1")->flags, WQ__READY | WQ__QUIET,
          "a key is to be left alone, for no time");
}

TEST(auditor_sees_miscounted_quiet_keys)
{
    add_paces();
    SPOIL(f.core.quiet, 0, "QUIET keys were miscounted");
    SPOIL(rec_of("wait1")->flags, WQ__QUIET, "QUIET keys were miscounted");
}

TEST(auditor_sees_a_pace_that_was_lost)
{
    add_paces();
    SPOIL(entry_of("quiet")->pace, 0,
          "a key has a pace, and nothing is remembered about it");
    SPOIL(entry_of("often")->pace, 0,
          "a key has a pace, and nothing is remembered about it");
    SPOIL(f.core.paces.live, 3, "what is remembered about a pace was lost");
}

TEST(auditor_sees_a_throttle_that_ends_too_early)
{
    add_paces();
    SPOIL(entry_of("quiet")->at, 1000,
          "a throttled key will be forgotten before its hand-out");
    SPOIL(pace_of("quiet")->next_span, 0,
          "a key is left alone until another time than remembered");
}

TEST(auditor_sees_a_quiet_time_after_a_run_that_never_comes)
{
    add_paces();
    SPOIL(pace_of("often")->next_span, 9,
          "next_span is set, and the key is neither READY nor DIRTY");
    SPOIL(pace_of("quiet")->wait_span, 9, "wait_span is set on a QUIET entry");
}

TEST(auditor_sees_a_quiet_key_that_holds_a_priority)
{
    add_paces();
    add_how("wait5", (struct wq__how){.kind = WQ__ADD_AT, .priority = 5});
    entry_of("quiet")->level = entry_of("wait5")->level;
    f.core.ready.levels.at[entry_of("wait5")->level].holders++;
    expect("a key that is left alone holds a priority");
    f.core.ready.levels.at[entry_of("wait5")->level].holders--;
    entry_of("quiet")->level = 0;
}

TEST(auditor_sees_room_that_was_not_given_up)
{
    SPOIL(f.core.waiting.reserved, 1,
          "an add has kept room in the delay heap for itself");
}

TEST(auditor_sees_the_mark_of_an_add)
{
    SPOIL(rec_of("ready1")->flags, WQ__READY | WQ__PICKED,
          "an add has left its mark");
}

/* ---- numbers and ages --------------------------------------------------- */

TEST(auditor_sees_a_bound_that_was_passed)
{
    SPOIL(f.core.max_len, 5, "there are more keys than the bound allows");
}

TEST(auditor_sees_keys_that_were_not_counted)
{
    SPOIL(f.core.tally.adds, 4,
          "L3: keys that were added got lost, or came twice");
    SPOIL(f.core.tally.removed, 1,
          "L3: keys that were added got lost, or came twice");
    SPOIL(f.core.tally.dones, 1,
          "hand-outs and dones do not agree with what is HELD");
}

TEST(auditor_sees_a_stamp_without_need)
{
    SPOIL(f.core.prefix, 8, "a record has other parts than the others");
    SPOIL(f.core.loans.oldest, 1, "ages are kept without need");
}

TEST(auditor_sees_loans_whose_ages_are_wrong)
{
    wq__core_fini(&f.core);
    keeps_ages = true;
    open_with(NULL);
    keeps_ages = false;
    SPOIL(loan_of("dirty")->older, 0, "the list of ages is broken");
    SPOIL(loan_of("held")->newer, 0, "the ages of loans were miscounted");
    SPOIL(f.core.loans.newest, f.core.loans.oldest,
          "the ages of loans were miscounted");
    SPOIL(loan_of("held")->got, 1, "the ages of loans were miscounted");
    SPOIL(f.core.loans.got_sum, 1, "the ages of loans were miscounted");
}

TEST(auditor_sees_a_plug_in_that_lost_a_key)
{
    wq__core_fini(&f.core);
    f.order = lifo_order(&f.lifo);
    open_with(&f.order);
    SPOIL(f.lifo.len, 1, "the wq_order and the queue differ on what is READY");
}

/* ---- groups, ageing and bytes ------------------------------------------- */

/* Another core, of a special kind. */
static void
reopen(void)
{
    wq__core_fini(&f.core);
    open_with(NULL);
    has_groups = serves_oldest = false;
    max_held = max_bytes = 0;
}

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

/* The keys of open_with(), and three groups:
 *
 *     level 0    ready1 ready2    a/1 a/2    b/1
 *     level 5                     a/9
 */
static void
open_groups(size_t bound)
{
    has_groups = true;
    max_held = bound;
    reopen();
    add("a/1");
    add("a/2");
    add("b/1");
    add_picked("a/9", 5);
    assert_null(wq__core_check(&f.core));
}

TEST(auditor_sees_a_lane_with_wrong_keys)
{
    open_groups(0);
    SPOIL(rec_of("a/1")->next, ref_of("wait1"),
          "L2: a lane holds a key that is not READY");
    SPOIL(rec_of("a/1")->next, ref_of("a/9"),
          "L4: a key stands in another priority's lane");
    SPOIL(rec_of("a/1")->next, ref_of("b/1"),
          "a key stands in another group's lane");
    SPOIL(rec_of("a/2")->next, ref_of("a/1"), "L2: a key is in its lane twice");
    SPOIL(rec_of("a/2")->prev, ref_of("b/1"), "a lane does not lead back");
}

TEST(auditor_sees_a_lane_that_was_cut)
{
    open_groups(0);
    SPOIL(rec_of("a/1")->next, 0, "a lane was cut");
    SPOIL(member_of("a/1")->last, ref_of("a/1"), "a lane was cut");
    SPOIL(member_of("a/1")->len, 3, "a lane was cut");
}

TEST(auditor_sees_a_ring_that_is_broken)
{
    open_groups(0);
    SPOIL(member_of("a/1")->next, ref_of("a/1"),
          "a ring of lanes does not lead back");
    SPOIL(member_of("b/1")->prev, ref_of("b/1"),
          "a ring of lanes does not lead back");
    SPOIL(member_of("a/1")->next, 0,
          "a lane is in its ring although its group is blocked, or not");
    SPOIL(f.core.ready.levels.at[0].first, 0, "L4: no lane of a ring is next");
}

TEST(auditor_sees_a_blocked_group_in_a_ring)
{
    open_groups(3); /* of the keys without a group, two are HELD */
    SPOIL(f.core.ready.groups.max_held, 2,
          "a lane is in its ring although its group is blocked, or not");
    SPOIL(f.core.ready.groups.max_held, 1,
          "more keys of a group are HELD than the bound allows");
}

TEST(auditor_sees_miscounted_groups)
{
    open_groups(0);
    SPOIL(group_of("a/1")->ready, 4, "the groups' keys were miscounted");
    SPOIL(group_of("a/1")->held, 1, "the groups' keys were miscounted");
    SPOIL(group_of("a/1")->records, 4, "the groups' keys were miscounted");
    group_of("b/1")->ready++; /* the sum is right */
    group_of("a/1")->ready--;
    expect("a group's keys were miscounted");
    group_of("a/1")->ready++;
    group_of("b/1")->ready--;
}

TEST(auditor_sees_keys_of_a_group_in_no_lane)
{
    open_groups(0);
    SPOIL(member_of("a/9")->other, 0, "a group's keys were miscounted");
}

TEST(auditor_sees_offers_that_are_wrong)
{
    open_groups(0);
    SPOIL(f.core.ready.groups.offers, 1,
          "groups, or what they offer, were miscounted");
    SPOIL(f.core.ready.groups.live, 2,
          "groups, or what they offer, were miscounted");
}

TEST(auditor_sees_a_group_that_cannot_be_found)
{
    open_groups(0);
    SPOIL(group_of("a/1")->hash, group_of("a/1")->hash ^ 1,
          "a group cannot be found, or is there twice");
    SPOIL(group_of("a/1")->number, 77, "a group is kept that has no key");
    group_of("b/1")->records += 3; /* the sum is right */
    group_of("a/1")->records -= 3;
    expect("a group is kept that has no key");
    group_of("a/1")->records += 3;
    group_of("b/1")->records -= 3;
}

TEST(auditor_sees_a_list_by_age_that_is_broken)
{
    serves_oldest = true;
    reopen();
    SPOIL(wq__rec_age(rec_of("ready2"))->older, 0,
          "the list of READY keys by age is broken");
    SPOIL(f.core.ready.oldest, ref_of("wait1"),
          "the list of READY keys by age is broken");
    SPOIL(wq__rec_age(rec_of("ready1"))->newer, 0,
          "the list of READY keys by age was cut");
    SPOIL(f.core.ready.newest, ref_of("ready1"),
          "the list of READY keys by age was cut");
    SPOIL(f.core.ready.oldest, 0, "the list of READY keys by age was cut");
}

TEST(auditor_sees_miscounted_bytes)
{
    max_bytes = 1000;
    reopen();
    SPOIL(f.core.bytes, 1,
          "keys' bytes were miscounted, or are more than the bound allows");
    SPOIL(f.core.max_bytes, 10,
          "keys' bytes were miscounted, or are more than the bound allows");
    SPOIL(f.core.ready.levels.at[0].bytes, 1,
          "the bytes of the levels' READY keys were miscounted");
}

TEST(auditor_sees_a_key_without_its_nul)
{
    struct wq__rec *rec = rec_of("ready1");

    SPOIL(wq__rec_key_at(rec)[6], 'x', "no NUL follows a key");
}

#define audit_test(name) test_with(name, open_core, close_core)

WQ_TESTS(audit_test(auditor_sees_a_key_ready_and_held),
         audit_test(auditor_sees_a_key_dirty_but_not_held),
         audit_test(auditor_sees_a_record_without_any_state),
         audit_test(auditor_sees_a_wrong_hash_in_the_record),
         audit_test(auditor_sees_a_loan_that_names_no_record),
         audit_test(auditor_sees_a_loan_that_names_another_record),
         audit_test(auditor_sees_two_keys_on_one_loan),
         audit_test(auditor_sees_a_held_key_without_a_loan),
         audit_test(auditor_sees_a_loan_with_the_slot_of_another),
         audit_test(auditor_sees_a_loan_that_shows_another_key),
         audit_test(auditor_sees_a_fence_from_the_future),
         audit_test(auditor_sees_a_wrong_hash_in_the_slot),
         audit_test(auditor_sees_a_key_that_cannot_be_found),
         audit_test(auditor_sees_a_key_that_is_there_twice),
         audit_test(auditor_sees_an_index_that_lost_a_key),
         audit_test(auditor_sees_a_record_that_the_index_does_not_know),
         audit_test(auditor_sees_miscounted_held_keys),
         audit_test(auditor_sees_a_loan_of_nobody),
         audit_test(auditor_sees_miscounted_dirty_keys),
         audit_test(auditor_sees_miscounted_ready_keys),
         audit_test(auditor_sees_a_deadline_too_few),
         audit_test(auditor_sees_a_key_in_line_that_is_not_ready),
         audit_test(auditor_sees_a_key_twice_in_line),
         audit_test(auditor_sees_a_line_that_was_cut),
         audit_test(auditor_sees_a_deadline_and_a_key_that_disagree),
         audit_test(auditor_sees_deadlines_out_of_order),
         audit_test(auditor_sees_equal_deadlines_out_of_order),
         audit_test(auditor_sees_an_arrival_from_the_future),
         audit_test(auditor_sees_a_key_in_the_line_of_another_priority),
         audit_test(auditor_sees_a_line_that_does_not_lead_back),
         audit_test(auditor_sees_levels_that_count_too_many),
         audit_test(auditor_sees_a_level_that_nobody_holds_or_somebody_lost),
         audit_test(auditor_sees_levels_that_cannot_be_found),
         audit_test(auditor_sees_a_heap_of_levels_in_disorder),
         audit_test(auditor_sees_miscounted_levels),
         audit_test(auditor_sees_a_debounce_without_a_deadline),
         audit_test(auditor_sees_a_key_left_alone_for_no_time),
         audit_test(auditor_sees_miscounted_quiet_keys),
         audit_test(auditor_sees_a_pace_that_was_lost),
         audit_test(auditor_sees_a_throttle_that_ends_too_early),
         audit_test(auditor_sees_a_quiet_time_after_a_run_that_never_comes),
         audit_test(auditor_sees_a_quiet_key_that_holds_a_priority),
         audit_test(auditor_sees_room_that_was_not_given_up),
         audit_test(auditor_sees_the_mark_of_an_add),
         audit_test(auditor_sees_a_bound_that_was_passed),
         audit_test(auditor_sees_keys_that_were_not_counted),
         audit_test(auditor_sees_a_stamp_without_need),
         audit_test(auditor_sees_loans_whose_ages_are_wrong),
         audit_test(auditor_sees_a_plug_in_that_lost_a_key),
         audit_test(auditor_sees_a_lane_with_wrong_keys),
         audit_test(auditor_sees_a_lane_that_was_cut),
         audit_test(auditor_sees_a_ring_that_is_broken),
         audit_test(auditor_sees_a_blocked_group_in_a_ring),
         audit_test(auditor_sees_miscounted_groups),
         audit_test(auditor_sees_keys_of_a_group_in_no_lane),
         audit_test(auditor_sees_offers_that_are_wrong),
         audit_test(auditor_sees_a_group_that_cannot_be_found),
         audit_test(auditor_sees_a_list_by_age_that_is_broken),
         audit_test(auditor_sees_miscounted_bytes),
         audit_test(auditor_sees_a_key_without_its_nul));
