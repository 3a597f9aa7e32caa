/* SPDX-License-Identifier: MIT */
/* secret.c: secrets derived from one seed per thread; see secret.h. */
#include "limit/secret.h"

#include "port/fork.h"
#include "port/random.h"

struct source {
    uint64_t seed[2];
    uint64_t used;  /* numbers that were derived from it; 0: there is no seed */
    unsigned forks; /* of the process that drew it (port/fork.h) */
};

static _Thread_local struct source source;

static uint64_t
derive(void)
{
    const uint64_t number = source.used++;

    return wq__siphash13(source.seed[0], source.seed[1], &number,
                         sizeof number);
}

bool
wq__secret_new(struct wq__hash_key *secret)
{
    const unsigned forks = wq__fork_begin();

    if (!source.used || source.forks != forks) {
        uint64_t seed[2];
        if (wq__random(seed, sizeof seed))
            return false;
        source.seed[0] = seed[0];
        source.seed[1] = seed[1];
        source.used = 1;
        source.forks = forks;
    }
    uint64_t random[2];
    random[0] = derive();
    random[1] = derive();
    *secret = wq__hash_key_of(random);
    return true;
}
