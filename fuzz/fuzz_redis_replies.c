/* SPDX-License-Identifier: MIT */
/* fuzz_redis_replies.c: can a server harm a handle by what it answers?
 *
 *     byte     number of verbs; 128: INFO is answered by the bytes, too
 *     bytes    the verbs
 *     rest     what the server answers (redis_net.h)
 *
 * Every verb may fail; none may crash, leak, or use what it does not own.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <wq/inspect.h>
#include <wq/limiter.h>
#include <wq/redis.h>

#include "fuzz.h"
#include "redis_net.h"

enum { VERBS_MAX = 16, ITEMS_MAX = 16 };

static struct {
    wq_queue *q;
    wq_item  *items[ITEMS_MAX];
    size_t    n;
} f;

static void
ignore_text(void *ctx, const char *text)
{
    (void)ctx, (void)text;
}

static bool
ignore_key(void *ctx, wq_key key, const wq_key_info *info)
{
    (void)ctx, (void)info;
    return key.len > 0;
}

static wq_err
add(uint8_t what)
{
    static const char *const names[] = {"a", "b", "c"};
    const wq_key             keys[] = {wq_str("a"), wq_str("b"), wq_str("c")};
    const wq_add_options     how = {
            .size = sizeof how,
            .priority = what & 3,
            .after_ns = what & 4 ? WQ_MS(5) : 0,
            .rate_limited = what & 8,
            .debounce_ns = (what & 12) == 0 && what & 16 ? WQ_MS(2) : 0,
            .throttle_ns = (what & 12) == 0 && what & 32 ? WQ_MS(2) : 0,
    };

    return what & 64 ? wq_add_with(f.q, &how, keys, 3)
                     : wq_add_one_str(f.q, names[what % 3], &how);
}

static wq_err
get(size_t most)
{
    size_t n = 0;

    if (most > ITEMS_MAX - f.n)
        most = ITEMS_MAX - f.n;
    const wq_err err =
        most ? wq_get_many(f.q, f.items + f.n, most, 0, &n) : WQ_OK;
    if (!err)
        f.n += n;
    return err;
}

/* An item stays if it is still on loan. */
static wq_err
finish(wq_result result)
{
    if (!f.n)
        return WQ_OK;
    const wq_err err = wq_finish(f.q, f.items[f.n - 1], result);
    if (err != WQ_EIO && err != WQ_EAWAY && err != WQ_ENOMEM)
        f.n--;
    return err;
}

static wq_err
look(uint8_t what)
{
    wq_stats    stats = {.size = sizeof stats};
    wq_key_info info = {.size = sizeof info};
    wq_depth    depths[4];
    size_t      n = 0;

    switch (what % 7) {
    case 0:
        return wq_read_stats(f.q, &stats);
    case 1:
        return wq_read_depths(f.q, depths, 4, &n);
    case 2:
        return wq_each(f.q, 0, ignore_key, NULL);
    case 3:
        return wq_check(f.q, ignore_text, NULL);
    case 4:
        return wq_read_key(f.q, wq_str("a"), &info);
    case 5:
        (void)wq_num_requeues(f.q, wq_str("a"));
        return WQ_OK;
    default:
        (void)wq_fd(f.q);
        return WQ_OK;
    }
}

static wq_err
call(uint8_t verb)
{
    switch (verb >> 4 & 7) {
    case 0:
    case 1:
        return add((uint8_t)(verb * 37)); /* all bits */
    case 2:
        return get(1 + verb % 8);
    case 3:
        return finish(verb % 2 ? wq_result_done() : wq_result_retry());
    case 4:
        return finish(verb % 2 ? wq_result_bury() : wq_result_back());
    case 5:
        return verb % 3 == 0   ? wq_remove(f.q, wq_str("a"))
               : verb % 3 == 1 ? wq_revive(f.q, wq_str("b"))
                               : wq_forget(f.q, wq_str("c"));
    case 6:
        return wq_renew(f.q);
    default:
        return look(verb);
    }
}

/* Old releases of hiredis allocate as many elements as a list says it has. */
static bool
has_huge_list(const uint8_t *data, size_t len)
{
    size_t digits = 0;

    for (size_t i = 0; i < len && digits < 8; i++)
        digits = data[i] == '*'                               ? 1
                 : digits && data[i] >= '0' && data[i] <= '9' ? digits + 1
                                                              : 0;
    return digits == 8;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const size_t verbs = len ? data[0] % (VERBS_MAX + 1) : 0;
    char         url[200];

    if (len < 1 + verbs || has_huge_list(data, len))
        return 0;
    redis_net = (struct redis_net){
        .at = data + 1 + verbs, .end = data + len, .info = data[0] & 128};
    (void)snprintf(url, sizeof url, "redis+unix://%s?queue=fuzz",
                   redis_net_socket() ? redis_net_socket() : "/nowhere");
    f.n = 0;
    if (wq_redis_open(
            url,
            WQ_REDIS_OPTIONS(.lease_ns = WQ_SECONDS(60), .manual_renew = true),
            WQ_CONFIG(.limiter = wq_limiter_exponential(WQ_MS(1), WQ_MS(5))),
            &f.q))
        return 0;
    for (size_t i = 0; i < verbs; i++)
        if (call(data[1 + i]))
            (void)wq_last_error();
    wq_destroy(f.q);
    return 0;
}
