# SPDX-License-Identifier: MIT
# How does Debian's cross compiler build for another machine, and how do its
# programs run on this one? A file in this directory sets `triplet` (the
# compiler's name for the machine) and `qemu` (the emulator's name), then
# includes this file.
#
# Debian installs the machine's C library in /usr/<triplet>.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)

set(CMAKE_FIND_ROOT_PATH /usr/${triplet})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH) # CMAKE_PREFIX_PATH as it is
# pkg-config must not find the libraries of this machine.
set(ENV{PKG_CONFIG_LIBDIR} /usr/${triplet}/lib/pkgconfig)

set(CMAKE_CROSSCOMPILING_EMULATOR ${qemu} -L /usr/${triplet})
