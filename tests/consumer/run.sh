#!/bin/sh
# SPDX-License-Identifier: MIT
# Does a program outside this tree compile, link and run with the installed
# library? STAGE is not the prefix that the tree was configured for, so that the
# cases also show that an installed tree can be moved.
#
#     run.sh install STAGE BUILD   installs the tree built in BUILD to STAGE
#     run.sh CASE STAGE WORK       builds one case in WORK, and runs it
#
# Cases are the functions below. For another machine, CC and CXX are its
# compilers, CMAKE_TOOLCHAIN_FILE is for CMake, and RUN is the command that runs
# its programs here. Warnings are errors: the headers must not cause any.
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"

here=$(cd "$(dirname "$0")" && pwd)
strict="-Wall -Wextra -Wpedantic -Werror"
: "${CC:=cc}" "${CXX:=c++}" "${RUN:=}"

# Prints what pkg-config reports about the installed wq.pc, and no other.
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

# Lets programs find the libwq.so of the stage.
find_stage_library() {
    LD_LIBRARY_PATH=$(dirname "$(find "$stage" -name libwq.so)")
    export LD_LIBRARY_PATH
}

# The installed command runs, and its manual and completions are installed.
wq_command() {
    [ "$(echo a | $RUN "$stage/bin/wq" run -q -- echo b)" = "b a" ]
    for file in man/man1/wq.1 bash-completion/completions/wq \
        zsh/site-functions/_wq fish/vendor_completions.d/wq.fish; do
        [ -s "$stage/share/$file" ] || {
            echo "share/$file: missing or empty"
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

# What README.md tells a reader to type, with another place of installation.
readme() {
    need pkg-config
    cp "$here/../../examples/hello.c" .
    PKG_CONFIG_PATH=$(dirname "$(find "$stage" -name wq.pc)")
    export PKG_CONFIG_PATH
    find_stage_library
    # shellcheck disable=SC2046 # flags are words
    {
        # begin: readme
        cc hello.c $(pkg-config --cflags --libs wq) -o hello
        ./hello
        # end: readme
    } >printed
    printf 'default/%s\n' nginx redis nginx | diff - printed
}

# What docs/guide/recipes.md tells a reader to type.
thread_sanitizer() {
    need pkg-config
    need setarch
    cp "$here/../../examples/recipe_idle.c" program.c
    PKG_CONFIG_PATH=$(dirname "$(find "$stage" -name wq.pc)")
    export PKG_CONFIG_PATH
    find_stage_library
    # shellcheck disable=SC2046 # flags are words
    {
        # begin: tsan
        cc -g -fsanitize=thread program.c $(pkg-config --cflags --libs wq) -o program
        setarch -R ./program
        # end: tsan
    }
}

# What docs/guide/testing.md tells a reader to type.
helgrind() {
    need pkg-config
    need valgrind
    cp "$here/../../examples/recipe_idle.c" program.c
    PKG_CONFIG_PATH=$(dirname "$(find "$stage" -name wq.pc)")
    export PKG_CONFIG_PATH
    find_stage_library
    # shellcheck disable=SC2046 # flags are words
    {
        # begin: helgrind
        cc -g program.c $(pkg-config --cflags --libs wq) -o program
        valgrind --tool=helgrind ./program
        # end: helgrind
    } 2>reported
    cat reported
    grep -q 'ERROR SUMMARY: 0 errors' reported
}

# What docs/guide/machines.md tells a reader to type.
fence() {
    need pkg-config
    cp "$here/../../examples/fence.c" .
    PKG_CONFIG_PATH=$(dirname "$(find "$stage" -name wq.pc)")
    export PKG_CONFIG_PATH
    find_stage_library
    # shellcheck disable=SC2046 # flags are words
    {
        # begin: fence
        cc fence.c $(pkg-config --cflags --libs wq-sqlite sqlite3) -o fence
        ./fence
        # end: fence
    } >printed
    grep -q '^first worker: file refused, table refused$' printed
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

# What docs/guide/start.md tells a reader to type, to link wq alone statically.
archive() {
    need pkg-config
    cp "$here/consumer.c" program.c
    PKG_CONFIG_PATH=$(dirname "$(find "$stage" -name wq.pc)")
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046 # flags are words
    {
        # begin: archive
        cc program.c $(pkg-config --cflags --libs-only-L wq) -l:libwq.a -pthread -ldl
        # end: archive
    }
    run ./a.out static
}

# store_pkgconfig STORE LIBRARY...: a program with a queue in a store: linked with
# -lwq-STORE, with -lwq alone, where wq_open() finds libwq-STORE by its name, and
# with the archive, which needs these libraries.
store_pkgconfig() {
    store=$1
    shift
    others=$*
    need pkg-config
    PKG_CONFIG_LIBDIR=$(dirname "$(find "$stage" -name wq.pc)")
    libraries=$(pkg-config --variable pc_path pkg-config)
    export PKG_CONFIG_LIBDIR="$PKG_CONFIG_LIBDIR:$libraries"
    find_stage_library
    eval "set -- $(pkg-config --cflags --libs "wq-$store")"
    # shellcheck disable=SC2086
    $CC -std=c11 $strict "$here/$store.c" -o linked "$@"
    run ./linked shared
    eval "set -- $(pkg-config --cflags --libs wq)"
    # shellcheck disable=SC2086
    $CC -std=c11 $strict -DBY_NAME "$here/$store.c" -o by_name "$@"
    run ./by_name shared
    eval "set -- $(pkg-config --static --cflags --libs "wq-$store")"
    # shellcheck disable=SC2086
    $CC -std=c11 $strict "$here/$store.c" -o archive \
        -Wl,-Bstatic "-lwq-$store" -lwq -Wl,-Bdynamic "$@" $others -lm
    echo "linked, found by name, and with the archive"
}

sqlite_pkgconfig() {
    store_pkgconfig sqlite -lsqlite3
    eval "set -- $(pkg-config --static --cflags --libs wq)"
    # shellcheck disable=SC2086
    $CC -std=c11 $strict -DBY_NAME -static "$here/sqlite.c" -o whole "$@"
    if run ./whole static 2>said || ! grep -q 'linked statically' said; then
        echo "a static program does not say that it can load no library:"
        cat said
        exit 1
    fi
}

redis_pkgconfig() {
    store_pkgconfig redis -lhiredis -lssl -lcrypto
}

# store_find_package STORE: the same with find_package(wq COMPONENTS STORE).
store_find_package() {
    cmake -S "$here/$1" -B . -D "CMAKE_PREFIX_PATH=$stage" \
        -D CMAKE_BUILD_TYPE=Debug >/dev/null
    cmake --build . >/dev/null
    find_stage_library
    run ./shared shared
    run ./static static
}

sqlite_find_package() {
    store_find_package sqlite
}

redis_find_package() {
    store_find_package redis
}

# The Kubernetes controller, which needs three more libraries: its directory is
# all that is needed.
need_kubernetes() {
    need pkg-config
    kubernetes=$here/../../examples/kubernetes
    pkg-config --exists libcurl jansson libmicrohttpd ||
        skip "libcurl, jansson or libmicrohttpd is not installed"
}

kubernetes_runs() {
    readelf -d widgets | grep -q 'NEEDED.*libwq\.so'
    find_stage_library
    ./widgets --help | grep '^usage: widgets'
}

# What docs/guide/kubernetes.md tells a reader to type.
kubernetes_guide() {
    need_kubernetes
    mkdir examples
    cp -R "$kubernetes" examples
    PKG_CONFIG_PATH=$(dirname "$(find "$stage" -name wq.pc)")
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046,SC2035 # flags are words; names are known
    {
        # begin: kubernetes
        cd examples/kubernetes
        cc -O2 *.c -o widgets $(pkg-config --cflags --libs wq libcurl jansson libmicrohttpd)
        # end: kubernetes
    }
    kubernetes_runs
}

kubernetes_pkgconfig() {
    need_kubernetes
    PKG_CONFIG_PATH=$(dirname "$(find "$stage" -name wq.pc)")
    export PKG_CONFIG_PATH
    eval "set -- $(pkg-config --cflags --libs wq libcurl jansson libmicrohttpd)"
    # shellcheck disable=SC2086
    $CC -O2 $strict "$kubernetes"/*.c -o widgets "$@"
    kubernetes_runs
}

kubernetes_find_package() {
    need_kubernetes
    cmake -S "$kubernetes" -B . -D "CMAKE_PREFIX_PATH=$stage" \
        -D CMAKE_BUILD_TYPE=Debug >/dev/null
    cmake --build . >/dev/null
    kubernetes_runs
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

# A project that contains the source tree installs its program, and the build is
# removed before the program runs. KIND: whether wq::wq is shared or static.
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
        echo "installed, but not part of the program:"
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
    rm -f "$work/install_manifest.txt" # of root, after sudo make install
    exec cmake --install "$work" --prefix "$stage"
fi
rm -rf "$work"
mkdir -p "$work"
cd "$work"
"$case"
