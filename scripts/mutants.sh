#!/bin/sh
# SPDX-License-Identifier: MIT
# Do the tests notice when a mechanism is broken? Breaks one at a time, in a
# copy below build/mutants, and expects a test to fail.
#
#     mutants.sh [NAME...]    only these
#     mutants.sh --check      only check that every row of the table applies
#
# A mutant is a row of the table: its name, the file, the test program that is
# expected to fail (it runs first; then all others), and a sed command that must
# change the file: a row that changes nothing is an error at the start. Prints a
# row of a Markdown table for each. Fails if a mutant survives.
set -eu
cd "$(dirname "$0")/.."

table='
exclusion      src/core/core.c       unit_core              s/^    if (rec->flags & WQ__HELD) {/    if (0) {/
dirty          src/core/core.c       unit_core              s/^    if (rec->flags & (WQ__DIRTY | WQ__REMOVING)) {/    if (0) {/
merge          src/core/core.c       unit_core              s/^    if (wq__rec_is_pending(rec)) {/    if (0) {/
respect        src/core/core.c       scenario_retry_options s/if (wq__core_respects_backoff(c, rec)) {/if (0) {/
deferred       src/core/add.c        unit_add               s/tally.deferred++/tally.displaced++/
deferred-done  src/core/core.c       unit_add               s/tally.deferred++/tally.displaced++/
sooner         src/core/add.c        scenario_delay         s/if (at >= wq__core_entry(c, ref)->at/if (at < wq__core_entry(c, ref)->at/
stale-done     src/core/loans.h      unit_loans             s/ == item \&\& loan->rec ? loan/ == item ? loan/
loan-foreign   src/core/loans.h      unit_loans             s/return &loan->item == item \&\& loan->rec/return loan->rec/
loan-fresh     src/core/loans.h      unit_loans             s/item->loan >= l->fresh)/item->loan >= l->limit)/
loan-again     src/core/loans.h      unit_loans             s/l->ended = loan->older ? wq__loans_at(l, loan->older) : NULL;/l->ended = NULL;/
raise-place    src/core/ready.c      unit_ready             s/^        take_out(r, ref);$/        (void)0;/
level-order    src/core/levels.c     unit_levels            s/priority > l->at/priority < l->at/
level-hold     src/core/core.c       unit_levels            s/^    wq__levels_hold(levels, level);/    (void)0;/
lazy-top       src/core/levels.h     unit_levels            s/return l->at\[top\].first ? top/return 1 ? top/
batch-undo     src/core/add.c        fault_core_adds        s/^        free_unused_records(c, prepared, n);/        (void)0;/
batch-undo2    src/core/core.c       fault_core_adds        s/^    while (err \&\& i-- > 0)/    while (0)/
batch-twice    src/core/core.c       fault_core_adds        s/^        if (adds\[i\].made)/        if (1)/
seed-fork      src/limit/secret.c    fault_random           s/ || source.forks != forks//
seed-number    src/limit/secret.c    fault_random           s/source.used++/source.used/
spare-larger   src/core/slab.c       unit_slab              s/^        if (b->bytes <= c->spare->bytes) {/        if (1) {/
spare-next     src/core/slab.c       unit_slab              s/if (c->spare \&\& wanted < 2 \* c->spare->bytes)/if (0)/
slab-sizes     src/core/slab.c       behaviour_memory       s/CLASSES_STEP = WQ_DEBUG ? 1 : 8/CLASSES_STEP = 41/
victim         src/core/capacity.c       scenario_bounds        s/while (ref \&\& wq__core_rec(c, ref)->flags & WQ__NAMED)/while (0)/
group-turn     src/core/groups.c     unit_groups            s/^    l->first = member(g, ref)->next; .*/    (void)l;/
group-behind   src/core/groups.c     unit_groups            s/^        member(g, m->next)->prev = head;/        member(g, m->next)->prev = level->first = head;/
group-head     src/core/groups.c     unit_groups            s/^        level->first = new;/        (void)level;/
group-lane     src/core/groups.c     unit_groups            s/^    member(g, head)->len--;/    (void)0;/
group-block    src/core/groups.c     unit_groups            /^block(/,/^}/s/^        leave_ring(g, head);/        (void)head;/
group-unblock  src/core/groups.c     unit_groups            s/^        unblock(g, group);/        (void)unblock;/
group-begin    src/core/groups.c     unit_groups            s/^    if (!wq__groups_is_blocked(g, group))/    if (1)/
group-offers   src/core/groups.c     unit_groups            s/return group->ready < more ? group->ready : more;/return group->ready;/
group-wake     src/memory/gate.c     scenario_groups_held   s/^    return wq__core_offers(&m->core) + (pending/    return wq__core_len(\&m->core) + (pending/
group-gets     src/memory/stop.c     scenario_groups_held   s/WQ__PAUSED | WQ__GROUPED | WQ__AGEING/WQ__PAUSED/
group-longest  src/core/capacity.c       scenario_bounds_bytes  s/if (len > most \&\& unnamed_in_lane(s, g->at\[i\])) {/if (len \&\& unnamed_in_lane(s, g->at[i])) {/
group-name     src/core/groups.c     unit_groups            s/(!name.len || !memcmp(group->name, name.data, name.len))/true/
group-again    src/core/groups.c     unit_groups            s/\.number = g->spares ? g->spare\[--g->spares\] : g->fresh++/.number = g->fresh++/
group-grow     src/core/groups.c     unit_groups            s/^            enter_bucket(&more, more.at\[i\]);/            (void)more;/
group-undo     src/core/core.c       fault_core_groups      /^register_record(/,/^}/s/^            return err;/            return WQ_OK;/
group-part     src/memory/adds.c     behaviour_groups       s/^           at - from <= whole.len - part.len;/           true;/
group-shown    src/memory/view.c     behaviour_groups       s/ || !prepared.group.len)/)/
overdue        src/core/ready.c      scenario_ageing        s/->ready, now) >=$/->ready, now) >/
overdue-count  src/core/ready.c      scenario_ageing        s/r->overdue += top->first != ref;/r->overdue += ref != 0;/
age-list       src/core/ready.c      unit_groups            s/^        take_out_by_age(r, rec);/        (void)take_out_by_age;/
age-middle     src/core/ready.c      unit_groups            s/^        wq__rec_age(record(r, age.newer))->older = age.older;/        (void)age;/
age-deadline   src/core/due.c        scenario_ageing        s/wq__core_request_run(c, ref, entry->level, entry->at, &what)/wq__core_request_run(c, ref, entry->level, now, \&what)/
bytes-back     src/core/core.c       scenario_bounds_bytes  s/^        c->bytes -= wq__rec_len(rec);/        (void)rec;/
bytes-level    src/core/ready.c      scenario_bounds_bytes  s/^        r->levels.at\[rec->level\].bytes -= wq__rec_len(rec);/        (void)rec;/
bytes-raise    src/core/ready.c      scenario_bounds_bytes  s/^        levels\[level\].bytes += wq__rec_len(rec);/        (void)level;/
bytes-excess   src/core/capacity.c       scenario_bounds_bytes  s/over.bytes = c->bytes - c->max_bytes;/over.bytes = 1;/
bytes-fit      src/core/capacity.c       scenario_bounds_bytes  s/(!c->max_bytes || made.bytes <= c->max_bytes)/true/
bytes-named    src/core/capacity.c       scenario_bounds_bytes  s/^                sum.bytes -= wq__rec_len(rec);/                (void)rec;/
bytes-promise  src/memory/gate.c     scenario_bounds_bytes  s/^    m->promised.bytes -= p.promised.bytes;/    (void)0;/
bytes-room     src/memory/gate.c     scenario_bounds_bytes  s/^        left.bytes -= p->needs.bytes;/        (void)p;/
flush-backoff  src/core/due.c        scenario_waiting       s/if (!backoffs \&\& !wq__rec_covers_add(rec))/if (0)/
flush-all      src/memory/stop.c     scenario_waiting       s/m->waiting == WQ_WAITING_FLUSH_ALL);/false);/
flush-order    src/core/due.c        scenario_waiting       s/wq__heap_first(&c->waiting)->ref;$/c->waiting.entries[c->waiting.len - 1].ref;/
flush-refused  src/core/due.c        behaviour_delay        /^wq__core_flush_waiting(/,/^}/s/wq__heap_change(&c->waiting, ref, WQ_FOREVER);/(void)ref;/
flush-again    src/core/due.c        behaviour_delay        /^wq__core_flush_waiting(/,/^}/s/i < c->waiting.len; i++)/i < 0 * c->waiting.len; i++)/
nul            src/core/core.c       unit_core              s/^    at\[key.len\] = .*/    (void)at;/
nul-long       src/core/core.c       fault_core             s/^    copy\[key.len\] = .*/    (void)copy;/
quiet          src/core/core.c       scenario_throttle      s/state->cooldown_until = wq__span_add(now, state->next_cooldown);/state->cooldown_until = now;/
max-wait       src/core/add.c        scenario_debounce      s/earlier(at, wq__core_throttle_state(c, ref)->latest)/at/
ties           src/core/heap.h       unit_heap              s/a->seq < b->seq/a->seq > b->seq/
heap-base      src/core/heap.c       unit_heap              s/^        h->base++;/        (void)0;/
heap-sorted    src/core/heap.c       unit_heap              s/^        h->is_sorted = false;$/        (void)0;/
heap-changed   src/core/heap.c       unit_heap              s/^    h->is_sorted = h->len == 1;/    (void)0;/
heap-front     src/core/heap.c       unit_heap              s/^    if (n > h->cap - gone(h) - h->len)/    if (0)/
heap-number    src/core/heap.c       unit_heap              s/^    wq__radix_sort(h->entries, h->len);/    wq__radix_sort(h->entries, h->len); h->is_sorted = true; return;/
radix-sign     src/core/radix.c      unit_radix             s/(uint64_t)e->at ^ (UINT64_C(1) << 63)/(uint64_t)e->at/
radix-arrival  src/core/radix.c      unit_radix             s/const uint64_t differ = at ? at : seq;/const uint64_t differ = at; (void)seq;/
index-hole     src/core/index.c      unit_index             s/>= ((i - hole)/> ((i - hole)/
index-place    src/core/index.h      unit_index             s/^        place->slot = wq__segment_place_for(place->segment, ix->cap, hash);/        (void)hash;/
index-shrink   src/core/index.c      unit_memory            s/ix->few = cap > CAP_KEPT .*;/ix->few = 0;/
index-run      src/core/index.c      unit_index             s/^    while (s->slots\[begin\].ref)/    while (begin + 1 < cap \&\& !s->slots[begin].ref)/
index-bit      src/core/index.c      unit_index             s/put(slot.hash & bit ? to : s, cap, slot);/put(s->len \& 1 ? to : s, cap, slot);/
index-halve    src/core/index.c      unit_index             s/^        ix->deepest -= 2;/        ix->deepest -= 1;/
index-sparse   src/core/index.c      unit_index             s/^    return ix->len .* < entries(ix);/    return ix->len > SIZE_MAX - entries(ix);/
index-other    src/core/index.c      unit_index             s/ || other->len >= ix->few)/)/
hash-length    src/core/hash.c       unit_hash              s/multiply(n\[FOR_LEN\] + len,/multiply(n[FOR_LEN],/
hash-end       src/core/hash.c       unit_hash              s/return sum + pair(n + 2, end - 16);/return sum;/
give-back      src/core/slab.c       unit_slab              s/if (c->spare \&\& c->spare->live == 0) {/if (0) {/
spare          src/core/slab.c       unit_slab              s/if (c->spare \&\& c->spare->live == 0) {/if (c->blocks > 1) {/
walk           src/core/slab.c       unit_slab              s/<< UNIT_BITS | unit;$/<< UNIT_BITS;/
nap-begin      src/memory/gate.c     unit_patience          /^leaves_to_others(/,/^}/s/^        begin_nap(m, .*/        (void)begin_nap;/
nap-watched    src/memory/gate.c     unit_patience          s/return next < m->patience.nap_ends_ns ? next : m->patience.nap_ends_ns;/return next;/
nap-end        src/memory/patience.h unit_patience          s/p->fast = p->fast \&\& n >= p->expected;/(void)n;/
nap-idle       src/memory/patience.h unit_patience          s/return p->fast \&\& n > p->before;/return p->fast;/
nap-awake      src/memory/gate.c     unit_patience          s/^           (m->spinner || m->woken_getters || m->core.loans.live);/           true;/
nap-fifo       src/memory/gate.c     unit_patience          s/^           wq__core_is_fifo(&m->core) \&\&/           true \&\&/
nap-stale      src/memory/patience.h unit_patience          s/if (now - p->timed_ns > WQ__PATIENCE_STALE_NS)/if (0)/
nap-deadline   src/memory/gate.c     unit_patience          s/^           now < wq__core_next_deadline(&m->core);/           true;/
nap-shutdown   src/memory/gate.c     unit_patience          s/return m->patience.fast \&\& !m->core.shutting_down \&\&/return m->patience.fast \&\&/
nap-fake       src/memory/create.c   unit_patience          s/wq__clock_is_real(m->clock) \&\& !config->real_time/!config->real_time/
wake           src/memory/gate.c     unit_memory            s/^        wq__wake(wake);/        (void)wake;/
last-look      src/memory/gate.c     unit_falling_asleep    s/^    return wq__core_offers(&m->core) + (pending < most ? pending : most);/    return wq__core_offers(\&m->core) + 0 * pending * most;/
publish        src/memory/gate.c     unit_falling_asleep    /^release_and_wake(/,/^}/{/^    publish_wake_from(m);/d;}
beacon-dim     src/memory/gate.c     behaviour_fd           s/        wq__beacon_dim(&m->beacon, WQ__LIT_BY_QUEUE);/        (void)0;/
beacon-sleep   src/memory/gate.c     scenario_fd            s/    if ((m->watched \&\& !m->lit) || wq__gate_reports_changes(m))/    if (wq__gate_reports_changes(m))/
beacon-fork    src/port/beacon.c     behaviour_fork_signals s/return b->forks == wq__forks;/return true;/
timekeeper         src/memory/gate.c     scenario_sleeping_gets s/if (m->getters.len \&\& !deadline_is_watched(m))/if (0)/
promise        src/memory/gate.c     scenario_bounds        s/^    m->promised.keys -= p.promised.keys;/    (void)0;/
room           src/memory/gate.c     scenario_bounds        s/^    wake = take_producers(m, wake);/    (void)take_producers;/
rouse          src/memory/adds.c     unit_memory            s/if (position < from \&\& !has_lost_spinner(m, position, from))/if (from + 1)/
spinner-all    src/memory/gate.c     unit_spin              s/return m->inbox.head + (ready < WQ__SPARED ? WQ__SPARED - ready : 0);/return WQ__WAKE_NOBODY;/
spinner-ready  src/memory/gate.c     unit_spin              s/(ready < WQ__SPARED ? WQ__SPARED - ready : 0)/WQ__SPARED/
spinner-lost   src/memory/adds.c     unit_spin              s/position < from \&\& !has_lost_spinner(m, position, from)/position < from/
spinner-count  src/memory/gate.c     unit_spin              /^wq__gate_ignore_lost_spinner/,/^}/s/m->spinner = 0;/(void)0;/
second-look    src/memory/gate.c     unit_spin              s/m->spinner ? 2 : 1/1/
spin-pay       src/memory/spin.h     unit_spin              s/^    s->account = s->account > looks ? s->account - looks : 0;/    (void)looks;/
spin-trial     src/memory/spin.h     unit_spin              s/^    wq__spin_earn(s, WQ__SPIN_TRIAL);/    (void)s;/
tell-first     src/memory/gate.c     unit_report            /^wq__gate_await_work/,/^}/s/if (wq__gate_report_inside(m))/if (0)/
tell-blocked   src/memory/gate.c     unit_report            /^wq__gate_await_capacity/,/^}/s/if (wq__gate_report_inside(m))/if (0)/
real-time      src/memory/create.c   behaviour_real_time    s/^    if (m->real_time)/    if (0)/
real-time-hand src/memory/create.c   unit_memory            s/ \&\& !config->real_time \&\&$/ \&\&/
real-time-spin src/memory/create.c   unit_memory            s/wq__thread_processors() > 1 \&\& !config->real_time;/wq__thread_processors() > 1;/
real-time-wake src/memory/gate.c     unit_wake_order        s/^    if (m->real_time) {/    if (0) {/
destroy-lock   src/clock/sleepers.c  stress_destroy         s/^    wq__lock_take(lock); .. the waker has released.*/    wq__lock_assert_taken(lock);/
layer-drain    src/layer/delaying.c  behaviour_layers_full  s/^        d->layer.inner->backend->shutdown(.*/        (void)0;/
cancel         src/port/cancel.h     stress_cancel          s/PTHREAD_CANCEL_DISABLE/PTHREAD_CANCEL_ENABLE/
cancel-join    src/port/thread.c     behaviour_cancellation s/const int state = wq__cancel_off();/const int state = PTHREAD_CANCEL_ENABLE;/
base64-bits    src/text/escape.c     unit_text              s/bits >> 12 \& 63/bits >> 12 \& 31/
cancel-write   src/front/inspect.c   behaviour_dump         s/wq__cancel_off();/PTHREAD_CANCEL_ENABLE;/
time-seconds   src/port/time.h       unit_port              s/return seconds < most ? seconds : most;/return seconds;/
ring-limit     src/memory/inbox.h    unit_inbox             s/in->head + WQ__INBOX_CELLS;/in->head + WQ__INBOX_CELLS + 1;/
deadline-first src/memory/inbox.c    unit_memory            s/        if (core->waiting.len)$/        if (0)/
closed         src/memory/stop.c     unit_memory            s/^    wq__inbox_close(&m->inbox);//
undo           src/memory/limited.c  behaviour_rate_limiting s/^            wq__retry_undo(&m->retry, keys\[i\]);/            (void)0;/
told-twice     src/memory/report.c   behaviour_sinks        s/^    \*reported = now;/    (void)reported;/
lock-try       src/port/lock.h       unit_port              s/uint32_t expected = 0;/uint32_t expected = 1;/
lock-alone     src/port/lock.h       unit_port              s/return __libc_single_threaded;/return true;/
lock-alone-try src/port/lock.h       unit_port              s/if (atomic_load_explicit(&l->word, memory_order_acquire) != 0)/if (0)/
lock-sleeper   src/port/lock.c       unit_port              s/exchange_explicit(&l->word, 2, memory/exchange_explicit(\&l->word, 1, memory/
lock-wake      src/port/lock.h       unit_port              s/^        wq__lock_wake_one(l);/        (void)0;/
limiter-leak   src/memory/create.c   behaviour_rate_limiting s/^        wq_limiter_destroy(limiter); .. unless.*/        (void)limiter;/
layer-limiter  src/layer/rate_limiting.c behaviour_layers_config s/^        wq_limiter_destroy(limiter); .. unless.*/        (void)limiter;/
limiter-short  src/config/config.c   behaviour_rate_limiting s/config->size >= end \&\&/config->size >= sizeof(size_t) \&\&/
limiter-failed src/limit/limiter.c   behaviour_limiter      s/return l \&\& !l->err \&\& key.data/return l \&\& key.data/
limiter-claim  src/limit/limiter.c   unit_limit_memory      s/^    return !wq_limiter_error(l) \&\&$/    return l \&\&/
limiter-first  src/limit/combine.c   behaviour_limiter      s/^        } else if (!err) {/        } else {/
limiter-why    src/limit/limiter.c   behaviour_limiter_error s/^    if (explained.limiter == l \&\& explained/    if (0 \&\& explained/
limiter-whose  src/limit/limiter.c   behaviour_limiter_error s/^    if (explained.limiter == l \&\& explained.*/    if (explained.limiter == l)/
limiter-other  src/limit/limiter.c   behaviour_limiter_error s/^    if (explained.limiter == l \&\& explained/    if (explained/
limiter-turn   src/limit/limiter.c   behaviour_limiter_error s/(&turn, 1, memory/(\&turn, 0, memory/
destroy-says   src/limit/limiter.c   behaviour_limiter_error s/^    wq__fail_restore(&saved);/    (void)saved;/
own-self       src/limit/own.c       behaviour_limiter      s/^        theirs.destroy(self);/        (void)self;/
fail-thread    src/error/last.c      behaviour_last_error   s/^static _Thread_local struct wq__sentence last;/static struct wq__sentence last;/
fail-errno     src/error/last.c      behaviour_last_error   s/^    errno = cause;/    (void)cause;/
fail-restored  src/error/last.c      behaviour_limiter_error s/^    last.number++; .. the number.*/    (void)0;/
step-caller    src/workers/work.c    behaviour_last_error   s/config_read("wq_work_one", /config_read("wq_workers_start", /
step-queue     src/workers/work.c    behaviour_last_error   s/^    if (!q)$/    if (0)/
layer-bytes    src/config/config.c   behaviour_last_error   s/{c->max_bytes, "max_bytes"}/{false, "max_bytes"}/
fail-cut       src/error/last.c      behaviour_last_error   s/^        s\[lead\] = .*/        (void)s;/
sink-why       src/metrics/sinks.c   behaviour_last_error   s/if (err \&\& wq__fail_count() == before)/if (err)/
clock-step     src/clock/fake.c      behaviour_clock        s/^    alarm_sleepers(f);/    (void)f;/
refused-key    src/layer/due.c       behaviour_layers_full  s/^    if (still_due)$/    if (0)/
refused-first  src/layer/due.c       behaviour_layers_full  s/err == WQ_EFULL || err == WQ_ENOMEM/0/
layer-calls    src/layer/calls.h     behaviour_layers_full  s/if (atomic_load_explicit(\&c->n, memory_order_acquire) != 0)/if (0)/
due-first      src/layer/adds.c      conformance_layers_delay s/^    (void)wq__delaying_pass_on(a->d);$/    (void)0;/
woken-waiter   src/clock/fake.c      behaviour_clock        s/!wq__parker_is_woken(w->parker)/true/
factor         src/limit/delay.c     unit_limit_delay       s/const double middle = low \* high;/const double middle = low * low * factor;/
factor-least   src/limit/spec.c      behaviour_limiter      s/!(s->factor >= 1 \&\& /!(s->factor > 0 \&\& /
spec-twice     src/limit/spec.c      behaviour_limiter_spec s/^    if (twice)/    if (0)/
spec-max-wait  src/limit/spec.c      behaviour_limiter_spec s/^    if (whole->parts \&\& ((/    if (0 \&\& ((/
spec-own       src/limit/own.c       behaviour_limiter_spec s/^    l->no_spec = .*/    (void)l;/
shared-fence   tests/support/store_sessions.c shared_faults s/^                   loan->item.fence == fence$/                   true/
shared-revive  tests/support/memory_store.c unit_store_sessions /^renew_session(/,/^}/s/^    store_end_expired(store, now);/    (void)store;/
shared-giveup  src/shared/lease.c    shared_lease           s/^    if (!err \&\& sent_ns < s->valid_until_ns) {/    if (!err) {/
shared-renewal src/shared/lease.c    shared_lease           s/const int64_t until = wq__span_add(sent_ns, e->lease_ns);/const int64_t until = wq__span_add(now, e->lease_ns);/
shared-opening src/shared/lease.c    shared_lease           /^wq__shared_begin_session(/,/^}/s/wq__span_add(sent_ns, e->lease_ns);/wq__span_add(s->clock->now(s->clock) + 0 * sent_ns, e->lease_ns);/
shared-reply   src/shared/batch.c    shared_lease           s/^    s->valid_until_ns = wq__span_add(sent_ns, s->engine->lease_ns);/    s->valid_until_ns = wq__span_add(s->clock->now(s->clock) + 0 * sent_ns, s->engine->lease_ns);/
shared-doubt   src/shared/batch.c    shared_faults          s/^    s->in_doubt |= err \&\& (err != WQ_EAWAY || e->forgetful);/    (void)0;/
shared-known   src/shared/batch.c    shared_faults          s/if (h->state != WQ__HOLD_TAKEN \&\& !h->lost)/if (0)/
shared-sure    src/shared/batch.c    shared_lease           s/^        err = make_sure(s);/        (void)make_sure;/
shared-expire  src/shared/batch.c    shared_lease           /^clear_doubt(/,/^}/s/^    wq__shared_expire(s, time_of_sending(s));/    (void)0;/
shared-settle  src/shared/combine.c  shared_settle          s/^    if (self->err || !self->unsettled)/    if (true)/
settle-gets    src/shared/batch.c    shared_settle          s/^    if (!err \&\& settles \&\& gets_unsettled(f.posts)) {/    if (!err \&\& settles \&\& !gets_unsettled(f.posts) \&\& 0) {/
settle-first   src/shared/combine.c  shared_settle          s/^        wq__shared_settle_first(s);/        (void)0;/
settle-share   src/shared/settle.c   shared_settle          s/^        if (u->batch > batch) {/        if (u->batch > batch + 9) {/
settle-late    src/shared/settle.c   shared_settle          s/^    const bool unsure = is_unsure(s, batch);/    const bool unsure = is_unsure(s, 0);/
sqlite-settles backends/sqlite/engine.c sqlite_power        s/^        op->unsettled = e->rows.promised || may_repeat(op);/        op->unsettled = may_repeat(op);/
sqlite-repeat  backends/sqlite/engine.c sqlite_io_faults    s/^        op->unsettled = e->rows.promised || may_repeat(op);/        op->unsettled = e->rows.promised; (void)may_repeat;/
sqlite-unsure  backends/sqlite/durable.c sqlite_io_faults    /^sync_commits(/,/^}/s/^        wq__side_set_unsure(e->side, true);/        (void)0;/
shared-shut    src/shared/finish.c   shared_handles         s/^    (void)begin_all(s, item, &result, result, &one, 1);/    if (atomic_load(\&s->closed)) return WQ_ESHUTDOWN; &/
shared-judge   src/shared/finish.c   shared_faults          s/if (e->err == WQ_ELOST \&\& hold->in_doubt \&\& !hold->lost)/if (0)/
shared-errs    src/shared/finish.c   shared_faults          s/^            errs\[i\] = endings\[i\].err;/            errs[i] = err;/
shared-silent  src/shared/lease.c    shared_lease           s/^    s->to_report = true;/    (void)0;/
shared-twice   src/shared/lease.c    shared_lease           s/^        h->reported = true;/        h->reported = h->item.fence % 2 == 0;/
shared-reading src/shared/lease.c    shared_lease           s/^    if (hold->reporting)$/    if (0)/
shared-late    src/shared/lease.c    shared_lease           s/if (err == WQ_ELOST \&\& s->session != session)/if (0)/
shared-listen  src/shared/sleep.c    shared_handles         s/^    if (!s->listener)$/    if (0)/
shared-sooner  src/shared/sleep.c    shared_handles         s/^    else if (next_look(s, s->listener_list) < s->listener_until_ns \&\&/    else if (0 \&\&/
shared-again   src/shared/gets.c     shared_handles         s/} while (why == WQ__WAKE_LISTEN);/} while (0); while (why == WQ__WAKE_LISTEN) why = wq__shared_sleep(s, \&s->getters, deadline_ns);/
shared-wake    src/shared/sleep.c    shared_handles         /^release_and_wake(/,/^}/s/^    take_getters(s, wake);/    (void)take_getters;/
shared-drained src/shared/sleep.c    shared_handles         s/^    if (s->seen.ready == 0 \&\& s->holds.lent == s->holds.lost)/    if (0)/
shared-idle    src/shared/sleep.c    shared_handles         s/^    if (s->seen.ready == 0 \&\& s->seen.held == 0)/    if (0)/
shared-lost    src/shared/sleep.c    shared_lease           s/^    take_one_in_doubt(s, wake);/    (void)take_one_in_doubt;/
shared-drain   src/shared/stop.c     shared_handles         s/return s->seen.ready == 0 \&\& s->holds.lent == s->holds.lost;/return s->seen.ready == 0 \&\& s->seen.held == 0;/
shared-fork    src/shared/create.c   shared_fork            s/return s->forks != wq__forks;/return s->forks > wq__forks;/
shared-close   tests/support/memory_store.c shared_handles  /^memory_close(/,/^}/s/^        end_session_of(e);/        store_end_expired(store, 0);/
shared-pause   src/shared/gets.c     shared_handles         s/paused ? wq__shared_run(s, NULL) : try_get(s, out, max, n);/paused ? WQ_OK : try_get(s, out, max, n);/
shared-fd-lock src/shared/view.c     shared_handles         s/^    int        theirs = -1;/    int theirs = first \&\& e->ops->fd ? e->ops->fd(e) : -1;/
shared-nul     src/shared/adds.c     shared_handles         s/s->on_drop(s->drop_ctx, (wq_key){copy->bytes, key.len}, /s->on_drop(s->drop_ctx, key, /
shared-stale   src/shared/holds.c    shared_handles         s/^            enter_new(h, more);/            (void)enter_new, enter_ended(h, more);/
shared-key     src/shared/holds.c    shared_faults          s/return a->item.fence < b->item.fence;/return a->item.fence > b->item.fence;/
shared-orphan  src/shared/gets.c     shared_faults          /^try_get(/,/^}/s/^        (void)wq__shared_run(s, NULL);/        (void)s;/
spec-beyond    src/limit/describe.c  behaviour_limiter_spec s/^    if (exceeds(&l->spec, out->size))/    if (0 * exceeds(\&l->spec, out->size))/
give-up-copy   src/limit/retry.c     behaviour_rate_limiting s/(wq_key){copy, key.len}/key/
give-up-later  src/limit/retry.c     behaviour_rate_limiting s/^        return WQ_ENOMEM;/        return wq_limiter_forget(r->limiter, key), WQ_ENOMEM;/
drop-count     src/memory/limited.c  scenario_metrics       s/atomic_fetch_add_explicit(&m->dropped, n,/atomic_fetch_add_explicit(\&m->dropped, 0 * n,/
layer-drops    src/layer/rate_limiting.c behaviour_layers_config s/if (err == WQ_EGIVENUP)/if (0)/
layer-table    include/wq/backend.h  behaviour_layers_verbs s/(q)->backend->size \&\&  /SIZE_MAX \&\&  /
layer-priority src/layer/due.c       behaviour_layers_verbs s/^        .priority = item->priority,//
layer-rejected src/layer/due.c       behaviour_layers_verbs s/^    if (item->priority == 0 ||/    if (true ||/
layer-dropped  src/layer/due.c       behaviour_layers_verbs s/^    d->drops += err == WQ_ESHUTDOWN;/    (void)0;/
layer-merge    src/layer/adds.c      conformance_layers_full_if_waiting /^add_combined(/,/^}/s/^    if (!waits)/    if (true)/
layer-joins    src/layer/adds.c      conformance_layers_full_debounce s/^    if (!(info.states & (WQ_STATE_READY | WQ_STATE_DIRTY)))/    if (true)/
layer-raises   src/layer/adds.c      behaviour_layers_verbs s/^    if (a->how->priority > info->priority)/    if (false)/
layer-defers   src/layer/adds.c      behaviour_layers_verbs s/^        d->deferred++;/        d->drops++;/
layer-reserved src/layer/adds.c      behaviour_layers_verbs s/^    } else if (made \&\&/    } else if (false \&\&/
layer-backoff  src/layer/adds.c      behaviour_layers_verbs s/^        .backoff = a->delays,//
layer-retries  src/layer/adds.c      behaviour_layers_verbs s/^    if (!err \&\& retry)/    if (false)/
layer-removed  src/layer/view.c      behaviour_layers_verbs s/^    out->removed -= own.deferred;//
layer-next     src/layer/view.c      conformance_layers_full_inspect s/^    out->next_ns = earlier(out->next_ns, own.next_ns);//
layer-due      src/layer/view.c      behaviour_layers_verbs s/own->states & due ? 0 : own->wait_ns/own->wait_ns/
layer-twice    src/layer/view.c      behaviour_layers_verbs s/ == WQ_OK \&\& info.states)/ == WQ_OK \&\& false)/
layer-states   src/layer/view.c      behaviour_layers_verbs s/each(inner, ANY_STATE, visit/each(inner, w->states, visit/
layer-fd       src/layer/due.c       conformance_layers_full_fd s/^    if (d->watch.beacon)/    if (false)/
layer-fd-inner src/layer/view.c      conformance_layers_full_fd s/err = wq__beacon_include(&d->beacon, inner_fd);/err = inner_fd < 0 ? WQ_EIO : WQ_OK;/
layer-fd-pause src/layer/due.c       conformance_layers_full_pause s/d->paused ? WQ_FOREVER : //
layer-remove   src/layer/withdraw.c  behaviour_layers_verbs /^remove_key(/,/^}/s/^        return err;/        (void)0;/
layer-refused  src/layer/withdraw.c  behaviour_layers_verbs s/^    if (d->refused \&\&/    if (false \&\&/
layer-late     src/layer/withdraw.c  behaviour_layers_verbs /^await_done(/,/^}/s/^    if (!err)/    if (false)/
layer-offered  src/layer/withdraw.c  behaviour_layers_verbs s/is_being_offered(d, key); round/is_being_offered(d, key) \&\& false; round/
layer-waits    src/layer/delaying.c  behaviour_layers_verbs s/wq__calls_in_progress(&d->waits)/false/
layer-failures src/layer/rate_limiting.c behaviour_layers_verbs s/^    mine.requeues = .*//
layer-requeues src/layer/rate_limiting.c conformance_layers_full_inspect s/^        out->requeues = requeues;/        (void)requeues;/
layer-undo     src/layer/rate_limiting.c behaviour_layers_verbs s/^        undo(l, keys, n);/        (void)0;/
layer-undo-all src/layer/rate_limiting.c conformance_layers_full_add_with s/^            undo(l, keys, i);/            (void)0;/
layer-shorter  src/core/limited.h    conformance_layers_full_add_with s/after_ns < delay_ns ? after_ns : delay_ns/false ? after_ns : delay_ns/
again-now      src/front/finish.c    unit_workers_results   s/return after_ns > 0 ? wq_add_after/return 1 ? wq_add_after/
done-lost      src/workers/work.c    unit_workers_results   /^ends_loan(/,/^}/s/^    case WQ_ELOST:$//
done-foreign   src/workers/work.c    unit_workers_results   /^ends_loan(/,/^}/s/^    case WQ_ESTATE:$//
step-on-loan   src/workers/work.c    unit_workers_results   s/^        leave_on_loan(&s, item, err);/        (void)0;/
left-on-loan   src/workers/work.c    unit_workers_results   s/^            leave_on_loan(s, item, err);/            (void)0;/
drop-eio       src/workers/work.c    behaviour_workers_failing s/if (err == WQ_EIO || err == WQ_EAWAY)/if (0)/
drop-lost      src/workers/work.c    behaviour_workers_failing s/return err == WQ_EGIVENUP || err == WQ_EDROPPED/return err == WQ_EGIVENUP || err == WQ_EDROPPED || err == WQ_ELOST/
drop-unsupp    src/workers/work.c    unit_workers_results   /^is_unsupported(/,/^}/s/return (err == WQ_ENOTSUP/return false \&\& (err == WQ_ENOTSUP/
drop-copy      src/workers/work.c    behaviour_workers_failing s/^    if (!r->copy)$/    if (0)/
settle-once    src/workers/work.c    behaviour_workers_failing s/^    bool    stopping = false;/    bool    stopping = true;/
settle-done    src/workers/work.c    behaviour_workers_failing s/repeat_settling(s, \*item, wq_result_done(), err);/(void)0;/
settle-phase   src/workers/work.c    behaviour_workers_failing s/^    set_phase(s->worker, WQ__WORKING);/    (void)0;/
lost-count     src/workers/work.c    behaviour_workers_failing s/(!\*item \&\& \*err != WQ_ELOST)/!*item/
lost-once      src/workers/watchdog.c behaviour_workers_failing s/w->hold_ends = left_ns > 0;/w->hold_ends = true;/
lost-early     src/workers/watchdog.c behaviour_workers_failing s/^    if (left_ns <= 0)$/    if (1)/
lost-in-use    src/workers/watchdog.c behaviour_workers_failing s/^    while (w->in_use)$/    while (0)/
stop-within    src/workers/pool.c    behaviour_workers_stop s/return ended ? WQ_OK : WQ_ETIMEDOUT;/return ended ? WQ_OK : WQ_OK;/
next-lost      src/front/finish.c    behaviour_workers_failing s/return err == WQ_ELOST \&\& !\*item ? q->backend->get/return false ? q->backend->get/
verb-size      include/wq/backend.h  behaviour_backend      s/(q)->backend->size \&\&/SIZE_MAX \&\&/
scheme-slash   src/front/open.c      behaviour_open         s/^           s\[n\] == .\..)$/           s[n] == 46 || s[n] == 47)/
scheme-limiter src/front/open.c      behaviour_open         /^refuse(/,/^}/s/^    wq_limiter_destroy(.*/    (void)config;/
finish-foreign src/memory/finish.c   scenario_finish        s/^    if (!is_on_loan(m, \*item)) {/    if (0 \&\& !is_on_loan(m, *item)) {/
finish-drops   src/memory/finish.c   scenario_finish        s/^        (void)wq__memory_count_drops(\&m->base, 1);/        (void)m;/
drop-once      src/core/result.h     scenario_finish        s/return err == WQ_EDROPPED ||/return err == WQ_EGIVENUP || err == WQ_EDROPPED ||/
back-shutdown  src/memory/finish.c   scenario_finish        s/return give_back(m, item, how.priority);/return wq__memory_shutting_down(\&m->base) ? WQ_ESHUTDOWN : give_back(m, item, how.priority);/
nowait-limit   src/front/adds.c      behaviour_bad_input    s/!err \&\& how->nowait \&\& how->max_block_ns/false/
bucket-back    src/limit/tokens.c    unit_bucket            s/return now > level->last_ns ? now : level->last_ns;/return now;/
removing       src/core/core.c       scenario_remove_wait   s/^    if (rec->flags & WQ__REMOVING) {/    if (0) {/
remove-mark    src/memory/waits.c    scenario_remove_wait   s/^    (void)wq__core_remove_at_done(&m->core, w->key, w->hash, true);/    (void)0;/
remove-last    src/memory/waits.c    scenario_remove_wait   s/if (err \&\& !is_being_removed(m, w->key))/if (err)/
remove-keeps   src/memory/waits.c    scenario_remove_wait   s/if (err \&\& !is_being_removed(m, w->key))/if (0)/
remove-over    src/memory/waits.c    behaviour_waits        s/if (!r->waiter->over \&\& wq__same_key/if (wq__same_key/
remove-list    src/memory/waits.c    behaviour_waits        /^leave_list/,/^}/s/^    \*link = r->next;/    (void)r->next;/
remove-notsup  src/memory/waits.c    behaviour_order_calls  s/if (removed == WQ_ENOTSUP)/if (0)/
remove-quiet   src/memory/memory.h   scenario_remove_wait   s/: INT64_MIN;/: 0;/
flush-unwant   src/core/core.c       scenario_flush         s/^    end_run(c, ready ? .*/    (void)ready;/
flush-done     src/core/core.c       scenario_flush         s/^    end_run(c, epoch);/    (void)epoch;/
flush-dirty    src/core/core.c       scenario_flush         s/^    wq__rec_set_next_epoch(rec, wq__flush_mark(&c->flush));/    (void)0;/
flush-ready    src/core/core.c       unit_flush             s/^        wq__rec_set_epoch(rec, wq__flush_mark(&c->flush));/        (void)0;/
flush-back     src/core/core.c       unit_flush             s/^    wq__rec_set_epoch(rec, wq__rec_next_epoch(rec));/    (void)0;/
flush-asked    src/core/flush.c      unit_flush             s/^        f->close_next = true;/        (void)f;/
flush-close    src/core/flush.c      unit_flush             s/^        if (f->close_next)/        if (0)/
flush-inbox    src/memory/waits.c    scenario_flush         /^wait_for_all(/,/^}/s/wq__gate_catch_up(m)/WQ_OK/
flush-holder   src/memory/waits.c    scenario_flush         s/if (!err \&\& wq__core_holds_any(&m->core, wq__thread_mark_serial()))/if (0)/
key-holder     src/memory/waits.c    scenario_flush         s/               ? WQ_ESTATE/               ? WQ_OK/
key-removed    src/core/core.c       scenario_flush         s/^        flush->pending = flush->pending .*/        (void)flush;/
key-begun      src/core/core.c       scenario_flush         s/^    flush->fence = fence;/    (void)fence;/
idle-over      src/memory/waits.c    behaviour_waits        s/while (!w->over \&\& !is_over(m, w)) {/while (!is_over(m, w)) {/
wait-told      src/memory/gate.c     behaviour_waits        /^wq__gate_await_waiter/,/^}/{/report_inside/d;s/^    wq__sleeper_enter(/    (void)wq__gate_report_inside(m); &/;}
wait-wake      src/memory/gate.c     scenario_flush         s/^        wake = wq__waits_take(m, wake);/        (void)wq__waits_take;/
wait-destroy   src/memory/waits.c    scenario_flush         s/w->over = m->destroying || is_over(m, w);/w->over = is_over(m, w);/
pause-work     src/memory/gate.c     unit_pause             s/^    if (wq__core_is_paused(&m->core))/    if (0)/
removed-inbox  src/memory/gets.c     unit_waits             s/    if (lack \&\& m->removers)/    if (0)/
idle-inbox     src/memory/waits.c    unit_waits             s/return w->what == IDLE \&\& wq__core_idle(&m->core);/return 0 * (w->what + m->blocked);/
pause-deadline src/memory/gate.c     scenario_pause         s/^                    wq__core_is_paused(&m->core)$/                    0/
lane-named     src/core/capacity.c       scenario_bounds        s/len > most \&\& unnamed_in_lane(s, g->at\[i\])/len > most \&\& (most == 0 || unnamed_in_lane(s, g->at[i]))/
age-at-done    src/core/core.c       scenario_ageing        s/^    begin_age(c, rec, now);$/    (void)now;/
pause-beacon   src/memory/gate.c     unit_pause             s/ \&\& !wq__core_is_paused(&m->core);/;/
pause-offers   src/core/ready.h      scenario_pause         s/^    if (r->special & WQ__PAUSED)/    if (0)/
pause-plain    src/memory/stop.c     scenario_pause         s/const unsigned other = WQ__PAUSED | /const unsigned other = /
pause-end      src/memory/stop.c     scenario_pause         /^stop_adds/,/^}/s/^    wq__core_pause(&m->core, false);/    (void)0;/
pause-late     src/memory/stop.c     scenario_pause         s/if (paused \&\& m->core.shutting_down)/if (0)/
pause-metric   src/metrics/registry.c behaviour_registry    s/^    now->paused += counts->paused;/    (void)0;/
overdue-never  src/core/ready.c      model_model            s/^    return r->special & WQ__AGEING \&\&$/    return 0 \&\&/
overdue-oldest src/core/ready.c      model_model            s/const wq__ref           ref = r->oldest;/const wq__ref           ref = r->newest;/
overdue-raise  src/core/ready.c      model_model            s/^    rec->level = level;$/& if (r->special \& WQ__AGEING) { take_out_by_age(r, rec); append_by_age(r, ref, rec); }/
flush-fresh    src/core/core.c       model_model            s/(c->prefix | epoch \* (WQ__EPOCH \/ 3))/(c->prefix + 0 * epoch)/
flush-removed  src/core/core.c       model_model            s/^    end_run(c, ready ? wq__rec_epoch(rec) : wq__rec_next_epoch(rec));/    (void)ready;/
flush-fourth   src/core/flush.c      model_model            s/^        if (f->close_next)$/        if (0)/
flush-early    src/core/flush.h      model_model            s/return epoch < f->first;/return epoch <= f->first;/
remove-late    src/core/core.c       model_model            /^settle_requests(/,/^}/s/if (rec->flags & WQ__REMOVING) {/if (0) {/
remove-off     src/core/core.c       model_model            /^wq__core_remove_at_done(/,/^}/s/wq__rec_clear(/wq__rec_set(/
pause          src/core/ready.h      model_model            s/^    if (r->special & WQ__PAUSED)$/    if (0)/
bytes-bound    src/core/capacity.c       model_model            s/if (c->max_bytes \&\& c->bytes > c->max_bytes)/if (0)/
bytes-enough   src/core/capacity.c       model_model            s/^            sum.bytes += l->at\[i\].bytes;/            sum.bytes += c->bytes;/
victim-named   src/core/capacity.c       model_model            s/while (ref \&\& wq__core_rec(c, ref)->flags & WQ__NAMED)/while (0)/
victim-lowest  src/core/capacity.c       model_model            s/l->at\[i\].priority < l->at\[s->current\].priority/l->at[i].priority > l->at[s->current].priority/
flush-expected src/core/due.c        scenario_waiting       s/!wq__rec_covers_add(rec)/rec->flags \& WQ__BACKOFF/
hasten-order   src/core/due.c        model_model            s/const wq__ref ref = wq__heap_first(&c->waiting)->ref;/const wq__ref ref = c->waiting.entries[c->waiting.len - 1].ref;/
hasten-again   src/core/due.c        model_model            s/c->waiting.entries\[i\].at = wq__span_add(now, WQ__OFFER_AGAIN_NS);/c->waiting.entries[i].at = now;/
merged-join    src/core/add.c        model_model            /^count_merged_and_keep(/,/^}/s/^    c->tally.merged++;/    (void)0;/
merged-defer   src/core/add.c        model_model            /^defer_to(/,/^}/s/^    c->tally.merged++;/    (void)0;/
merged-over    src/core/add.c        model_model            /^take_over(/,/^}/s/^    c->tally.merged++;/    (void)0;/
merged-done    src/core/core.c       model_model            /^requeue_dirty(/,/^}/s/^        c->tally.merged++;/        (void)0;/
respect-pace   src/core/add.c        model_model            s/if (wq__core_respects_backoff(c, rec))/if (0)/
key-nul        src/core/core.c       model_model            s/^    at\[key.len\] = .*/    (void)at;/
finish-prio    src/core/result.h     scenario_finish        s/result.prioritized ? result.priority : item->priority,/result.priority,/
finish-forget  src/memory/finish.c   scenario_finish        s/if (!err || err == WQ_ESHUTDOWN)/if (0)/
shared-next    src/shared/finish.c   conformance_shared_finish s/^    s->drops += ended .*/    (void)ended;/
shared-retry   src/shared/finish.c   conformance_shared_finish /^is_retry(/,/^}/s/^    default:/    default: return false;/
shared-nul-end src/shared/adds.c     conformance_shared_behaviour_keys s/^    copy->bytes\[key.len\] = .*/    (void)0;/
shared-ages    src/shared/create.c   conformance_shared_behaviour_metrics s/\.ages = config->ages || metrics,/.ages = config->name || metrics,/
shared-stats   src/shared/batch.c    conformance_shared_behaviour_threads s/return put_stats_last(posts);/return put_stats_last(NULL) ? NULL : posts;/
listen-stop    src/shared/sleep.c    shared_races           s/if (s->interrupts != interrupts) .*/if (0 * interrupts)/
listen-later   src/shared/stop.c     shared_races           s/s->getters.len + s->changing == 0/s->getters.len == 0/
doubt-again    src/shared/batch.c    shared_races           s/^    s->in_doubt |= err != WQ_OK;/    s->in_doubt = err != WQ_OK;/
fd-lock        src/shared/view.c     shared_races           s/^        theirs = wq__engine_fd(e);/        wq__shared_enter(s); & wq__lock_release(\&s->lock);/
destroy-get    src/shared/gets.c     shared_races           s/^    if (!s->destroying)$/    if (1)/
get-many-n     src/shared/gets.c     shared_races           /^wq__shared_get_many(/,/^}/s/^    if (!err)$/    if (1)/
destroy-report src/shared/gets.c     shared_races           /^get(/,/^}/{s/^        report_latencies(s, out, \*n);/        (void)report_latencies;/;s/^    wq__shared_end_blocking(s);/& if (!err) wq__shared_report_latency(s, hold_of(out[0])->waited_ns);/;}
cancel-run     src/shared/call.h     shared_races           /^wq__engine_run(/,/^}/s/wq__cancel_off()/PTHREAD_CANCEL_ENABLE/
cancel-renew   src/shared/call.h     shared_races           /^wq__engine_renew(/,/^}/s/wq__cancel_off()/PTHREAD_CANCEL_ENABLE/
cancel-recon   src/shared/call.h     shared_races           /^wq__engine_reconcile(/,/^}/s/wq__cancel_off()/PTHREAD_CANCEL_ENABLE/
cancel-wait    src/shared/call.h     shared_races           /^wq__engine_wait(/,/^}/s/wq__cancel_off()/PTHREAD_CANCEL_ENABLE/
cancel-kick    src/shared/call.h     shared_races           /^wq__engine_kick(/,/^}/s/wq__cancel_off()/PTHREAD_CANCEL_ENABLE/
cancel-fd      src/shared/call.h     shared_races           /^wq__engine_fd(/,/^}/s/wq__cancel_off()/PTHREAD_CANCEL_ENABLE/
cancel-close   src/shared/call.h     shared_races           /^wq__engine_close(/,/^}/s/wq__cancel_off()/PTHREAD_CANCEL_ENABLE/
lost-drain     src/shared/stop.c     shared_races           /^is_drained(/,/^}/s/s->holds.lent == s->holds.lost/s->holds.lent == 0/
lost-batch     src/shared/combine.c  shared_races           /^lead(/,/^}/{/^    wake_posts(answered, self);/d;s/^    wq__shared_report_changes(s);/& wake_posts(answered, self);/;}
finish-trips   src/shared/finish.c   shared_races           /^finish_many(/,/^}/s/^    if (n > AT_HAND)$/    for (; !errs \&\& n > 1; n--) (void)finish_all(s, items + n - 1, results, all, NULL, at_hand, 1); &/
shared-conn    src/shared/view.c     shared_handles         s/out->connects = s->session + 1;/out->connects = 1;/
shared-said    src/shared/combine.c  shared_combine         s/^        (void)wq__shared_repeat_sentence(s, self.said, s->said);/        (void)0;/
image-arrival  src/core/image.c      unit_image             s/image->at_ns, image->arrival/image->at_ns, c->waiting.seq + 1/
image-release  src/core/image.c      fault_core_images      /^reserve(/,/^}/s/^        release(c, parts);/        (void)release;/
image-cooldown src/core/image.c      model_model            s/^        \.next_cooldown = image->next_cooldown_ns,/        .next_cooldown = 0,/
image-loan     src/core/image.c      unit_image             /^expel_loan(/,/^}/s/^    wq__loans_end(.*/    c->loans.live--;/
finish-stale   src/memory/finish.c   behaviour_finish       s/if (!wq__core_may_be_lent(\*item)) {/if (0) {/
sqlite-sync    backends/sqlite/durable.c  sqlite_power     /^wq__sqlite_make_durable(/,/^}/s/^    if (wq__sqlite_is_durable(e, commits))/    if (1)/
sqlite-merged  src/shared/row_ops.c      sqlite_kills     s/^    r->promised |= !err;/    r->promised |= !err \&\& r->made_ready;/
sqlite-promise src/shared/row_ops.c      sqlite_power     /^must_be_durable(/,/^}/s/outcome != WQ_RESULT_DONE \&\&/outcome == WQ_RESULT_BACK \&\&/
sqlite-full    backends/sqlite/database.c sqlite_power     s/? "PRAGMA synchronous=FULL"/? "PRAGMA synchronous=NORMAL"/
sqlite-all     backends/sqlite/durable.c  sqlite_kills     s/^    return e->sync == WQ_SQLITE_SYNC_LAZY ||/    return e->sync != WQ_SQLITE_SYNC_ADDS ||/
sqlite-commits backends/sqlite/engine.c   sqlite_kills     /^commit_writes(/,/^}/{s/^    ++\*wq__side_commits(e->side);/    (void)0;/;s/^    store_counts(e, counts);/    ++*wq__side_commits(e->side); &/;}
sqlite-numbers backends/sqlite/engine.c   sqlite_kills     /^commit_writes(/,/^}/{s/^    \*wq__side_last_number(e->side) = e->rows.number;/    (void)0;/;s/^    store_counts(e, counts);/    *wq__side_last_number(e->side) = e->rows.number; &/;}
sqlite-counts  backends/sqlite/engine.c   sqlite_kills     s/^    counts->valid = 0;/    (void)0;/
sqlite-commit  backends/sqlite/engine.c   sqlite_io_faults s/^    if (wq__sqlite_run_commit(e)) {/    if (wq__sqlite_run_commit(e) \&\& !e) {/
sqlite-look    backends/sqlite/side_wait.c sqlite_files    /^set_look(/,/^}/s/    if (s->look_fd < 0)/    if (true)/
sqlite-relook  backends/sqlite/engine.c   sqlite_files     s/^    wq__side_looks(e->side);/    (void)0;/
sqlite-doubt   backends/sqlite/engine.c   sqlite_files     s/^    wq__side_looks(e->side); .. as above.*/    (void)0;/
sqlite-put-off backends/sqlite/side_wait.c sqlite_files    s/^    if (now < s->look_at_ns)/    if (now < 0)/
sqlite-orphan  backends/sqlite/store.h    sqlite_check     s/"SELECT due FROM " WQ__EXTRA_OF_KEYS /"SELECT due FROM extra x "/
sqlite-moved   backends/sqlite/engine.c   sqlite_files     s/^    err = check_file(e);/    (void)check_file;/
sqlite-settle  backends/sqlite/engine.c   sqlite_deaths    s/err = wq__sqlite_settle_others(e, did);/(void)did;/
sqlite-orphans backends/sqlite/engine.c   sqlite_power     s/^        err = wq__sqlite_adopt_orphans(e);/        (void)0;/
sqlite-return  src/shared/row_ops.c      sqlite_deaths    s/^        err = give_back(&x, x.item->priority);/        end_loan(\&x);/
sqlite-dirty   src/shared/row_ops.c      sqlite_deaths    /^wq__rows_give_back(/,/^}/s/^        err = give_back(&x, x.item->priority);/        (void)wq__core_remove(\&r->scratch, key, hash_of(r, key), r->now_ns); &/
sqlite-expiry  src/shared/row_ops.c      sqlite_deaths    s/x.row.expiries += expired;/(void)0;/
sqlite-success src/shared/row_ops.c      sqlite_deaths    /^forget(/,/^}/s/x->row.expiries = 0;/(void)0;/
sqlite-fence   src/shared/row_ops.c      sqlite_io_faults s/^           row->image.fence == fence;/           fence;/
sqlite-scratch src/shared/row_ops.c      sqlite_io_faults s/^    r->scratch.tally = m->tally;/    (void)0;/
sqlite-made    backends/sqlite/database.c sqlite_kills     s/\*empty = !application \&\& !version \&\& !tables;/*empty = !application \&\& !version \&\& !tables; int64_t n = 0; (void)read_number(db, "PRAGMA page_count", \&n); *empty = n == 0;/
sqlite-places  backends/sqlite/rows.c     sqlite_places    s/place + PLACES - 1);/place);/
sqlite-extra   backends/sqlite/rows.c     sqlite_deaths    /^write_row(/,/^}/s/return !err \&\& has_extra(before)/return !err \&\& !before/
sqlite-again   backends/sqlite/engine.c   sqlite_files     s/^        if (!e->locked)$/        if (e)/
sqlite-turns   backends/sqlite/side_lock.c sqlite_side_turns s/^    s->yields = is_wanted(s) \&\& /    s->yields = false \&\& /
sqlite-turn    backends/sqlite/side_lock.c sqlite_side_turns s/ \&\& wq__time_now() - s->turn_began_ns >= s->turn_ns;/;/
sqlite-began   backends/sqlite/side_lock.c sqlite_side_turns /^note_holder(/,/^}/s/^    if (was_last(s))/    if (0)/
sqlite-handed  backends/sqlite/side_lock.c sqlite_side_turns s/ i < s->naps \&\& was_last(s); / i < 0 \&\& was_last(s); /
sqlite-wanted  backends/sqlite/side_lock.c sqlite_side_turns s/^        want(s, false);/        (void)0;/
sqlite-longer  backends/sqlite/side_lock.c sqlite_side_turns s/^        s->turn_ns \*= 2;/        (void)0;/
sqlite-shorter backends/sqlite/side_lock.c sqlite_side_turns s/^        s->turn_ns = WQ__SIDE_TURN_NS;/        (void)0;/
sqlite-wishes  backends/sqlite/side_lock.c sqlite_side_turns s/^            forget_dead(s);/            (void)forget_dead;/
sqlite-wish    backends/sqlite/side_sessions.c sqlite_side_turns /^free_slot(/,/^}/s/^    atomic_store_explicit(&slot->wants, 0, memory_order_relaxed);/    (void)0;/
sqlite-inherit backends/sqlite/side_sessions.c sqlite_side_turns /^occupy(/,/^}/s/^    atomic_store_explicit(&slot->wants, 0, memory_order_relaxed);/    (void)0;/
sqlite-cut     backends/sqlite/side_lock.c sqlite_side_turns s/^    if (s->yields \&\& is_ours(s))/    if (s->yields)/
sqlite-lock    backends/sqlite/side_lock.c sqlite_side      /^wq__side_wait_for_lock(/,/^}/s/F_WRLCK/F_UNLCK/
sqlite-script  backends/sqlite/side.c     sqlite_side      s/ \&\& wq__side_is_held(s)))/ \&\& 0))/
sqlite-token   backends/sqlite/side.h     sqlite_files      s/^#define WQ__SIDE_LOOK_NS INT64_C(1000000000)/#define WQ__SIDE_LOOK_NS INT64_C(1000000000000)/
sqlite-revive  backends/sqlite/side_sessions.c sqlite_side_sessions /^wq__side_renew(/,/^}/{s/while (was != WQ__SIDE_ENDED \&\&/while (/;s/was <= now_ns    ? WQ__SIDE_ENDED/was <= now_ns    ? until_ns/;}
sqlite-silent  backends/sqlite/side_process.c sqlite_deaths s/return facts->state == .X. ||/return facts->state == 88 || facts->state == 84 ||/
sqlite-fork    backends/sqlite/side_fork.c sqlite_side      /^in_child(/,/^}/s/^        wq__side_close_all(s);/        (void)s;/
sqlite-witness backends/sqlite/side_sessions.c sqlite_side_sessions /^is_dead(/,/^}/s/return wq__process_is_gone(&p, &s->self);/return false;/
sqlite-off     backends/sqlite/time.c     sqlite_time      s/^    const int64_t start_ns = wall_ns > m->seen_ns ? wall_ns : m->seen_ns;/    const int64_t start_ns = m->seen_ns + 0 * wall_ns;/
sqlite-back    backends/sqlite/time.c     sqlite_time      s/^    const int64_t start_ns = wall_ns > m->seen_ns ? wall_ns : m->seen_ns;/    const int64_t start_ns = wall_ns;/
sqlite-wall    backends/sqlite/time.c     sqlite_time      s/^    const bool other_boot = strcmp(boot, m.boot) != 0;/    const bool other_boot = true;/
sqlite-restore backends/sqlite/time.c     sqlite_time      s/is_own_clock(e) ? m.number : wall_ns;/is_own_clock(e) ? m.number : m.number + 0 * wall_ns;/
sqlite-rights  backends/sqlite/database.c sqlite_files     s/^    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0)/    if (path)/
rows-torn      src/shared/row_ops.c      fault_rows       s/ \&\& !r->torn//
redis-revive   backends/redis/lua/session.lua redis_lease   s/^if ARGV.3. == .renew. and not lives(sid) then return .*/local _ = sid/
redis-oom      backends/redis/lua/common.lua redis_server   s/^  call(.ZREM., I, ..)$/  local _ = I/
redis-fences   backends/redis/lua/head.lua redis_server    s/if last < us and us < 4503599627370496 then last = us end/last = last/
redis-named    backends/redis/lua/plain.lua conformance_redis_add_with s/if named\[key\] or /if /
redis-fence    backends/redis/lua/plain.lua redis_server    s/sub(rec, 27, 41) ~= ARGV.9 + nf + na + i. then/false then/
redis-due      backends/redis/lua/plain.lua model_differential_redis s/not (due and due <= us) and/true and/
redis-asleep   backends/redis/lua/plain.lua redis_processes s/(na == 0 or calm) and/true and/
redis-ended    backends/redis/lua/plain.lua redis_lease     s/first and end1 > us and/first and/
redis-plain    backends/redis/lua/plain.lua model_differential_redis s/if byte(members\[i\], 8) ~= 0 then usual = false break end/local _ = i/
redis-guard    backends/redis/lua/session.lua redis_view    s/string.rep(.*, 80)/sid/
redis-oldest   backends/redis/lua/session.lua redis_lease   s/tonumber(oldest\[2\]) <= us or/false or/
redis-compare  backends/redis/lua/commit.lua redis_processes s/~= ARGV\[i + 1\] then return {.AGAIN.} end/== 0 then return {} end/
redis-wake     backends/redis/lua/common.lua redis_processes s/^  if n <= 0 then return end/  if n then return end/
redis-release  backends/redis/engine.c    redis_link       s/err = wq__redis_release(e, e->session, false, known, n);/(void)known, (void)n;/
redis-script   backends/redis/scripts.c   redis_server     s/const bool missing = wq__reply_is_error(reply, "NOSCRIPT");/const bool missing = false;/
redis-timeout  backends/redis/wire.c      redis_link       s/if (!wq__wire_await(w->fd, POLLIN, deadline_ns))/if (!wq__wire_await(w->fd, POLLIN, deadline_ns + WQ_SECONDS(100)))/
redis-trust    backends/redis/tls.c       redis_tls        s/SSL_VERIFY_PEER/SSL_VERIFY_NONE/
redis-host     backends/redis/tls.c       redis_tls        s/if (!bio || !set_name(ssl, w->at.host)) {/(void)set_name; if (!bio) {/
redis-tls-stale backends/redis/wire.c     redis_tls        s/^        return wq__tls_is_stale(w);/        return false;/
redis-tls-pipe backends/redis/tls.c       redis_tls        s/MSG_NOSIGNAL/0/
redis-rotate   backends/redis/login.c     redis_access     s/ = l->file ? read_again(l) : NULL;/ = l->file \&\& 0 ? read_again(l) : NULL;/
redis-name     backends/redis/wire.c      redis_access     s/^    if (step == PASSWORD || wq__reply_is_error/    if (step != DATABASE || wq__reply_is_error/
redis-expiry   src/shared/row_ops.c       redis_lease      s/x.row.expiries += expired;/(void)0;/
redis-wait     backends/redis/replicas.c  redis_replicas   s/if (c->acks < c->replicas)/if (0)/
redis-wait-get backends/redis/replicas.c  redis_replicas   s/confirmed || !has_handed_out(batch)/confirmed || has_handed_out(batch)/
redis-wait-any backends/redis/rows.c      redis_replicas   s/^        !e->confirms) {/        true) {/
redis-forgets  backends/redis/call.c      redis_server     s/if (w->only .. w->connects != w->only)/if (0)/
redis-role     backends/redis/route.c     redis_sentinel   s/strcmp(reply->element.0.->str, "master") != 0/false/
redis-asks     backends/redis/sentinel.c  redis_sentinel   s/% r->len;/* 0;/
redis-leaves   backends/redis/route.c     redis_sentinel   s/^        forget(w);/        (void)forget;/
redis-moved    backends/redis/route.c     redis_cluster    s/^    if (wq__reply_is_error(reply, "MOVED "))/    if (wq__reply_is_error(reply, "NONE "))/
redis-slot     backends/redis/scripts.c   redis_cluster    s/.used., .none.}/"used", "used"}/
redis-nodes    backends/redis/route.c     redis_cluster    s/r->known.r->next++ % r->len./r->known[0]/
redis-looked   backends/redis/lua/session.lua redis_partitions s/if parts ~= .1. or known_keys() > 0 or call/if true or call/
redis-claims   backends/redis/open.c      redis_partitions s/wq__redis_change_session(e, 0, "check")/wq__redis_change_session(e, 0, "claim")/
redis-unused   backends/redis/lua/session.lua redis_partitions s/known_keys() > 0 or call/false or call/
metrics-gauge  src/metrics/exposition.c   behaviour_registry s/ || !name->now.unknown;/ || name;/
next-state     src/shared/gets.c          conformance_redis_parts s/if (err == WQ_ESTATE) .*/if (0)/
redis-order    backends/redis/rows.c      redis_lease      s/^    qsort(list, \*n, sizeof \*list, compare_holds);/    (void)compare_holds;/
redis-look     backends/redis/wait.c      redis_watch      s/^    if (timerfd_settime(/    if (0 \&\& timerfd_settime(/
redis-watch    backends/redis/engine.c    redis_watch      s/^        wq__redis_session_changed(e);/        (void)0;/
redis-numeric  backends/redis/resolve.c   redis_resolve    s/numeric, out) == 0)/numeric, out) == 99)/
redis-wipe     backends/redis/wire.c      redis_access     s/^    wipe_sent(w);/    (void)wipe_sent;/
redis-sweep    backends/redis/lua/step.lua redis_lease     s/^if tonumber(ends.2.) <= us then return .*/local _ = ends/
redis-holder   backends/redis/lua/step.lua redis_failover  s/ and sub(rec, 27, 41) == ARGV.9 + nf + na + i.$//
redis-valid    src/shared/lease.c         redis_link       s/const int64_t until = wq__span_add(sent_ns, e->lease_ns);/const int64_t until = wq__span_add(now, e->lease_ns);/
redis-renewal  backends/redis/engine.c    redis_link       s/call(e, &e->side_wire, &e->side_args, WQ__SCRIPT_SESSION, &reply);/call(e, \&e->wire, \&e->side_args, WQ__SCRIPT_SESSION, \&reply);/
redis-sigpipe  backends/redis/wire.c      redis_link       s/: send(w->fd, data, len, MSG_NOSIGNAL);/: send(w->fd, data, len, 0);/
redis-reader   backends/redis/wire.c      redis_link       s/^        redisReaderFree(w->reader);/        (void)0;/
redis-part-hash     backends/redis/spread.c redis_partitions s/^    return (unsigned)((h . (h >> 33)) % n);/    return (unsigned)(h % n);/
redis-part-number   backends/redis/lua/session.lua redis_partitions s/^  local changes = version and parts ~= ARGV.6.$/  local changes = false/
redis-part-bucket   backends/redis/open.c redis_partitions s/^        l->rate .= parts;/        (void)0;/
redis-part-turn     backends/redis/spread_gets.c redis_partitions s/if (s->streak >= BURST || /if (s->streak >= 100000 * BURST || /
redis-part-others   backends/redis/spread_gets.c redis_partitions s/if (!s->share.p..fresh && !s->share.p..err) {/if (s->n == 0) {/
redis-part-divide   backends/redis/spread.c redis_partitions s/op->as.add.added.c->index.i.. =/op->as.add.added[i] =/
redis-part-caution  backends/redis/spread.c redis_partitions s/(s->copies.i - 1..skipped || s->copies.i - 1..op.err);/false;/
redis-part-partial  backends/redis/spread.c redis_partitions s/op->err = !err == !before ? before : WQ_EIO;/op->err = before;/
redis-part-awake    backends/redis/spread.c redis_partitions s/(next_ns <= now_ns || asleep)/(next_ns <= now_ns || (asleep \&\& 0))/
redis-part-reach    backends/redis/spread.c redis_partitions s/^    if (share->err == WQ_EAWAY)$/    if (0)/
redis-part-lost     backends/redis/spread_session.c redis_partitions s/^            r->loses |= holds_in(r, p) > 0;/            (void)holds_in(r, p);/
redis-part-give     backends/redis/spread_session.c redis_partitions s/^            atomic_store(&s->session, id);/            (void)id;/
redis-part-renew    backends/redis/spread_session.c redis_partitions s/^    return atomic_load(&e->holds);/    return false;/
redis-part-spare    backends/redis/spread_session.c redis_partitions s/if (errs.p. && matters(s->part.p.) && err != WQ_ELOST)/if (errs[p] \&\& (matters(s->part[p]) || 1) \&\& err != WQ_ELOST)/
redis-part-walk     backends/redis/spread_view.c redis_partitions s/op->as.walk.part + 1 < s->n)/s->n == 0)/
redis-part-holders  backends/redis/view.c redis_partitions s/while (k < ids->len && ids->at.k. != id)/while (k < ids->len)/
redis-part-check    backends/redis/view.c redis_partitions s/: part_of(e, key) != e->part$/: part_of(e, key) == -7/
redis-part-later    backends/redis/spread_session.c redis_partitions s/^        wq__spread_put_off(s, p, begin_ns);/        wq__spread_put_out(s, p);/
redis-close    backends/redis/wire.c      redis_link       /^wq__wire_close(/,/^}/s/^        (void)close(w->fd);/        (void)0;/
redis-busy     backends/redis/wire.c      redis_server     s/{"BUSY", "is running a script of another client; try again"},//
redis-token    backends/redis/wait.c      redis_processes  s/^#define LOOK_NS WQ_SECONDS(1)/#define LOOK_NS WQ_SECONDS(1000)/
redis-take     src/shared/row_ops.c       redis_lease      s/ || before.owner != from)/ || from == 99)/
redis-back     backends/redis/lua/head.lua redis_clock     s/if us + ahead < seen or ahead > 0 and us >= seen then/if false then/
redis-forward  backends/redis/time.c      redis_clock      s/if (known && least - now > c->tolerance_ns)/if (0 \&\& known)/
redis-late     backends/redis/lua/read.lua redis_clock     s/^if ARGV.7. ~= .0. and us > .*/local _ = us/
redis-steady   backends/redis/open.c      redis_clock      s/e->base.steady_clock = e->own_clock ? wq_clock_boottime() : clock;/e->base.steady_clock = e->base.clock;/
redis-limit    backends/redis/engine.c    redis_link       s/^    limit_renewals(e);/    (void)limit_renewals;/
redis-limit2   backends/redis/engine.c    redis_replicas   s/lesser(e->side_confirm.timeout_ns, third_ns \/ 4)/e->side_confirm.timeout_ns/
redis-address  backends/redis/wire.c      redis_addresses  s/(deadline_ns - now_ns) \/ count_addresses(a)/count_addresses(a) ? deadline_ns - now_ns : 0/
redis-away     backends/redis/open.c      redis_cluster    s/err != WQ_EAWAY || !root->parts_stored/err != WQ_EAWAY/
redis-back-in  backends/redis/spread.c    redis_cluster    s/ || may_be_back(s, p) ||/ || (0 \&\& may_be_back(s, p)) ||/
redis-served   backends/redis/route.c     redis_cluster    s/^        r->at = w->at;/        (void)0;/
redis-copy     backends/redis/open.c      redis_access     s/wq_err err = model ? wq__login_copy/wq_err err = model \&\& 0 ? wq__login_copy/
redis-quote    backends/redis/wire.c      redis_access     s/^    return (int)strcspn(error, .*/    return 100;/
redis-denied   backends/redis/wire.c      redis_access     s/^    return step != NAME || !(wq__reply_is_error(reply, "NOPERM") ||/    return step != NAME || !(1 ||/
redis-pipe     backends/redis/login.c     redis_access     s/^    return copy(l->password, password);/    return l->file ? WQ_OK : copy(l->password, password);/
redis-cwd      backends/redis/login.c     redis_access     s/ = \*path == .\/. ? NULL : getcwd(NULL, 0);/ = NULL;/
redis-move     backends/redis/wire.c      redis_cluster    s/w->connects++ \&\& w->was_lost/w->connects++/
lease-leads    src/shared/lease.c         shared_lease     s/s->in_doubt \&\& !s->leading;/s->in_doubt;/
redis-who      backends/redis/lua/session.lua redis_holders s/call(.HLEN., who()) > call(.ZCARD., S)/false/
redis-who-end  backends/redis/lua/session.lua redis_holders s/^  call(.HDEL., who(), sid)$/  local _ = sid/
redis-who-shown backends/redis/rows.c     redis_holders    s/bytes\[k\] > . . \&\& bytes\[k\] <= .~. ? bytes\[k\]/1 ? bytes[k]/
redis-linked   backends/redis/spread_session.c redis_partitions s/linked = wq__wire_is_ready(&e->side_wire);/linked = e->side_wire.fd >= 0;/
lease-watch    src/shared/lease.c         shared_lease     s/^    if (!err \&\& s->on_lost)/    if (0)/
lease-again    src/shared/lease.c         shared_lease     s/until_ns = wq__span_add(now, s->engine->lease_ns \/ 3);/until_ns = WQ_FOREVER;/
lease-callback src/shared/lease.c         shared_lease     s/^    if (!err \&\& s->on_lost)/    if (!err)/
redis-kept     backends/redis/engine.c    redis_link       s/atomic_store(&e->base.kept, (size_t)wq__reply_int(reply, 2));/(void)0;/
redis-linger   backends/redis/wire.c      redis_hosts      s/^        abort_connection(w->fd);/        (void)abort_connection;/
gather-rest    src/shared/yields.h        shared_gather    s/now_ns + WQ__YIELDS_REST \* (loss_ns/now_ns + 0 * (loss_ns/
gather-most    src/shared/yields.h        shared_gather    s/loss_ns < WQ__YIELDS_MOST/loss_ns < INT64_MAX/
gather-free    src/shared/yields.h        shared_gather    s/now_ns - begin_ns - free_ns;/now_ns - begin_ns - 400000;/
gather-may     src/shared/combine.c       shared_gather    s/^    if (!wq__yields_may(&s->yields, begin_ns))/    if (0)/
gather-posts   src/shared/combine.c       shared_gather    s/(int64_t)(s->posted - posted + 1));/(int64_t)(posted + 1));/
gather-await   src/shared/combine.c       shared_gather    s/^        await_posts(s);/        (void)await_posts;/
gather-near    src/shared/combine.c       shared_gather    s/^    if (s->engine->distant)/    if (1)/
gather-few     src/shared/combine.c       shared_gather    s/>= s->threads - s->threads \/ 8;/>= s->threads;/
gather-until   src/shared/combine.c       shared_gather    s/begin_ns + GATHER_NS)/begin_ns + 10 * GATHER_NS)/
gather-vain    src/shared/combine.c       shared_gather    s/^        s->in_vain = GATHER_REST;/        s->in_vain = 0;/
gather-again   src/shared/combine.c       shared_gather    s/^        s->in_vain--;/        (void)s;/
gather-some    src/shared/combine.c       shared_gather    s/^    if (s->posted == posted)/    if (posted)/
gather-lost    src/shared/combine.c       shared_gather    s/^    if (most_have_posted(s) || !wq__yields_may(&s->yields, begin_ns))/    if (most_have_posted(s))/
gather-alone   src/shared/combine.c       shared_gather    s/s->last_posts) > 1 \&\&/s->last_posts) > 0 \&\&/
gather-afar    backends/redis/open.c      redis_flights    s/^    e->base.distant = true;/    e->base.distant = false;/
gather-parts   backends/redis/spread_session.c redis_flights s/\.distant = true,/.distant = false,/
flight-doubt   src/shared/batch.c         shared_flights   s/^        if (s->flying \&\& !is_certain(s))/        if (s->flying \&\& !is_certain(s) \&\& 0)/
flight-land    src/shared/batch.c         shared_flights   s/= s->flying ? wq__batch_land(s) : NULL;/= NULL;/
flight-share   src/shared/batch.c         shared_flights   s/return s->begins \&\& s->crowd/return 0/
flight-order   backends/redis/call.c      redis_flights    s/^    wq__wire_keep_replies(w);.*/    (void)0;/
flight-lost    backends/redis/wire.c      redis_flights    s/^            w->ahead\[i\].err = WQ_EIO;/            (void)0;/
flight-stale   backends/redis/engine.c    redis_flights    s/^        if (e->wire.stale) {/        if (0) {/
flight-args    backends/redis/step.c      redis_flights    /^resume(/,/^}/s/^    exchange(&e->args, &e->ahead\[0\]);/    (void)0;/
flight-waited  src/shared/batch.c         shared_flights   s/^    if (f.waited \&\& !f.begun) .*/    if (0)/
flight-former  backends/redis/step.c      redis_flights    s/ \&\& begun \&\& is_of_former(e, session)) {/ \&\& begun \&\& is_of_former(e, 0 * session) \&\& 0) {/
flight-pulse   backends/redis/engine.c    redis_flights    s/^            if (e->wire.stale)/            if (0)/
calm-late      backends/redis/lua/common.lua redis_server  s/^  if stirs then due_known = false end/  if stirs then due_known = false stir() end/
calm-due       backends/redis/lua/common.lua model_differential_redis s/^  if stirs then stir() end//
calm-sleep     backends/redis/lua/session.lua redis_processes /^if ARGV.3. == .sleep/,/^end/s/^    stir()$//
calm-session   backends/redis/lua/session.lua redis_lease   s/^stir()$//
calm-lives     backends/redis/lua/plain.lua redis_server    s/usual = usual and (first == sid or lives == sid or call(.ZSCORE., S, sid))/usual = usual/
look-pays      backends/redis/looks.h     redis_looks      s/l->looks.mean_ns \* 5 \/ 4 <=/l->looks.mean_ns <=/
look-trial     backends/redis/looks.h     redis_looks      s/return round % WQ__LOOK_TRIAL ? pays : !pays;/return pays;/
look-outlier   backends/redis/looks.h     redis_looks      s/took_ns < WQ__LOOK_OUTLIER ? took_ns : WQ__LOOK_OUTLIER/took_ns/
look-memory    backends/redis/looks.h     redis_looks      s/^    if (w->n < WQ__LOOK_MEMORY)/    if (w->n < 1000000)/
look-turn      backends/redis/looks.h     redis_looks      s/return round % 2 == 0;/return true;/
look-kind      backends/redis/looks.h     redis_looks      s/l->looks_first ? &l->looks : &l->sleeps/!l->looks_first ? \&l->looks : \&l->sleeps/
look-settle    backends/redis/looks.h     redis_looks      s/WQ__LOOK_SETTLE = 2/WQ__LOOK_SETTLE = 0/
look-start     backends/redis/looks.h     redis_looks      s/WQ__LOOK_START = 2/WQ__LOOK_START = 0/
look-yield     backends/redis/wire.c      redis_looks      s/^    if (yields)$/    if (0)/
look-keep      backends/redis/wire.c      redis_looks      s/ \&\& wq__yields_may(w->yields, begin_ns);/;/
look-loss      backends/redis/wire.c      redis_looks      s/^        wq__yields_note(w->yields, .*/        (void)0;/
look-account   backends/redis/spread_session.c redis_flights s/wire.yields = &root->yields;/wire.yields = \&s->part[p]->yields;/
look-deadline  backends/redis/wire.c      redis_looks      s/most_ns < deadline_ns ? most_ns : deadline_ns/most_ns/
look-anew      backends/redis/wire.c      redis_looks      s/^    w->looks = (struct wq__looks){.waits = 0};.*/    (void)0;/
look-first     backends/redis/wire.c      redis_looks      s/^    if (looks)$/    if (1)/
look-long      backends/redis/wire.c      redis_looks      s/begin_ns + WQ__LOOK_MOST;/begin_ns + WQ_SECONDS(1);/
redis-long     backends/redis/rows.c      redis_view       s/if (key.len > WQ_KEY_MAX ||/if (/
'

scratch=build/mutants
labels='unit|behaviour|model|fault|shared|sqlite|redis|conformance'

# Prints the rows that are asked for.
rows() {
    echo "$table" | while read -r name rest; do
        [ "$name" ] || continue
        case " $* " in "  " | *" $name "*) echo "$name $rest" ;; esac
    done
}

# Is this a test program? A build of any other fails, as if the compiler noticed
# the mutant.
is_program() {
    case $1 in
    scenario_*) [ -f "tests/scenarios/${1#*_}.scenario" ] ;;
    model_*_redis) [ -f "tests/model/test_differential.c" ] ;;
    conformance_*) [ -f tests/conformance/test_conformance.c ] ;;
    *) [ -f "tests/${1%%_*}/test_${1#*_}.c" ] ;;
    esac
}

# Fails unless every row changes its file and names a test program, and every
# name has a row.
check_rows() {
    for name; do
        if [ -z "$(rows "$name")" ]; then
            echo "mutants: '$name' is not in the table" >&2
            return 1
        fi
    done
    rows "$@" | {
        status=0
        while read -r name file program change; do
            if sed "$change" "$file" | cmp -s - "$file"; then
                echo "mutants: $name: changes nothing in $file" >&2
                status=1
            fi
            if ! is_program "$program"; then
                echo "mutants: $name: there is no test program $program" >&2
                status=1
            fi
        done
        exit $status
    }
}

# Builds a target; fails if the compiler notices the mutant.
build() {
    cmake --build "$scratch/build" --parallel "$(nproc)" --target "$1" \
        >"$scratch/log" 2>&1
}

# Runs the tests that the options choose, until one fails.
run_tests() {
    ctest --test-dir "$scratch/build" -j2 --stop-on-failure "$@" \
        >"$scratch/log" 2>&1
}

# Succeeds if no test fails. The stress tests take longest and run last.
passes_all() {
    build all && run_tests -L "$labels" && run_tests -L stress
}

check=
if [ "${1:-}" = --check ]; then
    check=yes
    shift
fi
check_rows "$@"
[ -z "$check" ] || exit 0

# With new timestamps: an interrupted run may have left a mutant built.
rm -rf "$scratch/tree"
mkdir -p "$scratch/tree"
scripts/files.sh | tar -cf - -T - | tar -xmf - -C "$scratch/tree"

[ -z "${CMAKE_GENERATOR:-}" ] && command -v ninja >/dev/null &&
    export CMAKE_GENERATOR=Ninja
cmake -S "$scratch/tree" -B "$scratch/build" -DCMAKE_BUILD_TYPE=Debug \
    -DWQ_DEBUG=ON -DWQ_TEST_SHARED=ON -DWQ_EXAMPLES=OFF -DWQ_BENCH=OFF \
    -DWQ_COMMAND=OFF -DWQ_TEST_TIMEOUT=150 >/dev/null
passes_all || {
    echo "mutants: the tests fail without a mutant" >&2
    tail "$scratch/log" >&2
    exit 1
}

echo "| mutant | file | killed by | s |"
echo "|---|---|---|--:|"
rows "$@" | {
    status=0
    while read -r name file program change; do
        begin=$(date +%s)
        sed -i "$change" "$scratch/tree/$file"
        skipped=
        if build "$program" && run_tests -R "^$program\\." &&
            skipped=$(sed -n 's/.*: \([^ ]*\) .*\*\*\*Skipped.*/\1/p' \
                "$scratch/log") && passes_all; then
            killer="nothing: it SURVIVED"
            status=1
            [ -z "$skipped" ] || killer="nothing here: $skipped was skipped"
        else
            # shellcheck disable=SC2016 # the quotes are Markdown's
            killer=$(sed -n '/\*\*\*Skipped/d
                s/.*Test *#[0-9]*: \([^ ]*\) .*\*\*\*.*/`\1`/p' \
                "$scratch/log" | head -n 1)
        fi
        echo "| $name | \`$file\` | ${killer:-the compiler} |" \
            "$(($(date +%s) - begin)) |"
        cp "$file" "$scratch/tree/$file" # with a new timestamp, so that it is built again
    done
    exit $status
}
