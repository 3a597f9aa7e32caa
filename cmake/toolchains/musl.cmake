# SPDX-License-Identifier: MIT
# This machine with musl instead of glibc, by Debian's musl-gcc, which does not
# find the kernel's headers: scripts/platforms.sh links to them.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER musl-gcc)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/musl/pkgconfig)
