/* SPDX-License-Identifier: MIT */
/* order.h: how is output printed in the order of the input (--keep-order)?
 *
 * A key that is added takes the next ticket. Its output is printed when all keys
 * with lower tickets are settled; it waits until then:
 *
 *     order_expect()    order_add() ...           order_settle()
 *     ticket 7     ───► output of its runs ─────► no more will come
 *
 * Output that waits is in memory, up to ORDER_MAX bytes for all keys; more goes
 * to one unnamed file (see store.h). A ticket costs 24 bytes.
 */
#ifndef WQ_TOOL_ORDER_H
#define WQ_TOOL_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "output/outbox.h"
#include "output/store.h"

/* As much as 64 runs may store (STORE_MAX). */
#define ORDER_MAX (64 * (size_t)1024 * 1024)

struct order; /* opaque */

/* NULL: out of memory. `box` must outlive it. */
struct order *order_create(struct loop *loop, struct outbox *box);
void          order_destroy(struct order *order); /* NULL is allowed */

/* The next ticket, from 1. 0: out of memory. */
uint64_t order_expect(struct order *order);
/* Append what is in the store, and make the store empty. */
void order_add(struct order *order, uint64_t ticket, enum target target,
               struct store *store);
/* Although the ticket may be settled, output is awaited; and not any longer. */
void order_await(struct order *order, uint64_t ticket);
void order_end_wait(struct order *order, uint64_t ticket);
/* Nothing more comes for this ticket. */
void order_settle(struct order *order, uint64_t ticket);
/* Nothing more comes for any ticket: what is left may be printed. */
void order_settle_all(struct order *order);
/* There is less congestion: print more. */
void order_go_on(struct order *order);
/* Does nothing wait that may be printed? */
bool order_idle(const struct order *order);

#endif
