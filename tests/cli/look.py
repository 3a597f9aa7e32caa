# SPDX-License-Identifier: MIT
"""What does the live page look like? Draws it with no, ten and 200,000 keys,
with failures, with long keys and with a shared queue, for a phone and a wide
window, light and dark. A person looks at the pictures; tests check what a
program can.

    WQ_PROGRAM=build/release/tools/wq python3 tests/cli/look.py DIRECTORY [SCENE...]
"""

import os
import shutil
import subprocess
import sys
import tempfile

from browser import Browser, missing
from program import PROGRAM, until
from watched import Watched, metrics

FAIL = 'case "$1" in *[27]) echo "$1: connection refused by host" >&2; ' \
       'exit 1;; *5) kill -SEGV $$;; *9) sleep 9;; esac; sleep 0.1'
LISTEN = "--listen=127.0.0.1:0"


def settled(url, n):
    until(lambda: metrics(url)["wq_run_done_total"] +
          metrics(url)["wq_run_failed_total"] >= n, "%d keys" % n)


def no_keys():
    return Watched(LISTEN, "--follow", "-q", end=False)


def ten_keys():
    program = Watched(LISTEN, "-P4", "-q", keys=["key-%d" % i for i in range(10)],
                      end=False)
    program.gate.open(0, 0, 0)
    settled(program.url(), 3)
    return program


def many_keys():
    program = Watched(LISTEN, "-P4", "-q", end=False, command=[
        "sh", "-c", 'test "$1" -lt 400 || sleep 100', "sh", "{}"])
    program.add("\n".join(map(str, range(200000))))
    settled(program.url(), 400)
    return program


def failures():
    program = Watched(
        LISTEN, "-P4", "-q", "--retries=2", "--backoff=100ms,1h",
        "--timeout=1s", "--no-retry-codes=1", "--name=orders", end=False,
        command=["sh", "-c", FAIL, "ship", "{}"],
        keys=["shop-%d/order-%03d" % (i % 3, i) for i in range(60)])
    settled(program.url(), 40)
    return program


def long_keys():
    program = Watched(
        LISTEN, "-P2", "-q", "--retries=0", end=False, command=[
            "sh", "-c", 'echo "$1" | cut -c1-2000 >&2; case "$1" in f*) exit 3;; '
            '*) sleep 100;; esac', "sh", "{}"])
    for name in ("failed", "running", "ready", "ready too"):
        program.add("%s/%s/end-of-%s.txt" % (name, "a/long/path/" * 12, name))
        program.add("%s/%s/end-of-%s.txt" % (name, "a/longer/path/" * 90, name))
    settled(program.url(), 2)
    return program


def dead_keys():
    folder = tempfile.mkdtemp(prefix="wq-look-")
    queue = "--queue=sqlite:" + folder + "/queue.db"
    subprocess.run([PROGRAM, "add", queue] + ["old-%02d" % i for i in range(12)],
                   check=True)
    subprocess.run([PROGRAM, "work", queue, "-q", "--until-empty", "--retries=0",
                    "--", "false"], check=False)
    program = Watched(LISTEN, queue, "-P2", "-q", "--retries=0", "-a-", end=False,
                      command=["sh", "-c", 'case "$1" in bad*) echo "no such '
                               'table: $1" >&2; exit 4;; esac; sleep 100', "sh",
                               "{}"])
    for key in ("bad-1", "bad-2", "good-1", "good-2", "good-3", "good-4"):
        program.add(key)
    settled(program.url(), 2)
    close = program.close
    program.close = lambda: (close(), shutil.rmtree(folder))
    return program


SCENES = {"none": no_keys, "ten": ten_keys, "many": many_keys,
          "failures": failures, "long": long_keys, "dead": dead_keys}


def main():
    directory = sys.argv[1]
    os.makedirs(directory, exist_ok=True)
    browser = Browser()
    try:
        for name in sys.argv[2:] or SCENES:
            program = SCENES[name]()
            try:
                for width in (380, 1400):
                    for theme in ("light", "dark"):
                        browser.prefer("prefers-color-scheme", theme)
                        browser.shape(width, 900)
                        browser.open(program.url() + "/")
                        browser.wait("return document.body.dataset.events > 3")
                        browser.shape(width, min(2600, browser.run(
                            "return document.documentElement.scrollHeight")))
                        browser.wait("return document.body.dataset.events > 4")
                        path = "%s/%s-%d-%s.png" % (directory, name, width, theme)
                        with open(path, "wb") as file:
                            file.write(browser.picture())
                        print(path)
            finally:
                program.close()
    finally:
        browser.close()


if __name__ == "__main__":
    if missing():
        sys.exit(missing())
    main()
