# SPDX-License-Identifier: MIT
"""Is the site complete, without dead links, and usable in a browser?"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import documents
from documents import ROOT, need_command

import browser  # in tests/cli, which `documents` makes known
from browser import ENTER, Browser


def make(folder, root=ROOT):
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
        done = make(cls.site)
        if done.returncode:
            raise AssertionError(done.stderr)

    def pages(self):
        for folder, _, names in os.walk(self.site):
            for name in names:
                if name.endswith(".html"):
                    with open(os.path.join(folder, name),
                              encoding="utf-8") as file:
                        yield os.path.join(folder, name), file.read()


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
        done = make(site, self.root)
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


class InABrowser(Made):
    @classmethod
    def setUpClass(cls):
        if browser.missing():
            raise unittest.SkipTest(browser.missing() + " is not installed")
        super().setUpClass()
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def open(self, name):
        self.browser.open("file://%s/%s" % (self.site, name))

    def test_no_page_is_wider_than_a_telephone(self):
        self.browser.resize(500, 900)
        self.browser.narrow(380)
        for name in ("index.html", "comparison.html", "semantics.html",
                     "reference/wq.h.html", "reference/limiter.h.html",
                     "guide/kubernetes.html", "man/wq.1.html",
                     "quality.html"):
            self.open(name)
            wide = self.browser.run(
                "return document.documentElement.scrollWidth")
            self.assertLessEqual(wide, 380, name)

    def test_the_search_finds_a_function_and_goes_there(self):
        self.open("guide/retry.html")
        self.browser.press("/")
        self.browser.press(*"wq_add_with")
        self.browser.wait("return document.querySelector('#results b')")
        self.assertEqual(self.browser.text("#results b"), "wq_add_with")
        self.browser.press(ENTER)
        self.browser.wait("""return location.href.endsWith(
            "reference/wq.h.html#wq_add_with")""")

    def test_the_page_is_dark_where_the_system_is(self):
        colours = []
        for scheme in ("light", "dark"):
            self.browser.prefer("prefers-color-scheme", scheme)
            self.open("index.html")
            colours.append(self.browser.run(
                "return getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(colours, ["rgb(255, 255, 255)", "rgb(20, 23, 26)"])

    def test_only_files_of_the_site_are_requested(self):
        self.browser.requests()
        self.open("index.html")
        self.browser.press("/")
        self.browser.press(*"key")
        self.browser.wait("return document.querySelector('#results b')")
        urls = [u for u in self.browser.requests()
                if not u.startswith(("data:", "chrome"))]
        self.assertGreater(len(urls), 3)
        for url in urls:
            self.assertTrue(url.startswith("file://" + self.site), url)


if __name__ == "__main__":
    documents.main()
