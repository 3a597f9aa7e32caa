/* SPDX-License-Identifier: MIT */
/* futex.h: stands in for a header that only Linux has; the build with WQ_PLAIN finds
 * it first. */
#error "<linux/futex.h> is only on Linux; src/port must do without it"
