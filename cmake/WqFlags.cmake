# SPDX-License-Identifier: MIT
# With which flags is our own code compiled? Every target links to `wq_flags`,
# which users of the library do not see.
add_library(wq_flags INTERFACE)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Plain POSIX; only src/port uses more (src/CMakeLists.txt).
target_compile_definitions(wq_flags INTERFACE
  _POSIX_C_SOURCE=200809L
  WQ_DEBUG=$<BOOL:${WQ_DEBUG}>
  $<$<BOOL:${WQ_PORT_POSIX}>:WQ_PORT_POSIX>)

target_compile_options(wq_flags INTERFACE
  -Wall -Wextra -Wpedantic
  -Wshadow -Wconversion
  -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
  -Wpointer-arith -Wwrite-strings
  -Wundef -Wvla -Wformat=2 -Wimplicit-fallthrough
  $<$<BOOL:${WQ_WERROR}>:-Werror>
  $<$<C_COMPILER_ID:GNU>:-Wlogical-op -Wduplicated-cond -Wduplicated-branches>
)

# Limiters compute with doubles, and every step rounds once (T-04, T-05, L-05).
# The x87, where 32-bit x86 computes by default, rounds twice; SSE2 does not.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
check_c_source_compiles("
#include <float.h>
#if FLT_EVAL_METHOD == 2
#error doubles are computed as long doubles
#endif
int main(void) { return 0; }" WQ_DOUBLES_ROUND_ONCE)
check_c_compiler_flag(-msse2 WQ_HAVE_SSE2)
if(WQ_HAVE_SSE2 AND NOT WQ_DOUBLES_ROUND_ONCE)
  target_compile_options(wq_flags INTERFACE -msse2 -mfpmath=sse)
endif()

# A report ends the program: a test that goes on could hide it. -O1 keeps stack
# traces readable and the tests fast.
if(WQ_SANITIZE)
  set(sanitize -fsanitize=${WQ_SANITIZE} -fno-sanitize-recover=all)
  target_compile_options(wq_flags INTERFACE
    ${sanitize} -O1 -g -fno-omit-frame-pointer)
  target_link_options(wq_flags INTERFACE ${sanitize})
endif()

# libFuzzer records which branches the library takes; only the fuzz targets get
# its main() (fuzz/CMakeLists.txt).
if(WQ_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "WQ_FUZZ needs clang: -DCMAKE_C_COMPILER=clang")
  endif()
  target_compile_options(wq_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(WQ_COVERAGE)
  target_compile_options(wq_flags INTERFACE --coverage -O0 -fprofile-update=atomic)
  target_link_options(wq_flags INTERFACE --coverage)
endif()
