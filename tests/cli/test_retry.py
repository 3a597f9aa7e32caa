# SPDX-License-Identifier: MIT
"""What happens to runs that fail?"""

import os
import re
import signal
import time

from handled import Handled
from program import main, until


class Retries(Handled):
    def attempts(self, code, *options, status=123):
        """How often a handler runs that always exits with `code`."""
        self.write("log", b"")
        ended = self.run_keys(b"a\n", "--backoff=1ms,2ms", *options,
                              *self.script("echo x >>log; exit %d" % code))
        self.assertEqual(ended.status, status, ended.err)
        return len(self.log())

    def test_retries_are_limited(self):
        self.assertEqual(self.attempts(1), 6)
        self.assertEqual(self.attempts(1, "--retries=2"), 3)
        self.assertEqual(self.attempts(1, "--retries=0"), 1)
        self.assertEqual(self.attempts(0, status=0), 1)

    def test_no_retry_codes_are_not_retried(self):
        self.assertEqual(self.attempts(65, "--no-retry-codes=65,70-72"), 1)
        self.assertEqual(self.attempts(71, "--no-retry-codes=65,70-72"), 1)
        self.assertEqual(self.attempts(73, "--no-retry-codes=65,70-72",
                                       "--retries=1"), 2)

    def test_retries_may_be_infinite(self):
        ended = self.run_keys(
            b"a\n", "--retries=inf", "--backoff=1ms,2ms",
            *self.script("echo x >>log; [ $(wc -l <log) -ge 20 ]"))
        self.assertEqual(ended.status, 0)
        self.assertIn(b"1 key, 1 ok, 0 failed, 0 left; 1 add; 19 retries",
                      ended.err)

    def test_no_deadline_is_missed(self):
        # A key may become due between the last look at the queue and the query
        # for the next deadline: each retry is another chance.
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

    def test_giving_up_forgets_failures(self):
        process = self.start("--backoff=1ms", "--json=events", "--retries=1",
                             *self.script("echo $WQ_ATTEMPT >>log; exit 1"))
        self.feed(process, b"a\n", end=False)
        self.await_event(event="finished", outcome="failed")
        self.feed(process, b"a\n")
        self.assertEqual(self.ended(process).status, 123)
        self.assertEqual(self.log(), [["1"], ["2"], ["1"], ["2"]])

    def added_during_a_run(self, *options, code):
        """The key was added while its run ended with `code`. Returns the event
        of its end, and the program."""
        self.gates["a"] = self.fifo("gate.a")
        process = self.start("--json=events", *options, *self.script(
            "echo begin $1 >>log; read code <gate.$1;"
            "[ $code != 2 ] || echo requeue-after=1000h >&$WQ_RESULT_FD;"
            "exit $code"))
        self.feed(process, b"a\n", end=False)
        self.await_begun("a")
        self.feed(process, b"a\n")
        self.await_event(event="added", how="dirty")
        self.let_go("a", code)
        return self.await_event(event="finished", run=1)[0], process

    def test_add_during_a_run_does_not_shorten_the_backoff(self):
        end, process = self.added_during_a_run("--backoff=1000h,1000h", code=1)
        self.assertGreater(end["retry_in"], 10)
        process.terminate()
        self.assertIn(b"1 key, 0 ok, 0 failed, 1 left", self.ended(process).err)
        self.assertEqual(self.begun(), ["a"])

    def test_add_during_a_run_does_not_shorten_requeue_after(self):
        end, process = self.added_during_a_run("--backoff=1ms", code=2)
        self.assertGreater(end["retry_in"], 3599 * 1000)
        process.terminate()
        self.ended(process)
        self.assertEqual(self.begun(), ["a"])

    def test_add_during_a_run_may_replace_the_retry(self):
        end, process = self.added_during_a_run(
            "--backoff=1000h,1000h", "--retry-on-add", code=1)
        self.assertEqual(end["retry_in"], 0)
        self.await_begun("a", "a")
        self.let_go("a", 0)
        self.assertEqual(self.ended(process).status, 0)

    def test_list_does_not_shorten_the_backoff(self):
        process = self.start("--list=echo x >>listed; echo a; echo b",
                             "--resync=10ms", "--backoff=1000h,1000h",
                             "--retries=inf", *self.script("echo $1 >>log;"
                                                           "[ $1 = b ]"))
        until(lambda: os.path.exists(self.path("listed")) and
              len(self.read("listed")) > 20, "ten lists")
        process.terminate()
        self.ended(process)
        self.assertEqual(self.log().count(["a"]), 1)
        self.assertGreater(self.log().count(["b"]), 1)

    def test_exit_75_is_not_an_error(self):
        ended = self.run_keys(b"a\n", "--backoff=1ms", *self.script(
            "[ $WQ_ATTEMPT -ge 3 ] || exit 75"))
        self.assertEqual(ended.status, 0)
        self.assertIn(b"2 retries (2 requested)", ended.err)
        self.assertEqual(self.attempts(75, "--retries=1"), 2)

    def test_backoff_of_0_is_no_delay(self):
        for backoff in ("0", "0,0", "0s,1h,3"):
            self.run_keys(b"a\nb\n", "-q", "--json=events", "--retries=9",
                          "--backoff=" + backoff, "--", "false")
            waits = [event["retry_in"] for event in self.events()
                     if event.get("outcome") == "retry"]
            self.assertEqual(waits, [0] * 18)

    def test_backoff_grows_up_to_its_limit(self):
        """The delay is random, up to 10, 30, 50, 50 ms: with 60 keys some
        delay of each attempt is above the limit of the attempt before."""
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

    def test_key_that_waits_for_its_retry_takes_no_slot(self):
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

    def test_add_waits_for_the_retry(self):
        for options, backoff, code, how in (
                ((), "1000h,1000h", 1, "kept"),
                (("--after=1ms",), "1000h,1000h", 1, "kept"),
                (("--debounce=1ms",), "1000h,1000h", 1, "kept"),
                ((), "1ms", 2, "kept")):  # requeue-after
            with self.subTest(options=options, code=code):
                self.write("events", b"")
                self.write("log", b"")
                process = self.start(
                    "--backoff=" + backoff, "--json=events", *options,
                    *self.script("echo begin $1 >>log; [ %d = 1 ] || echo "
                                 "requeue-after=1000h >&$WQ_RESULT_FD; exit 1"
                                 % code))
                self.feed(process, b"a\n", end=False)
                self.await_event(event="finished", outcome="retry")
                self.feed(process, b"a\nb\n")
                self.await_event(event="added", key="a", how=how)
                self.await_event(event="finished", key="b", outcome="retry")
                process.terminate()
                self.ended(process)
                self.assertEqual(self.begun(), ["a", "b"])

    def test_add_that_waits_is_no_attempt(self):
        process = self.start("--backoff=1000h,1000h", "--json=events",
                             "--retries=1", *self.script("exit 1"))
        self.feed(process, b"a\n", end=False)
        self.await_event(event="finished", outcome="retry")
        self.feed(process, b"a\n" * 10, end=False)
        until(lambda: len([event for event in self.events()
                           if event.get("how") == "kept"]) == 10, "ten adds")
        process.terminate()
        self.assertIn(b"1 key, 0 ok, 0 failed, 1 left", self.ended(process).err)

    def test_add_may_end_the_backoff(self):
        process = self.start("--backoff=1000h,1000h", "--json=events",
                             "--retry-on-add", *self.script("echo begin $1 >>log;"
                                          "[ $(wc -l <log) -ge 2 ]"))
        self.feed(process, b"a\n", end=False)
        self.await_event(event="finished", outcome="retry")
        self.feed(process, b"a\n")
        ended = self.ended(process)  # one run covered both
        self.assertEqual(ended.status, 0)
        self.assertEqual(self.begun(), ["a", "a"])

    def reports(self, keys, *options):
        """What is reported about retries, without the times."""
        ended = self.run_keys(keys, *options)
        return [re.sub(r" in [0-9.]+m?s", " in TIME", line)
                for line in ended.err.decode().splitlines() if "retry 1" in line]

    def test_first_failure_is_reported(self):
        self.assertEqual(
            self.reports(b"a\nb\n", "--retries=3", "--backoff=1ms,2ms", "--",
                         "sh", "-c", '[ $1 != b ] || kill -TERM $$; exit 7',
                         "sh"),
            ["wq: a: exit 7; retry 1 of 3 in TIME",
             "wq: b: killed by SIGTERM; retry 1 of 3 in TIME"])
        self.assertEqual(
            self.reports(b"a\n", "--retries=inf", "--backoff=1ms,2ms",
                         *self.script("[ $WQ_ATTEMPT = 9 ]")),
            ["wq: a: exit 1; retry 1 of inf in TIME"])
        for options in (("-q",), ("--retries=0",)):
            self.assertEqual(self.reports(b"a\n", "--backoff=1ms", *options,
                                          "--", "false"), [])
        self.assertEqual(self.reports(b"a\n", "--backoff=1ms", *self.script(
            "[ $WQ_ATTEMPT = 2 ] || exit 75")), [])

    def test_reports_of_many_failures_are_limited(self):
        keys = b"".join(b"%d\n" % i for i in range(300))
        begin = time.monotonic()
        reports = self.reports(keys, "-P4", "--retries=1", "--backoff=1ms",
                               "--", "false")
        self.assertGreaterEqual(len(reports), 10)
        self.assertLessEqual(len(reports), 11 + time.monotonic() - begin)
        self.assertEqual([line for line in reports[:10] if "more" in line], [])

    def test_end_of_input_waits_for_retries(self):
        ended = self.run_keys(b"a\nb\n", "--json=events", *self.script(
            "[ $1 = b ] || [ $WQ_ATTEMPT = 2 ] || "
            "{ echo requeue-after=200ms >&$WQ_RESULT_FD; exit 1; }"))
        self.assertEqual(ended.status, 0)
        self.assertGreaterEqual(ended.seconds, 0.2)
        self.assertIn(b"2 keys, 2 ok, 0 failed, 0 left; 2 adds; 1 retry",
                      ended.err)

    def test_retry_keeps_the_priority(self):
        self.run_keys(b"a\n", "--priority=4", "--backoff=1ms", *self.script(
            "echo $WQ_PRIORITY >>log; [ $WQ_ATTEMPT = 2 ]"))
        self.assertEqual(self.log(), [["4"], ["4"]])


