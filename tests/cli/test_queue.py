# SPDX-License-Identifier: MIT
"""Which key runs when? Which adds merge, and which keys wait?"""

import os
import time

from handled import Handled
from program import main, until


class Merging(Handled):
    def test_pending_key_runs_once(self):
        process = self.started(b"a\nb\nb\nc\nb\n", "-P1")
        self.await_begun("a")
        for key in "abc":
            self.let_go(key)
        ended = self.ended(process)
        self.assertEqual(self.begun(), ["a", "b", "c"])
        self.assertIn(b"3 keys, 3 ok, 0 failed, 0 left; 5 adds (40% dedup",
                      ended.err)

    def test_key_added_while_it_runs_runs_again(self):
        process = self.started(b"", "-P4", "--json=events")
        self.assertEqual(self.ended(process).status, 0)
        process = self.start("-P4", "--json=events", *self.script(
            "echo begin $1 >>log; read code <gate.$1; exit $code"))
        self.feed(process, b"a\n", end=False)
        self.await_begun("a")
        self.feed(process, b"a\na\na\nb\n")
        self.await_begun("a", "b")  # a slot is free, but it is not run twice
        self.await_event(event="added", key="b")
        self.let_go("a")
        self.await_begun("a", "b", "a")
        self.let_go("a")
        self.let_go("b")
        self.assertEqual(self.ended(process).status, 0)
        self.assertEqual(self.begun().count("a"), 2)

    def test_key_added_after_its_run_runs_again(self):
        process = self.start("--json=events", *self.script("echo $1 >>log"))
        for n in range(1, 4):
            self.feed(process, b"a\n", end=False)
            until(lambda n=n: len(self.finished("run")) == n,
                  "the end of run %d" % n)
        self.assertEqual(self.ended(process).status, 0)
        self.assertEqual(self.read("log"), b"a\na\na\n")


class Order(Handled):
    def test_keys_run_in_the_order_of_their_adds(self):
        ended = self.run_keys(b"3\n1\n2\n", "-q", "echo")
        self.assertEqual(ended.lines(), ["3", "1", "2"])

    def test_higher_priorities_run_first(self):
        self.write("high", b"h1\nh2\n")
        gate = self.fifo("gate")
        process = self.start("--input=jsonl", *self.script(
            "echo $1 $WQ_PRIORITY >>log; [ $1 != first ] || read x <gate"))
        self.feed(process, b'"first"\n', end=False)
        until(lambda: os.path.exists(self.path("log")), "the first")
        self.feed(process, b'"a"\n{"key":"b","priority":-5}\n'
                           b'{"key":"c","priority":10}\n"d"\n'
                           b'{"key":"a","priority":3}\n'  # raised
                           b'{"key":"last","priority":-2147483648}\n')
        os.write(gate, b"\n")
        self.assertEqual(self.ended(process).status, 0)
        self.assertEqual(self.log(), [
            ["first", "0"], ["c", "10"], ["a", "3"], ["d", "0"], ["b", "-5"],
            ["last", "-2147483648"]])


class Waiting(Handled):
    def elapsed(self, *options, keys=b"a\n"):
        ended = self.run_keys(keys, *options, *self.script("echo $1 >>log"))
        self.assertEqual(ended.status, 0, ended.err)
        return ended.seconds

    def test_after_delays_a_key(self):
        self.assertGreaterEqual(self.elapsed("--after=150ms"), 0.15)
        self.assertEqual(self.read("log"), b"a\n")

    def test_debounce_at_the_end_of_input(self):
        self.assertGreaterEqual(
            self.elapsed("--debounce=150ms", keys=b"a\nb\na\na\n"), 0.15)
        self.assertEqual(sorted(self.read("log").split()), [b"a", b"b"])

    def test_debounce_delays_a_key_that_is_added_again(self):
        process = self.start("--debounce=1h", "--json=events",
                             *self.script("echo $1 >>log"))
        self.feed(process, b"a\na\n", end=False)
        until(lambda: [event["how"] for event in self.events()
                       if event["event"] == "added"] == ["scheduled", "later"],
              "two adds")
        self.assertFalse(os.path.exists(self.path("log")))
        process.terminate()
        self.assertIn(b"1 key, 0 ok, 0 failed, 1 left; 2 adds (50% dedup",
                      self.ended(process).err)

    def test_debounce_ends_at_debounce_max(self):
        begin = time.monotonic()
        process = self.start("--debounce=1h", "--debounce-max=100ms",
                             *self.script("echo $1 >>log"))
        self.feed(process, b"a\na\na\n")
        self.assertEqual(self.ended(process).status, 0)
        self.assertGreaterEqual(time.monotonic() - begin, 0.1)
        self.assertEqual(self.read("log"), b"a\n")

    def test_key_with_after_is_not_debounced(self):
        process = self.start("--debounce=1h", "--input=jsonl", "--follow",
                             *self.script("echo $1 >>log"))
        self.feed(process, b'"a"\n{"key":"b","after":"1ms"}\n')
        until(lambda: os.path.exists(self.path("log")) and self.log() == [["b"]],
              "the run of b")
        process.terminate()
        self.ended(process)

    def test_waiting_key_takes_no_slot(self):
        process = self.started(b'{"key":"a","after":"1h"}\n"b"\n', "-P1",
                               "--input=jsonl")
        self.await_begun("b")
        self.let_go("b")
        process.terminate()
        self.assertIn(b"1 left", self.ended(process).err)


class Rate(Handled):
    def last_start(self, rate, n):
        """The seconds from the start to the last of n runs."""
        begin = time.time()
        ended = self.run_keys(
            b"".join(b"%d\n" % i for i in range(n)), "-q", "-P8",
            "--rate=" + rate, "--json=events", "--", "true")
        self.assertEqual(ended.status, 0)
        times = [event["time"] for event in self.events()
                 if event["event"] == "started"]
        self.assertEqual(len(times), n)
        return times[-1] - begin

    def test_rate_limits_starts(self):
        self.assertGreaterEqual(self.last_start("50/s", 10), 9 / 50)

    def test_rate_allows_a_burst(self):
        self.assertGreaterEqual(self.last_start("20/s:5", 8), 3 / 20)
        self.assertLess(self.last_start("1/h:5", 5), 3600)

    def test_rate_per_minute(self):
        process = self.start("--rate=1/m", "--json=events", "--", "true")
        self.feed(process, b"a\nb\n")
        self.await_event(event="finished", key="a")
        process.terminate()
        ended = self.ended(process)
        self.assertIn(b"2 keys, 1 ok, 0 failed, 1 left", ended.err)

    def test_keys_merge_while_the_rate_delays_them(self):
        process = self.start("--rate=10/s", "--json=events", "--input=jsonl",
                             *self.script("echo $1 >>log"))
        self.feed(process, b'"a"\n"b"\n"b"\n{"key":"c","priority":1}\n"b"\n')
        self.assertEqual(self.ended(process).status, 0)
        self.assertEqual(self.log(), [["c"], ["a"], ["b"]])


if __name__ == "__main__":
    main()
