/* SPDX-License-Identifier: MIT */
/* address.h: what does the ADDR of --listen mean?
 *
 *     PORT, 127.0.0.1:PORT, [::1]:PORT, localhost:PORT    this machine only
 *     unix:PATH                                           this user only
 *     public:ADDRESS:PORT                                 any host
 *
 * The page shows keys and has no password. So an address that other hosts can
 * reach needs the prefix "public:"; 0.0.0.0 alone is refused. So are public:PORT
 * and :PORT, which some read as this machine and others as any host; and names
 * other than localhost, which may have several addresses.
 */
#ifndef WQ_TOOL_ADDRESS_H
#define WQ_TOOL_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/un.h>

union address {
    struct sockaddr     any; /* sa_family says which of the others is set */
    struct sockaddr_in  v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un  local;
};

/* Read all of `text`. False: `why` says what is wrong: "is not an address". */
bool address_read(const char *text, union address *out, char *why,
                  size_t why_len);

/* Write what is wrong to `why`; returns false. */
bool address_refuse(char *why, size_t why_len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* May a request with this Host header be answered? Defends against DNS
 * rebinding: a browser that was made to resolve evil.example to 127.0.0.1 would
 * let scripts of that site read the answer, but it sends "Host: evil.example".
 * So only numeric addresses and localhost are accepted. NULL (no browser): yes.
 */
bool address_is_host(const char *host);

#endif
