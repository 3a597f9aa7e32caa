# SPDX-License-Identifier: MIT
# Which release is this? Read from the header, the only place it is written.

# Set `out` to MAJOR.MINOR.PATCH as `header` defines them, and `soversion` to
# what the header calls WQ_SOVERSION: MAJOR, or 0.MINOR.
function(wq_read_version header out soversion)
  cmake_path(ABSOLUTE_PATH header)
  file(READ "${header}" text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
  set(numbers)
  foreach(part MAJOR MINOR PATCH)
    if(NOT text MATCHES "#define WQ_VERSION_${part} ([0-9]+)")
      message(FATAL_ERROR "${header} does not define WQ_VERSION_${part}")
    endif()
    list(APPEND numbers ${CMAKE_MATCH_1})
  endforeach()
  list(JOIN numbers "." version)
  set(${out} ${version} PARENT_SCOPE)
  string(REGEX MATCH "^(0\\.)?[0-9]+" version ${version})
  set(${soversion} ${version} PARENT_SCOPE)
endfunction()
