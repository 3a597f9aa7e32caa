/* SPDX-License-Identifier: MIT */
/* replay.c: do the kept inputs of a fuzz target still hold? Its main() without
 * libFuzzer: runs every file of a directory, whole and without its last byte,
 * which often makes the difference between a word and the beginning of one.
 *
 *     replay DIRECTORY
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

static void
replay(const char *directory, const char *name, int out)
{
    static uint8_t bytes[1 << 20];
    char           path[1500];

    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fuzz_fail("cannot open %s", path);
    const size_t len = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    (void)dprintf(out, "%s\n", name);
    (void)LLVMFuzzerTestOneInput(bytes, len);
    if (len)
        (void)LLVMFuzzerTestOneInput(bytes, len - 1);
}

int
main(int argc, char **argv)
{
    DIR   *dir = argc == 2 ? opendir(argv[1]) : NULL;
    size_t n = 0;

    (void)LLVMFuzzerInitialize(&argc, &argv);
    if (!dir)
        fuzz_fail("usage: replay DIRECTORY");
    const int out = dup(STDOUT_FILENO);
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)dup2(null, STDOUT_FILENO); /* what the command prints is no result */
    (void)dup2(null, STDERR_FILENO);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.') {
            replay(argv[1], entry->d_name, out);
            n++;
        }
    (void)closedir(dir);
    (void)close(null);
    (void)dprintf(out, "%zu inputs\n", n);
    (void)close(out);
    return n > 0 ? 0 : 1;
}
