/* SPDX-License-Identifier: MIT */
/* address.h: where does --listen listen?
 *
 *     PORT, 127.0.0.1:PORT, [::1]:PORT, localhost:PORT    this machine only
 *     unix:PATH                                           this user only
 *     public:ADDRESS:PORT                                 whoever can reach it
 *
 * The page shows keys and asks nobody for a password. So an address that others
 * can reach must be asked for by name; 0.0.0.0 alone is refused.
 */
#ifndef WQ_TOOL_ADDRESS_H
#define WQ_TOOL_ADDRESS_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

struct address {
    int  fd;       /* listens, does not block, closes on exec; owned */
    bool is_local; /* a socket in the file system */
    bool chosen;   /* the port was 0: the system chose one */
    char url[160]; /* for people: http://127.0.0.1:9109/ or unix:PATH */

    struct sockaddr_un path;  /* is_local: where the file is */
    dev_t              dev;   /* ... and which one it is: another program may */
    ino_t              inode; /* have put its own there meanwhile */
};

/* Does `where` have one of these forms? False: as below. */
bool address_check(const char *where, char *why, size_t why_len);

/* Open it. False: `why` says what is wrong and what is accepted. */
bool address_open(struct address *a, const char *where, char *why,
                  size_t why_len);

/* Close it, and remove the file that was made for it. */
void address_close(struct address *a);

/* May a request that was sent to this Host be answered? A browser can be made
 * to believe that evil.example is 127.0.0.1, and would let scripts from there
 * read the answer; it then says evil.example here. Numbers cannot be forged
 * that way, nor can localhost. NULL, no browser: yes. */
bool address_is_host(const char *host);

#endif
