#!/bin/sh
# SPDX-License-Identifier: MIT
# Does a program outside this tree compile, link and run with the installed
# library? The stage is not the prefix the tree was configured for: that all
# cases pass shows that an installed tree can be moved.
#
#     run.sh install STAGE BUILD   installs the tree built in BUILD to STAGE
#     run.sh CASE STAGE WORK       builds one case in WORK, and runs it
#
# Cases are the functions below. For another machine, CC and CXX are its
# compilers, CMAKE_TOOLCHAIN_FILE is for CMake, and RUN is the command that runs
# its programs here. Every compiler is held to strict warnings: a header of ours
# must not cause any.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
strict="-Wall -Wextra -Wpedantic -Werror"
: "${CC:=cc}" "${CXX:=c++}" "${RUN:=}"

# This case cannot be asked here; CI does not allow that.
skip() {
    echo "skipped: $1"
    [ "${CI:-}" = true ] && exit 1
    exit 77
}

need() {
    command -v "$1" >/dev/null || skip "no $1"
}

# What pkg-config says about wq. Only the installed wq.pc may be found.
flags() {
    PKG_CONFIG_LIBDIR=$(dirname "$(find "$stage" -name wq.pc)")
    export PKG_CONFIG_LIBDIR
    pkg-config "$@" wq
}

# Runs the program, and checks whether it loads libwq.so (`shared`) or carries
# the library inside (`static`).
run() {
    program=$1 kind=$2
    if readelf -d "$program" | grep -q 'NEEDED.*libwq\.so'; then
        found=shared
    else
        found=static
    fi
    [ "$found" = "$kind" ] || {
        echo "$program is linked $found, expected $kind"
        exit 1
    }
    $RUN "$program"
}

# Lets programs find the libwq.so of the stage, which is in no usual place.
find_stage_library() {
    LD_LIBRARY_PATH=$(dirname "$(find "$stage" -name libwq.so)")
    export LD_LIBRARY_PATH
}

# The command runs from where it is, and its papers are where they are looked for.
wq_command() {
    [ "$(echo a | $RUN "$stage/bin/wq" run -q -- echo b)" = "b a" ]
    for file in man/man1/wq.1 bash-completion/completions/wq \
        zsh/site-functions/_wq fish/vendor_completions.d/wq.fish; do
        [ -s "$stage/share/$file" ] || {
            echo "share/$file: not installed, or empty"
            exit 1
        }
    done
}

pkgconfig_c() {
    need pkg-config
    eval "set -- $(flags --cflags --libs)" # pkg-config quotes for the shell
    # shellcheck disable=SC2086 # flags are words
    $CC -std=c11 $strict "$here/consumer.c" -o c "$@"
    find_stage_library
    run ./c shared
}

pkgconfig_cxx() {
    need pkg-config
    need "$CXX"
    eval "set -- $(flags --cflags --libs)"
    # shellcheck disable=SC2086
    $CXX -std=c++17 $strict "$here/consumer.cc" -o cxx "$@"
    find_stage_library
    run ./cxx shared
}

pkgconfig_static_c() {
    need pkg-config
    eval "set -- $(flags --static --cflags --libs)"
    # shellcheck disable=SC2086
    $CC -std=c11 $strict -static "$here/consumer.c" -o c "$@"
    run ./c static
}

find_package_in() {
    cmake -S "$here/find_package" -B . -D "language=$1" \
        -D "CMAKE_PREFIX_PATH=$stage" -D CMAKE_BUILD_TYPE=Debug >/dev/null
    cmake --build . >/dev/null
    find_stage_library
    run ./shared shared
    run ./static static
}

find_package_c() {
    find_package_in C
}

find_package_cxx() {
    need "$CXX"
    find_package_in CXX
}

# A project around the source tree installs its program, and the build goes
# away before the program runs. KIND: what wq::wq is.
subproject_as() {
    kind=$1
    shift
    cmake -S "$here/subproject" -B build -D "wq_source=$here/../.." \
        -D CMAKE_BUILD_TYPE=Debug "$@" >/dev/null
    cmake --build build --parallel "${JOBS:-2}" >/dev/null
    cmake --install build --prefix "$work/installed" >/dev/null
    rm -rf build
    stage=$work/installed
    run "$stage/bin/program" "$kind"
}

subproject_static() {
    subproject_as static
    [ -z "$(find "$stage" ! -type d ! -name program)" ] || {
        echo "installed besides the program:"
        find "$stage" ! -type d ! -name program
        exit 1
    }
}

subproject_shared() {
    subproject_as shared -D BUILD_SHARED_LIBS=ON
}

case=$1 stage=$2 work=$3
if [ "$case" = install ]; then
    rm -rf "$stage"
    exec cmake --install "$work" --prefix "$stage"
fi
rm -rf "$work"
mkdir -p "$work"
cd "$work"
"$case"
