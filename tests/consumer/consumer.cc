/* SPDX-License-Identifier: MIT */
/* consumer.cc: can a C++ program outside this tree use the installed library?
 */
#include <wq/backend.h>
#include <wq/version.h>
#include <wq/wq.h>

#include <iostream>
#include <string>

static void
check(const char *step, wq_err err)
{
    if (err != WQ_OK)
        throw std::string(step) + ": " + wq_strerror(err);
}

static void
one_key()
{
    wq_config config = {};
    config.size = sizeof config;

    wq_queue *q = nullptr;
    check("create", wq_create(&config, &q));
    check("add", wq_add_str(q, "default/hello"));

    wq_item *item = nullptr;
    check("get", wq_get(q, &item));
    const std::string key(static_cast<const char *>(item->key.data),
                          item->key.len);
    if (key != "default/hello")
        throw "another key: " + key;
    check("done", wq_done(q, item));

    static_assert(WQ_MS(1500) == WQ_SECONDS(3) / 2, "constant expressions");
    check("add after", wq_add_after_str(q, "later", WQ_SECONDS(3600)));
    check("cancel", wq_cancel_after_str(q, "later"));
    check("add bytes", wq_add(q, wq_bytes(key.data(), key.size())));
    check("remove", wq_remove_str(q, "default/hello"));
    wq_destroy(q);
}

int
main()
try {
    if (wq_version() != WQ_VERSION)
        throw std::string("the header is not the library's");
    one_key();
    return 0;
} catch (const std::string &why) {
    std::cerr << why << '\n';
    return 1;
}
