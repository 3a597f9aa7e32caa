# SPDX-License-Identifier: MIT
"""Which pages has the manual, and which names does each explain?

A page explains what one comment of a header is about. The string variant of a
function ("wq_add() of a string.") is on the page of that function. Each header
has an overview: its opening comment, and a list of its pages; that of wq.h is
wq(7), that of another wq-NAME(7)."""

import os
import re
from dataclasses import dataclass, field

import header


@dataclass
class Page:
    """A page of section 3. `links` are the other names that lead to it."""
    name: str
    header: header.Header
    entries: list
    links: list = field(default_factory=list)


def overview_name(path):
    """wq for wq/wq.h, wq-clock for wq/clock.h."""
    stem = os.path.basename(path).removesuffix(".h")
    return stem if stem == "wq" else "wq-" + stem


def home(entry):
    """The function on whose page the entry is; None: it has its own."""
    if len(entry.blocks) == 1:
        match = re.fullmatch(r"(wq_\w+)\(\) of a string\.",
                             entry.blocks[0].text)
        if match:
            return match.group(1)
    return None


def make_pages(headers):
    """The pages of section 3, in the order of the headers; and for each name
    that the headers define, its page: {"wq_add_str": "wq_add"}."""
    pages, names = {}, {}
    for one in headers:
        for entry in one.entries():
            name = home(entry) or entry.name
            name = names.get(name, name)
            page = pages.setdefault(name, Page(name, one, []))
            page.entries.append(entry)
            for other in entry.names():
                if other not in names:
                    names[other] = name
                    page.links += [other] if other != name else []
    return list(pages.values()), names


def plain(text):
    """The text on one line, without marks and numbers of behaviours."""
    text, _ = header.take_cites(" ".join(text.split()))
    return text.replace("`", "")


def summary(entry):
    """What the entry is, in a phrase: the beginning of its first sentence."""
    text = plain(entry.blocks[0].text)
    parts = re.split(r"(?<=[\w)])[.:;?](?=\s|$)", text)
    text = parts[0]
    if " " not in text and len(parts) > 2:
        text = parts[1].strip()  # "Drain: shut the queue down"
    for cut in (r" \(", r", ", r" and "):
        if len(text) > 70:
            text = re.split(cut, text)[0]
    first = text.split()[0]
    if first.istitle() or len(first) == 1:
        text = text[0].lower() + text[1:]
    return text.rstrip(".:;")


def is_code(block):
    """Is a block of literal text C, or a picture or table?"""
    return block.kind == "code" and re.search(r"[;{]\s*(//.*)?$", block.text,
                                              re.M) is not None


def mentioned(entries):
    """The functions that the entries name, in order, each once."""
    found = []
    for entry in entries:
        for block in entry.blocks:
            texts = [block.text] + [text for item in block.items
                                    for text in item if text]
            for text in texts:
                found += re.findall(r"\b(wq_\w+)\(\)", text)
    return list(dict.fromkeys(found))
