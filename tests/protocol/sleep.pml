/* SPDX-License-Identifier: MIT */
/* sleep.pml: does a getter ever sleep although there is a key for it?
 *
 * A model of src/memory/gate.c (who sleeps, whom to wake), of inbox.[hc] (I1,
 * I3, I4) and of the plain add of adds.c. Names are those of the C code.
 *
 * Producers add keys, through the inbox or with the lock. Getters take keys;
 * one that finds none may spin, and then sleeps. When no thread can take
 * another step, init checks that no key is left while a getter sleeps, that no
 * getter was taken off the list without being woken, and that the counts of
 * gate.c are back where they were.
 *
 * Steps. The lock guards all variables but `tail`, `filled`, `wake_from`
 * and `woken`. What a thread does between two accesses to these may be one
 * step: no other thread can see the difference. The lock itself is checked by
 * lock.pml; here it is a flag.
 *
 * Options with a number:
 *   GETTERS    0 to 3
 *   PRODUCERS  threads that add plain keys, KEYS of them each
 *   DELAYED    keys that are added with a delay, 0 to 2
 *   INTERRUPTS calls of wq_interrupt()
 * Options without:
 *   SPIN       a getter may spin before it sleeps
 *   SPARED     keys that are left to a getter that spins; 1 unless set, and 8
 *              in C. One that spins for too long, which C notices by its clock,
 *              is not modelled: then more getters are woken
 *   STUCK      the first getter may be descheduled for ever while it spins
 *   ONE_SHOT   a getter takes one key and ends. Without it a getter comes back,
 *              and so finds keys although no thread woke it
 *   TIMEOUTS   the get of the first getter may time out
 *   REAL_TIME  getters are woken before the lock is released
 *   LOOP       an event loop watches wq_fd(). LOOP_KEYS: it ends after so many
 *   PATIENCE   keys may be left to getters that are awake, while a timekeeper
 *              takes a nap (patience.h). Whether keys are handed out fast is
 *              any guess. With ONE_SHOT a getter never comes back, and holds
 *              its key for ever
 * The other names, in #ifdef, are mutants: each breaks one step.
 */
#ifndef GETTERS
#define GETTERS 2
#endif
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef KEYS
#define KEYS 1
#endif
#ifndef DELAYED
#define DELAYED 0
#endif
#ifndef INTERRUPTS
#define INTERRUPTS 0
#endif
#ifndef LOOP_KEYS
#define LOOP_KEYS 255
#endif
#ifndef SPARED
#define SPARED 1
#endif
#define MAX_GETTERS 3
#define NOBODY MAX_GETTERS
#define FOREVER 255 /* WQ_FOREVER */
#define WAKE_NOBODY 255

#define WAKE_NOT 0
#define WAKE_LOOK 1
#define WAKE_INTERRUPT 2

/* The inbox. Positions do not wrap: the ring has a cell for each key. */
byte tail;
bool filled[PRODUCERS * KEYS + 1]; /* cell.seq is set (I3) */

byte wake_from = WAKE_NOBODY; /* producers read it without the lock */

bool woken[MAX_GETTERS]; /* the parker of each getter */

/* Guarded by the lock. */
bool locked;
byte head;
byte ready;                    /* READY keys */
byte due1 = FOREVER;           /* the deadlines of WAITING keys */
byte due2 = FOREVER;
bool on_list[MAX_GETTERS];     /* the list of sleeping getters, */
byte getters;                  /* its length, */
byte why[MAX_GETTERS];         /* and why each was taken off */
byte coming;
byte blocked;
bool spinning;
bool interrupted;
byte timekeeper = NOBODY;
byte timekeeper_until;
bool watched;
bool lit;

/* patience.h; guarded by the lock. */
byte held;    /* keys on loan */
bool fast;
bool napping; /* a nap has begun, and ends at any time */
byte owed;    /* keys that were there then, and were not handed out yet */
bool busy;    /* a key was handed out since */

byte now;             /* the clock */
byte timer = FOREVER; /* when the clock makes the descriptor readable */

/* For the final check. */
byte parked;       /* getters that sleep */
bool timed_out;    /* the get of the first getter has timed out */
bool stuck;        /* the spinning getter is descheduled for ever */
bool loop_waiting; /* the event loop waits for its descriptor */

#define company (blocked + watched)
#define next_deadline (due1 < due2 -> due1 : due2)

