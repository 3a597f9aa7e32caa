# SPDX-License-Identifier: MIT
"""Where do keys come from, and do they arrive unchanged?"""

import os
import signal

from handled import Handled
from program import main, read_line, until

# Appends its arguments to a file, each with a NUL.
SHOW = ("--", "sh", "-c", 'printf "%s\\0" "$@" >>seen', "sh")


class Reading(Handled):
    def seen(self):
        if not os.path.exists(self.path("seen")):
            return []
        return self.read("seen").split(b"\0")[:-1]

    def assert_seen(self, keys, given, *options):
        ended = self.run_keys(given, "-q", *options, *SHOW)
        self.assertEqual((ended.status, ended.err), (0, b""))
        self.assertEqual(self.seen(), keys)


class Keys(Reading):
    def test_keys_are_lines(self):
        self.assert_seen([b"a", b"b c"], b"a\nb c\n")

    def test_last_line_needs_no_newline(self):
        self.assert_seen([b"a", b"b"], b"a\nb")

    def test_empty_lines_are_ignored(self):
        self.assert_seen([b"a", b"b"], b"\n\na\n\nb\n\n")

    def test_input_may_be_empty(self):
        self.assert_seen([], b"")

    def test_keys_may_end_with_nul(self):
        self.assert_seen([b"a\nb", b"c"], b"a\nb\0c\0", "-0")
        self.assert_seen([b"a\nb", b"c", b"d"], b"d", "--null")

    def test_delimiter_can_be_chosen(self):
        for text, byte in ((",", b","), ("\\t", b"\t"), ("\\x2c", b","),
                           ("\\054", b","), ("\\0", b"\0"), ("\\\\", b"\\")):
            with self.subTest(text):
                self.write("seen", b"")
                self.assert_seen([b"a", b"b\n"], b"a" + byte + b"b\n",
                                 "-d", text)

    def test_all_files_and_stdin_are_read(self):
        self.write("one", b"1\n2\n")
        self.write("two", b"3")
        ended = self.run_keys(b"0\n", "-q", "-a", "-", "-aone",
                              "--arg-file=two", *SHOW)
        self.assertEqual(ended.status, 0)
        self.assertEqual(sorted(self.seen()), [b"0", b"1", b"2", b"3"])

    def test_stdin_may_be_a_file(self):
        self.write("keys", b"a\nb\n")
        with open(self.path("keys"), "rb") as keys:
            self.start("-q", *SHOW, stdin=keys).wait()
        self.assertEqual(self.seen(), [b"a", b"b"])

    def test_large_input_is_read_whole(self):
        keys = [b"%d" % i * (i % 50 + 1) for i in range(20000)]
        ended = self.run_keys(b"\n".join(keys), "--dry-run", "--", "echo", "{}")
        self.assertEqual(ended.out.split(b"\n")[:-1],
                         [b"echo " + key for key in keys])

    def test_file_that_cannot_be_read_is_an_error(self):
        for name, why in (("nothing", b"No such file"),
                          (".", b"Is a directory")):
            ended = self.run_keys(b"", "-a", name, "--", "true")
            self.assertEqual(ended.status, 125)
            self.assertIn(b"cannot read " + name.encode() + b": " + why,
                          ended.err)


class StrangeKeys(Reading):
    STRANGE = [
        b" ", b"two words", b"  spaces  ", b"tab\there", b"-n", b"--",
        b"--help", b"'", b'"', b"it's \"quoted\"", b"$(touch executed)",
        b"`touch executed`",
        b"; touch executed", b"& touch executed &", b"$HOME", b"*", b"~", b"\\",
        b"\\n", b"%s%n", b"{}", b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80",
        "ключ 鍵".encode(), b"\x01\x1b[31m", b"a=b", b"#", b"!",
        b"k" * 65536,
    ]

    def test_strange_keys_arrive_unchanged(self):
        self.assert_seen(self.STRANGE, b"\n".join(self.STRANGE))
        self.assertFalse(os.path.exists(self.path("executed")))

    def test_keys_with_newlines_arrive_unchanged(self):
        keys = self.STRANGE + [b"\n", b"a\nb\n", b"\n\n$(touch executed)"]
        self.assert_seen(keys, b"\0".join(keys), "-0", "-P1")
        self.assertFalse(os.path.exists(self.path("executed")))

    def test_strange_keys_in_arguments_and_environment(self):
        keys = self.STRANGE[:-1]  # twice 64 KiB are too much for exec
        ended = self.run_keys(
            b"\0".join(keys), "-q", "-0", "--", "sh", "-c",
            'printf "%s\\0" "$1" "$2" "$WQ_KEY" >>seen', "sh", "x={}=y", "{}{}")
        self.assertEqual(ended.status, 0)
        self.assertEqual(self.seen(), [
            text for key in keys
            for text in (b"x=" + key + b"=y", key + key, key)])

    def test_strange_keys_in_events_and_joblog(self):
        ended = self.run_keys(
            b"\0".join(self.STRANGE), "-q", "-0", "--json=events",
            "--joblog=log", "--", "true")
        self.assertEqual(ended.status, 0)
        keys = [event for event in self.events()
                if event["event"] == "finished"]
        self.assertEqual(len(keys), len(self.STRANGE))

    def test_key_that_is_too_long_fails(self):
        ended = self.run_keys(b"a\n" + b"k" * 65537 + b"\nb\n", *SHOW)
        self.assertEqual(ended.status, 123)
        self.assertIn(b"stdin:2: the key is longer than 65536 bytes", ended.err)
        self.assertEqual(self.seen(), [b"a", b"b"])

    def test_key_of_a_megabyte_fails(self):
        ended = self.run_keys(b"k" * 1000000 + b"\nb\n", *SHOW)
        self.assertEqual(ended.status, 123)
        self.assertEqual(self.seen(), [b"b"])

    def test_key_with_a_nul_fails(self):
        ended = self.run_keys(b"a\0b\nc\n", *SHOW)
        self.assertEqual(ended.status, 123)
        self.assertIn(b"stdin:1: the key contains a NUL", ended.err)
        self.assertEqual(self.seen(), [b"c"])


