/* SPDX-License-Identifier: MIT */
/* race.c: how do hints reach each race detector? See race.h. */
#include "port/race.h"

/* Is this file compiled with -fsanitize=thread? */
#if defined(__SANITIZE_THREAD__)
#define INSTRUMENTED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define INSTRUMENTED 1
#endif
#endif

/* ---- ThreadSanitizer ----------------------------------------------------- */

#if defined(__ELF__) && !defined(INSTRUMENTED)
#define HINT_TSAN 1

/* Functions of its runtime library; NULL in a program without it. */
void __tsan_acquire(void *p) __attribute__((weak));
void __tsan_release(void *p) __attribute__((weak));

/* Call one of them, if it is there. */
#define CALL_TSAN(function, p)                                                 \
    do {                                                                       \
        if (function)                                                          \
            function((void *)(p));                                             \
    } while (0)
#else
#define HINT_TSAN 0
#define CALL_TSAN(function, p) (void)(p)
#endif

/* ---- Valgrind: Helgrind and DRD ------------------------------------------ */

/* WQ_HAVE_VALGRIND: the build found Valgrind's headers. A client request is a
 * few instructions that do nothing outside of Valgrind, and each tool ignores
 * requests that it does not know. DRD knows those of Helgrind that order
 * threads. */
#if defined(WQ_HAVE_VALGRIND) && !defined(INSTRUMENTED)
#define HINT_VALGRIND 1

#include <valgrind/drd.h>
#include <valgrind/helgrind.h>

/* Only for the tools that look for races: other tools measure, and must see
 * what the library does without them. Both requests return 0 where they are
 * unknown. */
static bool
valgrind_looks_for_races(void)
{
    const char any = 0;

    return VALGRIND_DO_CLIENT_REQUEST_EXPR(0, _VG_USERREQ__HG_GET_ABITS, &any,
                                           NULL, sizeof any, 0, 0) ||
           VALGRIND_DO_CLIENT_REQUEST_EXPR(
               0, VG_USERREQ__DRD_GET_VALGRIND_THREAD_ID, 0, 0, 0, 0, 0);
}

/* The address that hints use for `p`. DRD never forgets an address on the
 * stack, and reports a mutex that is created there later. No mutex has an odd
 * address. */
static const void *
tag(const void *p)
{
    return (const char *)p + 1;
}

/* The macros for this have the same names in both headers. */
static void
drd_request(unsigned long request, const void *p, size_t n)
{
    VALGRIND_DO_CLIENT_REQUEST_STMT(request, p, n, 0, 0, 0);
}
#else
#define HINT_VALGRIND 0
#endif

/* ---- all of them --------------------------------------------------------- */

bool
wq__race_is_watched(void)
{
#if HINT_TSAN
    if (__tsan_acquire && __tsan_release)
        return true;
#endif
#if HINT_VALGRIND
    if (valgrind_looks_for_races())
        return true;
#endif
    return false;
}

void
wq__race_acquire(const void *p)
{
    CALL_TSAN(__tsan_acquire, p);
#if HINT_VALGRIND
    ANNOTATE_HAPPENS_AFTER(tag(p));
#endif
}

void
wq__race_release(const void *p)
{
    CALL_TSAN(__tsan_release, p);
#if HINT_VALGRIND
    ANNOTATE_HAPPENS_BEFORE(tag(p));
#endif
}

void
wq__race_disable_checking(const void *p, size_t n)
{
#if HINT_VALGRIND
    VALGRIND_HG_DISABLE_CHECKING(p, n);
    drd_request(VG_USERREQ__DRD_START_SUPPRESSION, p, n);
#endif
    (void)p;
    (void)n;
}

void
wq__race_enable_checking(const void *p, size_t n)
{
#if HINT_VALGRIND
    VALGRIND_HG_ENABLE_CHECKING(p, n);
    ANNOTATE_HAPPENS_BEFORE_FORGET_ALL(tag(p));
    drd_request(VG_USERREQ__DRD_FINISH_SUPPRESSION, p, n);
#endif
    (void)p;
    (void)n;
}
