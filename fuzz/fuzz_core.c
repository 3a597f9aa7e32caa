/* SPDX-License-Identifier: MIT */
/* fuzz_core.c: is there any sequence of operations for which the core and the
 * model differ? The property and what the bytes mean: tests/model/core_prop.h.
 */
#include <stdio.h>
#include <stdlib.h>

/* The property brings no library of its own, and cmocka is not wanted here. */
#include "model/core_prop.c"
#include "model/model.c"
#include "support/counting.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct core_prop_report report;

    if (core_prop(data, len, &report) != 0) {
        fputs(report.text, stderr);
        abort();
    }
    return 0;
}
