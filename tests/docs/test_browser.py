# SPDX-License-Identifier: MIT
"""Is the site usable in a browser: narrow, dark, with its search?"""

import unittest

import documents
from documents import Made

import browser  # in tests/cli, which `documents` makes known
from browser import ENTER, Browser


class InABrowser(Made):
    @classmethod
    def setUpClass(cls):
        if browser.missing():
            raise unittest.SkipTest(browser.missing())
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
