/* SPDX-License-Identifier: MIT */
/* image_fields.h: which fields make two images the same? */
#ifndef WQ_TEST_IMAGE_FIELDS_H
#define WQ_TEST_IMAGE_FIELDS_H

#include "core/image.h"
#include "support/fields.h"

#define OF_IMAGE(member) FIELD(struct wq__image, member)

static const struct field image_fields[] = {OF_IMAGE(states),
                                            OF_IMAGE(priority),
                                            OF_IMAGE(since_ns),
                                            OF_IMAGE(held_priority),
                                            OF_IMAGE(fence),
                                            OF_IMAGE(held_ns),
                                            OF_IMAGE(holder),
                                            OF_IMAGE(at_ns),
                                            OF_IMAGE(arrival),
                                            OF_IMAGE(wait_priority),
                                            OF_IMAGE(throttled),
                                            OF_IMAGE(latest_ns),
                                            OF_IMAGE(next_cooldown_ns),
                                            OF_IMAGE(wait_cooldown_ns),
                                            OF_IMAGE(cooldown_until_ns)};

#endif
