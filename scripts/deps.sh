#!/bin/sh
# SPDX-License-Identifier: MIT
# Is everything installed that a target needs? Installs what is missing, with
# apt-get.
#
#     deps.sh [GROUP...]    groups of the table below; none: all but
#                          qemu, musl, e2e and deb, which are large
#
#   DEPS=no    install nothing; report what is missing
#
# If nothing is missing it prints nothing, changes nothing and needs no root
# rights. Otherwise it first prints what it is about to install, and what for. A
# required package that cannot be installed is an error; an optional
# one is reported and left out, but with CI=true it is an error, too.
set -eu

# How to find out whether a package is installed:
#   cmd     a command         header  the compiler finds it
#   module  for pkg-config    file    exists
table='
build  required  gcc                 cmd cc
build  required  libc6-dev           header stdio.h
build  required  cmake               cmd cmake
build  optional  ninja-build         cmd ninja
build  optional  pkgconf             cmd pkg-config
build  optional  libmicrohttpd-dev   module libmicrohttpd
build  optional  libsqlite3-dev      module sqlite3
build  optional  libhiredis-dev      module hiredis
build  optional  libssl-dev          module openssl
build  optional  valgrind            header valgrind/drd.h
build  optional  python3             cmd python3
test   required  libcmocka-dev       header cmocka.h
test   required  pkgconf             cmd pkg-config
test   optional  g++                 cmd c++
test   optional  strace              cmd strace
test   optional  valgrind            cmd valgrind
test   optional  prometheus          cmd promtool
test   optional  libuv1-dev          module libuv
test   optional  libevent-dev        module libevent_core
test   optional  libglib2.0-dev      module glib-2.0
test   optional  libmicrohttpd-dev   module libmicrohttpd
test   optional  libcurl4-openssl-dev  module libcurl
test   optional  libjansson-dev      module jansson
test   optional  openssl             cmd openssl
test   optional  python3             cmd python3
test   optional  sqlite3             cmd sqlite3
test   optional  redis-server        cmd redis-server
test   optional  iproute2            cmd ip
test   optional  parallel            cmd parallel
test   optional  chromium            cmd chromium
test   optional  chromium-driver     cmd chromedriver
test   optional  inotify-tools       cmd inotifywait
test   optional  systemd             cmd systemd-analyze
test   optional  mandoc              cmd mandoc
test   optional  groff-base          cmd groff
test   optional  zsh                 cmd zsh
test   optional  fish                cmd fish
docs   required  python3             cmd python3
docs   required  cmark-gfm           cmd cmark-gfm
docs   required  mandoc              cmd mandoc
test   optional  cmark-gfm           cmd cmark-gfm
test   optional  abigail-tools       cmd abidiff
test   optional  git                 cmd git
test   optional  xz-utils            cmd xz
dist   required  git                 cmd git
dist   required  xz-utils            cmd xz
dist   required  python3             cmd python3
deb    required  dpkg-dev            cmd dpkg-source
deb    required  lintian             cmd lintian
deb    optional  mmdebstrap          cmd mmdebstrap
deb    optional  debhelper           cmd dh
quick  required  gcc                 cmd cc
quick  required  libc6-dev           header stdio.h
quick  required  cmake               cmd cmake
quick  required  libcmocka-dev       header cmocka.h
bench  optional  parallel            cmd parallel
lint   optional  clang-format        cmd clang-format
lint   optional  clang-tidy          cmd clang-tidy
lint   optional  shellcheck          cmd shellcheck
clang  optional  clang               cmd clang
fuzz   optional  clang               cmd clang
fuzz   optional  libclang-rt-dev     clang_lib fuzzer
protocol optional spin               cmd spin
qemu   optional  qemu-user           cmd qemu-s390x
qemu   optional  gcc-i686-linux-gnu     cmd i686-linux-gnu-gcc
qemu   optional  libc6-dev-i386-cross   file /usr/i686-linux-gnu/include/stdio.h
qemu   optional  gcc-aarch64-linux-gnu  cmd aarch64-linux-gnu-gcc
qemu   optional  libc6-dev-arm64-cross  file /usr/aarch64-linux-gnu/include/stdio.h
qemu   optional  gcc-s390x-linux-gnu    cmd s390x-linux-gnu-gcc
qemu   optional  libc6-dev-s390x-cross  file /usr/s390x-linux-gnu/include/stdio.h
qemu   optional  gcc-arm-linux-gnueabi  cmd arm-linux-gnueabi-gcc
qemu   optional  g++-arm-linux-gnueabi  cmd arm-linux-gnueabi-g++
qemu   optional  libc6-dev-armel-cross  file /usr/arm-linux-gnueabi/include/stdio.h
qemu   optional  xz-utils            cmd xz
musl   optional  musl-tools          cmd musl-gcc
musl   optional  xz-utils            cmd xz
e2e    required  etcd-server         cmd etcd
e2e    required  libcurl4-openssl-dev  module libcurl
e2e    required  libjansson-dev      module jansson
e2e    required  libmicrohttpd-dev   module libmicrohttpd
e2e    required  pkgconf             cmd pkg-config
e2e    required  python3             cmd python3
bench  optional  pkgconf             cmd pkg-config
bench  optional  libglib2.0-dev      module glib-2.0
bench  optional  gnuplot-nox         cmd gnuplot
bench  optional  redis-server        cmd redis-server
bench  optional  beanstalkd          cmd beanstalkd
'

