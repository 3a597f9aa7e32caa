# SPDX-License-Identifier: MIT
"""What does `wq run` show at a terminal?"""

import re
import subprocess
import time
import unittest

from program import main
from watched import WAIT, AtTerminal, Watched


class Progress(AtTerminal):
    def test_display_has_counts_and_the_key_of_each_slot(self):
        terminal = self.terminal()
        program = self.start(terminal, "-P2", "--retries=3",
                             "--backoff=9999h,9999h", keys=["one", "two", "three"])
        terminal.until(lambda t: re.search(r"^ +1 +\S+s +one$", t, re.M) and
                       re.search(r"^ +2 +\S+s +two$", t, re.M), "two runs")
        self.assertRegex(terminal.text(),
                         r"0 done  0 failed  1 ready  2 running")
        program.gate.open(0)
        terminal.until(lambda t: re.search("1 done .* 0 ready  2 running", t) and
                       "three" in t, "the third")
        program.gate.open(1)
        terminal.until(lambda t: "1 retrying" in t, "one that failed")
        program.gate.open(2)
        terminal.until(lambda t: "2 retrying" in t, "two that failed")
        self.assertNotIn("running", terminal.text().replace("0 running", ""))

    def test_retry_has_its_attempt(self):
        terminal = self.terminal()
        program = self.start(terminal, "--backoff=1ms", keys=["again"])
        program.gate.open(1)
        terminal.until(lambda t: "again (attempt 2)" in t, "another attempt")

    def test_display_ends_with_one_line(self):
        terminal = self.terminal()
        program = self.start(terminal, "-P4", keys=["a", "b", "c", "d", "e"])
        terminal.until(lambda t: "4 running" in t, "four runs")
        program.gate.open(0, 0, 0, 0, 0)
        self.assertEqual(terminal.finish(program), 0)
        self.assertRegex(terminal.text(),
                         r"\Awq: 5 keys, 5 ok, [^\n]*\n?\Z")
        self.assertEqual(terminal.strange, [])

    def test_time_left_is_shown_after_the_input(self):
        terminal = self.terminal()
        program = self.start(terminal, keys=["a", "b", "c"], end=False)
        program.gate.open(0)
        terminal.until(lambda t: "1 done" in t, "the first")
        self.assertNotIn("left", terminal.text())
        self.assertNotIn("%", terminal.text())
        program.end()
        terminal.until(lambda t: re.search(r"\[#+\.+\] 33%.* left", t, re.S),
                       "an estimate")

    def test_keys_are_cut_to_the_width(self):
        for columns in (20, 40, 81):
            with self.subTest(columns=columns):
                terminal = self.terminal(columns)
                key = "\u4e2d\u6587e\u0301" * 60
                program = self.start(terminal, "-P2",
                                     keys=["x" * 300 + "end", key])
                terminal.until(lambda t: "xend" in t and "\u2026" in t,
                               "a key that is cut")
                for line in terminal.lines:
                    self.assertLess(len("".join(line)), columns)
                    self.assertLess(len(line), columns)
                self.assertEqual(terminal.wraps, 0)
                program.close()

    def test_display_fits_the_height(self):
        terminal = self.terminal(80, 8)
        program = self.start(terminal, "-P20", keys=map(str, range(20)))
        terminal.until(lambda t: re.search(r"and 1[4-9] more$", t, re.M),
                       "a line for the rest")
        self.assertLessEqual(len(terminal.lines), 8)
        program.gate.open(*[0] * 20)
        self.assertEqual(terminal.finish(program), 0)
        self.assertRegex(terminal.text(), r"\Awq: 20 keys, [^\n]*\n?\Z")

    def test_control_characters_are_escaped(self):
        terminal = self.terminal()
        program = self.start(terminal, "-0", "-P3", end=False)
        for key in (b"\x1b[2Jbell\x07\n\t", b"bad\xff\xc3", "\u202eturn".encode()):
            program.add(key, b"\0")
        terminal.until(lambda t: r"\x1b[2Jbell\x07\n\t" in t and
                       r"bad\xff\xc3" in t and r"\u202eturn" in t, "escapes")
        self.assertEqual(terminal.strange, [])

    def test_terminal_without_utf_8_gets_ascii(self):
        terminal = self.terminal()
        self.start(terminal, keys=["caf\u00e9"],
                   environment={"LC_ALL": "de_DE.ISO-8859-1"})
        terminal.until(lambda t: r"caf\u00e9" in t, "an escape")

    def test_display_has_colours_without_no_color(self):
        for value, colours in ((None, True), ("", True), ("1", False)):
            with self.subTest(NO_COLOR=value):
                terminal = self.terminal()
                program = self.start(
                    terminal, keys=["a"],
                    environment={} if value is None else {"NO_COLOR": value})
                terminal.until(lambda t: "1 running" in t, "a run")
                self.assertEqual(terminal.colours > 0, colours)
                program.close()

    def test_display_is_drawn_ten_times_a_second(self):
        terminal = self.terminal()
        program = self.start(terminal, "-P2", keys=map(str, range(300)),
                             command=["true"], stdout=subprocess.DEVNULL)
        begun = time.monotonic()
        self.assertEqual(terminal.finish(program), 0)
        seconds = time.monotonic() - begun
        drawn = terminal.raw.count(b"\x1b[J")
        self.assertLessEqual(drawn, 10 * seconds + 2)

    def test_display_follows_the_size_of_the_terminal(self):
        terminal = self.terminal(80)
        program = self.start(terminal, "-P2", keys=["k" * 60, "other"])
        terminal.until(lambda t: "other" in t and "k" * 60 in t, "wide lines")
        terminal.resize(30)
        terminal.until(lambda t: "k\u2026k" in t, "narrow ones")
        self.assertLess(max(map(len, terminal.lines)), 30)
        program.gate.open(0, 0)
        self.assertEqual(terminal.finish(program), 0)
        self.assertRegex(terminal.text().replace("\n", ""),
                         r"\Awq: 2 keys, 2 ok, [^\n]*\Z")

    def test_output_stays_above_the_display(self):
        terminal = self.terminal()
        program = self.start(
            terminal, "-P2", keys=["a", "b"], stdout=terminal.theirs,
            command=["sh", "-c", 'test "$1" = b || { echo whole; '
                     'printf part; exit 0; }; ' + WAIT, "-", "{}"])
        terminal.until(lambda t: re.search(r"whole\npart\n.*1 done", t, re.S),
                       "output above the display")
        program.gate.open(0)
        self.assertEqual(terminal.finish(program), 0)
        self.assertRegex(terminal.text(), r"\Awhole\npart\nwq: 2 keys, [^\n]*\n?\Z")

    def test_messages_stay_above_the_display(self):
        terminal = self.terminal()
        program = self.start(terminal, "-P2", "-t", keys=["a"], end=False)
        terminal.until(lambda t: "1 running" in t, "a run")
        program.add("b")
        terminal.until(lambda t: "2 running" in t, "another")
        program.end()
        program.gate.open(0, 0)
        self.assertEqual(terminal.finish(program), 0)
        self.assertNotIn("running", terminal.text())

    def test_no_display_where_it_cannot_be_drawn(self):
        for options, environment in ((["--ungroup"], {}),
                                     (["--progress=never"], {}),
                                     (["--quiet"], {}),
                                     ([], {"TERM": "dumb"}),
                                     ([], {"TERM": ""})):
            with self.subTest(options=options, environment=environment):
                terminal = self.terminal()
                program = self.start(terminal, *options, keys=["a"],
                                     environment=environment,
                                     command=["sh", "-c", "sleep 0.4"])
                self.assertEqual(terminal.finish(program), 0)
                self.assertNotIn(b"\x1b", terminal.raw)
                self.assertNotIn(b"running", terminal.raw)


class WithoutTerminal(unittest.TestCase):
    def start(self, *options, **rest):
        program = Watched(*options, **rest)
        self.addCleanup(program.close)
        return program

    def test_progress_lines_without_a_terminal(self):
        program = self.start("--progress=always", "-P2", keys=["a", "b", "c"])
        program.await_message(r"^wq: 0 done, 0 failed, 1 ready, 2 running, \S+s, "
                           r"0\.0/s\n$")
        program.gate.open(0)
        program.await_message(r"^wq: 1 done, 0 failed, 0 ready, 2 running, .* left\n$")
        program.gate.open(0, 0)
        self.assertEqual(program.wait(), 0)
        self.assertRegex(program.messages[-1], "^wq: 3 keys, 3 ok, ")
        self.assertNotIn("\x1b", "".join(program.messages))

    def test_no_progress_lines_by_default(self):
        program = self.start(keys=["a"], command=["sh", "-c", "sleep 1.2"])
        self.assertEqual(program.wait(), 0)
        self.assertEqual(len([line for line in program.messages
                              if "running" in line]), 0)


if __name__ == "__main__":
    main()
