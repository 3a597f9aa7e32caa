/* SPDX-License-Identifier: MIT */
/* fuzz.h: how does a fuzz target read its input, and report what it found?
 *
 * scripts/fuzz.sh closes stdout and stderr, where the command prints its
 * messages, so a failure is reported on a copy of stderr. The same programs with
 * replay.c as their main() run the kept inputs in `make test`.
 */
#ifndef WQ_FUZZ_H
#define WQ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The law that is broken, as printf() prints it; does not return. */
_Noreturn void fuzz_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* A copy of the bytes with a NUL behind them; free() it. */
char *fuzz_text(const uint8_t *data, size_t len);

/* Replaces the first `end` behind *at by a NUL, and moves *at behind it. Returns
 * what *at was; NULL: nothing is left. */
char *fuzz_split(char **at, char end);

#endif
