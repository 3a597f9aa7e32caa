# SPDX-License-Identifier: MIT
"""Does --once run a key again only if it has not succeeded?"""

from handled import WAITING, Handled
from program import main


class Once(Handled):
    def open_input(self, *options):
        """The program with handlers that wait, and with an open stdin."""
        for gate in "ab":
            self.gates[gate] = self.fifo("gate." + gate)
        return self.start("--once", "--json=events", "--backoff=1ms", *options,
                          *self.script("echo $1\n" + WAITING))

    def test_key_that_succeeded_is_skipped(self):
        process = self.open_input()
        self.feed(process, b"a\n", end=False)
        self.await_begun("a")
        self.let_go("a")
        self.await_event(event="finished", key="a", outcome="ok")
        self.feed(process, b"a\nb\na\n")
        self.await_begun("a", "b")
        self.let_go("b")
        ended = self.ended(process)
        self.assertEqual(ended.status, 0)
        self.assertEqual(self.begun(), ["a", "b"])
        self.assertIn(b"2 keys, 2 ok, 0 failed, 0 left; 4 adds; 0 retries; "
                      b"2 skipped\n", ended.err)

    def test_key_that_is_added_while_it_succeeds_does_not_run_again(self):
        process = self.open_input()
        self.add_twice(process, b"a")
        self.let_go("a")
        self.assertEqual(self.ended(process).status, 0)
        self.assertEqual(self.begun(), ["a"])

    def test_add_that_does_not_count_holds_back_no_output(self):
        process = self.open_input("-k", "-P2")
        self.feed(process, b"a\n", end=False)
        self.await_begun("a")
        self.feed(process, b"a\nb\n", end=False)
        self.await_begun("a", "b")
        self.let_go("a")
        self.let_go("b")
        self.await_event(event="finished", key="b")
        self.assertEqual(process.stdout.readline(), b"a\n")
        self.assertEqual(process.stdout.readline(), b"b\n")
        process.stdin.close()
        process.stdin = None
        self.assertEqual(self.ended(process).status, 0)

    def test_key_that_failed_runs_again(self):
        process = self.open_input("--retries=0")
        self.feed(process, b"a\n", end=False)
        self.await_begun("a")
        self.let_go("a", 1)
        self.await_event(event="finished", outcome="failed")
        self.feed(process, b"a\n")
        self.await_begun("a", "a")
        self.let_go("a")
        self.assertEqual(self.ended(process).status, 123)

    def test_key_that_is_added_while_it_fails_runs_again(self):
        process = self.open_input("--retries=0")
        self.add_twice(process, b"a")
        self.let_go("a", 1)
        self.await_begun("a", "a")
        self.let_go("a")
        self.ended(process)

    def test_requests_of_runs(self):
        ended = self.run_keys(
            b"a\n", "-q", "--once", "--json=events", *self.script(
                'echo $1 >>log; if [ $(wc -l <log) -lt 3 ]; then '
                'echo requeue-after=1ms; else echo add=a; fi '
                '>&"$WQ_RESULT_FD"'))
        self.assertEqual(ended.status, 0)
        self.assertEqual(self.read("log"), b"a\n" * 3)
        self.assertEqual(self.finished("outcome"),
                         ["requeue", "requeue", "ok"])

    def test_log_and_memory_agree(self):
        options = ("-q", "--once", "--joblog=log", "--resume", "echo")
        self.assertEqual(self.run_keys(b"a\n", *options).out, b"a\n")
        self.assertEqual(self.run_keys(b"a\nb\na\n", *options).out, b"b\n")

    def test_shared_queue_is_refused(self):
        ended = self.run_keys(b"", "--once", "--queue=sqlite:q", "true")
        self.assertEqual(ended.status, 125)
        self.assertIn(b"--once: cannot be combined with --queue", ended.err)


if __name__ == "__main__":
    main()
