#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How do the headers become manual pages? In mdoc(7):

    man.py DIRECTORY    writes DIRECTORY/man3 and DIRECTORY/man7

man3 has a page for each function, type and group of macros, and links for the
other names on a page; man7 has the overviews of the headers, and
wq-semantics(7), which is docs/semantics.md. Needs nothing but Python. The tests
(tests/docs) read all pages with mandoc, and know which names must have one."""

import os
import re
import shutil
import sys

import header
import markdown_man
import pages
from mdoc import display, escape, inline, item_list, joined

ROOT = os.path.normpath(os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../.."))


def date(root):
    """One date for the whole manual: that of the page of the command."""
    with open(os.path.join(root, "docs/man/wq.1"), encoding="utf-8") as file:
        return re.search(r"^\.Dd (.*)$", file.read(), re.M).group(1)


class Manual:
    """All pages, as {"man3/wq_add.3": text}, and symbolic links to them, as
    {"man3/wq_add_str.3": "wq_add.3"}."""

    def __init__(self, root):
        self.root = root
        self.date = date(root)
        self.headers = header.read_headers(root)
        self.pages, self.names = pages.make_pages(self.headers)
        self.own = []  # the names that the page being made is about
        self.files, self.links = {}, {}
        for page in self.pages:
            self.files["man3/%s.3" % page.name] = self.page(page)
        for name, target in self.names.items():
            if name != target:
                self.links["man3/%s.3" % name] = target + ".3"
        for one in self.headers:
            name = pages.overview_name(one.path)
            self.files["man7/%s.7" % name] = self.overview(one, name)
        self.files["man7/wq-semantics.7"] = self.semantics()

    # ---- parts of pages ----

    def top(self, name, section, names, what):
        lines = [".\\\" SPDX-License-Identifier: MIT",
                 ".\\\" Made from the headers by scripts/docs/man.py.",
                 ".Dd " + self.date, ".Dt %s %d" % (name, section), ".Os",
                 ".Sh NAME"]
        lines += [".Nm %s ," % one for one in names[:-1]]
        return lines + [".Nm " + names[-1], ".Nd " + escape(what)]

    def library(self, one):
        return [".Sy cc Ar program.c Li $(pkg-config --cflags --libs %s)"
                % one.module]

    def inline(self, text, parameters=()):
        return inline(text, self.names, parameters, self.own)

    def text(self, blocks, parameters=()):
        """The lines of blocks; a paragraph begins with .Pp unless it is the
        first."""
        lines = []
        for block in blocks:
            if block.kind == "text":
                if lines and not lines[-1].startswith(".Pp"):
                    lines.append(".Pp")
                lines += self.inline(block.text, parameters)
            elif block.kind == "code":
                lines += display(block.text)
            else:
                lines += item_list([
                    (term and self.inline(term, parameters),
                     self.inline(text, parameters))
                    for term, text in block.items])
        while lines and lines[-1] == ".Pp":
            lines.pop()
        return lines

    def members(self, one, parameters):
        """What each field or constant means."""
        macro = "Va" if one.kind == "struct" else "Dv"
        items = [([".%s %s" % (macro, " , ".join(
            '"%s"' % escape(d) for d in member.declarations))],
                  self.text(member.blocks, parameters))
                 for member in one.members]
        return item_list(items)

    def synopsis(self, page):
        lines = [".Sh SYNOPSIS", ".In " + page.entries[0].header]
        for entry in page.entries:
            for one in entry.declarations:
                if one.kind == "function":
                    lines += [".Ft " + quoted(one.type),
                              joined([".Fn " + one.name] +
                                     [quoted(p) for p in one.parameters])]
                elif one.kind == "macro":
                    lines.append(".Fd " + escape(one.code))
                elif one.kind == "opaque":
                    lines.append(".Vt %s ;" % quoted(one.code.rstrip(";")))
                else:
                    lines += display(one.code)
        return lines

    def page(self, page):
        """The text of a page of section 3."""
        names = [d.name for e in page.entries for d in e.declarations]
        names = [page.name] + [n for n in dict.fromkeys(names)
                               if n != page.name]
        self.own = names
        lines = self.top(page.name.upper(), 3, names,
                         pages.summary(page.entries[0]))
        lines += [".Sh LIBRARY"] + self.library(page.header) + self.synopsis(page)
        lines.append(".Sh DESCRIPTION")
        returns, errors, examples = [], [], []
        labels = {"cites": []}
        for n, entry in enumerate(page.entries):
            parameters = [re.sub(r".*\W", "", p) for d in entry.declarations
                          for p in d.parameters]
            parts = divide(entry.blocks)
            lines += [".Pp"] if n else []
            if pages.home(entry):
                lines += [".Fn %s" % entry.name, "is"]
            if not (parts["text"] or pages.home(entry)):
                lines += self.inline(pages.plain(entry.blocks[0].text),
                                     parameters)
            lines += self.text(parts["text"], parameters)
            for one in entry.declarations:
                if one.members:
                    lines += self.members(one, parameters)
            returns += self.text(parts["returns"], parameters)
            errors += self.text(parts["errors"], parameters)
            examples += self.text(parts["examples"], parameters)
            labels["cites"] += entry.labels.pop("cites", [])
            labels.update(entry.labels)
            entry.labels["cites"] = []
        for title, part in (("RETURN VALUES", returns), ("EXAMPLES", examples),
                            ("ERRORS", errors)):
            lines += [".Sh " + title] + part if part else []
        return "\n".join(lines + self.ending(page, labels)) + "\n"

    def ending(self, page, labels):
        """What the closing lines of the comments say, and other pages."""
        lines = []
        if "Threads" in labels or "Blocks" in labels:
            lines.append(".Sh THREAD SAFETY")
            if "Threads" in labels:
                lines += self.inline("Threads that may call this: %s." %
                                labels["Threads"])
            if "Blocks" in labels:
                lines += [".Pp"] if "Threads" in labels else []
                lines += self.inline("Blocks: %s." % labels["Blocks"])
        if "Cost" in labels:
            lines.append(".Sh COST")
            lines += self.inline(labels["Cost"] + ".")
        others = [(self.names[n], 3) for n in pages.mentioned(page.entries)
                  if self.names.get(n, page.name) != page.name]
        others += [(pages.overview_name(page.header.path), 7)]
        if page.header.path != "wq/wq.h":
            others.append(("wq", 7))
        cites = list(dict.fromkeys(labels["cites"]))
        others += [("wq-semantics", 7)]
        others = sorted(set(others), key=lambda o: (o[1], o[0].lower()))
        lines += references(others)
        if cites:
            lines += [".Sh STANDARDS",
                      "The behaviours " + ", ".join(cites) + " of"
                      if len(cites) > 1 else "The behaviour %s of" % cites[0],
                      ".Xr wq-semantics 7 ."]
        if "Since" in labels:
            lines += [".Sh HISTORY", "Since release %s." % labels["Since"]]
        return lines

    def overview(self, one, name):
        """The page of a header."""
        lines = self.top(name.upper(), 7, [name], one.title)
        self.own = []
        lines += [".Sh SYNOPSIS"] + self.library(one)
        lines += [".Pp", ".In " + one.path, ".Sh DESCRIPTION"]
        lines += self.text([b for b in one.blocks if b.text or b.items])
        for section in one.sections:
            entries = [e for e in section.entries if not pages.home(e)]
            if not entries and not section.blocks:
                continue
            title = section.title or "Contents"
            lines.append(".Ss " + title[0].upper() + title[1:])
            lines += self.text(section.blocks)
            if entries:
                lines += item_list([([".Xr %s 3" % e.name],
                                     self.inline(pages.summary(e)))
                                    for e in entries])
        if one.path == "wq/wq.h":
            lines.append(".Ss Other headers")
            lines += item_list([
                ([".Xr %s 7" % pages.overview_name(h.path)],
                 self.inline("<%s>: %s" % (h.path, h.title)))
                for h in self.headers[1:]])
        others = [(pages.overview_name(h.path), 7) for h in self.headers
                  if h is not one]
        others += [("wq", 1), ("wq-semantics", 7)]
        lines += references(sorted(others, key=lambda o: (o[1], o[0])))
        return "\n".join(lines) + "\n"

    def semantics(self):
        """docs/semantics.md as a page."""
        with open(os.path.join(self.root, "docs/semantics.md"),
                  encoding="utf-8") as file:
            body = markdown_man.convert(file.read(), self.names)
        lines = self.top("WQ-SEMANTICS", 7, ["wq-semantics"],
                         "every behaviour that a program may rely on")
        lines += body + references([("wq", 1), ("wq", 7)])
        return "\n".join(lines) + "\n"


def quoted(text):
    return '"%s"' % escape(text).replace('"', '\\(dq')


def references(others):
    lines = [".Sh SEE ALSO"]
    lines += [".Xr %s %d ," % other for other in others[:-1]]
    return lines + [".Xr %s %d" % others[-1]]


def divide(blocks):
    """Puts the blocks of a comment into the sections of a page. A code block
    goes to the examples, with the sentence before it."""
    parts = {"text": [], "returns": [], "errors": [], "examples": []}
    current = "text"
    for block in blocks:
        if block.kind == "text" and block.text.startswith("Returns "):
            current = "returns"
        if block.kind == "items" and (current == "returns" or
                                      any(term and term.startswith("WQ_OK")
                                          for term, _ in block.items)):
            lists_errors(parts, block)
            current = "after"
        elif block.kind == "code" and pages.is_code(block):
            lead = parts["text"].pop() if parts["text"] else None
            if lead and lead.kind == "text":
                before, last = split_lead(lead.text)
                if before:
                    parts["text"].append(header.Block("text", before))
                parts["examples"].append(header.Block("text", last))
            elif lead:
                parts["text"].append(lead)
            parts["examples"].append(block)
        elif current == "after":  # explains the list
            parts["errors"].append(block)
        else:
            parts[current].append(block)
            if current == "returns":
                current = "text" if ends(block.text) else "returns"
    return parts


def ends(text):
    return text.rstrip().endswith(".")


def split_lead(text):
    """("What it does.", "The loop of a worker:") of a text before code."""
    sentences = re.split(r"(?<=[.:])\s+(?=[A-Z])", text)
    if not text.rstrip().endswith(":") or len(sentences) == 1:
        return text.rstrip(": \n.") + ".", "For example:"
    return " ".join(sentences[:-1]), sentences[-1]


def lists_errors(parts, block):
    """A list that follows `Returns WQ_OK;`, or begins with WQ_OK."""
    items = block.items
    if parts["returns"]:
        lead = parts["returns"][-1]
        text = lead.text.rstrip(";:, \n").removesuffix(" and").rstrip(",")
        more = ", or an error below." if "WQ_OK" in text else ", and see below."
        if text.endswith("reason") or text.endswith("URL"):
            more = "."
        lead.text = text + more
    elif items[0][0] == "WQ_OK":
        parts["returns"].append(header.Block(
            "text", "Returns WQ_OK: %s." % items[0][1].rstrip(".;")))
        items = items[1:]
    if items:
        parts["errors"].append(header.Block("items", items=items))


def main(arguments):
    if len(arguments) != 1:
        sys.exit("usage: man.py DIRECTORY")
    try:
        manual = Manual(ROOT)
    except (header.BadHeader, markdown_man.BadText) as error:
        sys.exit("man.py: %s" % error)
    for folder in ("man3", "man7"):  # names that are gone leave no page
        shutil.rmtree(os.path.join(arguments[0], folder), ignore_errors=True)
        os.makedirs(os.path.join(arguments[0], folder))
    for name, text in manual.files.items():
        with open(os.path.join(arguments[0], name), "w",
                  encoding="ascii") as file:
            file.write(text)
    for name, target in manual.links.items():
        os.symlink(target, os.path.join(arguments[0], name))


if __name__ == "__main__":
    main(sys.argv[1:])
