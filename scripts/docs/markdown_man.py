# SPDX-License-Identifier: MIT
"""How does docs/semantics.md become a manual page? It has headings, paragraphs,
tables and lists of one line an item; anything else is an error."""

import re

from mdoc import inline, item_list


class BadText(Exception):
    """The document has something that this module does not know."""


def unmarked(text):
    """Text without links and emphasis; marks of code stay."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\*{1,2}([^*]+)\*{1,2}", r"\1", text)


def cells(line):
    return [cell.strip() for cell in
            re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def convert(text, names):
    """The lines of the page, from its first section on."""
    lines = [".Sh DESCRIPTION"]

    def say(part):
        return inline(unmarked(part), names)

    for block in re.split(r"\n{2,}", text):
        rows = block.strip().split("\n")
        if rows[0].startswith("<!--"):
            rows = rows[1:]
        if rows and rows[0].startswith("# "):
            rows = rows[1:]
        if not rows or not rows[0]:
            continue
        if rows[0].startswith("#"):
            title = unmarked(rows[0].lstrip("# ")).replace("`", "")
            lines.append(".Ss " + title)
        elif rows[0].startswith("|"):
            # A row is an item: the first cell, the second, and where.
            items = []
            for row in rows[2:]:
                first, *rest = cells(row)
                rest = [cell for cell in rest if cell]
                if rest:
                    items.append((say(first), say(" ".join(rest))))
                elif items:
                    lines += item_list(items)
                    items = []
            lines += item_list(items)
        elif rows[0].startswith("* "):
            items = re.findall(r"^\* (.*(?:\n .*)*)", block, re.M)
            pairs = []
            for item in items:
                match = re.match(r"\*\*([A-Z]+-\d\d)\*\* (.*)", item, re.S)
                pairs.append((say(match.group(1)), say(match.group(2)))
                             if match else (None, say(item)))
            lines += item_list(pairs)
        elif re.match(r"```|~~~|\d+\. |- |> ", rows[0]):
            raise BadText("semantics.md: not a paragraph, table or list of "
                          "stars: " + rows[0])
        else:
            if not lines[-1].startswith((".Sh", ".Ss")):
                lines.append(".Pp")
            lines += say(" ".join(rows))
    return lines
