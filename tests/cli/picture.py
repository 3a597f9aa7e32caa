# SPDX-License-Identifier: MIT
"""What does the live page look like? Draws docs/guide/live-page.png from a run
with bursts of keys and a handler that fails now and then (make picture-page).

    WQ_PROGRAM=build/release/tools/wq python3 tests/cli/picture.py [SECONDS]
"""

import os
import random
import sys
import tempfile
import time

import palette
from browser import Browser
from watched import Watched

WORK = """#!/bin/sh
set -- $(od -An -N2 -tu1 /dev/urandom)
sleep 0.$(($1 % 3))$(($2 % 10))
test $(($1 % 7)) != 0 || {
    echo "warehouse-$(($2 % 3)): connection refused" >&2
    exit $(($1 % 3 + 1))
}
"""

PICTURE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "../../docs/guide/live-page.png")


def feed(program, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        busy = int(time.monotonic()) % 20 < 9
        for _ in range(random.randrange(6 if busy else 3)):
            program.add("shop-%d/order-%03d" % (random.randrange(3),
                                                random.randrange(200)))
        time.sleep(0.1)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 90
    directory = tempfile.TemporaryDirectory(prefix="wq-picture-")
    with open(directory.name + "/ship", "w", encoding="ascii") as file:
        file.write(WORK)
    os.chmod(directory.name + "/ship", 0o755)
    os.environ["PATH"] += ":" + directory.name
    program = Watched("-P4", "--follow", "--backoff=4s,1m", "--retries=1",
                      "--name=orders",
                      "--listen=127.0.0.1:0", "-q", end=False,
                      command=["ship", "{}"])
    browser = Browser()
    try:
        browser.shape(1010, 1290)
        browser.open(program.url() + "/")
        feed(program, seconds)
        with open(PICTURE, "wb") as file:
            file.write(palette.small(browser.picture()))
    finally:
        browser.close()
        program.close()
        directory.cleanup()


if __name__ == "__main__":
    main()
