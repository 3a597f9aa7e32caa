# SPDX-License-Identifier: MIT
# How are the libraries of a store built? wq_<name> and wq_<name>_static, from
# objects that are compiled once. Called in backends/<name>.
#
# wq_add_store(<name> SOURCES <file>... LIBRARIES <target>...)
function(wq_add_store name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  add_library(wq_${name}_objects OBJECT ${arg_SOURCES})
  target_compile_definitions(wq_${name}_objects PRIVATE _GNU_SOURCE)
  target_include_directories(wq_${name}_objects PRIVATE
    "${CMAKE_CURRENT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/include"
    "${CMAKE_CURRENT_BINARY_DIR}"
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(wq_${name}_objects PRIVATE
    wq_flags Threads::Threads ${arg_LIBRARIES})
  set_target_properties(wq_${name}_objects PROPERTIES
    POSITION_INDEPENDENT_CODE ON)

  # The shared library uses functions of libwq.so that only the same release has
  # (WQ_PRIVATE in src/wq.map).
  set(map "${CMAKE_CURRENT_SOURCE_DIR}/wq-${name}.map")
  add_library(wq_${name} SHARED $<TARGET_OBJECTS:wq_${name}_objects>)
  target_link_options(wq_${name} PRIVATE "LINKER:--version-script=${map}")
  if(NOT WQ_SANITIZE) # the functions of a sanitizer are in the program
    target_link_options(wq_${name} PRIVATE "LINKER:-z,defs")
  endif()
  list(TRANSFORM arg_LIBRARIES REPLACE "(.+)" "$<BUILD_INTERFACE:\\1>"
    OUTPUT_VARIABLE private)
  target_link_libraries(wq_${name}
    PUBLIC wq PRIVATE $<BUILD_INTERFACE:wq_flags> ${private})

  set(kind STATIC)
  set(output wq-${name})
  if(WQ_TEST_SHARED)
    set(kind SHARED)
    set(output wq_${name}_inside)
  else()
    set_target_properties(wq_${name}_objects PROPERTIES
      C_VISIBILITY_PRESET hidden)
  endif()
  add_library(wq_${name}_static ${kind} $<TARGET_OBJECTS:wq_${name}_objects>)
  target_link_libraries(wq_${name}_static
    PRIVATE $<BUILD_INTERFACE:wq_flags> PUBLIC wq_static ${arg_LIBRARIES})

  set_target_properties(wq_${name} PROPERTIES OUTPUT_NAME wq-${name}
    VERSION ${PROJECT_VERSION} SOVERSION ${WQ_SOVERSION} LINK_DEPENDS "${map}")
  set_target_properties(wq_${name}_static PROPERTIES OUTPUT_NAME ${output})
  foreach(lib wq_${name} wq_${name}_static)
    target_include_directories(${lib} PUBLIC
      "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>")
    set_target_properties(${lib} PROPERTIES
      ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}"
      LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
    add_library(wq::${lib} ALIAS ${lib})
  endforeach()
endfunction()
