# SPDX-License-Identifier: MIT
"""Does the controller do its work? It lists in pages, watches, writes, resyncs,
proves who it is, checks who the server is, and ends as it is asked to."""

import os
import re
import signal
import subprocess
import time
import unittest

from controlled import Controlled, main, need_command, until


class Work(Controlled):
    def test_widgets_are_listed_in_pages(self):
        self.serve()
        for i in range(25):
            self.server.create("w%02d" % i, i)
        self.start("--page=10")
        self.converge()
        pages = self.server.queries("list")
        self.assertEqual([page["limit"] for page in pages], ["10"] * 3)
        self.assertEqual(["continue" in page for page in pages],
                         [False, True, True])
        self.assertEqual(self.metric("widgets_objects"), 25)

    def test_changes_are_written_to_the_status(self):
        self.started()
        self.server.create("new", 17)
        self.change_all()
        self.converge()
        self.server.delete("w1")
        until(lambda: self.metric("widgets_objects") == 5, "the delete")
        self.server.create("w1", 3)  # another object of that name
        self.converge()

    def test_status_that_agrees_is_not_written(self):
        self.started()
        self.stop()
        writes = self.server.count("write")
        self.start()
        until(lambda: self.runs() >= 5, "five runs")
        self.assertEqual(self.server.count("write"), writes)

    def test_widget_without_a_size_is_left_alone(self):
        self.started()
        with self.server.changed:
            del self.server.objects["default/w0"]["spec"]["size"]
            self.server.record("MODIFIED", "default/w0")
        self.server.resize("w1", 8)
        until(lambda: self.server.objects["default/w1"]["status"] ==
              {"size": 8}, "the other one")
        self.assertEqual(self.server.objects["default/w0"]["status"],
                         {"size": 1})

    def test_other_namespaces_are_left_alone(self):
        self.serve()
        self.server.create("mine", 1, "here")
        self.server.create("other", 1, "there")
        self.start("--namespace=here")
        self.watching()
        self.server.create("late", 1, "there")
        self.server.resize("mine", 2, "here")
        until(lambda: self.server.objects["here/mine"].get("status") ==
              {"size": 2}, "the status")
        self.assertEqual(set(self.server.writes), {"here/mine"})
        self.assertEqual(self.metric("widgets_objects"), 1)

    def test_resync_runs_all_keys_at_low_priority(self):
        self.started(5, "--resync=0.05", "--workers=1")
        until(lambda: self.runs() > 40, "many runs without an event")
        self.server.write_seconds = 1.5
        self.server.resize("w1", 50)  # its write holds the only worker
        until(lambda: self.metric(
            'workqueue_priority_depth{name="widgets",priority="-10"}') >= 4,
            "keys of the resync that wait")
        self.converge()

    def test_many_changes_become_few_runs(self):
        self.started()
        self.server.write_seconds = 0.05
        for size in range(2000):
            self.server.resize("w1", size)
        self.converge()
        self.assertLess(self.server.count("write"), 500)

    def test_idle_controller_sleeps(self):
        self.started(5, "--silence=60")
        time.sleep(0.2)

        def used():
            with open("/proc/%d/stat" % self.process.pid,
                      encoding="latin-1") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf(
                "SC_CLK_TCK")
        before = used()
        time.sleep(1)
        self.assertLess(used() - before, 0.1)


class Pages(Controlled):
    def test_metrics_and_health_are_served(self):
        self.started()
        status, text = self.get("/metrics")
        self.assertEqual(status, 200)
        self.assertIn('workqueue_depth{name="widgets"} 0\n', text)
        self.assertIn("widgets_objects 5\n", text)
        self.assertEqual(self.get("/healthz"), (200, "ok\n"))
        self.assertEqual(self.get("/readyz"), (200, "ok\n"))
        self.assertEqual(self.get("/other")[0], 404)

    def test_it_is_not_ready_before_the_first_list(self):
        self.serve()
        self.server.refuse("list", 500, times=1000000)
        self.start()
        self.assertEqual(self.get("/readyz")[0], 503)
        self.assertEqual(self.get("/healthz")[0], 200)
        with self.server.changed:
            self.server.refusals.clear()
        until(lambda: self.get("/readyz")[0] == 200, "the first list")


