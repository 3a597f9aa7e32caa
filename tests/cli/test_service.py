# SPDX-License-Identifier: MIT
"""Does the unit of packaging/systemd drain its worker? systemd-analyze reads the
unit, and the test does what its KillMode=mixed means: SIGTERM to the main
process alone, then SIGKILL to whatever is left."""

import configparser
import os
import re
import shlex
import signal
import subprocess

from handled import WAITING
from program import PROGRAM, is_running, main, need_command, until
from shared import Shared

UNIT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                    "../../packaging/systemd/wq-work@.service")


def service():
    """The section [Service]."""
    unit = configparser.RawConfigParser(strict=True)
    unit.optionxform = str
    unit.read(UNIT)
    return unit["Service"]


def seconds(option, command):
    return int(re.search(r"--%s=(\d+)s" % option, command).group(1))


class Service(Shared):
    def setUp(self):
        super().setUp()
        self.write("handler", b"#!/bin/sh\n" + WAITING.encode())
        os.chmod(self.path("handler"), 0o755)
        for gate in "ab":
            self.gates[gate] = self.fifo("gate." + gate)

    def work(self, **limits):
        """ExecStart with our paths, and with these limits."""
        command = service()["ExecStart"].replace(
            "/etc/wq/%i", self.path("handler")).replace("-P4", "-P1")
        for option, value in limits.items():
            command = re.sub(r"--%s=\S+" % option.replace("_", "-"),
                             "--%s=%s" % (option.replace("_", "-"), value),
                             command)
        return self.begin(*shlex.split(command)[1:])

    def test_unit_is_correct(self):
        need_command("systemd-analyze")
        with open(UNIT, encoding="utf-8") as file:
            text = file.read()
        self.write("wq-work@.service", text.replace(
            "/usr/bin/wq", os.path.abspath(PROGRAM)).replace(
                "/etc/wq/%i", self.path("handler")).encode())
        answer = subprocess.run(
            ["systemd-analyze", "verify", "--man=no",
             self.path("wq-work@.service")],
            capture_output=True, text=True, check=False)
        self.assertEqual((answer.returncode, answer.stdout + answer.stderr),
                         (0, ""))

    def test_times_fit_together(self):
        unit = service()
        self.assertEqual(unit["KillMode"], "mixed")
        self.assertEqual(unit.get("KillSignal", "SIGTERM"), "SIGTERM")
        self.assertLess(seconds("drain-timeout", unit["ExecStart"]) +
                        seconds("kill-after", unit["ExecStart"]),
                        int(unit["TimeoutStopSec"]))

    def test_runs_finish_when_the_service_is_stopped(self):
        self.done("add", "a", "b")
        process = self.work()
        self.await_begun("a")
        process.send_signal(signal.SIGTERM)
        self.let_go("a")
        ended = self.ended(process)
        # systemd regards the end by its own SIGTERM as a success.
        self.assertEqual(ended.status, -signal.SIGTERM, ended.err)
        self.assertEqual(self.log()[-1][:3], ["end", "a", "0"])
        self.assertEqual(self.done("list", "-0"), b"b\0")
        self.assertFalse(is_running(self.pid("a")))

    def test_run_that_does_not_finish_is_stopped_and_its_key_is_ready(self):
        self.done("add", "a")
        process = self.work(drain_timeout="100ms")
        self.await_begun("a")
        pid = self.pid("a")
        process.send_signal(signal.SIGTERM)
        ended = self.ended(process)
        self.assertEqual(ended.status, int(service()["SuccessExitStatus"]))
        self.assertFalse(is_running(pid))
        self.assertIn(b'"ready":1', self.done("status", "--json"))

    def test_run_that_ignores_the_stop_signal_is_killed(self):
        self.write("handler", b"#!/bin/sh\ntrap '' TERM\n" + WAITING.encode())
        self.done("add", "a")
        process = self.work(drain_timeout="100ms", kill_after="100ms")
        self.await_begun("a")
        pid = self.pid("a")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.ended(process).status,
                         int(service()["SuccessExitStatus"]))
        self.assertFalse(is_running(pid))

    def test_kill_of_the_service_loses_no_key(self):
        self.done("add", "a", "b")
        process = self.work()
        self.await_begun("a")
        pid = self.pid("a")
        process.send_signal(signal.SIGTERM)
        process.kill()  # after TimeoutStopSec
        self.ended(process)
        until(lambda: not is_running(pid), "the end of the run")
        self.assertIn(b'"ready":2', self.done("status", "--json"))


if __name__ == "__main__":
    main()
