/* SPDX-License-Identifier: MIT */
/* words.h: what are the model's answers in the words of wq.h? */
#ifndef WQ_MODEL_WORDS_H
#define WQ_MODEL_WORDS_H

#include <wq/wq.h>

#include "model/model.h"

static inline wq_err
model_error(enum model_answer answer)
{
    static const wq_err errors[] = {
        [MODEL_OK] = WQ_OK,
        [MODEL_NOTHING] = WQ_ENOTFOUND,
        [MODEL_WRONG_STATE] = WQ_ESTATE,
        [MODEL_SHUT] = WQ_ESHUTDOWN,
        [MODEL_REFUSED] = WQ_ENOMEM,
        [MODEL_FULL] = WQ_EFULL,
        [MODEL_CANNOT] = WQ_ENOTSUP,
        [MODEL_GIVEN_UP] = WQ_EGIVENUP,
        [MODEL_DROPPED] = WQ_EDROPPED,
    };

    return errors[answer];
}

static inline wq_added
model_added(enum model_effect effect)
{
    static const wq_added effects[] = {
        [MODEL_NEW] = WQ_ADDED_NEW,
        [MODEL_MERGED] = WQ_ADDED_MERGED,
        [MODEL_MADE_DIRTY] = WQ_ADDED_DIRTY,
        [MODEL_RAISED] = WQ_ADDED_RAISED,
        [MODEL_SCHEDULED] = WQ_ADDED_SCHEDULED,
        [MODEL_SOONER] = WQ_ADDED_SOONER,
        [MODEL_LATER] = WQ_ADDED_LATER,
        [MODEL_KEPT] = WQ_ADDED_KEPT,
        [MODEL_STAYS_DEAD] = WQ_ADDED_DEAD,
    };

    return effects[effect];
}

#endif
