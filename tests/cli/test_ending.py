# SPDX-License-Identifier: MIT
"""How do wq and its runs end: by signals, timeouts and policies?"""

import os
import signal
import subprocess
import time

from handled import Handled
from program import PROGRAM, is_running, main, read_line, state, until

# Ignores SIGTERM, and so do its children.
STUBBORN = """
trap '' TERM
echo "begin $1 $WQ_ATTEMPT $$" >>log
while :; do sleep 0.02; done
"""


class Signals(Handled):
    def stopping(self, script, *options, number=signal.SIGINT):
        """One run of the script has begun, and two signals stop it."""
        process = self.start("--json=events", *options, *self.script(script))
        self.feed(process, b"a\n")
        self.await_begun("a")
        self.signalled(process, number, "draining")
        self.signalled(process, number, "stopping")
        return process

    def test_first_signal_lets_runs_finish(self):
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
                self.assertEqual(self.left(), [b"b", b"c"])

    def test_signal_to_the_group_of_wq_reaches_no_run(self):
        # As Ctrl-C does on a terminal. A child that has not left the group yet
        # gets the signal, too; USR1 and USR2 can be sent again and again.
        process = self.start("-P2", "--retries=0", "--joblog=log", "--", "true",
                             start_new_session=True)
        self.feed(process, b"".join(b"%d\n" % i for i in range(2000)))
        until(lambda: os.path.exists(self.path("log")) and
              self.read("log").count(b"\n") > 1, "the first run")
        sent = 0
        while process.poll() is None and sent < 2000:
            try:
                os.killpg(process.pid,
                          (signal.SIGUSR1, signal.SIGUSR2)[sent % 2])
            except ProcessLookupError:
                break
            sent += 1
            time.sleep(0.0005)
        ended = self.ended(process)
        signals = [line.split(b"\t")[7]
                   for line in self.read("log").splitlines()[1:]]
        self.assertEqual(set(signals), {b"0"}, ended.err)
        self.assertEqual(ended.status, 0)

    def test_first_signal_is_reported(self):
        for number, said in (
                (signal.SIGINT, b"2 runs; Ctrl-C again to stop them\n"),
                (signal.SIGTERM, b"2 runs; another signal stops them\n")):
            self.write("log", b"")
            self.write("events", b"")
            process = self.started(b"a\nb\nc\n", "-P2", "--json=events")
            self.await_begun("a", "b")
            self.signalled(process, number, "draining")
            self.assertEqual(read_line(process.stderr), b"wq: draining " + said)
            self.let_go("a")
            self.let_go("b")
            self.ended(process)

    def test_first_signal_ends_the_input(self):
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

    def test_second_signal_stops_runs(self):
        process = self.started(b"a\nb\n", "-P2", "--json=events",
                               "--pending-file=left")
        self.await_begun("a", "b")
        self.signalled(process, signal.SIGINT, "draining")
        self.signalled(process, signal.SIGTERM, "stopping")
        ended = self.ended(process)
        self.assertEqual(ended.status, -signal.SIGINT)  # the first one
        self.assertIn(b"2 keys, 0 ok, 0 failed, 2 left", ended.err)
        self.assertEqual(self.left(), [b"a", b"b"])
        self.assertEqual(self.finished("outcome"), ["stopped", "stopped"])

    def test_third_signal_kills_runs(self):
        process = self.stopping(STUBBORN, "--kill-after=1h")
        self.assertTrue(is_running(self.pid("a")))
        self.signalled(process, signal.SIGINT, "killing")
        self.assertEqual(self.ended(process).status, -signal.SIGINT)
        self.assertEqual(self.finished("signal"), [9])

    def test_run_that_ignores_the_stop_signal_is_killed(self):
        process = self.stopping(STUBBORN, "--kill-after=20ms",
                                number=signal.SIGTERM)
        self.assertEqual(self.ended(process).status, -signal.SIGTERM)

    def test_stopped_run_that_exits_with_0_has_succeeded(self):
        process = self.stopping(
            "trap 'exit 0' TERM; echo begin $1 1 $$ >>log;"
            "while :; do sleep 0.02; done")
        self.assertIn(b"1 key, 1 ok, 0 failed, 0 left", self.ended(process).err)

    def test_stop_signal_reaches_the_whole_process_group(self):
        self.ended(self.stopping(
            "sleep 1000 & echo begin $1 1 $! >>log; wait"))
        until(lambda: not is_running(self.pid("a")), "its end")

    def test_stop_signal_can_be_chosen(self):
        self.ended(self.stopping(
            "trap 'echo end usr1 0 0 >>log; exit 1' USR1;"
            "echo begin $1 1 $$ >>log; while :; do sleep 0.02; done",
            "--stop-signal=USR1"))
        self.assertEqual(self.log()[-1][1], "usr1")

    def test_ignored_signal_stays_ignored(self):
        process = self.started(
            b"a\n", preexec_fn=lambda: signal.signal(signal.SIGHUP,
                                                     signal.SIG_IGN))
        self.await_begun("a")
        process.send_signal(signal.SIGHUP)
        self.let_go("a")
        self.assertEqual(self.ended(process).status, 0)

    def test_shell_sees_128_plus_the_signal(self):
        process = subprocess.Popen(
            ["sh", "-c", '"$0" run -q -f </dev/null -- true & echo $!; '
             "wait $!; echo $?", PROGRAM], cwd=self.dir,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        pid = int(process.stdout.readline())
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), b"143\n")


