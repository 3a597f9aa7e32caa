# SPDX-License-Identifier: MIT
"""Is every block of code in the README and the guide run by a test, and do the
programs print what the guide says?

tests/house/quoted.sh holds blocks of C and shell against the files that are
built and run. Here: that no block of shell lacks its file, and blocks below a
line `<!-- printed by NAME -->` against what examples/NAME.c prints."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import unittest

import documents
from documents import ROOT, read

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


class Blocks(unittest.TestCase):
    def test_every_block_of_code_names_the_file_that_is_run(self):
        for path in DOCUMENTS:
            for line, mark, language, _ in blocks(path):
                if language in ("c", "sh"):
                    self.assertTrue(os.path.exists(os.path.join(
                        ROOT, mark.split("#")[0] or "?")),
                        "%s:%d: no file is named" % (path, line))

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

    def test_it_says_when_it_is_ready_and_when_it_stops(self):
        with tempfile.TemporaryDirectory(prefix="wq-notify-") as folder:
            self.assertEqual(self.messages((folder + "/n").encode()),
                             self.EXPECTED)

    def test_the_socket_may_have_an_abstract_name(self):
        self.assertEqual(self.messages(b"\0wq-notify-%d" % os.getpid()),
                         self.EXPECTED)


if __name__ == "__main__":
    documents.main()
