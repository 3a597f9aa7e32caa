# SPDX-License-Identifier: MIT
"""What becomes of runs that fail?"""

import os
import signal
import time
import unittest

from handled import Handled
from program import until


class Retries(Handled):
    def attempts(self, code, *options, status=123):
        """How often is a handler run that always exits with `code`?"""
        self.write("log", b"")
        ended = self.run_keys(b"a\n", "--backoff=1ms,2ms", *options,
                              *self.script("echo x >>log; exit %d" % code))
        self.assertEqual(ended.status, status, ended.err)
        return len(self.log())

    def test_as_often_as_said(self):
        self.assertEqual(self.attempts(1), 6)
        self.assertEqual(self.attempts(1, "--retries=2"), 3)
        self.assertEqual(self.attempts(1, "--retries=0"), 1)
        self.assertEqual(self.attempts(0, status=0), 1)

    def test_codes_that_are_for_good(self):
        self.assertEqual(self.attempts(65, "--no-retry-codes=65,70-72"), 1)
        self.assertEqual(self.attempts(71, "--no-retry-codes=65,70-72"), 1)
        self.assertEqual(self.attempts(73, "--no-retry-codes=65,70-72",
                                       "--retries=1"), 2)

    def test_until_it_works(self):
        ended = self.run_keys(
            b"a\n", "--retries=inf", "--backoff=1ms,2ms",
            *self.script("echo x >>log; [ $(wc -l <log) -ge 20 ]"))
        self.assertEqual(ended.status, 0)
        self.assertIn(b"1 key, 1 ok, 0 failed, 0 left; 1 add; 19 retries",
                      ended.err)

    def test_no_deadline_is_slept_through(self):
        # A key may become due between the last look at the queue and the
        # question when the next one will: each retry is another chance.
        ended = self.run_keys(
            b"a\nb\nc\n", "-P3", "-q", "--retries=150",
            "--backoff=1ms,1ms", "--", "false")
        self.assertEqual(ended.status, 123)

    def test_success_forgets_failures(self):
        process = self.start("--backoff=1ms", "--json=events", *self.script(
            "echo $WQ_ATTEMPT >>log; n=$(wc -l <log);"
            "[ $n -eq 3 ] || [ $n -ge 5 ]"))
        self.feed(process, b"a\n", end=False)
        self.await_event(event="finished", outcome="ok")
        self.feed(process, b"a\n")
        self.assertEqual(self.ended(process).status, 0)
        self.assertEqual(self.log(), [["1"], ["2"], ["3"], ["1"], ["2"]])

    def test_giving_up_forgets_them_too(self):
        process = self.start("--backoff=1ms", "--json=events", "--retries=1",
                             *self.script("echo $WQ_ATTEMPT >>log; exit 1"))
        self.feed(process, b"a\n", end=False)
        self.await_event(event="finished", outcome="failed")
        self.feed(process, b"a\n")
        self.assertEqual(self.ended(process).status, 123)
        self.assertEqual(self.log(), [["1"], ["2"], ["1"], ["2"]])

    def test_a_key_that_came_again_is_not_retried_besides(self):
        process = self.started(b"", gates="a")
        self.ended(process)
        process = self.start("--backoff=100ms,100ms", "--json=events",
                             *self.script("echo begin $1 >>log;"
                                          "read code <gate.$1; exit $code"))
        self.feed(process, b"a\n", end=False)
        self.await_begun("a")
        self.feed(process, b"a\n")
        self.await_event(event="added", how="dirty")
        self.let_go("a", 1)
        self.await_begun("a", "a")
        self.let_go("a", 0)
        self.assertEqual(self.ended(process).status, 0)
        self.assertEqual(self.begun(), ["a", "a"])

    def test_temporary_failures_are_no_errors(self):
        ended = self.run_keys(b"a\n", "--backoff=1ms", *self.script(
            "[ $WQ_ATTEMPT -ge 3 ] || exit 75"))
        self.assertEqual(ended.status, 0)
        self.assertIn(b"2 retries (2 asked for)", ended.err)
        self.assertEqual(self.attempts(75, "--retries=1"), 2)

    def test_it_waits_longer_each_time_up_to_a_limit(self):
        """Anything from nothing to 10, 30, 50, 50 ms: of 60 keys each time
        one waits for more than was possible before, and none for less than
        the others."""
        self.run_keys(b"".join(b"%d\n" % i for i in range(60)), "-q", "-P4",
                      "--json=events", "--retries=4", "--backoff=10ms,50ms,3",
                      "--", "false")
        limits = (0, 0.010, 0.030, 0.050, 0.050)
        for attempt in range(1, 5):
            waits = [event["retry_in"] for event in self.events()
                     if event.get("outcome") == "retry" and
                     event["attempt"] == attempt]
            self.assertEqual(len(waits), 60)
            self.assertLessEqual(max(waits), limits[attempt])
            if limits[attempt] > limits[attempt - 1]:
                self.assertGreater(max(waits), limits[attempt - 1])
            self.assertLess(min(waits), limits[attempt] / 2)

    def test_who_waits_for_a_retry_takes_no_slot(self):
        process = self.started(b"a\nb\n", "-P1", "--backoff=1000h,1000h",
                               "--json=events")
        self.await_begun("a")
        self.let_go("a", 1)
        self.await_begun("a", "b")
        self.let_go("b")
        self.await_event(event="finished", key="b")
        process.terminate()
        self.assertIn(b"2 keys, 1 ok, 0 failed, 1 left; 2 adds; 1 retry",
                      self.ended(process).err)

    def test_a_key_that_comes_again_does_not_wait_for_its_retry(self):
        process = self.started(b"", "-P1", "--backoff=1000h,1000h",
                               "--json=events")
        self.ended(process)
        process = self.start("--backoff=1000h,1000h", "--json=events",
                             *self.script("echo begin $1 >>log;"
                                          "[ $(wc -l <log) -ge 2 ]"))
        self.feed(process, b"a\n", end=False)
        self.await_event(event="finished", outcome="retry")
        self.feed(process, b"a\n")
        ended = self.ended(process)  # one run served both
        self.assertEqual(ended.status, 0)
        self.assertEqual(self.begun(), ["a", "a"])

    def test_the_end_of_input_waits_for_retries(self):
        begin = time.monotonic()
        ended = self.run_keys(b"a\nb\n", "--json=events", *self.script(
            "[ $1 = b ] || [ $WQ_ATTEMPT = 2 ] || "
            "{ echo requeue-after=200ms >&$WQ_RESULT_FD; exit 1; }"))
        self.assertEqual(ended.status, 0)
        self.assertGreaterEqual(time.monotonic() - begin, 0.2)
        self.assertIn(b"2 keys, 2 ok, 0 failed, 0 left; 2 adds; 1 retry",
                      ended.err)

    def test_a_priority_is_kept(self):
        self.run_keys(b"a\n", "--priority=4", "--backoff=1ms", *self.script(
            "echo $WQ_PRIORITY >>log; [ $WQ_ATTEMPT = 2 ]"))
        self.assertEqual(self.log(), [["4"], ["4"]])


