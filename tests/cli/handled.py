# SPDX-License-Identifier: MIT
"""How does a test decide when and how a run ends? The handler logs that it has
begun, and waits until the test sends it an exit code."""

import os
import signal

from program import TIMEOUT, Case, Ended, state, until

# One write() per line: lines do not mix. The gate is a FIFO named after the key.
WAITING = """
echo "begin $1 $WQ_ATTEMPT $$" >>log
read code <"gate.$1"
echo "end $1 $code $$" >>log
exit "$code"
"""


def usual_signals():
    """The signals of a program that a user starts at a prompt."""
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)


class Handled(Case):
    def setUp(self):
        super().setUp()
        self.gates = {}

    def start(self, *arguments, **rest):
        rest.setdefault("preexec_fn", usual_signals)
        return super().start(*arguments, **rest)

    def started(self, keys, *options, gates="abcdefgh", **rest):
        """The program with these keys, and with handlers that wait."""
        for gate in gates:
            if gate not in self.gates:
                self.gates[gate] = self.fifo("gate." + gate)
        process = self.start(*options, *self.script(WAITING), **rest)
        self.feed(process, keys)
        return process

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

    def add_twice(self, process, key):
        """Adds the key (bytes), and once more while it runs."""
        self.feed(process, key + b"\n", end=False)
        self.await_begun(key.decode())
        self.feed(process, key + b"\n")
        self.await_event(event="added", how="dirty")

    def ended(self, process):
        out, err = process.communicate(timeout=TIMEOUT)
        return Ended(process.returncode, out, err)

    def left(self):
        """The sorted keys in the file of --pending-file=left."""
        return sorted(self.read("left").split(b"\0")[:-1])

    def await_stopped(self, pid):
        until(lambda: state(pid) == "T", "a stopped process")

    def signalled(self, process, number, phase):
        """Sends the signal, and waits for the event of the phase."""
        before = len(self.events())
        process.send_signal(number)
        until(lambda: [event for event in self.events()[before:]
                       if event.get("event") == "phase" and
                       event.get("phase") == phase], phase)
