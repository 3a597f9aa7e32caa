#!/bin/sh
# SPDX-License-Identifier: MIT
# Do the tests pass on other machines, and with another C library? Builds each
# platform with its preset in build/<platform>, runs its tests on this machine,
# natively or by qemu, and prints a summary line for each platform.
#
#     platforms.sh PLATFORM...    names of the table below
#
#   JOBS=n           use n cores
#   CTEST_ARGS=...   further arguments for ctest, such as -R or --timeout
#
# cmocka is compiled for each platform from Debian's source package, which
# apt-get downloads to build/cmocka: this needs no root rights and installs
# nothing. A platform whose tools are missing is skipped and reported; with
# CI=true that is an error.
#
# Exit status: 0 every platform passed or was skipped, 1 some failed, 2 an
# argument is not a platform.
set -eu
cd "$(dirname "$0")/.."
: "${JOBS:=$(nproc)}"

# Platform, and the commands it needs.
table='
i386     i686-linux-gnu-gcc     qemu-i386
aarch64  aarch64-linux-gnu-gcc  qemu-aarch64
s390x    s390x-linux-gnu-gcc    qemu-s390x
armel    arm-linux-gnueabi-gcc  qemu-arm
musl     musl-gcc
'
# Tests with other labels test the source, or tools of this machine.
labels='^(unit|behaviour|model|fault|conformance|stress|consumer)$'
# The kernel writes the owner of a mutex with priority inheritance into it, in the
# byte order of this machine: such mutexes of a big-endian program, of which two
# threads want one, do not work in qemu.
inheritance='real_time_queue_hands_no_key_over
hog_does_not_delay_a_real_time_call
real_time_queue_wakes_before_the_lock_is_released
real_time_queue_survives_cancelled_threads
getters_do_not_touch_a_destroyed_real_time_queue
inheriting_lock_admits_one_thread_at_a_time
object_can_be_freed_in_real_time
real_time_queue_works_as_any_other'

cmocka=$PWD/build/cmocka
mkdir -p "$cmocka"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Runs a command; prints its output only if it fails.
quietly() {
    "$@" >"$log" 2>&1 || {
        cat "$log"
        return 1
    }
}

cmd() {
    command -v "$1" >/dev/null
}

# missing PLATFORM: prints the first command it needs that is not installed.
missing() {
    echo "$table" | awk -v name="$1" '$1 == name { $1 = ""; print }' |
        tr ' ' '\n' | while read -r command; do
        if [ "$command" ] && ! cmd "$command"; then
            echo "$command"
            break
        fi
    done
}

# apt-get with the source packages of this Debian, and its own lists and cache.
apt() {
    apt-get -qq \
        -o "Dir::Etc::SourceList=$cmocka/apt/sources.list" \
        -o "Dir::Etc::SourceParts=/dev/null" \
        -o "Dir::State::Lists=$cmocka/apt/lists" \
        -o "Dir::Cache=$cmocka/apt/cache" "$@"
}

# Unpacks cmocka to build/cmocka/source. The steps are chained because `set -e`
# has no effect in a function whose result is tested.
fetch_cmocka() {
    [ ! -d "$cmocka/source" ] || return 0
    cmd apt-get || return 1
    (
        # shellcheck disable=SC2016 # $(...) is apt-get's
        cd "$cmocka" && rm -rf source.part cmocka_* &&
            mkdir -p source.part apt/lists/partial apt/cache/archives/partial &&
            apt-get indextargets --format \
                'deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)' \
                'Created-By: Packages' 'Origin: Debian' |
            sort -u >apt/sources.list &&
            apt update && apt source --download-only cmocka &&
            tar -xf cmocka_*.orig.tar.[gx]z -C source.part \
                --strip-components=1 &&
            mv source.part source
    )
}

