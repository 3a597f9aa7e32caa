/* SPDX-License-Identifier: MIT */
/* timerfd.h: stands in for a header that only Linux has; the build with WQ_PLAIN finds
 * it first. */
#error "<sys/timerfd.h> is only on Linux; src/port must do without it"
