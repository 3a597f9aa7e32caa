/* SPDX-License-Identifier: MIT */
/* version.h: the version of the library. It is written here and nowhere else.
 *
 * The build reads these three numbers for the SONAME (the major version), for
 * wq.pc and for the CMake package. Semantic versioning: the major version
 * changes when a program built against an older header could misbehave.
 */
#ifndef WQ_VERSION_H
#define WQ_VERSION_H

/* The version of the header: major, minor and patch number. */
#define WQ_VERSION_MAJOR 0
#define WQ_VERSION_MINOR 1
#define WQ_VERSION_PATCH 0

/* A version as one number: a later version is a larger number.
 * WQ_VERSION is the version of the header; wq_version() returns that of the
 * linked library. */
#define WQ_VERSION_ENCODE(major, minor, patch)                                 \
    (1000000 * (major) + 1000 * (minor) + (patch))
#define WQ_VERSION                                                             \
    WQ_VERSION_ENCODE(WQ_VERSION_MAJOR, WQ_VERSION_MINOR, WQ_VERSION_PATCH)

#endif
