# SPDX-License-Identifier: MIT
"""How does a test run the program? In a directory of its own, to its end, or
step by step while its handlers wait for the test. And when is a test skipped?
When the machine lacks what it needs; with CI=true that is a failure."""

import json
import os
import pty
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ.get("WQ_PROGRAM", "wq")
TIMEOUT = 60  # seconds: far more than a slow machine needs


def until(condition, what):
    """Waits until condition() is true, and returns its value."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError("timed out waiting for: " + what)


# ---- skipped tests ---------------------------------------------------------

SKIPPED = 77  # the exit status that CTest reports as skipped


def need_command(name):
    """Skips the test unless the command is installed."""
    if not shutil.which(name):
        raise unittest.SkipTest(name + " is not installed")


def need_localhost():
    """Skips the test where the name has no address, for want of /etc/hosts."""
    try:
        socket.getaddrinfo("localhost", None, socket.AF_INET)
    except socket.gaierror as error:
        raise unittest.SkipTest(
            "localhost has no address: %s" % error.strerror) from error


def with_terminal(make):
    """What make() returns, pty.openpty() for example. Skips the test where
    there are no pseudo-terminals, for want of /dev/pts."""
    try:
        return make()
    except OSError as error:
        raise unittest.SkipTest(
            "no pseudo-terminals: %s" % error) from error


def open_terminal():
    """Both ends of a pseudo-terminal."""
    return with_terminal(pty.openpty)


def exit_skipped(*reasons):
    """Ends the program: nothing failed, but something was skipped."""
    for reason in reasons:
        print("skipped:", reason)
    if os.environ.get("CI") == "true":
        print("A skipped test is a failure with CI=true.")
        sys.exit(1)
    sys.exit(SKIPPED)


def main():
    """Runs the tests of the program: exit status 0 if all have passed, 1 if
    some have failed, 77 if some were skipped and none has failed."""
    result = unittest.main(module="__main__", exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.skipped:
        exit_skipped(*("%s: %s" % (test.id().split(".")[-1], why)
                       for test, why in result.skipped))


# ---- processes -------------------------------------------------------------

def state(pid):
    """The state in /proc: "S" sleeps, "T" was stopped, "Z" is a zombie."""
    with open("/proc/%d/stat" % pid, encoding="latin-1") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def is_running(pid):
    """False if it has ended, even if it is still a zombie."""
    try:
        return state(pid) not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Ended:
    """A program that has ended: status, out, err (bytes), and how many seconds
    it took."""

    def __init__(self, status, out, err, seconds=None):
        self.status, self.out, self.err = status, out, err
        self.seconds = seconds

    def lines(self):
        return self.out.decode().splitlines()


class InDirectory(unittest.TestCase):
    """A test with a directory of its own."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="wq-test-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)


class Case(InDirectory):
    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)

    def append(self, name, content):
        with open(self.path(name), "ab") as file:
            file.write(content)

    def fifo(self, name):
        """A pipe for handlers to wait at. It is opened here for reading and
        writing, so that no open() waits for the other end."""
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
    def feed(process, keys, end=True):
        """Writes these keys (bytes) to its stdin, and closes it."""
        process.stdin.write(keys)
        process.stdin.flush()
        if end:
            process.stdin.close()
            process.stdin = None

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def run_keys(self, keys, *arguments, **rest):
        """start(), with these keys (bytes) on stdin, to its end."""
        begin = time.monotonic()
        process = self.start(*arguments, **rest)
        out, err = process.communicate(keys, timeout=TIMEOUT)
        return Ended(process.returncode, out, err, time.monotonic() - begin)

    def script(self, text, *arguments):
        """A command that is a script; the key is $1."""
        return ("--", "sh", "-c", text, "sh", "{}", *arguments)

    def events(self, name="events"):
        """The events in the file of --json=FILE so far, without a last line
        that is not complete."""
        if not os.path.exists(self.path(name)):
            return []
        return [json.loads(line) for line in
                self.read(name).split(b"\n")[:-1]]

    def finished(self, field):
        """This field of all events "finished"."""
        return [event[field] for event in self.events()
                if event["event"] == "finished"]

    def await_event(self, **wanted):
        def matching():
            return [event for event in self.events()
                    if wanted.items() <= event.items()]
        return until(matching, "event %r" % wanted)

    def assert_cannot_open(self, option):
        """The option names a file that cannot be opened."""
        ended = self.run_keys(b"a\n", option + "=no/file", "--", "echo")
        self.assertEqual(ended.status, 125)
        self.assertEqual(ended.err.decode(),
                         "wq: %s: cannot open 'no/file': No such file or "
                         "directory\n" % option)
