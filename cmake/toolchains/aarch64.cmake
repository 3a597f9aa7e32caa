# SPDX-License-Identifier: MIT
# 64-bit Arm: weakly ordered memory, no TSC.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(triplet aarch64-linux-gnu)
set(qemu qemu-aarch64)
include("${CMAKE_CURRENT_LIST_DIR}/debian.cmake")
