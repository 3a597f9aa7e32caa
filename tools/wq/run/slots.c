/* SPDX-License-Identifier: MIT */
/* slots.c: where are the runs kept?
 *
 * WQ_SLOT is the number of the slot; the lowest free one is used first. Finding
 * a slot or a run costs O(slots).
 */
#include <stdlib.h>
#include <string.h>

#include "run/runner.h"

/* Makes space for one more slot. */
static bool
grow(struct runner *runner)
{
    if (runner->n_slots < runner->capacity)
        return true;
    const size_t       capacity = runner->capacity ? 2 * runner->capacity : 8;
    struct slot_entry *slots =
        realloc(runner->slots, capacity * sizeof *runner->slots);
    if (!slots)
        return false;
    runner->slots = slots;
    struct run **listed =
        realloc(runner->listed, capacity * sizeof *runner->listed);
    if (!listed)
        return false;
    runner->listed = listed;
    runner->capacity = capacity;
    return true;
}

/* A copy of the bytes in `text`, with a NUL behind it. False: out of memory. */
static bool
copy(struct wq__text *text, wq_key from, wq_key *out)
{
    text_clear(text);
    wq__text_add(text, from.data, from.len);
    *out = wq_bytes(text_terminate(text), from.len);
    return out->data;
}

/* --keep-order: a run that a run asked for takes its ticket now. */
static bool
take_ticket(struct runner *runner, struct run *run, struct note *note)
{
    run->ticket =
        note && note->ticket ? note->ticket : output_expect(runner->output);
    if (note)
        note->ticket = 0;
    return run->ticket > 0;
}

/* The key must outlive the item: the end of a run is logged after the queue
 * knows it. And a line that comes meanwhile is for the next run. */
static bool
fill(struct runner *runner, struct slot *slot, size_t i, wq_item *item)
{
    struct note *note = notes_find(&runner->notes, item->key);

    slot->run = (struct run){
        .slot = (unsigned)i + 1,
        .item = item,
        .priority = item->priority,
        .lines = note ? note->lines : 0,
    };
    if (!copy(&slot->key, item->key, &slot->run.key))
        return false;
    slot->run.line = slot->run.key;
    if (note && note->line &&
        !copy(&slot->line, wq_bytes(note->line, note->line_len),
              &slot->run.line))
        return false;
    return !runner->options->keep_order ||
           take_ticket(runner, &slot->run, note);
}

struct slot *
slot_take(struct runner *runner, wq_item *item)
{
    size_t i = runner->free_from;

    while (i < runner->n_slots && runner->slots[i].pid)
        i++;
    if (i == runner->n_slots) {
        struct slot *slot = grow(runner) ? calloc(1, sizeof *slot) : NULL;
        if (!slot)
            return NULL;
        runner->slots[i] = (struct slot_entry){.slot = slot};
        runner->n_slots++;
    }
    if (!fill(runner, runner->slots[i].slot, i, item))
        return NULL;
    runner->free_from = i + 1;
    return runner->slots[i].slot;
}

/* An unused place for a further key. NULL: out of memory. */
static struct slot *
place(struct slot *slot, size_t i)
{
    if (i < slot->n_more)
        return slot->more[i];
    struct slot **more =
        realloc(slot->more, (slot->n_more + 1) * sizeof *slot->more);
    if (!more)
        return NULL;
    slot->more = more;
    more[i] = calloc(1, sizeof *more[i]);
    slot->n_more += more[i] != NULL;
    return more[i];
}

/* A key that there is no memory for stays in the queue. One that has failed runs
 * alone: it may be the reason why its batch failed. */
void
slot_take_more(struct runner *runner, struct slot *slot)
{
    struct run *last = &slot->run;
    size_t      used = command_cost(runner->command, last);
    wq_item    *item;

    if (wq_num_requeues(runner->q, last->key) > 0)
        return;
    for (size_t i = 0; i + 1 < runner->options->max_args &&
                       command_has_space(runner->command, used);
         i++) {
        struct slot *next = place(slot, i);
        if (!next || wq_get_within(runner->q, 0, &item) != WQ_OK)
            return;
        if (wq_num_requeues(runner->q, item->key) > 0 ||
            !fill(runner, next, slot->run.slot - 1, item)) {
            (void)wq_finish(runner->q, item, wq_result_back());
            return;
        }
        last = last->rest = &next->run;
        used += command_cost(runner->command, last);
    }
}

void
slot_end(struct runner *runner, const struct run *run)
{
    runner->slots[run->slot - 1].pid = SLOT_ENDED;
}

void
slot_release(struct runner *runner, const struct run *run)
{
    const size_t i = run->slot - 1;

    runner->slots[i].pid = 0;
    if (i < runner->free_from)
        runner->free_from = i;
}

struct run *
slot_find(struct runner *runner, pid_t pid)
{
    for (size_t i = 0; i < runner->n_slots; i++)
        if (runner->slots[i].pid == pid)
            return &runner->slots[i].slot->run;
    return NULL;
}

struct run *
slot_find_key(struct runner *runner, wq_key key)
{
    for (size_t i = 0; i < runner->n_slots; i++) {
        struct run *run = &runner->slots[i].slot->run;
        if (runner->slots[i].pid > 0 && run->key.len == key.len &&
            memcmp(run->key.data, key.data, key.len) == 0)
            return run;
    }
    return NULL;
}

void
slots_each(struct runner *runner,
           void (*f)(struct runner *runner, struct run *run))
{
    for (size_t i = 0; i < runner->n_slots; i++)
        if (runner->slots[i].pid > 0)
            f(runner, &runner->slots[i].slot->run);
}

void
slots_each_ended(struct runner *runner,
                 void (*f)(struct runner *runner, struct run *run))
{
    for (size_t i = 0; i < runner->n_slots; i++)
        if (runner->slots[i].pid == SLOT_ENDED)
            f(runner, &runner->slots[i].slot->run);
}

static void
slot_free(struct slot *slot)
{
    arguments_fini(&slot->arguments);
    wq__text_fini(&slot->key);
    wq__text_fini(&slot->line);
    free(slot->more);
    free(slot);
}

void
slots_free(struct runner *runner)
{
    for (size_t i = 0; i < runner->n_slots; i++) {
        struct slot *slot = runner->slots[i].slot;
        for (size_t j = 0; j < slot->n_more; j++)
            slot_free(slot->more[j]);
        slot_free(slot);
    }
    free(runner->slots);
    free(runner->listed);
}
