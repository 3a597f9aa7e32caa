/* SPDX-License-Identifier: MIT */
/* page.h: what is page.html, when the program is built? See
 * cmake/WqEmbed.cmake, which writes the definitions.
 */
#ifndef WQ_TOOL_PAGE_H
#define WQ_TOOL_PAGE_H

#include <stddef.h>

extern const char   page_html[];
extern const size_t page_html_len;

#endif
