#!/bin/sh
# SPDX-License-Identifier: MIT
# Does the pre-commit hook refuse what it should, and look at staged files only?
set -eu
# shellcheck source=tests/support/script.sh
. "$(dirname "$0")/../support/script.sh"
cd "$(dirname "$0")/../.."
need clang-format
need_git
make_work

git clone --quiet --no-hardlinks . "$work/clone"
mkdir -p "$work/clone/scripts/hooks"
cp scripts/hooks/pre-commit "$work/clone/scripts/hooks"
cd "$work/clone"
git config core.hooksPath scripts/hooks
git config user.name tester
git config user.email tester@localhost

status=0
# try yes|no TITLE: commits what is staged.
try() {
    answer=yes
    git commit --quiet -m test >"$work/log" 2>&1 || answer=no
    [ "$answer" = "$1" ] || {
        echo "$2: committed? expected $1, got $answer"
        cat "$work/log"
        status=1
    }
}

file=src/core/mem.c
printf 'int  badly_laid_out ;\n' >>$file
git add $file
git checkout --quiet HEAD -- README.md
try no "a staged file with a wrong layout"
git checkout --quiet HEAD -- $file
printf '/* a comment */\n' >>$file
git add $file
printf 'int  badly_laid_out ;\n' >>$file
try yes "a wrong layout that is not staged"
echo 'no license' >src/core/new.h
git add src/core/new.h
try no "a file without its license"
exit $status
