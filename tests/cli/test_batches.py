# SPDX-License-Identifier: MIT
"""Which keys does one run get with --max-args, and what does its result mean?"""

import os

from handled import Handled
from program import main


class Batches(Handled):
    def test_run_gets_up_to_so_many_keys(self):
        self.assertEqual(self.printed(b"1\n2\n3\n4\n5\n6\n7\n", "-n3", "echo"),
                         "1 2 3\n4 5 6\n7\n")
        self.assertEqual(self.printed(b"a\nb\na\n", "--max-args=9", "echo"),
                         "a b\n")

    def test_argument_with_the_key_is_repeated(self):
        self.assertEqual(
            self.printed(b"d/a.c\nd/b.c\n", "-n2", "echo", "{#}", "-o{/.}.o", "{}",
                     "end"), "1 -oa.o -ob.o d/a.c d/b.c end\n")

    def test_lines_of_keys(self):
        self.assertEqual(
            self.printed(b"a 1\nb 2\na 3\n", "-n9", "--key-column=1", "echo",
                     "{}={2}", "{line}"), "a=3 b=2 a 3 b 2\n")

    def test_variables_of_one_key_are_not_set(self):
        out = self.printed(b"a\nb\n", "-n2", "--", "sh", "-c", "env",
                       env={"WQ_KEY": "no"})
        names = {line.split("=")[0] for line in out.splitlines()}
        self.assertTrue({"WQ_NAME", "WQ_SLOT", "WQ_RESULT_FD"} <= names)
        self.assertFalse({"WQ_KEY", "WQ_LINE", "WQ_ATTEMPT", "WQ_FENCE",
                          "WQ_PRIORITY"} & names)

    def test_each_key_is_retried_on_its_own(self):
        ended = self.run_keys(
            b"a\nb\nc\n", "-n3", "--retries=2", "--backoff=1ms",
            "--json=events", "--", "sh", "-c", 'echo "$@"; exit 1', "sh")
        self.assertEqual(ended.status, 123)
        self.assertIn(b"3 keys, 0 ok, 3 failed, 0 left; 3 adds; 6 retries",
                      ended.err)
        runs = [line.split() for line in ended.lines()]
        self.assertEqual(runs[0], ["a", "b", "c"])
        for key in "abc":
            self.assertEqual(sum(key in run for run in runs), 3)
            self.assertEqual(
                [(event["attempt"], event["outcome"])
                 for event in self.events() if event["event"] == "finished" and
                 event["key"] == key],
                [(1, "retry"), (2, "retry"), (3, "failed")])
            self.assertIn(b"wq: %s: failed: exit 1 (attempt 3)\n" %
                          key.encode(), ended.err)

    def test_key_that_always_fails_takes_no_other_with_it(self):
        ended = self.run_keys(
            b"".join(b"%d\n" % i for i in range(20)), "-n20", "--retries=1",
            "--backoff=1ms", *self.script("for i; do [ $i != 3 ] || exit 4; done"))
        self.assertEqual(ended.status, 123)
        self.assertIn(b"wq: 20 keys, 19 ok, 1 failed, 0 left", ended.err)

    def test_key_added_meanwhile_runs_again(self):
        gate = self.fifo("gate")
        process = self.start("-n3", "--json=events", "--", "sh", "-c",
                             'echo "$@" >>log; read x <gate', "sh")
        self.feed(process, b"a\nb\n", end=False)
        self.await_event(event="started", key="b", run=1)
        self.feed(process, b"b\nc\n")
        self.await_event(event="added", key="c")
        os.write(gate, b"x\nx\n")
        self.assertEqual(self.ended(process).status, 0)
        self.assertEqual(sorted(self.read("log").split()[2:]), [b"b", b"c"])

    def test_events_and_log_have_each_key(self):
        self.printed(b"a\nb\nc\n", "-n2", "--json=events", "--joblog=log",
                 "echo", "x")
        for event in ("started", "finished"):
            self.assertEqual([(e["key"], e["run"]) for e in self.events()
                              if e["event"] == event],
                             [("a", 1), ("b", 1), ("c", 2)])
        lines = [line.split(b"\t") for line in
                 self.read("log").splitlines()[1:]]
        self.assertEqual([(line[0], line[-1]) for line in lines],
                         [(b"1", b"echo x a"), (b"1", b"echo x b"),
                          (b"2", b"echo x c")])
        self.assertEqual(sum(int(line[5]) for line in lines), 10)

    def test_log_is_resumed_by_key(self):
        options = ("--joblog=log", "--resume", "echo")
        self.assertEqual(self.printed(b"a\nb\n", "-n2", *options), "a b\n")
        self.assertEqual(self.printed(b"b\nc\nd\na\n", "-n2", *options), "c d\n")

    def test_stopped_batch_is_left(self):
        process = self.start("-n2", "--pending-file=left", "--json=events",
                             "--", "sh", "-c", "echo x; exec sleep 1000")
        self.feed(process, b"a\nb\nc\n")
        self.await_event(event="started", key="b")
        self.signalled(process, 15, "draining")
        self.signalled(process, 15, "stopping")
        self.ended(process)
        self.assertEqual(self.left(), [b"a", b"b", b"c"])

    def test_timeout_is_that_of_one_run(self):
        ended = self.run_keys(b"a\nb\n", "-n2", "--timeout=10ms",
                              "--retries=0", "--no-key-arg", "--", "sleep",
                              "1000")
        self.assertIn(b"2 failed, 0 left; 2 adds; 0 retries; 1 time-out\n",
                      ended.err)

    def test_request_of_a_run_is_for_all_keys(self):
        self.assertEqual(
            self.printed(b"a\nb\n", "-n2", "--", "sh", "-c",
                     'echo "$@"; [ -e once ] || '
                     'echo requeue-after=1ms >&"$WQ_RESULT_FD"; : >once',
                     "sh").split()[2:], ["a", "b"])

    def test_rate_counts_runs(self):
        ended = self.run_keys(b"a\nb\nc\nd\n", "-n2", "--rate=1/h:2", "-q",
                              "echo")
        self.assertEqual(ended.out, b"a b\nc d\n")

    def test_tag_has_the_first_key_and_the_number_of_others(self):
        self.assertEqual(self.printed(b"a\nb\nc\nd\n", "-n3", "--tag", "echo",
                                  "x"), "a+2\tx a b c\nd\tx d\n")

    def test_dry_run_prints_batches(self):
        self.assertEqual(self.printed(b"a\nb\nc\n", "-n2", "--dry-run", "rm"),
                         "rm a b\nrm c\n")

    def test_arguments_fit_the_limit_of_the_system(self):
        keys = [b"%04d" % i + b"x" * 996 for i in range(4000)]  # 4 MB
        self.write("keys", b"\n".join(keys) + b"\n")
        # Keys are read while the first one runs, so that all are READY then.
        ended = self.run_keys(
            b"", "-q", "-a", "keys", "-n100000", "--after=1s", "--", "sh",
            "-c", 'printf "%s\\n" "$@"', "sh")
        self.assertEqual(ended.status, 0, ended.err)
        self.assertEqual(sorted(ended.out.splitlines()), keys)

    def test_wrong_options_are_refused(self):
        for options, said in (
                (("-n0", "true"), "--max-args: '0' is not a number of keys"),
                (("-nx", "true"), "--max-args: 'x' is not a number of keys"),
                (("-n2", "--results=d", "true"),
                 "--results: cannot be combined with --max-args"),
                (("-n2", "--queue=sqlite:q", "true"),
                 "--max-args: cannot be combined with --queue"),
                (("-n2", "{}"), "must not depend on the key: '{}'")):
            with self.subTest(options):
                ended = self.run_keys(b"a\n", *options)
                self.assertEqual(ended.status, 125)
                self.assertIn(said, ended.err.decode())


if __name__ == "__main__":
    main()
