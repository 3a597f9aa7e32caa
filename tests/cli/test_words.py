# SPDX-License-Identifier: MIT
"""Which words of COMMAND are replaced, and by what?"""

import shutil
import subprocess

from program import Case, main

# Key, and {.} {/} {//} {/.} of it, as GNU parallel 20221122 has them.
PATHS = (
    ("a/b.c", "a/b", "b.c", "a", "b"),
    ("/b", "/b", "b", "/", "b"),
    ("b", "b", "b", ".", "b"),
    ("a.b/c", "a.b/c", "c", "a.b", "c"),
    (".bashrc", "", ".bashrc", ".", ""),
    ("a/", "a/", "", ".", ""),
    ("/", "/", "", "/", ""),
    ("dir/x.tar.gz", "dir/x.tar", "x.tar.gz", "dir", "x.tar"),
    ("a//b", "a//b", "b", "a", "b"),
    ("//a", "//a", "a", "/", "a"),
    ("x.", "x", "x.", ".", "x"),
)
WORDS = "{.}|{/}|{//}|{/.}"


class Words(Case):
    def test_words_of_paths(self):
        keys = "".join(path[0] + "\n" for path in PATHS).encode()
        expected = ["|".join(path[1:]) for path in PATHS]
        self.assertEqual(self.printed(keys, "echo", WORDS).splitlines(), expected)
        if shutil.which("parallel"):
            theirs = subprocess.run(
                ["parallel", "-j1", "-q", "echo", WORDS], input=keys,
                capture_output=True, check=True).stdout
            self.assertEqual(theirs.decode().splitlines(), expected)

    def test_numbers_of_the_run_and_its_slot(self):
        self.assertEqual(self.printed(b"a\nb\n", "echo", "{#}:{%}:{}"),
                         "1:1:a\n2:1:b\n")
        out = self.printed(b"a\nb\n", "-P2", "--", "sh", "-c",
                       'echo "$1" $WQ_SLOT; until [ -e other ]; do '
                       ': >other; done', "sh", "{%}")
        for line in out.splitlines():
            self.assertEqual(*line.split())

    def test_any_word_is_instead_of_the_appended_key(self):
        for word, value in (("{.}", "a"), ("{/}", "a.b"), ("{//}", "."),
                            ("{/.}", "a"), ("{#}", "1"), ("{%}", "1"),
                            ("{line}", "a.b")):
            self.assertEqual(self.printed(b"a.b\n", "echo", word), value + "\n")

    def test_several_words_in_an_argument(self):
        self.assertEqual(self.printed(b"d/a.b\n", "echo", "{//}/x{/.}{}{", "}"),
                         "d/xad/a.b{ }\n")

    def test_unknown_words_stay(self):
        self.assertEqual(self.printed(b"a\n", "echo", "{...}{ }{x}{", "{}"),
                         "{...}{ }{x}{ a\n")

    def test_replacement_text_does_not_change_the_others(self):
        self.assertEqual(self.printed(b"d/a.b\n", "-I", "@", "echo", "{}", "@",
                                  "{/.}"), "{} d/a.b a\n")

    def test_key_is_not_appended_if_not_wanted(self):
        self.assertEqual(self.printed(b"a\n", "--no-key-arg", "echo", "x"), "x\n")
        self.assertEqual(self.printed(b"a\n", "--no-key-arg", "echo", "{}"), "a\n")

    def test_word_of_the_key_may_name_the_command(self):
        self.assertEqual(self.printed(b"x/echo\n", "{/}", "{//}"), "x\n")

    def test_words_in_tags(self):
        self.assertEqual(self.printed(b"d/a.b\n", "--tag={#} {%} {/.} {//}: ",
                                  "echo", "x"), "1 1 a d: x d/a.b\n")

    def test_log_has_words_of_the_key_only(self):
        self.printed(b"d/a.b\n", "--joblog=log", "echo", "{}", "{/.}", "{#}",
                     "{%}")
        self.assertEqual(
            self.read("log").splitlines()[1].split(b"\t")[-1],
            b"echo d/a.b a '{#}' '{%}'")

    def test_resume_needs_the_whole_key(self):
        log = ("--joblog=log", "--resume")
        self.assertEqual(self.printed(b"a/x\n", *log, "echo", "{/}", "{}"),
                         "x a/x\n")
        self.assertEqual(self.printed(b"a/x\nb/x\n", *log, "echo", "{/}", "{}"),
                         "x b/x\n")
        ended = self.run_keys(b"a/x\n", *log, "echo", "{/}")
        self.assertEqual(ended.status, 125)
        self.assertIn(b"--resume: COMMAND needs {}", ended.err)


if __name__ == "__main__":
    main()
