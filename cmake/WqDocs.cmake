# SPDX-License-Identifier: MIT
# Which documents are installed? The manual pages of section 3 and 7, which
# scripts/docs/man.py makes from the headers while the library is built; the
# documents themselves; and the site of `make docs`, if it was made. All are the
# component `doc`.
#
# Without Python the pages are those in docs/man/man3 and docs/man/man7, which a
# source package contains (`scripts/docs/man.py docs/man` makes them).
set(man_source "${PROJECT_SOURCE_DIR}/docs/man")
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_Interpreter_FOUND)
  set(man "${PROJECT_BINARY_DIR}/man")
  file(GLOB man_from CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/scripts/docs/*.py"
    "${PROJECT_SOURCE_DIR}/include/wq/*.h"
    "${PROJECT_SOURCE_DIR}/backends/*/include/wq/*.h")
  add_custom_command(OUTPUT "${man}/made" VERBATIM
    COMMAND "${Python3_EXECUTABLE}" -B
      "${PROJECT_SOURCE_DIR}/scripts/docs/man.py" "${man}"
    COMMAND "${CMAKE_COMMAND}" -E touch "${man}/made"
    DEPENDS ${man_from} "${man_source}/wq.1"
      "${PROJECT_SOURCE_DIR}/docs/semantics.md")
  add_custom_target(wq_man ALL DEPENDS "${man}/made")
elseif(IS_DIRECTORY "${man_source}/man3")
  set(man "${man_source}")
else()
  set(man)
  message(STATUS "manual pages of the library left out: python3 not found")
endif()
if(man)
  install(DIRECTORY "${man}/man3" "${man}/man7"
          DESTINATION "${CMAKE_INSTALL_MANDIR}" COMPONENT doc)
endif()

# As in the source tree, so that links between the documents work.
set(doc "${CMAKE_INSTALL_DOCDIR}")
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md MAINTAINERS
        DESTINATION "${doc}" COMPONENT doc)
install(DIRECTORY docs DESTINATION "${doc}" COMPONENT doc
        PATTERN man EXCLUDE)
install(DIRECTORY examples DESTINATION "${doc}" COMPONENT doc
        REGEX "/examples/CMakeLists\\.txt$" EXCLUDE)
install(FILES packaging/systemd/wq-work@.service
              packaging/systemd/wq-work-redis@.service
        DESTINATION "${doc}/packaging/systemd" COMPONENT doc)
set(WQ_SITE "${PROJECT_SOURCE_DIR}/build/docs" CACHE PATH
    "The site of `make docs`, which is installed if it is there")
mark_as_advanced(WQ_SITE)
install(DIRECTORY "${WQ_SITE}/" DESTINATION "${doc}/html" COMPONENT doc
        OPTIONAL)
