# SPDX-License-Identifier: MIT
# How are wq.c and wq.h made? By scripts/amalgamate.py when the build is
# configured, which a change of the script or of a source repeats.

# wq_amalgamate(<directory> <sources>): writes both files to <directory>.
function(wq_amalgamate directory sources)
  find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
  set(script "${PROJECT_SOURCE_DIR}/scripts/amalgamate.py")
  execute_process(COMMAND "${Python3_EXECUTABLE}" -B "${script}" "${directory}"
    COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB headers CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/include/wq/*.h" "${PROJECT_SOURCE_DIR}/src/*/*.h"
    "${PROJECT_SOURCE_DIR}/packaging/amalgamation/*.in")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    "${script}" ${sources} ${headers})
endfunction()
