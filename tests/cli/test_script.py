# SPDX-License-Identifier: MIT
"""Can a shell script be a worker? `wq get` takes a key for the script, `wq done`
finishes it, and the end of the script gives it back."""

import os
import signal
import socket

from program import TIMEOUT, main, until
from shared import Shared, of_sqlite


class Script(Shared):
    def test_script_gets_and_finishes_keys(self):
        for shell in ("sh", "bash"):
            with self.subTest(shell):
                self.done("add", "--", "a", "b c", "-d")
                self.assertEqual(self.shell_prints(
                    "while key=$(wq get --timeout=0); do "
                    'echo "$key"; wq done -- "$key"; done; echo end',
                    shell), ["a", "b c", "-d", "end"])
                self.assertEqual(self.counts(), (0, 0, 0, 0))

    def test_no_key_in_time_has_status_1(self):
        ended = self.wq("get", "--timeout=50ms")
        self.assertEqual((ended.status, ended.out, ended.err), (1, b"", b""))
        self.assertGreaterEqual(ended.seconds, 0.05)
        self.assertEqual(self.wq("get", "--timeout=0").status, 1)

    def test_get_waits_for_a_key(self):
        process = self.begin("get")
        self.await_queue()
        self.done("add", "a")
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual((process.returncode, out), (0, b"a\n"))

    def test_key_is_held_until_done(self):
        self.done("add", "a")
        # This process is the parent, and holds it.
        self.assertEqual(self.done("get"), b"a\n")
        self.assertEqual(self.counts(), (0, 1, 0, 0))
        self.assertEqual(self.wq("get", "--timeout=0").status, 1)
        self.done("done", "a")
        self.assertEqual(self.counts(), (0, 0, 0, 0))

    def test_key_added_while_held_is_handed_out_again(self):
        self.done("add", "a")
        self.done("get")
        self.assertEqual(self.json("add", "a")[0]["how"], "dirty")
        self.assertEqual(self.counts(), (0, 1, 0, 0))
        self.done("done", "a")
        self.assertEqual(self.counts(), (1, 0, 0, 0))

    def test_results(self):
        url = self.url
        for options, counts in (((), (0, 0, 0, 0)),
                                (("--back",), (1, 0, 0, 0)),
                                (("--retry", "--backoff=9999h,9999h"), (0, 0, 1, 0)),
                                (("--after=1h",), (0, 0, 1, 0)),
                                (("--bury",), (0, 0, 0, 1)),
                                (("--retry", "--retries=0"), (0, 0, 0, 1))):
            with self.subTest(options):
                self.url = "%s?queue=q%d" % (url, len("".join(options)))
                self.done("add", "a")
                self.done("get")
                self.done("done", *options, "a")
                self.assertEqual(self.counts(), counts)

    def test_retries_are_counted(self):
        self.done("add", "a")
        for attempt in (1, 2, 3):
            key, = self.json("get")
            self.assertEqual((key["key"], key["attempt"]), ("a", attempt))
            ended = self.wq("done", "--retry", "--retries=2", "--backoff=1ms",
                            "a")
            self.assertEqual(ended.status, 0)
        self.assertEqual(ended.err,
                         b"wq: done: a has failed too often: it is DEAD\n")
        self.assertEqual(self.counts(), (0, 0, 0, 1))
        listed, = self.json("list")
        self.assertEqual(listed["failures"], 3)
        self.done("remove", "a")
        self.done("add", "a")
        self.assertEqual(self.json("get")[0]["attempt"], 1)

    def test_url_may_end_with_a_separator(self):
        self.done("add", "a")
        url = self.url + ("&" if "?" in self.url else "?")
        self.assertEqual(self.done("get", "--queue=" + url), b"a\n")
        self.done("done", "--queue=" + url, "a")

    def test_several_keys_at_once(self):
        self.done("add", "a", "b", "c")
        self.assertEqual(self.done("get", "-n", "2", "-0"), b"a\0b\0")
        self.assertEqual(self.done("get", "-n", "2"), b"c\n")
        self.done("done", "a", "b", "c")

    def test_list_and_show_name_the_script(self):
        self.done("add", "a", "b")
        self.done("get")
        script = str(os.getpid())
        if self.url.startswith("redis"):
            script = "%s:%s" % (socket.gethostname(), script)
        held, = self.json("list", "--state=held")
        self.assertEqual(held["holder"], script)
        self.assertNotIn("holder", self.json("show", "b")[0])
        self.assertIn("\nHELD by    %s\n" % script,
                      self.done("show", "a").decode())
        head, line = self.done("list", "--state=held").decode().splitlines()
        self.assertEqual(line.split()[-2:], [script, "a"])
        self.assertEqual(line.index(script), head.index("HOLDER"))
        self.assertEqual(line.rindex("a"), head.index("KEY"))
        self.assertNotIn("HOLDER", self.done("list").decode())

    def test_only_the_holder_finishes_a_key(self):
        self.done("add", "a", "b")
        self.done("get")
        self.assertEqual(
            self.refused("done", "b", status=1),
            "wq: done: b is not held by process %d; --holder=PID names the "
            "process" % os.getpid())
        self.assertIn("not held by process 1;",
                      self.refused("done", "--holder=1", "a", status=1))
        self.assertEqual(self.shell_prints("wq done a 2>&1; echo $?; :")[-1],
                         "1")
        self.assertEqual(self.counts(), (1, 1, 0, 0))
        self.assertEqual(
            self.shell_prints("wq done --holder=$PPID a; echo $?; :"), ["0"])

    def test_holder_can_be_named(self):
        self.done("add", "a")
        self.assertEqual(self.shell_prints(
            # The parent of this get is a subshell, which ends.
            'key=$(wq get --holder=$$ | cat); wq list -0 --state=held; '
            'wq done "$key"; echo " $key"'), ["a\0 a"])
        self.assertEqual(self.counts(), (0, 0, 0, 0))
        self.assertIn("get: ", self.refused("get", "--holder=999999999"))

    @of_sqlite
    def test_lease_cannot_be_held_for_a_script(self):
        for option in ("lease=1s", "hold=lease"):
            self.assertIn("with hold=lease a key cannot be held for another "
                          "process", self.refused(
                              "get", "--queue=%s?%s" % (self.url, option)))
        for option, shown in (("what=1", "what=***"),
                              ("sync=maybe", "sync=maybe"),
                              ("queue=", "queue="), ("busy=soon", "busy=soon")):
            said = self.refused("get", "--queue=%s?%s" % (self.url, option))
            self.assertIn("get: cannot open %s?%s: " % (self.url, shown), said)
            self.assertIn(option.split("=")[0], said.split(": ", 3)[3])

    @of_sqlite
    def test_options_of_the_url_count(self):
        self.url += "?queue=a%62c&sync=lazy&busy=1s&max_expiries=3&create=yes"
        self.done("add", "x")
        self.assertEqual(self.status()["name"], "abc")
        self.assertEqual(self.done("get", "--timeout=0"), b"x\n")
        self.done("done", "x")

    def test_end_of_the_script_gives_the_key_back(self):
        self.set_short_lease()
        for text in ("exit 3", "kill -9 $$", "kill -TERM $$"):
            with self.subTest(text):
                self.done("add", "a")
                self.shell("wq get; " + text).wait(TIMEOUT)
                self.await_counts(1, 0, 0, 0)

    def test_killed_script_gives_its_key_to_a_waiting_worker(self):
        self.set_short_lease()
        self.done("add", "a")
        script = self.shell("wq get >got; sleep 1000 & echo $! >pid; wait")
        until(lambda: os.path.exists(self.path("pid")) and self.read("pid"),
              "the script")
        self.addCleanup(os.kill, int(self.read("pid")), signal.SIGKILL)
        worker = self.worker()
        self.assertEqual(self.counts(), (0, 1, 0, 0))
        script.kill()
        script.wait()
        self.await_begun("a")
        self.await_counts(0, 0, 0, 0)
        worker.terminate()

    def test_key_that_cannot_be_printed_is_given_back(self):
        self.done("add", "a")
        with open("/dev/full", "wb") as full:
            self.cannot_print(full, "get")
        self.assertEqual(self.counts(), (1, 0, 0, 0))
        reader, writer = os.pipe()
        os.close(reader)
        self.assertIn(b"get: cannot write to stdout: Broken pipe",
                      self.cannot_print(writer, "get"))
        os.close(writer)
        self.assertEqual(self.counts(), (1, 0, 0, 0))


if __name__ == "__main__":
    main()
