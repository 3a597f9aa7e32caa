# SPDX-License-Identifier: MIT
# 32-bit x86. A 64-bit x86 kernel usually runs the programs directly, with their
# own loader; otherwise qemu runs them.
set(CMAKE_SYSTEM_PROCESSOR i386)
set(triplet i686-linux-gnu)
set(qemu qemu-i386)
include("${CMAKE_CURRENT_LIST_DIR}/debian.cmake")

set(loader /usr/${triplet}/lib/ld-linux.so.2)
execute_process(COMMAND ${loader} --version
  RESULT_VARIABLE loader_result OUTPUT_QUIET ERROR_QUIET)
if(loader_result EQUAL 0)
  set(CMAKE_CROSSCOMPILING_EMULATOR
    ${loader} --library-path /usr/${triplet}/lib)
endif()