class Credentials(Controlled):
    def certify(self, name="server", host="127.0.0.1"):
        """A certificate that signs itself, and its key, in one file."""
        need_command("openssl")
        path = self.path(name + ".pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
             "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:" + host,
             "-keyout", path, "-out", self.path("part")],
            check=True, capture_output=True)
        with open(path, "ab") as whole, open(self.path("part"), "rb") as part:
            whole.write(part.read())
        return path

    def test_certificate_is_checked(self):
        right, wrong = self.certify("right"), self.certify("wrong")
        self.serve(certificate=right)
        self.server.create("w", 1)
        for arguments in ((), ("--ca-file=" + wrong,)):
            with self.subTest(arguments):
                self.start(*arguments)
                # The second: this machine trusts nobody (no ca-certificates).
                until(lambda: re.search(
                    "list: status 0 (SSL certificate problem|"
                    "Problem with the SSL CA cert|error setting certificate)",
                    self.log()), "the refusal")
                self.stop()
                os.remove(self.path("log"))
        self.assertEqual(self.server.requests, [])
        self.start("--ca-file=" + right)
        self.converge()
        self.stop()
        self.assertNotIn("anybody", self.log())

    def test_insecure_must_be_asked_for(self):
        self.serve(certificate=self.certify())
        self.server.create("w", 1)
        self.start("--insecure")
        self.converge()
        self.assertIn("--insecure: anybody can be the server", self.log())

    def test_certificate_for_another_host_is_refused(self):
        certificate = self.certify(host="127.0.0.9")
        self.serve(certificate=certificate)
        self.start("--ca-file=" + certificate)
        until(lambda: "does not match" in self.log() or
              "no alternative certificate" in self.log(), "the refusal")
        self.assertEqual(self.server.requests, [])

    def test_replaced_token_is_read_again(self):
        certificate = self.certify()
        token = self.write("token", "first\n")
        self.serve(certificate=certificate, token="first")
        self.server.create("w", 1)
        self.start("--ca-file=" + certificate, "--token-file=" + token)
        self.converge()
        self.write("token", "second\n")
        self.server.token = "second"
        self.server.cut()
        self.server.resize("w", 2)
        self.converge()

    def test_wrong_token_is_reported(self):
        certificate = self.certify()
        self.serve(certificate=certificate, token="right")
        self.start("--ca-file=" + certificate,
                   "--token-file=" + self.write("token", "wrong"))
        until(lambda: "widgets: list: status 401" in self.log(), "a message")

    def test_pod_finds_its_server(self):
        certificate = self.certify()
        self.serve(certificate=certificate, token="of-the-pod")
        self.server.create("w", 1)
        os.mkdir(self.path("account"))
        os.rename(self.write("token", "of-the-pod"), self.path("account/token"))
        os.symlink(certificate, self.path("account/ca.crt"))
        self.launch("--port=0", "--retry=0.01",
                    "--service-account=" + self.path("account"),
                    env={"KUBERNETES_SERVICE_HOST": "127.0.0.1",
                         "KUBERNETES_SERVICE_PORT": str(self.server.port)})
        self.converge()


class Ends(Controlled):
    def test_sigterm_drains(self):
        self.serve()
        self.server.write_seconds = 0.02
        for i in range(50):
            self.server.create("w%d" % i, i)
        self.start()
        until(lambda: self.get("/readyz")[0] == 200, "the list")
        self.stop()
        self.assertTrue(self.server.converged())
        self.assertIn("widgets: all work is done", self.log())

    def test_drain_has_a_limit_and_a_restart_finishes(self):
        self.serve()
        self.server.write_seconds = 0.2
        for i in range(50):
            self.server.create("w%d" % i, i)
        self.start("--drain=0.3")
        until(lambda: self.server.count("write") > 0, "a write")
        begin = time.monotonic()
        self.stop(status=1)
        self.assertIn("work remains", self.log())
        self.assertLess(time.monotonic() - begin, 20)
        self.assertFalse(self.server.converged())
        # The server still handles writes of the process that has left.
        until(lambda: not any(self.server.writing.values()), "these writes")
        self.server.write_seconds = 0
        self.start()
        self.converge()

    def test_second_sigterm_leaves_at_once(self):
        self.serve()
        self.server.write_seconds = 20
        self.server.create("w", 1)
        self.start()
        until(lambda: self.server.writing.get("default/w"), "a write")
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        until(lambda: "draining" in self.log(), "the drain")
        self.assertIsNone(self.process.poll())
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(60), 128 + signal.SIGTERM,
                         self.log()[-4000:])
        self.assertLess(time.monotonic() - begin, 15)

    def test_sigterm_ends_a_controller_without_a_server(self):
        self.serve()
        self.server.stop()
        self.start("--retry=30")
        until(lambda: "widgets: list: " in self.log(), "a failure")
        begin = time.monotonic()
        self.stop()
        self.assertLess(time.monotonic() - begin, 15)


class Flags(unittest.TestCase):
    def refused(self, *arguments, env=None):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith("KUBERNETES_")}
        ended = subprocess.run(
            [os.environ.get("WIDGETS_PROGRAM", "widgets"), *arguments],
            capture_output=True, env={**clean, **(env or {})}, timeout=60)
        self.assertEqual(ended.returncode, 2, ended.stderr)
        return ended.stderr.decode()

    def test_mistakes_are_reported(self):
        server = "--server=https://127.0.0.1:1"
        for arguments, message in (
                ((), "no --server, and KUBERNETES_SERVICE_HOST"),
                (("--server=ftp://h",), "--server: 'ftp://h' does not begin"),
                ((server, "--workers=0"), "--workers: '0' is not a number "
                 "from 1 to 1000"),
                ((server, "--workers=4x"), "--workers: '4x'"),
                ((server, "--port=70000"), "--port: '70000'"),
                ((server, "--page=-1"), "--page: '-1'"),
                ((server, "--drain=soon"), "--drain: 'soon' is not a number "
                 "of seconds"),
                ((server, "--retry=nan"), "--retry: 'nan'"),
                ((server, "--ca-file=no/file"), "--ca-file: cannot read "
                 "'no/file': No such file or directory"),
                ((server, "--token-file=no/file"), "--token-file: cannot"),
                ((server, "--cert-file=/dev/null"), "need each other"),
                (("--server=http://h", "--token-file=/dev/null"),
                 "not sent without TLS"),
                ((server, "--colour"), "--help lists the options"),
                ((server, "--ca-file"), "--help lists the options"),
                ((server, "more"), "'more' is not an option")):
            with self.subTest(arguments):
                self.assertIn(message, self.refused(*arguments))

    def test_pod_without_its_files_is_reported(self):
        self.assertIn(
            "--ca-file: cannot read 'no/ca.crt'",
            self.refused("--service-account=no",
                         env={"KUBERNETES_SERVICE_HOST": "::1",
                              "KUBERNETES_SERVICE_PORT": "443"}))


if __name__ == "__main__":
    main()
