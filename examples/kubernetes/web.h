/* SPDX-License-Identifier: MIT */
/* web.h: /metrics, /healthz and /readyz of a controller. */
#ifndef WEB_H
#define WEB_H

#include <stdint.h>

#include <wq/metrics.h>

#include "controller.h"

struct web;

/* Serve at `port` (0: any) of all addresses, in a thread. NULL: it cannot. Both
 * arguments must outlive it. */
struct web *web_start(uint16_t port, const struct controller *controller,
                      wq_registry *metrics);
uint16_t    web_port(const struct web *web);
void        web_stop(struct web *web);

#endif
