/* SPDX-License-Identifier: MIT */
/* page.h: where are the bytes of page.html in the program?
 *
 * cmake/WqEmbed.cmake writes the definitions.
 */
#ifndef WQ_TOOL_PAGE_H
#define WQ_TOOL_PAGE_H

#include <stddef.h>

extern const char   page_html[];
extern const size_t page_html_len;

#endif
