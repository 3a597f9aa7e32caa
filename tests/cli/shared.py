# SPDX-License-Identifier: MIT
"""How does a test use a shared queue? One in a file of the test's directory, or,
with $WQ_STORE=redis, in a server of the test program. $WQ_QUEUE names it."""

import atexit
import json
import os
import subprocess
import time

from handled import WAITING, Handled, usual_signals
from program import PROGRAM, TIMEOUT, Ended, need_command, until
from server import Server

STORE = os.environ.get("WQ_STORE", "sqlite")


def of_sqlite(test):
    """Marks a test, or a class of tests, that is about files."""
    return test if STORE == "sqlite" else None


class Shared(Handled):
    server = None  # of all tests of the program

    def setUp(self):
        super().setUp()
        if STORE == "sqlite":
            self.url = "sqlite:" + self.path("queue.db")
            return
        if not Shared.server:
            Shared.server = Server("--appendonly", "yes",
                                   "--appendfsync", "no")
            atexit.register(Shared.server.stop)
        self.server.say("FLUSHALL")
        self.url = "redis+unix://" + self.server.path

    def set_option(self, option):
        """Adds an option to the URL."""
        self.url += ("&" if "?" in self.url else "?") + option

    def set_lease(self, duration):
        """Calls may take longer than a quarter of it, on a busy machine."""
        self.set_option("lease=" + duration)
        if not self.url.startswith("sqlite:"):
            self.set_option("timeout=20s")

    def set_short_lease(self):
        """Keys of a process that dies are soon READY, also in a server."""
        if STORE == "redis":
            self.set_lease("1s")

    def await_queue(self):
        """Until the first process has opened it: its file exists a moment before
        its tables do."""
        if STORE == "sqlite":
            until(lambda: subprocess.run(
                [PROGRAM, "status"], env=self.environment(), check=False,
                capture_output=True).returncode == 0, "the tables")
        else:
            until(lambda: b":1" in self.server.say(
                "EXISTS", "wq:{default}:sess"), "the session")

    def environment(self, env=None):
        return {**os.environ, "WQ_QUEUE": self.url,
                "PATH": self.path("bin") + ":" + os.environ["PATH"],
                **(env or {})}

    def install(self):
        """Makes `wq` a command that scripts find."""
        os.makedirs(self.path("bin"), exist_ok=True)
        if not os.path.lexists(self.path("bin/wq")):
            os.symlink(os.path.abspath(PROGRAM), self.path("bin/wq"))

    def begin(self, *arguments, env=None, **rest):
        """`wq` with these arguments, in the directory."""
        rest.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(
            [PROGRAM, *arguments], cwd=self.dir, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=self.environment(env),
            preexec_fn=usual_signals, **rest)
        self.addCleanup(self.end, process)
        return process

    def wq(self, *arguments, keys=None, env=None):
        """begin(), with these keys (bytes) on stdin, to its end."""
        begin = time.monotonic()
        process = self.begin(
            *arguments, env=env,
            stdin=subprocess.DEVNULL if keys is None else subprocess.PIPE)
        out, err = process.communicate(keys, timeout=TIMEOUT)
        return Ended(process.returncode, out, err, time.monotonic() - begin)

    def done(self, *arguments, **rest):
        """wq(), which must succeed. Returns what it printed."""
        ended = self.wq(*arguments, **rest)
        self.assertEqual((ended.status, ended.err), (0, b""), arguments)
        return ended.out

    def refused(self, *arguments, status=125, **rest):
        """wq(), which must fail with one line on stderr. Returns that."""
        ended = self.wq(*arguments, **rest)
        self.assertEqual((ended.status, ended.out), (status, b""), ended.err)
        self.assertEqual(ended.err.count(b"\n"), 1, ended.err)
        self.assertTrue(ended.err.startswith(b"wq: "), ended.err)
        return ended.err.decode().rstrip("\n")

    def cannot_print(self, stdout, *arguments):
        """`wq` with this stdout, to which it cannot write. Returns what it
        says."""
        answer = subprocess.run(
            [PROGRAM, *arguments], stdout=stdout, stderr=subprocess.PIPE,
            env=self.environment(), check=False)
        self.assertEqual(answer.returncode, 125, answer.stderr)
        return answer.stderr

    def json(self, *arguments):
        """The JSON lines that it prints."""
        return [json.loads(line) for line in
                self.done(*arguments, "--json").splitlines()]

    def status(self):
        return self.json("status")[0]

    def counts(self):
        """READY, HELD, WAITING, DEAD."""
        status = self.status()
        return tuple(status[name] for name in
                     ("ready", "held", "waiting", "dead"))

    def keys(self, *states):
        """The sorted keys that have one of the states."""
        out = self.done("list", "-0",
                        *(["--state=" + ",".join(states)] if states else []))
        return sorted(out.split(b"\0")[:-1])

    def info(self, key):
        return self.json("show", key)[0]

    def await_counts(self, *counts):
        until(lambda: self.counts() == counts, "%s, not %s" %
              (counts, self.counts()))

    def worker(self, *options, script="echo begin $1 $WQ_ATTEMPT $$ >>log",
               **rest):
        """`wq work` with a handler that is a script; the key is $1."""
        return self.begin("work", *options, *self.script(script), **rest)

    def waiting(self, *options, gates="abcdefgh", **rest):
        """A worker whose handlers wait for the test."""
        for gate in gates:
            if gate not in self.gates:
                self.gates[gate] = self.fifo("gate." + gate)
        return self.worker(*options, script=WAITING, **rest)

    def need_page(self):
        """Skips the test unless a worker can serve a page."""
        need_command("curl")
        if b"--listen: not available" in self.wq(
                "work", "--listen=unix:no/where", "true").err:
            self.skipTest("wq was built without libmicrohttpd")

    def listen(self):
        """The option that makes a worker serve fetch()."""
        return "--listen=unix:" + self.path("socket")

    def fetch(self, path):
        return subprocess.run(
            ["curl", "-s", "--unix-socket", self.path("socket"),
             "http://x" + path], capture_output=True, check=True).stdout

    def shell(self, text, shell="sh", **rest):
        """A shell that runs the script, in the directory."""
        self.install()
        process = subprocess.Popen(
            [shell, "-c", text], cwd=self.dir, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.environment(), **rest)
        self.addCleanup(self.end, process)
        return process

    def shell_prints(self, text, shell="sh"):
        out, err = self.shell(text, shell).communicate(timeout=TIMEOUT)
        self.assertEqual(err, b"")
        return out.decode().splitlines()
