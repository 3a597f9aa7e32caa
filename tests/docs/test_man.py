# SPDX-License-Identifier: MIT
"""Has every public name a manual page, can mandoc read all pages without a
warning, and does the code in them compile?"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import documents
import header
import man
import pages
from documents import ROOT, need_command, read

BACKENDS = ["backends/" + name for name in
            sorted(os.listdir(os.path.join(ROOT, "backends")))]
MAPS = ["src/wq.map"] + [os.path.relpath(path, ROOT) for path in glob.glob(
    os.path.join(ROOT, "backends/*/*.map"))]
HEADERS = ["include/wq"] + [one + "/include/wq" for one in BACKENDS]


def exported():
    """The functions that the libraries export to everyone."""
    names = []
    for path in MAPS:
        public = read(path).split("WQ_PRIVATE")[0]
        names += re.findall(r"^    (wq_\w+);", public, re.M)
    return names


def declared():
    """Every public name in the code of the headers, found without the parser
    that makes the pages."""
    names = set()
    for folder in HEADERS:
        for name in os.listdir(os.path.join(ROOT, folder)):
            text = read(folder + "/" + name)
            text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
            text = re.sub(r'"[^"\n]*"', "", text)
            text = re.sub(r"^#\s*(ifndef|include).*$", "", text, flags=re.M)
            names |= set(re.findall(r"\b(?:wq_[a-z]|WQ_[A-Z])\w*", text))
    attributes = {"WQ_API", "WQ_NODISCARD", "WQ_PRINTF"}
    return {n for n in names if "__" not in n and not n.endswith("_H")
            } - attributes


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="wq-man-")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        subprocess.run([sys.executable, "-B",
                        os.path.join(ROOT, "scripts/docs/man.py"), cls.dir],
                       check=True)

    def pages(self):
        return sorted(os.path.join(folder, name)
                      for folder, _, names in os.walk(self.dir)
                      for name in names)

    def text(self, name):
        with open(os.path.join(self.dir, name), encoding="ascii") as file:
            return file.read()

    def test_every_public_name_has_a_page(self):
        names = declared() | set(exported())
        self.assertGreater(len(names), 250)
        missing = [n for n in sorted(names) if not os.path.exists(
            os.path.join(self.dir, "man3", n + ".3"))]
        self.assertEqual(missing, [])

    def test_no_page_has_a_name_that_does_not_exist(self):
        names = {os.path.basename(p)[:-2] for p in self.pages()
                 if p.endswith(".3")}
        self.assertEqual(sorted(names - declared()), [])

    def test_mandoc_has_no_warning(self):
        need_command("mandoc")
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning",
                               *self.pages()], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr, done.returncode),
                         ("", "", 0))

    def test_every_reference_to_our_pages_leads_somewhere(self):
        there = {os.path.basename(p) for p in self.pages()} | {"wq.1"}
        for path in self.pages():
            for name, section in re.findall(r"^\.(?:Pf \S+ )?Xr (wq\S*) (\d)",
                                            self.text(path), re.M):
                self.assertIn("%s.%s" % (name, section), there, path)

    def test_a_function_has_the_usual_sections(self):
        text = self.text("man3/wq_add.3")
        self.assertEqual(re.findall(r"^\.Sh (.*)$", text, re.M), [
            "NAME", "LIBRARY", "SYNOPSIS", "DESCRIPTION", "RETURN VALUES",
            "ERRORS", "THREAD SAFETY", "COST", "SEE ALSO", "STANDARDS",
            "HISTORY"])
        self.assertIn(".In wq/wq.h\n", text)
        self.assertIn(".Fn wq_add \"wq_queue *q\" \"wq_key key\"\n", text)
        self.assertIn("pkg-config --cflags --libs wq", text)
        self.assertIn(".It Dv WQ_EFULL\n", text)
        self.assertIn(".Sh EXAMPLES\n", self.text("man3/wq_next.3"))
        self.assertIn("--libs wq-sqlite", self.text("man3/wq_sqlite_open.3"))

    def test_a_summary_fits_on_a_line(self):
        for path in self.pages():
            what = re.search(r"^\.Nd (.*)$", self.text(path), re.M).group(1)
            self.assertLess(len(what), 90, path)

    def test_every_numbered_behaviour_is_in_the_page(self):
        numbers = re.findall(r"^\* \*\*([A-Z]+-\d\d)\*\*",
                             read("docs/semantics.md"), re.M)
        page = self.text("man7/wq-semantics.7")
        self.assertGreater(len(numbers), 200)
        self.assertEqual(re.findall(r"^\.It No ([A-Z]+-\d\d)$", page, re.M),
                         numbers)


# ---- the code in the headers -----------------------------------------------

# What the fragments take for granted; each of its own: what their names mean.
GIVEN = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <wq/backend.h>
#include <wq/limiter.h>
#include <wq/metrics.h>
#include <wq/workers.h>
#include <wq/sqlite.h>
extern wq_queue *q;
extern wq_item *item;
extern wq_key key, keys[3];
extern wq_err err;
extern wq_limiter *limiter;
extern wq_workers *p, *pool;
extern wq_workers_config config;
extern uint64_t id;
extern size_t n;
extern void *images, *sums;
extern const char *path;
void work_on(wq_item *item);
void stop_watching(void);
void log_line(void);
void call_server(void);
void die(const char *format, ...);
const char *engine_message(void);
bool look_after(void *ctx, wq_key key);
void resize_image(void *ctx, size_t piece);
void add(void *ctx, size_t piece);
void my_destroy(wq_queue *q);
wq_err my_add(wq_queue *q, wq_key key);
wq_err my_get(wq_queue *q, int64_t timeout_ns, wq_item **out);
wq_err my_done(wq_queue *q, wq_item *item);
wq_err my_len(wq_queue *q, size_t *out);
void my_shutdown(wq_queue *q);
bool my_shutting_down(const wq_queue *q);
"""
RECONCILE = {"wq_finish": "bool reconcile(wq_key key);",
             "wq_next_with": "wq_result reconcile(wq_key key);",
             "wq/workers.h": ""}
