/* SPDX-License-Identifier: MIT */
/* order.c: how is output printed in the order of the input? See order.h.
 *
 * Tickets from `head` on are in a ring; the output of `head` itself is printed
 * at once. Adding costs O(bytes), whatever waits.
 */
#include "output/order.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/report.h"
#include "base/write.h"

/* Pieces printed before the loop goes on, and bytes read at a time. */
enum { TURN = 256, READ = 65536 };

/* Output that waits. */
struct piece {
    struct piece *next;
    enum target   target;
    uint64_t      at;   /* in the file, if `data` is NULL */
    uint64_t      len;  /* bytes */
    char         *data; /* owned */
};

/* What is known of a ticket. */
struct turn {
    struct piece *first, *last;
    unsigned      awaited; /* captures whose output is awaited */
    bool          settled;
};

struct order {
    struct loop   *loop;
    struct outbox *box;
    struct turn   *turns;    /* a ring */
    size_t         capacity; /* of it; a power of two, or 0 */
    uint64_t       head;     /* the lowest ticket that is not printed */
    uint64_t       next;     /* the next to be given out */
    size_t         memory;   /* bytes of pieces in memory */
    struct store   file;     /* only its file is used */
    uint64_t       in_file;  /* bytes of pieces in the file */
    struct timer   soon;     /* goes on after TURN pieces */
};

static struct turn *
turn_of(const struct order *order, uint64_t ticket)
{
    return &order->turns[ticket & (order->capacity - 1)];
}

/* ------------------------------------------------------------------ print -- */

static void
drop_first(struct order *order, struct turn *turn)
{
    struct piece *piece = turn->first;

    turn->first = piece->next;
    if (piece->data)
        order->memory -= (size_t)piece->len;
    else
        order->in_file -= piece->len;
    if (order->in_file == 0)
        store_clear(&order->file);
    free(piece->data);
    free(piece);
}

/* Prints some of a piece that is in the file. False: it cannot be read. */
static bool
print_part(struct order *order, struct piece *piece)
{
    char         part[READ];
    const size_t wanted = piece->len < READ ? (size_t)piece->len : READ;
    const size_t n = store_read(&order->file, piece->at, part, wanted);

    outbox_add(order->box, piece->target, part, n);
    piece->at += n;
    piece->len -= n;
    order->in_file -= n;
    return n > 0;
}

static void
print_first(struct order *order, struct turn *turn)
{
    struct piece *piece = turn->first;

    if (piece->data) {
        outbox_add(order->box, piece->target, piece->data, (size_t)piece->len);
        drop_first(order, turn);
    } else if (!print_part(order, piece)) {
        outbox_lost(order->box);
        drop_first(order, turn);
    } else if (piece->len == 0) {
        drop_first(order, turn);
    }
}

static void
on_soon(void *ctx)
{
    order_go_on(ctx);
}

void
order_go_on(struct order *order)
{
    int n = 0;

    while (order->head < order->next) {
        struct turn *turn = turn_of(order, order->head);
        for (; turn->first; print_first(order, turn)) {
            if (outbox_congested(order->box))
                return; /* the outbox reports when it is over */
            if (n++ == TURN) {
                loop_timer_set(order->loop, &order->soon, 0, on_soon, order);
                return;
            }
        }
        if (!turn->settled || turn->awaited)
            return;
        order->head++;
    }
}

bool
order_idle(const struct order *order)
{
    return order->head == order->next || !turn_of(order, order->head)->first;
}

/* ------------------------------------------------------------------- wait -- */

/* The bytes of the store, as one block; NULL: out of memory. */
static char *
copy_memory(const struct store *store)
{
    char *data = malloc(store->memory.len);

    return data ? memcpy(data, store->memory.data, store->memory.len) : NULL;
}

/* Appends all of the store to our file. False: it cannot be written. */
static bool
move_to_file(struct order *order, struct store *store)
{
    char     part[READ];
    uint64_t at = 0;

    while (at < store->in_file) {
        const size_t n = store_read(store, at, part, sizeof part);
        if (n == 0 || !store_append(&order->file, part, n))
            return false;
        at += n;
    }
    return store->memory.len == 0 ||
           store_append(&order->file, store->memory.data, store->memory.len);
}

/* False: out of memory. */
static bool
fill(struct order *order, struct piece *piece, struct store *store)
{
    piece->len = store->in_file + store->memory.len;
    piece->at = order->file.in_file;
    if ((store->in_file || order->memory + piece->len > ORDER_MAX) &&
        move_to_file(order, store)) {
        order->in_file += piece->len;
        return true;
    }
    if (store->in_file) /* neither file nor memory can take it */
        return false;
    piece->data = copy_memory(store);
    order->memory += piece->data ? (size_t)piece->len : 0;
    return piece->data;
}

static void
wait_for(struct order *order, struct turn *turn, enum target target,
         struct store *store)
{
    struct piece *piece = calloc(1, sizeof *piece);

    if (!piece || !fill(order, piece, store)) {
        outbox_lost(order->box);
        free(piece);
    } else {
        piece->target = target;
        *(turn->first ? &turn->last->next : &turn->first) = piece;
        turn->last = piece;
    }
    store_clear(store);
}

void
order_add(struct order *order, uint64_t ticket, enum target target,
          struct store *store)
{
    struct turn *turn = turn_of(order, ticket);

    if (store_is_empty(store))
        return;
    if (ticket == order->head && !turn->first) {
        outbox_add_store(order->box, target, store);
        return;
    }
    wait_for(order, turn, target, store);
    order_go_on(order);
}

/* ---------------------------------------------------------------- tickets -- */

static bool
grow(struct order *order)
{
    const size_t capacity = order->capacity ? 2 * order->capacity : 64;
    struct turn *turns = calloc(capacity, sizeof *turns);

    if (!turns)
        return false;
    for (uint64_t i = order->head; i < order->next; i++)
        turns[i & (capacity - 1)] = *turn_of(order, i);
    free(order->turns);
    order->turns = turns;
    order->capacity = capacity;
    return true;
}

uint64_t
order_expect(struct order *order)
{
    if (order->next - order->head == order->capacity && !grow(order))
        return 0;
    *turn_of(order, order->next) = (struct turn){0};
    return order->next++;
}

void
order_await(struct order *order, uint64_t ticket)
{
    turn_of(order, ticket)->awaited++;
}

void
order_end_wait(struct order *order, uint64_t ticket)
{
    turn_of(order, ticket)->awaited--;
    order_go_on(order);
}

void
order_settle(struct order *order, uint64_t ticket)
{
    turn_of(order, ticket)->settled = true;
    order_go_on(order);
}

void
order_settle_all(struct order *order)
{
    for (uint64_t i = order->head; i < order->next; i++)
        turn_of(order, i)->settled = true;
    order_go_on(order);
}

struct order *
order_create(struct loop *loop, struct outbox *box)
{
    struct order *order = calloc(1, sizeof *order);

    if (order)
        *order = (struct order){.loop = loop,
                                .box = box,
                                .head = 1,
                                .next = 1,
                                .file = STORE_EMPTY};
    return order;
}

void
order_destroy(struct order *order)
{
    if (!order)
        return;
    for (uint64_t i = order->head; i < order->next; i++)
        while (turn_of(order, i)->first)
            drop_first(order, turn_of(order, i));
    loop_timer_clear(order->loop, &order->soon);
    store_fini(&order->file);
    free(order->turns);
    free(order);
}
