/* SPDX-License-Identifier: MIT */
/* verbs.c: which verbs are there? See verbs.h. */
#include "options/verbs.h"

#include <string.h>

const struct verb_row verbs_table[VERBS] = {
    [VERB_RUN] = {"run", "[--] COMMAND [ARG]...", true,
                  "read keys and run COMMAND for each",
                  "Read keys and run COMMAND for each. A key never runs twice "
                  "at the same time; it\n"
                  "runs once more if it was added again meanwhile, and later "
                  "again if it failed.\n"},
    [VERB_WORK] = {"work", "[--] COMMAND [ARG]...", true,
                   "run COMMAND for each key of a shared queue",
                   "Run COMMAND for each key of a shared queue, until a signal "
                   "stops it. Any number\n"
                   "of workers and producers may use the queue at the same "
                   "time.\n"},
    [VERB_ADD] = {"add", "[KEY]...", false, "add keys to a shared queue",
                  "Add keys to a shared queue: the KEYs, and those of -a; if "
                  "there are none, the\n"
                  "keys that stdin has. A key that is READY already is not "
                  "added twice.\n"},
    [VERB_GET] = {"get", "", false, "take a key, for a script",
                  "Take a key from a shared queue, and print it. The process "
                  "that called wq get, or\n"
                  "--holder, holds the key until wq done; if that process ends "
                  "first, the key is\n"
                  "READY again. Exit status 1: there was no key in time.\n"},
    [VERB_DONE] = {"done", "KEY...", false, "finish keys that wq get took",
                   "Finish keys that wq get took for the same process. Without "
                   "an option: they have\n"
                   "succeeded. Exit status 1: the process does not hold one of "
                   "them.\n"},
    [VERB_STATUS] = {"status", "", false, "count the keys of a shared queue",
                     "Count the keys of a shared queue by their states.\n"},
    [VERB_LIST] = {"list", "", false, "list the keys of a shared queue",
                   "List the keys of a shared queue, in no particular "
                   "order.\n"},
    [VERB_SHOW] = {"show", "KEY...", false, "show what is known about a key",
                   "Show what a shared queue knows about a key. Exit status 1: "
                   "there is no such key.\n"},
    [VERB_REMOVE] = {"remove", "[KEY]...", false,
                     "remove keys from a shared queue",
                     "Remove the KEYs, and those of -a, from a shared queue. A "
                     "key that a worker holds\n"
                     "is not run again. Exit status 1: there was no such "
                     "key.\n"},
    [VERB_RETRY] = {"retry", "[KEY]...", false, "make DEAD keys READY again",
                    "Make DEAD keys READY again, and forget their failures. "
                    "Exit status 1: a key was\n"
                    "not DEAD.\n"},
    [VERB_DRAIN] = {"drain", "", false, "wait until a shared queue is idle",
                    "Wait until no key of a shared queue is READY or HELD, if "
                    "only for a moment.\n"
                    "WAITING keys do not count. Exit status 124: keys are left "
                    "after --timeout.\n"},
    [VERB_FSCK] = {"fsck", "", false, "check a shared queue for damage",
                   "Check that what a shared queue has stored is consistent, "
                   "and print the problems.\n"
                   "Exit status 1: there are problems.\n"},
};

enum verb
verb_named(const char *name)
{
    enum verb verb = 0;

    while (verb < VERBS && strcmp(verbs_table[verb].name, name) != 0)
        verb++;
    return verb;
}
