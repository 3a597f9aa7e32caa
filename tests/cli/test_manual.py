# SPDX-License-Identifier: MIT
"""Does the manual page describe all that the program does, and no more?"""

import os
import re
import subprocess

from program import PROGRAM, Case, main, need_command

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                    "../../docs/man/wq.1")


def page():
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def output(*arguments):
    return subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, check=True).stdout.decode()


VERBS = re.findall(r"^  (\w+) ", output("help"), re.MULTILINE)[:-1]


def options_of_the_program(verb):
    """From the completions, which also have the aliases."""
    found = set()
    for line in output("--completion=fish").splitlines():
        if "__fish_seen_subcommand_from %s'" % verb in line:
            found |= {"-" + c for c in re.findall(r" -s (\S)", line)}
            found |= {"--" + name for name in
                      re.findall(r" -l ([a-z-]+)", line)}
    return found


def options_in(text, begin):
    """The options in lines that begin with `begin`."""
    found = set()
    for line in text.splitlines():
        if line.startswith(begin):
            found |= {"-" + name for name in
                      re.findall(r"\bFl (-?[A-Za-z0-9-]+)", line)}
    return found


def section(name):
    """The text of a section, or of the one before a line `.Ss wq VERB`."""
    return re.search(r"^\.S[hs] %s\n(.*?)(?=^\.S%s )" %
                     (name, "h" if name.isupper() else "[hs]"), page(),
                     re.MULTILINE | re.DOTALL).group(1)


def options_of_the_page(verb):
    if verb == "run":
        return options_in(section("DESCRIPTION"), ".It Fl")
    if verb == "work":  # the section names those of run that it has not
        return (options_of_the_page("run") -
                options_in(section("wq work"), ".Fl"))
    return (options_in(section("wq " + verb), ".It Fl") |
            options_in(section("All verbs"), ".It Fl"))


class Manual(Case):
    def test_page_has_every_option_and_no_other(self):
        for verb in VERBS:
            with self.subTest(verb):
                self.assertEqual(options_of_the_program(verb),
                                 options_of_the_page(verb))

    def test_help_has_the_options_of_the_page(self):
        for verb in VERBS:
            listed = set()
            for line in output(verb, "--help").splitlines():
                name = line[8:].split(" ")  # after the group
                if re.match(r"(\w{4,7}| {7}) *$", line[:8]):
                    listed |= {re.match(r"-+[A-Za-z0-9-]+", word).group()
                               for word in name[:2] if word.startswith("-")}
            with self.subTest(verb):
                self.assertEqual(
                    listed | ({"-j"} if verb in ("run", "work") else set()),
                    options_of_the_page(verb))

    def test_page_has_every_verb(self):
        for verb in VERBS:
            self.assertRegex(page(), r"(?m)^\.Cm (.* )?%s\b" % verb)

    def test_help_and_page_name_values_alike(self):
        for verb in VERBS:
            for name, value in re.findall(
                    r"^.{8}(?:-., )?--([a-z-]+)=([A-Z]+) ",
                    output(verb, "--help"), re.MULTILINE):
                with self.subTest(verb + " " + name):
                    self.assertRegex(page(), r"Fl -%s Ns = Ns Ar %s\b"
                                     % (re.escape(name), value))

    def test_page_has_every_variable_and_no_other(self):
        ended = self.run_keys(b"a\n", "-q", "--timeout=1h", "--", "sh", "-c",
                              "env")
        given = set(re.findall(r"^(WQ_[A-Z_]+)=", ended.out.decode(),
                               re.MULTILINE)) - {"WQ_PROGRAM", "WQ_HANDLER"}
        given |= {"WQ_QUEUE"}  # of wq work: see test_work.py
        given |= {"WQ_PROC"}  # it is read: see test_pressure.py
        given |= {"WQ_REDIS_PASSWORD"}  # likewise: see test_redis.py
        given |= {"WQ_LINE"}  # of --key: see test_keymap.py
        self.assertEqual(given, set(re.findall(r"^\.It Ev (WQ_\w+)", page(),
                                               re.MULTILINE)))

    def test_page_has_every_result_and_no_other(self):
        ended = self.run_keys(b"a\n", "-q", "--", "sh", "-c",
                              'echo what >&"$WQ_RESULT_FD"')
        accepted = re.search(r"; accepted: (.*)", ended.err.decode())
        self.assertEqual(
            {word.split("=")[0] for word in accepted.group(1).split(", ")},
            set(re.findall(r"^\.It ([a-z-]+)= Ns Ar", page(), re.MULTILINE)))

    def test_quotes_end_before_the_next_begin(self):
        need_command("mandoc")
        text = subprocess.run(["mandoc", "-Tutf8", PAGE], capture_output=True,
                              check=True).stdout.decode()
        self.assertIn("\u2018{1}\u2019, \u2018{2}\u2019 ...", text)
        self.assertEqual(re.findall("\u2018[^\u2019]*\u2018", text), [])

    def test_page_is_well_formed(self):
        for command in (["mandoc", "-Tlint", "-Wwarning", PAGE],
                        ["groff", "-ww", "-mdoc", "-Tascii", "-z", PAGE]):
            with self.subTest(command[0]):
                need_command(command[0])
                answer = subprocess.run(command, capture_output=True, text=True,
                                        check=False)
                self.assertEqual(answer.stdout + answer.stderr, "")


if __name__ == "__main__":
    main()