COMPILE = [flag for folder in HEADERS for flag in
           ("-I", os.path.join(ROOT, os.path.dirname(folder)))] + [
               "-fsyntax-only", "-x", "c", "-"]
RETURNS = {"wq_fail": "wq_err"}


def fragments():
    """(where, text) of each block of C in the headers."""
    for one in header.read_headers(ROOT):
        groups = [(one.path, one.blocks)]
        groups += [(s.title, s.blocks) for s in one.sections]
        groups += [(e.name, e.blocks) for e in one.entries()]
        for where, blocks in groups:
            yield from ((where, block.text) for block in blocks
                        if pages.is_code(block))


def program(where, code):
    """A file that contains the fragment, in a function where need be."""
    top, inside = [GIVEN, RECONCILE.get(where, "void reconcile(wq_key key);")
                   ], []
    for part in re.split(r"\n\n(?=\S)", code):
        part = re.sub(r"^( *)\.\.\.$", r"\1;", part, flags=re.M)
        outside = re.match(r"(static|struct) ", part)
        (top if outside else inside).append(part)
    return "\n".join(top + ["%s fragment(void);\n%s fragment(void)\n{" %
                            ((RETURNS.get(where, "void"),) * 2)] + inside +
                     ["}", ""])


class Fragments(unittest.TestCase):
    def test_the_code_in_the_headers_compiles(self):
        found = list(fragments())
        self.assertGreater(len(found), 15)
        for where, code in found:
            with self.subTest(where=where):
                done = subprocess.run(
                    [documents.CC, "-std=gnu11", "-Wall", "-Wextra", "-Werror",
                     "-Wno-unused", *COMPILE],
                    input=program(where, code), text=True,
                    capture_output=True)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_fragment_that_is_wrong_does_not_compile(self):
        done = subprocess.run(
            [documents.CC, *COMPILE], text=True, capture_output=True,
            input=program("wq_get", "wq_get(q);"))
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    documents.main()
