# SPDX-License-Identifier: MIT
"""What is special about a queue in a Redis server? It can be away, it asks for a
password, and a process in the background holds keys for scripts. The tests of
shared queues run with such a queue, too: cli.verbs.redis and others."""

import json
import os
import re
import signal
import socket
import subprocess

from program import (PROGRAM, TIMEOUT, is_running, main, need_command,
                     need_localhost, read_line, until)
from server import AOF, Server
from shared import Shared

SECRET = "geheim"


def free_port():
    """A port of 127.0.0.1 that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class WithServer(Shared):
    options = AOF

    def setUp(self):
        super().setUp()
        self.server = Server(*self.options)
        self.addCleanup(self.server.stop)
        self.url = "redis+unix://" + self.server.path

    def restart(self):
        self.server.kill()
        self.server.start(*self.options)


class Away(WithServer):
    def test_idle_worker_finds_the_server_again(self):
        worker = self.worker()
        self.done("add", "a")
        self.await_begun("a")
        self.await_counts(0, 0, 0, 0)
        self.server.kill()
        self.assertRegex(self.said(worker, b"again")[0],
                         b"^wq: cannot get a key: redis: .*; trying again\n$")
        self.server.start(*AOF)
        self.done("add", "b")
        self.await_begun("a", "b")
        self.assertEqual(self.said(worker, b"answers again")[-1],
                         b"wq: the queue answers again\n")
        worker.terminate()

    def said(self, worker, last):
        """The lines on its stderr, up to one that contains `last`."""
        lines = []
        while not lines or last not in lines[-1]:
            lines.append(read_line(worker.stderr))
            self.assertTrue(lines[-1], lines)
        return lines

    def test_each_cause_of_an_outage_is_reported_once(self):
        worker = self.worker()
        self.await_queue()
        self.server.kill()
        lines = self.said(worker, b"Connection refused")
        self.server.start(*AOF, "--requirepass", SECRET)
        lines += self.said(worker, b"asks for a password")
        self.server.kill()
        self.server.start(*AOF)
        lines += self.said(worker, b"answers again")
        for line in lines[:-1]:
            self.assertRegex(line, b"^wq: cannot get a key: redis: .*; trying "
                                   b"again\n$")
        self.assertEqual(len(set(lines)), len(lines), lines)
        worker.terminate()
        self.assertNotIn(b"again", self.ended(worker).err)

    def refusals(self):
        """How often the server has refused a call for want of a right."""
        count = re.search(rb"errorstat_NOPERM:count=(\d+)",
                          self.server.say("INFO", "errorstats"))
        return int(count[1]) if count else 0

    def test_cause_that_comes_and_goes_is_reported_once(self):
        self.server.say("ACL", "SETUSER", "agent", "on", ">" + SECRET, "~*",
                        "&*", "+@all")
        worker = self.worker(env={"WQ_QUEUE": self.url.replace(
            "//", "//agent:%s@" % SECRET)})
        self.done("add", "a")
        self.await_begun("a")
        for key in "bcd":
            before = self.refusals()
            self.server.say("ACL", "SETUSER", "agent", "resetkeys")
            self.done("add", key)
            until(lambda: self.refusals() > before, "a call that fails")
            self.server.say("ACL", "SETUSER", "agent", "~*")
            until(lambda: key in self.begun(), "the run of " + key)
        worker.terminate()
        said = self.ended(worker).err
        self.assertEqual(said.count(b"trying again\n"), 1, said)
        self.assertEqual(said.count(b"answers again\n"), 1, said)

    def test_result_is_stored_when_the_server_is_back(self):
        self.done("add", "a")
        worker = self.waiting("--json=events")
        self.await_begun("a")
        self.server.kill()
        self.let_go("a")
        self.assertRegex(worker.stderr.readline(),
                         b"^wq: cannot store the result of a run: redis: ")
        self.server.start(*AOF)
        self.await_event(event="finished", key="a", outcome="ok")
        self.assertEqual(self.begun(), ["a"])
        self.await_counts(0, 0, 0, 0)
        worker.terminate()

    def test_each_verb_says_that_the_server_is_away(self):
        self.server.kill()
        for verb in (("work", "true"), ("add", "a"), ("get",), ("done", "a"),
                     ("status",), ("list",), ("show", "a"), ("remove", "a"),
                     ("retry", "a"), ("drain",), ("fsck",)):
            with self.subTest(verb):
                self.assertEqual(
                    self.refused(*verb),
                    "wq: %s: cannot open %s: redis: cannot connect to '%s': "
                    "Connection refused" % (verb[0], self.url,
                                            self.server.path))

    def test_worker_of_a_server_that_lost_all_goes_on(self):
        self.set_lease("1s")
        self.done("add", "a")
        worker = self.waiting("--json=events")
        self.await_begun("a")
        self.server.kill()
        self.server.start("--appendonly", "no")
        self.done("add", "b")
        self.await_begun("a", "b")  # by the same worker
        self.await_event(event="finished", key="a", outcome="lost")
        self.let_go("b")
        self.await_event(event="finished", key="b", outcome="ok")
        worker.terminate()


class Lost(WithServer):
    def test_result_of_a_lost_hold_is_reported(self):
        self.done("add", "a")
        worker = self.waiting("--json=events")
        self.await_begun("a")
        self.server.say("FLUSHALL")  # the next renewal is ten seconds away
        self.let_go("a")
        self.assertEqual(worker.stderr.readline(),
                         b"wq: a: its hold was lost: its result does not "
                         b"count; another worker may have run it\n")
        self.await_event(event="finished", key="a", outcome="lost")
        worker.terminate()

    def test_lost_holds_are_counted(self):
        self.need_page()
        self.done("add", "a")
        worker = self.waiting("--json=events", "--summary", self.listen())
        self.await_begun("a")
        self.server.say("FLUSHALL")
        self.let_go("a")
        self.await_event(event="finished", key="a", outcome="lost")
        self.assertRegex(self.fetch("/metrics"),
                         b"\nwq_run_lost_total{.*} 1\n")
        worker.terminate()
        self.assertEqual(self.await_event(event="summary")[0]["lost"], 1)
        self.assertIn(b"; 1 hold lost", worker.stderr.read())

    def test_key_that_is_dead_by_lost_holds_has_a_note(self):
        self.set_option("max_expiries=1")
        self.set_lease("500ms")
        self.done("add", "a")
        worker = self.waiting()
        self.await_begun("a")
        worker.kill()
        until(lambda: self.keys("dead") == [b"a"], "the end of the lease")
        row = self.done("list").splitlines()[1].split()
        self.assertEqual(row[:2] + row[-1:], [b"DEAD", b"lost", b"a"])


class Warnings(WithServer):
    options = ()  # not in a file

    def warning(self, verb):
        return ("wq: %s: warning: redis: '%s' loses what it was told last, or "
                "all, when it is restarted: put 'appendonly yes' into its "
                "configuration\n" % (verb, self.server.path)).encode()

    def test_status_and_work_tell_of_settings_that_lose_keys(self):
        self.assertEqual(self.wq("status").err, self.warning("status"))
        self.assertEqual(self.wq("status", "--json").err,
                         self.warning("status"))
        self.assertEqual(self.wq("work", "-q", "--until-empty", "true").err,
                         self.warning("work"))

    def test_short_verbs_do_not_repeat_it(self):
        for verb in (("add", "a"), ("list",), ("show", "a"), ("remove", "a"),
                     ("fsck",), ("drain",)):
            with self.subTest(verb):
                self.assertEqual(self.wq(*verb).err, b"")

    def test_status_and_work_tell_of_missing_replicas(self):
        self.server.kill()
        self.server.start(*AOF)
        self.set_option("replicas=1")
        self.assertIn(b"has 0 replicas that are online, and replicas=1 are to",
                      self.wq("status").err)


class Password(WithServer):
    options = (*AOF, "--requirepass", SECRET)

    def setUp(self):
        super().setUp()
        self.plain = self.url
        self.url = self.plain.replace("//", "//default:%s@" % SECRET)
        self.shown = self.url.replace(SECRET, "***")

    def quiet(self, ended):
        self.assertNotIn(SECRET.encode(), ended.out + ended.err)
        return ended

    def test_password_is_never_printed(self):
        for verb in (("add", "-v", "a"), ("status",), ("status", "--json"),
                     ("list",), ("show", "a"), ("fsck",), ("get",),
                     ("done", "a"), ("work", "--until-empty", "true")):
            with self.subTest(verb):
                self.assertEqual(self.quiet(self.wq(*verb)).status, 0)
        self.assertEqual(self.status()["queue"], self.shown)
        self.server.kill()
        for verb in (("add", "a"), ("status",), ("get",)):
            ended = self.quiet(self.wq(*verb))
            self.assertIn(self.shown.encode(), ended.err)

    def test_wrong_password_is_refused_with_a_way_out(self):
        url = self.plain.replace("//", "//:wr0ng@")
        said = self.refused("status", "--queue=" + url)
        self.assertIn("refuses the user or the password", said)
        self.assertNotIn("wr0ng", said)
        self.assertIn("use password_file=PATH in the URL, or WQ_REDIS_PASSWORD",
                      self.refused("status", "--queue=" + self.plain))

    def test_user_needs_a_password(self):
        self.assertIn("asks for a password",
                      self.refused("status", "--queue=" +
                                   self.plain.replace("//", "//agent@")))

    def test_password_may_be_in_the_environment_or_a_file(self):
        env = {"WQ_REDIS_PASSWORD": SECRET, "WQ_QUEUE": self.plain}
        self.done("add", "a", env=env)
        self.assertEqual(self.done("get", env=env), b"a\n")
        self.done("done", "a", env=env)
        self.write("secret", SECRET.encode() + b"\n")
        self.done("add", "--queue=%s?password_file=%s" %
                  (self.plain, self.path("secret")), "b")


class Encrypted(WithServer):
    def test_verbs_work_over_tls(self):
        need_command("openssl")
        need_localhost()
        cert, key = self.path("cert.pem"), self.path("key.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
             "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert],
            check=True, stderr=subprocess.DEVNULL)
        port = free_port()
        self.server.kill()
        self.server.start(*AOF, "--tls-port", str(port), "--tls-cert-file",
                          cert, "--tls-key-file", key, "--tls-ca-cert-file",
                          cert, "--tls-auth-clients", "no")
        self.url = "rediss://localhost:%d?queue=q" % port
        self.assertIn("is not trusted", self.refused("add", "a"))
        self.set_option("ca_file=" + cert)
        self.done("add", "a", "b")
        self.assertEqual(self.done("get"), b"a\n")
        self.done("done", "a")
        ended = self.wq("work", "-q", "--until-empty", "echo")
        self.assertEqual((ended.status, ended.out), (0, b"b\n"))
        self.assertIn(b"server   localhost:%d, " % port, self.done("status"))


class Page(WithServer):
    options = Password.options

    def test_page_and_metrics_tell_of_the_server(self):
        self.need_page()
        self.url = self.url.replace("//", "//default:%s@" % SECRET)
        self.set_option("queue=mail")
        worker = self.worker(self.listen())
        until(lambda: os.path.exists(self.path("socket")), "the page")

        def server():
            return json.loads(self.fetch("/view"))["server"]
        self.assertEqual(json.loads(self.fetch("/view"))["queue"], "mail")
        self.assertEqual(server()["name"], self.server.path)
        self.assertRegex(server()["version"], "^(Redis|Valkey) [0-9]")
        self.assertGreater(server()["lease_left"], 0)
        self.assertTrue(server()["reachable"])
        self.assertIn(b'\nwq_run_server_up{name="mail"} 1\n',
                      self.fetch("/metrics"))
        self.assertRegex(self.fetch("/metrics"), b'\nwq_run_lease_left_seconds'
                         b'{name="mail"} [0-9]+[.][0-9]{3}\n')
        unknown = (b'\nwq_run_dead{', b'\nwq_run_retrying{',
                   b'\nworkqueue_depth{', b'\nworkqueue_waiting_keys{')
        for gauge in unknown:
            self.assertIn(gauge, self.fetch("/metrics"))
        self.assertEqual(self.fetch("/readyz"), b"ok\n")
        self.server.kill()
        until(lambda: not server()["reachable"], "the end of the server")
        self.assertEqual(self.fetch("/readyz"),
                         b"the server of the queue does not answer\n")
        self.assertEqual(self.fetch("/healthz"), b"ok\n")
        self.assertIn(b'\nwq_run_server_up{name="mail"} 0\n',
                      self.fetch("/metrics"))
        for gauge in unknown:
            self.assertNotIn(gauge, self.fetch("/metrics"))
        self.server.start(*self.options)
        until(lambda: server()["reachable"], "the server")
        self.assertRegex(self.fetch("/metrics"), b'\nwq_run_server_reconnects_total'
                         b'{name="mail"} [1-9]')
        for path in ("/", "/view", "/metrics"):
            self.assertNotIn(SECRET.encode(), self.fetch(path))
        worker.terminate()


class Keeper(WithServer):
    """The process that holds the keys of a script."""

    def keepers(self):
        """Processes whose name says so, and whose arguments name our queue."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/comm" % pid, encoding="latin-1") as file:
                    ours = file.read() == "wq-keeper\n"
                with open("/proc/%s/environ" % pid, encoding="latin-1") as file:
                    ours = ours and self.server.path in file.read()
            except OSError:
                continue
            if ours and is_running(int(pid)):
                found.append(int(pid))
        return found

    def test_key_is_held_for_longer_than_the_lease(self):
        self.set_lease("2s")
        self.done("add", "a")
        self.assertEqual(self.done("get"), b"a\n")
        self.assertEqual(self.wq("get", "--timeout=5s").status, 1)
        self.assertEqual(self.counts(), (0, 1, 0, 0))
        self.done("done", "a")
        self.assertEqual(self.counts(), (0, 0, 0, 0))

    def test_one_keeper_serves_a_script(self):
        self.done("add", *"abc")
        for key in (b"a\n", b"b\n", b"c\n"):
            self.assertEqual(self.done("get"), key)
            self.assertEqual(len(self.keepers()), 1)
        self.done("done", *"abc")

    def assert_same(self, *urls):
        """`wq done` with each of the URLs finishes what `wq get` took with
        each of them."""
        for first in urls:
            self.url = first
            for second in urls:
                with self.subTest((first, second)):
                    self.done("add", "a")
                    self.assertEqual(self.done("get", "--timeout=1s"), b"a\n")
                    self.done("done", "--queue=" + second, "a")

    def test_keeper_is_found_by_what_the_url_means(self):
        url = self.url
        self.server.say("ACL", "SETUSER", "agent", "on", ">" + SECRET, "~*",
                        "&*", "+@all")
        self.assert_same(
            url + "?queue=q&lease=1m", url + "?lease=2m&queue=q",
            url + "?db=0&queue=%71",
            url.replace("//", "//agent:%s@" % SECRET) + "?queue=q")

    def test_keeper_is_found_by_host_and_port(self):
        port = free_port()
        self.server.kill()
        self.server.start(*AOF, "--port", str(port))
        url = "redis://127.0.0.1:%d" % port
        self.assert_same(url, url + "/", url + "/0?lease=1m",
                         url + "?queue=default")

    def test_keeper_is_that_of_one_queue(self):
        url = self.url
        self.done("add", "a")
        self.done("get")
        for option in ("?queue=q", "?db=1"):
            self.url = url + option
            self.done("add", "a")
            self.assertIn("a is not held by process",
                          self.refused("done", "a", status=1))
        self.url = url
        self.done("done", "a")

    def test_keeper_does_not_show_the_password(self):
        """Other users can read the arguments of a process."""
        self.server.say("ACL", "SETUSER", "agent", "on", ">" + SECRET, "~*",
                        "&*", "+@all")
        self.done("add", "a")
        self.done("get", "--queue", self.url.replace(
            "//", "//agent:%s@" % SECRET), "--timeout=1s")
        keeper, = self.keepers()
        with open("/proc/%d/cmdline" % keeper, "rb") as file:
            self.assertEqual(file.read().rstrip(b"\0").split(b"\0"),
                             [PROGRAM.encode(), b"get"])
        self.done("done", "a")

    def test_keeper_ends_with_the_script(self):
        self.done("add", "a")
        self.assertEqual(self.shell_prints("wq get; :"), ["a"])
        until(lambda: not self.keepers(), "the end of the keeper")

    def test_keeper_without_keys_ends(self):
        self.assertEqual(self.wq("get", "--timeout=0").status, 1)
        self.assertEqual(len(self.keepers()), 1)
        until(lambda: not self.keepers(), "the end of the keeper")

    def test_gets_at_the_same_time_share_a_keeper(self):
        keys = ["key%d" % i for i in range(8)]
        self.done("add", *keys)
        gets = [self.begin("get") for _ in keys]
        got = [get.communicate(timeout=TIMEOUT)[0].decode().strip()
               for get in gets]
        self.assertEqual(sorted(got), keys)
        self.assertEqual(len(self.keepers()), 1)
        self.assertEqual(self.counts(), (0, 8, 0, 0))
        self.done("done", *keys)
        self.assertEqual(self.counts(), (0, 0, 0, 0))

    def test_keeper_ends_with_a_script_that_nobody_waits_for(self):
        """A zombie is a process that has ended."""
        self.install()
        self.set_lease("1s")
        self.done("add", "a")
        script = subprocess.Popen(["sh", "-c", "wq get; :"], cwd=self.dir,
                                  env=self.environment(),
                                  stdout=subprocess.PIPE)
        self.addCleanup(script.wait)
        with script.stdout as out:
            self.assertEqual(out.read(), b"a\n")
        until(lambda: self.counts() == (1, 0, 0, 0), "the end of the lease")
        self.assertFalse(self.keepers())

    def test_closed_descriptors_are_no_sockets(self):
        self.install()
        self.done("add", *"abc")
        for closed in ("<&-", "2>&-", "<&- 2>&-"):
            with self.subTest(closed):
                answer = subprocess.run(
                    ["sh", "-c", "wq get %s; :" % closed], cwd=self.dir,
                    env=self.environment(), capture_output=True,
                    timeout=TIMEOUT, check=True)
                self.assertIn(answer.stdout, (b"a\n", b"b\n", b"c\n"))

    def test_keys_of_a_killed_keeper_come_back(self):
        self.set_lease("1s")
        self.done("add", "a")
        self.done("get")
        os.kill(self.keepers()[0], signal.SIGKILL)
        self.assertIn("a is not held by process",
                      self.refused("done", "a", status=1))
        self.assertEqual(self.done("get"), b"a\n")
        self.done("done", "a")

    def test_hold_that_was_lost_is_not_one_of_another_process(self):
        self.set_lease("1s")
        self.done("add", "a", "b")
        self.done("get", "-n", "2")
        keeper, = self.keepers()
        os.kill(keeper, signal.SIGSTOP)
        self.await_counts(2, 0, 0, 0)
        os.kill(keeper, signal.SIGCONT)
        self.assertEqual(
            self.refused("done", "a", status=1),
            "wq: done: a: its hold was lost: its result does not count; "
            "another worker may have the key")
        self.assertEqual(self.counts(), (2, 0, 0, 0))
        self.assertIn("a is not held by process",
                      self.refused("done", "a", status=1))
        self.assertEqual(self.done("get", "-n", "2"), b"a\nb\n")
        self.done("done", "a", "b")
        self.assertEqual(self.counts(), (0, 0, 0, 0))
        until(lambda: not self.keepers(), "the end of the keeper")

    def test_hold_that_the_server_has_lost_is_reported(self):
        self.done("add", "a")
        self.done("get")
        self.server.say("FLUSHALL")  # the next renewal is ten seconds away
        self.assertIn("a: its hold was lost",
                      self.refused("done", "a", status=1))

    def test_hold_survives_a_restart_of_the_server(self):
        self.done("add", "a")
        self.done("get")
        self.restart()
        self.assertEqual(self.counts(), (0, 1, 0, 0))
        self.done("done", "a")
        self.assertEqual(self.counts(), (0, 0, 0, 0))

    def test_script_gets_no_descriptor_of_the_keeper(self):
        """Else $(wq get) would wait for the end of the keeper."""
        self.done("add", "a")
        answer = subprocess.run([PROGRAM, "get"], env=self.environment(),
                                capture_output=True, timeout=TIMEOUT,
                                check=True)
        self.assertEqual(answer.stdout, b"a\n")
        self.assertTrue(self.keepers())


class Partitions(WithServer):
    def setUp(self):
        super().setUp()
        self.whole = self.url
        self.url += "?partitions=3"

    def test_verbs_work_with_all_partitions(self):
        keys = ["k%d" % i for i in range(12)]
        self.done("add", *keys)
        got = self.done("get").decode().rstrip("\n")
        self.assertIn(got, keys)
        self.assertEqual(self.counts(), (11, 1, 0, 0))
        self.assertIn(b", primary, 3 partitions\n", self.done("status"))
        server = self.status()["server"]
        self.assertEqual((server["partitions"], server["partitions_away"]),
                         (3, 0))
        self.assertEqual(sorted(key["key"] for key in self.json("list")),
                         sorted(keys))
        self.done("done", got)
        self.done("fsck")
        worker = self.worker()
        self.await_counts(0, 0, 0, 0)
        self.assertEqual(sorted(self.begun() + [got]), sorted(keys))
        self.done("drain")
        worker.terminate()

    def test_url_without_the_number_is_refused(self):
        self.done("add", "a")
        self.url = self.whole
        self.assertIn("has partitions=3, not 1: open it with the former",
                      self.refused("add", "b"))


if __name__ == "__main__":
    main()
