#!/bin/sh
# SPDX-License-Identifier: MIT
# How can a program react to files that change? Needs inotifywait
# (inotify-tools).
set -eu
command -v inotifywait >/dev/null || {
    echo "skipped: inotifywait is not installed"
    [ "${CI:-}" = true ] && exit 1
    exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir src
cat >build-one <<'HANDLER'
#!/bin/sh
[ "$1" != src/stop ] || kill "$PPID" # ends the test
echo "$1" >>built
HANDLER
chmod +x build-one

watch() {
    # begin: watch
    inotifywait -m -r -e close_write --format '%w%f' src |
        wq run --debounce=200ms --debounce-max=5s -P4 -- ./build-one {}
    # end: watch
}

{
    watch 2>watching || true
    touch ended
} &
until grep -q established watching 2>/dev/null; do sleep 0.05; done
for _ in 1 2 3 4 5; do # an editor that saves often
    echo >src/a.c
    echo >src/b.c
done
until grep -q a.c built 2>/dev/null && grep -q b.c built; do sleep 0.05; done
echo >src/stop
# inotifywait ends at the next event, when it finds no reader.
until [ -e ended ]; do
    echo >src/end
    sleep 0.05
done
wait
[ "$(grep -c '[ab].c' built)" -lt 10 ]
