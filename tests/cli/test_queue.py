# SPDX-License-Identifier: MIT
"""Which key runs when? What is merged, what waits, who comes first?"""

import os
import time
import unittest

from handled import Handled
from program import until


class Merging(Handled):
    def test_a_key_that_is_pending_runs_once(self):
        process = self.started(b"a\nb\nb\nc\nb\n", "-P1")
        self.await_begun("a")
        for key in "abc":
            self.let_go(key)
        ended = self.ended(process)
        self.assertEqual(self.begun(), ["a", "b", "c"])
        self.assertIn(b"3 keys, 3 ok, 0 failed, 0 left; 5 adds (40% dedup",
                      ended.err)

    def test_a_key_that_comes_while_it_runs_runs_once_more(self):
        process = self.started(b"", "-P4", "--json=events")
        self.assertEqual(self.ended(process).status, 0)
        process = self.start("-P4", "--json=events", *self.script(
            "echo begin $1 >>log; read code <gate.$1; exit $code"))
        self.feed(process, b"a\n", end=False)
        self.await_begun("a")
        self.feed(process, b"a\na\na\nb\n")
        self.await_begun("a", "b")  # there are places, but it is not run twice
        self.await_event(event="added", key="b")
        self.let_go("a")
        self.await_begun("a", "b", "a")
        self.let_go("a")
        self.let_go("b")
        self.assertEqual(self.ended(process).status, 0)
        self.assertEqual(self.begun().count("a"), 2)

    def test_a_key_that_comes_again_later_runs_again(self):
        process = self.start("--json=events", *self.script("echo $1 >>log"))
        for n in range(1, 4):
            self.feed(process, b"a\n", end=False)
            until(lambda n=n: len([event for event in self.events() if
                                   event["event"] == "finished"]) == n,
                  "the end of run %d" % n)
        self.assertEqual(self.ended(process).status, 0)
        self.assertEqual(self.read("log"), b"a\na\na\n")


class Order(Handled):
    def test_first_come_first_served(self):
        ended = self.run_keys(b"3\n1\n2\n", "-q", "echo")
        self.assertEqual(ended.lines(), ["3", "1", "2"])

    def test_priorities(self):
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
        begin = time.monotonic()
        ended = self.run_keys(keys, *options, *self.script("echo $1 >>log"))
        self.assertEqual(ended.status, 0, ended.err)
        return time.monotonic() - begin

    def test_after(self):
        self.assertGreaterEqual(self.elapsed("--after=150ms"), 0.15)
        self.assertEqual(self.read("log"), b"a\n")

    def test_debounce_at_the_end_of_input(self):
        self.assertGreaterEqual(
            self.elapsed("--debounce=150ms", keys=b"a\nb\na\na\n"), 0.15)
        self.assertEqual(sorted(self.read("log").split()), [b"a", b"b"])

    def test_debounce_puts_off_while_a_key_comes(self):
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

    def test_but_no_longer_than_its_limit(self):
        begin = time.monotonic()
        process = self.start("--debounce=1h", "--debounce-max=100ms",
                             *self.script("echo $1 >>log"))
        self.feed(process, b"a\na\na\n")
        self.assertEqual(self.ended(process).status, 0)
        self.assertGreaterEqual(time.monotonic() - begin, 0.1)
        self.assertEqual(self.read("log"), b"a\n")

    def test_a_key_of_its_own_time_is_not_debounced(self):
        process = self.start("--debounce=1h", "--input=jsonl", "--follow",
                             *self.script("echo $1 >>log"))
        self.feed(process, b'"a"\n{"key":"b","after":"1ms"}\n')
        until(lambda: os.path.exists(self.path("log")) and self.log() == [["b"]],
              "the run of b")
        process.terminate()
        self.ended(process)

    def test_who_waits_takes_no_slot(self):
        process = self.started(b'{"key":"a","after":"1h"}\n"b"\n', "-P1",
                               "--input=jsonl")
        self.await_begun("b")
        self.let_go("b")
        process.terminate()
        self.assertIn(b"1 left", self.ended(process).err)


class Rate(Handled):
    def last_start(self, rate, n):
        """How long after we began was the last of n runs started?"""
        begin = time.time()
        ended = self.run_keys(
            b"".join(b"%d\n" % i for i in range(n)), "-q", "-P8",
            "--rate=" + rate, "--json=events", "--", "true")
        self.assertEqual(ended.status, 0)
        times = [event["time"] for event in self.events()
                 if event["event"] == "started"]
        self.assertEqual(len(times), n)
        return times[-1] - begin

    def test_starts_are_paced(self):
        self.assertGreaterEqual(self.last_start("50/s", 10), 9 / 50)

    def test_a_burst_is_allowed(self):
        self.assertGreaterEqual(self.last_start("20/s:5", 8), 3 / 20)
        self.assertLess(self.last_start("1/h:5", 5), 3600)

    def test_by_the_minute(self):
        process = self.start("--rate=1/m", "--json=events", "--", "true")
        self.feed(process, b"a\nb\n")
        self.await_event(event="finished", key="a")
        process.terminate()
        ended = self.ended(process)
        self.assertIn(b"2 keys, 1 ok, 0 failed, 1 left", ended.err)

    def test_while_it_waits_keys_merge_and_the_urgent_come_first(self):
        process = self.start("--rate=10/s", "--json=events", "--input=jsonl",
                             *self.script("echo $1 >>log"))
        self.feed(process, b'"a"\n"b"\n"b"\n{"key":"c","priority":1}\n"b"\n')
        self.assertEqual(self.ended(process).status, 0)
        self.assertEqual(self.log(), [["c"], ["a"], ["b"]])


if __name__ == "__main__":
    unittest.main()
