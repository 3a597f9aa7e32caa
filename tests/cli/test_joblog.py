# SPDX-License-Identifier: MIT
"""Is the job log compatible with GNU parallel, and does --resume skip the right
keys?"""

import os
import re
import signal
import subprocess

from program import TIMEOUT, Case, main, need_command

HEADING = (b"Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal"
           b"\tCommand\n")
LINE = re.compile(
    rb"(\d+)\t:\t(\d{10}\.\d{3})\t([ \d]{6}\.\d{3})\t0\t(\d+)\t(-?\d+)\t(\d+)"
    rb"\t(.*)", re.DOTALL)

NASTY = [b"a", b"a b", b"a'b", b"''", b"'", b"a''b c", b"x\n", b"\n\n'", b"$(id)",
         b"\\", b"t\tb", b"\xff\xfe", "\u00fc".encode(), b"-n", b"a=b", b"@,:%",
         b"/.+-_", b"*", b"\"", b"`id`", b"~", b"#", b"x'", b"'x", b"'\n'"]


class Log(Case):
    def run_logged(self, keys, *options, command=("sh", "-c", "echo $1 >>ran", "sh"),
           status=0):
        """Runs the keys with a log, and returns those that were run."""
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
        """The lines of the log, as fields."""
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
    def test_log_has_a_heading_and_fields(self):
        self.run_logged([b"a", b"b"], command=("sh", "-c", "echo out; echo e >&2"))
        lines = self.lines()
        self.assertEqual([line[0] for line in lines], [b"1", b"2"])
        for line in lines:
            self.assertEqual(line[3], b"4")  # bytes on stdout
            self.assertEqual(line[4:6], (b"0", b"0"))
        self.assertEqual(lines[0][6], b"sh -c 'echo out; echo e >&2' a")

    def test_log_without_runs_has_a_heading(self):
        self.run_logged([])
        self.assertEqual(self.read("log"), HEADING)

    def test_log_has_exit_codes_and_signals(self):
        self.run_logged([b"3", b"9"], status=123, command=(
            "sh", "-c", "[ $0 = 9 ] && kill -9 $$; exit $0"))
        self.assertEqual([line[4:6] for line in self.lines()],
                         [(b"3", b"0"), (b"0", b"9")])

    def test_only_the_last_attempt_has_a_line(self):
        self.run_logged([b"a"], "--retries=2", "--backoff=1ms", status=123,
                command=("false",))
        self.assertEqual(self.column(0), [b"3"])

    def test_key_that_waits_for_its_retry_has_no_line(self):
        process = self.start("--joblog=log", "--json=events",
                             "--backoff=9999h,9999h", "--", "false")
        self.feed(process, b"a\n", end=False)
        self.await_event(event="finished", outcome="retry")
        process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT)
        self.assertEqual(self.read("log"), HEADING)

    def test_old_log_is_overwritten(self):
        self.run_logged([b"a", b"b"])
        self.run_logged([b"c"])
        self.assertEqual(self.column(6), [b"sh -c 'echo $1 >>ran' sh c"])

    def test_dry_run_does_not_change_the_log(self):
        self.run_logged([b"a"])
        before = self.read("log")
        self.run_logged([b"b"], "--dry-run")
        self.assertEqual(self.read("log"), before)
        self.run_logged([b"a", b"b"], "--dry-run", "--resume")
        self.assertEqual(self.read("log"), before)
        self.assertEqual(self.ended.out.count(b"\n"), 1)

    def test_log_that_cannot_be_opened_is_an_error(self):
        self.assert_cannot_open("--joblog")

    def test_full_disk_is_an_error(self):
        ended = self.run_keys(b"a\n", "--joblog=/dev/full", "--", "echo")
        self.assertEqual(ended.status, 125)
        self.assertIn(b"--joblog: cannot write to '/dev/full'; nothing more is written there: "
                      b"No space left on device\n", ended.err)


