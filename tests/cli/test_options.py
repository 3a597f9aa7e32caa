# SPDX-License-Identifier: MIT
"""What does --help print, and what if options are wrong?"""

import os
import re
import subprocess
import unittest

from handled import Handled
from program import PROGRAM, main, need_command


def wq(*arguments):
    return subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, check=False)


VERBS = re.findall(r"^  (\w+) ", wq("help").stdout.decode(),
                   re.MULTILINE)[:-1]  # without help itself


class Help(unittest.TestCase):
    def test_help_fits_a_page(self):
        for arguments in (("--help",), ("help",), ("run", "--help"),
                          ("run", "-h"), ("-h",), *(("help", verb)
                                                    for verb in VERBS)):
            answer = wq(*arguments)
            self.assertEqual((answer.returncode, answer.stderr), (0, b""))
            lines = answer.stdout.decode().split("\n")
            self.assertLessEqual(len(lines), 66)
            self.assertEqual([line for line in lines if len(line) > 80], [])

    def test_help_lists_every_verb(self):
        self.assertEqual(VERBS, ["run", "work", "add", "get", "done", "status",
                                 "list", "show", "remove", "retry", "drain",
                                 "fsck"])
        for verb in VERBS:
            self.assertTrue(wq("help", verb).stdout.startswith(
                b"Usage: wq %s " % verb.encode()))
            self.assertEqual(wq("help", verb).stdout,
                             wq(verb, "--help").stdout)
        self.assertEqual(wq("help", "walk").returncode, 125)

    def test_version_is_printed(self):
        for arguments in (("--version",), ("run", "--version")):
            self.assertRegex(wq(*arguments).stdout, rb"\Awq \d+\.\d+\.\d+\n\Z")

    def test_help_to_a_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            answer = subprocess.run([PROGRAM, "--help"], stdout=full,
                                    stderr=subprocess.PIPE, check=False)
        self.assertEqual(answer.returncode, 125)
        self.assertIn(b"stdout: No space left", answer.stderr)


class Completions(unittest.TestCase):
    def names(self):
        return {name for verb in VERBS for name in
                re.findall(r"^(?:.{8})(?:-., )?(--[a-z-]+)",
                           wq(verb, "--help").stdout.decode(), re.MULTILINE)}

    def test_every_completion_has_every_option(self):
        for shell in ("bash", "zsh", "fish"):
            text = wq("--completion=" + shell).stdout.decode()
            self.assertEqual(wq("run", "--completion", shell).stdout.decode(),
                             text)
            for name in self.names():
                if shell == "fish":
                    name = "-l " + name[2:]
                self.assertIn(name, text)

    def test_shells_accept_the_completions(self):
        for shell in ("bash", "zsh", "fish"):
            with self.subTest(shell):
                need_command(shell)
                text = wq("--completion=" + shell).stdout
                answer = subprocess.run([shell, "-n", "/dev/stdin"], input=text,
                                        capture_output=True, check=False)
                self.assertEqual((answer.returncode, answer.stderr), (0, b""))

    def complete(self, *words):
        script = ("source <(\"$WQ_PROGRAM\" --completion=bash); COMP_WORDS=(%s);"
                  "COMP_CWORD=%d; compopt() { :; }; _wq; "
                  "printf '%%s\\n' \"${COMPREPLY[@]}\"" % (
                      " ".join("'%s'" % word for word in words),
                      len(words) - 1))
        return subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, check=False,
            env={**os.environ, "WQ_PROGRAM": PROGRAM}).stdout.split()

    def test_bash_completes_words(self):
        need_command("bash")
        self.assertEqual(self.complete("wq", "r"), ["run", "remove", "retry"])
        self.assertEqual(self.complete("wq", "add", "--pri"), ["--priority="])
        self.assertEqual(self.complete("wq", "add", "--tim"), [])
        self.assertEqual(self.complete("wq", "list", "--state", "=", "de"),
                         ["dead"])
        self.assertEqual(self.complete("wq", "run", "--deb"),
                         ["--debounce=", "--debounce-max="])
        self.assertEqual(self.complete("wq", "run", "--progress", "=", "a"),
                         ["auto", "always"])
        self.assertIn("true", self.complete("wq", "run", "-P2", "--", "tru"))

    def test_unknown_shell_is_refused(self):
        answer = wq("--completion=tcsh")
        self.assertEqual(answer.returncode, 125)
        self.assertIn(b"--completion: 'tcsh'", answer.stderr)
        self.assertIn(b"accepted: bash, zsh, fish", answer.stderr)


