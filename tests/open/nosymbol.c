/* SPDX-License-Identifier: MIT */
/* nosymbol.c: a library that has the name of a backend, libwq-nosymbol.so.0.1,
 * and no function that opens a queue. */
#include <wq/wq.h>

WQ_API int nosymbol(void);

int
nosymbol(void)
{
    return 0;
}