class Killed(Handled):
    def test_killed_run_has_failed(self):
        process = self.started(b"a\n", "--retries=1", "--backoff=1ms")
        self.await_begun("a")
        os.kill(self.pid("a"), signal.SIGKILL)
        self.await_begun("a", "a")
        os.kill(self.pid("a"), signal.SIGSEGV)
        ended = self.ended(process)
        self.assertEqual(ended.status, 123)
        self.assertIn(b"a: failed: killed by SIGSEGV (attempt 2)", ended.err)

    def test_run_that_kills_itself_is_retried(self):
        ended = self.run_keys(b"a\n", "--backoff=1ms", *self.script(
            "[ $WQ_ATTEMPT = 3 ] || kill -9 $$"))
        self.assertEqual(ended.status, 0)
        self.assertIn(b"2 retries", ended.err)


class StopAll(Handled):
    def test_exit_255_stops_wq_and_lets_runs_finish(self):
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

    def test_exit_255_of_the_last_key(self):
        ended = self.run_keys(b"", "-a/dev/null", *self.script("exit 255"))
        self.assertEqual(ended.status, 0)
        self.write("keys", b"a\n")
        process = self.start("-akeys", "--json=events", *self.script(
            "until grep -q finishing events; do sleep 0.01; done; exit 255"))
        self.assertEqual(self.ended(process).status, 123)


if __name__ == "__main__":
    main()
