/* SPDX-License-Identifier: MIT */
/* verbs.c: which function carries out which verb? See verbs.h. */
#include "verbs/verbs.h"

#include <stdio.h>

#include "base/report.h"

int
verbs_main(const struct options *options)
{
    static verb_function *const functions[VERBS] = {
        [VERB_ADD] = verb_add,       [VERB_GET] = verb_get,
        [VERB_DONE] = verb_done,     [VERB_STATUS] = verb_status,
        [VERB_LIST] = verb_list,     [VERB_SHOW] = verb_show,
        [VERB_REMOVE] = verb_remove, [VERB_RETRY] = verb_retry,
        [VERB_DRAIN] = verb_drain,   [VERB_FSCK] = verb_fsck,
    };
    const int status = functions[options->verb](options);

    if (status == STATUS_ERROR || (fflush(stdout) == 0 && !ferror(stdout)))
        return status; /* an error was reported already */
    report_errno("%s: cannot write to stdout", verbs_table[options->verb].name);
    return STATUS_ERROR;
}
