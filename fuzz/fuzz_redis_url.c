/* SPDX-License-Identifier: MIT */
/* fuzz_redis_url.c: is there a URL that harms the program, or whose password is
 * shown? All servers refuse connections (redis_net.h). */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <wq/redis.h>

#include "fuzz.h"
#include "redis_net.h"

/* As a password it is in no message; elsewhere in a URL it may be. */
#define SECRET "s3cr3t"

int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

/* password_file=PATH: no file of this machine. */
int
__wrap_open(const char *path, int flags, ...)
{
    (void)path, (void)flags;
    errno = ENOENT;
    return -1;
}

/* Its name where offsets have 64 bits. */
int
__wrap_open64(const char *path, int flags, ...)
{
    return __wrap_open(path, flags);
}

/* "SCHEME://USER:SECRET@...", and the rest does not have it. */
static bool
is_password(const char *url)
{
    const char *user = strstr(url, "://");
    const char *colon = user ? user + 3 + strcspn(user + 3, "/?#@:") : "";

    return strncmp(colon, ":" SECRET "@", strlen(SECRET) + 2) == 0 &&
           strstr(url, SECRET) == colon + 1 && !strstr(colon + 2, SECRET);
}

/* "...?...NAME=SECRET", where NAME is no option, and whatever separates it from
 * what comes before; and the rest does not have it. */
static bool
is_option(const char *url)
{
    static const char *const names[] = {"password=", "pwd=", "auth="};
    const char              *options = strchr(url, '?');
    const char              *at = options ? strstr(options, SECRET) : NULL;

    if (!at || strstr(url, SECRET) != at || strstr(at + 1, SECRET))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t len = strlen(names[i]);
        if ((size_t)(at - options) > len &&
            strncmp(at - len, names[i], len) == 0 &&
            strchr("?&;,# ", at[-1 - (long)len]))
            return true;
    }
    return false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char     *url = fuzz_text(data, len);
    wq_queue *q = NULL;

    redis_net = (struct redis_net){.refuses = true};
    if (wq_redis_open(url, WQ_REDIS_OPTIONS(.manual_renew = true), NULL, &q) ==
        WQ_OK)
        fuzz_fail("opened, but nobody answers");
    if ((is_password(url) || is_option(url)) && strstr(wq_last_error(), SECRET))
        fuzz_fail("the password is shown: %s", wq_last_error());
    free(url);
    return 0;
}
