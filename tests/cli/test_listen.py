# SPDX-License-Identifier: MIT
"""What does --listen serve, to whom, and at which address?"""

import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import unittest

from program import (PROGRAM, TIMEOUT, main, need_command, need_localhost,
                     state, until)
from watched import WAIT, Watched, get, metrics, parse_metrics, view

# Seconds: less than the 10 that a request may take to arrive, far more than an
# answer takes on a busy machine.
SOON = 6


def read_text(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


class Events:
    """A reader of /events."""

    def __init__(self, url, query=""):
        host = re.match(r"http://(.*)", url)[1]
        self.connection = http.client.HTTPConnection(host, timeout=TIMEOUT)
        self.connection.request("GET", "/events" + query)
        self.answer = self.connection.getresponse()

    def next(self):
        """The next event; None: the stream has ended."""
        while True:
            line = self.answer.readline()
            if not line:
                return None
            if line.startswith(b"data: "):
                return json.loads(line[6:])

    def until(self, condition):
        while True:
            event = self.next()
            if event is None or condition(event):
                return event

    def close(self):
        self.answer.close()
        self.connection.close()


class Listening(unittest.TestCase):
    def start(self, *options, listen="127.0.0.1:0", **rest):
        program = Watched("--listen=" + listen, *options, **rest)
        self.addCleanup(program.close)
        return program

    def events(self, url, query=""):
        events = Events(url, query)
        self.addCleanup(events.close)
        return events


class Answers(Listening):
    def test_paths_are_served(self):
        url = self.start(keys=["a"]).url()
        for path, kind in (("/", "text/html"), ("/metrics", "text/plain"),
                           ("/healthz", "text/plain"),
                           ("/readyz", "text/plain"),
                           ("/view", "application/json")):
            with self.subTest(path=path):
                status, headers, body = get(url + path)
                self.assertEqual(status, 200)
                self.assertTrue(headers["Content-Type"].startswith(kind))
                self.assertEqual(headers["Cache-Control"], "no-store")
                self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
                self.assertTrue(body)
                status, _, body = get(url + path, "HEAD")
                self.assertEqual((status, body), (200, b""))
        self.assertEqual(get(url + "/healthz")[2], b"ok\n")

    def test_unknown_paths_and_methods_are_refused(self):
        url = self.start(keys=["a"]).url()
        self.assertEqual(get(url + "/secret")[0], 404)
        self.assertEqual(get(url + "/metrics/../..//")[0], 404)
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            self.assertEqual(get(url + "/", method)[0], 405)
        self.assertEqual(get(url + "/view?show=everything")[0], 400)
        self.assertEqual(get(url + "/events?show=x")[0], 400)
        self.assertEqual(get(url + "/view?q=" + "x" * 1025)[0], 400)

    def test_metrics_have_the_registry_and_the_runs(self):
        program = self.start("-P2", "--backoff=9999h,9999h",
                             keys=["a", "b", "c", "d", "d"])
        url = program.url()
        program.gate.open(0, 1)
        until(lambda: metrics(url)["wq_run_runs_total"] == 4 and
              metrics(url)["wq_run_running"] == 2, "four runs begun")
        values = metrics(url)
        expected = {
            "wq_run_done_total": 1, "wq_run_failed_total": 0,
            "wq_run_retrying": 1, "wq_run_slots": 2, "wq_run_running": 2,
            "wq_run_retries_total": 1, "workqueue_depth": 0,
            "workqueue_adds_total": 4, "workqueue_merged_total": 1,
            "workqueue_waiting_keys": 1, "workqueue_retries_total": 1,
            "workqueue_work_duration_seconds_count": 2,
        }
        self.assertEqual({name: values.get(name) for name in expected}, expected)

    def test_retry_that_is_ready_does_not_count_as_waiting(self):
        program = self.start("-P1", "--backoff=1ms", keys=["a", "b"])
        url = program.url()
        program.gate.open(1)  # a fails, b has the slot, and a is due again
        until(lambda: metrics(url)["wq_run_runs_total"] == 2 and
              metrics(url)["workqueue_depth"] == 1, "a in line, b running")
        values = metrics(url)
        self.assertEqual((values["wq_run_retrying"],
                          values["workqueue_waiting_keys"]), (0, 0))

    def test_openmetrics_if_the_client_accepts_it(self):
        url = self.start("--name=with \"quotes\"", keys=["a"]).url()
        _, headers, body = get(url + "/metrics",
                               Accept="application/openmetrics-text")
        self.assertIn("openmetrics-text", headers["Content-Type"])
        self.assertTrue(body.endswith(b"# EOF\n"))
        self.assertEqual(body.count(b"# EOF\n"), 1)
        self.assertIn(b"# TYPE wq_run_done counter\n", body)
        self.assertIn(b'wq_run_done_total{name="with \\"quotes\\""} 0\n', body)

    def test_promtool_accepts_the_metrics(self):
        need_command("promtool")
        url = self.start(keys=["a"]).url()
        ended = subprocess.run(["promtool", "check", "metrics"],
                              input=get(url + "/metrics")[2],
                              capture_output=True, check=False)
        self.assertEqual((ended.returncode, ended.stderr), (0, b""))

    def test_page_runs_only_its_own_script(self):
        url = self.start(keys=["a"]).url()
        seen = set()
        for _ in range(3):
            _, headers, body = get(url + "/")
            policy = headers["Content-Security-Policy"]
            self.assertIn("default-src 'none'", policy)
            self.assertIn("frame-ancestors 'none'", policy)
            self.assertNotIn("unsafe", policy)
            nonce = re.search(r"script-src 'nonce-([0-9a-f]{32})'", policy)[1]
            self.assertEqual(body.decode().count('nonce="%s"' % nonce), 2)
            self.assertNotIn(b"NNNNNNNN", body)
            seen.add(nonce)
        self.assertEqual(len(seen), 3)
        self.assertEqual(set(re.findall(rb"https?://[^\"'<> ]*", body)),
                         {b"http://www.w3.org/2000/svg"})

    def test_request_for_another_host_is_refused(self):
        url = self.start(keys=["a"]).url()
        port = url.rsplit(":", 1)[1]
        for host in ("127.0.0.1:" + port, "localhost:" + port, "localhost",
                     "LOCALHOST:1", "[::1]:" + port, "10.1.2.3"):
            self.assertEqual(get(url + "/metrics", Host=host)[0], 200, host)
        for host in ("evil.example", "evil.example:" + port,
                     "127.0.0.1.evil.example", "localhost.evil.example",
                     "[::1", ":" + port, "x" * 300):
            for path in ("/", "/metrics", "/view", "/events"):
                status, _, body = get(url + path, Host=host)
                self.assertEqual(status, 421, host)
                self.assertNotIn(b"workqueue", body)

    def test_children_do_not_inherit_sockets(self):
        program = self.start("-P1", "--follow", end=False, command=[
            "sh", "-c", 'readlink /proc/$$/fd/* >"$GATE.fds"; ' + WAIT])
        url = program.url()
        events = self.events(url)
        events.next()
        program.add("a")
        events.until(lambda e: e["keys"]["rows"])
        fds = until(lambda: read_text(program.gate.path + ".fds"),
                    "its descriptors")
        self.assertNotIn("socket:", fds)
        self.assertNotIn("eventpoll", fds)


class View(Listening):
    def test_view_has_the_state_of_each_key(self):
        program = self.start("-P2", "--backoff=9999h,9999h", "--input=jsonl",
                             keys=['{"key":"a"}', '{"key":"b"}',
                                   '{"key":"c"}',
                                   '{"key":"high","priority":7}',
                                   '{"key":"later","after":"2h"}',
                                   '{"key":"low","priority":-1}'])
        url = program.url()
        program.gate.open(1)
        until(lambda: metrics(url)["wq_run_retrying"] == 1, "a failure")
        rows = until(lambda: (lambda r: r if len(r) == 6 and
                              sum(k["state"] == "running" for k in r) == 2
                              else None)(view(url)["keys"]["rows"]), "six keys")
        order = [row["state"] for row in rows]
        self.assertEqual(order, ["running", "running", "retrying", "waiting",
                                 "ready", "ready"])
        self.assertEqual([row.get("slot") for row in rows[:2]], [1, 2])
        retrying, waiting = rows[2], rows[3]
        self.assertEqual(retrying["attempt"], 2)
        self.assertLess(retrying["due"], 9999 * 3600)
        self.assertEqual(waiting["key"], "later")
        self.assertAlmostEqual(waiting["due"], 7200, delta=TIMEOUT)
        self.assertEqual(rows[-1]["key"], "low")
        self.assertEqual(rows[-1]["priority"], -1)
        for name, n in (("running", 2), ("retrying", 1), ("waiting", 1),
                        ("ready", 2)):
            found = view(url, "?show=" + name)["keys"]
            self.assertEqual([row["state"] for row in found["rows"]],
                             [name] * n)
            self.assertEqual((found["show"], found["matched"]), (name, n))
        for everything in ("", "?show=", "?show=all"):
            self.assertEqual(view(url, everything)["keys"]["matched"], 6)

    def test_search_finds_keys_in_any_state(self):
        program = self.start("-P1", keys=["Alpha/One", "beta/one", "gamma"])
        url = program.url()
        until(lambda: view(url)["keys"]["matched"] == 3, "all keys")
        found = view(url, "?q=ONE")["keys"]
        self.assertEqual([row["key"] for row in found["rows"]],
                         ["Alpha/One", "beta/one"])
        self.assertEqual(found["matched"], 2)
        self.assertEqual(view(url, "?q=a%2fo")["keys"]["matched"], 2)
        self.assertEqual(view(url, "?q=delta")["keys"]["rows"], [])
        self.assertEqual(view(url, "?q=one&show=ready")["keys"]["matched"], 1)

    def test_view_marks_a_key_that_is_dirty(self):
        program = self.start("-P1", keys=["a"], end=False)
        url = program.url()
        until(lambda: metrics(url)["wq_run_running"] == 1, "a run")
        program.add("a")
        row = until(lambda: [r for r in view(url)["keys"]["rows"]
                             if r.get("again")], "once more")
        self.assertEqual([r["key"] for r in row], ["a"])
        self.assertEqual(metrics(url)["workqueue_depth"], 1)

    def test_view_has_keys_of_any_bytes(self):
        program = self.start("-0", "-P1", end=False)
        keys = [b'<script>alert("x")</script>', b"\xff\xfe", b"a\nb\x1b[31m",
                "\u202e\u4e2d".encode(), b"\\\"'&", b"y" * 65536,
                "\u4e2d".encode() * 100]
        for key in keys:
            program.add(key, b"\0")
        url = program.url()
        rows = until(lambda: (lambda r: r if len(r) == len(keys) else None)(
            view(url)["keys"]["rows"]), "all keys")
        shown = {row["key"] for row in rows}
        for key in keys[:5]:
            self.assertIn(key.decode(errors="replace"), shown)
        bad = next(row for row in rows if "key_base64" in row)
        self.assertEqual(bad["key_base64"], "//4=")
        cut = {row["bytes"]: row for row in rows if row.get("cut")}
        self.assertEqual(set(cut), {65536, 300})
        self.assertEqual((cut[65536]["key"], cut[65536]["tail"]),
                         ("y" * 120, "y" * 80))
        self.assertEqual((cut[300]["key"], cut[300]["tail"]),
                         ("\u4e2d" * 40, "\u4e2d" * 26))
        self.assertEqual(view(url, "?q=%ff%fe")["keys"]["matched"], 1)

    def test_view_has_the_first_of_many_keys(self):
        program = self.start("-P1", "--input=jsonl", end=False)
        program.add("\n".join('"key-%05d"' % i for i in range(20000)))
        program.add('{"key":"urgent","priority":5}')
        program.add('{"key":"very","priority":6}')
        url = program.url()
        found = until(lambda: (lambda k: k if k["matched"] == 20002 else None)(
            view(url)["keys"]), "all keys")
        self.assertEqual(len(found["rows"]), 500)
        self.assertEqual(found["rows"][0]["state"], "running")
        self.assertEqual([row["key"] for row in found["rows"][1:3]],
                         ["very", "urgent"])
        self.assertEqual([r["key"] for r in view(url, "?q=19999")["keys"]["rows"]],
                         ["key-19999"])


    def test_numbers_have_the_names_of_the_terminal(self):
        program = self.start("-P1", "--backoff=9999h,9999h", "--input=jsonl",
                             "--no-retry-codes=3", end=False,
                             keys=['"done"', '"failed"', '"retrying"', '"running"',
                                   '"ready"', '{"key":"later","after":"1h"}'])
        url = program.url()
        program.gate.open(0, 3, 1)
        program.add('"running"')  # it runs again: that is not another key
        counts = until(lambda: (lambda c: c if c["ready"] == 1 and
                                c["retrying"] else None)(view(url)["counts"]),
                       "all states")
        self.assertEqual(counts, {"done": 1, "failed": 1, "retrying": 1,
                                  "waiting": 1, "ready": 1, "running": 1,
                                  "left": 4})

    def test_percentiles_are_finer_than_powers_of_ten(self):
        program = self.start("-P1", keys=["a"])
        url = program.url()
        until(lambda: metrics(url)["wq_run_running"] == 1, "a run")
        until(lambda: metrics(url)["workqueue_unfinished_work_seconds"] > 0.2,
              "a long run")
        events = self.events(url)
        program.gate.open(0)
        last = event = events.next()
        while event:
            last, event = event, events.next()
        worked = last["worked"]
        self.assertEqual(worked["count"], 1)
        for name in ("p50", "p90", "p99", "max", "sum"):
            self.assertAlmostEqual(worked[name], worked["max"], places=5)
        (bucket,) = worked["buckets"]
        self.assertLessEqual(worked["from"], worked["max"])
        self.assertLess(worked["max"], bucket[0])
        self.assertLessEqual(bucket[0] / worked["from"], 2.6)
        self.assertEqual(bucket[1], 1)

    def test_keys_of_a_long_walk_are_in_order(self):
        program = self.start("-P1", end=False)
        program.add("\n".join(map(str, range(200000))))
        url = program.url()
        until(lambda: metrics(url)["workqueue_depth"] == 199999, "all keys")
        # A pause of this program during the walk may move keys: ask again.
        until(lambda: [int(row["key"]) for row in
                       view(url)["keys"]["rows"][:50]] == list(range(50)),
              "the first keys in order")


class Failed(Listening):
    """Keys that failed, and why."""

    def failing(self, *options, keys, script, n, **rest):
        """The state after `n` keys failed for good."""
        program = self.start(*options, "--follow", end=False, keys=keys,
                             command=["sh", "-c", script, "sh", "{}"], **rest)
        url = program.url()
        until(lambda: metrics(url)["wq_run_failed_total"] == n, "failures")
        return program, url

    def test_view_has_the_reason_of_each_failed_key(self):
        _, url = self.failing(
            "-P1", "--timeout=500ms", "--retries=1", "--backoff=1ms", n=3,
            keys=["code", "kill", "slow", "fine"], script=
            'case "$1" in code) echo "$1: oops" >&2; exit 7;; '
            'kill) kill -SEGV $$;; slow) sleep 60;; esac')
        now = view(url)
        self.assertEqual(now["failed_from"], 1)
        ats = [row.pop("at") for row in now["failed"]]
        self.assertEqual(ats, sorted(ats))
        self.assertTrue(all(0 < at <= now["elapsed"] for at in ats))
        self.assertEqual(now["failed"], [
            {"number": 1, "key": "code", "exit": 7, "attempt": 2,
             "line": "code: oops"},
            {"number": 2, "key": "kill", "signal": "SEGV", "attempt": 2},
            {"number": 3, "key": "slow", "timed_out": True, "attempt": 2}])

    def test_bytes_of_keys_and_lines_are_escaped(self):
        program = self.start("-0", "--retries=0", "--follow", end=False,
                             command=["sh", "-c", 'printf %s "$1" >&2; exit 1',
                                      "sh", "{}"])
        url = program.url()
        texts = [b'<script>alert("x")</script>', b"\\\"'&", b"\x1b[31m\x01",
                 b"bad\xff", "\u202e\u4e2d".encode()]
        for text in texts:
            program.add(text, b"\0")
        until(lambda: metrics(url)["wq_run_failed_total"] == 5, "failures")
        shown = [text.decode(errors="replace") for text in texts]
        rows = view(url)["failed"]
        self.assertEqual([row["key"] for row in rows], shown)
        self.assertEqual([row["line"] for row in rows], shown)
        self.assertEqual(rows[3]["key_base64"], "YmFk/w==")

    def test_last_hundred_failures_are_kept(self):
        keys = ["%03d" % i for i in range(150)]
        _, url = self.failing("-P2", "--retries=0", keys=keys, n=150,
                              script="exit 1")
        rows = view(url)["failed"]
        self.assertEqual([row["number"] for row in rows], list(range(51, 151)))
        self.assertEqual(len({row["key"] for row in rows}), 100)

    def test_retrying_key_has_its_last_failure(self):
        program = self.start("-P1", "--backoff=9999h,9999h", end=False,
                             keys=["a", "b"], command=[
                                 "sh", "-c", 'echo "about $1" >&2; ' + WAIT,
                                 "sh", "{}"])
        url = program.url()
        program.gate.open(4)
        until(lambda: metrics(url)["wq_run_retrying"] == 1, "a failure")
        (row,) = view(url, "?show=retrying")["keys"]["rows"]
        failure = row.pop("failure")
        self.assertGreater(failure.pop("at"), 0)
        self.assertEqual(failure, {"exit": 4, "attempt": 1, "line": "about a"})
        self.assertEqual(view(url)["failed"], [])
        (row,) = view(url, "?show=running")["keys"]["rows"]
        self.assertNotIn("failure", row)

    def test_key_that_succeeds_has_no_failure_any_more(self):
        program = self.start("-P1", "--backoff=1ms", "--follow", end=False,
                             keys=["a"])
        url = program.url()
        program.gate.open(4)
        row = until(lambda: [r for r in view(url)["keys"]["rows"]
                             if "failure" in r and r["state"] == "running"],
                    "the retry")[0]
        self.assertEqual((row["attempt"], row["failure"]["exit"]), (2, 4))
        program.gate.open(0)
        until(lambda: metrics(url)["wq_run_done_total"] == 1, "a success")
        program.add("a")
        program.gate.open(5)
        row = until(lambda: [r for r in view(url)["keys"]["rows"]
                             if "failure" in r], "the next failure")[0]
        self.assertEqual(row["failure"]["exit"], 5)

    def test_long_keys_that_differ_in_the_middle_are_told_apart(self):
        program = self.start("-P1", "--backoff=9999h,9999h", "--follow", end=False)
        url = program.url()
        for letter, code in (("x", 1), ("y", 2)):
            program.add("a" * 500 + letter + "b" * 500)
            program.gate.open(code)
            until(lambda c=code: metrics(url)["wq_run_retrying"] == c, "failures")
        self.assertEqual(sorted(
            row["failure"]["exit"] for row in
            view(url, "?show=retrying")["keys"]["rows"]), [1, 2])

    def test_each_failure_is_sent_once(self):
        program = self.start("-P1", "--retries=0", "--follow", end=False)
        url = program.url()
        events = self.events(url)
        events.next()
        sent = []
        for n in range(3):
            program.add("key-%d" % n)
            program.gate.open(1)
            while len(sent) <= n:
                event = events.next()
                self.assertEqual(event["failed_from"], len(sent) + 1)
                sent += event["failed"]
        self.assertEqual([row["key"] for row in sent],
                         ["key-0", "key-1", "key-2"])
        late = self.events(url).next()
        self.assertEqual((late["failed_from"], len(late["failed"])), (1, 3))


class Streams(Listening):
    def test_change_sends_an_event(self):
        program = self.start("-P1", "--follow", end=False)
        events = self.events(program.url())
        first = events.next()
        self.assertEqual(first["history_from"], 0)
        self.assertEqual(first["phase"], "running")
        program.add("a")
        event = events.until(lambda e: e["keys"]["rows"])
        self.assertEqual(event["keys"]["rows"][0]["key"], "a")
        self.assertEqual(parse_metrics(event["metrics"])["wq_run_running"], 1)
        program.gate.open(0)
        event = events.until(lambda e: not e["keys"]["rows"])
        self.assertEqual(parse_metrics(event["metrics"])["wq_run_done_total"], 1)

    def test_event_does_not_wait_for_the_next_second(self):
        program = self.start("-P1", "--follow", end=False)
        events = self.events(program.url())
        apart = []
        for n in range(5):  # a busy machine may be late once
            before = events.next()
            program.add("key-%d" % n)
            after = events.until(lambda e, n=n: e["keys"]["matched"] == n + 1)
            apart.append(after["elapsed"] - before["elapsed"])
        self.assertLess(min(apart), 0.9)

    def test_stream_keeps_its_search(self):
        program = self.start("-P1", "--follow", end=False)
        events = self.events(program.url(), "?q=yes&show=ready")
        for key in ("no-1", "yes-1", "yes-2", "no-2"):
            program.add(key)
        event = events.until(lambda e: len(e["keys"]["rows"]) >= 2)
        self.assertEqual([row["key"] for row in event["keys"]["rows"]],
                         ["yes-1", "yes-2"])

    def test_each_sample_is_sent_once(self):
        program = self.start("--follow", end=False)
        events = self.events(program.url())
        taken = []
        while len(taken) < 3:
            event = events.next()
            self.assertEqual(event["history_from"], len(taken))
            taken += event["history"]
        self.assertEqual([sample[0] for sample in taken],
                         sorted({sample[0] for sample in taken}))

    def test_last_event_reports_the_end(self):
        program = self.start("-P2", "--retries=0", keys=["a", "b"])
        events = self.events(program.url())
        events.next()
        program.gate.open(0, 1)
        last = event = events.next()
        while event:
            last, event = event, events.next()
        self.assertEqual(last["phase"], "finished")
        values = parse_metrics(last["metrics"])
        self.assertEqual((values["wq_run_done_total"],
                          values["wq_run_failed_total"]), (1, 1))
        self.assertEqual(program.wait(), 123)

    def test_end_with_keys_left_is_not_called_finished(self):
        program = self.start("-P1", keys=["a", "b", "c"])
        events = self.events(program.url())
        events.next()
        program.process.send_signal(signal.SIGTERM)
        events.until(lambda e: e["phase"] == "draining")
        program.gate.open(0)
        last = event = events.next()
        while event:
            self.assertNotEqual(event["phase"], "finished")
            last, event = event, events.next()
        self.assertEqual((last["phase"], last["counts"]["left"]), ("stopped", 2))
        self.assertEqual([row["key"] for row in last["keys"]["rows"]], ["b", "c"])

    def test_table_of_each_stream_is_kept_up_to_date(self):
        program = self.start("-P1", "--follow", end=False)
        url = program.url()
        streams = [self.events(url) for _ in range(3)]
        for n in range(4):
            program.add("key-%d" % n)
            for stream in streams:
                event = stream.until(
                    lambda e, n=n: e["counts"]["ready"] == n and
                    (e["keys"]["matched"] == n + 1 or e["keys"]["age"] > 2))
                self.assertLess(event["keys"]["age"], 2)
                self.assertEqual(len(event["keys"]["rows"]), n + 1)

    def test_old_table_has_the_keys_that_run_now(self):
        """With so many keys, a table is shown for some time."""
        program = self.start("-P1", end=False)
        url = program.url()
        program.add("\n".join(map(str, range(300000))))
        until(lambda: metrics(url)["workqueue_depth"] == 299999, "all keys")
        events = self.events(url)
        program.gate.open(0)
        old = 0
        while old < 3:
            event = events.next()
            if event["counts"]["running"] != 1:
                continue
            number = event["counts"]["done"]
            running = [row["key"] for row in event["keys"]["rows"]
                       if row["state"] == "running"]
            self.assertEqual(running, [str(number)])
            self.assertNotIn(str(number), [
                row["key"] for row in event["keys"]["rows"]
                if row["state"] == "ready"])
            old += event["keys"]["age"] > 0
            program.gate.open(0)

    def test_client_that_does_not_read_blocks_nothing(self):
        program = self.start("-P1", end=False)
        url = program.url()
        host, port = re.match(r"http://(.*):(\d+)", url).groups()
        deaf = socket.create_connection((host, int(port)))
        self.addCleanup(deaf.close)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        silent = socket.create_connection((host, int(port)))
        self.addCleanup(silent.close)
        silent.sendall(b"GET /eve")
        program.add("\n".join("%0200d" % i for i in range(1000)))
        program.gate.open(*[0] * 1000)
        until(lambda: metrics(url)["wq_run_done_total"] == 1000, "all done")
        self.assertEqual(program.wait(), 0)

    def test_too_many_streams_are_refused_for_a_while(self):
        program = self.start("--follow", end=False)
        url = program.url()
        streams = [Events(url) for _ in range(16)]
        self.assertEqual(get(url + "/events")[0], 503)
        for stream in streams:
            stream.close()

        def opened():
            events = Events(url)
            self.addCleanup(events.close)
            return events.answer.status == 200
        until(opened, "room for another")


class Crowds(Listening):
    """Clients that do not behave, more than there may be connections (128)."""

    def setUp(self):
        self.program = self.start("--follow", end=False)
        self.url = self.program.url()
        self.port = int(self.url.rsplit(":", 1)[1])

    def connect(self, request):
        client = socket.create_connection(("127.0.0.1", self.port), TIMEOUT)
        self.addCleanup(client.close)
        client.sendall(request)
        return client

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.program.process.pid))

    def leave(self, n):
        """Clients that send half a request and close. The program sleeps until
        all have left: so it finds both at once."""
        self.program.process.send_signal(signal.SIGSTOP)
        until(lambda: state(self.program.process.pid) == "T", "a stop")
        for _ in range(n):
            self.connect(b"GET / HT").close()
        self.program.process.send_signal(signal.SIGCONT)

    def assert_healthy(self):
        self.assertEqual(get(self.url + "/healthz", timeout=SOON)[0], 200)

    def test_clients_that_left_keep_nobody_out(self):
        for _ in range(4):  # the backlog of some machines is short
            self.leave(100)
            self.assert_healthy()

    def test_connection_that_the_client_left_is_closed(self):
        before = self.descriptors()
        self.leave(100)
        self.assert_healthy()
        begun = time.monotonic()
        until(lambda: self.descriptors() == before, "closed connections")
        self.assertLess(time.monotonic() - begun, SOON)

    def test_clients_that_drip_keep_nobody_out(self):
        crowd = [self.connect(b"GET /") for _ in range(500)]
        for _ in range(10):
            for i, client in enumerate(crowd):
                try:
                    client.sendall(b"x")
                except (BrokenPipeError, ConnectionResetError):
                    client.close()  # it made room; it comes again
                    crowd[i] = self.connect(b"GET /")
            self.assert_healthy()

    def test_oldest_client_makes_room(self):
        before = self.descriptors()
        crowd = [self.connect(b"GET /healthz HT") for _ in range(128)]
        until(lambda: self.descriptors() == before + 128, "a full house")
        self.assert_healthy()
        crowd[0].settimeout(SOON)
        self.assertEqual(crowd[0].recv(1), b"")
        for client in (crowd[1], crowd[127]):
            client.sendall(b"TP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertTrue(client.recv(4096).startswith(b"HTTP/1.1 200 "))

    def test_request_must_arrive_in_time(self):
        client = self.connect(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while not answer.endswith(b"ok\n"):
            answer += client.recv(4096)
        begun = time.monotonic()
        client.sendall(b"GET /")
        try:
            while not select.select([client], [], [], 0.1)[0]:
                client.sendall(b"x")
                self.assertLess(time.monotonic() - begun, TIMEOUT)
            self.assertEqual(client.recv(1), b"")
        except (BrokenPipeError, ConnectionResetError):
            pass
        self.assertGreater(time.monotonic() - begun, 5)

    def test_streams_survive_a_crowd(self):
        streams = [self.events(self.url)]
        streams[0].next()
        for _ in range(300):
            self.connect(b"GET / HT")
        streams.append(self.events(self.url))
        self.program.add("a")
        for stream in streams:
            self.assertTrue(stream.until(lambda e: parse_metrics(
                e["metrics"])["wq_run_running"] == 1))


class Addresses(Listening):
    def refused(self, address):
        ended = subprocess.run([PROGRAM, "run", "--listen=" + address, "true"],
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=TIMEOUT, check=False, text=True)
        self.assertEqual(ended.returncode, 125, ended.stderr)
        self.assertIn("listen", ended.stderr)
        self.assertIn(address, ended.stderr)
        return ended.stderr

    def test_port_alone_listens_on_the_loopback_address(self):
        program = self.start(listen="0", keys=["a"])
        self.assertRegex(program.url(), r"^http://127\.0\.0\.1:\d+$")
        self.assertEqual(get(program.url() + "/healthz")[0], 200)

    def test_localhost_is_the_loopback_address(self):
        need_localhost()
        program = self.start(listen="localhost:0", keys=["a"])
        self.assertRegex(program.url(), r"^http://127\.0\.0\.1:\d+$")

    def test_address_may_be_one_of_ipv6(self):
        with socket.socket(socket.AF_INET6) as probe:
            try:
                probe.bind(("::1", 0))
            except OSError:
                return  # not every machine of CI has IPv6
        program = self.start(listen="[::1]:0", keys=["a"])
        self.assertRegex(program.url(), r"^http://\[::1\]:\d+$")
        self.assertEqual(get(program.url() + "/healthz")[0], 200)

    def test_address_is_printed_once_unless_quiet(self):
        for options in ([], ["--quiet"]):
            program = self.start(*options, keys=["a"])
            program.url()
            program.gate.open(0)
            self.assertEqual(program.wait(), 0)
            self.assertEqual("".join(program.messages).count("listening"), 1)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        program = self.start("--quiet", listen=str(port), keys=["a"])
        program.gate.open(0)
        self.assertEqual(program.wait(), 0)
        self.assertEqual(program.messages, [])

    def test_public_address_needs_a_prefix(self):
        for address in ("0.0.0.0:0", "[::]:0", "10.0.0.1:9109", "8.8.8.8:80"):
            self.assertIn("public:" + address, self.refused(address))
        program = self.start(listen="public:0.0.0.0:0", keys=["a"])
        port = program.url().rsplit(":", 1)[1]
        self.assertEqual(get("http://127.0.0.1:%s/healthz" % port)[0], 200)

    def test_port_without_its_address_is_refused(self):
        for address in ("public:9109", "public::9109", ":9109"):
            self.assertIn("public:0.0.0.0:9109", self.refused(address))

    def test_name_other_than_localhost_is_refused(self):
        for address in ("example.com:80", "public:example.com:80"):
            self.assertIn("nor localhost", self.refused(address))

    def test_invalid_address_is_refused(self):
        for address in ("", "x", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",
                        "127.0.0.1:65536", "127.0.0.1:-1", "::1:80",
                        "example.com:80", "127.0.0.1:80x", "unix:",
                        "unix:" + "x" * 108, "[::1]", "http://127.0.0.1:80/"):
            with self.subTest(address=address):
                self.assertRegex(self.refused(address),
                                 "127.0.0.1:PORT.*unix:PATH")

    def test_port_in_use_is_an_error(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            self.assertIn("in use", self.refused(
                "127.0.0.1:%d" % other.getsockname()[1]))


class Sockets(Listening):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="wq-socket-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = os.path.join(self.directory, "s")

    def request(self, path="/healthz", host="anything.example"):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(TIMEOUT)
            s.connect(self.path)
            s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
                       % (path, host)).encode())
            answer = b""
            while data := s.recv(65536):
                answer += data
            return answer

    def test_socket_is_private_and_removed_at_the_end(self):
        before = os.umask(0)
        try:
            program = self.start(listen="unix:" + self.path, keys=["a"])
        finally:
            os.umask(before)
        program.await_message("listening on unix:" + self.path)
        mode = os.stat(self.path).st_mode
        self.assertTrue(stat.S_ISSOCK(mode))
        self.assertEqual(stat.S_IMODE(mode), 0o600)
        self.assertTrue(self.request().startswith(b"HTTP/1.1 200 "))
        self.assertIn(b"workqueue_depth", self.request("/metrics"))
        program.gate.open(0)
        self.assertEqual(program.wait(), 0)
        self.assertFalse(os.path.exists(self.path))

    def test_stale_socket_is_replaced(self):
        program = self.start(listen="unix:" + self.path, keys=["a"])
        program.await_message("listening")
        program.close()  # by SIGKILL
        self.assertTrue(os.path.exists(self.path))
        program = self.start(listen="unix:" + self.path, keys=["a"])
        program.await_message("listening")
        self.assertTrue(self.request().startswith(b"HTTP/1.1 200 "))

    def test_socket_in_use_and_other_files_are_kept(self):
        program = self.start(listen="unix:" + self.path, keys=["a"])
        program.await_message("listening")
        second = self.start(listen="unix:" + self.path, keys=["a"])
        self.assertEqual(second.wait(), 125)
        self.assertTrue(self.request().startswith(b"HTTP/1.1 200 "))
        program.gate.open(0)
        self.assertEqual(program.wait(), 0)
        with open(self.path, "w", encoding="ascii") as file:
            file.write("precious")
        third = self.start(listen="unix:" + self.path, keys=["a"])
        self.assertEqual(third.wait(), 125)
        with open(self.path, encoding="ascii") as file:
            self.assertEqual(file.read(), "precious")

    def test_socket_of_another_type_is_kept(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind(self.path)
            program = self.start(listen="unix:" + self.path, keys=["a"])
            self.assertEqual(program.wait(), 125)
            self.assertTrue(os.path.exists(self.path))

    def test_clients_that_do_not_read_keep_nobody_out(self):
        """On a socket of the file system, whose buffer an answer overfills."""
        program = self.start("-0", "--follow", listen="unix:" + self.path,
                             end=False)
        program.await_message("listening")
        for i in range(300):  # each byte is \\u0001 in JSON
            program.add(b"\1" * 190 + b"%03d" % i, b"\0")
        until(lambda: b'"matched":300' in self.request("/view"), "all keys")

        def connect(path):
            client = socket.socket(socket.AF_UNIX)
            self.addCleanup(client.close)
            client.settimeout(SOON)
            client.connect(self.path)
            client.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path)
            return client
        stream = connect(b"/events?q=none")
        for _ in range(150):
            connect(b"/view")
        health = connect(b"/healthz")
        self.assertTrue(health.recv(4096).startswith(b"HTTP/1.1 200 "))
        program.add("none", b"\0")
        events = b""
        while b'"matched":1' not in events:
            events += stream.recv(65536)
            self.assertTrue(events[-1:], "the stream has ended")

    def test_missing_directory_is_an_error(self):
        program = self.start(listen="unix:/nowhere/at/all", keys=["a"])
        self.assertEqual(program.wait(), 125)
        self.assertIn("No such file", "".join(program.messages))


if __name__ == "__main__":
    main()
