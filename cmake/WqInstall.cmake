# SPDX-License-Identifier: MIT
# What is installed? The headers, both libraries, those of the stores that were
# built, and the files for pkg-config and find_package(wq). The installed tree
# can be moved as a whole.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/wq")
set(pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(DIRECTORY include/wq TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE TYPE DOC)
install(TARGETS wq wq_static EXPORT wqTargets
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

# A store is a component: find_package(wq COMPONENTS sqlite).
set(WQ_COMPONENTS)
foreach(store Sqlite Redis)
  string(TOLOWER ${store} name)
  if(NOT TARGET wq_${name})
    continue()
  endif()
  list(APPEND WQ_COMPONENTS ${name})
  install(DIRECTORY backends/${name}/include/wq TYPE INCLUDE
          FILES_MATCHING PATTERN "*.h")
  install(TARGETS wq_${name} wq_${name}_static EXPORT wq${store}Targets
          INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT wq${store}Targets NAMESPACE wq:: DESTINATION "${package_dir}")
endforeach()

# find_package(wq)
install(EXPORT wqTargets NAMESPACE wq:: DESTINATION "${package_dir}")
configure_package_config_file(packaging/wqConfig.cmake.in wqConfig.cmake
  INSTALL_DESTINATION "${package_dir}" NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor release may be incompatible; from then on only a major one.
set(promise SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(promise SameMinorVersion)
endif()
write_basic_package_version_file(
  "${CMAKE_CURRENT_BINARY_DIR}/wqConfigVersion.cmake" COMPATIBILITY ${promise})
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/wqConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/wqConfigVersion.cmake"
        DESTINATION "${package_dir}")

# pkg-config: the prefix is relative to the directory of wq.pc.
cmake_path(ABSOLUTE_PATH pkgconfig_dir BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}"
           NORMALIZE OUTPUT_VARIABLE pkgconfig_full_dir)
file(RELATIVE_PATH WQ_PC_TO_PREFIX
     "${pkgconfig_full_dir}" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" WQ_PC_TO_PREFIX "${WQ_PC_TO_PREFIX}")
foreach(kind INCLUDE LIB)
  set(WQ_PC_${kind}DIR "${CMAKE_INSTALL_${kind}DIR}")
  cmake_path(ABSOLUTE_PATH WQ_PC_${kind}DIR BASE_DIRECTORY "\${prefix}")
endforeach()
set(WQ_PC_LIBRARIES)
if(WQ_ATOMIC_LIBRARY)
  set(WQ_PC_LIBRARIES " -l${WQ_ATOMIC_LIBRARY}")
endif()
foreach(lib IN LISTS CMAKE_DL_LIBS)
  string(APPEND WQ_PC_LIBRARIES " -l${lib}")
endforeach()
configure_file(packaging/wq.pc.in wq.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/wq.pc" DESTINATION "${pkgconfig_dir}")
foreach(store IN LISTS WQ_COMPONENTS)
  configure_file(packaging/wq-${store}.pc.in wq-${store}.pc @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/wq-${store}.pc"
          DESTINATION "${pkgconfig_dir}")
endforeach()
