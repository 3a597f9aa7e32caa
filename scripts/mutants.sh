#!/bin/sh
# SPDX-License-Identifier: MIT
# Do the tests notice when a mechanism is broken? Breaks one at a time, in a copy
# below build/mutants, and expects a test to fail.
#
#     mutants.sh [NAME...]    only these
#
# A mutant is a line of the table: its name, the file, and a sed command that
# must change it. Takes about a minute each.
set -eu
cd "$(dirname "$0")/.."

table='
exclusion      src/core/core.c        s/^    if (rec->flags & WQ__HELD) {/    if (0) {/
dirty          src/core/core.c        s/^    if (rec->flags & WQ__DIRTY) {/    if (0) {/
merge          src/core/core.c        s/^    if (wq__rec_is_wanted(rec)) {/    if (0) {/
respect        src/core/core.c        s/return c->respect \&\& rec->flags/return 0 \&\& rec->flags/
sooner         src/core/add.c         s/if (at >= wq__core_entry(c, ref)->at/if (at < wq__core_entry(c, ref)->at/
stale-done     src/core/loans.h       s/ == item \&\& loan->rec ? loan/ == item ? loan/
loan-foreign   src/core/loans.h       s/return &loan->item == item \&\& loan->rec/return loan->rec/
loan-fresh     src/core/loans.h       s/item->slot >= l->fresh)/item->slot >= l->limit)/
loan-again     src/core/loans.h       s/^        l->ended = loan->older;/        l->ended = 0;/
raise-place    src/core/ready.c       s/^        take_out(r, ref);$/        (void)0;/
level-order    src/core/levels.c      s/priority > l->at/priority < l->at/
level-hold     src/core/core.c        s/^    wq__levels_hold(levels, level);/    (void)0;/
lazy-top       src/core/levels.h      s/return l->at\[top\].first ? top/return 1 ? top/
batch-undo     src/core/add.c         s/^        drop_picks(c, picks, n);/        (void)0;/
victim         src/core/add.c         s/while (ref \&\& wq__core_rec(c, ref)->flags & WQ__PICKED)/while (0)/
quiet          src/core/core.c        s/pace->until = wq__span_add(now, pace->quiet)/pace->until = now/
max-wait       src/core/add.c         s/earlier(at, wq__core_pace(c, ref)->latest)/at/
ties           src/core/heap.c        s/a->seq < b->seq/a->seq > b->seq/
index-hole     src/core/index.c       s/>= ((i - hole)/> ((i - hole)/
index-place    src/core/index.h       s/^        \*place = wq__index_place_for(ix, hash);/        (void)hash;/
index-shrink   src/core/index.c       s/ix->len \* 16 < ix->cap/ix->len * 8 < ix->cap/
hash-length    src/core/hash.c        s/multiply(n\[FOR_LEN\] + len,/multiply(n[FOR_LEN],/
hash-end       src/core/hash.c        s/return sum + pair(n + 2, end - 16);/return sum;/
give-back      src/core/slab.c        s/if (c->spare \&\& c->spare->live == 0) {/if (0) {/
spare          src/core/slab.c        s/if (c->spare \&\& c->spare->live == 0) {/if (c->blocks > 1) {/
walk           src/core/slab.c        s/<< UNIT_BITS | unit;$/<< UNIT_BITS;/
wake           src/memory/gate.c      s/^    wq__wake(wake);/    (void)wake;/
last-look      src/memory/gate.c      s/^    return wq__core_len(&m->core) + (pending < most ? pending : most);/    return wq__core_len(\&m->core) + 0 * pending * most;/
publish        src/memory/gate.c      s/^    publish_sleepers(m); .. before the last look.*//
beacon-dim     src/memory/gate.c      s/        wq__beacon_dim(&m->beacon, WQ__LIT_BY_QUEUE);/        (void)0;/
beacon-sleep   src/memory/gate.c      s/    if ((m->watched \&\& !m->lit) || wq__gate_tells(m))/    if (wq__gate_tells(m))/
beacon-fork    src/port/beacon.c      s/return b->forks == forks;/return true;/
keeper         src/memory/gate.c      s/if (m->getters.len \&\& !deadline_is_watched(m))/if (0)/
promise        src/memory/gate.c      s/^    m->promised -= p.promised;/    (void)0;/
room           src/memory/gate.c      s/^    wake = take_producers(m, wake);/    (void)take_producers;/
rouse          src/memory/adds.c      s/if (position < atomic_load(&m->rouse_from))/if (1)/
second-key     src/memory/gate.c      s/return m->spinning ? m->inbox.head + .*/return m->spinning ? WQ__ROUSE_NOBODY : 0;/
second-look    src/memory/gate.c      s/m->spinning ? 2 : 1/1/
spin-pay       src/memory/spin.h      s/^    s->account -= looks;/    (void)looks;/
spin-trial     src/memory/spin.h      s/^    wq__spin_earn(s, WQ__SPIN_TRIAL);/    (void)s;/
tell-first     src/memory/gate.c      s/^    if (wq__gate_tell_inside(m))/    if (0)/
real-time      src/memory/create.c    s/^    if (m->real_time)/    if (0)/
real-time-hand src/memory/create.c    s/ \&\& !config->max_len \&\& !config->real_time;/ \&\& !config->max_len;/
cancel         src/port/cancel.h      s/PTHREAD_CANCEL_DISABLE/PTHREAD_CANCEL_ENABLE/
time-seconds   src/port/time.h        s/return seconds < most ? seconds : most;/return seconds;/
ring-limit     src/memory/inbox.h     s/in->head + WQ__INBOX_CELLS;/in->head + WQ__INBOX_CELLS + 1;/
deadline-first src/memory/inbox.c     s/        if (core->waiting.len)$/        if (0)/
closed         src/memory/stop.c      s/^    wq__inbox_close(&m->inbox);//
undo           src/memory/limited.c   s/^            wq__retry_undo(&m->retry, keys\[i\]);/            (void)0;/
told-twice     src/memory/report.c    s/^    \*told = now;/    (void)told;/
lock-try       src/port/lock.h        s/uint32_t expected = 0;/uint32_t expected = 1;/
lock-sleeper   src/port/lock.c        s/exchange_explicit(&l->word, 2, memory/exchange_explicit(\&l->word, 1, memory/
lock-wake      src/port/lock.h        s/^        wq__lock_wake_one(l);/        (void)0;/
clock-step     src/clock/fake.c       s/^    alarm_sleepers(f);/    (void)f;/
refused-key    src/layer/delaying.c   s/^    if (!taken)$/    if (0)/
bucket-back    src/limit/tokens.c     s/return now > level->last_ns ? now : level->last_ns;/return now;/
'

scratch=build/mutants
rm -rf "$scratch/tree"
mkdir -p "$scratch/tree"
scripts/files.sh | tar -cf - -T - | tar -xf - -C "$scratch/tree"

# Succeeds if no test fails.
survives() {
    cmake --build "$scratch/build" --parallel "$(nproc)" >"$scratch/log" 2>&1 ||
        return 1 # the compiler noticed
    ctest --test-dir "$scratch/build" -j2 --timeout 30 --stop-on-failure \
        -L 'unit|behaviour|model|fault|conformance|stress' >"$scratch/log" 2>&1
}

cmake -S "$scratch/tree" -B "$scratch/build" -DCMAKE_BUILD_TYPE=Debug \
    -DWQ_DEBUG=ON -DWQ_EXAMPLES=OFF -DWQ_BENCH=OFF >/dev/null
survives || {
    echo "mutants: the tests fail without any" >&2
    tail "$scratch/log" >&2
    exit 1
}

status=0
echo "$table" | {
    while read -r name file change; do
        [ "$name" ] || continue
        case " $* " in "  " | *" $name "*) ;; *) continue ;; esac
        sed -i "$change" "$scratch/tree/$file"
        if cmp -s "$file" "$scratch/tree/$file"; then
            echo "mutants: $name: changes nothing in $file"
            status=1
        elif survives; then
            echo "mutants: $name: SURVIVED"
            status=1
        else
            killer=$(sed -n 's/.*Test *#[0-9]*: \([^ ]*\) .*\*\*\*.*/\1/p' \
                "$scratch/log" | head -n 1)
            echo "mutants: $name: killed by ${killer:-the compiler}"
        fi
        cp "$file" "$scratch/tree/$file" # with a new time: it is built again
    done
    exit $status
}
