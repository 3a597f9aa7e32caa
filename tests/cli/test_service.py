# SPDX-License-Identifier: MIT
"""Do the units of packaging/systemd drain their worker? systemd-analyze reads the
units, and the test does what KillMode=mixed means: SIGTERM to the main process
alone, then SIGKILL to whatever is left."""

import configparser
import os
import re
import shlex
import signal
import subprocess

from handled import WAITING
from program import PROGRAM, is_running, main, need_command, until
from shared import Shared

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "../../packaging/systemd")
UNIT = "wq-work@.service"
OF_REDIS = "wq-work-redis@.service"


def section(name, unit=UNIT):
    """A section of the unit."""
    read = configparser.RawConfigParser(strict=True)
    read.optionxform = str
    read.read(os.path.join(FOLDER, unit))
    return dict(read[name])


def service():
    return section("Service")


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

    def test_units_are_correct(self):
        need_command("systemd-analyze")
        for unit in (UNIT, OF_REDIS):
            with self.subTest(unit):
                with open(os.path.join(FOLDER, unit), encoding="utf-8") as file:
                    text = file.read()
                self.write(unit, text.replace(
                    "/usr/bin/wq", os.path.abspath(PROGRAM)).replace(
                        "/etc/wq/%i", self.path("handler")).encode())
                answer = subprocess.run(
                    ["systemd-analyze", "verify", "--man=no", self.path(unit)],
                    capture_output=True, text=True, check=False)
                self.assertEqual(
                    (answer.returncode, answer.stdout + answer.stderr), (0, ""))

    def test_units_differ_in_where_the_queue_is(self):
        of_file, of_redis = service(), section("Service", OF_REDIS)
        for name in ("StateDirectory", "Environment"):
            del of_file[name]
        self.assertEqual(of_redis.pop("EnvironmentFile"), "/etc/wq/%i.env")
        self.assertEqual(of_redis, of_file)
        for name in ("Wants", "After"):
            self.assertEqual(section("Unit", OF_REDIS)[name],
                             "network-online.target")

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
