# SPDX-License-Identifier: MIT
"""Does `wq run` say at its end, and at the terminal, which keys failed and why?"""

import re

from program import Case, main
from watched import WAIT, AtTerminal, Watched

# What the handler writes to stderr comes from files; the key names one.
PRINT = 'cat "$1" >&2; exit 3'


def list_of(err):
    """The lines between "failed keys:" and the summary."""
    lines = err.decode(errors="replace").split("\n")[:-1]
    begin = lines.index("wq: failed keys:")
    return [line[len("wq:   "):] for line in lines[begin + 1:-1]]


class Summary(Case):
    def listed(self, keys, *arguments, **rest):
        ended = self.run_keys(keys, *arguments, env={"LC_ALL": "C.UTF-8"},
                              **rest)
        self.assertEqual(ended.status, 123, ended.err)
        self.assertRegex(ended.err, rb"\nwq: \d+ keys?[, ][^\n]*\n$")
        return list_of(ended.err)

    def test_failed_keys_are_listed_with_their_reasons(self):
        self.assertEqual(self.listed(
            b"code\nkill\nslow\nfine\n", "-P1", "--retries=1", "--backoff=1ms",
            "--timeout=500ms", *self.script(
                'case "$1" in code) echo "$1: oops" >&2; exit 7;; '
                'kill) kill -SEGV $$;; slow) sleep 60;; esac')), [
            "code: exit 7 (attempt 2): code: oops",
            "kill: killed by SIGSEGV (attempt 2)",
            "slow: timed out (attempt 2)"])

    def test_list_has_the_first_ten(self):
        keys = b"".join(b"%02d\n" % i for i in range(13))
        arguments = ("--retries=0", *self.script("exit 1"))
        listed = self.listed(keys, *arguments)
        self.assertEqual(listed[:10], ["%02d: exit 1 (attempt 1)" % i
                                       for i in range(10)])
        self.assertEqual(listed[10:],
                         ["and 3 more; --joblog=FILE records all of them"])
        listed = self.listed(keys, "--joblog=log", *arguments)
        self.assertEqual(listed[10:], ["and 3 more; see log"])

    def test_key_that_fails_again_is_listed_once(self):
        ended = self.run_keys(b"", "--retries=0", "--list=echo often",
                              "--resync=20ms", "--halt=soon,fail=9", *self.script(
                                  "echo no >&2; exit 3"))
        self.assertEqual(list_of(ended.err),
                         ["often: exit 3 (attempt 1): no [9 times]"])

    def test_list_counts_further_keys_and_not_further_failures(self):
        keys = b"".join(b"%d\n" % i for i in range(12))
        listed = self.listed(keys, "--retries=0", *self.script(
            'test "$1" != 1 || echo add=0 >&"$WQ_RESULT_FD"; exit 1'))
        self.assertEqual(listed[0], "0: exit 1 (attempt 1) [2 times]")
        self.assertEqual(listed[10:],
                         ["and 2 more; --joblog=FILE records all of them"])

    def test_list_is_part_of_the_summary(self):
        for options, listed in (((), True), (("-q",), False),
                                (("-q", "--summary"), True)):
            with self.subTest(options):
                err = self.run_keys(b"a\n", "--retries=0", *options,
                                    "false").err
                self.assertEqual(b"wq: failed keys:\n" in err, listed)
        self.assertNotIn(b"failed keys",
                         self.run_keys(b"a\n", "--summary", "true").err)

    def test_key_that_succeeds_later_is_not_listed(self):
        ended = self.run_keys(b"a\n", "--backoff=1ms", *self.script(
            'test "$WQ_ATTEMPT" = 2'))
        self.assertEqual(ended.status, 0)
        self.assertNotIn(b"failed keys", ended.err)

    def test_line_is_the_last_that_is_not_blank(self):
        lines = {
            "last": (b"first\nlast\n", "last"),
            "open": (b"first\nnot ended", "not ended"),
            "blank": (b"first\nlast\n\n \t\r\n  ", "last"),
            "none": (b"\n\n", None),
            "empty": (b"", None),
            "progress": (b"10%\r20%\rdone: 1 error", "done: 1 error"),
            "dos": (b"one\r\ntwo\r\n", "two"),
            "long": (b"x" * 300 + b"\n", "x" * 160),
            "cut": ("\u00e9".encode() * 159 + b"\n", "\u00e9" * 80),
            "pieces": (b"y" * 70000 + b"\nlast\n" + b"\n" * 70000, "last"),
            "piece": (b"z" * 65530 + b"\nlast in two pieces\n",
                      "last in two pieces"),
            "huge": ((b"w" * 99 + b"\n") * 40000 + b"last\n", "last"),
            "control": (b"\x1b[31mred\x07\n", r"\x1b[31mred\x07"),
            "bytes": (b"bad \xff\n", r"bad \xff"),
            "turned": ("\u202eturned\n".encode(), r"\u202eturned"),
        }
        for name, (content, _) in lines.items():
            self.write(name, content)
        for options in ((), ("--line-buffer",), ("--tag",)):
            for name, (_, line) in lines.items():
                with self.subTest(name=name, options=options):
                    listed = self.listed(name.encode() + b"\n", "--retries=0",
                                         *options, *self.script(PRINT))
                    self.assertEqual(listed, [
                        "%s: exit 3 (attempt 1)%s" % (
                            name, "" if line is None else ": " + line)])

    def test_line_is_not_known_without_a_pipe(self):
        self.assertEqual(self.listed(
            b"a\n", "--retries=0", "--ungroup",
            *self.script("echo oops >&2; exit 1")), ["a: exit 1 (attempt 1)"])

    def test_long_key_is_cut_in_the_middle(self):
        key = b"begin/" + b"k" * 1000 + b"/end"
        (line,) = self.listed(key + b"\n", "--retries=0", "false")
        self.assertRegex(line, r"^begin/k+\S+k+/end: exit 1 \(attempt 1\)$")
        self.assertLess(len(line), 250)

    def test_control_characters_of_keys_are_escaped(self):
        (line,) = self.listed(b"\x1b[2J\n", "--retries=0", "false")
        self.assertEqual(line, r"\x1b[2J: exit 1 (attempt 1)")


