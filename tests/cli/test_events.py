# SPDX-License-Identifier: MIT
"""Which events does --json write, and what does --input=jsonl read?"""

import base64
import fcntl
import json
import os

from program import TIMEOUT, Case, main

ODD = [b"a", b"a b", b"\"q\"", b"\\", b"a\nb", b"\t\r\x01\x7f", b"\xff", b"a\xc3",
       b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe2\x82", b"ok\xffok",
       "\u00fc\u20ac\U0001f600".encode(), b"</script>", b"\xef\xbf\xbd",
       b"x" * 65536, b"\xff" * 65536]


def key_of(event):
    if "key_base64" in event:
        return base64.b64decode(event["key_base64"], validate=True)
    return event["key"].encode()


class Written(Case):
    def written(self, keys, *arguments, status=0):
        """The events of a run with these keys."""
        ended = self.run_keys(b"".join(key + b"\0" for key in keys), "-0",
                              "-P1", "-q", *arguments)
        self.assertEqual(ended.status, status, ended.err)
        self.ended = ended
        return [json.loads(line) for line in ended.out.splitlines()]

    def test_events_of_one_run(self):
        events = self.written([b"a"], "--json", "--", "true")
        self.assertEqual([event["event"] for event in events
                          if event["event"] != "phase"],
                         ["added", "started", "finished", "summary"])
        by_name = {event["event"]: event for event in events}
        self.assertEqual(by_name["added"]["how"], "new")
        started, finished = by_name["started"], by_name["finished"]
        for event in (started, finished):
            self.assertEqual(
                (event["key"], event["run"], event["slot"], event["attempt"],
                 event["priority"], event["pid"]),
                ("a", 1, 1, 1, 0, started["pid"]))
        self.assertEqual((finished["outcome"], finished["exit"]), ("ok", 0))
        self.assertGreaterEqual(finished["time"], started["time"])
        self.assertLess(finished["seconds"], 60)
        self.assertNotIn("retry_in", finished)
        summary = by_name["summary"]
        self.assertEqual(
            [summary[name] for name in ("keys", "ok", "failed", "left", "adds",
                                        "runs", "retries", "status")],
            [1, 1, 0, 0, 1, 1, 0, 0])

    def test_events_of_failed_runs(self):
        events = self.written([b"a"], "--json", "--retries=1", "--backoff=1ms",
                           "--", "sh", "-c", "exit 3", status=123)
        first, second = [event for event in events
                         if event["event"] == "finished"]
        self.assertEqual((first["outcome"], first["exit"], first["attempt"]),
                         ("retry", 3, 1))
        self.assertLessEqual(first["retry_in"], 0.001)
        self.assertEqual((second["outcome"], second["attempt"]), ("failed", 2))
        self.assertEqual(events[-1]["retries"], 1)
        self.assertEqual(events[-1]["status"], 123)

    def test_event_of_a_run_that_timed_out(self):
        events = self.written([b"a"], "--json", "--retries=0", "--timeout=50ms",
                           "--", "sleep", "1000", "#", status=123)
        finished = [event for event in events
                    if event["event"] == "finished"][0]
        if "signal" in finished:
            self.assertEqual((finished["signal"], finished["timed_out"]),
                             (15, True))
            self.assertNotIn("exit", finished)

    def test_added_event_reports_the_effect_of_an_add(self):
        events = self.written([b"a", b"a", b"b"], "--json", "--after=1s", "--",
                           "true")
        self.assertEqual([event["how"] for event in events
                          if event["event"] == "added"],
                         ["scheduled", "kept", "scheduled"])

    def test_skipped_key_has_an_event(self):
        self.written([b"a"], "--joblog=log", "--", "true")
        events = self.written([b"a"], "--joblog=log", "--resume", "--json", "--",
                           "true")
        self.assertEqual([(event["event"], event.get("key"))
                          for event in events if event["event"] != "phase"],
                         [("skipped", "a"), ("summary", None)])
        self.assertEqual(events[-1]["skipped"], 1)

    def test_any_key_can_be_decoded(self):
        events = self.written(ODD, "--json", "--", "true")
        for name in ("added", "started", "finished"):
            self.assertEqual([key_of(event) for event in events
                              if event["event"] == name], ODD)
        for event in events:
            if "key_base64" in event:
                self.assertIn("\ufffd", event["key"])

    def test_utf_8_keys_have_no_base64(self):
        events = self.written(ODD, "--json", "--", "true")
        for event in events:
            if event["event"] == "started":
                try:
                    key_of(event).decode()
                    self.assertNotIn("key_base64", event)
                except UnicodeDecodeError:
                    self.assertIn("key_base64", event)

    def test_events_are_whole_lines_beside_output(self):
        ended = self.run_keys(b"a\nb\n", "-q", "-P1", "--json", "--", "sh",
                              "-c", "printf 'no newline'")
        for line in ended.lines():
            if line != "no newline":
                json.loads(line)
        self.assertEqual(ended.lines().count("no newline"), 2)

    def test_events_can_go_to_a_file(self):
        ended = self.run_keys(b"a\n", "-q", "--json=events", "--", "echo")
        self.assertEqual(ended.out, b"a\n")
        self.assertEqual(self.events()[-1]["event"], "summary")

    def test_file_that_cannot_be_opened_is_an_error(self):
        self.assert_cannot_open("--json")

    def test_full_disk_is_an_error(self):
        ended = self.run_keys(b"a\n", "--json=/dev/full", "--", "echo")
        self.assertEqual(ended.status, 125)
        self.assertIn(b"nothing more is written there: No space left", ended.err)
        self.assertEqual(ended.err.count(b"nothing more is written there"), 1)

    def test_last_event_waits_for_a_slow_reader(self):
        reader, writer = os.pipe()
        size = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        os.write(writer, b"x" * size)
        process = self.start("--json", "--", "true", stdout=writer)
        os.close(writer)
        self.feed(process, b"")
        self.assertEqual(os.read(reader, size), b"x" * size)
        # The pipe has space for the first line now, which is not read before
        # wq has printed its summary.
        self.assertIn(b"0 keys", process.stderr.readline())
        with os.fdopen(reader, "rb") as stream:
            lines = stream.read().splitlines()
        self.assertEqual([json.loads(line)["event"] for line in lines],
                         ["phase", "summary"])
        self.assertEqual(process.wait(TIMEOUT), 0)

    def test_events_without_a_reader_end_wq(self):
        process = self.start("--json", "--", "true")
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(b"a\n" * 10)
        self.assertEqual(process.returncode, -13)
        self.assertNotIn(b"rite", err)