/* A nap may end at once. */
#ifdef NAP_UNWATCHED
#define next_look next_deadline
#else
#define next_look (napping -> 0 : next_deadline)
#endif
#define patient (fast && (spinning || coming > 0 || held > 0))

/* Variables of each thread. */
#define REGISTERS                                                              \
    byte n, x; /* scratch */                                                   \
    byte wake  /* the getters to wake, one bit each */

/* ---- whom to wake ------------------------------------------------------- */

inline take(getter, reason)
{
    on_list[getter] = false;
    getters--;
    why[getter] = reason;
    wake = wake | (1 << getter)
}

/* The C code takes the first of the list; any getter will do. */
inline pick_any()
{
    if
    :: on_list[0] -> x = 0
    :: on_list[1] -> x = 1
    :: on_list[2] -> x = 2
    fi
}

inline take_getter(getter)
{
    coming++;
    take(getter, WAKE_LOOK)
}

/* How many getters would find something. Keys in the inbox count as one, while
 * a getter spins as up to two. */
#define pending (tail - head)
#ifdef NO_LAST_LOOK
#define work ready
#elif defined(NO_SECOND_KEY)
#define work (ready + (pending > 0))
#else
#define work (ready + (pending > 0) + (spinning && pending > 1))
#endif

#ifdef SPINNER_WATCHES
#define spinner_watches spinning
#else
#define spinner_watches false /* it may have lost its processor */
#endif

#define deadline_is_watched                                                    \
    (next_look == FOREVER || coming > 0 || spinner_watches ||                  \
     (timekeeper != NOBODY && timekeeper_until <= next_look))

inline take_new_timekeeper()
{
    if
    :: timekeeper == NOBODY -> pick_any(); take_getter(x)
    :: timekeeper != NOBODY && why[timekeeper] != WAKE_NOT /* it is being woken */
    :: else -> x = timekeeper; take_getter(x)
    fi
}

inline begin_nap()
{
    napping = true;
    owed = ready + pending;
    busy = false
}

inline take_getters()
{
    n = work;
    do
    :: getters > 0 && n > coming + spinning && !patient ->
       pick_any(); take_getter(x)
    :: getters > 0 && n > coming + spinning && patient ->
#ifndef NO_NAP
       if
       :: !napping -> begin_nap()
       :: else
       fi;
#endif
       break
    :: else -> break
    od;
#ifndef NO_TIMEKEEPER_CHECK
    if
    :: getters > 0 && !deadline_is_watched -> take_new_timekeeper()
    :: else
    fi;
#endif
    n = 0;
    x = 0
}

/* ---- entering and leaving ----------------------------------------------- */

inline enter()
{
    atomic { !locked -> locked = true }
}

/* From which position of the inbox on must a producer wake a getter? A getter
 * that spins takes the next keys, be they READY or in the inbox. */
#ifdef SPINNER_TAKES_ALL
#define first_to_wake_for WAKE_NOBODY
#elif defined(SPINNER_IGNORES_READY)
#define first_to_wake_for (head + SPARED)
#else
#define first_to_wake_for (head + (ready < SPARED -> SPARED - ready : 0))
#endif

#define new_wake_from                                                         \
    ((watched && !lit) ->                                                      \
         0 :                                                                   \
         (getters == 0 || (napping && patient) ->                              \
              WAKE_NOBODY : (spinning -> first_to_wake_for : 0)))

/* One sequentially consistent store. A relaxed one may stay in the store buffer
 * until the lock is released. */
#ifdef RELAXED_WAKE_FROM
#define publish_wake_from() skip
#define unlock()                                                               \
    atomic {                                                                   \
        wake_from = new_wake_from;                                           \
        locked = false                                                         \
    }
#else
#define publish_wake_from() wake_from = new_wake_from
#define unlock() locked = false
#endif

inline update_beacon()
{
    lit = work > 0;
    if
    :: !lit ->
#ifndef NO_BEACON_PUBLISH
       publish_wake_from();
#endif
       lit = pending > 0
    :: else
    fi;
    timer = next_deadline
}

/* One system call for each getter. */
inline wake_all()
{
    do
    :: wake != 0 ->
       atomic {
           x = 0;
           do
           :: wake & (1 << x) -> break
           :: else -> x++
           od;
           wake = wake & ~(1 << x);
           woken[x] = true;
           x = 0
       }
    :: else -> break
    od
}

