#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How does the documentation become a site?

    site.py DIRECTORY    writes the site; an old one is replaced

A page for each document, each header (reference.py), each manual page of a
command, and each source file that a document links to. cmark-gfm reads the
Markdown, mandoc the manual page. A link to a file or an anchor that is not there
is an error, which names the document; then nothing is written. The site needs
no server and asks no other machine for anything."""

import html
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import header
from reference import Reference, cites

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "../.."))

# The navigation. A document that is not named here is in the last group.
GROUPS = [
    ("Start", ["README.md", "docs/guide/start.md", "docs/guide/README.md",
               "docs/from-client-go.md", "docs/comparison.md"]),
    ("Guide", ["docs/guide/*"]),
    ("Reference", ["reference/*", "docs/semantics.md", "docs/man/wq.1",
                   "docs/backends.md"]),
    ("Inside", ["docs/design.md", "docs/quality.md", "docs/platforms.md",
                "docs/dependencies.md", "docs/benchmarks/*"]),
    ("Project", ["*"]),
]
TITLES = {"README.md": "wq", "docs/man/wq.1": "wq(1), the command"}
ROOT_DOCUMENTS = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]


class BadSite(Exception):
    """What is wrong with the documents, a line each."""


# Code within a sentence that fits a line, such as -P4: it is not broken at its
# hyphens.
SHORT_CODE = re.compile(
    r'(?<!<pre>)<code(?: class="([^"]*)")?>([^<]{1,24})</code>')


def output_name(path):
    """Where the page of a source file is: docs/guide/README.md is
    guide/index.html."""
    if path == "README.md":
        return "index.html"
    name = path.removeprefix("docs/")
    if path.endswith("/README.md") and path.startswith("docs/"):
        return name.removesuffix("README.md") + "index.html"
    if path.endswith(".md"):
        return name.removesuffix(".md") + ".html"
    if path.startswith("docs/man/"):
        return name + ".html"
    if re.search(r"(^|/)include/wq/\w+\.h$", path):
        return "reference/%s.html" % os.path.basename(path)
    return "source/" + path + ".html"


def slug(text, used):
    """The anchor of a heading, as GitHub makes it."""
    name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
    used[name] = used.get(name, -1) + 1
    return name if used[name] == 0 else "%s-%d" % (name, used[name])


class Page:
    """A page that is being made. `source` is the file, for messages."""

    def __init__(self, source, name):
        self.source, self.name = source, name
        self.title, self.body = "", ""
        self.anchors, self.links = set(), []
        self.sections = []  # [anchor, heading, text, tag of the heading]

    def to(self, target):
        """The URL of another file of the site, from this page."""
        path, _, anchor = target.partition("#")
        url = os.path.relpath(path, os.path.dirname(self.name) or ".")
        return url + ("#" + anchor if anchor else "")


VOID = {"br", "hr", "img", "input", "link", "meta"}


class Body(HTMLParser):
    """Completes the HTML of a page: anchors of headings, links, wide tables;
    and notes what is on it."""

    def __init__(self, page, site):
        super().__init__(convert_charrefs=False)
        self.page, self.site, self.out = page, site, []
        self.used = {}        # how often each anchor was made
        self.inside = []      # the tags that are open
        self.heading = None   # (position in out, id or None, tag, text)

    def handle_starttag(self, tag, attrs):
        attrs = {name: value or "" for name, value in attrs}
        if "id" in attrs:
            self.page.anchors.add(attrs["id"])
        if tag == "a" and "href" in attrs:
            attrs["href"] = self.site.link(self.page, attrs["href"])
        elif tag == "img":
            attrs["src"] = self.site.link(self.page, attrs["src"])
            attrs["loading"] = "lazy"
        elif tag == "table":
            self.out.append('<div class="wide" tabindex="0">')
        elif tag in ("h1", "h2", "h3", "h4"):
            self.heading = (len(self.out), attrs.get("id"), tag, [])
        self.out.append("<%s%s>" % (tag, "".join(
            ' %s="%s"' % (k, html.escape(v)) for k, v in attrs.items())))
        if tag not in VOID:
            self.inside.append(tag)

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        self.inside.pop()
        self.out.append("</%s>" % tag + ("</div>" if tag == "table" else ""))
        if self.heading and tag == self.heading[2]:
            self.end_heading()

    def end_heading(self):
        position, anchor, tag, text = self.heading
        self.heading = None
        text = " ".join("".join(text).split())
        if not anchor:
            anchor = slug(text, self.used)
            self.page.anchors.add(anchor)
            self.out[position] = self.out[position].replace(
                "<" + tag, '<%s id="%s"' % (tag, html.escape(anchor)), 1)
        self.page.sections.append([anchor, text, "", tag])
        self.page.title = self.page.title or text

    def handle_data(self, data):
        self.say(data)
        escaped = html.escape(data, quote=False)
        if not {"pre", "code", "a"} & set(self.inside):
            escaped = re.sub(r'(?<=href=")wq:[^"]+', lambda match:
                             self.site.link(self.page, match.group()),
                             cites(escaped))
        self.out.append(escaped)

    def handle_entityref(self, name):
        self.say(html.unescape("&%s;" % name))
        self.out.append("&%s;" % name)

    def handle_charref(self, name):
        self.handle_entityref("#" + name)

    def say(self, text):
        if self.heading:
            self.heading[3].append(text)
        elif self.page.sections:
            self.page.sections[-1][2] += text


class Site:
    """All pages, and the files beside them."""

    def __init__(self, root):
        self.root = root
        self.headers = {self.source_of(one): one
                        for one in header.read_headers(root)}
        self.names = {}      # {"wq_add": (source, anchor)}
        for source, one in self.headers.items():
            for entry in one.entries():
                for name in entry.names():
                    self.names.setdefault(name, (source, name))
        self.reference = Reference(self.headers.values())
        self.files = {}      # what is copied: {name in the site: path}
        self.pages = {}      # {source: Page}
        self.problems = []
        self.waiting = self.documents()
        while self.waiting:  # a page may link to further source files
            source = self.waiting.pop(0)
            self.pages[source] = self.make(source)
        self.check_anchors()
        if self.problems:
            raise BadSite("\n".join(sorted(set(self.problems))))

    def path(self, name):
        return os.path.join(self.root, name)

    def source_of(self, one):
        """The file of a header, in the tree."""
        for folder in ["."] + ["backends/" + b for b in
                               os.listdir(self.path("backends"))]:
            name = os.path.normpath(folder + "/include/" + one.path)
            if os.path.exists(self.path(name)):
                return name
        raise BadSite("%s: not found" % one.path)

    def documents(self):
        found = [d for d in ROOT_DOCUMENTS if os.path.exists(self.path(d))]
        for folder, folders, names in os.walk(self.path("docs")):
            folders.sort()
            found += [os.path.relpath(os.path.join(folder, n), self.root)
                      for n in sorted(names) if n.endswith((".md", ".1"))]
        return found + list(self.headers)

    # ---- links ----

    def link(self, page, url):
        """The URL for the site of a link in a document."""
        if url.startswith("wq:"):
            name = url.removeprefix("wq:")
            source, anchor = self.names.get(name,
                                            ("docs/semantics.md", name))
            return self.link_to(page, source, anchor, "[%s]" % name)
        if re.match(r"(https?|mailto):", url):
            return url
        path, _, anchor = url.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(page.source),
                                               path)) if path else page.source
        there = self.path(target)
        if target.startswith("..") or not os.path.exists(there):
            self.problems.append("%s: dead link: %s" % (page.source, url))
            return url
        if target.endswith((".svg", ".png", ".json")) and target.startswith(
                "docs/"):
            name = target.removeprefix("docs/")
            self.files[name] = there
            return page.to(name)
        if os.path.exists(there + "/README.md"):
            target += "/README.md"
        return self.link_to(page, target, anchor, url)

    def link_to(self, page, target, anchor, url):
        if target not in self.pages and target not in self.waiting and (
                target != page.source):
            self.waiting.append(target)
        page.links.append((target, anchor, url))
        return page.to(output_name(target) + ("#" + anchor if anchor else ""))

    def check_anchors(self):
        for page in self.pages.values():
            for target, anchor, url in page.links:
                if anchor and anchor not in self.pages[target].anchors:
                    self.problems.append("%s: dead link: %s: no such anchor" % (
                        page.source, url))

    # ---- pages ----

    def make(self, source):
        page = Page(source, output_name(source))
        page.title = TITLES.get(source, "")
        if source in self.headers:
            page.title = "<%s>" % self.headers[source].path
            body = self.reference.page(self.headers[source])
        elif source.endswith(".md"):
            body = self.markdown(source)
        elif source.endswith(".1"):
            body = "<h1>%s</h1>" % page.title + re.sub(
                r"(</?h)([12])", lambda m: m[1] + str(int(m[2]) + 1),
                run("mandoc", "-T", "html", "-O", "fragment",
                    self.path(source)))
        elif os.path.isdir(self.path(source)):
            page.title = source + "/"
            body = self.folder(source)
        else:
            page.title = source
            body = "<h1>%s</h1><pre><code>%s</code></pre>" % (
                source, html.escape(self.read(source), quote=False))
        parser = Body(page, self)
        parser.feed(body)
        parser.close()
        page.body = SHORT_CODE.sub(r'<code class="\1 short">\2</code>',
                                   "".join(parser.out))
        return page

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def markdown(self, source):
        """The HTML of a document; names of the API in it become links."""
        body = run("cmark-gfm", "-e", "table", "-e", "strikethrough",
                   self.path(source))
        if source == "docs/semantics.md":
            body = re.sub(r"<li>(<p>)?<strong>([A-Z]+-\d\d)</strong>",
                          r'<li id="\2">\1<strong>\2</strong>', body)
        return re.sub(r"(?<!<pre>)<code>((?:wq|WQ)_\w+)([^<]*)</code>(?!</a>)",
                      self.mark, body)

    def mark(self, match):
        if match.group(1) not in self.names:
            return match.group()
        return '<a href="wq:%s">%s</a>' % (match.group(1), match.group())

    def folder(self, source):
        names = sorted(n for n in os.listdir(self.path(source))
                       if os.path.isfile(self.path(source + "/" + n)))
        base = os.path.basename(source)
        return "<h1>%s/</h1><ul>%s</ul>" % (source, "".join(
            '<li><a href="%s/%s">%s</a></li>' % (base, n, n) for n in names))

    # ---- around the pages ----

    def groups(self):
        """The navigation: (title, pages)."""
        left = [s for s in self.pages
                if not output_name(s).startswith("source/")]
        found = []
        for title, patterns in GROUPS:
            sources = []
            for pattern in patterns:
                folder = pattern.removesuffix("*")
                take = [s for s in left if s == pattern or (
                    pattern.endswith("*") and
                    (s.startswith(folder) or
                     output_name(s).startswith(folder)))]
                sources += self.in_reading_order(folder, take)
                left = [s for s in left if s not in take]
            if sources:
                found.append((title, [self.pages[s] for s in sources]))
        return found

    def in_reading_order(self, folder, sources):
        """Those of a folder: its README, then as the README links to them."""
        readme = folder + "README.md"
        links = [t for t, _, _ in self.pages[readme].links] if (
            readme in self.pages and folder) else []
        return sorted(sources, key=lambda s: (
            s != readme, links.index(s) if s in links else len(links)))

    def navigation(self, page):
        lines = []
        for title, members in self.groups():
            lines.append("<h2>%s</h2><ul>" % title)
            for one in members:
                here = ' aria-current="page"' if one is page else ""
                lines.append('<li><a href="%s"%s>%s</a>' % (
                    page.to(one.name), here, html.escape(one.title)))
                if one is page:
                    lines += ["<ul>", *(
                        '<li><a href="#%s">%s</a></li>' % (a, html.escape(t))
                        for a, t, _, tag in one.sections if tag == "h2"),
                        "</ul>"]
                lines.append("</li>")
            lines.append("</ul>")
        return "\n".join(lines)

    def whole(self, page):
        with open(os.path.join(HERE, "page.html"), encoding="utf-8") as file:
            text = file.read()
        for name, value in (("title", html.escape(page.title)),
                            ("root", page.to(".")),
                            ("source", html.escape(page.source)),
                            ("navigation", self.navigation(page)),
                            ("body", page.body)):
            text = text.replace("{{%s}}" % name, value)
        return text

    def index(self):
        """For site.js: [page, its title, anchor, heading, text] a section, in
        the order of the navigation."""
        found = []
        for page in (p for _, members in self.groups() for p in members):
            for anchor, heading, text, _ in page.sections:
                found.append([page.name, page.title, anchor, heading,
                              " ".join(text.split())])
        return found

    def write(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        texts = {page.name: self.whole(page) for page in self.pages.values()}
        texts["search-index.js"] = "var wqIndex = %s;\n" % json.dumps(
            self.index(), ensure_ascii=False, separators=(",", ":"))
        for name, text in texts.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        for name in ("site.css", "site.js"):
            shutil.copy(os.path.join(HERE, name), folder)
        for name, path in self.files.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)),
                        exist_ok=True)
            shutil.copy(path, os.path.join(folder, name))


def run(*command):
    """What a program prints."""
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE,
                              encoding="utf-8").stdout
    except FileNotFoundError:
        raise BadSite("%s is not installed: scripts/deps.sh docs"
                      % command[0]) from None


def main(arguments):
    if len(arguments) not in (1, 2):
        sys.exit("usage: site.py DIRECTORY [ROOT]")
    root = arguments[1] if len(arguments) == 2 else ROOT
    try:
        site = Site(root)
        site.write(arguments[0])
    except (BadSite, header.BadHeader) as error:
        sys.exit("site.py: %s" % error)
    print("%s/index.html: %d pages" % (arguments[0], len(site.pages)))


if __name__ == "__main__":
    main(sys.argv[1:])
