/* SPDX-License-Identifier: MIT */
/* controller.h: sets status.size of every Widget to its spec.size. */
#ifndef CONTROLLER_H
#define CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/metrics.h>

#include "api.h"
#include "reflector.h"

struct controller_config {
    struct api_config api;
    const char *namespace;           /* NULL: all */
    unsigned                workers; /* threads that reconcile */
    struct reflector_tuning tuning;  /* its pauses are also those of keys */
    wq_registry            *metrics; /* must outlive the controller */
};

struct controller;

/* Start it. NULL: out of memory or threads. Copies the config, not its
 * strings. */
struct controller *controller_start(const struct controller_config *config);

/* Add the keys of all objects, at low priority. */
void controller_resync(struct controller *controller);

/* Stop to watch, and work on what is there, for at most `limit_ms`. True: all
 * of it is done. */
bool controller_drain(struct controller *controller, int64_t limit_ms);

/* Only after a drain that succeeded, or before one: waits for the workers. */
void controller_destroy(struct controller *controller);

/* For /healthz: NULL, or the reason why the process should be replaced. */
const char *controller_sick(const struct controller *controller);
/* For /readyz: the store had all objects once. */
bool controller_ready(const struct controller *controller);
/* Lines for /metrics about the store and the watch. */
int controller_metrics(const struct controller *controller, char *text,
                       size_t size);

#endif
