# SPDX-License-Identifier: MIT
"""How does a picture of a page get small? A PNG of a browser has three bytes for
a pixel. A page has few colours, so one byte and a palette are enough; rare
colours, at the edges of letters, become the nearest frequent one."""

import struct
import zlib
from collections import Counter

COLOURS = 128


def chunks(png):
    at = 8
    while at < len(png):
        (size,) = struct.unpack(">I", png[at:at + 4])
        yield png[at + 4:at + 8], png[at + 8:at + 8 + size]
        at += 12 + size


def unfilter(kind, line, above, step):
    """One line of pixels, as RFC 2083 (section 6) says."""
    line = bytearray(line)
    for i, byte in enumerate(line if kind else ()):
        left = line[i - step] if i >= step else 0
        up = above[i]
        corner = above[i - step] if i >= step else 0
        guess = left + up - corner
        line[i] = byte + (0, left, up, (left + up) // 2, min(
            (left, up, corner), key=lambda v: abs(guess - v)))[kind] & 255
    return line


def pixels(png):
    """The width, and the lines as lists of colours."""
    parts = list(chunks(png))
    width, height, depth, colour = struct.unpack(">IIBB", parts[0][1][:10])
    step = {2: 3, 6: 4}[colour]
    assert depth == 8
    data = zlib.decompress(b"".join(body for name, body in parts
                                    if name == b"IDAT"))
    size, lines, above = width * step, [], bytearray(width * step)
    for at in range(0, height * (size + 1), size + 1):
        above = unfilter(data[at], data[at + 1:at + 1 + size], above, step)
        lines.append([bytes(above[i:i + 3]) for i in range(0, size, step)])
    return width, lines


def small(png):
    """The same picture, with COLOURS colours."""
    width, lines = pixels(png)
    counted = Counter(colour for line in lines for colour in line)
    palette = [colour for colour, _ in counted.most_common(COLOURS)]
    number = {colour: min(range(len(palette)), key=lambda i: sum(
        (a - b) ** 2 for a, b in zip(palette[i], colour)))
        for colour in counted}
    data = b"".join(b"\0" + bytes(map(number.__getitem__, line))
                    for line in lines)

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(
            ">I", zlib.crc32(name + body))
    return (png[:8] + chunk(b"IHDR", struct.pack(
        ">IIBBBBB", width, len(lines), 8, 3, 0, 0, 0)) +
        chunk(b"PLTE", b"".join(palette)) +
        chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))
