#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How does the library become two files, wq.c and wq.h?

    amalgamate.py DIRECTORY     writes both, and wq/*.h, which include wq.h

wq.h is the public headers, wq.c the private headers and the sources, each
after those that it includes. In one file, names that were private to a source
meet. The script reads each source as a list of tokens, and

  - renames what the source defines at file scope for itself: static functions
    and variables, types and enumerators: `grow` of src/core/heap.c becomes
    `core_heap__grow`;
  - undefines the macros of a source at its end;
  - declares functions that sources share (wq__...) static, and hides variables
    that they share.

Members of structs have a name space of their own and keep their names, also as
arguments of a macro that takes a member. Names that a macro puts together (##)
keep theirs. A token of another kind that has the name of a renamed one (a label,
a local variable) is renamed everywhere in its source, which changes nothing.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOKEN = re.compile(r"""
    (?P<space>\s+|\\\n)
  | (?P<comment>/\*.*?\*/)
  | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)
  | (?P<sign>\.\.\.|->|\#\#|.)
""", re.VERBOSE | re.DOTALL)
# A line for the preprocessor, with those that continue it.
DIRECTIVE = re.compile(r"[ \t]*#(?:\\\n|/\*.*?\*/|[^\n])*", re.DOTALL)
INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]')
DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)(.*)", re.DOTALL)
SPECIFIERS = ("__attribute__", "_Alignas", "alignas", "__typeof__")


class Token:
    """A token: its kind and its text. `inside` is set in the body of a struct
    or union, where names are members; `member` of an argument that is one."""

    def __init__(self, kind, text):
        self.kind, self.text = kind, text
        self.inside = self.member = False


def tokens(text):
    """The tokens of a text; a directive is one token."""
    found, at, begin = [], 0, True  # begin: only blanks before it on its line
    while at < len(text):
        match = DIRECTIVE.match(text, at) if begin else None
        kind = "directive"
        if not match:
            match = TOKEN.match(text, at)
            kind = match.lastgroup
        found.append(Token(kind, match.group()))
        begin = "\n" in match.group() if kind == "space" else begin and \
            kind == "comment"
        at = match.end()
    return found


def code(list_of_tokens):
    return [t for t in list_of_tokens
            if t.kind not in ("space", "comment", "directive")]


def declarations(all_tokens):
    """The declarations and definitions at file scope, as lists of tokens with
    the bodies of functions and initialisers left out."""
    now, depth, body = [], 0, False
    for t in code(all_tokens):
        if t.text == "{":
            depth += 1
            # A type's members are kept: enumerators are names, too.
            if depth == 1:
                body = not is_type(now)
        if not (body and depth):
            now.append(t)
        if t.text == "}":
            depth -= 1
            if depth == 0 and body:
                now.append(Token("sign", "{}"))
                if not any(n.text == "=" for n in now):  # a function ends
                    yield now
                    now = []
                body = False
        elif t.text == ";" and depth == 0:
            yield now
            now = []


def is_type(before):
    """Does the next brace open the body of a struct, a union or an enum?"""
    texts = [t.text for t in before[-2:]]
    return bool(texts) and any(w in ("struct", "union", "enum") for w in texts)


def mark_members(all_tokens):
    """Set `inside` of the tokens in bodies of structs and unions."""
    stack, before = [], []
    for t in code(all_tokens):
        if t.text == "{":
            texts = [b.text for b in before[-2:]]
            stack.append(any(w in ("struct", "union") for w in texts))
        elif t.text == "}":
            stack.pop()
        t.inside = bool(stack) and stack[-1]
        before = before[-1:] + [t]


def without_specifiers(declaration):
    """The declaration without attributes and the like, and their arguments."""
    kept, skip, depth = [], False, 0
    for t in declaration:
        if skip:
            depth += (t.text == "(") - (t.text == ")")
            skip = depth > 0
        elif t.text in SPECIFIERS:
            skip = True
        else:
            kept.append(t)
    return kept


def declared(declaration):
    """The names of the functions, variables or types that are declared."""
    depth, name, names, closed = 0, None, [], False
    for i, t in enumerate(declaration):
        if t.text in "{[" or t.text == "{}":
            closed = closed or t.text == "["
        if depth == 0 and t.text in ("(", "[", "=", ",", ";", "{}"):
            after = declaration[i + 1].text if i + 1 < len(declaration) else ""
            if t.text == "(" and after == "*" and not closed:
                # a pointer to a function
                name, closed = declaration[i + 2].text, True
            if name and (not names or names[-1] != name):
                names.append(name)
            closed = True
            if t.text == ",":
                name, closed = None, False
            if t.text == "(" and after != "*":
                break  # the parameters of a function
        depth += (t.text in "({[") - (t.text in ")}]") if len(t.text) == 1 \
            else 0
        if depth == 0 and t.kind == "name" and not closed:
            name = t.text
    return names


class Macro:
    """A macro with parameters: which of them are members, and which names it
    puts together."""

    def __init__(self, parameters, body):
        self.parameters = parameters
        self.body = code(tokens(body))
        self.members = set()
        self.pasted = []
        run = []
        for i, t in enumerate(self.body):
            before = self.body[i - 1].text if i else ""
            if before in (".", "->") and t.text in parameters:
                self.members.add(parameters.index(t.text))
            if t.text == "##":
                continue
            run = run + [t.text] if before == "##" else [t.text]
            after = self.body[i + 1].text if i + 1 < len(self.body) else ""
            if len(run) > 1 and after != "##":
                self.pasted.append(run)

    def paste(self, arguments):
        values = dict(zip(self.parameters, (text_of(a) for a in arguments)))
        return {"".join(values.get(part, part) for part in run)
                for run in self.pasted}


class Macros(dict):
    """The macros with parameters of all files, by name."""

    def learn(self, all_tokens):
        for t in all_tokens:
            match = t.kind == "directive" and DEFINE.match(t.text)
            form = match and re.match(r"\(([^)]*)\)", match.group(2))
            if form:
                parameters = re.findall(r"\w+|\.\.\.", form.group(1))
                self[match.group(1)] = Macro(parameters,
                                             match.group(2)[form.end():])
        self["offsetof"] = Macro(["type", "member"], "type.member")

    def link(self):
        """A parameter that is passed on to a member's place is a member."""
        changed = True
        while changed:
            changed = False
            for macro in self.values():
                for name, arguments in self.calls(macro.body):
                    for i in self[name].members & set(range(len(arguments))):
                        text = text_of(arguments[i])
                        if text in macro.parameters:
                            at = macro.parameters.index(text)
                            changed = changed or at not in macro.members
                            macro.members.add(at)

    def calls(self, list_of_tokens):
        """Each call of a macro: its name, and its arguments as tokens."""
        for i, t in enumerate(list_of_tokens[:-1]):
            if t.text not in self or list_of_tokens[i + 1].text != "(":
                continue
            arguments, depth = [[]], 0
            for a in list_of_tokens[i + 1:]:
                depth += (a.text == "(") - (a.text == ")")
                if depth == 0:
                    break
                if a.text == "," and depth == 1:
                    arguments.append([])
                elif a is not list_of_tokens[i + 1]:
                    arguments[-1].append(a)
            yield t.text, arguments

    def mark(self, all_tokens):
        """Set `member` of arguments that are members; returns the names that
        the calls put together."""
        pasted = set()
        for name, arguments in self.calls(code(all_tokens)):
            pasted |= self[name].paste(arguments)
            for i in self[name].members & set(range(len(arguments))):
                for t in arguments[i]:
                    t.member = True
        return pasted


def private_names(all_tokens):
    """What a source defines at file scope for itself: the set of its ordinary
    names, of its enumerators and types, and of its tags."""
    ordinary, types, tags = set(), set(), set()
    for whole in declarations(all_tokens):
        declaration = without_specifiers(whole)
        texts = [t.text for t in declaration]
        for i, text in enumerate(texts[:-1]):
            if text not in ("struct", "union", "enum"):
                continue
            brace = i + 1 if texts[i + 1] == "{" else i + 2
            if brace >= len(texts) or texts[brace] != "{":
                continue
            if brace == i + 2:
                tags.add(texts[i + 1])
            if text == "enum":
                end = texts.index("}", brace)
                first = True
                for word in declaration[brace + 1:end]:
                    if first and word.kind == "name":
                        types.add(word.text)
                    first = word.text == ","
        if texts and texts[0] == "_Static_assert":
            continue
        if "typedef" in texts:
            types.update(declared(declaration))
        elif "static" in texts:
            ordinary.update(declared(declaration))
    public = re.compile("wq_", re.IGNORECASE)
    return [{n for n in names if not public.match(n)}
            for names in (ordinary, types, tags)]


def rename(all_tokens, names, prefix, macros):
    """Rename the private names of a source in place."""
    ordinary, types, tags = names
    before = ""
    for t in all_tokens:
        if t.kind == "directive":
            match = DEFINE.match(t.text)
            if match:
                inner = tokens(match.group(2))
                mark_members(inner)
                macros.mark(inner)
                rename(inner, names, prefix, macros)
                t.text = t.text[:match.start(2)] + text_of(inner)
        elif t.kind == "name":
            if before in ("struct", "union", "enum"):
                hit = t.text in tags
            elif before in (".", "->") or t.member:
                hit = False
            else:
                hit = t.text in types or (t.text in ordinary and not t.inside)
            before = t.text
            if hit:
                t.text = prefix + t.text
        elif t.kind not in ("space", "comment"):
            before = t.text


def text_of(all_tokens):
    return "".join(t.text for t in all_tokens)


def hide_shared(all_tokens):
    """Put WQ__SHARED before declarations of shared functions in a header, in
    the place of `static` if they are inline, and WQ__HIDDEN before those of
    variables."""
    for declaration in declarations(all_tokens):
        texts = [t.text for t in without_specifiers(declaration)]
        if texts[:2] == ["static", "inline"]:
            next(t for t in declaration if t.text == "static").text = \
                "WQ__SHARED"
        if {"static", "typedef", "_Static_assert"} & set(texts) or \
                texts[0] == "WQ__STORE_API" and "extern" not in texts:
            continue
        first = declaration[0]
        if "extern" in texts:
            if first.text == "WQ__STORE_API":
                first.text = "WQ__HIDDEN"
            else:
                first.text = "WQ__HIDDEN " + first.text
        elif "(" in texts and re.search(r"wq__\w+ \(", " ".join(texts)):
            first.text = "WQ__SHARED " + first.text


class Amalgamation:
    def __init__(self):
        self.seen = set()
        self.macros = Macros()

    def find(self, name, near):
        """The file of ours that an #include names; None: the system's."""
        for path in (near.parent / name, ROOT / "src" / name,
                     ROOT / "include" / name):
            if path.is_file() and path.is_relative_to(ROOT):
                return path
        return None

    def read(self, path, public):
        """Its tokens without our own #includes, and the files that these name.
        Public headers are left out of wq.c, which includes wq.h."""
        found, needs = tokens(path.read_text(encoding="utf-8")), []
        for t in found:
            match = t.kind == "directive" and INCLUDE.match(t.text)
            if not match:
                continue
            file = self.find(match.group(2), path)
            if file:
                if public or ROOT / "include" not in file.parents:
                    needs.append(file)
                t.kind, t.text = "comment", ""
        return found, needs

    def headers(self, path, public=False):
        """The text of a header after that of those that it includes."""
        if path in self.seen:
            return ""
        self.seen.add(path)
        found, needs = self.read(path, public)
        self.macros.learn(found)
        text = "".join(self.headers(need, public) for need in needs)
        if not public:
            hide_shared(found)
        return text + banner(path) + text_of(found)

    def source(self, path):
        """The text of a source; its headers were read before."""
        found, _ = self.read(path, False)
        mark_members(found)
        defined = [m.group(1) for t in found if t.kind == "directive"
                   for m in [DEFINE.match(t.text)] if m]
        macros = Macros(self.macros)
        macros.learn(found)
        macros.link()
        pasted = macros.mark(found)
        names = [kind - pasted for kind in private_names(found)]
        rename(found, names, f"{path.parent.name}_{path.stem}__", macros)
        undefs = "".join(f"#undef {name}\n" for name in dict.fromkeys(defined))
        return banner(path) + text_of(found) + undefs


def banner(path):
    return f"\n/* {'=' * 10} {path.relative_to(ROOT).as_posix()} */\n"


def squeeze(text):
    """Without blank lines in a row, which removed lines leave behind."""
    return re.sub(r"\n{3,}", "\n\n", text)


def version():
    text = (ROOT / "include/wq/version.h").read_text(encoding="utf-8")
    return ".".join(re.search(rf"WQ_VERSION_{part} (\d+)", text).group(1)
                    for part in ("MAJOR", "MINOR", "PATCH"))


def sources():
    """The sources in the order of src/CMakeLists.txt, which names them all."""
    text = (ROOT / "src/CMakeLists.txt").read_text(encoding="utf-8")
    names = re.findall(r"^  ([a-z]+/\w+\.c)$", text, re.MULTILINE)
    there = {p.relative_to(ROOT / "src").as_posix()
             for p in (ROOT / "src").glob("*/*.c")}
    if set(names) != there:
        sys.exit("amalgamate: src/CMakeLists.txt and the files of src/ differ: "
                 + " ".join(sorted(set(names) ^ there)))
    return [ROOT / "src" / name for name in names]


def opening(what):
    template = ROOT / "packaging/amalgamation" / what
    license_text = (ROOT / "LICENSE").read_text(encoding="utf-8").strip()
    lines = [(" * " + line).rstrip() for line in license_text.splitlines()]
    return (template.read_text(encoding="utf-8")
            .replace("@VERSION@", version())
            .replace(" * @LICENSE@", "\n".join(lines)))


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: amalgamate.py DIRECTORY")
    out = Path(sys.argv[1])
    (out / "wq").mkdir(parents=True, exist_ok=True)
    public = sorted((ROOT / "include/wq").glob("*.h"))
    join = Amalgamation()
    header = "".join(join.headers(path, public=True) for path in public)
    body = "".join(join.headers(need) for path in sources()
                   for need in join.read(path, False)[1])
    body += "".join(join.source(path) for path in sources())
    (out / "wq.h").write_text(opening("wq.h.in") + squeeze(header),
                              encoding="utf-8")
    (out / "wq.c").write_text(opening("wq.c.in") + squeeze(body),
                              encoding="utf-8")
    for path in public:
        (out / "wq" / path.name).write_text(
            '/* SPDX-License-Identifier: MIT */\n#include "../wq.h"\n',
            encoding="utf-8")


main()
