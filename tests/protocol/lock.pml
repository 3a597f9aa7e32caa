/* SPDX-License-Identifier: MIT */
/* lock.pml: is the futex lock of src/port/lock.[hc] correct (K1, K2)?
 *
 * Every thread takes the lock ROUNDS times, by take or by try, and adds one to
 * a number that the lock guards. The search visits every interleaving and
 * checks that
 *
 *   - one thread at a time has the lock (`holders`);
 *   - a thread that has the lock reads what the last holder wrote (`expected`);
 *   - no thread sleeps for ever: the search reports a final state in which a
 *     thread waits in futex_wait().
 *
 * Memory. An access to `word` is one atomic instruction and takes effect at
 * once. Accesses to the guarded number do not:
 *
 *   - A store stays in the thread's store buffer until the StoreBuffers process
 *     writes it to memory, at any later moment. A release does so before it
 *     changes the word.
 *   - A load may take place early, before the thread has the lock. An acquire
 *     makes the thread load again.
 *
 * Options: THREADS 2 to 4, ROUNDS, INTERRUPTS (how many sleeps a signal ends
 * early). The other names, in #ifdef, are mutants: each breaks one step.
 */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef INTERRUPTS
#define INTERRUPTS 1
#endif
#define MAX_THREADS 4

byte word; /* 0 free, 1 taken, 2 taken and a thread may sleep */

bool asleep[MAX_THREADS]; /* the kernel's list of threads that wait */

byte number;                    /* what the lock guards, in memory */
bool buffered[MAX_THREADS];     /* a store of it is in a thread's buffer, */
byte buffer[MAX_THREADS];       /* with this value */
bool loaded_early[MAX_THREADS]; /* the thread has loaded it ahead of time, */
byte early[MAX_THREADS];        /* with this value */

/* What must hold. No thread acts on these. */
byte holders;  /* threads that have the lock */
byte expected; /* what a holder must read */

/* ---- memory ------------------------------------------------------------- */

inline load(value)
{
    if
    :: buffered[me] -> value = buffer[me]
    :: else -> value = number
    fi
}

inline may_load_early()
{
    if
    :: atomic {
        !loaded_early[me] -> loaded_early[me] = true;
        load(early[me])
    }
    :: true
    fi
}

/* Ordering of the atomic instruction that takes the lock. */
inline acquire()
{
#ifdef NO_ACQUIRE
    skip
#else
    loaded_early[me] = false;
    early[me] = 0
#endif
}

inline write_buffer(thread)
{
    number = buffer[thread];
    buffered[thread] = false;
    buffer[thread] = 0
}

/* Ordering of the atomic instruction that releases the lock. */
inline release()
{
#ifdef RELAXED_RELEASE
    skip
#else
    if
    :: buffered[me] -> write_buffer(me)
    :: else
    fi
#endif
}

proctype StoreBuffers()
{
end_idle:
    do
    :: atomic { buffered[0] -> write_buffer(0) }
    :: atomic { buffered[1] -> write_buffer(1) }
    :: atomic { buffered[2] -> write_buffer(2) }
    :: atomic { buffered[3] -> write_buffer(3) }
    od
}

/* ---- the kernel --------------------------------------------------------- */

/* The kernel compares and puts the thread on its list in one step. */
inline futex_wait()
{
    atomic {
        if
#ifdef SLEEP_WITHOUT_COMPARE
        :: true
#else
        :: word == 2
#endif
           -> asleep[me] = true
        :: else /* EAGAIN */
        fi
    };
    !asleep[me] /* waits until this is so */
}

inline end_one_sleep()
{
    if
    :: asleep[0] -> asleep[0] = false
    :: asleep[1] -> asleep[1] = false
    :: asleep[2] -> asleep[2] = false
    :: asleep[3] -> asleep[3] = false
    :: else
    fi
}

/* A signal ends a sleep (EINTR). There need not be one: a thread that only a
 * signal would wake must count as one that sleeps for ever. */
proctype Signals()
{
    byte left = INTERRUPTS;

    do
    :: left > 0 -> atomic { left--; end_one_sleep() }
    :: break
    od
}

/* ---- lock.c ------------------------------------------------------------- */

inline try_word(result)
{
    atomic {
        if
        :: word == 0 -> word = 1; acquire(); result = true
        :: else -> result = false
        fi
    }
}

/* Any number of looks. A look that finds 0 is followed by a try, which fails
 * if another thread is faster. */
inline spin(result)
{
    do
    :: result -> break
    :: !result && word == 0 -> try_word(result)
    :: !result -> break
    od
}

inline take_contended()
{
    do
    :: may_load_early();
       atomic {
           old = word;
           word = 2;
           if
           :: old == 0 -> acquire()
           :: else
           fi
       };
       if
       :: old == 0 -> break
       :: else -> old = 0; futex_wait()
       fi;
#ifdef WOKEN_SETS_1
       try_word(taken);
       if
       :: taken -> break
       :: else
       fi
#endif
    od
}

inline take()
{
    try_word(taken);
    spin(taken);
    if
    :: taken
    :: else -> take_contended(); taken = true
    fi
}

inline unlock()
{
#ifdef WAKE_ON_STALE_READ
    old = word;
    atomic { release(); word = 0 };
#else
    atomic { release(); old = word; word = 0 };
#endif
    if
#ifdef NO_WAKE
    :: old == 2
#else
    :: old == 2 -> atomic { old = 0; end_one_sleep() } /* wake_one */
#endif
    :: else -> old = 0
    fi
}

/* ---- the threads -------------------------------------------------------- */

inline critical_section()
{
    atomic {
        assert(holders == 0);
        holders++;
        if
        :: loaded_early[me] ->
           value = early[me];
           loaded_early[me] = false;
           early[me] = 0
        :: else -> load(value)
        fi;
        assert(value == expected);
        expected++
    };
    atomic {
        buffer[me] = value + 1;
        buffered[me] = true;
        value = 0;
        holders--
    }
}

proctype Thread(byte me)
{
    byte round;
    byte old;   /* what the word was */
    byte value; /* a register */
    bool taken;

    do
    :: round == ROUNDS -> break
    :: else ->
       round++;
       may_load_early();
       if
       :: true -> try_word(taken) /* wq__lock_try() */
       :: true -> take()          /* wq__lock_take() */
       fi;
       if
       :: taken -> critical_section(); unlock(); taken = false
       :: else
       fi
    od
}

init
{
    byte i;

    atomic {
        do
        :: i < THREADS -> run Thread(i); i++
        :: else -> break
        od;
        i = 0;
        run StoreBuffers();
        run Signals()
    }
}
