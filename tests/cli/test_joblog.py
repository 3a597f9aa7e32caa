# SPDX-License-Identifier: MIT
"""Is the job log one of GNU parallel's, and does a log that is resumed say
rightly what was done?"""

import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

from program import PATIENCE, Case

HEADING = (b"Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal"
           b"\tCommand\n")
LINE = re.compile(
    rb"(\d+)\t:\t(\d{10}\.\d{3})\t([ \d]{6}\.\d{3})\t0\t(\d+)\t(-?\d+)\t(\d+)"
    rb"\t(.*)", re.DOTALL)

NASTY = [b"a", b"a b", b"a'b", b"''", b"'", b"a''b c", b"x\n", b"\n\n'", b"$(id)",
         b"\\", b"t\tb", b"\xff\xfe", "\u00fc".encode(), b"-n", b"a=b", b"@,:%",
         b"/.+-_", b"*", b"\"", b"`id`", b"~", b"#", b"x'", b"'x", b"'\n'"]


class Log(Case):
    def go(self, keys, *options, command=("sh", "-c", "echo $1 >>ran", "sh"),
           status=0):
        """Runs keys, and returns those that were run."""
        if os.path.exists(self.path("ran")):
            os.unlink(self.path("ran"))
        ended = self.run_keys(b"".join(key + b"\0" for key in keys), "-0",
                              "-P1", "-q", "--retries=0", "--joblog=log",
                              *options, "--", *command)
        self.assertEqual(ended.status, status, ended.err)
        self.ended = ended
        return (self.read("ran").split() if os.path.exists(self.path("ran"))
                else [])

    def lines(self):
        """Of the log, as fields."""
        content = self.read("log")
        self.assertTrue(content.startswith(HEADING))
        self.assertTrue(content.endswith(b"\n"))
        found = [LINE.fullmatch(line)
                 for line in content[len(HEADING):].split(b"\n")[:-1]]
        self.assertTrue(all(found), content[:1000])
        return [line.groups() for line in found]

    def column(self, n):
        return [line[n] for line in self.lines()]


class Format(Log):
    def test_heading_and_fields(self):
        self.go([b"a", b"b"], command=("sh", "-c", "echo out; echo e >&2"))
        lines = self.lines()
        self.assertEqual([line[0] for line in lines], [b"1", b"2"])
        for line in lines:
            self.assertEqual(line[3], b"4")  # bytes on stdout
            self.assertEqual(line[4:6], (b"0", b"0"))
        self.assertEqual(lines[0][6], b"sh -c 'echo out; echo e >&2' a")

    def test_a_log_without_runs_has_a_heading(self):
        self.go([])
        self.assertEqual(self.read("log"), HEADING)

    def test_codes_and_signals(self):
        self.go([b"3", b"9"], status=123, command=(
            "sh", "-c", "[ $0 = 9 ] && kill -9 $$; exit $0"))
        self.assertEqual([line[4:6] for line in self.lines()],
                         [(b"3", b"0"), (b"0", b"9")])

    def test_only_the_last_attempt_has_a_line(self):
        self.go([b"a"], "--retries=2", "--backoff=1ms", status=123,
                command=("false",))
        self.assertEqual(self.column(0), [b"3"])

    def test_a_key_that_waits_for_its_retry_has_none(self):
        process = self.start("--joblog=log", "--json=events",
                             "--backoff=1h,1h", "--", "false")
        process.stdin.write(b"a\n")
        process.stdin.flush()
        self.await_event(event="finished", outcome="retry")
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
        self.assertEqual(self.read("log"), HEADING)

    def test_an_old_log_is_begun_anew(self):
        self.go([b"a", b"b"])
        self.go([b"c"])
        self.assertEqual(self.column(6), [b"sh -c 'echo $1 >>ran' sh c"])

    def test_a_dry_run_leaves_it_alone(self):
        self.go([b"a"])
        before = self.read("log")
        self.go([b"b"], "--dry-run")
        self.assertEqual(self.read("log"), before)
        self.go([b"a", b"b"], "--dry-run", "--resume")
        self.assertEqual(self.read("log"), before)
        self.assertEqual(self.ended.out.count(b"\n"), 1)

    def test_where_it_cannot_be_written(self):
        ended = self.run_keys(b"a\n", "--joblog=no/log", "--", "echo")
        self.assertEqual(ended.status, 125)
        self.assertEqual(ended.err, b"wq: --joblog: cannot open 'no/log': No "
                                    b"such file or directory\n")

    def test_a_full_disk(self):
        ended = self.run_keys(b"a\n", "--joblog=/dev/full", "--", "echo")
        self.assertEqual(ended.status, 125)
        self.assertIn(b"--joblog: cannot write to '/dev/full'; it ends here: "
                      b"No space left on device\n", ended.err)


