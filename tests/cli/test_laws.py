# SPDX-License-Identifier: MIT
"""Does a key run once at a time, and again if it was added while it ran? Ten
thousand random adds, compared with a model."""

import os
import random
import signal
import threading
import time
from collections import Counter

from handled import Handled
from program import TIMEOUT, Ended, main

HANDLER = os.environ.get("WQ_HANDLER", "./handler")
ADDS, KEYS, SLOTS = 10000, 50, 8


class Model:
    """The states of all keys, event by event. A key that failed waits for its
    retry, which also covers the adds that come meanwhile."""

    def __init__(self, test):
        self.test = test
        self.ready, self.running, self.dirty = set(), set(), set()
        self.starts, self.adds, self.kills = Counter(), 0, 0

    def added(self, key, how):
        self.adds += 1
        if key in self.ready or key in self.dirty:
            expected = {"merged", "kept"}  # "kept": it waits for its retry
        elif key in self.running:
            expected = {"dirty"}
            self.dirty.add(key)
        else:
            expected = {"new"}
            self.ready.add(key)
        self.test.assertIn(how, expected, key)

    def started(self, key):
        self.test.assertIn(key, self.ready)
        self.test.assertNotIn(key, self.running)
        self.ready.discard(key)
        self.running.add(key)
        self.test.assertLessEqual(len(self.running), SLOTS)
        self.starts[key] += 1

    def finished(self, key, outcome):
        self.running.remove(key)
        if key in self.dirty or outcome == "retry":
            self.ready.add(key)
        self.kills += outcome == "retry"
        self.dirty.discard(key)


def handlers_of(pid):
    """The children that run the handler: a sanitizer has other children."""
    def is_handler(child):
        try:
            return os.path.samefile("/proc/%d/exe" % child, HANDLER)
        except OSError:
            return False
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid),
                  encoding="ascii") as file:
            return [int(child) for child in file.read().split()
                    if is_handler(int(child))]
    except OSError:
        return []


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return pid


class Laws(Handled):
    def assert_laws(self, events):
        model = Model(self)
        for event in events:
            if event["event"] == "added":
                model.added(event["key"], event["how"])
            elif event["event"] == "started":
                model.started(event["key"])
            elif event["event"] == "finished":
                self.assertIn(event["outcome"], ("ok", "retry"))
                model.finished(event["key"], event["outcome"])
        self.assertEqual(model.adds, ADDS)
        self.assertFalse(model.ready or model.running or model.dirty)
        return model

    def assert_intervals(self, killed):
        """Checks the log that the handlers wrote."""
        open_runs, most = {}, 0
        for what, key, pid, time_ns in self.log():
            self.assertNotEqual(what, "overlap", key)
            if what == "begin":
                if key in open_runs:  # the one before was killed
                    self.assertTrue(killed)
                open_runs[key] = (pid, int(time_ns))
            else:
                begun_pid, begun_ns = open_runs.pop(key)
                self.assertEqual(begun_pid, pid)
                self.assertLessEqual(begun_ns, int(time_ns))
            most = max(most, len(open_runs))
        self.assertLessEqual(most, SLOTS if not killed else KEYS)
        if not killed:
            self.assertFalse(open_runs)
        return Counter(self.begun())

    def feed_at_random(self, process, dice):
        keys = ["k%d" % i for i in range(KEYS)]
        left = ADDS
        while left:
            n = min(left, dice.randrange(1, 16))
            process.stdin.write("".join(
                dice.choice(keys) + "\n" for _ in range(n)).encode())
            process.stdin.flush()
            left -= n
            time.sleep(dice.random() / 1000)  # let some of them run

    def run_at_random(self, seed, disturb=None, options=()):
        process = self.start(
            "-q", "-P%d" % SLOTS, "--json=events", "--retries=inf",
            "--backoff=1ms,2ms", *options, "--", HANDLER, "{}", "2000")
        dice = random.Random(seed)
        thread = threading.Thread(target=disturb, args=(process,))
        if disturb:
            thread.start()
        self.feed_at_random(process, dice)
        out, err = process.communicate(timeout=TIMEOUT)
        if disturb:
            thread.join()
        return Ended(process.returncode, out, err)

    def test_random_adds_keep_the_laws(self):
        seed = random.randrange(1 << 32)
        with self.subTest(seed=seed):
            ended = self.run_at_random(seed)
            self.assertEqual((ended.status, ended.err), (0, b""))
            model = self.assert_laws(self.events())
            self.assertEqual(self.assert_intervals(False), model.starts)
            self.assertGreater(sum(model.starts.values()), 2 * KEYS)

    def assert_groups(self, most):
        """Checks that so many keys with the same last digit ran at a time."""
        running = Counter()
        for event in self.events():
            if event["event"] in ("started", "finished"):
                group = event["key"][-1]
                running[group] += 1 if event["event"] == "started" else -1
                self.assertLessEqual(running[group], most)

    def test_options_that_remember_keys_keep_the_laws(self):
        seed = random.randrange(1 << 32)
        with self.subTest(seed=seed):
            ended = self.run_at_random(
                seed, options=("--keep-order", "--key=^(k[0-9]+)$",
                               "--group-by=.$", "--group-max=2"))
            self.assertEqual((ended.status, ended.err), (0, b""))
            model = self.assert_laws(self.events())
            self.assertEqual(self.assert_intervals(False), model.starts)
            self.assert_groups(2)

    def test_random_adds_and_kills_keep_the_laws(self):
        seed = random.randrange(1 << 32)
        dice = random.Random(seed)
        tried = []

        def kill_some(process):
            while process.poll() is None:
                pids = handlers_of(process.pid)
                if pids:
                    tried.append(kill(dice.choice(pids)))
                time.sleep(0.002)

        with self.subTest(seed=seed):
            ended = self.run_at_random(seed, kill_some)
            self.assertEqual((ended.status, ended.err), (0, b""))
            model = self.assert_laws(self.events())
            begun = self.assert_intervals(True)
            for key, starts in begun.items():  # some die before they begin
                self.assertLessEqual(starts, model.starts[key])
            self.assertGreater(model.kills, 0)
            self.assertTrue(tried)


if __name__ == "__main__":
    main()
