#!/bin/sh
# SPDX-License-Identifier: MIT
# How is a preset configured and built? Without output, unless V=1; with ninja
# if it is installed; on all cores, or on JOBS of them. With CI=true a warning
# is an error in every preset.
#
#     build.sh PRESET [-D...]    further arguments for cmake
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift

if [ -z "${CMAKE_GENERATOR:-}" ] && command -v ninja >/dev/null; then
    export CMAKE_GENERATOR=Ninja
fi
if [ "${CI:-}" = true ]; then
    set -- "$@" -DWQ_WERROR=ON
fi

echo "build: $preset"
if [ "${V:-0}" != 0 ]; then
    cmake --preset "$preset" "$@"
    exec cmake --build --preset "$preset" --parallel "${JOBS:-$(nproc)}" \
        --verbose
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{
    cmake --preset "$preset" "$@" &&
        cmake --build --preset "$preset" --parallel "${JOBS:-$(nproc)}"
} >"$log" 2>&1 || {
    cat "$log"
    exit 1
}
grep -A5 'warning:' "$log" || true