class Killed(Handled):
    def test_a_child_that_is_killed_has_failed(self):
        process = self.started(b"a\n", "--retries=1", "--backoff=1ms")
        self.await_begun("a")
        os.kill(self.pid("a"), signal.SIGKILL)
        self.await_begun("a", "a")
        os.kill(self.pid("a"), signal.SIGSEGV)
        ended = self.ended(process)
        self.assertEqual(ended.status, 123)
        self.assertIn(b"a: failed: killed by SIGSEGV (attempt 2)", ended.err)

    def test_one_that_kills_itself_is_retried(self):
        ended = self.run_keys(b"a\n", "--backoff=1ms", *self.script(
            "[ $WQ_ATTEMPT = 3 ] || kill -9 $$"))
        self.assertEqual(ended.status, 0)
        self.assertIn(b"2 retries", ended.err)


class StopAll(Handled):
    def test_255_stops_everything_and_lets_runs_finish(self):
        process = self.started(b"a\nb\nc\n", "-P2", "--pending-file=left")
        self.await_begun("a", "b")
        self.let_go("a", 255)
        until(lambda: self.log()[-1][0] == "end", "the end of a")
        self.let_go("b", 0)
        ended = self.ended(process)
        self.assertEqual(ended.status, 124)
        self.assertIn(b"exited with 255", ended.err)
        self.assertIn(b"3 keys, 1 ok, 1 failed, 1 left", ended.err)
        self.assertEqual(sorted(self.begun()), ["a", "b"])
        self.assertEqual(self.read("left"), b"c\0")

    def test_255_of_the_last_key(self):
        ended = self.run_keys(b"", "-a/dev/null", *self.script("exit 255"))
        self.assertEqual(ended.status, 0)
        self.write("keys", b"a\n")
        process = self.start("-akeys", "--json=events", *self.script(
            "until grep -q finishing events; do sleep 0.01; done; exit 255"))
        self.assertEqual(self.ended(process).status, 123)


if __name__ == "__main__":
    unittest.main()
