# SPDX-License-Identifier: MIT
"""Do groups of keys take turns, and how many keys of one run at a time?"""

import os
import time

from handled import Handled
from program import main

KEYS = ("a1", "a2", "a3", "b1", "c1")


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid, encoding="latin-1") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Groups(Handled):
    def grouped(self, keys, *options, **rest):
        return self.started(keys, "--json=events", "--group-by=^.", *options,
                            gates=KEYS, **rest)

    def test_group_runs_one_key_and_others_do_not_wait(self):
        process = self.grouped(b"a1\na2\na3\nb1\nc1\n", "-P4",
                               "--group-max=1")
        self.await_begun("a1", "b1", "c1")
        self.let_go("a1")
        self.await_begun("a1", "b1", "c1", "a2")
        for key in ("b1", "c1", "a2"):
            self.let_go(key)
        self.await_begun(*KEYS)
        self.let_go("a3")
        self.assertEqual(self.ended(process).status, 0)

    def test_group_runs_so_many_keys(self):
        process = self.grouped(b"a1\na2\na3\nb1\n", "-P4", "--group-max=2")
        self.await_begun("a1", "a2", "b1")
        for key in ("a2", "a1", "a3", "b1"):
            self.let_go(key)
        self.assertEqual(self.ended(process).status, 0)

    def test_key_that_waits_for_a_retry_does_not_hold_its_group(self):
        process = self.grouped(b"a1\na2\n", "-P2", "--group-max=1",
                               "--backoff=9999h,9999h")
        self.await_begun("a1")
        self.let_go("a1", 1)
        self.await_event(event="started", key="a2")
        process.terminate()
        self.let_go("a2")
        self.ended(process)

    def test_groups_take_turns(self):
        ended = self.run_keys(b"a1\na2\na3\nb1\nc1\n", "-q", "--group-by=^.",
                              "echo")
        self.assertEqual(ended.out, b"a1\nb1\nc1\na2\na3\n")

    def test_group_is_the_first_group_of_the_expression(self):
        ended = self.run_keys(b"x-a-1\nx-a-2\nx-b-1\n", "-q",
                              "--group-by=^x-(.)", "echo")
        self.assertEqual(ended.out, b"x-a-1\nx-b-1\nx-a-2\n")

    def test_keys_that_do_not_match_are_one_group(self):
        process = self.started(b"a1\nb1\nc1\n", "-P3", "--group-by=^b",
                               "--group-max=1", gates=KEYS)
        self.await_begun("a1", "b1")
        for key in ("a1", "b1", "c1"):
            self.let_go(key)
        self.assertEqual(self.ended(process).status, 0)

    def test_batch_has_at_most_so_many_keys_of_a_group(self):
        ended = self.run_keys(b"a1\na2\nb1\nb2\n", "-q", "-n9",
                              "--group-by=^.", "--group-max=1", "echo")
        self.assertEqual(ended.out, b"a1 b1\na2 b2\n")

    def test_program_sleeps_while_a_group_is_full(self):
        process = self.grouped(b"a1\na2\n", "-P2", "--group-max=1")
        self.await_begun("a1")
        before = cpu_seconds(process.pid)
        time.sleep(1)
        self.assertLess(cpu_seconds(process.pid) - before, 0.03)
        self.let_go("a1")
        self.let_go("a2")
        self.assertEqual(self.ended(process).status, 0)

    def test_wrong_options_are_refused(self):
        for options, said in (
                (("--group-max=1",), "--group-max: needs --group-by=REGEX"),
                (("--group-by=(",), "is not a regular expression"),
                (("--group-by=a", "--group-max=0"),
                 "--group-max: '0' is not a number of keys"),
                (("--group-by=a", "--queue=sqlite:q"),
                 "--group-by: cannot be combined with --queue")):
            ended = self.run_keys(b"a\n", *options, "true")
            self.assertEqual(ended.status, 125)
            self.assertIn(said, ended.err.decode())


if __name__ == "__main__":
    main()
