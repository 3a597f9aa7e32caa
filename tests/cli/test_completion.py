# SPDX-License-Identifier: MIT
"""Do completions work in their shells? The test types to bash and zsh on a
terminal, as users do; fish has a command that completes."""

import os
import pty
import re
import select
import subprocess
import time

from program import (PROGRAM, TIMEOUT, Case, main, need_command,
                     with_terminal)

SHELLS = ("bash", "zsh", "fish")


def completion(shell):
    return subprocess.run([PROGRAM, "--completion=" + shell], check=True,
                          stdout=subprocess.PIPE).stdout


def shown(seen):
    """Roughly what is left on the screen: a backspace removes a character."""
    plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", seen).replace(b"\r", b"")
    found = True
    while found:
        plain, found = re.subn(rb"[^\x08]\x08", b"", plain)
    return plain


class Terminal:
    """A shell with a user."""

    def __init__(self, argv, folder, env):
        self.pid, self.fd = with_terminal(pty.fork)
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(argv[0], argv, {**os.environ, **env})
        self.seen = b""

    def type(self, keys, until):
        """Types, and waits until the screen shows `until`."""
        self.seen = b""
        os.write(self.fd, keys.encode())
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            ready, _, _ = select.select([self.fd], [], [], 0.1)
            if ready:
                self.seen += os.read(self.fd, 65536)
            if until in shown(self.seen):
                return
        raise AssertionError("timed out waiting for %r; got %r" %
                             (until, self.seen))

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


class Completion(Case):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("bin"))
        os.symlink(os.path.abspath(PROGRAM), self.path("bin/wq"))
        self.write("a file", b"")
        os.mkdir(self.path("folder"))
        self.env = {"PATH": self.path("bin") + ":" + os.environ["PATH"],
                    "HOME": self.dir, "TERM": "dumb", "LC_ALL": "C",
                    "COLUMNS": "200"}
        for shell in SHELLS:
            self.write("completion." + shell, completion(shell))

    def terminal(self, *argv):
        terminal = Terminal(argv, self.dir, self.env)
        self.addCleanup(terminal.close)
        return terminal

    def assert_completes(self, terminal, *pairs):
        """For each pair: types the first, TAB and X, and expects the second as
        the line before the X. Ctrl-U clears the line."""
        for keys, line in pairs:
            with self.subTest(keys):
                terminal.type(keys + "\tX", line.encode() + b"X")
                terminal.type("\x15", b"")

    def test_bash_completes_what_is_typed(self):
        need_command("bash")
        terminal = self.terminal("bash", "--norc", "--noprofile", "-i")
        terminal.type("bind 'set enable-bracketed-paste off'; "
                      "source completion.bash; echo rea''dy\n", b"\nready")
        self.assert_completes(
            terminal,
            ("wq ru", "wq run "), ("wq dr", "wq drain "),
            ("wq add --pri", "wq add --priority="),
            ("wq list --state=de", "wq list --state=dead "),
            ("wq work -P2 truncat", "wq work -P2 truncate "),
            ("wq --comp", "wq --completion="),
            ("wq --completion=z", "wq --completion=zsh "),
            ("wq run --quie", "wq run --quiet "),
            ("wq run --rat", "wq run --rate="),
            ("wq run --progress=al", "wq run --progress=always "),
            ("wq run --progress al", "wq run --progress always "),
            ("wq run --listen=un", "wq run --listen=unix:"),
            ("wq run -a a", r"wq run -a a\ file "),
            ("wq run --joblog=a", r"wq run --joblog=a\ file "),
            ("wq run --json=a", r"wq run --json=a\ file "),
            ("wq run --results=f", "wq run --results=folder/"),
            ("wq run --json truncat", "wq run --json truncate "),
            ("wq run -P 2 --rate=1/s:5 truncat",
             "wq run -P 2 --rate=1/s:5 truncate "),
            ("wq run -- truncat", "wq run -- truncate "),
            ("wq run -P2 cat a", r"wq run -P2 cat a\ file "))

    def test_zsh_completes_what_is_typed(self):
        need_command("zsh")
        # As installed: a file of a directory of $fpath.
        os.rename(self.path("completion.zsh"), self.path("bin/_wq"))
        terminal = self.terminal("zsh", "-f", "-i")
        terminal.type("bindkey -e; unset zle_bracketed_paste; "
                      "fpath=($PWD/bin $fpath); autoload -Uz compinit; compinit -u -D; "
                      "echo rea''dy\n", b"\nready")
        self.assert_completes(
            terminal,
            ("wq run --quie", "wq run --quiet "), ("wq ru", "wq run "),
            ("wq dr", "wq drain "), ("wq add --pri", "wq add --priority="),
            ("wq list --state=de", "wq list --state=dead "),
            ("wq work -P 2 truncat", "wq work -P 2 truncate "),
            ("wq run --rat", "wq run --rate="),
            ("wq run --progress=al", "wq run --progress=always "),
            ("wq run --stop-signal=Q", "wq run --stop-signal=QUIT "),
            ("wq run -a a", r"wq run -a a\ file "),
            ("wq run --results=f", "wq run --results=folder/"),
            ("wq run -P 2 truncat", "wq run -P 2 truncate "),
            ("wq run -- truncat", "wq run -- truncate "),
            ("wq run -P2 cat a", r"wq run -P2 cat a\ file "))

    def test_fish_completes_what_is_typed(self):
        need_command("fish")
        for line, word in (
                ("wq r", "run"), ("wq r", "retry"),
                ("wq add --pri", "--priority"),
                ("wq list --state=de", "--state=dead"),
                ("wq work -P2 truncat", "truncate"), ("wq --comp", "--completion"),
                ("wq --completion=z", "--completion=zsh"),
                ("wq run --quie", "--quiet"), ("wq run --rat", "--rate"),
                ("wq run --progress=al", "--progress=always"),
                ("wq run --progress al", "always"),
                ("wq run -a a", "a file"),
                ("wq run --joblog=a", "--joblog=a file"),
                ("wq run --results=f", "--results=folder/"),
                ("wq run -P2 truncat", "truncate"),
                ("wq run -- truncat", "truncate"),
                ("wq run -P2 cat a", "a file")):
            with self.subTest(line):
                answer = subprocess.run(
                    ["fish", "-N", "-c", "source completion.fish; "
                     "complete -C '%s'" % line],
                    cwd=self.dir, env={**os.environ, **self.env}, check=True,
                    capture_output=True, text=True)
                self.assertIn(word, [each.split("\t")[0] for each in
                                       answer.stdout.splitlines()])


if __name__ == "__main__":
    main()
