# SPDX-License-Identifier: MIT
"""Are the documents installed that the headers name, with and without Python?"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import documents
from documents import ROOT, need_command

BUILD = os.environ.get("WQ_BUILD", os.path.join(ROOT, "build/dev"))


def install(build, prefix):
    subprocess.run(["cmake", "--install", build, "--component", "doc",
                    "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)


class Installed(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="wq-docs-")
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def check_pages(self, prefix):
        man = os.path.join(prefix, "share/man")
        for name in ("man3/wq_add.3", "man3/wq_sqlite_open.3", "man7/wq.7",
                     "man7/wq-semantics.7"):
            self.assertGreater(os.path.getsize(os.path.join(man, name)), 500)
        self.assertEqual(os.readlink(os.path.join(man, "man3/wq_add_str.3")),
                         "wq_add.3")

    def test_pages_and_documents_are_installed(self):
        install(BUILD, self.path())
        self.check_pages(self.path())
        doc = self.path("share/doc/wq")
        for folder, _, names in os.walk(doc):
            for name in names:
                if name.endswith(".md"):
                    self.check_links(os.path.join(folder, name), doc)

    def check_links(self, path, doc):
        """A link to a document, or to a file that a reader is to copy, must work
        in the installed tree, too; what is in tests/ is for people who have the
        source."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for link in re.findall(r"\]\(([^)#:]+\.(?:md|service))[)#]", text):
            target = os.path.normpath(os.path.join(os.path.dirname(path), link))
            if not os.path.relpath(target, doc).startswith(("..", "tests")):
                self.assertTrue(os.path.exists(target), "%s: %s" % (path, link))

    def test_headers_name_only_what_is_installed(self):
        install(BUILD, self.path())
        found = 0
        for folder, _, names in os.walk(os.path.join(ROOT, "include/wq")):
            for name in names:
                with open(os.path.join(folder, name),
                          encoding="utf-8") as file:
                    text = file.read()
                for one in re.findall(r"\bdocs/[\w/.-]+\.md", text):
                    found += 1
                    self.assertTrue(os.path.exists(
                        self.path("share/doc/wq", one)), one)
                for one, section in re.findall(r"\b(wq-\w+)\((\d)\)", text):
                    found += 1
                    self.assertTrue(os.path.exists(self.path(
                        "share/man/man" + section, one + "." + section)), one)
        self.assertGreater(found, 2)

    def test_a_source_package_has_pages_that_need_no_python(self):
        need_command("cmake")
        source = self.path("source")
        shutil.copytree(ROOT, source, ignore=lambda folder, names: [
            n for n in names if n in ("build", ".git", "tests", "bench")
            and os.path.samefile(folder, ROOT)])
        subprocess.run([sys.executable, "-B", "scripts/docs/man.py",
                        "docs/man"], cwd=source, check=True)
        shutil.rmtree(os.path.join(source, "scripts"))
        options = ["-DWQ_%s=OFF" % name for name in
                   ("TESTS", "EXAMPLES", "BENCH", "COMMAND", "SQLITE")]
        subprocess.run(["cmake", "-S", source, "-B", self.path("build"),
                        "-DCMAKE_DISABLE_FIND_PACKAGE_Python3=ON", *options],
                       check=True, stdout=subprocess.DEVNULL)
        install(self.path("build"), self.path("prefix"))
        self.check_pages(self.path("prefix"))


if __name__ == "__main__":
    documents.main()
