# SPDX-License-Identifier: MIT
"""Is every block of code in the README and the guide run by a test, and do the
programs print what the guide says?

tests/house/quoted.sh holds blocks of C and shell against the files that are
built and run. Here: that no block lacks its file; blocks below a line
`<!-- printed by NAME -->` against what examples/NAME.c prints, and below
`<!-- expected by SCRIPT -->` against what that script compares its output
with. Also the SQL and the rights of a user in docs/backends.md."""

import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import tempfile
import unittest

import documents
from documents import ROOT, need_command, read

EXAMPLES = os.path.join(os.environ.get(
    "WQ_BUILD", os.path.join(ROOT, "build/dev")), "examples")
DOCUMENTS = ["README.md"] + ["docs/guide/" + name for name in
                             sorted(os.listdir(os.path.join(ROOT,
                                                            "docs/guide")))
                             if name.endswith(".md")]


def blocks(path):
    """(line, what is marked above it, language, text) of each block."""
    found, begun, mark = [], None, ""
    for number, line in enumerate(read(path).split("\n"), 1):
        if begun is None and line.startswith("```"):
            begun = (number, mark, line[3:], [])
        elif begun and line == "```":
            found.append(begun[:3] + ("".join(begun[3]),))
            begun = None
        elif begun:
            begun[3].append(line + "\n")
        mark = "".join(re.findall(r"^<!-- (.*) -->$", line))
    return found


# What a block without a file may be. A picture or a measured figure is no code.
OTHERS = ("printed by ", "expected by ", "checked by promtool", "picture",
          "measured", "needs a cluster")


