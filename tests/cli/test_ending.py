# SPDX-License-Identifier: MIT
"""How does it end: by signals, by time, by policy?"""

import os
import signal
import subprocess
import time
import unittest

from handled import Handled, is_running, state
from program import PROGRAM, until

# Does not listen to SIGTERM; a child of it does not either.
STUBBORN = """
trap '' TERM
echo "begin $1 $WQ_ATTEMPT $$" >>log
while :; do sleep 0.02; done
"""


class Signals(Handled):
    def test_the_first_lets_runs_finish(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                self.write("log", b"")
                process = self.started(
                    b"a\nb\nc\n", "-P2", "--json=events", "--pending-file=left")
                self.await_begun("a", "b")
                self.signalled(process, number, "draining")
                self.assertIsNone(process.poll())
                self.let_go("a", 0)
                self.let_go("b", 1)  # would be retried
                ended = self.ended(process)
                self.assertEqual(ended.status, -number)
                self.assertEqual(sorted(self.begun()), ["a", "b"])
                self.assertIn(b"3 keys, 1 ok, 0 failed, 2 left", ended.err)
                self.assertEqual(sorted(self.read("left").split(b"\0")[:-1]),
                                 [b"b", b"c"])

    def test_it_stops_reading(self):
        process = self.started(b"", gates="a")
        self.ended(process)
        process = self.start("--json=events", *self.script(
            "echo begin $1 1 $$ >>log; read code <gate.$1; exit $code"))
        self.feed(process, b"a\n", end=False)
        self.await_begun("a")
        self.signalled(process, signal.SIGTERM, "draining")
        try:
            self.feed(process, b"b\n")
        except BrokenPipeError:
            process.stdin = None
        self.let_go("a")
        ended = self.ended(process)
        self.assertEqual(ended.status, -signal.SIGTERM)
        self.assertIn(b"1 key, 1 ok, 0 failed, 0 left; 1 add;", ended.err)

    def test_the_second_stops_runs(self):
        process = self.started(b"a\nb\n", "-P2", "--json=events",
                               "--pending-file=left")
        self.await_begun("a", "b")
        self.signalled(process, signal.SIGINT, "draining")
        self.signalled(process, signal.SIGTERM, "stopping")
        ended = self.ended(process)
        self.assertEqual(ended.status, -signal.SIGINT)  # the first one
        self.assertIn(b"2 keys, 0 ok, 0 failed, 2 left", ended.err)
        self.assertEqual(sorted(self.read("left").split(b"\0")[:-1]),
                         [b"a", b"b"])
        outcomes = [event["outcome"] for event in self.events()
                    if event["event"] == "finished"]
        self.assertEqual(outcomes, ["stopped", "stopped"])

    def test_the_third_kills_them(self):
        process = self.start("--json=events", "--kill-after=1h",
                             *self.script(STUBBORN))
        self.feed(process, b"a\n")
        self.await_begun("a")
        self.signalled(process, signal.SIGINT, "draining")
        self.signalled(process, signal.SIGINT, "stopping")
        self.assertTrue(is_running(self.pid("a")))
        self.signalled(process, signal.SIGINT, "killing")
        self.assertEqual(self.ended(process).status, -signal.SIGINT)
        self.assertEqual([event["signal"] for event in self.events()
                          if event["event"] == "finished"], [9])

    def test_what_does_not_stop_is_killed_after_a_while(self):
        process = self.start("--json=events", "--kill-after=20ms",
                             *self.script(STUBBORN))
        self.feed(process, b"a\n")
        self.await_begun("a")
        self.signalled(process, signal.SIGTERM, "draining")
        self.signalled(process, signal.SIGTERM, "stopping")
        self.assertEqual(self.ended(process).status, -signal.SIGTERM)

    def test_a_run_that_succeeds_all_the_same_has_succeeded(self):
        process = self.start("--json=events", *self.script(
            "trap 'exit 0' TERM; echo begin $1 1 $$ >>log;"
            "while :; do sleep 0.02; done"))
        self.feed(process, b"a\n")
        self.await_begun("a")
        self.signalled(process, signal.SIGINT, "draining")
        self.signalled(process, signal.SIGINT, "stopping")
        self.assertIn(b"1 key, 1 ok, 0 failed, 0 left", self.ended(process).err)

    def test_all_of_the_process_group_is_told(self):
        process = self.start("--json=events", *self.script(
            "sleep 1000 & echo begin $1 1 $! >>log; wait"))
        self.feed(process, b"a\n")
        self.await_begun("a")
        self.signalled(process, signal.SIGINT, "draining")
        self.signalled(process, signal.SIGINT, "stopping")
        self.ended(process)
        until(lambda: not is_running(self.pid("a")), "its end")

    def test_another_signal_to_stop_with(self):
        process = self.start("--json=events", "--stop-signal=USR1",
                             *self.script(
                                 "trap 'echo end usr1 0 0 >>log; exit 1' USR1;"
                                 "echo begin $1 1 $$ >>log;"
                                 "while :; do sleep 0.02; done"))
        self.feed(process, b"a\n")
        self.await_begun("a")
        self.signalled(process, signal.SIGINT, "draining")
        self.signalled(process, signal.SIGINT, "stopping")
        self.ended(process)
        self.assertEqual(self.log()[-1][1], "usr1")

    def test_a_signal_that_was_ignored_stays_so(self):
        process = self.started(
            b"a\n", preexec_fn=lambda: signal.signal(signal.SIGHUP,
                                                     signal.SIG_IGN))
        self.await_begun("a")
        process.send_signal(signal.SIGHUP)
        self.let_go("a")
        self.assertEqual(self.ended(process).status, 0)

    def test_a_shell_sees_128_plus_n(self):
        process = subprocess.Popen(
            ["sh", "-c", '"$0" run -q -f </dev/null -- true & echo $!; '
             "wait $!; echo $?", PROGRAM], cwd=self.dir,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        pid = int(process.stdout.readline())
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), b"143\n")


