#!/bin/sh
# SPDX-License-Identifier: MIT
# Do the Debian packages build, install and work? Builds them from the tarball of
# scripts/dist.sh and the debian/ of HEAD in a chroot that has only what
# debian/control asks for, checks them with lintian, installs them in another one,
# and runs debian/tests there. Prints their sizes.
#
#     deb.sh [--here]    packages and logs go to build/deb
#
#   --here    without chroots: build with what is installed here, without the
#             tests of the build, and install nothing
#   SUITE, MIRROR                which Debian, and where from: scripts/chroot.sh
#   DEB_BUILD_OPTIONS=nocheck    without the tests of the build
#
# Chroots need root rights and mmdebstrap. Without them it is --here, with the
# tests, and says so; with CI=true that is an error.
set -eu
cd "$(dirname "$0")/.."
name=deb
# shellcheck source=scripts/chroot.sh
. scripts/chroot.sh

# The source package.
scripts/dist.sh "$work/dist" >/dev/null
tarball=$(ls "$work"/dist/wq-*[0-9].tar.xz)
version=${tarball##*/wq-}
version=${version%.tar.xz}
mkdir "$work/source"
cp "$tarball" "$work/source/wq_$version.orig.tar.xz"
tar -xf "$tarball" -C "$work/source"
mkdir "$work/source/wq-$version/debian"
git archive HEAD:debian | tar -x -C "$work/source/wq-$version/debian"
rm -f "$out"/*.deb "$out"/*.changes
(cd "$work/source" && quietly source dpkg-source -b "wq-$version")

# keep DIR: copies the files of the source package and the packages to $out.
keep() {
    cp "$1"/*.deb "$1"/wq_*.dsc "$1"/wq_*.tar.xz "$1"/wq_*.buildinfo \
        "$1"/wq_*.changes "$out"
}

if [ "${1:-}" = --here ]; then
    say "building wq $version here"
    (cd "$work/source/wq-$version" &&
        DEB_BUILD_OPTIONS=nocheck quietly build dpkg-buildpackage -us -uc -b)
    keep "$work/source"
    installed=no
elif can_chroot; then
    say "building wq $version in a clean $SUITE"
    new_root build
    cp -R "$work/source" "$work/build/build"
    enter "$work/build" chown -R nobody /build
    quietly build-deps enter "$work/build" sh -c "cd /build/wq-$version &&
        apt-get -y --no-install-recommends build-dep ."
    quietly build enter "$work/build" setpriv --reuid=nobody --clear-groups \
        sh -c "cd /build/wq-$version && HOME=/build dpkg-buildpackage -us -uc"
    keep "$work/build/build"
    installed=yes
else
    say "no root rights or no mmdebstrap: building outside of a chroot"
    (cd "$work/source/wq-$version" &&
        quietly build dpkg-buildpackage -us -uc)
    keep "$work/source"
    installed=no
fi

say "lintian"
lintian --fail-on error,warning --allow-root "$out"/wq_*.changes

if [ $installed = yes ]; then
    say "installing in another clean $SUITE, and running debian/tests"
    new_root test
    mkdir "$work/test/debs"
    cp "$out"/*.deb "$work/test/debs"
    cp -R "$work/source/wq-$version" "$work/test/source"
    # What debian/tests/control asks for beyond our packages.
    needs=$(sed -n 's/^Depends: //p' debian/tests/control | tr -s ', ' '\n' |
        grep -v wq | sort -u | tr '\n' ' ')
    # As a user has it: the command and the libraries alone, then the rest.
    # shellcheck disable=SC2016 # for the inner shell
    quietly install enter "$work/test" sh -c '
        apt-get -y --no-install-recommends install /debs/wq_*.deb \
            /debs/libwq0.1_*.deb && wq --version &&
        apt-get -y --no-install-recommends install $(ls /debs/*.deb |
            grep -v dbgsym) $1' sh "$needs"
    # shellcheck disable=SC2013 # names are words
    for test in $(sed -n 's/^Tests: //p' debian/tests/control); do
        quietly "test-$test" enter "$work/test" sh -ec "
            cd /source && mkdir -p /tmp/$test &&
            AUTOPKGTEST_TMP=/tmp/$test debian/tests/$test"
        say "debian/tests/$test passed"
    done
    quietly remove enter "$work/test" apt-get -y purge 'libwq*' wq
fi

say "packages in $out:"
for package in "$out"/*.deb; do
    case $package in *dbgsym*) continue ;; esac
    echo "  $(dpkg-deb -f "$package" Package): $(wc -c <"$package") bytes," \
        "$(dpkg-deb -f "$package" Installed-Size) KiB installed"
done
