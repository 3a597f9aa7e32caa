/* SPDX-License-Identifier: MIT */
/* load.h: how is a library found and loaded by name while the program runs? */
#ifndef WQ_PORT_LOAD_H
#define WQ_PORT_LOAD_H

/* Load the library `file`, a name without a directory, from the directories of
 * the dynamic loader, and return the address of its function `symbol`. The
 * library stays loaded. NULL: *why says the reason, in memory that is valid
 * until the thread's next call. A program without a dynamic loader gets
 * NULL. */
typedef void wq__loaded(void);
wq__loaded  *wq__load(const char *file, const char *symbol, const char **why);

#endif
