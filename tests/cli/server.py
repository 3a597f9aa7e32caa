# SPDX-License-Identifier: MIT
"""How does a test start a Redis server of its own? On a unix socket in a
directory, without a port; it ends with the test program, however that ends."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile

from program import need_command, until

AOF = ("--appendonly", "yes", "--appendfsync", "always")


def die_with_parent():
    """In the child: PR_SET_PDEATHSIG."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Server:
    """A server. `path` is its socket."""

    def __init__(self, *options):
        need_command("redis-server")
        self.dir = tempfile.mkdtemp(prefix="wq-redis-")
        self.path = os.path.join(self.dir, "socket")
        self.process = None
        self.start(*options)

    def start(self, *options):
        """Starts it, again, with its data."""
        if os.path.exists(self.path):
            os.remove(self.path)
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.path,
             "--dir", self.dir, "--save", "", "--logfile", "log", *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            preexec_fn=die_with_parent)
        until(self.answers, "redis-server")

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError("redis-server has ended")
        try:
            reply = self.say("PING")
        except OSError:
            return False
        return reply == b"+PONG\r\n" or reply.startswith(b"-NOAUTH")

    def say(self, *words):
        """A command; the first bytes of its reply."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(60)
            s.connect(self.path)
            s.sendall(b"*%d\r\n" % len(words) + b"".join(
                b"$%d\r\n%s\r\n" % (len(word), word.encode())
                for word in words))
            return s.recv(65536)

    def version(self):
        """As wq prints it."""
        info = self.say("INFO", "server").decode()
        fields = dict(line.split(":", 1) for line in info.splitlines()
                      if ":" in line)
        if "valkey_version" in fields:
            return "Valkey " + fields["valkey_version"]
        return "Redis " + fields["redis_version"]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)
