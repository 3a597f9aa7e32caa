#!/bin/sh
# SPDX-License-Identifier: MIT
# Which files is a release made of? Writes them to build/dist, or to DIR:
#
#   wq-VERSION.tar.xz               the source: what git tracks at HEAD, and the
#                                   manual pages that are made from it
#   wq-VERSION-amalgamation.tar.xz  wq.c and wq.h, made from that source
#   SHA256SUMS                      their checksums, for sha256sum -c
#   NOTES.md                        the section of the changelog, and the checksums
#   conan/, vcpkg/                  recipes that download the first
#
#     dist.sh [DIR]
#
# The same commit gives the same bytes on every machine with the same versions
# of git, tar and xz: names are sorted, owners are 0, times are the commit's.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/dist}

git rev-parse --verify --quiet HEAD >/dev/null 2>&1 || {
    echo "dist: this is not a git repository; a release is made from a commit" >&2
    exit 1
}
git diff --quiet HEAD -- || echo "dist: uncommitted changes are left out"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Exact bytes: no conversion that a user has configured.
git -c core.autocrlf=false -c tar.umask=0022 archive --format=tar \
    --prefix=tree/ HEAD >"$work/tree.tar"
tar -xf "$work/tree.tar" -C "$work"
version=$(sed -n 's/^#define WQ_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' \
    "$work/tree/include/wq/version.h" | paste -sd .)
time=$(git log -1 --format=%ct)

# pack DIRECTORY FILE: packs $work/DIRECTORY.
pack() {
    tar --format=ustar --sort=name "--mtime=@$time" --owner=0 --group=0 \
        --numeric-owner --mode=u+rwX,go+rX,go-w -C "$work" -cf - "$1" |
        xz "${XZ_LEVEL:--9}" --threads=1 >"$work/$2"
}

mv "$work/tree" "$work/wq-$version"
# The manual pages, so that a build from the tarball needs no Python.
python3 -B "$work/wq-$version/scripts/docs/man.py" "$work/wq-$version/docs/man"
pack "wq-$version" "wq-$version.tar.xz"
single=wq-$version-amalgamation
python3 -B "$work/wq-$version/scripts/amalgamate.py" "$work/$single"
rm -r "$work/$single/wq" # for our tests
cp "$work/wq-$version/LICENSE" "$work/$single"
pack "$single" "$single.tar.xz"

# render IN OUT: fills in a recipe.
sha256=$(sha256sum "$work/wq-$version.tar.xz" | cut -d ' ' -f 1)
sha512=$(sha512sum "$work/wq-$version.tar.xz" | cut -d ' ' -f 1)
url=$(sed -n '/^[^#]/p' "$work/wq-$version/packaging/project-url")
description=$(sed -n 's/^ *DESCRIPTION "\(.*\)")/\1/p' \
    "$work/wq-$version/CMakeLists.txt")
render() {
    mkdir -p "$(dirname "$2")"
    sed -e "s|@VERSION@|$version|g" -e "s|@URL@|$url|g" \
        -e "s|@SHA256@|$sha256|g" -e "s|@SHA512@|$sha512|g" \
        -e "s|@DESCRIPTION@|$description|g" "$1" >"$2"
}

mkdir -p "$out"
mv "$work"/*.tar.xz "$out"
(cd "$out" && sha256sum "wq-$version.tar.xz" "$single.tar.xz" >SHA256SUMS)
{
    echo "# wq $version"
    echo
    awk -v version="$version" '/^## / { on = $2 == version; next } on' \
        "$work/wq-$version/CHANGELOG.md" | sed 1d
    echo
    echo "Checksums (SHA-256):"
    echo
    sed 's/^/    /' "$out/SHA256SUMS"
} >"$out/NOTES.md"
for recipe in "$work/wq-$version"/packaging/conan/* \
    "$work/wq-$version"/packaging/vcpkg/*; do
    name=${recipe#"$work/wq-$version/packaging/"}
    render "$recipe" "$out/${name%.in}"
done
echo "dist: in $out:"
(cd "$out" && wc -c wq-*.tar.xz | sed '/total$/d; s/$/ bytes/' |
    awk '{ print "  " $2, $1, $3 }')
