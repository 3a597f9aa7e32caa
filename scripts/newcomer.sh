#!/bin/sh
# SPDX-License-Identifier: MIT
# Does the README work on a fresh Debian? Follows it in a clean chroot as an
# ordinary user with sudo: clone, build, install, compile the README's program
# and run it, read a manual page, and the same below a PREFIX. Then runs all
# tests. Prints how long each step takes.
#
#     newcomer.sh [--no-tests]    logs go to build/newcomer
#
#   SUITE, MIRROR    which Debian, and where from: scripts/chroot.sh
#
# Needs root rights and mmdebstrap; without them it is skipped, with CI=true that
# is an error. Documents quote the parts between `# begin:` and `# end:`.
set -eu

# ---- in the chroot, as the user ---------------------------------------------

# The README's program, its block of C, in a directory of its own.
write_hello() {
    mkdir ~/hello && cd ~/hello
    awk '/^```$/ { on = 0 } on { print } /^```c$/ { on = 1 }' \
        ~/wq/README.md >hello.c
}

install_it() {
    # begin: install
    make && sudo make install && sudo ldconfig
    # end: install
}

compile() {
    write_hello
    # shellcheck disable=SC2046 # flags are words
    {
        # begin: compile
        cc hello.c $(pkg-config --cflags --libs wq) -o hello
        ./hello
        # end: compile
    }
}

read_manual() {
    man wq_add | grep 'Mark'
    man 7 wq | grep 'work queue'
    man 1 wq | grep 'wq run'
    wq --version
}

# In a directory of one's own, with nothing in /usr/local.
with_prefix() {
    cd ~/wq
    # begin: remove
    xargs sudo rm <build/release/install_manifest.txt
    # end: remove
    sudo ldconfig
    mkdir ~/other
    cp ~/hello/hello.c ~/other/program.c
    # begin: prefix
    make install PREFIX="$HOME/wq-installed"
    # end: prefix
    cd ~/other
    # shellcheck disable=SC2046 # flags are words
    {
        # begin: compile-prefix
        export PKG_CONFIG_PATH="$HOME/wq-installed/lib/pkgconfig"
        export LD_LIBRARY_PATH="$HOME/wq-installed/lib"
        cc program.c $(pkg-config --cflags --libs wq)
        ./a.out
        # end: compile-prefix
    }
}

# step TITLE COMMAND...: runs it, and prints its time. If it fails, the script
# ends.
step() {
    title=$1
    shift
    start=$(date +%s)
    "$@"
    echo "newcomer: $title: $(($(date +%s) - start)) s"
}

if [ "${1:-}" = --inside ]; then
    trap '[ $? -eq 0 ] || echo "newcomer: failed: $title"' EXIT
    cd ~/wq
    step "make, with the packages it needs, and install" install_it
    step "the README's program" compile
    [ "$(./hello | tr '\n' ' ')" = "default/nginx default/redis default/nginx " ]
    step "the manual" read_manual
    cd ~/wq
    step "make run" make run
    step "a PREFIX, and a program with it" with_prefix
    cd ~/wq
    [ "$2" = --no-tests ] || step "make test" make test
    exit 0
fi

# ---- here -------------------------------------------------------------------

cd "$(dirname "$0")/.."
name=newcomer
# shellcheck source=scripts/chroot.sh
. scripts/chroot.sh

can_chroot || {
    say "skipped: needs root rights and mmdebstrap"
    exit 0
}
git clone --quiet --bare --no-hardlinks . "$work/wq.git"
new_root debian
say "a user with sudo, git and make"
# man-db removes what minimal systems exclude: manual pages.
quietly user enter "$work/debian" sh -ec '
    rm -f /etc/dpkg/dpkg.cfg.d/*
    apt-get -qy --no-install-recommends install git make sudo man-db
    useradd --create-home --shell /bin/bash user
    echo "user ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/user'
mv "$work/wq.git" "$work/debian/srv/wq.git"
enter "$work/debian" chown -R user /srv/wq.git
enter "$work/debian" su - user -c "git clone --quiet /srv/wq.git wq"
enter "$work/debian" su - user -c \
    "wq/scripts/newcomer.sh --inside ${1:---tests}" >"$out/log" 2>&1 || {
    tail -n 80 "$out/log"
    say "failed; the whole log is $out/log"
    exit 1
}
grep -E '^(newcomer|deps|[0-9]+% tests passed|built):? ' "$out/log"