class Resumed(Log):
    def test_keys_in_the_log_are_skipped_in_any_order(self):
        self.assertEqual(self.go([b"a", b"b"]), [b"a", b"b"])
        self.assertEqual(self.go([b"c", b"b", b"d", b"a"], "--resume"),
                         [b"c", b"d"])
        self.assertEqual(self.column(0), [b"1", b"2", b"3", b"4"])
        self.assertEqual(
            self.go([b"a", b"b", b"c", b"d"], "--resume"), [])

    def test_nasty_keys_are_known_again(self):
        keys = NASTY + [b"x" * 50000]
        command = ("sh", "-c", "echo x >>ran; [ $# = 3 ]", "sh", "{}", "{}{}",
                   "-{}")
        self.assertEqual(len(self.go(keys, command=command)), len(keys))
        self.assertEqual(self.go(keys, "--resume", command=command), [])
        self.assertEqual(
            len(self.go([key + b"." for key in keys], "--resume",
                        command=command)), len(keys))

    def test_another_command_is_other_work(self):
        self.go([b"a"])
        self.assertEqual(self.go([b"a"], "--resume", command=(
            "sh", "-c", "echo 2 >>ran", "sh")), [b"2"])

    FLAKY = ("sh", "-c", "echo $1 >>ran; ! [ -e $1.bad ]", "sh")

    def test_what_failed_is_skipped_or_run_as_one_asks(self):
        self.write("b.bad", b"")
        self.go([b"a", b"b"], command=self.FLAKY, status=123)
        self.assertEqual(self.go([b"a", b"b", b"c"], "--resume",
                                 command=self.FLAKY), [b"c"])
        self.assertEqual(self.go([b"a", b"b", b"c"], "--resume-failed",
                                 command=self.FLAKY, status=123), [b"b"])
        os.unlink(self.path("b.bad"))
        self.assertEqual(self.go([b"a", b"b", b"c"], "--resume-failed",
                                 command=self.FLAKY), [b"b"])
        self.assertEqual(self.go([b"a", b"b", b"c"], "--resume-failed",
                                 command=self.FLAKY), [])

    def test_the_last_line_of_a_key_counts(self):
        self.write("log", HEADING + b"".join(
            b"%d\t:\t1.000\t     0.001\t0\t0\t%d\t0\tsh -c 'echo $1 >>ran' sh"
            b" %s\n" % line for line in
            [(1, 1, b"a"), (2, 0, b"b"), (3, 0, b"a"), (4, 1, b"b")]))
        self.assertEqual(self.go([b"a", b"b"], "--resume-failed"), [b"b"])

    def test_killed_is_failed(self):
        self.write("log", HEADING + b"1\t:\t1.000\t     0.001\t0\t0\t0\t15\t"
                                    b"sh -c 'echo $1 >>ran' sh a\n")
        self.assertEqual(self.go([b"a"], "--resume-failed"), [b"a"])

    def test_a_log_that_is_not_there_yet(self):
        self.assertEqual(self.go([b"a"], "--resume"), [b"a"])
        self.assertEqual(self.column(0), [b"1"])

    def test_retries_and_keys_that_come_again_are_not_skipped_by_own_lines(self):
        self.assertEqual(
            self.go([b"a"], "--resume", "--retries=1", "--backoff=1ms",
                    status=123,
                    command=("sh", "-c", "echo $1 >>ran; false", "sh")),
            [b"a", b"a"])

    def test_a_torn_last_line_wherever_it_was_torn(self):
        self.go([b"a", b"ab"])
        whole = self.read("log")
        first = whole.rindex(b"\n", 0, -1) + 1  # where the last line begins
        for cut in range(first + 1, len(whole)):
            with self.subTest(cut=cut):
                self.write("log", whole[:cut])
                self.assertEqual(self.go([b"a", b"ab"], "--resume"), [b"ab"])
                self.assertIn(b"last line of 'log' is torn", self.ended.err)
                self.assertEqual(len(self.lines()), 2)

    def test_a_torn_heading(self):
        for cut in (1, 20, len(HEADING) - 1):
            self.write("log", HEADING[:cut])
            self.assertEqual(self.go([b"a"], "--resume"), [b"a"])
            self.assertEqual(self.column(0), [b"1"])

    def test_lines_of_another_shape_are_left_out(self):
        self.write("log", HEADING + b"\nx\n1\t2\n\t\t\t\t\t\t\t\t\n-1\t:\t1\t1"
                   b"\t0\t0\t0\t0\tsh -c 'echo $1 >>ran' sh a\n")
        self.assertEqual(self.go([b"a"], "--resume"), [b"a"])

    def test_a_file_that_is_no_log_is_not_touched(self):
        for content in (b"precious\n", b"precious", b"Seq\n", b"\0"):
            with self.subTest(content=content):
                self.write("log", content)
                self.assertEqual(self.go([b"a"], "--resume", status=125), [])
                self.assertIn(b"'log' is not a job log", self.ended.err)
                self.assertEqual(self.read("log"), content)

    def test_a_log_of_many(self):
        keys = [b"%d" % i for i in range(100000)]
        self.write("log", HEADING + b"".join(
            b"%d\t:\t1.000\t     0.001\t0\t0\t0\t0\techo %s\n" % (i + 1, key)
            for i, key in enumerate(keys)))
        self.go(keys + [b"new"], "--resume", command=("echo",))
        self.assertEqual(self.ended.out, b"new\n")
        last = self.read("log").split(b"\n")[-2]
        self.assertTrue(last.startswith(b"100001\t:\t"), last)


