# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# How are clean chroots of Debian made and entered? For scripts that source it
# from the top of the tree, with their $name. It sets $out, where logs go, and
# $work, which goes away at the end, and say(). Chroots need root rights and
# mmdebstrap.
#
#   SUITE=bookworm    which Debian; default: this one
#   MIRROR=URL        where from

out=$PWD/build/${name:?}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT

say() {
    echo "$name: $*"
}

# shellcheck source=/dev/null
: "${SUITE:=$(. /etc/os-release && echo "$VERSION_CODENAME")}"
: "${MIRROR:=http://deb.debian.org/debian}"

# can_chroot: are the tools and the rights there? With CI=true they must be.
can_chroot() {
    [ "$(id -u)" -eq 0 ] && command -v mmdebstrap >/dev/null && return 0
    [ "${CI:-}" != true ] || {
        say "no root rights or no mmdebstrap, an error with CI=true" >&2
        exit 1
    }
    return 1
}

# quietly LOG COMMAND...: prints the end of the log if the command fails.
quietly() {
    log=$out/$1.log
    shift
    "$@" >"$log" 2>&1 || {
        tail -n 60 "$log"
        say "failed; the whole log is $log"
        exit 1
    }
}

# enter ROOT COMMAND...: runs a command in a chroot, with /proc, in name spaces
# that end with it.
enter() {
    root=$1
    shift
    # shellcheck disable=SC2016 # for the inner shell
    unshare --mount --pid --fork sh -c '
        mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" || exit 1
        root=$1; shift
        exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/tmp \
            "DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS:-}" \
            "$@"' sh "$root" "$@"
}

# new_root NAME: unpacks a minimal Debian to $work/NAME. It is made once.
new_root() {
    base=build/chroot/base-$SUITE.tar
    [ -s "$base" ] || {
        say "making a minimal $SUITE with mmdebstrap"
        mkdir -p build/chroot
        quietly base mmdebstrap --variant=apt --format=tar "$SUITE" \
            "$base.part" "$MIRROR"
        mv "$base.part" "$base"
    }
    mkdir "$work/$1"
    tar -xf "$base" -C "$work/$1"
    cp /etc/resolv.conf "$work/$1/etc/resolv.conf"
    # Packages start no services there.
    printf '#!/bin/sh\nexit 101\n' >"$work/$1/usr/sbin/policy-rc.d"
    chmod +x "$work/$1/usr/sbin/policy-rc.d"
    quietly "apt-$1" enter "$work/$1" apt-get -q update
}
