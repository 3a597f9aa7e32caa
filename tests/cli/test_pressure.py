# SPDX-License-Identifier: MIT
"""Do --load and --memfree start no run while the machine is busy?"""

import os
import time

from handled import Handled
from program import main

IDLE = {"loadavg": b"0.50 0.40 0.30 1/99 1234\n",
        "meminfo": b"MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable: 2048 kB\n"}


class Pressure(Handled):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("proc"))
        for name, content in IDLE.items():
            self.set(name, content)

    def set(self, name, content):
        """Replaces a file of /proc at once."""
        self.write("new", content)
        os.rename(self.path("new"), self.path("proc/" + name))

    def start(self, *arguments, **rest):
        return super().start("--json=events", *arguments,
                             env={"WQ_PROC": "proc"}, **rest)

    def assert_held_up(self, said, option, name, high, low):
        """No run starts until `high` is replaced by `low`."""
        self.set(name, high)
        process = self.start(option, "-P2", "--", "echo")
        self.feed(process, b"a\nb\nc\n")
        self.assertIn(said, process.stderr.readline())
        before = time.monotonic()
        while time.monotonic() < before + 1.2:  # more than one look
            self.assertEqual([event for event in self.events()
                              if event["event"] == "started"], [])
            time.sleep(0.1)
        self.set(name, low)
        ended = self.ended(process)
        self.assertEqual((ended.status, sorted(ended.lines())),
                         (0, ["a", "b", "c"]))
        self.assertNotIn(said, ended.err)

    def test_high_load_holds_runs_up(self):
        self.assert_held_up(
            b"wq: --load: the load average is 2.10, above 2.00: no run starts "
            b"until it is lower\n",
            "--load=2", "loadavg", b"2.10 0 0 1/9 9\n", b"2.00 0 0 1/9 9\n")

    def test_little_memory_holds_runs_up(self):
        self.assert_held_up(
            b"wq: --memfree: 1.9 MiB are available, less than 2.0: no run "
            b"starts until there are more\n",
            "--memfree=2M", "meminfo", b"MemFree: 9999 kB\nMemAvailable:  "
            b"1945 kB\n", b"MemFree: 1 kB\nMemAvailable:  2048 kB\n")

    def test_running_runs_go_on(self):
        process = self.started(b"a\nb\n", "--load=1")
        self.await_begun("a")
        self.set("loadavg", b"5.0 0 0 1/9 9\n")
        time.sleep(1.1)  # the last answer has expired
        self.let_go("a")
        self.await_event(event="finished", key="a", outcome="ok")
        self.assertIn(b"above 1.00", process.stderr.readline())
        self.assertEqual(self.begun(), ["a"])
        self.set("loadavg", b"0.5 0 0 1/9 9\n")
        self.await_begun("a", "b")
        self.let_go("b")
        self.assertEqual(self.ended(process).status, 0)

    def test_signal_ends_the_wait(self):
        self.set("loadavg", b"5.0 0 0 1/9 9\n")
        process = self.start("--load=1", "--pending-file=left", "echo")
        self.feed(process, b"a\n")
        process.stderr.readline()
        process.terminate()
        self.assertEqual(self.ended(process).out, b"")
        self.assertEqual(self.left(), [b"a"])

    def test_load_may_be_a_part_of_the_cpus(self):
        cpus = os.sysconf("SC_NPROCESSORS_ONLN")
        self.set("loadavg", b"%d.00 0 0 1/9 9\n" % cpus)
        self.assertEqual(self.run_keys(b"a\n", "--load=100%", "echo").out,
                         b"a\n")
        process = self.start("--load=99%", "echo")
        self.feed(process, b"a\n")
        self.assertIn(b"above %.2f" % (0.99 * cpus),
                      process.stderr.readline())

    def test_sizes(self):
        self.set("meminfo", b"MemAvailable: 1048576 kB\n")
        for size in ("1G", "1024m", "0.5G", "1048576K", "1073741824", "1"):
            with self.subTest(size):
                ended = self.run_keys(b"a\n", "--memfree=" + size, "echo")
                self.assertEqual(ended.out, b"a\n")

    def test_what_cannot_be_read_is_an_error_at_the_start(self):
        os.unlink(self.path("proc/loadavg"))
        self.set("meminfo", b"MemFree: 1 kB\n")
        for option, said in (
                ("--load=1", b"--load: cannot read the load average: No such"),
                ("--memfree=1", b"--memfree: cannot read the available memor")):
            ended = self.run_keys(b"a\n", option, "echo")
            self.assertEqual(ended.status, 125)
            self.assertIn(said, ended.err)

    def test_wrong_values_are_refused(self):
        for option, values in (("--load", ("0", "x", "5x", "%", "-1", "")),
                               ("--memfree", ("0", "x", "5x", "K", "1KB"))):
            for value in values:
                with self.subTest((option, value)):
                    ended = self.run_keys(b"", option + "=" + value, "true")
                    self.assertEqual(ended.status, 125)
                    self.assertIn(b"%s: '%s' is not a" % (
                        option.encode(), value.encode()), ended.err)

    def test_real_values_can_be_read(self):
        ended = Handled.run_keys(self, b"a\n", "--load=100000", "--memfree=1K",
                                 "echo")
        self.assertEqual(ended.out, b"a\n")


if __name__ == "__main__":
    main()