class JsonLines(Reading):
    def test_json_lines_have_keys(self):
        self.assert_seen(
            [b"a", b"b c", "ä".encode(), b'"\n\\', b"plain", b"\xff"],
            b'{"key":"a"}\n {"x":[1,{"y":null}],"key":"b c"} \n'
            b'{"key":"\\u00e4"}\n{"key":"\\"\\n\\\\"}\n"plain"\n\n'
            b'{"key_base64":"/w=="}\n', "--input=jsonl")

    def test_json_lines_may_have_priority_and_after(self):
        self.write("keys", b'{"key":"later","after":"300ms","priority":-9}\n'
                           b'{"key":"low"}\n{"key":"high","priority":5}\n'
                           b'{"key":"lower","priority":-1}\n'
                           b'{"key":"late","after":0.2,"priority":-5}\n')
        ended = self.run_keys(b"", "-q", "-akeys", "--input=jsonl", *SHOW)
        self.assertEqual(ended.status, 0)
        self.assertEqual(self.seen(),
                         [b"high", b"low", b"lower", b"late", b"later"])

    def test_invalid_json_lines_fail(self):
        ended = self.run_keys(b'{"key":1}\n{"key":"a"\n{"key":""}\nnothing\n'
                              b'{"key":"a\\u0000b"}\n{"key":"ok"}\n',
                              "--input=jsonl", *SHOW)
        self.assertEqual(ended.status, 123)
        for line in range(1, 6):
            self.assertIn(b"wq: stdin:%d: " % line, ended.err)
        self.assertEqual(self.seen(), [b"ok"])
        self.assertIn(b"6 keys, 1 ok, 5 failed, 0 left", ended.err)


class Lists(Reading):
    def test_list_command_prints_keys(self):
        self.assert_seen([b"a", b"b", b"$x"], b"not read\n",
                         "--list=printf 'a\\nb\\n'; echo '$x'")

    def test_list_command_may_print_nul(self):
        self.assert_seen([b"a\n", b"b"], b"", "-0",
                         "--list=printf 'a\\n\\0b\\0'")

    def test_failing_list_command_is_an_error(self):
        ended = self.run_keys(b"", "--list=echo a; exit 3", *SHOW)
        self.assertEqual(ended.status, 125)
        self.assertIn(b"'echo a; exit 3' exited with 3", ended.err)
        self.assertEqual(self.seen(), [b"a"])

    def test_resync_runs_the_list_command_again(self):
        process = self.start("--json=events", "--resync=20ms",
                             "--list=echo x >>listed; echo k; "
                             "[ $(wc -l <listed) -ne 2 ]", *SHOW)
        until(lambda: len(self.seen()) >= 4, "four runs")
        process.send_signal(signal.SIGTERM)
        ended = self.ended(process)
        self.assertEqual(ended.status, -signal.SIGTERM)
        self.assertEqual(set(self.seen()), {b"k"})
        self.assertEqual(ended.err.count(b"exited with 1"), 1)  # and went on

    def test_list_command_has_no_variables_of_runs(self):
        process = self.start("--resync=20ms", "--list=echo ${WQ_KEY-none} "
                             "${WQ_RESULT_FD-none} >>listed; echo k", *SHOW)
        until(lambda: len(self.seen()) >= 3, "three runs")
        process.send_signal(signal.SIGTERM)
        self.ended(process)
        self.assertEqual(set(self.read("listed").splitlines()),
                         {b"none none"})

    def test_slow_list_command_is_not_started_twice(self):
        gate = self.fifo("gate")
        process = self.start("--resync=1ms", "--list=echo x >>listed; "
                             "read x <gate; echo k", *SHOW)
        until(lambda: os.path.exists(self.path("listed")), "a list")
        os.write(gate, b"\n")
        until(lambda: self.seen() and len(self.read("listed")) == 4, "another")
        self.assertEqual(len(self.seen()), 1)
        process.send_signal(signal.SIGTERM)
        self.ended(process)


