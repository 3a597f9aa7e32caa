#!/bin/sh
# SPDX-License-Identifier: MIT
# How are many files processed, and how does one continue after a failure?
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir music
touch music/a.flac 'music/b c.flac' music/broken.flac
cat >encode <<'HANDLER'
#!/bin/sh
case $1 in *broken*) [ -e repaired ] || exit 65 ;; esac
touch "${1%.flac}.ogg"
echo "$1" >>encoded
HANDLER
chmod +x encode

encode_all() {
    # begin: files
    find music -name '*.flac' -print0 |
        wq run -0 -P0 --no-retry-codes=65 --joblog=log --resume-failed \
            -- ./encode {}
    # end: files
}

status=0
encode_all || status=$?
[ "$status" -eq 123 ] # a key failed and was not retried
[ "$(wc -l <encoded)" -eq 2 ]
touch repaired
encode_all # only the file that failed
[ "$(sort encoded | uniq -d)" = "" ]
[ -e 'music/b c.ogg' ] && [ -e music/broken.ogg ]