class Resumed(Log):
    def test_resume_skips_keys_in_any_order(self):
        self.assertEqual(self.run_logged([b"a", b"b"]), [b"a", b"b"])
        self.assertEqual(self.run_logged([b"c", b"b", b"d", b"a"], "--resume"),
                         [b"c", b"d"])
        self.assertEqual(self.column(0), [b"1", b"2", b"3", b"4"])
        self.assertEqual(
            self.run_logged([b"a", b"b", b"c", b"d"], "--resume"), [])

    def test_resume_recognises_strange_keys(self):
        keys = NASTY + [b"x" * 50000]
        command = ("sh", "-c", "echo x >>ran; [ $# = 3 ]", "sh", "{}", "{}{}",
                   "-{}")
        self.assertEqual(len(self.run_logged(keys, command=command)), len(keys))
        self.assertEqual(self.run_logged(keys, "--resume", command=command), [])
        self.assertEqual(
            len(self.run_logged([key + b"." for key in keys], "--resume",
                        command=command)), len(keys))

    def test_resume_distinguishes_commands(self):
        self.run_logged([b"a"])
        self.assertEqual(self.run_logged([b"a"], "--resume", command=(
            "sh", "-c", "echo 2 >>ran", "sh")), [b"2"])

    FLAKY = ("sh", "-c", "echo $1 >>ran; ! [ -e $1.bad ]", "sh")

    def test_resume_failed_runs_failed_keys_again(self):
        self.write("b.bad", b"")
        self.run_logged([b"a", b"b"], command=self.FLAKY, status=123)
        self.assertEqual(self.run_logged([b"a", b"b", b"c"], "--resume",
                                 command=self.FLAKY), [b"c"])
        self.assertEqual(self.run_logged([b"a", b"b", b"c"], "--resume-failed",
                                 command=self.FLAKY, status=123), [b"b"])
        os.unlink(self.path("b.bad"))
        self.assertEqual(self.run_logged([b"a", b"b", b"c"], "--resume-failed",
                                 command=self.FLAKY), [b"b"])
        self.assertEqual(self.run_logged([b"a", b"b", b"c"], "--resume-failed",
                                 command=self.FLAKY), [])

    def test_last_line_of_a_key_counts(self):
        self.write("log", HEADING + b"".join(
            b"%d\t:\t1.000\t     0.001\t0\t0\t%d\t0\tsh -c 'echo $1 >>ran' sh"
            b" %s\n" % line for line in
            [(1, 1, b"a"), (2, 0, b"b"), (3, 0, b"a"), (4, 1, b"b")]))
        self.assertEqual(self.run_logged([b"a", b"b"], "--resume-failed"), [b"b"])

    def test_killed_run_counts_as_failed(self):
        self.write("log", HEADING + b"1\t:\t1.000\t     0.001\t0\t0\t0\t15\t"
                                    b"sh -c 'echo $1 >>ran' sh a\n")
        self.assertEqual(self.run_logged([b"a"], "--resume-failed"), [b"a"])

    def test_resume_works_without_a_log(self):
        self.assertEqual(self.run_logged([b"a"], "--resume"), [b"a"])
        self.assertEqual(self.column(0), [b"1"])

    def test_own_lines_do_not_skip_retries(self):
        self.assertEqual(
            self.run_logged([b"a"], "--resume", "--retries=1", "--backoff=1ms",
                    status=123,
                    command=("sh", "-c", "echo $1 >>ran; false", "sh")),
            [b"a", b"a"])

    def test_incomplete_last_line_is_removed(self):
        self.run_logged([b"a", b"ab"])
        whole = self.read("log")
        first = whole.rindex(b"\n", 0, -1) + 1  # where the last line begins
        for cut in range(first + 1, len(whole)):
            with self.subTest(cut=cut):
                self.write("log", whole[:cut])
                self.assertEqual(self.run_logged([b"a", b"ab"], "--resume"), [b"ab"])
                self.assertIn(b"last line of 'log' is incomplete", self.ended.err)
                self.assertEqual(len(self.lines()), 2)

    def test_incomplete_heading_is_replaced(self):
        for cut in (1, 20, len(HEADING) - 1):
            self.write("log", HEADING[:cut])
            self.assertEqual(self.run_logged([b"a"], "--resume"), [b"a"])
            self.assertEqual(self.column(0), [b"1"])

    def test_lines_of_another_format_are_ignored(self):
        self.write("log", HEADING + b"\nx\n1\t2\n\t\t\t\t\t\t\t\t\n-1\t:\t1\t1"
                   b"\t0\t0\t0\t0\tsh -c 'echo $1 >>ran' sh a\n")
        self.assertEqual(self.run_logged([b"a"], "--resume"), [b"a"])

    def test_file_that_is_not_a_log_is_not_changed(self):
        for content in (b"precious\n", b"precious", b"Seq\n", b"\0"):
            with self.subTest(content=content):
                self.write("log", content)
                self.assertEqual(self.run_logged([b"a"], "--resume", status=125), [])
                self.assertIn(b"'log' is not a job log", self.ended.err)
                self.assertEqual(self.read("log"), content)

    def test_resume_reads_a_large_log(self):
        keys = [b"%d" % i for i in range(100000)]
        self.write("log", HEADING + b"".join(
            b"%d\t:\t1.000\t     0.001\t0\t0\t0\t0\techo %s\n" % (i + 1, key)
            for i, key in enumerate(keys)))
        self.run_logged(keys + [b"new"], "--resume", command=("echo",))
        self.assertEqual(self.ended.out, b"new\n")
        last = self.read("log").split(b"\n")[-2]
        self.assertTrue(last.startswith(b"100001\t:\t"), last)