/* `wake_from` is published before the last look at the inbox (I4), and once
 * more when it is clear who is woken. It is not enough that a thread about to
 * sleep publishes it (PUBLISH_BY_SLEEPER_ONLY): a producer that adds a READY
 * key while a getter spins lowers it, too, for the key after that. */
inline release_and_wake()
{
#if !defined(NO_PUBLISH) && !defined(PUBLISH_BY_SLEEPER_ONLY)
    publish_wake_from();
#endif
    atomic {
        if
        :: blocked > 0 -> take_getters() /* the last look */
        :: else
        fi
    };
    if
    :: watched -> update_beacon()
    :: else
    fi;
    publish_wake_from();
#ifdef REAL_TIME
    wake_all();
    unlock()
#else
    unlock();
    wake_all()
#endif
}

inline leave()
{
    if
    :: company > 0 -> release_and_wake()
    :: else -> unlock()
    fi
}

inline promote()
{
    if
    :: due1 <= now -> due1 = FOREVER; ready++
    :: else
    fi;
    if
    :: due2 <= now -> due2 = FOREVER; ready++
    :: else
    fi
}

/* Empty the inbox (waiting for cells that are not filled yet, I3), and make
 * READY what is due. */
inline catch_up()
{
    atomic {
        n = tail;
        do
        :: head < n -> filled[head]; head++; ready++
        :: else -> break
        od;
        n = 0;
        promote()
    }
}

/* ---- adds.c ------------------------------------------------------------- */

/* The key was handed over at `position`. */
inline rouse()
{
    if
    :: position >= wake_from -> position = 0; enter(); catch_up(); leave()
    :: else -> position = 0
    fi
}

proctype Producer()
{
    REGISTERS;
    byte i;
    byte position; /* of the key in the inbox */

    do
    :: i == KEYS -> break
    :: i < KEYS ->
       i++;
       if
       :: true -> /* through the inbox */
          atomic { position = tail; tail++ };
          filled[position] = true;
          rouse()
       :: true -> /* with the lock */
          enter();
          catch_up();
          ready++;
          leave()
       fi
    od
}

/* An add with a delay. The deadline was computed without the lock, and may have
 * passed. */
proctype Delayer(byte due)
{
    REGISTERS;

    enter();
    catch_up();
    if
    :: due1 == FOREVER -> due1 = due
    :: else -> due2 = due
    fi;
    leave()
}

proctype Clock()
{
    do
    :: now < DELAYED -> now++
    :: else -> break
    od
}

/* wq_interrupt() */
proctype Interrupter()
{
    REGISTERS;

    atomic {
        enter();
        if
        :: getters == 0 -> interrupted = true
        :: else
        fi;
        do
        :: getters > 0 -> pick_any(); take(x, WAKE_INTERRUPT)
        :: else -> break
        od;
        x = 0
    };
    release_and_wake()
}

/* ---- gets.c, and how a getter sleeps ------------------------------------ */

/* What it sees while it spins decides nothing but when it stops. */
inline spin()
{
    spinning = true;
    release_and_wake();
#ifdef STUCK
    if
    :: me == 0 -> stuck = true;
end_stuck:
       false
    :: true
    fi;
#endif
    atomic { enter(); spinning = false };
#if defined(PUBLISH_BY_SLEEPER_ONLY) && !defined(NO_PUBLISH_AFTER_SPIN)
    publish_wake_from()
#endif
}

#define times_out (timed_out && me == 0)

/* Until woken, until the deadline, or until the get times out. */
inline park()
{
    parked++;
end_asleep:
    atomic {
        if
        :: woken[me] -> is_woken = true
        :: !woken[me] && (until <= now || times_out)
        fi;
        parked--
    }
}

inline sleep_as_getter()
{
    atomic {
        on_list[me] = true;
        getters++;
        why[me] = WAKE_NOT;
        woken[me] = false;
        if
        :: next_look != FOREVER && timekeeper == NOBODY ->
           timekeeper = me;
           timekeeper_until = next_look;
           until = next_look
        :: else -> until = FOREVER
        fi
    };
#ifdef PUBLISH_BY_SLEEPER_ONLY
    publish_wake_from();
#endif
    release_and_wake();
    park();
    enter();
    if
    :: !is_woken && why[me] != WAKE_NOT -> /* a waker is about to wake it */
       release_and_wake();
       atomic { woken[me]; enter() }
    :: else
    fi;
    atomic {
        is_woken = false;
        until = 0;
        if
        :: why[me] == WAKE_NOT -> on_list[me] = false; getters--
        :: why[me] == WAKE_LOOK -> coming--
        :: else
        fi;
        if
        :: timekeeper == me -> timekeeper = NOBODY
        :: else
        fi
    }
}

