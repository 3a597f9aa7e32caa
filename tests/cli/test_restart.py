# SPDX-License-Identifier: MIT
"""Does --restart stop the run of a key that is added again?"""

import signal

from handled import WAITING, Handled
from program import main


class Restart(Handled):
    def restarting(self, *options, script=WAITING):
        for gate in "ab":
            self.gates[gate] = self.fifo("gate." + gate)
        return self.start("--restart", "-P2", "--retries=0", "--json=events",
                          *options, *self.script(script))

    def test_run_is_stopped_and_started_again(self):
        process = self.restarting("--joblog=jobs")
        self.feed(process, b"a\nb\n", end=False)
        self.await_begun("a", "b")
        self.feed(process, b"a\n")
        self.await_event(event="finished", key="a", outcome="restarted",
                         signal=int(signal.SIGTERM))
        self.await_begun("a", "b", "a")
        self.let_go("a")
        self.let_go("b")
        ended = self.ended(process)
        self.assertEqual(ended.status, 0)
        self.assertIn(b"2 keys, 2 ok, 0 failed, 0 left; 3 adds; 0 retries; "
                      b"1 restart\n", ended.err)
        self.assertEqual([line[2] for line in self.log()
                          if line[:2] == ["begin", "a"]], ["1", "1"])
        self.assertEqual(len(self.read("jobs").splitlines()), 3)
        self.assertEqual(self.events()[-1]["restarts"], 1)

    def test_run_that_ignores_the_signal_is_killed(self):
        process = self.restarting(
            "--kill-after=10ms", script="trap '' TERM\n" + WAITING)
        self.feed(process, b"a\n", end=False)
        self.await_begun("a")
        self.feed(process, b"a\na\n")
        self.await_event(event="finished", outcome="restarted",
                         signal=int(signal.SIGKILL))
        self.await_begun("a", "a")
        self.let_go("a")
        self.assertEqual(self.ended(process).status, 0)

    def test_failures_before_count_on(self):
        process = self.restarting("--retries=1", "--backoff=1ms")
        self.feed(process, b"a\n", end=False)
        self.await_begun("a")
        self.let_go("a", 1)
        self.await_begun("a", "a")
        self.feed(process, b"a\n")
        self.await_begun("a", "a", "a")
        self.let_go("a", 1)
        self.assertEqual(self.ended(process).status, 123)
        self.assertEqual([line[2] for line in self.log()
                          if line[0] == "begin"], ["1", "2", "2"])
        self.assertEqual(self.finished("outcome"),
                         ["retry", "restarted", "failed"])

    def test_handler_may_end_as_it_likes(self):
        process = self.restarting(
            script="trap 'exit 255' TERM\n" + WAITING.replace(
                'read code', 'sleep 1000 & wait; read code'))
        self.feed(process, b"a\n", end=False)
        self.await_begun("a")
        self.feed(process, b"a\n", end=False)
        self.await_begun("a", "a")
        self.signalled(process, signal.SIGTERM, "draining")
        self.signalled(process, signal.SIGTERM, "stopping")
        self.ended(process)
        self.assertEqual(self.finished("outcome"), ["restarted", "stopped"])

    def test_next_run_waits_for_the_debounce(self):
        process = self.restarting("--debounce=300ms")
        self.feed(process, b"a\n", end=False)
        self.await_begun("a")
        self.feed(process, b"a\n")
        self.await_begun("a", "a")
        self.let_go("a")
        self.assertEqual(self.ended(process).status, 0)
        added = self.await_event(event="added", key="a")[1]["time"]
        started = self.await_event(event="started", key="a")[1]["time"]
        self.assertGreater(started - added, 0.29)

    def test_run_that_adds_its_key_is_not_stopped(self):
        ended = self.run_keys(
            b"a\n", "-q", "--restart", "--json=events", *self.script(
                'if [ ! -e once ]; then : >once; '
                'echo add=$1 >&"$WQ_RESULT_FD"; sleep 0.1; fi; echo $1'))
        self.assertEqual(ended.out, b"a\na\n")
        self.assertEqual(self.finished("outcome"), ["ok", "ok"])

    def test_place_of_the_output_is_kept(self):
        process = self.restarting("-k")
        self.feed(process, b"a\nb\n", end=False)
        self.await_begun("a", "b")
        self.feed(process, b"a\n")
        self.await_begun("a", "b", "a")
        self.let_go("b")
        self.let_go("a")
        self.assertEqual(self.ended(process).status, 0)

    def test_wrong_options_are_refused(self):
        for option in ("-n2", "--queue=sqlite:q", "--resync=1s"):
            ended = self.run_keys(b"", "--restart", "--list=true", option,
                                  "true")
            self.assertEqual(ended.status, 125)
            self.assertIn(b"--restart: cannot be combined with", ended.err)


if __name__ == "__main__":
    main()
