# SPDX-License-Identifier: MIT
# How does a test file become tests in CTest? wq_add_test() builds a program;
# after each build `prog --list` prints its tests, and each becomes a test of
# CTest, "<program>.<test>".

# Environment of every test: a sanitizer's report ends the program. handle_*=2:
# ASan handles crashes, although cmocka installs handlers, too.
set(WQ_TEST_ENVIRONMENT
  "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:handle_segv=2:handle_sigbus=2:handle_sigfpe=2"
  "LSAN_OPTIONS=suppressions=${CMAKE_CURRENT_LIST_DIR}/../tests/support/lsan.supp:print_suppressions=0"
  "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:handle_segv=2"
  "UBSAN_OPTIONS=print_stacktrace=1"
)
# A test that takes longer fails.
set(WQ_TEST_TIMEOUT 120 CACHE STRING "Seconds that a test may take")
mark_as_advanced(WQ_TEST_TIMEOUT)

# The exit status of a skipped test.
set(WQ_TEST_SKIP 77)

# wq_add_test(<name> SOURCES <file>... LABELS <label>...
#             [INCLUDES <dir>...] [TIMEOUT <seconds>])
function(wq_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LABELS;INCLUDES")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT ${WQ_TEST_TIMEOUT})
  endif()
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    math(EXPR arg_TIMEOUT "5 * ${arg_TIMEOUT}") # emulators are slow
  endif()

  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${arg_INCLUDES})
  target_link_libraries(${name} PRIVATE wq_test_support wq_static wq_flags)

  # CTest reads `found`, which exists once the program was built.
  set(found "${CMAKE_CURRENT_BINARY_DIR}/${name}.tests.cmake")
  set(lookup "${CMAKE_CURRENT_BINARY_DIR}/${name}.lookup.cmake")
  add_custom_command(TARGET ${name} POST_BUILD VERBATIM
    BYPRODUCTS "${found}"
    COMMAND "${CMAKE_COMMAND}"
      -D "program=$<TARGET_FILE:${name}>" -D "name=${name}" -D "out=${found}"
      -D "emulator=${CMAKE_CROSSCOMPILING_EMULATOR}"
      -D "labels=${arg_LABELS}" -D "timeout=${arg_TIMEOUT}"
      -D "skip=${WQ_TEST_SKIP}" -D "environment=${WQ_TEST_ENVIRONMENT}"
      -P "${PROJECT_SOURCE_DIR}/cmake/WqTestList.cmake")
  file(WRITE "${lookup}" "
if(EXISTS \"${found}\")
  include(\"${found}\")
else()
  add_test(${name}.is_not_built \"${name}\")
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${lookup}")
endfunction()

# wq_add_script_test(<name> LABELS <label>... COMMAND <script> <arg>...)
function(wq_add_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "COMMAND;LABELS")
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES
    LABELS "${arg_LABELS}" TIMEOUT 120 SKIP_RETURN_CODE ${WQ_TEST_SKIP})
endfunction()

# wq_need_python(<what>)
#
# Finds python3 for <what>; without it, ends the file that calls this.
macro(wq_need_python what)
  find_package(Python3 COMPONENTS Interpreter)
  if(NOT Python3_Interpreter_FOUND)
    if("$ENV{CI}" STREQUAL "true")
      message(FATAL_ERROR "${what} need python3, and CI=true")
    endif()
    message(STATUS "${what} skipped: python3 not found")
    return()
  endif()
endmacro()

# wq_add_python_tests(<kind> [SUFFIX <text>] SOURCES <file>...
#                     ENVIRONMENT <NAME=value>...)
#
# Each file, test_<name>.py, is the test <kind>.<name><text>.
function(wq_add_python_tests kind)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SUFFIX" "SOURCES;ENVIRONMENT")
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(GET source STEM name)
    string(REGEX REPLACE "^test_" "${kind}." name ${name}${arg_SUFFIX})
    wq_add_script_test(${name} LABELS ${kind}
      COMMAND "${Python3_EXECUTABLE}" -B "${source}")
    set_property(TEST ${name} PROPERTY ENVIRONMENT
      ${arg_ENVIRONMENT} ${WQ_TEST_ENVIRONMENT})
  endforeach()
endfunction()
