# SPDX-License-Identifier: MIT
"""How does a test watch a running program? With a gate that its handlers wait
at, a terminal that it draws on, and the address that it listens on."""

import fcntl
import json
import os
import re
import select
import shutil
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unicodedata
import unittest
import urllib.error
import urllib.request

from program import PROGRAM, TIMEOUT, open_terminal, until

# Waits until the gate opens, and exits with the code it reads there: one byte,
# since several handlers read at the same time.
WAIT = 'exit "$(dd bs=1 count=1 2>/dev/null <"$GATE")"'
HANDLER = ["sh", "-c", WAIT, "handler", "{}"]


class Gate:
    """Handlers wait here; open() lets one handler end for each code, which has
    one digit."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "gate")
        os.mkfifo(self.path)
        self.fd = os.open(self.path, os.O_RDWR)

    def open(self, *codes):
        os.write(self.fd, "".join(map(str, codes)).encode())

    def close(self):
        os.close(self.fd)


class Watched:
    """`wq run` with these options. Keys are lines; stdin stays open until
    end()."""

    def __init__(self, *options, keys=(), command=None, end=True, stderr=None,
                 stdout=subprocess.PIPE, environment=None):
        self.directory = tempfile.mkdtemp(prefix="wq-test-")
        self.gate = Gate(self.directory)
        self.messages = []
        self.reader = None
        self.closed = False
        every = dict(os.environ, GATE=self.gate.path)
        for name in ("NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG"):
            every.pop(name, None)
        every.update(environment or {})
        self.process = subprocess.Popen(
            [PROGRAM, "run", *options, "--", *(command or HANDLER)],
            stdin=subprocess.PIPE, stdout=stdout, env=every,
            stderr=subprocess.PIPE if stderr is None else stderr)
        if stderr is None:
            self.reader = threading.Thread(target=self._listen, daemon=True)
            self.reader.start()
        for key in keys:
            self.add(key)
        if end:
            self.end()

    def _listen(self):
        for line in self.process.stderr:
            self.messages.append(line.decode(errors="replace"))

    def add(self, key, delimiter=b"\n"):
        """A program that has ended does not read it; its status shows why."""
        key = key.encode() if isinstance(key, str) else key
        try:
            self.process.stdin.write(key + delimiter)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def end(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def await_message(self, pattern):
        """Waits for a line on stderr, and returns the match."""
        return until(lambda: next(filter(None, (
            re.search(pattern, line) for line in list(self.messages))), None),
            "%s in %s" % (pattern, self.messages))

    def url(self):
        return self.await_message(r"listening on (\S+)/\n").group(1)

    def wait(self):
        """Returns the exit status. Its stdout must fit into a pipe."""
        self.end()
        status = self.process.wait(TIMEOUT)
        if self.reader:
            self.reader.join(TIMEOUT)
        return status

    def close(self):
        """Kills it if it runs. A second call does nothing."""
        if self.closed:
            return
        self.closed = True
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.reader:
            self.reader.join(TIMEOUT)
        for pipe in (self.process.stdin, self.process.stdout,
                     self.process.stderr):
            if pipe and not pipe.closed:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass
        # In this order: a late handler finds no gate, instead of one that is
        # never opened.
        shutil.rmtree(self.directory, ignore_errors=True)
        self.gate.close()


# ---- HTTP ------------------------------------------------------------------

def get(url, method="GET", timeout=TIMEOUT, **headers):
    """(status, headers, body); write - in names of headers as _."""
    request = urllib.request.Request(url, method=method, headers={
        name.replace("_", "-"): value for name, value in headers.items()})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def view(url, query=""):
    return json.loads(get(url + "/view" + query)[2])


def metrics(url):
    """{name: value} of all metrics whose only label is the queue's name."""
    return parse_metrics(get(url + "/metrics")[2].decode())


def parse_metrics(text):
    return {m[1]: float(m[2]) for m in
            re.finditer(r'^(\w+)\{name="[^"]*"\} (\S+)$', text, re.MULTILINE)}


# ---- a terminal ------------------------------------------------------------