class Display(AtTerminal):
    def test_display_has_the_latest_failure_of_each_kind(self):
        terminal = self.terminal()
        program = self.start(
            terminal, "-P1", "--backoff=9999h,9999h", "--no-retry-codes=3",
            keys=["one", "two", "three", "four"], command=[
                "sh", "-c", 'printf "about %s\\007\\n" "$1" >&2; ' + WAIT,
                "sh", "{}"])
        terminal.until(lambda t: "1 running" in t, "a run")
        self.assertNotIn("failed:", terminal.text())
        program.gate.open(3)
        terminal.until(lambda t: re.search(
            r"^failed: one: exit 3 \(attempt 1\): about one\\x07$", t, re.M),
            "a key that failed")
        program.gate.open(1)
        terminal.until(lambda t: re.search(
            r"^retrying: two: exit 1 \(attempt 1\): about two\\x07$", t, re.M),
            "a key that is retried")
        program.gate.open(3)
        terminal.until(lambda t: re.search("^failed: three: exit 3 ", t, re.M),
                       "the next")
        self.assertEqual(len(re.findall("^failed: ", terminal.text(), re.M)), 1)

    def test_key_that_succeeds_is_not_shown_as_retrying(self):
        terminal = self.terminal()
        program = self.start(
            terminal, "-P1", "--backoff=9999h,9999h", keys=["one", "two"], command=[
                "sh", "-c", 'test "$1" = one || '
                'echo requeue-after=1ms >&"$WQ_RESULT_FD"; ' + WAIT, "sh", "{}"])
        program.gate.open(1)
        terminal.until(lambda t: "retrying: one: exit 1" in t, "one failed")
        program.gate.open(2)
        terminal.until(lambda t: "retrying: two: exit 2" in t, "two failed")
        program.gate.open(0)
        terminal.until(lambda t: "retrying: one: exit 1" in t, "only one is left")

    def test_failure_fits_the_terminal(self):
        for columns in (20, 30, 50, 81):
            with self.subTest(columns=columns):
                terminal = self.terminal(columns)
                program = self.start(
                    terminal, "-P1", "--retries=0",
                    keys=["k" * 100 + "end", "second"], command=[
                        "sh", "-c", 'case "$1" in k*) echo "\u4e2d$1" >&2; '
                        'exit 1;; esac; ' + WAIT, "sh", "{}"])
                wanted = "1 failed" if columns < 24 else "failed: k"
                terminal.until(lambda t, w=wanted: w in t and "second" in t,
                               "a failure")
                drawn = terminal.text()[terminal.text().rindex("0 done"):]
                for line in drawn.split("\n"):
                    self.assertLess(len(line), columns)
                program.close()

    def test_plain_lines_have_the_latest_failure(self):
        program = Watched("--progress=always", "-P1", "--retries=0",
                          keys=["a", "b"])
        self.addCleanup(program.close)
        program.gate.open(4)
        program.await_message(r"^wq: 0 done, 1 failed, .*; last failure: "
                              r"a: exit 4 \(attempt 1\)\n$")
        program.gate.open(0)
        self.assertEqual(program.wait(), 123)


if __name__ == "__main__":
    main()
