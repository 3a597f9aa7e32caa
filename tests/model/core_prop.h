/* SPDX-License-Identifier: MIT */
/* core_prop.h: does the core do what the model says, whatever comes?
 *
 * One property for tests and fuzzer alike. Bytes are read as a world to make
 * and operations to perform on it:
 *
 *     3 bytes   the world: enum core_prop_world; how many keys, what bound;
 *               enum core_prop_special
 *     then      1 byte which operation, and what it needs: a key, a time, ...
 *
 * Any bytes mean something; what is missing at the end counts as zero. After
 * every operation the core's answer is the model's, the numbers to be seen from
 * outside agree, and the auditor finds all laws kept. At the end everything is
 * taken out and must come in the model's order, and no memory stays.
 *
 * A program that checks it is built from the files in model/ (but not from
 * test_model.c) and support/counting.c.
 */
#ifndef WQ_TEST_CORE_PROP_H
#define WQ_TEST_CORE_PROP_H

#include <stddef.h>
#include <stdint.h>

/* The world's first byte: one of each group. */
enum core_prop_world {
    CORE_PROP_SPREAD = 0, /* how hashes are */
    CORE_PROP_ALL_EQUAL = 1,
    CORE_PROP_TWO = 2,
    CORE_PROP_FOUR = 3,

    CORE_PROP_LINE = 0, /* who orders READY keys */
    /* A line, and after each operation all keys leave the core as images and
     * come back. No groups, no ageing, no flush, no remove at done; but some
     * HELD keys are given back. */
    CORE_PROP_REBUILT = 4,
    CORE_PROP_FIFO_PLUG_IN = 8,
    CORE_PROP_LIFO_PLUG_IN = 12,

    CORE_PROP_RESPECT = 16, /* every add respects a backoff */
    CORE_PROP_AGES = 32,    /* ages are kept */
    CORE_PROP_BOUNDED = 64, /* there is a max_len */
    CORE_PROP_FULL = 128,   /* the plug-in knows priorities, and gives back */
};

/* The world's third byte; of no meaning where a plug-in orders READY keys. Of a
 * REBUILT world only BYTES counts. The upper four bits say after how long a key is overdue. */
enum core_prop_special {
    CORE_PROP_NO_GROUPS = 0, /* who takes turns */
    CORE_PROP_GROUPS = 1,
    CORE_PROP_SERIAL = 2, /* ... and one key of a group is HELD at a time */
    CORE_PROP_PAIRS = 3,  /* ... or two are */

    CORE_PROP_AGEING = 4, /* overdue keys are next; not with a bound on HELD */
    CORE_PROP_BYTES = 8,  /* there is a max_bytes */

    CORE_PROP_SPECIAL = 15, /* all of these */
};

struct core_prop_report {
    size_t steps;      /* operations performed */
    char   text[6000]; /* empty, or what went wrong and the last operations */
};

/* 0: the property holds. */
int core_prop(const uint8_t *data, size_t len, struct core_prop_report *report);

#endif