class Slots(Handled):
    def test_usr1_and_usr2_change_how_many_run(self):
        process = self.started(b"a\nb\nc\nd\ne\n", "-P1")
        self.await_begun("a")
        process.send_signal(signal.SIGUSR1)
        self.await_begun("a", "b")
        for _ in range(3):  # 1 is the least
            process.send_signal(signal.SIGUSR2)
            self.await_taken(process)
        self.let_go("a")
        until(lambda: self.log()[-1][0] == "end", "the end of a")
        self.let_go("b")
        self.await_begun("a", "b", "c")
        for key in "cde":
            self.let_go(key)
        self.assertEqual(self.ended(process).status, 0)
        running = most = 0
        for line in self.log()[2:]:
            running += 1 if line[0] == "begin" else -1
            most = max(most, running)
        self.assertLessEqual(most, 1)

    @staticmethod
    def await_taken(process):
        """Until no signal waits for it: it has read them."""
        def none_pending():
            with open("/proc/%d/status" % process.pid,
                      encoding="ascii") as file:
                return "ShdPnd:\t0000000000000000" in file.read()
        until(none_pending, "signals to be read")


class Pausing(Handled):
    def test_tstp_and_cont_are_passed_on(self):
        process = self.started(b"a\n", "--timeout=1h")
        self.await_begun("a")
        process.send_signal(signal.SIGTSTP)
        self.await_stopped(process.pid)
        self.await_stopped(self.pid("a"))
        process.send_signal(signal.SIGCONT)
        until(lambda: state(self.pid("a")) != "T", "it to go on")
        self.let_go("a")
        self.assertEqual(self.ended(process).status, 0)

    def test_timeouts_do_not_go_on_meanwhile(self):
        process = self.started(b"a\n", "--timeout=2s", "--retries=0")
        self.await_begun("a")
        process.send_signal(signal.SIGTSTP)
        self.await_stopped(process.pid)
        time.sleep(2.1)  # longer than the time-out
        process.send_signal(signal.SIGCONT)
        self.let_go("a")
        self.assertEqual(self.ended(process).status, 0)


class Timeouts(Handled):
    def test_a_run_that_takes_too_long_has_failed(self):
        begin = time.monotonic()
        ended = self.run_keys(b"1000\n", "--timeout=100ms", "--retries=1",
                              "--backoff=1ms", "--json=events", "--", "sleep")
        self.assertEqual(ended.status, 123)
        self.assertGreaterEqual(time.monotonic() - begin, 0.2)
        self.assertIn(b"1000: failed: timed out (attempt 2)", ended.err)
        self.assertIn(b"2 time-outs", ended.err)

    def test_even_if_it_then_says_0(self):
        ended = self.run_keys(b"a\n", "--timeout=100ms", "--retries=0",
                              *self.script("trap 'exit 0' TERM;"
                                           "while :; do sleep 0.02; done"))
        self.assertEqual(ended.status, 123)

    def test_one_that_was_stopped_hears_it(self):
        ended = self.run_keys(b"a\n", "--timeout=0.1", "--kill-after=1h",
                              "--retries=0", *self.script("kill -STOP $$"))
        self.assertEqual(ended.status, 123)
        self.assertIn(b"a: failed: timed out", ended.err)

    def test_then_it_is_killed(self):
        begin = time.monotonic()
        ended = self.run_keys(b"a\n", "--timeout=50ms", "--kill-after=50ms",
                              "--retries=0", "--json=events",
                              *self.script(STUBBORN))
        self.assertEqual(ended.status, 123)
        self.assertGreaterEqual(time.monotonic() - begin, 0.1)
        self.assertEqual([event["signal"] for event in self.events()
                          if event["event"] == "finished"], [9])

    def test_not_those_that_are_quick(self):
        ended = self.run_keys(b"a\nb\nc\n", "--timeout=1h", "--", "true")
        self.assertEqual(ended.status, 0)


