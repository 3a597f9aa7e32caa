# SPDX-License-Identifier: MIT
"""How does a test decide when and how a run ends? The handler writes down that
it has begun, and waits until the test lets it go with an exit code."""

import os
import signal

from program import PATIENCE, Case, Ended, until

# One write() a line: they do not mix. The gate is a FIFO of the key's name.
WAITING = """
echo "begin $1 $WQ_ATTEMPT $$" >>log
read code <"gate.$1"
echo "end $1 $code $$" >>log
exit "$code"
"""


def usual_signals():
    """As for a program that is started at a prompt."""
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)


def is_running(pid):
    """Not gone, and not a zombie either."""
    try:
        with open("/proc/%d/stat" % pid, encoding="latin-1") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def state(pid):
    """"S": sleeps, "T": was stopped."""
    with open("/proc/%d/stat" % pid, encoding="latin-1") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


class Handled(Case):
    def setUp(self):
        super().setUp()
        self.gates = {}

    def start(self, *arguments, **rest):
        rest.setdefault("preexec_fn", usual_signals)
        return super().start(*arguments, **rest)

    def started(self, keys, *options, gates="abcdefgh", **rest):
        """The program, with handlers that wait, reading these keys."""
        for gate in gates:
            if gate not in self.gates:
                self.gates[gate] = self.fifo("gate." + gate)
        process = self.start(*options, *self.script(WAITING), **rest)
        self.feed(process, keys)
        return process

    @staticmethod
    def feed(process, keys, end=True):
        process.stdin.write(keys)
        process.stdin.flush()
        if end:
            process.stdin.close()
            process.stdin = None

    def let_go(self, key, code=0):
        os.write(self.gates[key], b"%d\n" % code)

    def log(self):
        """All lines, as lists of words."""
        if not os.path.exists(self.path("log")):
            return []
        return [line.split() for line in
                self.read("log").decode().split("\n")[:-1]]

    def begun(self):
        return [line[1] for line in self.log() if line[0] == "begin"]

    def pid(self, key):
        return [int(line[3]) for line in self.log()
                if line[:2] == ["begin", key]][-1]

    def await_begun(self, *keys):
        """Waits until exactly these have begun, in any order."""
        until(lambda: len(self.begun()) >= len(keys), "runs of %s, not %s" %
              (keys, self.begun()))
        self.assertEqual(sorted(self.begun()), sorted(keys))

    def ended(self, process):
        out, err = process.communicate(timeout=PATIENCE)
        return Ended(process.returncode, out, err)

    def await_stopped(self, pid):
        until(lambda: state(pid) == "T", "a stopped process")

    def signalled(self, process, number, phase):
        """Sends it, and waits until the program has understood."""
        before = len(self.events())
        process.send_signal(number)
        until(lambda: [event for event in self.events()[before:]
                       if event.get("event") == "phase" and
                       event.get("phase") == phase], phase)
