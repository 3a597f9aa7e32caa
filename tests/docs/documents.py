# SPDX-License-Identifier: MIT
"""What do the tests of the documents share? The tree, and the modules that
render it."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "scripts/docs"),
                os.path.join(ROOT, "tests/cli")]

from program import main, need_command  # noqa: E402,F401

CC = os.environ.get("CC", "cc")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


# ---- the site ----------------------------------------------------------------

def make_site(folder, root=ROOT):
    """Runs site.py."""
    return subprocess.run(
        [sys.executable, "-B", os.path.join(ROOT, "scripts/docs/site.py"),
         folder, root], capture_output=True, text=True)


class Made(unittest.TestCase):
    """The site of the tree, in self.site."""

    @classmethod
    def setUpClass(cls):
        need_command("cmark-gfm")
        need_command("mandoc")
        cls.site = tempfile.mkdtemp(prefix="wq-site-")
        cls.addClassCleanup(shutil.rmtree, cls.site)
        done = make_site(cls.site)
        if done.returncode:
            raise AssertionError(done.stderr)

    def pages(self):
        """(path, text) of each page."""
        for folder, _, names in os.walk(self.site):
            for name in names:
                if name.endswith(".html"):
                    with open(os.path.join(folder, name),
                              encoding="utf-8") as file:
                        yield os.path.join(folder, name), file.read()