class Read(Case):
    """--input=jsonl."""

    def keys(self, lines):
        ended = self.run_keys(lines, "-q", "-P1", "--input=jsonl", "--json",
                              "--", "true")
        self.ended = ended
        return [json.loads(line) for line in ended.out.splitlines()
                if b'"event":"added"' in line]

    def one(self, line):
        added = self.keys(line + b"\n")
        self.assertEqual(self.ended.status, 0, (line, self.ended.err))
        self.assertEqual(len(added), 1)
        return added[0]

    def test_events_can_be_read_as_input(self):
        lines = self.run_keys(
            b"".join(key + b"\0" for key in ODD), "-0", "-q", "-P1", "--json",
            "--", "true").out
        added = self.keys(b"".join(line + b"\n" for line in lines.splitlines()
                                   if b'"event":"added"' in line))
        self.assertEqual([key_of(event) for event in added], ODD)

    def test_json_of_other_programs_can_be_read(self):
        for key in [key.decode() for key in ODD if key.isascii()] + [
                "\u00fc", "\U0001f600", "/", "\b\f"]:
            for ascii_only in (True, False):
                line = json.dumps({"key": key}, ensure_ascii=ascii_only)
                self.assertEqual(key_of(self.one(line.encode())),
                                 key.encode())

    def test_all_forms_of_a_line_are_accepted(self):
        for line, key in [
                (b'"a"', b"a"), (b' { "key" : "a" } ', b"a"),
                (b'{"x":{"key":"b"},"key":"a","y":[1,{},[],"}"]}', b"a"),
                (b'{"a":null,"b":true,"c":false,"d":-1.5e+3,"key":"a"}', b"a"),
                (b'{"key_base64":"/w=="}', b"\xff"),
                (b'{"key_base64":"/w"}', b"\xff"),
                (b'{"key_base64":"YWJj"}', b"abc"),
                (b'{"key_base64":"/w==","key":"x"}', b"\xff"),
                (b'{"key":"x","key_base64":"/w=="}', b"\xff"),
                (b'{"key":"\\u00e9\\ud83d\\ude00\\/"}',
                 "\u00e9\U0001f600/".encode()),
                (b'{"key":"raw\xff"}', b"raw\xff")]:
            with self.subTest(line=line):
                self.assertEqual(key_of(self.one(line)), key)

    def test_line_may_have_after_and_priority(self):
        event = self.one(b'{"key":"a","after":"5ms","priority":-3}')
        self.assertEqual((event["after"], event["priority"]), (0.005, -3))
        self.assertEqual(self.one(b'{"key":"a","after":0.25}')["after"], 0.25)
        self.assertEqual(self.one(b'{"key":"a","priority":1e2}')["priority"],
                         100)

    def test_line_without_a_key_is_reported_and_fails(self):
        for line in [
                b"{", b"{}", b"[]", b"1", b"null", b'{"key":1}', b'{"key":"a"',
                b'{"key":"a"}x', b'{"key":"a",}', b'{"key" "a"}', b'{key:"a"}',
                b'{"key":"\\x"}', b'{"key":"\\ud83d"}', b'{"key":"\\ud83dx"}',
                b'{"key":"\\ud83d\\u0041"}',
                b'{"key":"\\udc00"}', b'{"key":"\\u12"}', b'{"key":"a\\', b'"',
                b'{"key_base64":"/"}', b'{"key_base64":"/x=="}',
                b'{"key_base64":"*A=="}', b'{"key_base64":"===="}',
                b'{"key":"a","after":"5 parsecs"}', b'{"key":"a","after":-1}',
                b'{"key":"a","after":"1s\\u0000"}', b'{"key":"a","after":1e99}',
                b'{"key":"a","priority":1.5}', b'{"key":"a","priority":"1"}',
                b'{"key":"a","priority":99999999999}', b'{"key":"a","x":01}',
                b'{"key":"a","x":1.}', b'{"key":"a","x":nul}', b'{"key":"a","x":}',
                b'{"key":"a","x":0x10}', b'{"key":"a","x":[1 2]}',
                b'{"key":"a","x":' + b"[" * 100 + b"]" * 100 + b"}"]:
            with self.subTest(line=line):
                added = self.keys(line + b'\n{"key":"next"}\n')
                self.assertEqual([event["key"] for event in added], ["next"])
                self.assertEqual(self.ended.status, 123)
                self.assertEqual(self.ended.err.count(b"wq: "), 1)


if __name__ == "__main__":
    main()
