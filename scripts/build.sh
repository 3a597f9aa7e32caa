#!/bin/sh
# SPDX-License-Identifier: MIT
# How is a preset configured and built? Quietly, unless V=1; by ninja if it is
# there; on all cores, or on JOBS of them. With CI=true a warning is an error in
# every preset.
#
#     build.sh PRESET [-D...]    what follows goes to cmake
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
quiet=/dev/null verbose=
if [ "${V:-0}" != 0 ]; then
    quiet=/dev/stdout verbose=--verbose
fi

echo "build: $preset"
cmake --preset "$preset" "$@" >"$quiet"
# shellcheck disable=SC2086 # no word at all when quiet
cmake --build --preset "$preset" --parallel "${JOBS:-$(nproc)}" $verbose
