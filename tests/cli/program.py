# SPDX-License-Identifier: MIT
"""How does a test run the program? In a directory of its own, to its end, or
step by step while its handlers wait for the test."""

import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ.get("WQ_PROGRAM", "wq")
PATIENCE = 60  # seconds; nobody waits so long unless something is broken


def until(condition, what):
    """Waits until condition() is true, and returns what it was."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError("in vain: " + what)


class Ended:
    """What a program left behind: status, out, err (bytes)."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def lines(self):
        return self.out.decode().splitlines()


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="wq-test-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)

    def fifo(self, name):
        """A pipe for handlers to wait at. Opened here for both, so that
        nobody waits for somebody to open the other end."""
        os.mkfifo(self.path(name))
        fd = os.open(self.path(name), os.O_RDWR)
        self.addCleanup(os.close, fd)
        return fd

    def start(self, *arguments, env=None, **rest):
        """`wq run` with these arguments, in the directory."""
        rest.setdefault("stdin", subprocess.PIPE)
        rest.setdefault("stdout", subprocess.PIPE)
        rest.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen(
            [PROGRAM, "run", *arguments], cwd=self.dir,
            env={**os.environ, **(env or {})}, **rest)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def run_keys(self, keys, *arguments, **rest):
        """The same to its end, with these keys (bytes) on stdin."""
        process = self.start(*arguments, **rest)
        out, err = process.communicate(keys, timeout=PATIENCE)
        return Ended(process.returncode, out, err)

    def script(self, text, *arguments):
        """A command that is a script; the key is $1."""
        return ("--", "sh", "-c", text, "sh", "{}", *arguments)

    def events(self, name="events"):
        """What --json=FILE says so far; a line that is not complete does not
        count."""
        if not os.path.exists(self.path(name)):
            return []
        return [json.loads(line) for line in
                self.read(name).split(b"\n")[:-1]]

    def await_event(self, **wanted):
        def there():
            return [event for event in self.events()
                    if wanted.items() <= event.items()]
        return until(there, "event %r" % wanted)