class Slots(Handled):
    def test_usr1_and_usr2_change_the_number_of_slots(self):
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
        """Waits until it has handled all signals."""
        def none_pending():
            with open("/proc/%d/status" % process.pid,
                      encoding="ascii") as file:
                return "ShdPnd:\t0000000000000000" in file.read()
        until(none_pending, "signals to be read")


class Pausing(Handled):
    def test_tstp_and_cont_reach_the_runs(self):
        process = self.started(b"a\n", "--timeout=1h")
        self.await_begun("a")
        process.send_signal(signal.SIGTSTP)
        self.await_stopped(process.pid)
        self.await_stopped(self.pid("a"))
        process.send_signal(signal.SIGCONT)
        until(lambda: state(self.pid("a")) != "T", "it to go on")
        self.let_go("a")
        self.assertEqual(self.ended(process).status, 0)

    def test_timeouts_pause_while_wq_is_stopped(self):
        process = self.started(b"a\n", "--timeout=2s", "--retries=0")
        self.await_begun("a")
        process.send_signal(signal.SIGTSTP)
        self.await_stopped(process.pid)
        time.sleep(2.1)  # longer than the time-out
        process.send_signal(signal.SIGCONT)
        self.let_go("a")
        self.assertEqual(self.ended(process).status, 0)


class Timeouts(Handled):
    def test_run_that_times_out_has_failed(self):
        ended = self.run_keys(b"1000\n", "--timeout=100ms", "--retries=1",
                              "--backoff=1ms", "--json=events", "--", "sleep")
        self.assertEqual(ended.status, 123)
        self.assertGreaterEqual(ended.seconds, 0.2)
        self.assertIn(b"1000: failed: timed out (attempt 2)", ended.err)
        self.assertIn(b"2 time-outs", ended.err)

    def test_run_that_times_out_and_exits_with_0_has_failed(self):
        ended = self.run_keys(b"a\n", "--timeout=100ms", "--retries=0",
                              *self.script("trap 'exit 0' TERM;"
                                           "while :; do sleep 0.02; done"))
        self.assertEqual(ended.status, 123)

    def test_stopped_run_times_out(self):
        ended = self.run_keys(b"a\n", "--timeout=0.1", "--kill-after=1h",
                              "--retries=0", *self.script("kill -STOP $$"))
        self.assertEqual(ended.status, 123)
        self.assertIn(b"a: failed: timed out", ended.err)

    def test_run_that_ignores_its_timeout_is_killed(self):
        ended = self.run_keys(b"a\n", "--timeout=50ms", "--kill-after=50ms",
                              "--retries=0", "--json=events",
                              *self.script(STUBBORN))
        self.assertEqual(ended.status, 123)
        self.assertGreaterEqual(ended.seconds, 0.1)
        self.assertEqual(self.finished("signal"), [9])

    def test_quick_run_does_not_time_out(self):
        ended = self.run_keys(b"a\nb\nc\n", "--timeout=1h", "--", "true")
        self.assertEqual(ended.status, 0)


