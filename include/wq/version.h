/* SPDX-License-Identifier: MIT */
/* version.h: which release is this? The only place a version is written.
 *
 * The build reads these three numbers for the SONAME (its major), for wq.pc
 * and for the CMake package. Semantic versioning: the major changes when a
 * program built against an older header could misbehave.
 */
#ifndef WQ_VERSION_H
#define WQ_VERSION_H

#define WQ_VERSION_MAJOR 0
#define WQ_VERSION_MINOR 1
#define WQ_VERSION_PATCH 0

/* A version as one number that compares the way versions do. */
#define WQ_VERSION_ENCODE(major, minor, patch)                                 \
    (1000000 * (major) + 1000 * (minor) + (patch))
#define WQ_VERSION                                                             \
    WQ_VERSION_ENCODE(WQ_VERSION_MAJOR, WQ_VERSION_MINOR, WQ_VERSION_PATCH)

#endif
