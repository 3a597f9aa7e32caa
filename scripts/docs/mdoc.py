# SPDX-License-Identifier: MIT
"""How is text written in mdoc(7)? Words of the headers become macros: wq_add()
a reference to its page, WQ_EINVAL a constant, a parameter an argument."""

import re

CLOSING = ".,:;)]?!"


def escape(text):
    """Text in which no character is special, in ASCII."""
    text = text.replace("\\", "\\e")
    return "".join(c if ord(c) < 128 else "\\[u%04X]" % ord(c) for c in text)


def joined(words):
    return " ".join(words)


def display(code):
    """A block of literal text."""
    lines = [".Bd -literal -offset indent"]
    for line in code.split("\n"):
        line = escape(line)
        lines.append("\\&" + line if line[:1] in (".", "'") else line)
    return lines + [".Ed"]


def item_list(items):
    """A list of (lines of the term or None, lines of the text)."""
    if all(term is None for term, _ in items):
        lines = [".Bl -bullet"]
    else:
        lines = [".Bl -tag -width Ds"]
    for term, text in items:
        if term is None and lines[0] == ".Bl -bullet":
            lines.append(".It")
        elif term is None:  # the only term is the text
            lines += head(text)
            continue
        else:
            lines += head(term)
        lines += text
    return lines + [".El"]


def head(term):
    """The lines of an item's head, which must be one line."""
    words = []
    for line in term:
        if line.startswith("."):
            words.append(line[1:])
        else:
            words += ["No", line.removeprefix("\\&")]
    return [".It " + " ".join(words)]


WORD = re.compile(r"""(?P<lead>[(["]*)
    (?:(?P<call>[a-z]\w*(?:->\w+)?)\(\)
    |(?P<page>[a-z][\w-]*)\((?P<section>[1-8])\)
    |(?P<constant>WQ_[A-Z0-9_]+)
    |(?P<field>wq_\w+\.\w+)
    |(?P<type>wq_[a-z]\w*)
    |`(?P<mark>[^`]+)`)
    (?P<trail>.*)$""", re.X)


def word(text, names, parameters, own):
    """The macro line of a word; None: it is plain. `own` are names that the
    page is about: they are not references."""
    match = WORD.match(text)
    if not match:
        return None
    lead, trail = match["lead"], match["trail"]
    inner = WORD.match(match["mark"] or "")
    if inner and not inner["lead"] and not inner["trail"]:
        match = inner  # a mark around a name adds nothing
    if match["call"]:
        known = match["call"] in names and match["call"] not in own
        macro = ("Xr %s 3" % match["call"] if known else
                 "Fn " + match["call"])
    elif match["page"]:
        macro = "Xr %s %s" % (match["page"], match["section"])
    elif match["constant"]:
        macro = "Dv " + match["constant"]
    elif match["field"]:
        macro = "Va " + match["field"]
    elif match["type"]:
        macro = "Vt " + match["type"]
    elif match["mark"] in parameters:
        macro = "Fa " + match["mark"]
    else:
        macro = 'Ql "\\&%s"' % escape(match["mark"]).replace('"', "\\(dq")
    ending = ""
    for n, c in enumerate(trail):
        if c in CLOSING:
            ending += " " + c
        else:
            ending += " Ns No \\&" + escape(trail[n:]).replace('"', "\\(dq")
            break
    if lead:
        macro = "Pf %s %s" % (escape(lead).replace('"', "\\(dq"), macro)
    return "." + macro + ending


def inline(text, names, parameters=(), own=()):
    """The lines of a text: a line for each macro, and for each sentence."""
    lines, current = [], []

    def flush():
        if current:
            line = " ".join(current)
            lines.append("\\&" + line if line[0] in ".'" else line)
            current.clear()

    for one in re.findall(r"""[(\["]*`[^`]+`\S*|\S+""", text):
        macro = word(one, names, parameters, own)
        if macro:
            flush()
            lines.append(macro)
        else:
            current.append(escape(one))
            if re.search(r"[.:?]\)?$", one):
                flush()
    flush()
    return lines
