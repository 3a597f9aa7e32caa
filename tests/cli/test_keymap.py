# SPDX-License-Identifier: MIT
"""Which key does a line add, and what does COMMAND get of the line?"""

import os

from handled import Handled
from program import main


class Keymap(Handled):
    # ---- which key ---------------------------------------------------------

    def test_key_is_the_match(self):
        self.assertEqual(self.printed(b"src/a.c MODIFY\n", "--key=[a-z/]+[.]c",
                                  "echo"), "src/a.c\n")

    def test_key_is_the_first_group(self):
        self.assertEqual(
            self.printed(b"GET /a/1\nPUT /b/2\n", "--key=^(GET|PUT) /([a-z])",
                     "echo"), "GET\nPUT\n")
        self.assertEqual(
            self.printed(b"x=1\nx=2\ny=1\n", "--key=(.)=", "echo"), "x\ny\n")

    def test_key_is_a_column(self):
        self.assertEqual(self.printed(b"1 a x\n2 \t b y\n3 a z\n",
                                  "--key-column=2", "echo"), "a\nb\n")
        self.assertEqual(self.printed(b"1;a b;x\n", "--key-column=2",
                                  "--colsep=;", "echo"), "a b\n")

    def test_key_can_be_constant(self):
        self.assertEqual(
            self.printed(b"a\nb\nc\n", "--key-const=all", "--no-key-arg", "--",
                     "echo", "make"), "make\n")
        self.assertEqual(self.printed(b"a\nb\n", "--key-const=all", "echo"),
                         "all\n")

    def test_key_member_of_json_is_the_line(self):
        self.assertEqual(
            self.printed(b'{"key":"src/a.c"}\n{"key":"src/b.c"}\n',
                     "--input=jsonl", "--key=^[^/]*", "echo", "{} {line}"),
            "src src/b.c\n")

    def test_list_is_mapped_but_add_is_not(self):
        self.assertEqual(
            self.printed(b"", "--list=echo a/b", "--key=^[^/]*", "--", "sh", "-c",
                     'echo "$1 $2"; [ "$1" != a ] || '
                     'echo add=c/d >&"$WQ_RESULT_FD"', "sh", "{}", "{line}"),
            "a a/b\nc/d c/d\n")

    # ---- lines without a key -----------------------------------------------

    def test_line_without_a_key_is_counted_and_skipped(self):
        for options, lines, out in (
                (("--key=[0-9]+",), b"x\ny 7\nx\n", b"7\n"),
                (("--key=x|([0-9]+)",), b"x\ny 7\nx\n", b"7\n"),
                (("--key-column=2",), b"x\ny 7\nx\n", b"7\n"),
                (("--key-column=1",), b" \nx\n \n", b"x\n")):
            with self.subTest(options):
                ended = self.run_keys(lines, "--json=events", *options, "--",
                                      "echo")
                self.assertEqual(ended.out, out)
                self.assertEqual(ended.status, 0)
                self.assertIn(b"; 2 lines without a key\n", ended.err)
                self.assertEqual(self.events()[-1]["unmatched"], 2)

    # ---- what the run gets -------------------------------------------------

    def test_run_gets_the_latest_line(self):
        self.assertEqual(
            self.printed(b"a 1\nb 2\na 3\n", "--key-column=1", "--", "sh", "-c",
                     'echo "$1|$2|$3|$WQ_KEY|$WQ_LINE"', "sh", "{}", "{line}",
                     "{2}"), "a|a 3|3|a|a 3\nb|b 2|2|b|b 2\n")

    def test_line_that_comes_during_a_run_is_for_the_next(self):
        gate = self.fifo("gate")
        process = self.start("--json=events", "--key=^.", "--", "sh", "-c",
                             'echo "$1" >>log; read x <gate', "sh", "{line}")
        self.feed(process, b"a 1\n", end=False)
        self.await_event(event="started", run=1)
        self.feed(process, b"a 2\na 3\n")
        self.await_event(event="added", how="merged")
        os.write(gate, b"x\nx\n")
        self.assertEqual(self.ended(process).status, 0)
        self.assertEqual(self.read("log"), b"a 1\na 3\n")

    def test_retry_has_the_same_line(self):
        self.assertEqual(
            self.printed(b"a 1\n", "--key=^.", "--backoff=1ms", "--", "sh", "-c",
                     'echo "$WQ_ATTEMPT $WQ_LINE"; [ $WQ_ATTEMPT = 3 ]'),
            "1 a 1\n2 a 1\n3 a 1\n")

    def test_variable_of_the_line_is_set_only_with_a_mapping(self):
        show = ("--", "sh", "-c", 'echo "${WQ_LINE-none}"')
        self.assertEqual(self.printed(b"a b\n", "--key=a", *show,
                                  env={"WQ_LINE": "theirs"}), "a b\n")
        self.assertEqual(self.printed(b"a b\n", *show,
                                  env={"WQ_LINE": "theirs"}), "theirs\n")

    def test_line_may_be_long(self):
        line = b"k " + b"x" * 60000
        self.assertEqual(self.printed(line + b"\n", "--key-column=1", "--", "sh",
                                  "-c", 'echo "${#1} ${#2}"', "sh", "{line}",
                                  "{2}"), "60002 60000\n")

    # ---- columns -----------------------------------------------------------

    def test_columns_are_replaced(self):
        self.assertEqual(
            self.printed(b"a,b,,d\n", "--colsep=,", "echo",
                     "<{1}><{2}><{3}><{4}><{5}>"), "<a><b><><d><>\n")
        self.assertEqual(self.printed(b"a--b-c\n", "--colsep=-+", "echo",
                                  "{3}{2}{1}", "{}"), "cba a--b-c\n")

    def test_columns_are_words_only_if_asked_for(self):
        self.assertEqual(self.printed(b"a b\n", "echo", "{1}"), "{1} a b\n")

    def test_columns_that_are_replaced_cause_no_warning(self):
        ended = self.run_keys(b"a b\n", "--colsep= ", "--", "echo", "{1}",
                              "{2}")
        self.assertEqual(ended.out, b"a b\n")
        self.assertNotIn(b"not replaced", ended.err)

    def test_column_numbers_are_whole(self):
        self.assertEqual(self.printed(b"a b\n", "--colsep= ", "echo", "{0}{01}",
                                  "{1.}", "{12345678}"),
                         "{0}a {1.} {12345678}\n")

    def test_separator_that_matches_nothing_does_not_separate(self):
        self.assertEqual(self.printed(b"ab\n", "--colsep=x*", "echo",
                                  "<{1}><{2}>"), "<ab><>\n")

    # ---- together with others ----------------------------------------------

    def test_log_identifies_the_key_not_the_line(self):
        command = ("--key-column=1", "--joblog=log", "--", "echo", "{}", "{2}")
        self.assertEqual(self.printed(b"a 1\nb 2\n", *command), "a 1\nb 2\n")
        self.assertEqual(
            [line.split(b"\t")[-1] for line in
             self.read("log").splitlines()[1:]],
            [b"echo a '{2}'", b"echo b '{2}'"])
        self.assertEqual(self.printed(b"b 3\nc 4\n", "--resume", *command),
                         "c 4\n")

    def test_tag_has_words_of_the_line(self):
        self.assertEqual(
            self.printed(b"a 1\n", "--key-column=1", "--tag={2}-{}: ", "--",
                     "echo"), "1-a: a\n")

    def test_blanks_at_the_start_of_a_line_are_no_column(self):
        self.assertEqual(
            self.printed(b"  1 init\n 22 foo\n", "--key-column=2", "--", "echo",
                         "{}", "{1}"), "init 1\nfoo 22\n")

    def test_separator_may_be_a_tab(self):
        self.assertEqual(
            self.printed(b"host\tstate\n", "--colsep=\\t", "--", "echo", "{2}",
                         "{1}"), "state host\n")

    def test_pending_file_has_lines(self):
        process = self.started(b"a 1\nb 2\na 3\n", "--key-column=1",
                               "--pending-file=left", "--json=events")
        self.await_begun("a")
        self.signalled(process, 15, "draining")
        self.let_go("a")
        self.ended(process)
        self.assertEqual(self.left(), [b"b 2"])

    def test_wrong_options_are_refused(self):
        for options, said in (
                (("--key=(",), "--key: '(' is not a regular expression"),
                (("--key=",), "--key: '' is empty"),
                (("--colsep=[",), "--colsep: '[' is not a regular expression"),
                (("--key=\\d+",), "has \\d, which POSIX does not have"),
                (("--key-column=0",), "--key-column: '0' is not a column"),
                (("--key-column=x",), "--key-column: 'x' is not a column"),
                (("--key-const=",), "--key-const: '' is empty"),
                (("--key=a", "--key-column=1"), "cannot be combined"),
                (("--key=a", "--key-const=a"), "cannot be combined"),
                (("--queue=sqlite:q", "--key=a"),
                 "cannot be combined with --queue"),
                (("--resume", "--joblog=j", "--no-key-arg"),
                 "--resume: COMMAND needs {}")):
            with self.subTest(options):
                ended = self.run_keys(b"a\n", *options, "--", "true")
                self.assertEqual(ended.status, 125)
                self.assertIn(said, ended.err.decode())


if __name__ == "__main__":
    main()
