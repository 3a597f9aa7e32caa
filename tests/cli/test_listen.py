# SPDX-License-Identifier: MIT
"""What does --listen answer, to whom, and where?"""

import http.client
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import tempfile
import unittest

from watched import (PATIENCE, PROGRAM, WAIT, Watched, get, metrics, parse_metrics,
                     until, view)


def read_text(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


class Events:
    """A reader of /events."""

    def __init__(self, url, query=""):
        host = re.match(r"http://(.*)", url)[1]
        self.connection = http.client.HTTPConnection(host, timeout=PATIENCE)
        self.connection.request("GET", "/events" + query)
        self.answer = self.connection.getresponse()

    def next(self):
        """The next event; None: there are no more."""
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
    def test_what_there_is(self):
        url = self.start(keys=["a"]).url()
        for path, kind in (("/", "text/html"), ("/metrics", "text/plain"),
                           ("/healthz", "text/plain"),
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

    def test_what_there_is_not(self):
        url = self.start(keys=["a"]).url()
        self.assertEqual(get(url + "/secret")[0], 404)
        self.assertEqual(get(url + "/metrics/../..//")[0], 404)
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            self.assertEqual(get(url + "/", method)[0], 405)
        self.assertEqual(get(url + "/view?show=everything")[0], 400)
        self.assertEqual(get(url + "/events?show=x")[0], 400)
        self.assertEqual(get(url + "/view?q=" + "x" * 1025)[0], 400)

    def test_metrics_are_the_registry_and_the_runs(self):
        program = self.start("-P2", "--backoff=1h,1h",
                             keys=["a", "b", "c", "d", "d"])
        url = program.url()
        program.gate.open(0, 1)
        until(lambda: metrics(url)["wq_run_runs_total"] == 4 and
              metrics(url)["wq_run_running"] == 2, "four runs begun")
        said = metrics(url)
        expected = {
            "wq_run_done_total": 1, "wq_run_failed_total": 0,
            "wq_run_retrying": 1, "wq_run_slots": 2, "wq_run_running": 2,
            "wq_run_retries_total": 1, "workqueue_depth": 0,
            "workqueue_adds_total": 4, "workqueue_merged_total": 1,
            "workqueue_waiting_keys": 1, "workqueue_retries_total": 1,
            "workqueue_work_duration_seconds_count": 2,
        }
        self.assertEqual({name: said.get(name) for name in expected}, expected)

    def test_a_retry_that_is_in_line_again_does_not_wait(self):
        program = self.start("-P1", "--backoff=1ms", keys=["a", "b"])
        url = program.url()
        program.gate.open(1)  # a fails, b has the slot, and a is due again
        until(lambda: metrics(url)["wq_run_runs_total"] == 2 and
              metrics(url)["workqueue_depth"] == 1, "a in line, b running")
        said = metrics(url)
        self.assertEqual((said["wq_run_retrying"],
                          said["workqueue_waiting_keys"]), (0, 0))

    def test_openmetrics_if_the_client_asks(self):
        url = self.start("--name=with \"quotes\"", keys=["a"]).url()
        _, headers, body = get(url + "/metrics",
                               Accept="application/openmetrics-text")
        self.assertIn("openmetrics-text", headers["Content-Type"])
        self.assertTrue(body.endswith(b"# EOF\n"))
        self.assertEqual(body.count(b"# EOF\n"), 1)
        self.assertIn(b"# TYPE wq_run_done counter\n", body)
        self.assertIn(b'wq_run_done_total{name="with \\"quotes\\""} 0\n', body)

    @unittest.skipUnless(shutil.which("promtool") or os.environ.get("CI"),
                         "no promtool")
    def test_metrics_please_promtool(self):
        url = self.start(keys=["a"]).url()
        said = subprocess.run(["promtool", "check", "metrics"],
                              input=get(url + "/metrics")[2],
                              capture_output=True, check=False)
        self.assertEqual((said.returncode, said.stderr), (0, b""))

    def test_the_page_runs_no_script_but_its_own(self):
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

    def test_a_name_that_is_not_ours_is_not_answered(self):
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

    def test_children_do_not_get_the_sockets(self):
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
    def test_each_key_says_what_it_is_at(self):
        program = self.start("-P2", "--backoff=1h,1h", "--input=jsonl",
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
        self.assertLess(retrying["due"], 3600)
        self.assertEqual(waiting["key"], "later")
        self.assertAlmostEqual(waiting["due"], 7200, delta=PATIENCE)
        self.assertEqual(rows[-1]["key"], "low")
        self.assertEqual(rows[-1]["priority"], -1)
        for state, n in (("running", 2), ("retrying", 1), ("waiting", 1),
                         ("ready", 2)):
            found = view(url, "?show=" + state)["keys"]
            self.assertEqual([row["state"] for row in found["rows"]],
                             [state] * n)
            self.assertEqual((found["show"], found["matched"]), (state, n))

    def test_a_search_finds_keys_in_any_state(self):
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

    def test_a_key_that_comes_again_says_so(self):
        program = self.start("-P1", keys=["a"], end=False)
        url = program.url()
        until(lambda: metrics(url)["wq_run_running"] == 1, "a run")
        program.add("a")
        row = until(lambda: [r for r in view(url)["keys"]["rows"]
                             if r.get("again")], "once more")
        self.assertEqual([r["key"] for r in row], ["a"])
        self.assertEqual(metrics(url)["workqueue_depth"], 1)

    def test_any_bytes_arrive_as_they_are(self):
        program = self.start("-0", "-P1", end=False)
        keys = [b'<script>alert("x")</script>', b"\xff\xfe", b"a\nb\x1b[31m",
                "\u202e\u4e2d".encode(), b"\\\"'&", b"y" * 65536,
                "\u4e2d".encode() * 100]
        for key in keys:
            program.add(key, b"\0")
        url = program.url()
        rows = until(lambda: (lambda r: r if len(r) == len(keys) else None)(
            view(url)["keys"]["rows"]), "all keys")
        said = {row["key"] for row in rows}
        for key in keys[:5]:
            self.assertIn(key.decode(errors="replace"), said)
        bad = next(row for row in rows if "key_base64" in row)
        self.assertEqual(bad["key_base64"], "//4=")
        cut = {row["bytes"]: row["key"] for row in rows if row.get("cut")}
        self.assertEqual(set(cut), {65536, 300})
        self.assertLessEqual(len(cut[65536]), 200)
        self.assertEqual(set(cut[300]), {"\u4e2d"})
        self.assertEqual(view(url, "?q=%ff%fe")["keys"]["matched"], 1)

    def test_many_keys_are_cut_to_the_first(self):
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


class Streams(Listening):
    def test_an_event_when_something_happens(self):
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

    def test_it_does_not_wait_for_the_next_second(self):
        program = self.start("-P1", "--follow", end=False)
        events = self.events(program.url())
        apart = []
        for n in range(5):  # a busy machine may be late once
            before = events.next()
            program.add("key-%d" % n)
            after = events.until(lambda e, n=n: e["keys"]["matched"] == n + 1)
            apart.append(after["elapsed"] - before["elapsed"])
        self.assertLess(min(apart), 0.9)

    def test_a_search_is_kept_in_the_stream(self):
        program = self.start("-P1", "--follow", end=False)
        events = self.events(program.url(), "?q=yes&show=ready")
        for key in ("no-1", "yes-1", "yes-2", "no-2"):
            program.add(key)
        event = events.until(lambda e: len(e["keys"]["rows"]) >= 2)
        self.assertEqual([row["key"] for row in event["keys"]["rows"]],
                         ["yes-1", "yes-2"])

    def test_samples_come_once(self):
        program = self.start("--follow", end=False)
        events = self.events(program.url())
        taken = []
        while len(taken) < 3:
            event = events.next()
            self.assertEqual(event["history_from"], len(taken))
            taken += event["history"]
        self.assertEqual([sample[0] for sample in taken],
                         sorted({sample[0] for sample in taken}))

    def test_the_last_event_says_how_it_ended(self):
        program = self.start("-P2", "--retries=0", keys=["a", "b"])
        events = self.events(program.url())
        events.next()
        program.gate.open(0, 1)
        last = event = events.next()
        while event:
            last, event = event, events.next()
        self.assertEqual(last["phase"], "finished")
        said = parse_metrics(last["metrics"])
        self.assertEqual((said["wq_run_done_total"],
                          said["wq_run_failed_total"]), (1, 1))
        self.assertEqual(program.wait(), 123)

    def test_who_does_not_read_holds_nobody_up(self):
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

    def test_too_many_are_refused_and_room_is_made_again(self):
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
    def test_when_they_have_gone_others_are_answered(self):
        program = self.start("--follow", end=False)
        url = program.url()
        port = int(re.search(r":(\d+)", url[5:])[1])
        crowd = [socket.create_connection(("127.0.0.1", port))
                 for _ in range(200)]
        for one in crowd:
            one.sendall(b"GET / HT")  # and no more

        def are_in():
            ours = "/proc/%d/fd/" % program.process.pid
            return sum(os.readlink(ours + fd).startswith("socket:")
                       for fd in os.listdir(ours)) >= 1 + 128
        until(are_in, "as many as there may be")
        for one in crowd:
            one.close()
        self.assertEqual(get(url + "/healthz")[0], 200)


class Addresses(Listening):
    def refused(self, address):
        said = subprocess.run([PROGRAM, "run", "--listen=" + address, "true"],
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=PATIENCE, check=False, text=True)
        self.assertEqual(said.returncode, 125, said.stderr)
        self.assertIn("listen", said.stderr)
        self.assertIn(address, said.stderr)
        return said.stderr

    def test_a_port_alone_is_on_this_machine_only(self):
        program = self.start(listen="0", keys=["a"])
        self.assertRegex(program.url(), r"^http://127\.0\.0\.1:\d+$")
        self.assertEqual(get(program.url() + "/healthz")[0], 200)

    def test_localhost_and_the_sixth_version(self):
        program = self.start(listen="localhost:0", keys=["a"])
        self.assertRegex(program.url(), r"^http://127\.0\.0\.1:\d+$")
        with socket.socket(socket.AF_INET6) as probe:
            try:
                probe.bind(("::1", 0))
            except OSError:
                return  # this machine has none
        program = self.start(listen="[::1]:0", keys=["a"])
        self.assertRegex(program.url(), r"^http://\[::1\]:\d+$")
        self.assertEqual(get(program.url() + "/healthz")[0], 200)

    def test_the_address_is_said_once_unless_quiet(self):
        for options in ([], ["--quiet"]):
            program = self.start(*options, keys=["a"])
            program.url()
            program.gate.open(0)
            self.assertEqual(program.wait(), 0)
            self.assertEqual("".join(program.said).count("listening"), 1)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        program = self.start("--quiet", listen=str(port), keys=["a"])
        program.gate.open(0)
        self.assertEqual(program.wait(), 0)
        self.assertEqual(program.said, [])

    def test_others_must_be_asked_for_by_name(self):
        for address in ("0.0.0.0:0", "[::]:0", "10.0.0.1:9109", "8.8.8.8:80"):
            self.assertIn("public:" + address, self.refused(address))
        program = self.start(listen="public:0.0.0.0:0", keys=["a"])
        port = program.url().rsplit(":", 1)[1]
        self.assertEqual(get("http://127.0.0.1:%s/healthz" % port)[0], 200)

    def test_what_is_no_address_is_refused(self):
        for address in ("", "x", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",
                        "127.0.0.1:65536", "127.0.0.1:-1", "::1:80",
                        "example.com:80", "127.0.0.1:80x", "unix:",
                        "unix:" + "x" * 108, "[::1]", "http://127.0.0.1:80/"):
            with self.subTest(address=address):
                self.assertRegex(self.refused(address),
                                 "127.0.0.1:PORT.*unix:PATH")

    def test_a_port_in_use_is_an_error(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            self.assertIn("in use", self.refused(
                "127.0.0.1:%d" % other.getsockname()[1]))


class Sockets(Listening):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="wq-socket-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = os.path.join(self.directory, "s")

    def ask(self, path="/healthz", host="anything.example"):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(PATIENCE)
            s.connect(self.path)
            s.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
                       % (path, host)).encode())
            answer = b""
            while data := s.recv(65536):
                answer += data
            return answer

    def test_it_is_the_users_alone_and_gone_at_the_end(self):
        before = os.umask(0)
        try:
            program = self.start(listen="unix:" + self.path, keys=["a"])
        finally:
            os.umask(before)
        program.until_said("listening on unix:" + self.path)
        mode = os.stat(self.path).st_mode
        self.assertTrue(stat.S_ISSOCK(mode))
        self.assertEqual(stat.S_IMODE(mode), 0o600)
        self.assertTrue(self.ask().startswith(b"HTTP/1.1 200 "))
        self.assertIn(b"workqueue_depth", self.ask("/metrics"))
        program.gate.open(0)
        self.assertEqual(program.wait(), 0)
        self.assertFalse(os.path.exists(self.path))

    def test_one_that_was_left_behind_is_replaced(self):
        program = self.start(listen="unix:" + self.path, keys=["a"])
        program.until_said("listening")
        program.close()  # by SIGKILL
        self.assertTrue(os.path.exists(self.path))
        program = self.start(listen="unix:" + self.path, keys=["a"])
        program.until_said("listening")
        self.assertTrue(self.ask().startswith(b"HTTP/1.1 200 "))

    def test_one_in_use_and_other_files_are_left_alone(self):
        program = self.start(listen="unix:" + self.path, keys=["a"])
        program.until_said("listening")
        second = self.start(listen="unix:" + self.path, keys=["a"])
        self.assertEqual(second.wait(), 125)
        self.assertTrue(self.ask().startswith(b"HTTP/1.1 200 "))
        program.gate.open(0)
        self.assertEqual(program.wait(), 0)
        with open(self.path, "w", encoding="ascii") as file:
            file.write("precious")
        third = self.start(listen="unix:" + self.path, keys=["a"])
        self.assertEqual(third.wait(), 125)
        with open(self.path, encoding="ascii") as file:
            self.assertEqual(file.read(), "precious")

    def test_a_socket_of_another_kind_is_left_alone(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind(self.path)
            program = self.start(listen="unix:" + self.path, keys=["a"])
            self.assertEqual(program.wait(), 125)
            self.assertTrue(os.path.exists(self.path))

    def test_a_directory_that_is_not_there_is_an_error(self):
        program = self.start(listen="unix:/nowhere/at/all", keys=["a"])
        self.assertEqual(program.wait(), 125)
        self.assertIn("No such file", "".join(program.said))


if __name__ == "__main__":
    unittest.main()
