#!/bin/sh
# SPDX-License-Identifier: MIT
# Do the tests notice when a mechanism is broken? Breaks one at a time, in a copy
# below build/mutants, and expects a test to fail.
#
#     mutants.sh [NAME...]    only these
#     mutants.sh --check      only check that every row of the table applies
#
# A mutant is a row of the table: its name, the file, the test program that is
# expected to notice (it is tried first; then all others), and a sed command
# that must change the file: a row that changes nothing ends the run before it
# begins. Prints a row of a Markdown table for each. Fails if a mutant survives.
set -eu
cd "$(dirname "$0")/.."

table='
exclusion      src/core/core.c       unit_core              s/^    if (rec->flags & WQ__HELD) {/    if (0) {/
dirty          src/core/core.c       unit_core              s/^    if (rec->flags & (WQ__DIRTY | WQ__REMOVING)) {/    if (0) {/
merge          src/core/core.c       unit_core              s/^    if (wq__rec_is_wanted(rec)) {/    if (0) {/
respect        src/core/core.c       behaviour_rate_limiting s/if (wq__core_respects_backoff(c, rec)) {/if (0) {/
deferred       src/core/add.c        unit_add               s/tally.deferred++/tally.displaced++/
deferred-done  src/core/core.c       unit_add               s/tally.deferred++/tally.displaced++/
sooner         src/core/add.c        behaviour_delay        s/if (at >= wq__core_entry(c, ref)->at/if (at < wq__core_entry(c, ref)->at/
stale-done     src/core/loans.h      unit_loans             s/ == item \&\& loan->rec ? loan/ == item ? loan/
loan-foreign   src/core/loans.h      unit_loans             s/return &loan->item == item \&\& loan->rec/return loan->rec/
loan-fresh     src/core/loans.h      unit_loans             s/item->slot >= l->fresh)/item->slot >= l->limit)/
loan-again     src/core/loans.h      unit_loans             s/l->ended = loan->older ? wq__loans_at(l, loan->older) : NULL;/l->ended = NULL;/
raise-place    src/core/ready.c      unit_ready             s/^        take_out(r, ref);$/        (void)0;/
level-order    src/core/levels.c     unit_levels            s/priority > l->at/priority < l->at/
level-hold     src/core/core.c       unit_levels            s/^    wq__levels_hold(levels, level);/    (void)0;/
lazy-top       src/core/levels.h     unit_levels            s/return l->at\[top\].first ? top/return 1 ? top/
batch-undo     src/core/add.c        fault_core             s/^        drop_picks(c, picks, n);/        (void)0;/
victim         src/core/room.c       behaviour_bounds       s/while (ref \&\& wq__core_rec(c, ref)->flags & WQ__PICKED)/while (0)/
group-turn     src/core/groups.c     unit_groups            s/^    l->first = member(g, ref)->next; .*/    (void)l;/
group-behind   src/core/groups.c     unit_groups            s/^        member(g, m->next)->prev = head;/        member(g, m->next)->prev = level->first = head;/
group-head     src/core/groups.c     unit_groups            s/^        level->first = new;/        (void)level;/
group-lane     src/core/groups.c     unit_groups            s/^    member(g, head)->len--;/    (void)0;/
group-block    src/core/groups.c     unit_groups            /^block(/,/^}/s/^        leave_ring(g, head);/        (void)head;/
group-unblock  src/core/groups.c     unit_groups            s/^        unblock(g, group);/        (void)unblock;/
group-begin    src/core/groups.c     unit_groups            s/^    if (!wq__groups_is_blocked(g, group))/    if (1)/
group-offers   src/core/groups.c     unit_groups            s/return group->ready < more ? group->ready : more;/return group->ready;/
group-wake     src/memory/gate.c     behaviour_groups       s/^    return wq__core_offers(&m->core) + (pending/    return wq__core_len(\&m->core) + (pending/
group-gets     src/memory/stop.c     behaviour_groups       s/WQ__PAUSED | WQ__GROUPED | WQ__AGEING/WQ__PAUSED/
group-longest  src/core/room.c       behaviour_bounds       s/if (len > most \&\& unnamed_in_lane(s, g->at\[i\])) {/if (len \&\& unnamed_in_lane(s, g->at[i])) {/
group-name     src/core/groups.c     unit_groups            s/(!name.len || !memcmp(group->name, name.data, name.len))/true/
group-again    src/core/groups.c     unit_groups            s/\.number = g->spares ? g->spare\[--g->spares\] : g->fresh++/.number = g->fresh++/
group-grow     src/core/groups.c     unit_groups            s/^            enter_bucket(&more, more.at\[i\]);/            (void)more;/
group-undo     src/core/core.c       fault_core             /^register_record(/,/^}/s/^            return err;/            return WQ_OK;/
group-part     src/memory/adds.c     behaviour_groups       s/^           at - from <= whole.len - part.len;/           true;/
group-shown    src/memory/view.c     behaviour_groups       s/ || !pick.group.len)/)/
overdue        src/core/ready.c      behaviour_ageing       s/->ready, now) >=$/->ready, now) >/
overdue-count  src/core/ready.c      behaviour_ageing       s/r->overdue += top->first != ref;/r->overdue += ref != 0;/
age-list       src/core/ready.c      unit_groups            s/^        take_out_by_age(r, rec);/        (void)take_out_by_age;/
age-middle     src/core/ready.c      unit_groups            s/^        wq__rec_age(record(r, age.newer))->older = age.older;/        (void)age;/
age-deadline   src/core/due.c        behaviour_ageing       s/wq__core_want(c, ref, entry->level, entry->at, &what)/wq__core_want(c, ref, entry->level, now, \&what)/
bytes-back     src/core/core.c       behaviour_bounds       s/^        c->bytes -= wq__rec_len(rec);/        (void)rec;/
bytes-level    src/core/ready.c      behaviour_bounds       s/^        r->levels.at\[rec->level\].bytes -= wq__rec_len(rec);/        (void)rec;/
bytes-raise    src/core/ready.c      behaviour_bounds       s/^        levels\[level\].bytes += wq__rec_len(rec);/        (void)level;/
bytes-excess   src/core/room.c       behaviour_bounds       s/over.bytes = c->bytes - c->max_bytes;/over.bytes = 1;/
bytes-fit      src/core/room.c       behaviour_bounds       s/(!c->max_bytes || made.bytes <= c->max_bytes)/true/
bytes-named    src/core/room.c       behaviour_bounds       s/^                sum.bytes -= wq__rec_len(rec);/                (void)rec;/
bytes-promise  src/memory/gate.c     behaviour_bounds       s/^    m->promised.bytes -= p.promised.bytes;/    (void)0;/
bytes-room     src/memory/gate.c     behaviour_bounds       s/^        room.bytes -= p->needs.bytes;/        (void)p;/
flush-backoff  src/core/due.c        behaviour_waiting_flush s/if (!backoffs \&\& !wq__rec_is_expected(rec))/if (0)/
flush-all      src/memory/stop.c     behaviour_waiting_flush s/m->waiting == WQ_WAITING_FLUSH_ALL);/false);/
flush-order    src/core/due.c        behaviour_waiting_flush s/wq__heap_first(&c->waiting)->ref;$/c->waiting.entries[c->waiting.len - 1].ref;/
flush-refused  src/core/due.c        behaviour_waiting_flush /^wq__core_hasten(/,/^}/s/wq__heap_change(&c->waiting, ref, WQ_FOREVER);/(void)ref;/
flush-again    src/core/due.c        behaviour_waiting_flush /^wq__core_hasten(/,/^}/s/i < c->waiting.len; i++)/i < 0 * c->waiting.len; i++)/
nul            src/core/core.c       unit_core              s/^    at\[key.len\] = .*/    (void)at;/
nul-long       src/core/core.c       fault_core             s/^    copy\[key.len\] = .*/    (void)copy;/
quiet          src/core/core.c       behaviour_pace         s/pace->until = wq__span_add(now, pace->next_span);/pace->until = now;/
max-wait       src/core/add.c        behaviour_pace         s/earlier(at, wq__core_pace(c, ref)->latest)/at/
ties           src/core/heap.c       unit_heap              s/a->seq < b->seq/a->seq > b->seq/
index-hole     src/core/index.c      unit_index             s/>= ((i - hole)/> ((i - hole)/
index-place    src/core/index.h      unit_index             s/^        \*place = wq__index_place_for(ix, hash);/        (void)hash;/
index-shrink   src/core/index.c      unit_memory            s/to.few = cap > CAP_KEPT ? (cap + 15) \/ 16 : 0;/to.few = 0;/
hash-length    src/core/hash.c       unit_hash              s/multiply(n\[FOR_LEN\] + len,/multiply(n[FOR_LEN],/
hash-end       src/core/hash.c       unit_hash              s/return sum + pair(n + 2, end - 16);/return sum;/
give-back      src/core/slab.c       unit_slab              s/if (c->spare \&\& c->spare->live == 0) {/if (0) {/
spare          src/core/slab.c       unit_slab              s/if (c->spare \&\& c->spare->live == 0) {/if (c->blocks > 1) {/
walk           src/core/slab.c       unit_slab              s/<< UNIT_BITS | unit;$/<< UNIT_BITS;/
wake           src/memory/gate.c     unit_memory            s/^        wq__wake(wake);/        (void)wake;/
last-look      src/memory/gate.c     unit_falling_asleep    s/^    return wq__core_offers(&m->core) + (pending < most ? pending : most);/    return wq__core_offers(\&m->core) + 0 * pending * most;/
publish        src/memory/gate.c     unit_falling_asleep    /^let_go(/,/^}/{/^    publish_rouse_from(m);/d;}
beacon-dim     src/memory/gate.c     behaviour_fd           s/        wq__beacon_dim(&m->beacon, WQ__LIT_BY_QUEUE);/        (void)0;/
beacon-sleep   src/memory/gate.c     behaviour_fd           s/    if ((m->watched \&\& !m->lit) || wq__gate_tells(m))/    if (wq__gate_tells(m))/
beacon-fork    src/port/beacon.c     behaviour_fork_signals s/return b->forks == forks;/return true;/
keeper         src/memory/gate.c     behaviour_delay        s/if (m->getters.len \&\& !deadline_is_watched(m))/if (0)/
promise        src/memory/gate.c     behaviour_bounds       s/^    m->promised.keys -= p.promised.keys;/    (void)0;/
room           src/memory/gate.c     behaviour_bounds       s/^    wake = take_producers(m, wake);/    (void)take_producers;/
rouse          src/memory/adds.c     unit_memory            s/if (position < from \&\& !has_lost_spinner(m, position, from))/if (from + 1)/
spinner-all    src/memory/gate.c     unit_spin              s/return m->inbox.head + (ready < WQ__SPARED ? WQ__SPARED - ready : 0);/return WQ__ROUSE_NOBODY;/
spinner-ready  src/memory/gate.c     unit_spin              s/(ready < WQ__SPARED ? WQ__SPARED - ready : 0)/WQ__SPARED/
spinner-lost   src/memory/adds.c     unit_spin              s/position < from \&\& !has_lost_spinner(m, position, from)/position < from/
spinner-count  src/memory/gate.c     unit_spin              /^wq__gate_give_up_spinner/,/^}/s/m->spinner = 0;/(void)0;/
second-look    src/memory/gate.c     unit_spin              s/m->spinner ? 2 : 1/1/
spin-pay       src/memory/spin.h     unit_spin              s/^    s->account = s->account > looks ? s->account - looks : 0;/    (void)looks;/
spin-trial     src/memory/spin.h     unit_spin              s/^    wq__spin_earn(s, WQ__SPIN_TRIAL);/    (void)s;/
tell-first     src/memory/gate.c     unit_report            /^wq__gate_await_work/,/^}/s/if (wq__gate_tell_inside(m))/if (0)/
tell-blocked   src/memory/gate.c     unit_report            /^wq__gate_await_room/,/^}/s/if (wq__gate_tell_inside(m))/if (0)/
real-time      src/memory/create.c   behaviour_real_time    s/^    if (m->real_time)/    if (0)/
real-time-hand src/memory/create.c   unit_memory            s/ \&\& !config->real_time \&\&$/ \&\&/
real-time-spin src/memory/create.c   unit_memory            s/wq__thread_processors() > 1 \&\& !config->real_time;/wq__thread_processors() > 1;/
real-time-wake src/memory/gate.c     unit_wake_order        s/^    if (m->real_time) {/    if (0) {/
destroy-lock   src/memory/gate.c     stress_destroy         s/^    wq__gate_enter(m); .. the last thread has released.*/    wq__lock_assert_taken(\&m->lock);/
layer-drain    src/layer/delaying.c  behaviour_layers_full  s/^        d->inner->backend->shutdown(d->inner);.*/        (void)0;/
cancel         src/port/cancel.h     stress_cancel          s/PTHREAD_CANCEL_DISABLE/PTHREAD_CANCEL_ENABLE/
cancel-join    src/port/thread.c     behaviour_cancellation s/const int state = wq__cancel_off();/const int state = PTHREAD_CANCEL_ENABLE;/
base64-bits    src/text/escape.c     unit_text              s/bits >> 12 \& 63/bits >> 12 \& 31/
cancel-write   src/front/inspect.c   behaviour_dump         s/wq__cancel_off();/PTHREAD_CANCEL_ENABLE;/
time-seconds   src/port/time.h       unit_port              s/return seconds < most ? seconds : most;/return seconds;/
ring-limit     src/memory/inbox.h    unit_inbox             s/in->head + WQ__INBOX_CELLS;/in->head + WQ__INBOX_CELLS + 1;/
deadline-first src/memory/inbox.c    unit_memory            s/        if (core->waiting.len)$/        if (0)/
closed         src/memory/stop.c     unit_memory            s/^    wq__inbox_close(&m->inbox);//
undo           src/memory/limited.c  behaviour_rate_limiting s/^            wq__retry_undo(&m->retry, keys\[i\]);/            (void)0;/
told-twice     src/memory/report.c   behaviour_sinks        s/^    \*told = now;/    (void)told;/
lock-try       src/port/lock.h       unit_port              s/uint32_t expected = 0;/uint32_t expected = 1;/
lock-sleeper   src/port/lock.c       unit_port              s/exchange_explicit(&l->word, 2, memory/exchange_explicit(\&l->word, 1, memory/
lock-wake      src/port/lock.h       unit_port              s/^        wq__lock_wake_one(l);/        (void)0;/
limiter-leak   src/memory/create.c   behaviour_rate_limiting s/^        wq_limiter_destroy(limiter); .. unless.*/        (void)limiter;/
layer-limiter  src/layer/rate_limiting.c behaviour_layers  s/^        wq_limiter_destroy(limiter); .. unless.*/        (void)limiter;/
limiter-short  src/config/config.c   behaviour_rate_limiting s/config->size >= end \&\&/config->size >= sizeof(size_t) \&\&/
limiter-failed src/limit/limiter.c   behaviour_limiter      s/return l \&\& !l->err \&\& key.data/return l \&\& key.data/
limiter-claim  src/limit/limiter.c   unit_limit_memory      s/^    return !wq_limiter_error(l) \&\&$/    return l \&\&/
limiter-first  src/limit/combine.c   behaviour_limiter      s/^        } else if (!err) {/        } else {/
limiter-why    src/limit/limiter.c   behaviour_last_error   s/^    if (explained.limiter == l \&\& explained/    if (0 \&\& explained/
limiter-whose  src/limit/limiter.c   behaviour_last_error   s/^    if (explained.limiter == l \&\& explained.*/    if (explained.limiter == l)/
limiter-other  src/limit/limiter.c   behaviour_last_error   s/^    if (explained.limiter == l \&\& explained/    if (explained/
limiter-turn   src/limit/limiter.c   behaviour_last_error   s/(&turn, 1, memory/(\&turn, 0, memory/
destroy-says   src/limit/limiter.c   behaviour_last_error   s/^    wq__fail_restore(&saved);/    (void)saved;/
own-self       src/limit/own.c       behaviour_limiter      s/^        theirs.destroy(self);/        (void)self;/
fail-thread    src/error/last.c      behaviour_last_error   s/^static _Thread_local struct wq__sentence last;/static struct wq__sentence last;/
fail-errno     src/error/last.c      behaviour_last_error   s/^    errno = cause;/    (void)cause;/
fail-restored  src/error/last.c      behaviour_last_error   s/^    last.number++; .. the number.*/    (void)0;/
step-caller    src/workers/work.c    behaviour_last_error   s/config_read("wq_work_one", /config_read("wq_workers_start", /
step-queue     src/workers/work.c    behaviour_last_error   s/^    if (!q)$/    if (0)/
layer-bytes    src/config/config.c   behaviour_last_error   s/{c->max_bytes, "max_bytes"}/{false, "max_bytes"}/
fail-cut       src/error/last.c      behaviour_last_error   s/^        s\[lead\] = .*/        (void)s;/
sink-why       src/memory/report.c   behaviour_last_error   s/if (err \&\& wq__fail_count() == before)/if (err)/
clock-step     src/clock/fake.c      behaviour_clock        s/^    alarm_sleepers(f);/    (void)f;/
refused-key    src/layer/delaying.c  behaviour_layers_full  s/^    if (still_due)$/    if (0)/
refused-first  src/layer/delaying.c  behaviour_layers_full  s/err == WQ_EFULL || err == WQ_ENOMEM/0/
layer-calls    src/layer/calls.h     behaviour_layers_full  s/if (atomic_load_explicit(\&c->n, memory_order_acquire) != 0)/if (0)/
due-first      src/layer/delaying.c  behaviour_layers       s/^    (void)hand_over(d);$/    (void)d;/
woken-waiter   src/clock/fake.c      behaviour_clock        s/!wq__parker_is_woken(w->parker)/true/
give-up-copy   src/limit/retry.c     behaviour_rate_limiting s/(wq_key){copy, key.len}/key/
give-up-later  src/limit/retry.c     behaviour_rate_limiting s/^        return WQ_ENOMEM;/        return wq_limiter_forget(r->limiter, key), WQ_ENOMEM;/
drop-once      src/workers/work.c    unit_workers_results   s/if (why != WQ_EGIVENUP)/if (true)/
drop-count     src/memory/limited.c  behaviour_metrics      s/atomic_fetch_add_explicit(&m->dropped, n,/atomic_fetch_add_explicit(\&m->dropped, 0 * n,/
layer-drops    src/layer/rate_limiting.c behaviour_layers   s/if (err == WQ_EGIVENUP)/if (0)/
again-now      src/workers/work.c    unit_workers_results   s/return after_ns > 0 ? wq_add_after/return 1 ? wq_add_after/
drop-twice     src/workers/work.c    unit_workers_results   s/^    if (loan->dropped)$/    if (0)/
drop-next      src/workers/work.c    unit_workers_results   s/^    loan->dropped = false;/    (void)0;/
done-lost      src/workers/work.c    unit_workers_results   s/return err \&\& err != WQ_ESTATE \&\&/return 0 \&\& err != WQ_ESTATE \&\&/
done-foreign   src/workers/work.c    unit_workers_results   s/ \&\& err != WQ_ELOST;/;/
step-on-loan   src/workers/work.c    unit_workers_results   s/^    if (is_still_on_loan(err))$/    if (0)/
nowait-limit   src/front/adds.c      behaviour_bad_input    s/!err \&\& how->nowait \&\& how->max_block_ns/false/
bucket-back    src/limit/tokens.c    unit_bucket            s/return now > level->last_ns ? now : level->last_ns;/return now;/
removing       src/core/core.c       behaviour_remove_wait  s/^    if (rec->flags & WQ__REMOVING) {/    if (0) {/
remove-mark    src/memory/waits.c    behaviour_remove_wait  s/^    (void)wq__core_remove_at_done(&m->core, w->key, w->hash, true);/    (void)0;/
remove-last    src/memory/waits.c    behaviour_remove_wait  s/if (err \&\& !is_being_removed(m, w->key))/if (err)/
remove-keeps   src/memory/waits.c    behaviour_remove_wait  s/if (err \&\& !is_being_removed(m, w->key))/if (0)/
remove-over    src/memory/waits.c    behaviour_remove_wait  s/if (!r->waiter->over \&\& wq__same_key/if (wq__same_key/
remove-list    src/memory/waits.c    behaviour_remove_wait  /^leave_list/,/^}/s/^    \*link = r->next;/    (void)r->next;/
remove-notsup  src/memory/waits.c    behaviour_remove_wait  s/if (removed == WQ_ENOTSUP)/if (0)/
remove-quiet   src/memory/memory.h   behaviour_remove_wait  s/: INT64_MIN;/: 0;/
flush-unwant   src/core/core.c       behaviour_flush        s/^    end_run(c, ready ? .*/    (void)ready;/
flush-done     src/core/core.c       behaviour_flush        s/^    end_run(c, turn);/    (void)turn;/
flush-dirty    src/core/core.c       behaviour_flush        s/^    wq__rec_set_next_turn(rec, wq__flush_mark(&c->flush));/    (void)0;/
flush-ready    src/core/core.c       unit_flush             s/^        wq__rec_set_turn(rec, wq__flush_mark(&c->flush));/        (void)0;/
flush-back     src/core/core.c       unit_flush             s/^    wq__rec_set_turn(rec, wq__rec_next_turn(rec));/    (void)0;/
flush-asked    src/core/flush.c      unit_flush             s/^        f->close_next = true;/        (void)f;/
flush-close    src/core/flush.c      unit_flush             s/^        if (f->close_next)/        if (0)/
flush-inbox    src/memory/waits.c    behaviour_flush        /^prepare(/,/^}/s/wq__gate_catch_up(m)/WQ_OK/
flush-holder   src/memory/waits.c    behaviour_flush        s/return wq__core_holds_any(&m->core, wq__slot_serial()) ? WQ_ESTATE : WQ_OK;/return WQ_OK;/
key-holder     src/memory/waits.c    behaviour_flush        s/               ? WQ_ESTATE/               ? WQ_OK/
key-removed    src/core/core.c       behaviour_flush        s/^        errand->wanted = errand->wanted .*/        (void)errand;/
key-begun      src/core/core.c       behaviour_flush        s/^    errand->fence = fence;/    (void)fence;/
idle-over      src/memory/waits.c    behaviour_flush        s/while (!w->over \&\& !is_over(m, w)) {/while (!is_over(m, w)) {/
wait-told      src/memory/gate.c     behaviour_flush        /^wq__gate_await_waiter/,/^}/{/tell_inside/d;s/^    wq__sleeper_enter(/    (void)wq__gate_tell_inside(m); &/;}
wait-wake      src/memory/gate.c     behaviour_flush        s/^        wake = wq__waits_take(m, wake);/        (void)wq__waits_take;/
wait-destroy   src/memory/waits.c    behaviour_flush        s/w->over = m->destroying || is_over(m, w);/w->over = is_over(m, w);/
pause-work     src/memory/gate.c     unit_pause             s/^    if (wq__core_is_paused(&m->core))/    if (0)/
removed-inbox  src/memory/gets.c     unit_waits             s/    if (lack \&\& m->removers)/    if (0)/
idle-inbox     src/memory/waits.c    unit_waits             s/return w->what == IDLE \&\& wq__core_idle(&m->core);/return 0 * (w->what + m->blocked);/
pause-deadline src/memory/gate.c     behaviour_pause        s/^                    wq__core_is_paused(&m->core)$/                    0/
lane-named     src/core/room.c       behaviour_bounds       s/len > most \&\& unnamed_in_lane(s, g->at\[i\])/len > most \&\& (most == 0 || unnamed_in_lane(s, g->at[i]))/
age-at-done    src/core/core.c       behaviour_ageing       s/^    begin_age(c, rec, now);$/    (void)now;/
pause-beacon   src/memory/gate.c     unit_pause             s/ \&\& !wq__core_is_paused(&m->core);/;/
pause-offers   src/core/ready.h      behaviour_pause        s/^    if (r->special & WQ__PAUSED)/    if (0)/
pause-plain    src/memory/stop.c     behaviour_pause        s/const unsigned other = WQ__PAUSED | /const unsigned other = /
pause-end      src/memory/stop.c     behaviour_pause        /^stop_adds/,/^}/s/^    wq__core_pause(&m->core, false);/    (void)0;/
pause-late     src/memory/stop.c     behaviour_pause        s/m->core.shutting_down ? WQ_ESHUTDOWN : WQ_OK;/WQ_OK;/
pause-metric   src/metrics/registry.c behaviour_registry    s/^    now->paused += counts->paused;/    (void)0;/
overdue-never  src/core/ready.c      model_model            s/^    return r->special & WQ__AGEING \&\&$/    return 0 \&\&/
overdue-oldest src/core/ready.c      model_model            s/const wq__ref           ref = r->oldest;/const wq__ref           ref = r->newest;/
overdue-raise  src/core/ready.c      model_model            s/^    rec->level = level;$/& if (r->special \& WQ__AGEING) { take_out_by_age(r, rec); append_by_age(r, ref, rec); }/
flush-fresh    src/core/core.c       model_model            s/(c->prefix | turn \* (WQ__TURN \/ 3))/(c->prefix + 0 * turn)/
flush-removed  src/core/core.c       model_model            s/^    end_run(c, ready ? wq__rec_turn(rec) : wq__rec_next_turn(rec));/    (void)ready;/
flush-fourth   src/core/flush.c      model_model            s/^        if (f->close_next)$/        if (0)/
flush-early    src/core/flush.h      model_model            s/return turn < f->first;/return turn <= f->first;/
remove-late    src/core/core.c       model_model            /^settle_requests(/,/^}/s/if (rec->flags & WQ__REMOVING) {/if (0) {/
remove-off     src/core/core.c       model_model            /^wq__core_remove_at_done(/,/^}/s/wq__rec_clear(/wq__rec_set(/
pause          src/core/ready.h      model_model            s/^    if (r->special & WQ__PAUSED)$/    if (0)/
bytes-bound    src/core/room.c       model_model            s/if (c->max_bytes \&\& c->bytes > c->max_bytes)/if (0)/
bytes-enough   src/core/room.c       model_model            s/^            sum.bytes += l->at\[i\].bytes;/            sum.bytes += c->bytes;/
victim-named   src/core/room.c       model_model            s/while (ref \&\& wq__core_rec(c, ref)->flags & WQ__PICKED)/while (0)/
victim-lowest  src/core/room.c       model_model            s/l->at\[i\].priority < l->at\[s->current\].priority/l->at[i].priority > l->at[s->current].priority/
flush-expected src/core/due.c        behaviour_waiting_flush s/!wq__rec_is_expected(rec)/rec->flags \& WQ__BACKOFF/
hasten-order   src/core/due.c        model_model            s/const wq__ref ref = wq__heap_first(&c->waiting)->ref;/const wq__ref ref = c->waiting.entries[c->waiting.len - 1].ref;/
hasten-again   src/core/due.c        model_model            s/c->waiting.entries\[i\].at = wq__span_add(now, WQ__OFFER_AGAIN_NS);/c->waiting.entries[i].at = now;/
merged-join    src/core/add.c        model_model            /^join_deadline(/,/^}/s/^    c->tally.merged++;/    (void)0;/
merged-put-off src/core/add.c        model_model            /^put_off(/,/^}/s/^    c->tally.merged++;/    (void)0;/
merged-over    src/core/add.c        model_model            /^take_over(/,/^}/s/^    c->tally.merged++;/    (void)0;/
merged-done    src/core/core.c       model_model            /^come_back(/,/^}/s/^        c->tally.merged++;/        (void)0;/
respect-pace   src/core/add.c        model_model            s/if (wq__core_respects_backoff(c, rec))/if (0)/
key-nul        src/core/core.c       model_model            s/^    at\[key.len\] = .*/    (void)at;/
'

scratch=build/mutants
labels='unit|behaviour|model|fault|conformance'

# Prints the rows that are asked for.
rows() {
    echo "$table" | while read -r name rest; do
        [ "$name" ] || continue
        case " $* " in "  " | *" $name "*) echo "$name $rest" ;; esac
    done
}

# Does every row change its file, and is there a row for every name?
check_rows() {
    for name; do
        if [ -z "$(rows "$name")" ]; then
            echo "mutants: '$name' is not in the table" >&2
            return 1
        fi
    done
    rows "$@" | {
        status=0
        while read -r name file _ change; do
            if sed "$change" "$file" | cmp -s - "$file"; then
                echo "mutants: $name: changes nothing in $file" >&2
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

# Succeeds if no test fails. The stress tests take longest, and come last.
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

# With new times, since a run that was ended may have left a mutant built.
rm -rf "$scratch/tree"
mkdir -p "$scratch/tree"
scripts/files.sh | tar -cf - -T - | tar -xmf - -C "$scratch/tree"

[ -z "${CMAKE_GENERATOR:-}" ] && command -v ninja >/dev/null &&
    export CMAKE_GENERATOR=Ninja
cmake -S "$scratch/tree" -B "$scratch/build" -DCMAKE_BUILD_TYPE=Debug \
    -DWQ_DEBUG=ON -DWQ_TEST_SHARED=ON -DWQ_EXAMPLES=OFF -DWQ_BENCH=OFF \
    -DWQ_COMMAND=OFF -DWQ_TEST_TIMEOUT=30 >/dev/null
passes_all || {
    echo "mutants: the tests fail without any" >&2
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
        cp "$file" "$scratch/tree/$file" # with a new time: it is built again
    done
    exit $status
}
