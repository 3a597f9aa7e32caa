# SPDX-License-Identifier: MIT
"""Is the site complete, and without dead links?"""

import json
import os
import re
import shutil
import tempfile
import unittest

import documents
from documents import ROOT, Made, make_site, need_command


class Site(Made):
    def test_every_document_and_header_has_a_page(self):
        for name in ("index.html", "guide/index.html", "semantics.html",
                     "design.html", "backends.html", "quality.html",
                     "man/wq.1.html", "benchmarks/index.html",
                     *("reference/%s.html" % h for h in os.listdir(
                         os.path.join(ROOT, "include/wq"))),
                     "reference/sqlite.h.html",
                     *("guide/%s.html" % g.removesuffix(".md") for g in
                       os.listdir(os.path.join(ROOT, "docs/guide"))
                       if g.endswith(".md") and g != "README.md")):
            self.assertTrue(os.path.exists(os.path.join(self.site, name)), name)

    def test_every_link_leads_to_a_file_and_an_anchor(self):
        """Read from the pages, apart from the check that site.py makes."""
        pages = dict(self.pages())
        anchors = {path: set(re.findall(r'\bid="([^"]+)"', text))
                   for path, text in pages.items()}
        checked = 0
        for path, text in pages.items():
            for url in re.findall(r'(?:href|src)="([^"]+)"', text):
                if re.match(r"https?:|data:|mailto:", url):
                    continue
                name, _, anchor = url.partition("#")
                target = os.path.normpath(os.path.join(
                    os.path.dirname(path), name)) if name else path
                self.assertTrue(os.path.exists(target), "%s: %s" % (path, url))
                if anchor:
                    self.assertIn(anchor.replace("&#x27;", "'"),
                                  anchors[target], path)
                checked += 1
        self.assertGreater(checked, 3000)

    def test_chapters_are_in_the_order_of_the_guide(self):
        with open(os.path.join(ROOT, "docs/guide/README.md"),
                  encoding="utf-8") as file:
            chapters = re.findall(r"\]\(([\w-]+)\.md\)", file.read())
        with open(os.path.join(self.site, "guide/retry.html"),
                  encoding="utf-8") as file:
            group = file.read().split("<h2>Guide</h2>")[1].split("<h2>")[0]
        self.assertEqual(re.findall(r'href="([\w-]+)\.html"', group),
                         [c for c in chapters if c != "start"])

    def test_nothing_is_loaded_from_elsewhere(self):
        for path, text in self.pages():
            for tag in re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", text):
                self.assertNotRegex(tag, r'"(https?:)?//', path)
        with open(os.path.join(self.site, "site.css"),
                  encoding="utf-8") as file:
            self.assertNotRegex(file.read(), r"url\(|@import")

    def test_the_index_of_the_search_has_names_and_behaviours(self):
        with open(os.path.join(self.site, "search-index.js"),
                  encoding="utf-8") as file:
            index = json.loads(file.read().removeprefix("var wqIndex = ")
                               .rstrip(";\n"))
        self.assertIn(["reference/wq.h.html", "wq_add"],
                      [[entry[0], entry[2]] for entry in index])
        self.assertTrue(any("Q-03" in entry[4] for entry in index))


class DeadLinks(unittest.TestCase):
    """A copy of the documents in which one thing is wrong."""

    def setUp(self):
        need_command("cmark-gfm")
        need_command("mandoc")
        self.dir = tempfile.mkdtemp(prefix="wq-site-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.root = os.path.join(self.dir, "root")
        shutil.copytree(ROOT, self.root, symlinks=True, ignore=lambda f, names:
                        [n for n in names if n in ("build", ".git")])

    def make_with(self, name, text):
        with open(os.path.join(self.root, name), "a", encoding="utf-8") as file:
            file.write("\n%s\n" % text)
        site = os.path.join(self.dir, "site")
        done = make_site(site, self.root)
        self.assertFalse(os.path.exists(site) and done.returncode)
        return done

    def test_a_link_to_a_file_that_is_not_there_is_an_error(self):
        done = self.make_with("docs/backends.md", "[x](nowhere.md)")
        self.assertEqual((done.returncode, done.stderr), (
            1, "site.py: docs/backends.md: dead link: nowhere.md\n"))

    def test_a_link_to_a_heading_that_is_not_there_is_an_error(self):
        done = self.make_with("README.md", "[x](docs/design.md#nothing)")
        self.assertEqual((done.returncode, done.stderr), (
            1, "site.py: README.md: dead link: docs/design.md#nothing: "
            "no such anchor\n"))

    def test_a_behaviour_that_does_not_exist_is_an_error(self):
        done = self.make_with("docs/guide/retry.md", "It does [Q-99].")
        self.assertIn("docs/guide/retry.md: dead link: [Q-99]", done.stderr)


if __name__ == "__main__":
    documents.main()
