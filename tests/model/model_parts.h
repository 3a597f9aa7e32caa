/* SPDX-License-Identifier: MIT */
/* model_parts.h: what do the files of the model share?
 *
 * Only they include it. The fields of `struct model` are in model.h.
 */
#ifndef WQ_TEST_MODEL_PARTS_H
#define WQ_TEST_MODEL_PARTS_H

#include "model/model.h"

/* ---- model_view.c -------------------------------------------------------- */

/* While so many of its keys are HELD, no other key of the group is handed
 * out. */
bool model__is_blocked(const struct model *m, int group);

/* Whose deadline is first, of those that have not `passed` (NULL: of all); of
 * equal ones, who got it first (L4). -1: nobody's. */
int model__first_waiting(const struct model *m, const bool *passed);

/* ---- model_line.c -------------------------------------------------------- */

/* Which lane does a READY key stand in? */
struct model_lane model__lane_of(const struct model *m, int key);
bool              model__is_same_lane(struct model_lane a, struct model_lane b);
size_t model__lane_len(const struct model *m, struct model_lane lane);

/* To be called after every change of one key. */
void model__settle_lanes(struct model *m);

/* at the tail. False: the order refuses. */
bool model__make_ready(struct model *m, int key);

void model__take_out(struct model *m, int key);

/* A READY key gets a higher priority, and goes behind all that have it. */
void model__raise_ready(struct model *m, int key, int priority);

/* Who leaves next. */
int model__next_ready(struct model *m, int64_t now);

/* ---- model_room.c -------------------------------------------------------- */

/* O-55: room for the keys that are new; `victims` make it. False: there is
 * none, and nothing has changed. */
bool model__make_room(struct model *m, const struct model_how *how,
                      const struct model_pick *picks, size_t n,
                      struct model_victims *victims);

/* ---- model_adds.c -------------------------------------------------------- */

int64_t model__later_by(int64_t now, int64_t span);

/* How long a key is left alone is remembered for as long, and while it waits or
 * its next run changes that. */
void model__forget_quiet_if_over(struct model_key *k, int64_t now);

/* The run that serves the deadline is the next one; or the deadline will serve
 * what the next run was to serve. */
void model__throttle_next_instead(struct model_key *k);
void model__throttle_waiting_instead(struct model_key *k);

/* The key needs work. */
enum model_answer model__want(struct model *m, int key, int priority,
                              int64_t now, enum model_effect *did);

/* The deadline covers one more add, which needs no run of its own. */
enum model_effect model__keep(struct model *m, struct model_key *k,
                              int priority, bool failed);

void model__set_deadline(struct model *m, struct model_key *k, int64_t at);

/* O-58: its deadline ends. */
void model__stop_waiting(struct model_key *k, int64_t now);

/* O-16: does it wait by a backoff that the pace of adds does not change? */
bool model__backs_off(const struct model *m, const struct model_key *k);

#endif
