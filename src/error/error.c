/* SPDX-License-Identifier: MIT */
/* error.c: what are the name and the message of an error? */
#include <wq/wq.h>

const char *
wq_strerror(wq_err err)
{
    switch (err) {
#define MESSAGE(name, number, message)                                         \
    case name:                                                                 \
        return message;
        WQ_ERRORS(MESSAGE)
#undef MESSAGE
    }
    return "unknown error";
}

const char *
wq_err_name(wq_err err)
{
    switch (err) {
#define NAME(name, number, message)                                            \
    case name:                                                                 \
        return #name;
        WQ_ERRORS(NAME)
#undef NAME
    }
    return "WQ_EUNKNOWN";
}

int
wq_version(void)
{
    return WQ_VERSION;
}
