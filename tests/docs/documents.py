# SPDX-License-Identifier: MIT
"""What do the tests of the documents share? The tree, and the modules that
render it."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "scripts/docs"),
                os.path.join(ROOT, "tests/cli")]

from program import main, need_command  # noqa: E402,F401

CC = os.environ.get("CC", "cc")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()
