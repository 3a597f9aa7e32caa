# SPDX-License-Identifier: MIT
"""Does `wq work` run the keys of a shared queue, alone and beside others?"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess

from program import is_running, main, until
from shared import STORE, Shared, of_sqlite

# A look for keys may have come first: only the first failure is reported.
CANNOT_ADD = rb"wq: cannot (add keys|get a key): "


def ticks(pid):
    """The processor time that it has used, in hundredths of a second."""
    with open("/proc/%d/stat" % pid, encoding="latin-1") as file:
        return sum(map(int, file.read().rsplit(")")[1].split()[11:13]))


class Work(Shared):
    def ends(self, process, status=0):
        ended = self.ended(process)
        self.assertEqual(ended.status, status, ended.err)
        return ended

    # ---- what runs ---------------------------------------------------------

    def test_work_runs_keys_that_are_there(self):
        self.done("add", "a", "b", "c")
        ended = self.wq("work", "--until-empty", "echo", "run")
        self.assertEqual((ended.status, ended.lines()),
                         (0, ["run a", "run b", "run c"]))
        self.assertEqual(ended.err, b"wq: 3 keys, 3 ok, 0 failed, 0 left; "
                                    b"0 adds; 0 retries\n")
        self.assertEqual(self.counts(), (0, 0, 0, 0))

    def test_run_with_a_queue_is_work(self):
        self.done("add", "a")
        ended = self.wq("run", "-q", "--queue=" + self.url, "--until-empty",
                        "echo", keys=b"not read\n")
        self.assertEqual((ended.status, ended.out), (0, b"a\n"))

    def test_idle_worker_takes_a_key_beside_a_busy_one(self):
        workers = [self.waiting("-P1") for _ in range(2)]
        self.await_queue()
        # Other handles must not open and close: that would wake all workers.
        adder = self.begin("add", stdin=subprocess.PIPE)
        for key in "abcde":
            adder.stdin.write(key.encode() + b"\n")
            adder.stdin.flush()
            until(lambda: key in self.begun(), "the run of " + key)
            if key != "a":  # its worker is busy
                self.let_go(key)
                until(lambda: ["end", key] in [line[:2] for line in self.log()],
                      "the end of " + key)
        self.let_go("a")
        self.ends(adder)
        for worker in workers:
            worker.terminate()

    def test_work_waits_for_keys(self):
        worker = self.worker()
        self.await_queue()
        self.done("add", "a")
        self.await_begun("a")
        self.done("add", "--after=100ms", "b")
        self.await_begun("a", "b")
        worker.terminate()
        self.ends(worker, -signal.SIGTERM)

    def test_idle_worker_sleeps(self):
        worker = self.worker()
        self.await_queue()
        self.done("add", "a")
        self.await_begun("a")
        self.await_counts(0, 0, 0, 0)

        before = ticks(worker.pid)
        self.assertEqual(self.wq("get", "--timeout=1s").status, 1)
        self.assertLessEqual(ticks(worker.pid) - before, 10)  # of 100

    def test_busy_worker_sleeps(self):
        self.done("add", "a", "b")
        worker = self.waiting("-P1")
        self.await_begun("a")
        before = ticks(worker.pid)
        self.assertEqual(self.wq("drain", "--timeout=1s").status, 124)
        self.assertLessEqual(ticks(worker.pid) - before, 10)
        self.let_go("a")
        self.let_go("b")
        self.await_counts(0, 0, 0, 0)

    def test_key_added_while_it_runs_runs_again(self):
        self.done("add", "a")
        worker = self.waiting("-P4")
        self.await_begun("a")
        self.done("add", "a")
        self.done("add", "a", "b")
        self.await_begun("a", "b")
        self.let_go("a")
        self.await_begun("a", "b", "a")
        self.let_go("a")
        self.let_go("b")
        self.await_counts(0, 0, 0, 0)
        worker.terminate()

    def test_higher_priorities_run_first(self):
        self.done("add", "a")
        self.done("add", "--priority=5", "b")
        self.done("add", "--priority=-5", "c")
        ended = self.wq("work", "-q", "--until-empty", "sh", "-c",
                        'echo "$1 $WQ_PRIORITY"', "sh")
        self.assertEqual(ended.lines(), ["b 5", "a 0", "c -5"])

    def test_input_is_added_if_asked_for(self):
        self.write("file", b"a\nb\na\n")
        ended = self.wq("work", "-P2", "--until-empty", "-a", "file", "-a", "-",
                        *self.script("echo $1"), keys=b"c\n")
        self.assertEqual(sorted(ended.lines()), ["a", "b", "c"])
        self.assertIn(b"4 adds (25% deduplicated)", ended.err)

    def test_list_is_added(self):
        self.install()
        ended = self.wq("work", "-q", "--until-empty",
                        "--list=wq status >/dev/null && printf '%s\\n' a b",
                        "echo")
        self.assertEqual((ended.status, ended.lines()), (0, ["a", "b"]))

    def test_many_keys_run_once_each(self):
        self.done("add", keys=b"".join(b"%d\n" % i for i in range(500)))
        ended = self.wq("work", "-q", "-P4", "--until-empty", "echo")
        self.assertEqual((ended.status, ended.err), (0, b""))
        self.assertEqual(sorted(map(int, ended.lines())), list(range(500)))

    def test_rate_limits_starts(self):
        self.done("add", *"abcdef")
        ended = self.wq("work", "-q", "--until-empty", "--rate=20/s", "true")
        self.assertEqual(ended.status, 0)
        self.assertGreaterEqual(ended.seconds, 5 / 20)

    # ---- failures ----------------------------------------------------------

    def test_failed_key_is_retried_and_then_dead(self):
        self.done("add", "a", "b")
        ended = self.wq("work", "--until-empty", "--retries=2",
                        "--backoff=1ms", "--json=events", *self.script(
                            "echo $1 $WQ_ATTEMPT; [ $1 = b ]"))
        self.assertEqual(ended.status, 123)
        self.assertEqual(sorted(ended.lines()), ["a 1", "a 2", "a 3", "b 1"])
        self.assertIn(b"wq: a: failed: exit 1 (attempt 3)", ended.err)
        self.assertIn(b"2 keys, 1 ok, 1 failed, 0 left; 0 adds; 2 retries",
                      ended.err)
        self.assertEqual(self.keys("dead"), [b"a"])
        self.assertEqual([event["outcome"] for event in self.events()
                          if event["event"] == "finished" and
                          event["key"] == "a"], ["retry", "retry", "failed"])
        self.done("retry", "a")
        ended = self.wq("work", "-q", "--until-empty", "--retries=0", "sh",
                        "-c", "echo $WQ_ATTEMPT")
        self.assertEqual(ended.lines(), ["1"])

    def test_add_does_not_shorten_the_backoff(self):
        self.done("add", "a")
        process = self.begin("work", "--backoff=1000h,1000h", "--json=events",
                             "--", "false")
        self.await_event(event="finished", key="a", outcome="retry")
        out = self.done("add", "-v", "a", "b")
        self.assertEqual(out.split(), [b"kept", b"a", b"new", b"b"])
        out = self.done("add", "-v", "--debounce=1ms", "a")
        self.assertEqual(out.split(), [b"kept", b"a"])
        self.await_event(event="finished", key="b", outcome="retry")
        self.done("add", "--retry-on-add", "a")
        self.await_event(event="finished", key="a", attempt=2)
        process.terminate()
        self.ended(process)
        self.assertEqual(self.finished("key"), ["a", "b", "a"])

    def test_add_during_a_run_does_not_shorten_the_backoff(self):
        for code in (1, 2):
            with self.subTest(code):
                self.write("events", b"")
                key = "k%d" % code
                gate = self.fifo("gate." + key)
                process = self.begin(
                    "work", "--backoff=1000h,1000h", "--json=events",
                    *self.script("[ %d = 1 ] || echo requeue-after=1000h "
                                 ">&$WQ_RESULT_FD; read x <gate.$1; exit 1"
                                 % code))
                self.done("add", key)
                self.await_event(event="started", key=key)
                self.assertEqual(self.done("add", "-v", key).split(),
                                 [b"dirty", key.encode()])
                os.write(gate, b"go\n")
                end = self.await_event(event="finished", key=key)[0]
                self.assertGreater(end["retry_in"], 1)
                process.terminate()
                self.ended(process)
                self.assertEqual(len(self.finished("key")), 1)

    def test_no_retry_codes_bury_a_key(self):
        self.done("add", "a")
        ended = self.wq("work", "-q", "--until-empty", "--no-retry-codes=65",
                        *self.script("exit 65"))
        self.assertEqual(ended.status, 123)
        self.assertEqual(self.counts(), (0, 0, 0, 1))

    def test_failures_are_counted_across_workers(self):
        self.done("add", "a")
        for attempt in range(1, 4):
            process = self.worker("--backoff=1ms", "--retries=9", script=(
                "echo $WQ_ATTEMPT >>attempts; kill -TERM $PPID; exit 1"))
            self.ends(process, -signal.SIGTERM)
        self.assertEqual(self.read("attempts").split(), [b"1", b"2", b"3"])

    def test_requeue_after_of_a_success(self):
        self.done("add", "a")
        worker = self.worker("--json=events", script=(
            "echo requeue-after=1h >&$WQ_RESULT_FD"))
        event, = self.await_event(event="finished", outcome="requeue")
        self.assertAlmostEqual(event["retry_in"], 3600, delta=60)
        self.assertEqual(self.info("a")["failures"], 0)
        worker.terminate()

    def test_requeue_after_of_a_failure_counts(self):
        self.done("add", "a")
        worker = self.worker("--json=events", "--backoff=1ms", script=(
            "echo requeue-after=1h >&$WQ_RESULT_FD; exit 1"))
        event, = self.await_event(event="finished", outcome="retry")
        self.assertAlmostEqual(event["retry_in"], 3600, delta=60)
        info = self.info("a")
        self.assertEqual((info["failures"], info["states"][0]), (1, "WAITING"))
        self.assertAlmostEqual(info["due_in"], 3600, delta=60)
        worker.terminate()

    def test_requeue_after_of_a_failure_gives_up_in_the_end(self):
        self.done("add", "a")
        ended = self.wq("work", "-q", "--until-empty", "--retries=3", *self.script(
            "echo $WQ_ATTEMPT; echo requeue-after=1ms >&$WQ_RESULT_FD; exit 1"))
        self.assertEqual((ended.status, ended.lines()),
                         (123, ["1", "2", "3", "4"]))
        self.assertEqual(self.counts(), (0, 0, 0, 1))

    def test_result_may_add_keys(self):
        self.done("add", "a")
        ended = self.wq("work", "-q", "--until-empty", *self.script(
            "echo $1; [ $1 = b ] || echo add=b >&$WQ_RESULT_FD"))
        self.assertEqual(ended.lines(), ["a", "b"])

    def test_input_that_is_dead_is_reported(self):
        self.done("add", "a")
        self.shell_prints('wq done --bury "$(wq get)"')
        self.write("file", b"a\n")
        ended = self.wq("work", "--until-empty", "-a", "file", "echo")
        self.assertIn(b"wq: a is DEAD and stays so", ended.err)
        self.assertEqual((ended.status, ended.out), (0, b""))

    # ---- the end -----------------------------------------------------------

    def test_first_signal_lets_runs_finish_and_leaves_the_rest(self):
        self.done("add", "a", "b", "c")
        worker = self.waiting("-P1", "--json=events")
        self.await_begun("a")
        self.signalled(worker, signal.SIGINT, "draining")
        self.let_go("a")
        ended = self.ends(worker, -signal.SIGINT)
        self.assertIn(b"3 keys, 1 ok, 0 failed, 2 left", ended.err)
        self.assertEqual(self.keys("ready"), [b"b", b"c"])

    def test_second_signal_gives_running_keys_back(self):
        self.done("add", "a")
        worker = self.waiting("--json=events")
        self.await_begun("a")
        self.signalled(worker, signal.SIGTERM, "draining")
        worker.send_signal(signal.SIGTERM)
        self.ends(worker, -signal.SIGTERM)
        self.assertEqual(self.info("a")["states"], ["READY"])
        self.assertEqual(self.info("a")["failures"], 0)

    def test_halt_leaves_keys_in_the_queue(self):
        self.done("add", "a", "b")
        ended = self.wq("work", "-q", "--halt=now,fail=1", "--retries=0",
                        "false")
        self.assertEqual(ended.status, 124)
        self.assertEqual(self.counts(), (1, 0, 0, 1))

    def test_missing_command_takes_no_key(self):
        self.done("add", "a")
        self.assertEqual(self.wq("work", "no-such-command").status, 127)
        self.assertEqual(self.counts(), (1, 0, 0, 0))

    def test_until_empty_waits_for_waiting_and_held_keys(self):
        self.done("add", "--after=200ms", "a")
        ended = self.wq("work", "-q", "--until-empty", "echo")
        self.assertEqual(ended.out, b"a\n")
        self.done("add", "b")
        self.done("get")  # by this process
        worker = self.worker("-q", "--until-empty")
        self.assertEqual(self.wq("drain", "--timeout=300ms").status, 124)
        self.assertIsNone(worker.poll())
        self.done("done", "b")
        self.ends(worker)

    def test_killed_worker_gives_its_keys_back(self):
        self.set_short_lease()
        self.done("add", "a", "b", "c")
        worker = self.waiting("-P2")
        self.await_begun("a", "b")
        worker.kill()
        worker.wait()
        self.await_counts(3, 0, 0, 0)
        self.assertEqual(self.info("a")["failures"], 0)
        until(lambda: not is_running(self.pid("a")), "the end of the run")
        ended = self.wq("work", "-q", "--until-empty", "echo")
        self.assertEqual(sorted(ended.lines()), ["a", "b", "c"])

    def test_killed_worker_is_replaced_by_one_that_waits(self):
        self.set_short_lease()
        self.done("add", "a")
        first = self.waiting()
        self.await_begun("a")
        second = self.waiting()
        first.kill()
        self.await_begun("a", "a")
        self.let_go("a")
        self.await_counts(0, 0, 0, 0)
        second.terminate()
        self.ends(second, -signal.SIGTERM)

    # ---- several workers ---------------------------------------------------

    def test_two_workers_share_the_keys(self):
        self.done("add", *"abcdefgh")
        workers = [self.waiting("-P2", "--until-empty") for _ in range(2)]
        self.await_begun(*"abcd")
        for key in "abcdefgh":
            self.let_go(key)
        ended = [self.ends(worker) for worker in workers]
        self.assertEqual(sorted(self.begun()), sorted("abcdefgh"))
        self.assertEqual(sum(int(each.err.split(b" keys, ")[1].split()[0])
                             for each in ended), 8)

    def test_key_never_runs_twice_at_once(self):
        """Handlers of one key would see the directory of each other."""
        script = ('mkdir "lock.$1" || echo twice >>log; '
                  'echo "begin $1" >>log; rmdir "lock.$1"')
        workers = [self.worker("-q", "-P2", script=script) for _ in range(2)]
        for _ in range(30):
            self.done("add", *"abc")
        self.done("drain")
        for worker in workers:
            worker.terminate()
        for worker in workers:
            self.ends(worker, -signal.SIGTERM)
        self.assertEqual({line[0] for line in self.log()}, {"begin"})
        self.assertEqual(self.counts(), (0, 0, 0, 0))

    # ---- the store ---------------------------------------------------------

    def lock_store(self):
        """Another program locks it until its connection is closed."""
        database = sqlite3.connect(self.path("queue.db"),
                                   isolation_level=None)
        database.execute("BEGIN IMMEDIATE")
        return database

    def end_run_while_locked(self):
        """Returns the worker, and the connection that locks the store."""
        self.url += "?busy=50ms"
        self.done("add", "a")
        worker = self.waiting("--json=events")
        self.await_begun("a")
        database = self.lock_store()
        self.let_go("a")
        return worker, database

    @of_sqlite
    def test_result_is_stored_when_the_store_answers_again(self):
        worker, database = self.end_run_while_locked()
        until(lambda: [line for line in self.log() if line[0] == "end"], "end")
        line = worker.stderr.readline()
        self.assertIn(b"wq: cannot store the result of a run: ", line)
        self.assertIn(b"; trying again", line)
        self.assertEqual(self.finished("key"), [])
        database.close()
        self.await_event(event="finished", key="a", outcome="ok")
        self.assertEqual(self.counts(), (0, 0, 0, 0))
        worker.terminate()
        ended = self.ends(worker, -signal.SIGTERM)
        self.assertIn(b"wq: the queue answers again\n", ended.err)
        self.assertEqual(self.begun(), ["a"])

    @of_sqlite
    def test_input_waits_for_the_store(self):
        self.url += "?busy=50ms"
        self.done("add", "a")
        worker = self.worker("-a", "-", "--until-empty",
                             stdin=subprocess.PIPE)
        self.await_counts(0, 0, 0, 0)
        database = self.lock_store()
        self.feed(worker, b"b\nc\n", end=False)
        self.assertRegex(worker.stderr.readline(), CANNOT_ADD)
        self.feed(worker, b"d\n")
        database.close()
        ended = self.ends(worker)
        self.assertEqual(sorted(self.begun()), ["a", "b", "c", "d"])
        self.assertIn(b"4 keys, 4 ok, 0 failed, 0 left; 3 adds", ended.err)

    @of_sqlite
    def test_input_that_could_not_be_added_is_an_error(self):
        self.url += "?busy=50ms"
        worker = self.worker("-a", "-", "--json=events",
                             stdin=subprocess.PIPE)
        until(lambda: os.path.exists(self.path("queue.db")) and self.status(),
              "the queue")
        database = self.lock_store()
        self.feed(worker, b"b\nc\n", end=False)
        self.assertRegex(worker.stderr.readline(), CANNOT_ADD)
        for phase in ("draining", "stopping", "killing"):
            self.signalled(worker, signal.SIGTERM, phase)
        database.close()
        self.assertIn(b"wq: cannot add b and 1 more: the queue does not answer",
                      self.ends(worker, 125).err)

    @of_sqlite
    def test_last_signal_does_not_wait_for_the_store(self):
        worker, database = self.end_run_while_locked()
        self.assertIn(b"cannot store the result", worker.stderr.readline())
        for phase in ("draining", "stopping", "killing"):
            self.signalled(worker, signal.SIGTERM, phase)
        ended = self.ends(worker, -signal.SIGTERM)
        self.assertIn(b"wq: a: cannot store its result: it will run again",
                      ended.err)
        database.close()
        self.await_counts(1, 0, 0, 0)

    def delete_store(self):
        for name in os.listdir(self.path("")):
            if name.startswith("queue.db") and name != "queue.db-wq":
                os.unlink(self.path(name))
        shutil.rmtree(self.path("queue.db-wq"))

    @of_sqlite
    def test_idle_worker_ends_when_its_file_is_deleted(self):
        """Also if there is another file in its place: its keys are not seen."""
        worker = self.worker("-q")
        self.done("add", "a")
        self.await_counts(0, 0, 0, 0)
        self.delete_store()
        self.done("add", "b")
        ended = self.ends(worker, 125)
        self.assertRegex(ended.err, b"^wq: cannot get a key: .* deleted or "
                                    b"replaced .*\n$")
        self.assertEqual(self.begun(), ["a"])
        self.assertEqual(self.counts(), (1, 0, 0, 0))

    @of_sqlite
    def test_last_run_ends_when_its_file_is_deleted(self):
        self.done("add", "a")
        worker = self.waiting("-q")
        self.await_begun("a")
        self.delete_store()
        self.let_go("a")
        ended = self.ends(worker, 125)
        self.assertIn(b"wq: cannot store the result of a run: ", ended.err)
        self.assertIn(b"wq: a: cannot store its result\n", ended.err)
        self.assertNotIn(b"trying again", ended.err)

    def test_lost_hold_stops_the_run(self):
        """A worker that is stopped for longer than its lease loses its key."""
        self.set_lease("300ms")
        self.done("add", "a")
        first = self.waiting("--json=events")
        self.await_begun("a")
        first.send_signal(signal.SIGSTOP)
        second = self.waiting("-q")
        self.await_begun("a", "a")  # by the second
        run = self.log()[0][3]
        first.send_signal(signal.SIGCONT)
        self.await_event(event="finished", key="a", outcome="lost")
        self.assertFalse(is_running(int(run)))
        self.let_go("a")
        self.await_counts(0, 0, 0, 0)
        first.terminate()
        second.terminate()
        self.assertIn(b"wq: a: its hold was lost: another worker may run it",
                      self.ends(first, -signal.SIGTERM).err)

    # ---- handlers ----------------------------------------------------------

    def test_handler_can_add_to_the_same_queue(self):
        self.install()
        if STORE == "sqlite":
            self.url = "sqlite:queue.db"  # relative
        self.set_option("queue=mail")
        self.done("add", "a")
        ended = self.wq("work", "-q", "--until-empty", *self.script(
            'cd / && echo "$1 $WQ_NAME $WQ_QUEUE"; '
            'case $1 in a) wq add b;; esac'))
        self.assertEqual(ended.err, b"")
        url = (self.url if STORE == "redis" else
               "sqlite:%s?queue=mail" % self.path("queue.db"))
        self.assertEqual(ended.lines(), ["a mail " + url, "b mail " + url])

    def test_name_can_be_chosen(self):
        self.done("add", "a")
        ended = self.wq("work", "-q", "--until-empty", "--name=mine", "sh",
                        "-c", "echo $WQ_NAME")
        self.assertEqual(ended.lines(), ["mine"])

    def test_run_in_memory_leaves_the_variable_alone(self):
        self.install()
        ended = self.wq("run", "-q", "sh", "-c", 'wq add "x$1"; echo $WQ_NAME',
                        "sh", keys=b"a\n")
        self.assertEqual((ended.status, ended.out, ended.err),
                         (0, b"run\n", b""))
        self.assertEqual(self.keys(), [b"xa"])
        ended = self.wq("run", "-q", "--retries=0", "--", "wq", "add",
                        keys=b"a\n", env={"WQ_QUEUE": ""})
        self.assertIn(b"wq: add: no queue given", ended.err)

    # ---- watching ----------------------------------------------------------

    def test_metrics_of_a_shared_queue(self):
        self.need_page()
        self.set_option("queue=mail")
        self.done("add", "a", "b")
        worker = self.waiting(self.listen())
        self.await_begun("a")
        text = self.fetch("/metrics")
        self.assertIn(b'\nworkqueue_depth{name="mail"} 1\n', text)
        self.assertIn(b'\nwq_run_running{name="mail"} 1\n', text)
        view = json.loads(self.fetch("/view?show=all"))
        self.assertEqual(view["queue"], "mail")
        self.assertEqual([(row["key"], row["state"])
                          for row in view["keys"]["rows"]],
                         [("a", "running"), ("b", "ready")])
        self.let_go("a")
        self.let_go("b")
        self.await_counts(0, 0, 0, 0)
        worker.terminate()

    def test_dead_keys_are_served(self):
        self.need_page()
        self.done("add", "x", "y")
        self.assertEqual(self.wq("work", "-q", "--until-empty", "--retries=0",
                                 "false").status, 123)
        self.done("add", "a", "b")
        worker = self.waiting("--retries=0", self.listen())
        self.await_begun("a")
        self.let_go("a", 4)
        self.await_begun("a", "b")
        self.await_counts(0, 1, 0, 3)
        self.assertIn(b'\nwq_run_dead{name="default"} 3\n', self.fetch("/metrics"))
        view = json.loads(self.fetch("/view?show=dead"))
        self.assertEqual((view["counts"]["dead"], view["keys"]["matched"]),
                         (3, 3))
        rows = {row["key"]: row for row in view["keys"]["rows"]}
        self.assertEqual({row["state"] for row in rows.values()}, {"dead"})
        self.assertEqual(set(rows), set("xya"))
        self.assertEqual(rows["a"]["failure"]["exit"], 4)
        self.assertNotIn("failure", rows["x"])  # another worker knows why
        self.assertEqual([row["key"] for row in view["failed"]], ["a"])
        view = json.loads(self.fetch("/view"))
        self.assertEqual([row["state"] for row in view["keys"]["rows"]],
                         ["running", "dead", "dead", "dead"])
        self.let_go("b")
        worker.terminate()

    def test_workers_append_to_their_joblog(self):
        for key in "ab":
            self.done("add", key)
            self.wq("work", "-q", "--until-empty", "--joblog=log", "true")
        self.assertEqual([line.split(b"\t")[-1] for line in
                          self.read("log").splitlines()],
                         [b"Command", b"true a", b"true b"])

    def test_events_are_json(self):
        self.done("add", b"\xff")
        out = self.wq("work", "-q", "--until-empty", "--json", "true").out
        events = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([event["event"] for event in events if "key" in event],
                         ["started", "finished"])
        self.assertEqual(events[-1]["ok"], 1)


if __name__ == "__main__":
    main()