class Refused(Handled):
    def refused(self, *options, command=("--", "true")):
        ended = self.run_keys(b"a\n", *options, *command)
        self.assertEqual(ended.status, 125)
        self.assertEqual(ended.out, b"")
        self.assertEqual(ended.err.count(b"\n"), 1)
        self.assertTrue(ended.err.startswith(b"wq: "))
        return ended.err.decode()

    def test_invalid_value_is_reported_with_accepted_ones(self):
        for option, values, accepted in (
                ("--timeout", ("", "x", "5x", "-1", "1s2", "1e9", "0x10", "inf",
                               "1 s", "300y", "9999999999999"), "200ms, 5s"),
                ("--rate", ("", "x", "0", "10/x", "10/s:0", "10/s:", "-1/s",
                            "10/sec", "9" * 400), "N/s"),
                ("--backoff", ("x", "1s,", "2s,1s", "1s,5m,0.5", "1s,5m,2,3"),
                 "BASE[,MAX[,FACTOR]]"),
                ("--halt", ("", "x", "now", "now,fail", "now,fail=0",
                            "now,fail=101%", "later,fail=1", "now,fail=x"),
                 "never, or {now|soon},{fail|success|done}={N|P%}"),
                ("--retries", ("x", "-1", "1.5"), "inf"),
                ("--no-retry-codes", ("x", "256", "0", "5-3", "1,,2"), "65,66"),
                ("--stop-signal", ("NOPE", "0", "99"), "TERM, SIGTERM, 15"),
                ("--max-procs", ("x", "-1", "1000001"), "0 (as many as"),
                ("--priority", ("x", "99999999999"), "a whole number"),
                ("--input", ("xml",), "text, jsonl"),
                ("--progress", ("maybe",), "auto, always, never"),
                ("--delimiter", ("ab", "\\q", ""), "one character"),
                ("--queue", ("", "mem", "/a/b", "1.x"), "mem:, sqlite:PATH"),
                ("--listen", ("nonsense", "127.0.0.1:99999"), "127.0.0.1:PORT"),
                ("--env-key", ("a=b", ""), "the name of a variable")):
            for value in values:
                with self.subTest(option + "=" + value):
                    said = self.refused(option + "=" + value)
                    self.assertIn("%s: '%s' " % (option, value), said)
                    self.assertIn("accepted: ", said)
                    self.assertIn(accepted, said)

    def test_unknown_option_is_refused(self):
        self.assertIn("unknown option '--frob'", self.refused("--frob"))
        self.assertIn("unknown option '-Z'", self.refused("-Z"))
        self.assertIn("unknown option '-Z'", self.refused("-0Z"))

    def test_missing_value_is_refused(self):
        self.assertIn("--timeout: needs a value",
                      self.refused("--timeout", command=()))
        self.assertIn("--max-procs: needs a value",
                      self.refused("-P", command=()))
        self.assertIn("--follow: takes no value", self.refused("--follow=1"))

    def test_options_that_exclude_or_need_others(self):
        for options, said in (
                (("--resync=1s",), "--list"),
                (("--debounce-max=1s",), "--debounce"),
                (("--debounce=1s", "--after=1s"), "cannot be combined"),
                (("--resume",), "--joblog"),
                (("--resume-failed",), "--joblog"),
                (("--tag", "--ungroup"), "--ungroup"),
                (("--results=d", "--ungroup"), "--ungroup")):
            with self.subTest(options):
                self.assertIn(said, self.refused(*options))

    def test_missing_command_or_verb_is_refused(self):
        self.assertIn("no COMMAND given; write it after the options",
                      self.refused(command=()))
        self.assertIn("no COMMAND given", self.refused(command=("--",)))
        self.assertIn(b"no verb given", wq().stderr)
        self.assertEqual(wq().returncode, 125)
        self.assertIn(b"unknown verb 'walk'", wq("walk").stderr)
        self.assertEqual(wq("walk").returncode, 125)

    def test_file_that_cannot_be_written_is_an_error(self):
        for option in ("--pending-file=no/where", "--joblog=no/where",
                       "--json=no/where"):
            with self.subTest(option):
                self.assertIn("no/where", self.refused(option))

    def test_option_can_be_written_in_several_ways(self):
        for options in (("-P", "3"), ("-P3",), ("-j3",), ("--max-procs=3",),
                        ("--max-procs", "3"), ("--max-p=3",)):
            ended = self.run_keys(b"a\n", "-q", *options, "--", "echo", "x")
            self.assertEqual((ended.status, ended.out), (0, b"x a\n"))

    def test_unknown_words_of_parallel_are_reported(self):
        foreign = "GNU parallel has this word, wq has not"
        for word, why in (
                ("{1}", "columns need --colsep=REGEX or --key-column=N"),
                ("{2.}", foreign), ("{..}", foreign), ("{/..}", foreign),
                ("{+/}", foreign), ("{=s/a/b/=}", foreign)):
            with self.subTest(word):
                ended = self.run_keys(b"a\n", "-q", "--", "true", "x=" + word)
                self.assertEqual(ended.err.decode(),
                                 "wq: '%s' is not replaced: %s\n" % (word, why))
        for word in ("{}", "${1}", "[a-z]{2}", "{a}", "{print $1}", "a{1,2}",
                     "{", "{}{", "{//} ..", "{+}"):
            with self.subTest(word):
                ended = self.run_keys(b"a\n", "-q", "--", "true", word)
                self.assertEqual(ended.err, b"")
        ended = self.run_keys(b"a\n", "-q", "-I@", "--", "true", "{1}")
        self.assertEqual(ended.err, b"")

    def test_options_end_at_the_command(self):
        ended = self.run_keys(b"a\n", "-q", "echo", "-q", "--help", "{}", "--")
        self.assertEqual(ended.out, b"-q --help a --\n")


if __name__ == "__main__":
    main()
