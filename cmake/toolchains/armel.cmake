# SPDX-License-Identifier: MIT
# Arm before version 6: 32 bits, 64-bit atomics only by libatomic.
set(CMAKE_SYSTEM_PROCESSOR armel)
set(triplet arm-linux-gnueabi)
set(qemu qemu-arm)
include("${CMAKE_CURRENT_LIST_DIR}/debian.cmake")
