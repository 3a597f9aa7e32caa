/* SPDX-License-Identifier: MIT */
/* eventfd.h: stands in for a header that only Linux has; the build with WQ_PLAIN finds
 * it first. */
#error "<sys/eventfd.h> is only on Linux; src/port must do without it"
