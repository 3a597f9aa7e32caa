/* SPDX-License-Identifier: MIT */
/* entries.h: how many descriptors or threads does the process have? As many as
 * /proc/self/fd or /proc/self/task have entries, less a constant: compare two
 * counts with each other. */
#ifndef WQ_TEST_ENTRIES_H
#define WQ_TEST_ENTRIES_H

#include <dirent.h>
#include <stddef.h>

/* The entries of a directory, with `.` and `..`; 0 if it cannot be opened. */
static inline size_t
entries_of(const char *path)
{
    DIR   *dir = opendir(path);
    size_t n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        (void)closedir(dir);
    return n;
}

#endif