def width(character):
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Terminal:
    """What a user would see: a screen of cells. As in xterm, the cursor stays
    behind the last column until the next character wraps."""

    def __init__(self, columns=80, rows=24):
        self.columns, self.rows = columns, rows
        self.lines = [[]]   # of cells; the last `rows` are the screen
        self.row = self.column = 0
        self.wraps = 0      # lines that did not fit
        self.raw = b""
        self.rest = b""
        self.colours = 0
        self.strange = []   # other control characters
        self.ours, self.theirs = open_terminal()
        self._set_size()

    def _set_size(self):
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ,
                    struct.pack("HHHH", self.rows, self.columns, 0, 0))

    def resize(self, columns):
        """Wraps lines that are too long now, as most terminals do."""
        lines, row = [], 0
        for i, line in enumerate(self.lines):
            if i == self.row:
                row = len(lines)
            lines += [line[at:at + columns]
                      for at in range(0, max(len(line), 1), columns)]
        self.lines, self.row, self.columns = lines, row, columns
        self._set_size()

    def close(self):
        os.close(self.ours)
        if self.theirs is not None:
            os.close(self.theirs)

    def read(self, seconds=0.05):
        """Reads what there is; False: the other end is closed."""
        if not select.select([self.ours], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.ours, 65536)
        except OSError:
            return False
        self.raw += data
        self.feed(self.rest + data)
        return bool(data)

    def until(self, condition, what):
        end = time.monotonic() + TIMEOUT
        while not condition(self.text()):
            if time.monotonic() > end:
                raise AssertionError("timed out waiting for: %s in\n%s" %
                                     (what, self.text()))
            self.read()

    def finish(self, program):
        """Reads until the program has ended; returns its status."""
        os.close(self.theirs)
        self.theirs = None
        end = time.monotonic() + TIMEOUT
        while self.read() and time.monotonic() < end:
            pass
        return program.wait()

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)

    def feed(self, data):
        self.rest = b""
        while data:
            if data[:1] == b"\x1b":
                match = re.match(rb"\x1b\[([\d;?]*)([A-Za-z])", data)
                if not match:
                    if len(data) < 16 and re.fullmatch(rb"\x1b(\[[\d;?]*)?",
                                                       data):
                        self.rest = data  # the rest follows
                        return
                    self.strange.append(data[:8])
                    data = data[1:]
                    continue
                self._control(match[2].decode(), match[1].decode())
                data = data[match.end():]
            elif data[0] < 0x20 or data[0] == 0x7f:
                self._move(data[0])
                data = data[1:]
            else:
                length = 1 if data[0] < 0x80 else 2 if data[0] < 0xe0 else \
                    3 if data[0] < 0xf0 else 4
                if len(data) < length:
                    self.rest = data
                    return
                self._put(data[:length].decode())
                data = data[length:]

    def _line(self):
        while self.row >= len(self.lines):
            self.lines.append([])
        return self.lines[self.row]

    def _move(self, control):
        if control == 0x0d:
            self.column = 0
        elif control == 0x0a:
            self.row += 1
            self._line()
        else:
            self.strange.append(bytes([control]))

    def _control(self, verb, argument):
        n = int(argument or 0) if (argument or "0").isdigit() else 0
        top = max(0, len(self.lines) - self.rows)
        if verb == "A":
            self.row = max(top, self.row - max(n, 1))
        elif verb == "K" and not n:
            del self._line()[self.column:]
        elif verb == "J" and not n:
            del self._line()[self.column:]
            del self.lines[self.row + 1:]
        elif verb == "m":
            self.colours += 1
        else:
            self.strange.append((verb, argument))

    def _put(self, character):
        cells = width(character)
        if not cells:
            return
        if self.column + cells > self.columns:
            self.row, self.column = self.row + 1, 0
            self.wraps += 1
        line = self._line()
        line += [" "] * (self.column + cells - len(line))
        line[self.column:self.column + cells] = [character] + [""] * (cells - 1)
        self.column += cells


class AtTerminal(unittest.TestCase):
    """Tests of a program whose stderr is a terminal."""

    def terminal(self, *size):
        terminal = Terminal(*size)
        self.addCleanup(terminal.close)
        return terminal

    def start(self, terminal, *options, environment=None, **rest):
        program = Watched(
            *options, stderr=terminal.theirs,
            environment={"TERM": "xterm", **(environment or {})}, **rest)
        self.addCleanup(program.close)
        return program
