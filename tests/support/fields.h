/* SPDX-License-Identifier: MIT */
/* fields.h: which fields of two structs differ?
 *
 *     static const struct field fields[] = {FIELD(wq_stats, ready),
 *                                           FIELD(wq_stats, held)};
 *
 *     assert_same_fields(fields, &a, &b);
 *
 * For structs that cannot be compared as a whole: the bytes between their fields
 * are of no meaning. A failure names the field and shows both values.
 */
#ifndef WQ_TEST_FIELDS_H
#define WQ_TEST_FIELDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A whole number, of 1, 4 or 8 bytes. */
struct field {
    const char *name;
    size_t      at, size;
};

#define FIELD(type, member)                                                    \
    {                                                                          \
        .name = #type "." #member, .at = offsetof(type, member),               \
        .size = sizeof(((type *)NULL)->member)                                 \
    }

static inline long long
field_value(const struct field *field, const void *of)
{
    const char *at = (const char *)of + field->at;
    int32_t     four;
    int64_t     eight;

    if (field->size == 1)
        return *at;
    if (field->size == sizeof four) {
        memcpy(&four, at, sizeof four);
        return four;
    }
    memcpy(&eight, at, sizeof eight);
    return eight;
}

/* `fields` is an array. */
#define assert_same_fields(fields, a, b)                                       \
    do {                                                                       \
        for (size_t i_ = 0; i_ < sizeof(fields) / sizeof *(fields); i_++) {    \
            const long long a_ = field_value(&(fields)[i_], (a));              \
            const long long b_ = field_value(&(fields)[i_], (b));              \
            if (a_ != b_)                                                      \
                fail_msg("%s: %lld != %lld", (fields)[i_].name, a_, b_);       \
        }                                                                      \
    } while (0)

#endif
