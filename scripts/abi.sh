#!/bin/sh
# SPDX-License-Identifier: MIT
# Can programs that were built against the last release load this one? Compares
# the libraries of a build with the descriptions in abi/. See docs/abi.md.
#
#     abi.sh check BUILD    exit status: 0 yes, 1 no, 77 cannot tell here
#     abi.sh renew BUILD    describe the build: a step of a release
#
# A description has two files. LIBRARY.symbols lists the SONAME and the public
# symbols with their version nodes; nodes WQ_PRIVATE_... are not public.
# LIBRARY.abi is what abidw says about the types of these functions. It reads a
# small library that includes the public headers alone and has a pointer to each
# function, since with libwq.so itself abidw describes private structs, too.
#
# A field at the end of a struct that begins with `size` is compatible: the
# library accepts both sizes. So are new functions.
set -eu
cd "$(dirname "$0")/.."
: "${CC:=cc}"
export LC_ALL=C # one order for sort and comm

# Library, map, and the directories of its headers.
table='
libwq         src/wq.map                     include
libwq-sqlite  backends/sqlite/wq-sqlite.map  backends/sqlite/include include
libwq-redis   backends/redis/wq-redis.map    backends/redis/include include
'

usage() {
    echo "usage: abi.sh check|renew BUILD" >&2
    exit 2
}
[ $# -eq 2 ] || usage
verb=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cannot() {
    echo "abi: skipped: $1"
    exit 77
}
case $($CC -dumpmachine) in
x86_64-*) ;;
*) cannot "the descriptions are of x86-64" ;;
esac
for tool in abidw abidiff; do
    command -v $tool >/dev/null || {
        [ "${CI:-}" != true ] || {
            echo "abi: $tool is missing, an error with CI=true; install abigail-tools"
            exit 1
        }
        cannot "$tool is not installed (Debian: abigail-tools)"
    }
done

# symbols LIBRARY: prints the SONAME and NAME@@NODE of each public symbol.
symbols() {
    readelf -d "$1" | sed -n 's/.*soname: \[\(.*\)\]/SONAME \1/p'
    nm -D --defined-only "$1" |
        awk '$2 != "A" && $3 !~ /@WQ_PRIVATE_/ { print $3 }' | sort
}

# probe MAP DIR...: compiles $work/probe.so, which has a pointer to each public
# function of the map.
probe() {
    map=$1
    shift
    {
        for header in "$1"/wq/*.h; do
            echo "#include <wq/${header##*/}>"
        done
        awk '/^WQ_PRIVATE_/ { exit }
            /global:/ { on = 1; next }
            /local:|}/ { on = 0 }
            on { sub(/;/, ""); printf "extern __typeof__(%s) *abi_%s;\n" \
                "__typeof__(%s) *abi_%s = %s;\n", $1, $1, $1, $1, $1 }' "$map"
    } >"$work/probe.c"
    for dir; do
        set -- "$@" "-I$dir"
        shift
    done
    # The linker is not asked for the functions: only their types count.
    $CC -g -O0 -shared -fPIC "$@" "$work/probe.c" -o "$work/probe.so"
}

# growing DIR...: prints the names of the structs whose first field is `size`.
growing() {
    for dir; do
        awk '$0 ~ /^(typedef )?struct [a-z_0-9]+ {$/ {
                name = $(NF - 1)
                getline
                if ($1 == "size_t" && $2 == "size;")
                    print name
            }' "$dir"/wq/*.h
    done | sort -u
}

# check LIBRARY MAP DIR...
check() {
    name=$1
    shift
    [ -e "abi/$name.symbols" ] || {
        echo "abi: $name: abi/ does not describe it; see docs/abi.md"
        return 1
    }
    symbols "$build/$name.so" >"$work/symbols"
    if [ "$(sed 1q "$work/symbols")" != "$(sed 1q "abi/$name.symbols")" ]; then
        echo "abi: $name: another SONAME than the last release; renew abi/"
        return 0
    fi
    lost=$(sort "$work/symbols" | comm -13 - "abi/$name.symbols")
    [ -z "$lost" ] || {
        echo "abi: $name: the last release has, this one has not:"
        echo "$lost"
        return 1
    }
    probe "$@" || return 1
    shift
    growing "$@" | while read -r struct; do
        printf '[suppress_type]\ntype_kind = struct\nname = %s\n' "$struct"
        echo 'has_data_member_inserted_at = end'
    done >"$work/suppressions"
    abidiff --suppressions "$work/suppressions" --no-added-syms \
        "abi/$name.abi" "$work/probe.so" >"$work/report" || {
        echo "abi: $name: a program built against the last release may misbehave:"
        cat "$work/report"
        return 1
    }
    echo "abi: $name: compatible with the last release"
}

# renew LIBRARY MAP DIR...
renew() {
    name=$1
    shift
    probe "$@" || return 1
    abidw --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed \
        --no-parameter-names --drop-undefined-syms "$work/probe.so" |
        sed "s|$work/||" >"$work/description"
    symbols "$build/$name.so" >"$work/symbols"
    mv "$work/description" "abi/$name.abi"
    mv "$work/symbols" "abi/$name.symbols"
}

status=0
while read -r name map dirs; do
    [ "$name" ] || continue
    [ -e "$build/$name.so" ] || {
        echo "abi: $build/$name.so is not built: not compared"
        [ "${CI:-}" != true ] || status=1
        continue
    }
    # shellcheck disable=SC2086 # directories are words
    case $verb in
    check) check "$name" "$map" $dirs ;;
    renew) renew "$name" "$map" $dirs ;;
    *) usage ;;
    esac || status=1
done <<END
$table
END
exit $status