class Parallel(Log):
    """GNU parallel itself."""

    def setUp(self):
        super().setUp()
        need_command("parallel")

    def parallel(self, keys, *arguments):
        return subprocess.run(
            ["parallel", "-0", "-j1", *arguments], cwd=self.dir,
            input=b"".join(key + b"\0" for key in keys),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=TIMEOUT, check=False,
            env={**os.environ, "PARALLEL_HOME": self.dir, "HOME": self.dir})

    def test_commands_are_quoted_like_parallel(self):
        self.parallel(NASTY, "--joblog", "theirs", "printf %s {} {}")
        self.run_logged(NASTY, command=("printf", "%s", "{}", "{}"))
        theirs = [line.split(b"\t", 8)[8] for line in
                  self.read("theirs").split(b"\n")[1:-1]]
        ours = [line.replace(b"printf '%s'", b"printf %s")
                for line in self.column(6)]
        self.assertEqual(ours, theirs)
        self.assertEqual(self.read("log").split(b"\n")[0],
                         self.read("theirs").split(b"\n")[0])

    def test_key_within_an_argument_is_quoted_like_parallel(self):
        self.parallel(NASTY, "--joblog", "theirs", "echo x{}y {}{}z")
        self.run_logged(NASTY, command=("echo", "x{}y", "{}{}z"))
        self.assertEqual(self.column(6), [
            line.split(b"\t", 8)[8] for line in
            self.read("theirs").split(b"\n")[1:-1]])
        self.run_logged(NASTY, "--resume", command=("echo", "x{}y", "{}{}z"))
        self.assertEqual(self.ended.out, b"")

    def test_log_of_parallel_can_be_resumed(self):
        self.parallel(NASTY[:-1], "--joblog", "log", "echo")
        self.run_logged(NASTY, "--resume", command=("echo",))
        self.assertEqual(self.ended.out, NASTY[-1] + b"\n")

    def test_parallel_can_resume_our_log(self):
        self.run_logged([b"a", b"b"], command=("echo",))
        ended = self.parallel([b"a", b"b", b"c"], "--resume", "--joblog",
                              "log", "echo")
        self.assertEqual(ended.stdout, b"c\n", ended.stderr)

    def test_parallel_can_retry_failures_of_our_log(self):
        command = ("sh", "-c", 'printf "<%s>" "$1"; [ -e ok ]', "sh")
        self.run_logged([b"a 'b'\nc"], command=command, status=123)
        self.write("ok", b"")
        ended = self.parallel([], "--retry-failed", "--joblog", "log")
        self.assertEqual(ended.stdout, b"<a 'b'\nc>", ended.stderr)


if __name__ == "__main__":
    main()
