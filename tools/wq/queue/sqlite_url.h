/* SPDX-License-Identifier: MIT */
/* sqlite_url.h: what does a sqlite: URL say, for wq_sqlite_open()?
 *
 * wq_open() reads such a URL by itself, but has no way to name a holder.
 */
#ifndef WQ_TOOL_SQLITE_URL_H
#define WQ_TOOL_SQLITE_URL_H

#include <wq/sqlite.h>

struct sqlite_url {
    char             *text; /* the decoded parts; owned */
    const char       *path; /* in `text` */
    wq_sqlite_options options;
};

/* Read it. Returns NULL, or what is wrong. Call sqlite_url_fini() in both
 * cases. */
const char *sqlite_url_read(struct sqlite_url *out, const char *url);
void        sqlite_url_fini(struct sqlite_url *url);

#endif