class Draining(Handled):
    def test_no_longer_than_that(self):
        process = self.started(b"a\nb\n", "-P1", "--drain-timeout=50ms",
                               "--pending-file=left", "--json=events")
        self.await_begun("a")
        process.send_signal(signal.SIGTERM)
        ended = self.ended(process)
        self.assertEqual(ended.status, 124)
        self.assertIn(b"2 keys, 0 ok, 0 failed, 2 left", ended.err)
        self.assertEqual(sorted(self.read("left").split(b"\0")[:-1]),
                         [b"a", b"b"])
        phases = [event["phase"] for event in self.events()
                  if event["event"] == "phase"]
        self.assertEqual(phases[-2:], ["draining", "stopping"])

    def test_who_finishes_in_time(self):
        process = self.started(b"a\nb\n", "-P1", "--drain-timeout=1h",
                               "--json=events")
        self.await_begun("a")
        self.signalled(process, signal.SIGTERM, "draining")
        self.let_go("a")
        self.assertEqual(self.ended(process).status, -signal.SIGTERM)

    def test_it_is_not_for_the_end_of_input(self):
        ended = self.run_keys(b"a\n", "--drain-timeout=1ms",
                              *self.script("sleep 0.05"))
        self.assertEqual(ended.status, 0)


class Pending(Handled):
    def test_it_is_empty_when_nothing_is_left(self):
        self.write("left", b"old")
        self.assertEqual(
            self.run_keys(b"a\n", "--pending-file=left", "true").status, 0)
        self.assertEqual(self.read("left"), b"")
        self.assertEqual(os.listdir(self.dir), ["left"])

    def test_all_kinds_of_keys_that_were_not_run(self):
        process = self.started(
            b'"a"\n"b"\n{"key":"c\\n d","after":"1h"}\n', "-P1",
            "--input=jsonl", "--backoff=1000h,1000h", "--json=events",
            "--pending-file=left")
        self.await_begun("a")
        self.let_go("a", 1)  # to be retried
        self.await_begun("a", "b")
        self.signalled(process, signal.SIGTERM, "draining")
        self.signalled(process, signal.SIGTERM, "stopping")
        self.ended(process)
        self.assertEqual(sorted(self.read("left").split(b"\0")[:-1]),
                         [b"a", b"b", b"c\n d"])

    def test_it_can_be_read_again(self):
        self.write("left", b"a\0b\nb\0")
        ended = self.run_keys(b"", "-q", "-0", "-aleft", "--pending-file=left",
                              "--halt=soon,done=1", "--", "echo")
        self.assertEqual(ended.status, 124)
        self.assertEqual((ended.out, self.read("left")), (b"a\n", b"b\nb\0"))

    def test_what_is_no_file_stays_what_it_is(self):
        pipe = self.fifo("pipe")
        self.write("file", b"old")
        os.symlink("file", self.path("link"))
        for name in ("pipe", "link"):
            ended = self.run_keys(b"a\nb\n", "--halt=soon,done=1",
                                  "--pending-file=" + name, "true")
            self.assertEqual(ended.status, 124, ended.err)
        self.assertEqual(os.read(pipe, 100), b"b\0")
        self.assertEqual(self.read("file"), b"b\0")
        self.assertEqual(sorted(os.listdir(self.dir)), ["file", "link", "pipe"])

    def test_a_pipe_that_nobody_reads(self):
        os.mkfifo(self.path("pipe"))
        ended = self.run_keys(b"a\n", "--pending-file=pipe", "true")
        self.assertEqual(ended.status, 125)
        self.assertIn(b"--pending-file: cannot write 'pipe'", ended.err)


