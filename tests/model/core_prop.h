/* SPDX-License-Identifier: MIT */
/* core_prop.h: does the core do what the model says, whatever comes?
 *
 * One property for tests and fuzzer alike. Bytes are read as a world to make
 * and operations to perform on it:
 *
 *     2 bytes   the world: the hash's mask and the ready order; how many keys
 *     then      1 byte which operation, and what it needs: a key, a time, ...
 *
 * Any bytes mean something; what is missing at the end counts as zero. After
 * every operation the core's answer is the model's, the numbers to be seen from
 * outside agree, and the auditor finds all laws kept. At the end everything is
 * taken out and must come in the model's order, and no memory stays.
 *
 * There is no library that holds these files: a program that wants them
 * includes model/model.c and model/core_prop.c.
 */
#ifndef WQ_TEST_CORE_PROP_H
#define WQ_TEST_CORE_PROP_H

#include <stddef.h>
#include <stdint.h>

struct core_prop_report {
    size_t steps;      /* operations performed */
    char   text[6000]; /* empty, or what went wrong and the last operations */
};

/* 0: the property holds. */
int core_prop(const uint8_t *data, size_t len, struct core_prop_report *report);

#endif
