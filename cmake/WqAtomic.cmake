# SPDX-License-Identifier: MIT
# Which library do 64-bit atomics need? None on most machines; libatomic on some
# 32-bit ones, such as armel and powerpc. Sets WQ_ATOMIC_LIBRARY: empty, or
# `atomic`.
include(CheckCSourceCompiles)

# Every kind of operation that the library uses.
set(source "
#include <stdatomic.h>
#include <stdint.h>
static _Atomic uint64_t word;
int main(void)
{
    uint64_t old = atomic_exchange(&word, 1);
    atomic_store(&word, old + atomic_load(&word));
    atomic_fetch_add(&word, 1);
    atomic_fetch_or(&word, 1);
    return !atomic_compare_exchange_strong(&word, &old, 2);
}")

set(WQ_ATOMIC_LIBRARY)
check_c_source_compiles("${source}" WQ_ATOMICS_NEED_NO_LIBRARY)
if(NOT WQ_ATOMICS_NEED_NO_LIBRARY)
  set(CMAKE_REQUIRED_LIBRARIES atomic)
  check_c_source_compiles("${source}" WQ_ATOMICS_NEED_LIBATOMIC)
  unset(CMAKE_REQUIRED_LIBRARIES)
  if(NOT WQ_ATOMICS_NEED_LIBATOMIC)
    message(FATAL_ERROR "wq needs 64-bit atomics: neither the compiler nor "
                        "libatomic has them")
  endif()
  set(WQ_ATOMIC_LIBRARY atomic)
endif()
