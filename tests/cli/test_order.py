# SPDX-License-Identifier: MIT
"""Does --keep-order print output in the order of the input?"""

import os

from handled import Handled
from program import main, until

# Says who it is, and waits until the test lets it go.
TALKING = """
echo "begin $1 $WQ_ATTEMPT $$" >>log
read code <"gate.$1"
echo "$1 $WQ_ATTEMPT"
echo "$1 error" >&2
exit "$code"
"""


class Order(Handled):
    def talking(self, keys, *options, gates="abcd", end=True):
        for gate in gates:
            if gate not in self.gates:
                self.gates[gate] = self.fifo("gate." + gate)
        process = self.start("-k", "-q", "-P4", "--json=events",
                             "--backoff=1ms", *options,
                             *self.script(TALKING))
        self.feed(process, keys, end)
        return process

    def let_end(self, key, outcome="ok", code=0):
        before = len(self.finished("key"))
        self.let_go(key, code)
        until(lambda: len(self.finished("key")) > before, "end of " + key)
        self.assertEqual((self.finished("key")[-1],
                          self.finished("outcome")[-1]), (key, outcome))

    def test_output_is_in_the_order_of_the_input(self):
        process = self.talking(b"b\na\nc\n")
        self.await_begun("a", "b", "c")
        for key in "cab":
            self.let_end(key)
        ended = self.ended(process)
        self.assertEqual(ended.out, b"b 1\na 1\nc 1\n")
        self.assertEqual(ended.err, b"b error\na error\nc error\n")

    def test_output_of_the_first_key_does_not_wait(self):
        process = self.talking(b"a\nb\n")
        self.await_begun("a", "b")
        self.let_end("a")
        self.assertEqual(os.read(process.stdout.fileno(), 100), b"a 1\n")
        self.let_end("b")
        self.assertEqual(self.ended(process).out, b"b 1\n")

    def test_retries_keep_their_place(self):
        process = self.talking(b"a\nb\n")
        self.await_begun("a", "b")
        self.let_end("b")
        for _ in range(2):
            self.let_end("a", "retry", 1)
        self.let_end("a")
        self.assertEqual(self.ended(process).out, b"a 1\na 2\na 3\nb 1\n")

    def test_key_that_comes_again_has_a_new_place(self):
        process = self.talking(b"a\nb\n", end=False)
        self.await_begun("a", "b")
        self.feed(process, b"a\nc\n")
        self.await_begun("a", "b", "c")
        for key in "cbaa":
            self.let_end(key)
        self.assertEqual(self.ended(process).out, b"a 1\nb 1\na 1\nc 1\n")

    def test_key_that_comes_again_before_its_retry_has_its_first_place(self):
        process = self.talking(b"a\nb\n", end=False)
        self.await_begun("a", "b")
        self.feed(process, b"a\n")
        self.await_event(event="added", how="dirty")
        self.let_end("b")
        self.let_end("a", "retry", 1)
        self.let_end("a")
        self.assertEqual(self.ended(process).out, b"a 1\na 2\nb 1\n")

    def test_key_that_a_run_asks_for_again_does_not_hold_up_others(self):
        ended = self.run_keys(
            b"a\nb\n", "-k", "-q", "-P2", *self.script(
                'if [ $1 = b ]; then until [ -e second ]; do sleep 0.01; '
                'done; elif [ -e first ]; then : >second; '
                'else : >first; echo requeue-after=1ms >&"$WQ_RESULT_FD"; fi; '
                'echo $1'))
        self.assertEqual(ended.out, b"a\nb\na\n")

    def test_keys_that_are_left_do_not_hold_back_output(self):
        process = self.talking(b"a\nb\nc\n", "-P2", "--pending-file=left")
        self.await_begun("a", "b")
        self.let_end("b")
        self.signalled(process, 15, "draining")
        self.signalled(process, 15, "stopping")
        self.assertEqual(self.ended(process).out, b"b 1\n")
        self.assertEqual(self.left(), [b"a", b"c"])

    def test_output_waits_in_memory_and_in_a_file(self):
        # More than 64 MiB, in pieces that a run keeps in memory, and one that
        # it keeps in a file.
        process = self.start(
            "-k", "-q", "-P2", "--json=events", "--", "sh", "-c",
            '[ $1 != 0 ] || read x <gate; [ $1 = 50 ] && n=900000 || n=400000;'
            'head -c $n /dev/zero | tr "\\0" x; echo $1', "sh")
        gate = self.fifo("gate")
        self.feed(process, b"".join(b"%d\n" % i for i in range(200)))
        until(lambda: len(self.finished("key")) == 199, "all runs but one")
        os.write(gate, b"x\n")
        lines = self.ended(process).out.splitlines()
        self.assertEqual([int(line.lstrip(b"x")) for line in lines],
                         list(range(200)))
        self.assertEqual([len(line.rstrip(b"0123456789")) for line in lines],
                         [900000 if i == 50 else 400000 for i in range(200)])

    def test_slow_reader_gets_all(self):
        process = self.start("-k", "-q", "-P4", "--json=events", "--", "sh",
                             "-c", '[ $1 != 1 ] || read x <gate; '
                             'head -c 200000 /dev/zero | tr "\\0" x; echo $1',
                             "sh")
        gate = self.fifo("gate")
        self.feed(process, b"".join(b"%d\n" % i for i in range(1, 61)))
        until(lambda: len(self.finished("key")) == 59, "all runs but one")
        os.write(gate, b"x\n")
        until(lambda: len(self.finished("key")) == 60, "the last run")
        lines = self.ended(process).out.splitlines()
        self.assertEqual([int(line.lstrip(b"x")) for line in lines],
                         list(range(1, 61)))

    def test_output_that_is_awaited_keeps_its_place(self):
        ended = self.run_keys(
            b"a\nb\n", "-k", "-q", "-P2", "--output-grace=30s", *self.script(
                'echo $1; if [ $1 = a ]; then (until [ -e b ]; do sleep 0.01; '
                'done; sleep 0.2; echo late) & else : >b; fi'))
        self.assertEqual(ended.out, b"a\nlate\nb\n")

    def test_large_output_waits_as_a_whole(self):
        ended = self.run_keys(
            b"a\nb\n", "-k", "-q", "--backoff=300ms,300ms", *self.script(
                'if [ $1 = b ]; then head -c 2000000 /dev/zero | tr "\\0" x; '
                'echo; else echo $1; [ $WQ_ATTEMPT = 2 ]; fi'))
        self.assertEqual([line[:2] for line in ended.out.splitlines()],
                         [b"a", b"a", b"xx"])
        self.assertEqual(len(ended.out), 2000005)

    def test_batches_have_the_place_of_their_first_key(self):
        ended = self.run_keys(b"a\nb\nc\nd\n", "-k", "-q", "-P2", "-n2", "--",
                              "sh", "-c", '[ $1 != a ] || sleep 0.1; echo "$@"',
                              "sh")
        self.assertEqual(ended.out, b"a b\nc d\n")

    def test_wrong_options_are_refused(self):
        for options, said in (
                (("--line-buffer",), "--line-buffer"),
                (("--ungroup",), "--ungroup"),
                (("--queue=sqlite:q",), "--queue")):
            ended = self.run_keys(b"a\n", "-k", *options, "true")
            self.assertEqual(ended.status, 125)
            self.assertIn("--keep-order: cannot be combined with",
                          ended.err.decode())
            self.assertIn(said, ended.err.decode())


if __name__ == "__main__":
    main()
