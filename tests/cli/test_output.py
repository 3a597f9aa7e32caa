# SPDX-License-Identifier: MIT
"""Where does the output of a run go, and does it arrive complete?"""

import hashlib
import os
import resource
import select
import signal
import subprocess
import time

from program import (
    TIMEOUT, Case, is_running, main, read_line, read_some, until)

MEBIBYTE = 1 << 20

# Waits until all of the keys a b c d have begun.
TOGETHER = """
: >began.$1
while ! [ -e began.a ] || ! [ -e began.b ] || ! [ -e began.c ] ||
      ! [ -e began.d ]; do sleep 0.01; done
"""


def used(pid):
    """The processor time that it has used, in ticks."""
    with open("/proc/%d/stat" % pid, encoding="latin-1") as file:
        return file.read().rsplit(")", 1)[1].split()[11:13]


class Grouped(Case):
    def test_output_of_concurrent_runs_does_not_mix(self):
        ended = self.run_keys(b"a\nb\nc\nd\n", "-P4", *self.script(
            "echo begin $1" + TOGETHER + "echo end $1"))
        self.assertEqual(ended.status, 0, ended.err)
        lines = ended.lines()
        self.assertEqual(len(lines), 8)
        for begin, end in zip(lines[::2], lines[1::2]):
            self.assertEqual(begin.replace("begin", "end"), end)

    def test_stdout_and_stderr_stay_apart(self):
        ended = self.run_keys(b"a\nb\n", "-q", "-P1", *self.script(
            "for i in 1 2 3; do echo $1 out $i; echo $1 err $i >&2; done"))
        self.assertEqual(ended.lines(), [
            "%s out %d" % (key, i) for key in "ab" for i in (1, 2, 3)])
        self.assertEqual(ended.err.decode().splitlines(), [
            "%s err %d" % (key, i) for key in "ab" for i in (1, 2, 3)])

    def test_output_of_a_run_is_one_piece(self):
        ended = self.run_keys(
            b"a\nb\nc\nd\n", "-q", "-P4", *self.script(
                "echo $1 1; echo $1 3 >&2" + TOGETHER +
                "echo $1 2; echo $1 4 >&2"), stderr=subprocess.STDOUT)
        lines = ended.lines()
        for first in range(0, 16, 4):
            key = lines[first][0]
            self.assertEqual(lines[first:first + 4],
                             ["%s %d" % (key, i) for i in (1, 2, 3, 4)])

    def test_reopened_dev_stderr_loses_nothing(self):
        ended = self.run_keys(b"a\n", "-q", *self.script(
            "echo 1 >/dev/stderr; echo 2 >/dev/stderr;"
            "echo 3 | tee /dev/stderr >/dev/stdout; echo 4 >/dev/stdout"))
        self.assertEqual(ended.err, b"1\n2\n3\n")
        self.assertEqual(ended.out, b"3\n4\n")

    def test_output_is_unchanged(self):
        content = bytes(range(256)) * 700 + b"no newline"
        self.write("content", content)
        ended = self.run_keys(b"a\nb\n", "-P1", *self.script("cat content"))
        self.assertEqual(ended.out, content + content)

    def test_output_of_any_size_is_complete(self):
        sizes = [0, 1, 4095, 4096, 4097, 65535, 65536, 65537, 512 * 1024 - 1,
                 512 * 1024, 512 * 1024 + 1, 3 * MEBIBYTE + 7]
        ended = self.run_keys(
            "".join("%d\n" % size for size in sizes).encode(), "-P1",
            *self.script("yes $1 | head -c $1"))
        expected = b"".join(
            (b"%d\n" % size * (size // 2 + 1))[:size] for size in sizes)
        self.assertEqual(len(ended.out), len(expected))
        self.assertTrue(ended.out == expected)

    def test_output_can_be_appended_to_a_file(self):
        with open(self.path("out"), "ab") as out:
            ended = self.run_keys(b"100000\n2000000\n", "-P1", *self.script(
                "yes | head -c $1"), stdout=out)
        self.assertEqual(ended.status, 0)
        self.assertTrue(self.read("out") == b"y\n" * 1050000)


class Large(Case):
    def peak(self, slots, size):
        """The peak memory of the program, in bytes, for a run that writes
        `size` bytes. Checks these bytes."""
        asan = os.environ.get("ASAN_OPTIONS", "") # it keeps what is freed
        process = self.start(slots, *self.script("yes | head -c $1"),
                             stderr=subprocess.DEVNULL,
                             env={"ASAN_OPTIONS": asan + ":quarantine_size_mb=1"})
        self.feed(process, b"%d\n" % size)
        seen = hashlib.sha256()
        while True:
            data = process.stdout.read(MEBIBYTE)
            if not data:
                break
            seen.update(data)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(seen.digest(),
                         hashlib.sha256(b"y\n" * (size // 2)).digest())
        return usage.ru_maxrss * 1024

    def test_large_output_does_not_fill_memory(self):
        for slots in ("-P1", "-P2"):
            with self.subTest(slots):
                self.assertLess(self.peak(slots, 128 * MEBIBYTE) -
                                self.peak(slots, 2), 32 * MEBIBYTE)

    def test_no_file_is_left_in_tmpdir(self):
        os.mkdir(self.path("tmp"))
        ended = self.run_keys(
            b"a\n", "-P2", *self.script(
                "yes | head -c 9000000; ls -A tmp >&2"), "-q",
            env={"TMPDIR": self.path("tmp")})
        self.assertEqual(len(ended.out), 9000000)
        self.assertEqual(os.listdir(self.path("tmp")), [])

    def test_output_stays_in_memory_without_tmpdir(self):
        ended = self.run_keys(
            b"a\nb\n", "-q", "-P2", *self.script("yes $1 | head -c 3000000"),
            env={"TMPDIR": self.path("not-there")})
        self.assertEqual(ended.status, 0)
        a, b = b"a\n" * 1500000, b"b\n" * 1500000
        self.assertTrue(ended.out in (a + b, b + a))
        self.assertEqual(ended.err.count(b"\n"), 1, ended.err)
        self.assertIn(b"cannot store output in a file in ", ended.err)
        self.assertIn(b"No such file or directory", ended.err)

    def test_full_tmpdir_loses_nothing(self):
        def limit():  # EFBIG, where a file system would return ENOSPC
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000001, 1000001))
        ended = self.run_keys(
            b"a\n", "-q", "-P2", *self.script("seq 500000"),
            preexec_fn=limit)
        self.assertEqual(ended.status, 0)
        self.assertTrue(ended.out == b"".join(
            b"%d\n" % i for i in range(1, 500001)))
        self.assertIn(b"cannot store output in a file in ", ended.err)


    def test_large_output_is_stored_and_printed_unchanged(self):
        # It fills memory, then a file; targets: a pipe, a file, one to append
        # to.
        script = self.script("seq 1000000 && seq 10 >&2")
        expected = b"".join(b"%d\n" % i for i in range(1, 1000001))
        for slots in ("-P1", "-P2"):
            with self.subTest(slots):
                ended = self.run_keys(b"a\n", slots, "-q", *script)
                self.assertTrue(ended.out == expected)
                self.assertEqual(len(ended.err.split()), 10)
                self.write("appended", b"")
                for name, mode in (("written", "wb"), ("appended", "ab")):
                    with open(self.path(name), mode) as out:
                        self.run_keys(b"a\n", slots, "-q", *script, stdout=out)
                    self.assertTrue(self.read(name) == expected)

    def test_large_output_of_the_only_slot_is_printed_at_once(self):
        gate = self.fifo("gate")
        process = self.start("-P1", "-q", *self.script(
            "yes | head -c 2000000; read x <gate; echo last"))
        self.feed(process, b"a\n")
        self.assertEqual(len(process.stdout.read(1500000)), 1500000)
        os.write(gate, b"go\n")
        self.assertTrue(process.stdout.read() == b"y\n" * 250000 + b"last\n")
        self.assertEqual(process.wait(TIMEOUT), 0)

    def test_large_output_of_one_slot_waits_if_others_could_mix(self):
        for options in (("-P2",), ("-P1", "--timeout=1h")):
            with self.subTest(options):
                gate = self.fifo("gate%d" % len(options))
                process = self.start("-q", *options, *self.script(
                    "yes | head -c 2000000; : >written; read x <gate%d"
                    % len(options)))
                self.feed(process, b"a\n")
                until(lambda: os.path.exists(self.path("written")), "output")
                os.remove(self.path("written"))
                self.assertEqual(select.select([process.stdout], [], [], 0.2),
                                 ([], [], []))
                os.write(gate, b"go\n")
                self.assertEqual(len(process.stdout.read()), 2000000)
                self.assertEqual(process.wait(TIMEOUT), 0)

    def test_slow_reader_does_not_stop_the_run(self):
        process = self.start("-P1", "-q", *self.script(
            "yes | head -c 30000000; : >over"))
        self.feed(process, b"a\n")
        self.assertEqual(len(process.stdout.read(1000000)), 1000000)
        until(lambda: os.path.exists(self.path("over")), "the end of the run")
        self.assertTrue(process.stdout.read() == b"y\n" * 14500000)
        self.assertEqual(process.wait(TIMEOUT), 0)


class Readers(Case):
    """The readers of our stdout and stderr: slow, full, gone."""

    def assert_written(self, process, size, status):
        """It writes as many bytes, and ends with the status."""
        self.assertEqual(len(process.stdout.read()), size)
        self.assertEqual(process.wait(TIMEOUT), status)

    def started_unread(self):
        """A run has written more than a pipe holds, all unread."""
        process = self.start("-f", "--json=events",
                             *self.script("yes | head -c 3000000"))
        self.feed(process, b"a\n", end=False)
        self.await_event(event="finished", key="a")
        return process

    def test_full_disk_is_reported_and_is_an_error(self):
        with open("/dev/full", "wb") as full:
            ended = self.run_keys(b"a\nb\n", "-P1", *self.script("echo $1"),
                                  stdout=full)
        self.assertEqual(ended.status, 125)
        self.assertIn(b"wq: cannot write to stdout: No space left on device\n",
                      ended.err)

    def test_full_disk_stops_new_runs(self):
        with open("/dev/full", "wb") as full:
            self.run_keys(b"".join(b"%d\n" % i for i in range(1000)), "-P1",
                          *self.script("echo $1; echo $1 >>ran"), stdout=full)
        self.assertLess(self.read("ran").count(b"\n"), 1000)

    def test_reader_that_closes_the_pipe_ends_wq(self):
        process = self.start("-P2", *self.script("echo $1"),
                             stdin=subprocess.DEVNULL)
        process.wait(TIMEOUT)
        source = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
        numbered = subprocess.Popen(["cat", "-n"], stdin=source.stdout,
                                    stdout=subprocess.PIPE)
        process = self.start("-P2", *self.script("echo $1"),
                             stdin=numbered.stdout)
        self.assertTrue(read_line(process.stdout))
        process.stdout.close()
        process.stdout = None
        process.wait(TIMEOUT)
        for other in (source, numbered):
            other.kill()
            other.stdout.close()
            other.wait()
        self.assertEqual(process.returncode, -signal.SIGPIPE)
        self.assertNotIn(b"rite", process.stderr.read())

    def test_slow_reader_does_not_delay_timeouts(self):
        process = self.start(
            "-P2", "--timeout=0.3", "--retries=0", "--json=events",
            *self.script("[ $1 = long ] && exec sleep 1000;"
                         "yes | head -c 3000000"))
        self.feed(process, b"much\nlong\n")
        self.await_event(event="finished", key="much", outcome="ok")
        self.await_event(event="finished", key="long", timed_out=True)
        self.assertIsNone(process.poll())  # the output is unread
        self.assert_written(process, 3000000, 123)

    def test_slow_reader_does_not_delay_signals(self):
        process = self.started_unread()
        process.send_signal(signal.SIGINT)
        self.await_event(event="phase", phase="draining")
        self.assert_written(process, 3000000, -signal.SIGINT)

    def test_halt_loses_no_output(self):
        process = self.start(
            "--halt=now,fail=1", "--retries=0", "--json=events",
            *self.script("yes | head -c 3000000; exit 1"))
        self.feed(process, b"a\n")
        self.await_event(event="phase", phase="stopping")
        self.assert_written(process, 3000000, 123)

    def test_third_signal_does_not_wait_for_readers(self):
        process = self.started_unread()
        for phase in ("draining", "stopping"):
            process.send_signal(signal.SIGINT)
            self.await_event(event="phase", phase=phase)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(TIMEOUT), -signal.SIGINT)

    def started(self):
        return sum(event["event"] == "started" for event in self.events())

    def test_unread_output_delays_new_runs(self):
        process = self.start("-P4", "--json=events",
                             *self.script("yes $1 | head -c 262144"))
        self.feed(process, b"".join(b"%d\n" % i for i in range(150)))
        seen = -1
        while self.started() != seen:  # until no more start
            seen = self.started()
            time.sleep(0.5)
        self.assertLess(seen, 60)
        self.assert_written(process, 150 * 262144, 0)

    def test_wq_sleeps_while_output_is_unread(self):
        process = self.start("-P4", *self.script("yes | head -c 400000"))
        self.feed(process, b"".join(b"%d\n" % i for i in range(40)))

        def sleeps():
            before = used(process.pid)
            time.sleep(0.3)  # some thirty ticks
            return used(process.pid) == before
        until(sleeps, "sleep")
        self.assert_written(process, 40 * 400000, 0)

    def test_unread_output_keeps_its_stream(self):
        process = self.start(
            "-q", "-P1", "--json=events", *self.script(
                "[ $1 = 0 ] && yes | head -c 1000000;"
                "echo out $1; echo err $1 >&2"))
        self.feed(process, b"0\n1\n2\n")
        self.await_event(event="finished", key="2")
        out, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(out[1000000:], b"out 0\nout 1\nout 2\n")
        self.assertEqual(err, b"err 0\nerr 1\nerr 2\n")

    def test_runs_do_not_mix_with_a_slow_reader(self):
        process = self.start(
            "-q", "-P4", *self.script("for i in 1 2 3 4 5 6; do"
                                      " yes $1 | head -c 6000; done;"
                                      "yes $1 | head -c 300 >&2"),
            stderr=subprocess.STDOUT)
        self.feed(process, b"".join(b"%d\n" % i for i in range(100, 200)))
        seen = b""
        while True:
            data = read_some(process.stdout, 2000)
            if not data:
                break
            seen += data
            time.sleep(0.0002)
        lines = seen.split(b"\n")[:-1]
        self.assertEqual(len(lines), 100 * 36300 // 4)
        changes = sum(a != b for a, b in zip(lines, lines[1:]))
        self.assertEqual(changes, 99)

    def test_inherited_stdout_keeps_its_flags(self):
        reader, writer = os.pipe()
        self.run_keys(b"a\n", *self.script("echo $1"), stdout=writer)
        os.set_blocking(reader, True)
        self.assertTrue(os.get_blocking(writer))
        self.assertEqual(os.read(reader, 100), b"a\n")
        os.close(reader)
        os.close(writer)


class Stragglers(Case):
    """Processes that outlive their run and keep its output open."""

    def test_output_after_the_end_of_a_run(self):
        gate = self.fifo("gate")
        process = self.start(
            "-f", "-P1", "--tag", "--json=events", "--output-grace=0",
            *self.script(
                "echo now; if [ $1 = a ]; then"
                " (read x <gate; printf 'later\\nlast') & fi"))
        self.feed(process, b"a\nb\n", end=False)
        self.await_event(event="finished", key="b", outcome="ok")
        self.assertEqual(read_line(process.stdout), b"a\tnow\n")
        self.assertEqual(read_line(process.stdout), b"b\tnow\n")
        os.write(gate, b"go\n")
        self.assertEqual(read_line(process.stdout), b"a\tlater\n")
        self.assertEqual(read_line(process.stdout), b"a\tlast\n")
        process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT)

    def test_output_that_comes_after_the_end_of_a_run_is_printed(self):
        gate = self.fifo("gate")
        process = self.start("--output-grace=1h", "--json=events", *self.script(
            "echo now; (read x <gate; echo later) & :"))
        self.feed(process, b"a\n")
        self.await_event(event="finished", key="a")
        os.write(gate, b"go\n")
        self.assertEqual(process.stdout.read(), b"now\nlater\n")
        self.assertEqual(process.wait(TIMEOUT), 0)
        self.assertNotIn(b"is lost", process.stderr.read())

    def test_output_after_the_end_stays_in_one_piece(self):
        # b waits until a has ended, and c until b has.
        gate = self.fifo("gate")
        process = self.start("-P1", "--output-grace=1h", "--json=events",
                             *self.script(
                                 "echo $1 1; [ $1 != a ] || (read x <gate;"
                                 " echo a 2; echo a 3 >&2) & :"))
        self.feed(process, b"a\nb\n")
        self.await_event(event="finished", key="b")
        self.assertEqual(read_line(process.stdout), b"b 1\n")
        os.write(gate, b"go\n")
        self.assertEqual(process.stdout.read(), b"a 1\na 2\n")
        self.assertEqual(read_line(process.stderr), b"a 3\n")
        self.assertEqual(process.wait(TIMEOUT), 0)

    def test_output_that_is_cut_is_reported(self):
        self.fifo("gate")
        ended = self.run_keys(b"a\nb\nc\n", "-P1", "--output-grace=50ms",
                              *self.script("echo $1; (read x <gate) &"
                                           " echo $! >>pids"))
        for pid in self.read("pids").split():
            os.kill(int(pid), signal.SIGKILL)
        self.assertEqual((ended.status, ended.out), (0, b"a\nb\nc\n"))
        self.assertGreaterEqual(ended.seconds, 0.05)
        self.assertEqual(ended.err.decode().splitlines()[1:], [
            "wq: a: a process that it started still has its output open; what "
            "that writes now is lost", "wq: likewise for 2 more runs"])

    def test_endless_output_does_not_delay_the_end(self):
        ended = self.run_keys(b"a\n", "--output-grace=20ms", *self.script(
            "echo begin; yes noise & echo $! >pid; sleep 0.1"))
        self.assertEqual(ended.status, 0)
        self.assertTrue(ended.out.startswith(b"begin\n"))
        pid = int(self.read("pid"))
        until(lambda: not is_running(pid), "its end")

    def test_stragglers_do_not_use_up_descriptors(self):
        self.fifo("gate")
        keys = b"".join(b"%d\n" % i for i in range(300))

        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        ended = self.run_keys(keys, "-P2", *self.script(
            "(read x <gate) & echo $! >>pids; echo $1"), preexec_fn=limit)
        for pid in self.read("pids").split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.assertEqual(ended.status, 0, ended.err)
        self.assertEqual(sorted(ended.out.split()), sorted(keys.split()))


class ByLine(Case):
    def test_lines_are_printed_during_the_run(self):
        gate = self.fifo("gate")
        process = self.start("--line-buffer", *self.script(
            "echo first; echo error >&2; read x <gate; echo second"))
        self.feed(process, b"a\n")
        self.assertEqual(read_line(process.stdout), b"first\n")
        self.assertEqual(read_line(process.stderr), b"error\n")
        os.write(gate, b"go\n")
        self.assertEqual(process.stdout.read(), b"second\n")
        self.assertEqual(process.wait(TIMEOUT), 0)

    def halves(self, size):
        """Two runs: while one is in the middle of a line of `size` bytes, the
        other writes a line."""
        gate, other = self.fifo("gate"), self.fifo("other")
        half = "yes x | tr -d '\\n' | head -c %d;" % (size // 2)
        process = self.start(
            "-P2", "--line-buffer", "--json=events", *self.script(
                "if [ $1 = a ]; then " + half + " : >half; read x <gate; " +
                half + "echo; else read x <other; echo b; fi"))
        self.feed(process, b"a\nb\n")
        until(lambda: os.path.exists(self.path("half")), "half a line")
        os.write(other, b"go\n")
        self.assertEqual(read_line(process.stdout), b"b\n")
        os.write(gate, b"go\n")
        self.assertTrue(process.stdout.read() == b"x" * size + b"\n")
        self.assertEqual(process.wait(TIMEOUT), 0)

    def test_line_in_two_parts_stays_whole(self):
        self.halves(20)

    def test_very_long_line_stays_whole(self):
        self.halves(4 * MEBIBYTE)

    def test_last_line_gets_no_newline(self):
        for mode in ("--group", "--line-buffer"):
            ended = self.run_keys(b"a\nb\n", "-P1", mode,
                                  *self.script("printf 'x\\n%s' $1"))
            self.assertEqual(ended.out, b"x\nax\nb", mode)

    def test_slow_reader_slows_down_the_run(self):
        process = self.start("--line-buffer", *self.script(
            "yes | head -c 30000000; : >over"))
        self.feed(process, b"a\n")
        read_some(process.stdout, 1)
        time.sleep(0.3)
        self.assertFalse(os.path.exists(self.path("over")))
        self.assertEqual(1 + len(process.stdout.read()), 30000000)
        self.assertEqual(process.wait(TIMEOUT), 0)


class Tagged(Case):
    def tagged(self, keys, *options, text="echo 1; printf 2; echo 3 >&2"):
        return self.run_keys(keys, "-q", "-P1", *options, *self.script(text))

    def test_tag_is_the_key_and_a_tab(self):
        for mode in ("--group", "--line-buffer"):
            with self.subTest(mode=mode):
                ended = self.tagged(b"a b\n-c\n", "--tag", mode)
                self.assertEqual(ended.out, b"a b\t1\na b\t2\n-c\t1\n-c\t2\n")
                self.assertEqual(ended.err, b"a b\t3\n-c\t3\n")

    def test_tag_may_have_key_number_and_slot(self):
        ended = self.tagged(b"a\nb\n", "--tag=<{#} {%} {} {}> ")
        self.assertEqual(ended.out, b"<1 1 a a> 1\n<1 1 a a> 2\n"
                                    b"<2 1 b b> 1\n<2 1 b b> 2\n")

    def test_tag_uses_the_replacement_text(self):
        ended = self.run_keys(b"a\n", "-q", "-I@", "--tag=@:{}:", "--",
                              "echo", "@")
        self.assertEqual(ended.out, b"a:{}:a\n")

    def test_tag_escapes_the_key(self):
        ended = self.tagged(b"a\nb\tc\x1b[2J\0", "-0", "--tag", text="echo x")
        self.assertEqual(ended.out, b"a\\nb\\tc\\x1b[2J\tx\n")

    def test_long_line_has_one_tag(self):
        ended = self.tagged(b"a\n", "--tag",
                            text="yes x | tr -d '\\n' | head -c 2000000")
        self.assertTrue(ended.out == b"a\t" + b"x" * 2000000 + b"\n")

    def test_empty_output_has_no_tag(self):
        self.assertEqual(self.tagged(b"a\n", "--tag", text=":").out, b"")


class Ungrouped(Case):
    def test_ungrouped_children_inherit_stdout_and_stderr(self):
        ended = self.run_keys(b"a\n", "--ungroup", *self.script(
            "readlink /proc/$$/fd/1 /proc/$PPID/fd/1"
            " /proc/$$/fd/2 /proc/$PPID/fd/2"))
        lines = ended.lines()
        self.assertEqual(len(lines), 4)
        self.assertEqual(lines[0], lines[1])
        self.assertEqual(lines[2], lines[3])


class Results(Case):
    def names(self, keys):
        ended = self.run_keys(b"".join(key + b"\0" for key in keys), "-0",
                              "-P1", "--results=r", *self.script("printf %s $1"))
        self.assertEqual(ended.status, 0, ended.err)
        return sorted(os.listdir(os.fsencode(self.path("r/1"))))

    def test_results_of_a_key_are_files(self):
        ended = self.run_keys(b"a\n", "-q", "--results=deep/er/r",
                              *self.script("echo out; echo err >&2"))
        self.assertEqual((ended.out, ended.err), (b"out\n", b"err\n"))
        self.assertEqual(self.read("deep/er/r/1/a/stdout"), b"out\n")
        self.assertEqual(self.read("deep/er/r/1/a/stderr"), b"err\n")
        self.assertEqual(self.read("deep/er/r/1/a/seq"), b"1")
        self.assertEqual(sorted(os.listdir(self.path("deep/er/r/1/a"))),
                         ["seq", "stderr", "stdout"])

    def test_keys_become_distinct_file_names(self):
        names = {
            b"a": b"a", b"a b": b"a b", b"a/b": b"a\\_b", b".": b"\\.",
            b"..": b"\\..", b"...": b"...", b"../../x": b"..\\_..\\_x",
            b"/etc/passwd": b"\\_etc\\_passwd", b"x\\y": b"x\\\\y",
            b"a\\_b": b"a\\\\_b", b"n\nl": b"n\\x0al", b"\x7f\x01": b"\\x7f\\x01",
            b"\xff\xfe": b"\xff\xfe", "\u00fc".encode(): "\u00fc".encode(),
            b"-rf": b"-rf", b"\\.": b"\\\\.", b"~": b"~",
        }
        self.assertEqual(self.names(names), sorted(names.values()))
        self.assertEqual(sorted(os.listdir(self.dir)), ["r"])

    def test_long_key_is_cut_and_hashed(self):
        keys = [b"k" * 255, b"k" * 256, b"k" * 255 + b"l", b"/" * 128,
                b"x" * 65536, b"x" + "\u20ac".encode() * 200]
        def cut(key, name):
            return name + b"\\+" + hashlib.sha256(key).hexdigest().encode()
        expected = [
            keys[0], cut(keys[1], b"k" * 180), cut(keys[2], b"k" * 180),
            cut(keys[3], b"\\_" * 90), cut(keys[4], b"x" * 180),
            cut(keys[5], b"x" + "\u20ac".encode() * 59)]
        self.assertEqual(self.names(keys), sorted(expected))
        for key, name in zip(keys[1:], expected[1:]):
            directory = os.path.join(os.fsencode(self.path("r/1")), name)
            with open(os.path.join(directory, b"key"), "rb") as file:
                self.assertEqual(file.read(), key)

    def test_cut_name_has_at_most_180_bytes(self):
        name = self.names([b"\\" * 89 + b"\n" + b"x" * 200])[0]
        self.assertEqual(name.split(b"\\+")[0], b"\\\\" * 89)

    def test_results_are_those_of_the_last_run(self):
        ended = self.run_keys(
            b"a\n", "-q", "--results=r", "--backoff=1ms", "--retries=1",
            *self.script('echo attempt $WQ_ATTEMPT; [ $WQ_ATTEMPT = 2 ]'))
        self.assertEqual(ended.out, b"attempt 1\nattempt 2\n")
        self.assertEqual(self.read("r/1/a/stdout"), b"attempt 2\n")
        self.assertEqual(self.read("r/1/a/seq"), b"2")

    def test_straggler_does_not_write_to_new_results(self):
        gate = self.fifo("gate")
        process = self.start(
            "-f", "--results=r", "--json=events", "--output-grace=0",
            *self.script(
                "if [ -e once ]; then echo second; else : >once; echo first;"
                " (read x <gate; echo late; : >said) & fi"))
        self.feed(process, b"a\n", end=False)
        self.await_event(event="finished", run=1)
        self.feed(process, b"a\n", end=False)
        self.await_event(event="finished", run=2)
        os.write(gate, b"go\n")
        lines = [read_line(process.stdout) for _ in range(3)]
        self.assertEqual(lines, [b"first\n", b"second\n", b"late\n"])
        self.assertEqual(self.read("r/1/a/stdout"), b"second\n")
        process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT)

    def test_results_are_written_during_the_run(self):
        gate = self.fifo("gate")
        process = self.start("--results=r", *self.script(
            "echo now; read x <gate; echo then"))
        self.feed(process, b"a\n")
        until(lambda: os.path.exists(self.path("r/1/a/stdout")) and
              self.read("r/1/a/stdout") == b"now\n", "the first line")
        os.write(gate, b"go\n")
        self.assertEqual(process.stdout.read(), b"now\nthen\n")
        self.assertEqual(self.read("r/1/a/stdout"), b"now\nthen\n")

    def test_results_have_no_tags(self):
        self.run_keys(b"a\n", "--results=r", "--tag", "--line-buffer",
                      *self.script("printf x"))
        self.assertEqual(self.read("r/1/a/stdout"), b"x")

    def test_results_do_not_follow_a_link(self):
        os.makedirs(self.path("r/1"))
        os.mkdir(self.path("elsewhere"))
        os.symlink(self.path("elsewhere"), self.path("r/1/a"))
        ended = self.run_keys(b"a\n", "--results=r", "--retries=0",
                              *self.script("echo x"))
        self.assertNotEqual(ended.status, 0)
        self.assertIn(b"--results: cannot write below 'r' for key 'a'",
                      ended.err)
        self.assertEqual(os.listdir(self.path("elsewhere")), [])

    def test_results_replace_a_link(self):
        self.write("precious", b"precious")
        os.makedirs(self.path("r/1/a"))
        os.symlink(self.path("precious"), self.path("r/1/a/stdout"))
        self.run_keys(b"a\n", "--results=r", *self.script("echo x"))
        self.assertEqual(self.read("precious"), b"precious")
        self.assertEqual(self.read("r/1/a/stdout"), b"x\n")

    def test_results_directory_that_cannot_be_made(self):
        self.write("file", b"")
        ended = self.run_keys(b"a\n", "--results=file/r",
                              *self.script("echo x >ran"))
        self.assertEqual(ended.status, 125)
        self.assertIn(b"--results: cannot create or open directory 'file/r/1'",
                      ended.err)
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_results_that_cannot_be_written_are_an_error(self):
        os.makedirs(self.path("r/1"))
        self.write("r/1/a", b"")
        ended = self.run_keys(b"a\n", "--results=r", "--", "echo")
        self.assertEqual(ended.status, 125)
        self.assertIn(b"cannot write below 'r' for key 'a'", ended.err)
        self.assertIn(b"1 key, 0 ok, 0 failed, 1 left", ended.err)

    def test_full_results_disk_is_reported_once(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        ended = self.run_keys(
            b"a\nb\n", "-q", "-P1", "--results=r",
            *self.script("yes $1 | head -c 5000"), preexec_fn=limit)
        self.assertEqual(ended.status, 125)
        self.assertTrue(ended.out.startswith(b"a\n" * 2500))  # all of it
        # A build that counts lines cannot write its counts, either.
        lines = [line for line in ended.err.splitlines()
                 if not line.startswith(b"libgcov")]
        self.assertEqual(len(lines), 1, ended.err)
        self.assertIn(b"--results: cannot write output below 'r'", lines[0])

    def test_dry_run_makes_no_results(self):
        self.run_keys(b"a\n", "--dry-run", "--results=r", "--", "echo")
        self.assertEqual(os.listdir(self.dir), [])


if __name__ == "__main__":
    main()
