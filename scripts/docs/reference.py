# SPDX-License-Identifier: MIT
"""How does a header become a page of the site? Its comments as text, each name
with an anchor of its own: reference/wq.h.html#wq_add."""

import html
import re

import header


def cites(text):
    """Numbers of behaviours, as [Q-01 Q-02], as links."""
    return re.sub(header.CITE, lambda match: "[%s]" % " ".join(
        '<a href="wq:%s">%s</a>' % (number, number)
        for number in match.group(1).split()), text)


class Reference:
    """Renders headers. A link to a name that the headers define, or to the
    number of a behaviour, is wq:NAME, which site.py resolves."""

    def __init__(self, headers):
        self.names = {name for one in headers for entry in one.entries()
                      for name in entry.names()}

    # ---- text ----

    def inline(self, text):
        """Text of a comment as HTML: names are links, marked words are code."""
        text = html.escape(" ".join(text.split()), quote=False)
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
        text = re.sub(r"(?<![\w/.-])((?:wq|WQ)_\w+)(\(\)|\.\w+)?",
                      self.name, text)
        return cites(text)

    def name(self, match):
        name, rest = match.group(1), match.group(2) or ""
        shown = "<code>%s%s</code>" % (name, rest)
        if name not in self.names:
            return shown
        return '<a href="wq:%s">%s</a>' % (name, shown)

    def blocks(self, blocks):
        lines = []
        for block in blocks:
            if block.kind == "text" and block.text:
                lines.append("<p>%s</p>" % self.inline(block.text))
            elif block.kind == "code":
                lines.append("<pre><code>%s</code></pre>" %
                             html.escape(block.text, quote=False))
            elif block.kind == "items":
                lines += self.items(block.items)
        return lines

    def items(self, items):
        if all(term is None for term, _ in items):
            return ["<ul>", *("<li>%s</li>" % self.inline(text)
                              for _, text in items), "</ul>"]
        lines = ["<dl>"]
        for term, text in items:
            lines.append("<dt>%s</dt><dd>%s</dd>" % (
                self.inline(term or text), self.inline(text) if term else ""))
        return lines + ["</dl>"]

    # ---- declarations ----

    def signature(self, one):
        if one.kind == "function":
            start = "%s%s%s(" % (one.type, "" if one.type.endswith("*")
                                 else " ", one.name)
            line = start + ", ".join(one.parameters) + ");"
            if len(line) <= 76:
                return line
            return start + "\n    " + ",\n    ".join(one.parameters) + ");"
        return one.code

    def entry(self, entry, seen):
        names = [d.name for d in entry.declarations]
        first = names[0]
        anchors = [n for n in entry.names()[1:] if n not in seen]
        fresh = first not in seen
        seen |= set(entry.names())
        lines = ['<section class="entry">', "<h3%s>%s</h3>" % (
            ' id="%s"' % first if fresh else "",
            ", ".join("<code>%s</code>" % n for n in names))]
        constants = {c for d in entry.declarations for c in d.constants}
        lines += ['<a id="%s"></a>' % n for n in anchors if n not in constants]
        lines.append('<pre class="signature"><code>%s</code></pre>' %
                     html.escape("\n".join(
                         self.signature(d) for d in entry.declarations),
                         quote=False))
        lines += self.blocks(entry.blocks)
        for one in entry.declarations:
            lines += self.members(one, anchors)
        return lines + self.labels(entry.labels) + ["</section>"]

    def members(self, one, anchors):
        if not one.members:
            return []
        lines = ['<dl class="members">']
        for member in one.members:
            for declaration in member.declarations:
                name = declaration.split()[0]
                lines.append("<dt%s><code>%s</code></dt>" % (
                    ' id="%s"' % name if name in anchors else "",
                    html.escape(declaration, quote=False)))
            lines.append("<dd>%s</dd>" % "\n".join(self.blocks(member.blocks)))
        return lines + ["</dl>"]

    def labels(self, labels):
        parts = ["<b>%s</b> %s." % (name, self.inline(labels[name]))
                 for name in ("Threads", "Blocks", "Cost", "Since")
                 if name in labels]
        if labels["cites"]:
            parts.append(cites("[%s]" % " ".join(labels["cites"])))
        return ['<p class="labels">%s</p>' % " ".join(parts)] if parts else []

    def page(self, one):
        """The body of the page of a header."""
        lines = ["<h1><code>&lt;%s&gt;</code></h1>" % one.path,
                 "<p>%s%s. Link with <code>$(pkg-config --libs %s)</code>.</p>"
                 % (one.title[0].upper(), html.escape(one.title[1:]),
                    one.module)]
        lines += self.blocks(one.blocks)
        seen = set()
        for section in one.sections:
            if section.title:
                lines.append("<h2>%s</h2>" % (
                    section.title[0].upper() + section.title[1:]))
            lines += self.blocks(section.blocks)
            for entry in section.entries:
                lines += self.entry(entry, seen)
        return "\n".join(lines)
