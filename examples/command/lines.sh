#!/bin/sh
# SPDX-License-Identifier: MIT
# How do many lines become one key, and what does the command get of a line?
# shellcheck disable=SC1083 # {1} is for wq
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
exec >out 2>err
unset MAKEFLAGS MAKELEVEL # of a make that runs this script

# begin: columns
printf '%s\n' 'web1 nginx 1.2' 'web2 redis 7.0' 'web1 nginx 1.3' |
    wq run --key-column=1 -- echo install {2} {3} on {}
# end: columns

sort out >sorted # runs end in any order
cmp - sorted <<'EXPECTED'
install nginx 1.3 on web1
install redis 7.0 on web2
EXPECTED

printf 'all:\n\t@echo made\n' >Makefile
changes() {
    printf '%s\n' src/a.c src/b.c src/a.c
}
# begin: constant
changes | wq run --key-const=build --no-key-arg --debounce=200ms -- make
# end: constant
[ "$(tail -n 1 out)" = made ]
grep -q '^wq: 1 key, 1 ok, 0 failed, 0 left; 3 adds' err

# begin: words
printf '%s\n' music/a.flac music/b.flac | wq run -- echo {} {/.}.ogg {//}
# end: words
grep -qx "music/b.flac b.ogg music" out
