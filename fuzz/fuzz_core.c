/* SPDX-License-Identifier: MIT */
/* fuzz_core.c: is there a sequence of operations for which the core and the
 * model differ? tests/model/core_prop.h describes the property and the input
 * bytes. */
#include "fuzz.h"
#include "model/core_prop.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct core_prop_report report;

    if (core_prop(data, len, &report) != 0)
        fuzz_fail("%s", report.text);
    return 0;
}