class Following(Reading):
    def assert_follows(self, process, before, added, after):
        """It has read the keys `before`, and after bytes were added to the
        file, the keys `after`."""
        until(lambda: self.seen() == before, "the keys %r" % before)
        self.append("keys", added)
        until(lambda: self.seen() == after, "the keys %r" % after)
        self.stop(process)

    def stop(self, process):
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.ended(process).status, -signal.SIGINT)

    def test_follow_reads_a_growing_file(self):
        self.write("keys", b"a\nb")
        process = self.start("-f", "-a", "keys", *SHOW)
        self.assert_follows(process, [b"a"], b"c\n", [b"a", b"bc"])

    def test_follow_reads_growing_stdin(self):
        self.write("keys", b"a\n")
        with open(self.path("keys"), "rb") as keys:
            process = self.start("-f", *SHOW, stdin=keys)
        self.assert_follows(process, [b"a"], b"b\n", [b"a", b"b"])

    def test_follow_notices_that_a_file_was_truncated(self):
        self.write("keys", b"first\nsecond\nto")
        process = self.start("-f", "-a", "keys", *SHOW)
        until(lambda: self.seen() == [b"first", b"second"], "two keys")
        os.truncate(self.path("keys"), 0)
        self.assertEqual(read_line(process.stderr), b"wq: keys was truncated; "
                         b"reading it from its start\n")
        self.append("keys", b"a\nb\n")
        until(lambda: self.seen() == [b"first", b"second", b"a", b"b"],
              "the new keys, none of them torn")
        self.stop(process)

    def test_follow_notices_that_stdin_was_truncated(self):
        self.write("keys", b"first\nto")
        with open(self.path("keys"), "rb") as keys:
            process = self.start("-f", *SHOW, stdin=keys)
        until(lambda: self.seen() == [b"first"], "a key")
        os.truncate(self.path("keys"), 0)
        self.assertIn(b"stdin was truncated", read_line(process.stderr))
        self.append("keys", b"a\n")
        until(lambda: self.seen() == [b"first", b"a"], "the new key")
        self.stop(process)

    def test_follow_notices_that_a_file_was_replaced(self):
        self.write("keys", b"1\n")
        process = self.start("-f", "-a", "keys", *SHOW)
        until(lambda: self.seen() == [b"1"], "the first key")
        os.rename(self.path("keys"), self.path("keys.1"))
        self.append("keys.1", b"2\nlast")  # its writer does not know yet
        self.assertIn(b"keys cannot be read any more",
                      read_line(process.stderr))
        self.write("new", b"3\n")
        os.rename(self.path("new"), self.path("keys"))
        self.assertEqual(read_line(process.stderr),
                         b"wq: keys was replaced; reading the new file\n")
        until(lambda: self.seen() == [b"1", b"2", b"last", b"3"], "its keys")
        self.append("keys", b"4\n")
        until(lambda: self.seen()[4:] == [b"4"], "another key")
        os.unlink(self.path("keys"))
        self.assertIn(b"keys cannot be read any more",
                      read_line(process.stderr))
        self.write("keys", b"5\n")
        until(lambda: self.seen()[5:] == [b"5"], "the last key")
        self.stop(process)

    def test_follow_reads_one_fifo_writer_after_another(self):
        os.mkfifo(self.path("keys"))
        process = self.start("-f", "-a", "keys", *SHOW)
        for n, key in enumerate((b"a\n", b"b\n"), 1):
            with open(self.path("keys"), "wb") as file:
                file.write(key)
            until(lambda n=n: len(self.seen()) == n, "another key")
        self.stop(process)

    def test_follow_goes_on_after_the_end_of_stdin(self):
        process = self.start("-f", "--json=events", "--retries=1",
                             "--backoff=1ms", *self.script(
                                 "echo $1 >>seen; exit 1"))
        self.feed(process, b"a\nb")
        self.await_event(event="finished", key="b", outcome="failed")
        self.assertIsNone(process.poll())
        self.stop(process)


if __name__ == "__main__":
    main()
