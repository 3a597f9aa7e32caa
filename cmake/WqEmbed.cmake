# SPDX-License-Identifier: MIT
# How does a file become part of a program? wq_embed() adds a build step that
# runs this file as a script. It writes a C source with the bytes as the array
# <name> and their number as <name>_len.

# wq_embed(<name> <file> <header> <out> [<part>...]): generates <out> from
# <file>. <out> includes <header>, which declares the array and its length. A
# line @<part>@ of the file is replaced by the file of that name beside it.
function(wq_embed name file header out)
  cmake_path(GET file PARENT_PATH folder)
  list(TRANSFORM ARGN PREPEND "${folder}/" OUTPUT_VARIABLE parts)
  add_custom_command(OUTPUT "${out}" VERBATIM
    DEPENDS "${file}" ${parts} "${PROJECT_SOURCE_DIR}/cmake/WqEmbed.cmake"
    COMMAND "${CMAKE_COMMAND}" -D "name=${name}" -D "file=${file}"
      -D "header=${header}" -D "out=${out}" -D "parts=${parts}"
      -P "${PROJECT_SOURCE_DIR}/cmake/WqEmbed.cmake")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${file}" bytes HEX)
  foreach(part IN LISTS parts)
    get_filename_component(mark "${part}" NAME)
    string(HEX "\n@${mark}@" mark)
    file(READ "${part}" content HEX)
    string(REPLACE "${mark}" "0a${content}" bytes "${bytes}")
  endforeach()
  string(LENGTH "${bytes}" digits)
  math(EXPR length "${digits} / 2")
  # Not a string: C compilers need not support more than 4095 characters.
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "(char)0x\\1," bytes "${bytes}")
  get_filename_component(from "${file}" NAME)
  file(WRITE "${out}" "/* Made from ${from}. */
#include \"${header}\"

const char ${name}[] = {
${bytes}};
const size_t ${name}_len = ${length};
")
endif()
