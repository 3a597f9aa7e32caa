/* SPDX-License-Identifier: MIT */
/* url.h: what does the URL of a queue say?
 *
 *     mem:                          the memory of this process
 *     sqlite:PATH[?queue=NAME&...]  see <wq/sqlite.h>
 *     SCHEME://USER:PASSWORD@HOST   a server
 *
 * The backend reads most of it. This file knows what every scheme has in
 * common, and that the path of sqlite: may be relative.
 */
#ifndef WQ_TOOL_URL_H
#define WQ_TOOL_URL_H

#include <stdbool.h>

/* Does it begin with a scheme? */
bool url_is(const char *text);
/* Is it the queue in the memory of this process? */
bool url_is_memory(const char *url);
bool url_is_sqlite(const char *url);
bool url_is_redis(const char *url);

/* Replace %XX by the bytes, in place. False: two digits are missing, or they are
 * 00. */
bool url_decode(char *text);

/* Where the value of an option begins; *end: where it ends. NULL: there is no such
 * option. */
const char *url_find_option(const char *url, const char *name,
                            const char **end);

/* The URL for messages, with *** for all that may be a password: for the password
 * of USER:PASSWORD@, and for every part that has not the form of what belongs
 * there. In a static buffer. */
const char *url_shown(const char *url);
/* A copy that means the same in every directory. In a sqlite: URL the option
 * `create=no`, if `existing`, forbids to make a file, and `holder=PID`, if
 * `holder` is not 0, names the process that holds keys; in one of Redis
 * `client=HOST:PID` does so, for people. The caller frees it.
 * NULL: errno says why. */
char *url_complete(const char *url, bool existing, int holder);
/* The path in a sqlite: URL. The caller frees it. NULL: out of memory. */
char *url_sqlite_path(const char *url);
/* The name of the queue: the value of queue=, or "default". The caller frees it.
 * NULL: out of memory. */
char *url_queue_name(const char *url);
/* Which queue in Redis is it? A text that is the same for all URLs that mean the
 * same server, database and queue by the same names: url_identity.c. The caller
 * frees it. NULL: out of memory. */
char *url_identity(const char *url);

#endif
