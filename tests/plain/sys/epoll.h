/* SPDX-License-Identifier: MIT */
/* epoll.h: stands in for a header that only Linux has; the build with WQ_PLAIN finds
 * it first. */
#error "<sys/epoll.h> is only on Linux; src/port must do without it"