/* The caller gets a key. */
inline hand_out()
{
    ready--;
#ifdef PATIENCE
    held++;
    busy = true;
    owed = (owed > 0 -> owed - 1 : 0);
    if
    :: fast = true
    :: true
    fi
#endif
}

/* The nap ends, or goes on. */
inline review_nap()
{
    if
    :: napping ->
       napping = false;
       fast = fast && owed == 0;
       if
       :: fast && busy -> begin_nap()
       :: else
       fi
    :: true
    fi
}

#define sleeps_on (napping && patient && !interrupted && !times_out)

proctype Getter(byte me)
{
    REGISTERS;
    byte until;    /* how long it sleeps at most */
    bool is_woken; /* a waker ended the sleep */
    bool has_key;  /* until its next get */

again:
    atomic {
        enter();
        catch_up();
#ifdef PATIENCE
        held = held - has_key; /* done, and the next get */
        has_key = false;
#endif
        if
        :: ready > 0 -> hand_out(); goto have_key
        :: else -> blocked++ /* wq__gate_begin_blocking() */
        fi
    };
#ifdef SPIN
    if
    :: !spinning -> spin()
    :: else
    fi;
#endif
look:
    atomic {
        catch_up();
        if
        :: ready > 0 -> hand_out(); blocked--; goto have_key
        :: ready == 0 && times_out -> blocked--; goto no_key
        :: ready == 0 && !times_out && interrupted ->
           interrupted = false;
           blocked--;
           goto no_key
        :: else
        fi
    };
sleep:
    sleep_as_getter();
    atomic {
        if
        :: why[me] == WAKE_INTERRUPT -> blocked--; goto no_key
        :: else -> review_nap()
        fi;
        if
        :: sleeps_on -> goto sleep
        :: else -> goto look
        fi
    };

have_key:
#ifdef PATIENCE
    has_key = true;
#endif
    leave();
#ifdef ONE_SHOT
    goto over;
#else
    goto again;
#endif

no_key: /* WQ_EINTERRUPTED or WQ_ETIMEDOUT: the thread may call again */
    leave();
    if
    :: goto again
    :: goto over
    fi;

over:
    skip
}

/* The time-out of the first getter, which there need not be. */
proctype Timeout()
{
    if
    :: timed_out = true
    :: true
    fi
}

/* ---- event loops -------------------------------------------------------- */

/* wq_fd(), and a get that does not wait whenever the descriptor is readable. */
proctype EventLoop()
{
    REGISTERS;
    byte taken;

    atomic { enter(); catch_up(); watched = true };
    release_and_wake();
    do
    :: taken == LOOP_KEYS -> break
    :: else ->
       loop_waiting = true;
end_waiting:
       atomic { lit || timer <= now -> loop_waiting = false };
       atomic {
           enter();
           catch_up();
           if
           :: ready > 0 -> ready--; taken++
           :: else
           fi
       };
       leave()
    od
}

/* ---- the run, and the check --------------------------------------------- */

#define keys_left                                                              \
    (ready + (tail - head) + (due1 != FOREVER) + (due2 != FOREVER))

init
{
    byte i;

    atomic {
        do
        :: i < GETTERS -> run Getter(i); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < PRODUCERS -> run Producer(); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < DELAYED -> i++; run Delayer(i)
        :: else -> break
        od;
        i = 0;
        do
        :: i < INTERRUPTS -> run Interrupter(); i++
        :: else -> break
        od;
        i = 0;
#if DELAYED > 0
        run Clock();
#endif
#ifdef TIMEOUTS
        run Timeout();
#endif
#ifdef LOOP
        run EventLoop();
#endif
    };

    /* When no other process can take a step. A getter that spins for ever may
     * keep SPARED keys. */
    atomic {
        timeout -> assert(!locked);
        assert(parked == getters);
        assert(coming == 0 && spinning == stuck && blocked == getters + stuck);
        assert(keys_left <= stuck * SPARED || (parked == 0 && !loop_waiting))
    }
}