class Blocks(unittest.TestCase):
    def test_every_block_names_the_file_that_is_run(self):
        for path in DOCUMENTS:
            for line, mark, _, _ in blocks(path):
                self.assertTrue(
                    mark.startswith(OTHERS) or os.path.exists(os.path.join(
                        ROOT, mark.split("#")[0] or "?")),
                    "%s:%d: no file is named" % (path, line))

    def test_scripts_expect_what_the_guide_says_that_they_print(self):
        checked = 0
        for path in DOCUMENTS:
            for line, mark, _, text in blocks(path):
                if mark.startswith("expected by "):
                    expected = "".join(re.findall(
                        r"<<'?EXPECTED'?\n(.*?)^EXPECTED$",
                        read(mark.removeprefix("expected by ")), re.M | re.S))
                    for one in text.splitlines(keepends=True):
                        self.assertIn(one, expected, "%s:%d" % (path, line))
                    checked += 1
        self.assertGreater(checked, 5)

    def test_prometheus_accepts_the_queries(self):
        need_command("promtool")
        rules = []
        for path in DOCUMENTS:
            for _, mark, _, text in blocks(path):
                if mark == "checked by promtool":
                    rules += re.sub("^#.*\n", "", text, flags=re.M
                                    ).strip().split("\n\n")
        self.assertGreater(len(rules), 5)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"groups": [{"name": "wq", "rules": [
                {"alert": "A%d" % number, "expr": rule}
                for number, rule in enumerate(rules)]}]}, file)
            file.flush()
            done = subprocess.run(["promtool", "check", "rules", file.name],
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("%d rules found" % len(rules), done.stdout)

    def test_every_example_of_the_command_names_the_script_that_is_run(self):
        examples = re.search(r"^\.Sh EXAMPLES\n(.*?)^\.Sh", read(
            "docs/man/wq.1"), re.M | re.S).group(1)
        marked = re.findall(r'^\.\\" (\S+)#\S+\n\.Bd -literal', examples, re.M)
        self.assertEqual(len(marked), examples.count(".Bd"))
        self.assertGreater(len(marked), 5)
        for path in marked:
            self.assertTrue(os.path.exists(os.path.join(ROOT, path)), path)

    def test_the_examples_print_what_the_guide_says(self):
        checked = 0
        for path in DOCUMENTS:
            for line, mark, _, text in blocks(path):
                if not mark.startswith("printed by "):
                    continue
                program = os.path.join(EXAMPLES,
                                       mark.removeprefix("printed by "))
                done = subprocess.run([program], capture_output=True,
                                      text=True, timeout=60)
                self.assertIn(text, done.stdout + done.stderr,
                              "%s:%d" % (path, line))
                checked += 1
        self.assertGreater(checked, 10)


class Backends(unittest.TestCase):
    """What docs/backends.md tells an administrator to type."""

    def test_the_queries_find_the_keys_of_a_file(self):
        program = os.path.join(os.path.dirname(EXAMPLES), "tools/wq")
        if not os.path.exists(program):
            raise unittest.SkipTest("the command is not built")
        (text,) = [text for _, _, language, text in blocks("docs/backends.md")
                   if language == "sql"]
        found = {}
        with tempfile.TemporaryDirectory(prefix="wq-sql-") as folder:
            path = folder + "/q.db"
            for words in ("add bad",
                          "work --until-empty --no-retry-codes=1 false",
                          "add --after=1h later", "add one two"):
                subprocess.run(
                    [program] + words.split(), timeout=60, check="add" in words,
                    env=dict(os.environ, WQ_QUEUE="sqlite:" + path),
                    capture_output=True)
            with contextlib.closing(sqlite3.connect(path)) as file:
                for query, state in re.findall(r"^(SELECT .*?;) +-- (\w+) keys$",
                                               text, re.M):
                    found[state] = [row[0] for row in file.execute(query)]
        self.assertEqual(found, {"READY": [2], "WAITING": ["later"],
                                 "DEAD": ["bad"]})

    def test_the_rights_of_a_user_are_those_that_are_tested(self):
        (line,) = re.findall(r"^ +redis-cli (ACL SETUSER (?:.*\\\n)*.*\n)",
                             read("docs/backends.md"), re.M)
        tested = re.search(r"user_with_the_documented_rights_can_do_all\)(.*?)"
                           r"\"OK\"", read("tests/redis/test_access.c"), re.S)
        self.assertEqual(
            line.replace("\\\n", " ").replace("'", "").split(),
            "".join(re.findall(r'"(.*)"', tested.group(1))).replace(
                ">s3cret", ">PASSWORD").split())


class Service(unittest.TestCase):
    """recipe_systemd, with a socket in the place of systemd's."""

    def messages(self, address):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(address)
            manager.settimeout(60)
            name = address.decode().replace("\0", "@")
            with subprocess.Popen(
                    [os.path.join(EXAMPLES, "recipe_systemd")],
                    env=dict(os.environ, NOTIFY_SOCKET=name)) as service:
                try:
                    found = [manager.recv(4096).decode()]
                    service.send_signal(signal.SIGTERM)
                    found += [manager.recv(4096).decode() for _ in range(2)]
                    self.assertEqual(service.wait(60), 0)
                finally:
                    service.kill()
        return found

    EXPECTED = ["READY=1", "STOPPING=1\nSTATUS=Finishing the work",
                "EXTEND_TIMEOUT_USEC=10000000"]

    def test_the_unit_is_correct(self):
        need_command("systemd-analyze")
        with tempfile.TemporaryDirectory(prefix="wq-unit-") as folder:
            unit = os.path.join(folder, "agent.service")
            with open(unit, "w", encoding="utf-8") as file:
                file.write(read("examples/recipe_systemd.service").replace(
                    "/usr/bin/agent",
                    os.path.abspath(
                        os.path.join(EXAMPLES, "recipe_systemd"))))
            done = subprocess.run(
                ["systemd-analyze", "verify", "--man=no", unit],
                capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout + done.stderr),
                         (0, ""))

    def test_it_says_when_it_is_ready_and_when_it_stops(self):
        with tempfile.TemporaryDirectory(prefix="wq-notify-") as folder:
            self.assertEqual(self.messages((folder + "/n").encode()),
                             self.EXPECTED)

    def test_the_socket_may_have_an_abstract_name(self):
        self.assertEqual(self.messages(b"\0wq-notify-%d" % os.getpid()),
                         self.EXPECTED)


if __name__ == "__main__":
    documents.main()