class Draining(Handled):
    def test_drain_timeout_stops_runs(self):
        process = self.started(b"a\nb\n", "-P1", "--drain-timeout=50ms",
                               "--pending-file=left", "--json=events")
        self.await_begun("a")
        process.send_signal(signal.SIGTERM)
        ended = self.ended(process)
        self.assertEqual(ended.status, 124)
        self.assertIn(b"2 keys, 0 ok, 0 failed, 2 left", ended.err)
        self.assertEqual(self.left(), [b"a", b"b"])
        phases = [event["phase"] for event in self.events()
                  if event["event"] == "phase"]
        self.assertEqual(phases[-2:], ["draining", "stopping"])

    def test_drain_timeout_of_0_stops_runs_at_once(self):
        process = self.started(b"a\nb\n", "-P1", "--drain-timeout=0",
                               "--pending-file=left")
        self.await_begun("a")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.ended(process).status, 124)
        self.assertEqual(self.left(), [b"a", b"b"])

    def test_run_may_end_before_the_drain_timeout(self):
        process = self.started(b"a\nb\n", "-P1", "--drain-timeout=1h",
                               "--json=events")
        self.await_begun("a")
        self.signalled(process, signal.SIGTERM, "draining")
        self.let_go("a")
        self.assertEqual(self.ended(process).status, -signal.SIGTERM)

    def test_drain_timeout_does_not_apply_at_end_of_input(self):
        ended = self.run_keys(b"a\n", "--drain-timeout=1ms",
                              *self.script("sleep 0.05"))
        self.assertEqual(ended.status, 0)


class Pending(Handled):
    def test_pending_file_is_empty_when_nothing_is_left(self):
        self.write("left", b"old")
        self.assertEqual(
            self.run_keys(b"a\n", "--pending-file=left", "true").status, 0)
        self.assertEqual(self.read("left"), b"")
        self.assertEqual(os.listdir(self.dir), ["left"])

    def test_pending_file_has_all_keys_that_are_left(self):
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
        self.assertEqual(self.left(), [b"a", b"b", b"c\n d"])

    def test_pending_file_can_be_read_as_input(self):
        self.write("left", b"a\0b\nb\0")
        ended = self.run_keys(b"", "-q", "-0", "-aleft", "--pending-file=left",
                              "--halt=soon,done=1", "--", "echo")
        self.assertEqual(ended.status, 124)
        self.assertEqual((ended.out, self.read("left")), (b"a\n", b"b\nb\0"))

    def test_pending_file_has_keys_that_were_not_read(self):
        self.write("keys", b"".join(b"%d\n" % i for i in range(300000)))
        ended = self.run_keys(b"", "-akeys", "--halt=now,done=1",
                              "--pending-file=left", "--", "true")
        self.assertEqual(ended.status, 124)
        self.assertEqual(len(self.left()), 299999)
        self.assertIn(b"300000 keys, 1 ok, 0 failed, 299999 left; 300000 adds",
                      ended.err)
        self.assertNotIn(b"unread", ended.err)

    def test_pending_file_has_keys_of_a_file_that_is_followed(self):
        self.write("keys", b"a\n" + b"".join(b"%d\n" % i for i in
                                             range(50000)) + b"half")
        ended = self.run_keys(b"", "-f", "-akeys", "--halt=soon,done=1",
                              "--pending-file=left", "--", "true")
        self.assertEqual(len(self.left()), 50000)
        self.assertIn(b"; input was left unread", ended.err)  # "half"

    def test_pending_file_has_keys_that_are_in_a_pipe(self):
        process = self.start("-P1", "--pending-file=left", "--json=events",
                             *self.script("echo begin $1 1 $$ >>log;"
                                          "read x <gate.a"))
        self.gates["a"] = self.fifo("gate.a")
        self.feed(process, b"a\n", end=False)
        self.await_begun("a")
        os.kill(process.pid, signal.SIGSTOP)  # it reads nothing more
        self.await_stopped(process.pid)
        self.feed(process, b"b\nc\nhalf", end=False)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        self.await_event(event="phase", phase="draining")
        self.let_go("a")
        ended = self.ended(process)
        self.assertEqual(self.left(), [b"b", b"c"])
        self.assertIn(b"; input was left unread", ended.err)
        self.assertTrue(self.events()[-1]["unread"])

    def test_input_that_is_read_to_its_end_is_not_unread(self):
        process = self.started(b"a\nb", "-P1", "--json=events",
                               "--pending-file=left")
        self.await_begun("a")
        self.signalled(process, signal.SIGTERM, "draining")
        self.let_go("a")
        self.assertNotIn(b"unread", self.ended(process).err)
        self.assertEqual(self.left(), [b"b"])

    def test_pending_file_has_keys_of_the_list(self):
        process = self.start("-P1", "--pending-file=left", "--json=events",
                             "--list=echo a; echo b; echo c; sleep 1000",
                             *self.script("echo begin $1 1 $$ >>log;"
                                          "read x <gate.a"))
        self.gates["a"] = self.fifo("gate.a")
        self.await_event(event="added", key="c")
        self.signalled(process, signal.SIGTERM, "draining")
        self.let_go("a")
        self.assertIn(b"; input was left unread", self.ended(process).err)
        self.assertEqual(self.left(), [b"b", b"c"])

    def test_pending_file_may_be_a_pipe_or_a_link(self):
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

    def test_pending_file_without_a_reader_is_an_error(self):
        os.mkfifo(self.path("pipe"))
        ended = self.run_keys(b"a\n", "--pending-file=pipe", "true")
        self.assertEqual(ended.status, 125)
        self.assertIn(b"--pending-file: cannot write 'pipe'", ended.err)