cmd() {
    command -v "$1" >/dev/null
}

file() {
    [ -e "$1" ]
}

header() {
    echo "#include <$1>" | cc -E - >/dev/null 2>&1
}

module() {
    pkg-config --exists "$1" 2>/dev/null
}

# A runtime library of clang, which is in a package of its own.
clang_lib() {
    [ -e "$(clang -print-file-name="libclang_rt.$1-$(uname -m).a" 2>&1)" ]
}

# missing GROUP...: prints the packages that are missing, as "required NAME
# GROUP".
missing() {
    echo "$table" | while read -r group need package probe what; do
        case " $* " in *" $group "*) ;; *) continue ;; esac
        "$probe" "$what" || echo "$need $package $group"
    done | sort -u
}

# names NEED: prints the names among $lacking whose need matches.
names() {
    echo "$lacking" | awk -v need="$1" \
        '$1 ~ need && !seen[$2]++ { printf "%s%s", sep, $2; sep = " " }'
}

# reasons: prints each missing package, and what it is for.
reasons() {
    echo "$lacking" | awk '
        !($2 in groups) { order[++n] = $2 }
        { target = " " $3
          if ($3 == "build") target = ""
          if ($3 == "e2e") target = " e2e-kubernetes"
          if ($3 ~ /^(clang|musl|qemu|quick)$/) target = " test-" $3
          groups[$2] = groups[$2] " make" target ","
          if ($1 == "required") required[$2] = " (required)" }
        END {
            for (i = 1; i <= n; i++) {
                sub(/,$/, "", groups[order[i]])
                printf "  %-22s for%s%s\n", order[i], groups[order[i]],
                    required[order[i]]
            }
        }'
}

# not_installed WHY: prints what is missing.
not_installed() {
    echo "deps: missing, and not installed because $1:"
    reasons
}

install() {
    if [ "${DEPS:-yes}" = no ]; then
        not_installed "of DEPS=no"
        return 1
    fi
    as_root=
    [ "$(id -u)" -eq 0 ] || as_root=sudo
    if ! cmd apt-get; then
        not_installed "there is no apt-get (Debian's names; see docs/dependencies.md)"
        return 1
    fi
    if [ "$as_root" ] && ! cmd sudo; then
        not_installed "there is no sudo"
        return 1
    fi
    echo "deps: about to install with apt-get (DEPS=no: install nothing):"
    reasons
    {
        $as_root apt-get update &&
            $as_root env DEBIAN_FRONTEND=noninteractive \
                apt-get install --yes --no-install-recommends "$@"
    } >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
}

case ${DEPS:-yes} in
yes | no) ;;
*)
    echo "deps: DEPS is '$DEPS'; use yes or no" >&2
    exit 2
    ;;
esac
[ $# -gt 0 ] || set -- build test lint clang fuzz protocol bench
lacking=$(missing "$@")
[ "$lacking" ] || exit 0

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2046 # names are words
install $(names .) || true

lacking=$(missing "$@")
required=$(names required)
optional=$(names optional)
if [ "$required" ]; then
    echo "deps: please install: $required" >&2
    exit 1
fi
if [ "$optional" ]; then
    if [ "${CI:-}" = true ]; then
        echo "deps: missing, which is an error with CI=true: $optional" >&2
        exit 1
    fi
    echo "deps: continuing without $optional"
fi
