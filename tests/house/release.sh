#!/bin/sh
# SPDX-License-Identifier: MIT
# Do all places that name the version, the SONAME or the project's address agree
# with include/wq/version.h and packaging/project-url?
set -eu
cd "$(dirname "$0")/../.."
number() {
    sed -n "s/^#define WQ_VERSION_$1 //p" include/wq/version.h
}
version=$(number MAJOR).$(number MINOR).$(number PATCH)
so=$(number MAJOR)
[ "$so" != 0 ] || so=0.$(number MINOR)
host=$(sed -n 's|^https://||p' packaging/project-url)

status=0
wrong() {
    echo "$1"
    status=1
}

grep -q "^## $version (" CHANGELOG.md ||
    wrong "CHANGELOG.md has no section '## $version (...)'"
grep -q "^WQ_PRIVATE_$version {" src/wq.map ||
    wrong "src/wq.map has no node WQ_PRIVATE_$version"
for map in src/wq.map backends/*/*.map; do
    grep -q "^WQ[A-Z_]*_$so {" "$map" ||
        wrong "$map has no node WQ..._$so"
done
grep -q "^Version $version;" README.md ||
    wrong "README.md does not say 'Version $version'"
# Names of the libraries with another number, wherever they are written.
found=$(scripts/files.sh '*.md' '*.h' '*.c' '*.sh' '*.1' '*.3' |
    xargs grep -nE 'libwq[a-zA-Z-]*\.so\.[0-9]' |
    grep -vE "libwq[a-zA-Z-]*\.so\.$so([^0-9.]|\.([^0-9]|\$)|\$)" || true)
[ -z "$found" ] || wrong "the SONAME ends in .so.$so: $found"

if [ -d debian ]; then # not in a tarball
    sed 1q debian/changelog | grep -q "^wq ($version-" ||
        wrong "debian/changelog does not begin with version $version"
    for package in "libwq$so" "libwq-sqlite$so" "libwq-redis$so"; do
        grep -q "^Package: $package\$" debian/control ||
            wrong "debian/control has no package $package"
    done
    for file in control changelog; do
        grep -q "@$host>" debian/$file ||
            wrong "debian/$file: the address is not at $host (packaging/project-url)"
    done
    # An unreleased version has no date yet.
    date=$(sed -n "s/^## $version (\(.*\))\$/\1/p" CHANGELOG.md)
    [ "$date" = unreleased ] ||
        [ "$(date -u -d "$(sed -n 's/^ -- .*>  //p' debian/changelog |
            sed 1q)" +%Y-%m-%d)" = "$date" ] ||
        wrong "debian/changelog and CHANGELOG.md ($date) have different dates"
fi
exit $status