class Halting(Handled):
    def halted(self, policy, keys, *options, status=124):
        """Runs the keys one by one; the key is the exit code; returns how many
        were run."""
        self.write("log", b"")
        self.write("keys", "\n".join(keys).encode())
        ended = self.run_keys(
            b"", "-akeys", "--halt=" + policy, "--retries=0", *options,
            *self.script("echo begin $1 >>log; exit ${1%.*}"))
        self.assertEqual(ended.status, status, ended.err)
        return len(self.begun())

    def test_halt_after_failures(self):
        keys = ["0.1", "1.1", "0.2", "1.2", "0.3", "1.3", "0.4"]
        self.assertEqual(self.halted("soon,fail=1", keys), 2)
        self.assertEqual(self.halted("now,fail=2", keys), 4)
        self.assertEqual(self.halted("never", keys, status=123), 7)
        self.assertEqual(self.halted("now,fail=9", keys, status=123), 7)

    def test_halt_after_successes(self):
        keys = ["1.1", "0.1", "0.2", "0.3"]
        self.assertEqual(self.halted("now,success=1", keys, status=0), 2)
        self.assertEqual(self.halted("soon,success=2", keys, status=0), 3)
        self.assertEqual(self.halted("soon,success=9", keys, status=123), 4)
        self.assertEqual(self.halted("soon,done=3", keys), 3)

    def test_halt_after_a_percentage(self):
        keys = ["0.%d" % i for i in range(5)] + ["1.%d" % i for i in range(9)]
        # 3 of 8 are the first to count, 5 of 10 are half.
        self.assertEqual(self.halted("soon,fail=30%", keys), 8)
        self.assertEqual(self.halted("soon,fail=50%", keys), 10)
        self.assertEqual(self.halted("soon,fail=100%", keys, status=123), 14)
        keys = ["1.0"] + keys[:3]  # one failure is not enough for a part
        self.assertEqual(self.halted("soon,fail=20%", keys, status=123), 4)

    def test_halt_at_the_last_key_stops_nothing(self):
        self.assertEqual(self.halted("soon,fail=1", ["0.1", "1.1"],
                                     status=123), 2)

    def test_retries_do_not_count_for_halt(self):
        ended = self.run_keys(b"a\nb\n", "--halt=now,fail=1", "--backoff=1ms",
                              *self.script("[ $WQ_ATTEMPT = 3 ]"))
        self.assertEqual(ended.status, 0)

    def test_halt_now_stops_other_runs(self):
        process = self.started(b"a\nb\nc\n", "-P2", "--halt=now,fail=1",
                               "--retries=0", "--json=events")
        self.await_begun("a", "b")
        self.let_go("a", 1)
        ended = self.ended(process)
        self.assertEqual(ended.status, 124)
        self.assertIn(b"3 keys, 0 ok, 1 failed, 2 left", ended.err)
        self.assertEqual(sorted(self.finished("outcome")),
                         ["failed", "stopped"])

    def test_halt_soon_lets_other_runs_finish(self):
        process = self.started(b"a\nb\nc\n", "-P2", "--halt=soon,fail=1",
                               "--retries=0", "--json=events")
        self.await_begun("a", "b")
        self.let_go("a", 1)
        self.await_event(event="phase", phase="draining")
        self.let_go("b", 0)
        ended = self.ended(process)
        self.assertEqual(ended.status, 124)
        self.assertIn(b"3 keys, 1 ok, 1 failed, 1 left", ended.err)