# musl-gcc does not see the kernel's headers. Links to them, and to nothing
# else of glibc's directory.
link_kernel_headers() {
    into=$PWD/build/kernel-headers
    include=/usr/include
    mkdir -p "$into" &&
        ln -sfn $include/linux "$into/linux" &&
        ln -sfn $include/asm-generic "$into/asm-generic" &&
        ln -sfn "$include/$(gcc -print-multiarch)/asm" "$into/asm" &&
        flags="$flags -DCMAKE_C_FLAGS=-isystem$into"
}

# Compiles cmocka for `platform`, and sets `flags` for the configuration of wq.
build_cmocka() {
    into=$cmocka/$1
    flags="-DCMOCKA_INCLUDE_DIR=$into/include"
    flags="$flags -DCMOCKA_LIBRARY=$into/lib/libcmocka-static.a"
    [ ! -e "$into/lib/libcmocka-static.a" ] || return 0
    quietly cmake -S "$cmocka/source" -B "$into/build" \
        -D CMAKE_BUILD_TYPE=Debug \
        -D "CMAKE_TOOLCHAIN_FILE=$PWD/cmake/toolchains/$1.cmake" \
        -D "CMAKE_INSTALL_PREFIX=$into" -D CMAKE_INSTALL_LIBDIR=lib \
        -D WITH_STATIC_LIB=ON -D WITH_EXAMPLES=OFF -D UNIT_TESTING=OFF &&
        quietly cmake --build "$into/build" --parallel "$JOBS" &&
        quietly cmake --install "$into/build"
}

# count REPORT: prints the numbers of ctest's report.
count() {
    skipped=$(grep -c '\*\*\*Skipped' "$1" || true)
    awk -v skipped="$skipped" '/ tests failed out of / {
        printf "%d tests, %d passed, %d skipped, %d failed",
            $NF, $NF - skipped - $(NF - 5), skipped, $(NF - 5)
    }' "$1"
}

# Builds and tests one platform; sets `verdict`, and `result` if it is skipped.
try() {
    lacking=$(missing "$1")
    if [ "$lacking" ]; then
        result=skipped verdict="$lacking is not installed"
        [ "${CI:-}" != true ]
        return
    fi
    if ! fetch_cmocka >"$log" 2>&1; then
        cat "$log"
        result=skipped verdict="no source package of cmocka"
        [ "${CI:-}" != true ]
        return
    fi
    verdict="cmocka does not build"
    build_cmocka "$1" || return 1
    verdict="does not build"
    [ "$1" != musl ] || link_kernel_headers || return 1
    # shellcheck disable=SC2086 # flags are words
    scripts/build.sh "$1" -DWQ_TESTS=ON $flags || return 1

    left_out='^$'
    [ "$1" != s390x ] || left_out=$(echo "$inheritance" | paste -sd'|')
    report=build/$1/platform.log
    start=$(date +%s)
    status=0
    # shellcheck disable=SC2086 # arguments are words
    ctest --preset "$1" -j"$JOBS" -L "$labels" -E "$left_out" ${CTEST_ARGS:-} \
        >"$report" 2>&1 || status=1
    # Leave out the lines of tests that passed.
    grep -vE '^ +Start +[0-9]+:| Passed +[0-9.]+ sec$' "$report" || true
    verdict="$(count "$report"), $(($(date +%s) - start)) s"
    return $status
}

[ $# -gt 0 ] || set -- "" # not a platform: an error below
for platform; do
    echo "$table" | grep -q "^$platform " || {
        echo "platforms.sh: '$platform' is not a platform; use one of:" \
            "$(echo "$table" | awk 'NF { print $1 }' | xargs)" >&2
        exit 2
    }
done

failed=0
summary=
for platform; do
    echo "platform: $platform"
    result=ok
    try "$platform" || {
        result=FAILED
        failed=1
    }
    summary="$summary$(printf '%-8s %-8s %s' "$platform" "$result" "$verdict")
"
done
printf '\n%s' "$summary"
exit $failed