class Parallel(Log):
    """GNU parallel itself."""

    def setUp(self):
        super().setUp()
        if not shutil.which("parallel"):
            if os.environ.get("CI") == "true":
                self.fail("GNU parallel is not there")
            print("skipped: GNU parallel is not there", file=sys.stderr)
            self.skipTest("GNU parallel is not there")

    def parallel(self, keys, *arguments):
        return subprocess.run(
            ["parallel", "-0", "-j1", *arguments], cwd=self.dir,
            input=b"".join(key + b"\0" for key in keys),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=PATIENCE, check=False,
            env={**os.environ, "PARALLEL_HOME": self.dir, "HOME": self.dir})

    def test_commands_are_written_alike(self):
        self.parallel(NASTY, "--joblog", "theirs", "printf %s {} {}")
        self.go(NASTY, command=("printf", "%s", "{}", "{}"))
        theirs = [line.split(b"\t", 8)[8] for line in
                  self.read("theirs").split(b"\n")[1:-1]]
        ours = [line.replace(b"printf '%s'", b"printf %s")
                for line in self.column(6)]
        self.assertEqual(ours, theirs)
        self.assertEqual(self.read("log").split(b"\n")[0],
                         self.read("theirs").split(b"\n")[0])

    def test_its_log_can_be_resumed(self):
        self.parallel(NASTY[:-1], "--joblog", "log", "echo")
        self.go(NASTY, "--resume", command=("echo",))
        self.assertEqual(self.ended.out, NASTY[-1] + b"\n")

    def test_it_can_resume_ours(self):
        self.go([b"a", b"b"], command=("echo",))
        ended = self.parallel([b"a", b"b", b"c"], "--resume", "--joblog",
                              "log", "echo")
        self.assertEqual(ended.stdout, b"c\n", ended.stderr)

    def test_it_can_retry_what_failed_in_ours(self):
        command = ("sh", "-c", 'printf "<%s>" "$1"; [ -e ok ]', "sh")
        self.go([b"a 'b'\nc"], command=command, status=123)
        self.write("ok", b"")
        ended = self.parallel([], "--retry-failed", "--joblog", "log")
        self.assertEqual(ended.stdout, b"<a 'b'\nc>", ended.stderr)


if __name__ == "__main__":
    unittest.main()