class Readers(Handled):
    def assert_ends_without_a_reader(self, handler, *options):
        """It ends quietly, after few of a thousand runs."""
        self.write("log", b"")
        self.write("keys", b"\n".join(b"%d" % i for i in range(1000)))
        read, write = os.pipe()
        os.close(read)
        process = self.start(
            "-akeys", *options,
            *self.script("echo begin $1 >>log; " + handler), stdout=write)
        os.close(write)
        ended = self.ended(process)
        self.assertEqual((ended.status, ended.err), (-signal.SIGPIPE, b""))
        self.assertLess(len(self.begun()), 10)

    def test_output_without_a_reader_ends_wq(self):
        self.assert_ends_without_a_reader("echo $1")

    def test_output_without_a_reader_stops_runs(self):
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

    def test_ungrouped_output_without_a_reader_ends_wq(self):
        for handler in ("echo $1", "trap '' PIPE; echo $1 2>/dev/null",
                        "echo $1 | cat; exit $?"):
            with self.subTest(handler):
                self.assert_ends_without_a_reader(
                    handler, "--ungroup", "--backoff=1ms")

    def test_ungrouped_run_is_stopped_when_the_reader_leaves(self):
        read, write = os.pipe()
        process = self.start("--ungroup", *self.script(
            "echo begin $1 1 $$ >>log; exec sleep 1000"), stdout=write)
        os.close(write)
        self.feed(process, b"a\nb\n")
        self.await_begun("a")
        os.close(read)
        ended = self.ended(process)
        self.assertEqual((ended.status, ended.err), (-signal.SIGPIPE, b""))
        self.assertEqual(self.begun(), ["a"])

    def test_kill_9_ends_the_runs_too(self):
        process = self.started(b"a\nb\nc\n", "-P3")
        self.await_begun("a", "b", "c")
        pids = [self.pid(key) for key in "abc"]
        process.kill()
        process.wait()
        for pid in pids:
            until(lambda pid=pid: not is_running(pid), "the end of a run")


class Summary(Handled):
    def test_summary_is_printed_unless_quiet(self):
        line = b"wq: 2 keys, 2 ok, 0 failed, 0 left; 2 adds; 0 retries\n"
        for options, err in (((), line), (("-q",), b""), (("--quiet",), b""),
                             (("-q", "--summary"), line),
                             (("--dry-run",), b""),
                             (("--summary",), line)):
            with self.subTest(options):
                ended = self.run_keys(b"a\nb\n", *options, "true")
                self.assertEqual((ended.status, ended.err), (0, err))

    def test_summary_counts_different_keys(self):
        process = self.start("--json=events", "--", "true")
        for run in range(1, 4):
            self.feed(process, b"a\n", end=False)
            self.await_event(event="finished", run=run)
        self.feed(process, b"b\n")
        self.assertEqual(self.ended(process).err,
                         b"wq: 2 keys settled 4 times, 4 ok, 0 failed, 0 left; "
                         b"4 adds; 0 retries\n")

    def test_key_that_is_left_and_was_settled_counts_once(self):
        ended = self.run_keys(b"a\nb\n", "-P1", "--halt=soon,done=2",
                              *self.script("echo requeue-after=1h "
                                           ">&$WQ_RESULT_FD"))
        self.assertIn(b"wq: 2 keys, 2 ok, 0 failed, 2 left", ended.err)

    def test_each_failure_is_reported(self):
        ended = self.run_keys(b"a\n\x1b\n", "--retries=0", "--", "false")
        self.assertEqual(ended.status, 123)
        self.assertEqual(ended.err.decode().splitlines(), [
            "wq: a: failed: exit 1 (attempt 1)",
            "wq: \\x1b: failed: exit 1 (attempt 1)",
            "wq: failed keys:",
            "wq:   a: exit 1 (attempt 1)",
            "wq:   \\x1b: exit 1 (attempt 1)",
            "wq: 2 keys, 0 ok, 2 failed, 0 left; 2 adds; 0 retries"])


if __name__ == "__main__":
    main()