class Halting(Handled):
    def halted(self, policy, keys, *options, status=124):
        """Runs the keys one by one; a key says what it exits with."""
        self.write("log", b"")
        self.write("keys", "\n".join(keys).encode())
        ended = self.run_keys(
            b"", "-akeys", "--halt=" + policy, "--retries=0", *options,
            *self.script("echo begin $1 >>log; exit ${1%.*}"))
        self.assertEqual(ended.status, status, ended.err)
        return len(self.begun())

    def test_failures(self):
        keys = ["0.1", "1.1", "0.2", "1.2", "0.3", "1.3", "0.4"]
        self.assertEqual(self.halted("soon,fail=1", keys), 2)
        self.assertEqual(self.halted("now,fail=2", keys), 4)
        self.assertEqual(self.halted("never", keys, status=123), 7)
        self.assertEqual(self.halted("now,fail=9", keys, status=123), 7)

    def test_successes(self):
        keys = ["1.1", "0.1", "0.2", "0.3"]
        self.assertEqual(self.halted("now,success=1", keys), 2)
        self.assertEqual(self.halted("soon,done=3", keys), 3)

    def test_parts(self):
        keys = ["0.%d" % i for i in range(5)] + ["1.%d" % i for i in range(9)]
        # 3 of 8 are the first to count, 5 of 10 are half.
        self.assertEqual(self.halted("soon,fail=30%", keys), 8)
        self.assertEqual(self.halted("soon,fail=50%", keys), 10)
        self.assertEqual(self.halted("soon,fail=100%", keys, status=123), 14)
        keys = ["1.0"] + keys[:3]  # one failure is not enough for a part
        self.assertEqual(self.halted("soon,fail=20%", keys, status=123), 4)

    def test_at_the_last_key_nothing_was_stopped(self):
        self.assertEqual(self.halted("soon,fail=1", ["0.1", "1.1"],
                                     status=123), 2)

    def test_retries_do_not_count(self):
        ended = self.run_keys(b"a\nb\n", "--halt=now,fail=1", "--backoff=1ms",
                              *self.script("[ $WQ_ATTEMPT = 3 ]"))
        self.assertEqual(ended.status, 0)

    def test_now_stops_the_others(self):
        process = self.started(b"a\nb\nc\n", "-P2", "--halt=now,fail=1",
                               "--retries=0", "--json=events")
        self.await_begun("a", "b")
        self.let_go("a", 1)
        ended = self.ended(process)
        self.assertEqual(ended.status, 124)
        self.assertIn(b"3 keys, 0 ok, 1 failed, 2 left", ended.err)
        self.assertEqual(sorted(event["outcome"] for event in self.events()
                                if event["event"] == "finished"),
                         ["failed", "stopped"])

    def test_soon_does_not(self):
        process = self.started(b"a\nb\nc\n", "-P2", "--halt=soon,fail=1",
                               "--retries=0", "--json=events")
        self.await_begun("a", "b")
        self.let_go("a", 1)
        self.await_event(event="phase", phase="draining")
        self.let_go("b", 0)
        ended = self.ended(process)
        self.assertEqual(ended.status, 124)
        self.assertIn(b"3 keys, 1 ok, 1 failed, 1 left", ended.err)


class Gone(Handled):
    def test_nobody_reads_our_output(self):
        read, write = os.pipe()
        os.close(read)
        process = self.start(*self.script("echo $1; echo begin $1 >>log"),
                             stdout=write)
        os.close(write)
        self.feed(process, b"\n".join(b"%d" % i for i in range(1000)))
        ended = self.ended(process)
        self.assertEqual(ended.status, -signal.SIGPIPE)
        self.assertEqual(ended.err, b"")
        self.assertLess(len(self.begun()), 10)

    def test_runs_under_way_are_stopped_then(self):
        read, write = os.pipe()
        os.close(read)
        process = self.start("-P2", "--json=events", *self.script(
            "echo begin $1 1 $$ >>log; [ $1 != b ] || exec sleep 1000;"
            "until [ $(wc -l <log) = 2 ]; do sleep 0.01; done; echo x"),
            stdout=write)
        os.close(write)
        self.feed(process, b"a\nb\n")
        self.assertEqual(self.ended(process).status, -signal.SIGPIPE)
        self.assertFalse(is_running(self.pid("b")))

    def test_kill_9_takes_the_runs_along(self):
        process = self.started(b"a\nb\nc\n", "-P3")
        self.await_begun("a", "b", "c")
        pids = [self.pid(key) for key in "abc"]
        process.kill()
        process.wait()
        for pid in pids:
            until(lambda pid=pid: not is_running(pid), "the end of a run")


class Summary(Handled):
    def test_it_is_said_unless_it_should_not_be(self):
        line = b"wq: 2 keys, 2 ok, 0 failed, 0 left; 2 adds; 0 retries\n"
        for options, said in (((), line), (("-q",), b""), (("--quiet",), b""),
                              (("-q", "--summary"), line),
                              (("--dry-run",), b""),
                              (("--summary",), line)):
            with self.subTest(options):
                ended = self.run_keys(b"a\nb\n", *options, "true")
                self.assertEqual((ended.status, ended.err), (0, said))

    def test_failures_are_told_one_by_one(self):
        ended = self.run_keys(b"a\n\x1b\n", "--retries=0", "--", "false")
        self.assertEqual(ended.status, 123)
        self.assertEqual(ended.err.decode().splitlines(), [
            "wq: a: failed: exit 1 (attempt 1)",
            "wq: \\x1b: failed: exit 1 (attempt 1)",
            "wq: 2 keys, 0 ok, 2 failed, 0 left; 2 adds; 0 retries"])


if __name__ == "__main__":
    unittest.main()
