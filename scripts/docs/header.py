# SPDX-License-Identifier: MIT
"""What do the public headers declare, and what do their comments say?

The headers are the manual. This module reads them as data, for man.py and
site.py; its tests are tests/docs/test_header.py. It relies on the form of our
headers, which docs/design.md and CONTRIBUTING.md describe:

  - the comment of a declaration ends on the line before it;
  - declarations that follow without a comment or blank line share the comment;
  - a comment that begins with a row of dashes begins a section;
  - a comment that begins with "Internal:" hides what it is about, and so does a
    double underscore in a name.

A declaration without a comment is an error, which names the file and line."""

import glob
import os
import re
from dataclasses import dataclass, field


class BadHeader(Exception):
    """The form of a header is not the one above."""


# ---- the text of a comment -------------------------------------------------

@dataclass
class Block:
    """A part of a comment. `kind` is
    text      `text`, a paragraph; lines end as in the comment
    code      `text`, line by line
    items     `items`, each (term or None, text); a term is what stands before
              two spaces, or before a colon in a list of errors"""
    kind: str
    text: str = ""
    items: list = field(default_factory=list)


def strip_comment(comment):
    """The lines of a comment, without its stars and its margin."""
    lines = comment[2:-2].split("\n")
    lines[0] = lines[0].removeprefix(" ")
    for n, line in enumerate(lines[1:], 1):
        stripped = line.lstrip()
        if stripped.startswith("*"):
            lines[n] = stripped[1:].removeprefix(" ")
        else:
            lines[n] = stripped
    lines = [line.rstrip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def indent(line):
    return len(line) - len(line.lstrip())


def paragraphs(lines):
    """Splits at blank lines; code keeps its blank lines."""
    found, code = [], False
    for line in lines:
        if not line:
            found.append([])
        elif not found or found[-1] == []:
            is_code = indent(line) >= 4
            if is_code and code and len(found) > 1:
                found.pop()
                found[-1] += ["", line]
            elif found and found[-1] == []:
                found[-1] = [line]
            else:
                found.append([line])
            code = is_code
        elif code and indent(line) < 4:
            found.append([line])
            code = False
        else:
            found[-1].append(line)
    return [p for p in found if p]


def split_term(line, errors):
    """(term, text) of a line that begins an item."""
    line = line.strip()
    match = re.match(r"(\S.*?)\s{2,}(\S.*)$", line)
    if match:
        return match.groups()
    if line.startswith("- "):
        return (None, line[2:])
    if errors and ": " in line:
        return tuple(line.split(": ", 1))
    return (None, line)


def read_paragraph(lines):
    """The blocks of one paragraph: text, with lists of indented lines."""
    if indent(lines[0]) >= 4:
        margin = min(indent(line) for line in lines if line)
        return [Block("code", "\n".join(line[margin:] for line in lines))]
    blocks, base = [], None
    errors = lines[0].startswith("Returns")
    aligned = re.match(r"Returns (WQ_\w+)\s{2,}(\S.*)$", lines[0])
    if aligned:
        blocks.append(Block("items", items=[aligned.groups()]))
        base, lines = 8, lines[1:]
    for n, line in enumerate(lines):
        depth = indent(line)
        if depth == 0:
            if blocks and blocks[-1].kind == "text":
                blocks[-1].text += "\n" + line
            else:
                blocks.append(Block("text", line))
            base = None
        elif base is None or depth <= base:
            if base is None:
                blocks.append(Block("items"))
                base = depth
            item = split_term(line, errors)
            # A term may have a line of its own, or two; its text is below.
            below = indent((lines + [""])[n + 1])
            items = blocks[-1].items
            if items and items[-1][1] == "" and items[-1][0].endswith(","):
                item = (items.pop()[0] + " " + line.strip(), "")
            elif item[0] is None and not line.strip().startswith("- ") and (
                    below > base + 2 or line.endswith(",") and below == base):
                item = (line.strip(), "")
            items.append(item)
        else:
            term, text = blocks[-1].items[-1]
            blocks[-1].items[-1] = (term, (text + " " + line.strip()).strip())
    return blocks


def read_text(comment):
    """The blocks of a comment."""
    blocks = []
    for lines in paragraphs(strip_comment(comment)):
        new = read_paragraph(lines)
        # A list may go on after a blank line.
        if (blocks and new and blocks[-1].kind == new[0].kind == "items" and
                len(new) == 1):
            blocks[-1].items += new[0].items
        else:
            blocks += new
    return blocks


LABELS = r"Threads, Blocks|Threads|Blocks|Cost|Since"


def take_labels(blocks):
    """Removes the closing lines (Threads: any.  Blocks: never. ... [Q-01]) from
    the blocks, and returns them: {"Threads": "any", ..., "cites": [...]}."""
    labels = {"cites": []}
    kept = []
    for block in blocks:
        if block.kind == "text":
            match = re.search(r"(?:^|\n|  )(?:%s): " % LABELS, block.text)
            if match:
                rest = block.text[match.start():]
                block = Block("text", block.text[:match.start()].rstrip())
                parts = re.split(r"(?:^|\n|  )(%s): " % LABELS, rest)
                for name, text in zip(parts[1::2], parts[2::2]):
                    text, cites = take_cites(" ".join(text.split()))
                    labels["cites"] += cites
                    for one in name.split(", "):
                        labels[one] = text.strip().removesuffix(".")
            elif re.fullmatch(r"\[[A-Z0-9 \n-]+\]", block.text):
                labels["cites"] += take_cites(block.text)[1]
                continue
            if not block.text:
                continue
        kept.append(block)
    return kept, labels


CITE = r"\[([A-Z]+-\d\d(?:\s[A-Z]+-\d\d)*)\]"


def take_cites(text):
    """The text without the numbers in brackets, and the numbers."""
    cites = [n for found in re.findall(CITE, text) for n in found.split()]
    return re.sub(r"\s*" + CITE, "", text), cites


# ---- declarations ----------------------------------------------------------

@dataclass
class Member:
    """Fields of a struct, or constants of an enum, that share a comment."""
    declarations: list
    blocks: list
    closed: bool = False  # its comment ends the line: the next has its own


@dataclass
class Declaration:
    """One declaration, without comments, on lines as in the header."""
    kind: str          # function, macro, struct, enum, type, opaque
    name: str
    code: str
    type: str = ""     # what a function returns
    parameters: list = field(default_factory=list)
    members: list = field(default_factory=list)  # of Member
    constants: list = field(default_factory=list)
    uses: str = ""     # the struct whose size a macro sets


@dataclass
class Entry:
    """What one comment is about."""
    header: str        # "wq/wq.h"
    line: int
    section: str
    declarations: list
    blocks: list
    labels: dict

    @property
    def name(self):
        return self.declarations[0].name

    def names(self):
        """All names that the entry explains, the main one first."""
        found = []
        for one in self.declarations:
            found += [one.name] + one.constants
        return found


@dataclass
class Section:
    """Part of a header: what its comment says, and what is in it."""
    title: str
    blocks: list
    entries: list = field(default_factory=list)


@dataclass
class Header:
    """A public header. `module` is its name for pkg-config."""
    path: str          # "wq/wq.h"
    module: str
    title: str
    blocks: list
    sections: list

    def entries(self):
        return [entry for section in self.sections for entry in section.entries]


def without_comments(code):
    return re.sub(r"[ \t]*/\*.*?\*/[ \t]*", " ", code, flags=re.S)


def one_line(code):
    return " ".join(code.split())


def is_internal(name):
    return "__" in name


def split_parameters(text):
    """Splits at the commas that are not within parentheses."""
    parts, depth = [""], 0
    for c in text:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [re.sub(r"\* ", "*", one_line(part)) for part in parts]


def read_members(body, end):
    """The members of a struct (end ";") or of an enum (end ",")."""
    members, pending, last_end = [], [], None
    token = re.compile(r"/\*.*?\*/|[^%s/]+(?:%s|(?=/\*)|$)" % (end, end), re.S)
    position = 0
    while True:
        match = token.search(body, position)
        if not match:
            return members
        text, position = match.group(), match.end()
        if text.startswith("/*"):
            between = body[last_end:match.start()] if last_end else "\n"
            if last_end and "\n" not in between:  # on the line of a member
                before = members[-1]
                declaration = before.declarations[-1]
                if len(before.declarations) > 1:
                    before.declarations.pop()
                    before = Member([declaration], [])
                    members.append(before)
                before.blocks += read_text(text)
                before.closed = True
                last_end = None
            else:
                pending += read_text(text)
        elif text.strip(" \n" + end):
            declaration = one_line(text.strip().removesuffix(end))
            last_end = position
            blank = re.match(r"\s*\n\s*\n", text)
            if pending or not members or blank or members[-1].closed:
                members.append(Member([declaration], pending))
            else:
                members[-1].declarations.append(declaration)
            pending = []


def x_macro(text, name):
    """The members of an enum that a list macro makes: X(NAME, 1, "text")."""
    body = re.search(r"#define %s\(X\)((?:.*\\\n)*.*)" % name, text).group(1)
    return [Member([one], [Block("text", said)]) for one, said in
            re.findall(r'X\((\w+), \d+, "([^"]*)"\)', body)]


def read_declaration(code, text):
    """A Declaration; None if it is internal, or declares nothing."""
    bare = one_line(without_comments(code))
    shown = "\n".join(line.rstrip() for line in
                      without_comments(code).strip().split("\n")
                      if line.strip())
    match = re.match(r"#\s*define (\w+)(\([^)]*\))?", bare)
    if match:
        name = match.group(1)
        if is_internal(name) or name.endswith("_H"):
            return None
        uses = re.search(r"sizeof\((wq_\w+)\)", bare)
        shown = name + (match.group(2) or "")
        value = bare[match.end():].strip(" \\")
        if not match.group(2) and re.fullmatch(r"\w+", value):
            shown += " " + value
        return Declaration("macro", name, "#define " + shown,
                           uses=uses.group(1) if uses else "")
    match = re.match(r"(?:typedef )?(struct|enum) (\w+) \{(.*)\} ?(\w*) ?;$",
                     bare)
    if match:
        kind, name = match.group(1), match.group(4) or match.group(2)
        body = code[code.index("{") + 1:code.rindex("}")]
        list_macro = re.fullmatch(r"\s*(\w+)\(\w+\)\s*", body)
        if list_macro:
            members = x_macro(text, list_macro.group(1))
            shown = "typedef enum %s { %s, ... } %s;" % (
                match.group(2), members[0].declarations[0], name)
        else:
            members = read_members(body, ";" if kind == "struct" else ",")
        constants = []
        if kind == "enum":
            constants = [one.split()[0] for member in members
                         for one in member.declarations]
        return Declaration(kind, name, shown, members=members,
                           constants=constants)
    match = re.match(r"typedef struct \w+ (\w+);$", bare)
    if match:
        return Declaration("opaque", match.group(1), bare)
    match = re.match(r"typedef (.*?)\(\*(\w+)\)\((.*)\);$", bare)
    if match:
        return Declaration("type", match.group(2), shown)
    bare = re.sub(r" WQ_PRINTF\([^)]*\)", "", bare)
    match = re.match(r"((?:\w+ |\*)+?)(\**)(\w+) ?\((.*?)\)(;| \{.*)$", bare)
    if not match:
        raise BadHeader("cannot read this declaration: %s" % bare[:60])
    result, stars, name, parameters, _ = match.groups()
    if is_internal(name):
        return None
    result = re.sub(r"\b(WQ_API|WQ_NODISCARD|WQ__STORE_API|static|inline) ?",
                    "", result).strip()
    return Declaration("function", name, "",
                       (result + " " + stars).strip(),
                       split_parameters(parameters))


def tokens(text):
    """(line, kind, code) of each comment, directive, declaration; "blank" for
    one or more blank lines."""
    position = 0
    pattern = re.compile(r"(?P<space>\s+)|(?P<comment>/\*.*?\*/)|"
                         r"(?P<directive>\#(?:[^\n]*\\\n)*[^\n]*)|"
                         r"(?P<brace>extern \"C\" \{|\})|(?P<code>\w)", re.S)
    while position < len(text):
        match = pattern.match(text, position)
        if not match:
            raise BadHeader("line %d: what is %r?" % (
                text.count("\n", 0, position) + 1, text[position:position + 20]))
        kind, end = match.lastgroup, match.end()
        if kind == "code":
            end = end_of_declaration(text, position)
        code = text[position:end]
        if kind == "space":
            kind = "blank" if code.count("\n") > 1 else None
        if kind:
            yield text.count("\n", 0, position) + 1, kind, code
        position = end


def end_of_declaration(text, position):
    """Where the declaration ends that begins at `position`: with its semicolon,
    or with the body of a function; and a comment on the same line."""
    depth = 0
    for match in re.compile(r"/\*.*?\*/|[(){};]", re.S).finditer(text, position):
        token = match.group()
        if token in "({":
            depth += 1
        elif token in ")}":
            depth -= 1
        function = token == "}" and "inline" in text[position:match.start()]
        if depth == 0 and (token == ";" or function):
            return match.end()
    raise BadHeader("a declaration does not end")


def read_header(path, name, module):
    """The Header in the file `path`, which programs include as `name`."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    reader = Reader(path, name, text)
    header = Header(name, module, "", [], reader.sections)
    for line, kind, code in tokens(text):
        try:
            reader.take(line, kind, code)
        except BadHeader as error:
            raise BadHeader("%s:%d: %s" % (path, line, error)) from None
    header.blocks = reader.opening
    if not header.blocks:
        raise BadHeader("%s: no opening comment" % path)
    # "wq.h: the queue. This header is the manual."
    first = header.blocks[0].text
    match = re.match(r"\S+: (.+?)\.(?:\s+|$)", first, re.S)
    header.title = one_line(match.group(1))
    header.blocks[0].text = first[match.end():]
    return header


class Reader:
    """Puts the tokens of one header together."""

    def __init__(self, path, name, text):
        self.path, self.name, self.text = path, name, text
        self.opening, self.sections = [], [Section("", [])]
        self.pending = None   # a comment that waits for its declaration
        self.open = None      # the entry that a declaration without one joins
        self.hidden = False   # the last comment began with "Internal:"

    def take(self, line, kind, code):
        if kind == "blank":
            self.pending = self.open = None
            self.hidden = False
        elif kind == "comment":
            self.comment(line, code)
        elif kind == "code" or code.startswith("#define"):
            self.declaration(line, code)

    def comment(self, line, code):
        if line == 1:
            return  # the license
        if not self.opening:
            self.opening = read_text(code)
            return
        words = strip_comment(code)
        if words[0].startswith("--"):
            title = words[0].strip("- ")
            body = read_text("/*" + "\n * ".join([""] + words[1:]) + "*/")
            self.sections.append(Section(title, body))
            self.pending = body or None
            return
        self.hidden = words[0].startswith("Internal:")
        if self.open and len(words) == 1 and self.after:
            self.after = False  # on the line of a declaration
            return
        self.pending = read_text(code)
        self.open = None

    def declaration(self, line, code):
        one = read_declaration(code, self.text)
        if not one or self.hidden:
            return
        section = self.sections[-1]
        if self.pending is None and self.open:
            self.open.declarations.append(one)
        elif self.pending is None:
            if one.kind == "opaque":
                return  # another header says what it is
            owner = [e for s in self.sections for e in s.entries
                     if one.uses and e.name == one.uses]
            if not owner:
                raise BadHeader("%s has no comment" % one.name)
            owner[0].declarations.append(one)
        else:
            if self.pending is section.blocks:
                section.blocks = []  # it is about this declaration
            blocks, labels = take_labels(self.pending)
            self.open = Entry(self.name, line, section.title, [one], blocks,
                              labels)
            section.entries.append(self.open)
        self.pending, self.after = None, True


def read_headers(root):
    """All public headers below `root`: of the library, wq.h first, then of the
    backends."""
    found = []
    for folder, module in [("include/wq", "wq")] + [
            (os.path.relpath(f, root), "wq-" + f.split(os.sep)[-3])
            for f in sorted(glob.glob(os.path.join(
                root, "backends/*/include/wq")))]:
        names = sorted(os.listdir(os.path.join(root, folder)),
                       key=lambda n: (n != "wq.h", n))
        for name in names:
            if name.endswith(".h"):
                found.append(read_header(os.path.join(root, folder, name),
                                         "wq/" + name, module))
    return found
