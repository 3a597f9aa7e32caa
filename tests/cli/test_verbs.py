# SPDX-License-Identifier: MIT
"""What do the verbs of a shared queue do, and what do they print?"""

import json
import os
import subprocess

from program import PROGRAM, TIMEOUT, main, open_terminal, until
from shared import STORE, Shared, of_sqlite

HOSTILE = b"new\nline \x1b[31mred\x07 \xff\xfe \xe2\x80\xae \xc3\xa9"

VERBS = {  # and operands that suffice
    "work": ("true",), "add": ("a",), "get": (), "done": ("a",), "status": (),
    "list": (), "show": ("a",), "remove": ("a",), "retry": ("a",), "drain": (),
    "fsck": ()}


class Add(Shared):
    def test_add_prints_nothing(self):
        self.assertEqual(self.done("add", "a", "b"), b"")
        self.assertEqual(self.keys("ready"), [b"a", b"b"])

    def test_added_key_is_merged(self):
        self.assertEqual(self.done("add", "-v", "a", "b", "a"),
                         b"new        a\nnew        b\nmerged     a\n")
        self.assertEqual(self.json("add", "a", "c"),
                         [{"key": "a", "how": "merged", "priority": 0},
                          {"key": "c", "how": "new", "priority": 0}])

    def test_keys_may_come_from_stdin_and_files(self):
        self.write("file", b"c\nd\n\n")
        self.done("add", keys=b"a\nb")
        self.done("add", "-a", "file")
        self.done("add", "-0", keys=b"e\nf\0g\0")
        self.done("add", "-d", ",", "-a", "-", "h", keys=b"i,j")
        self.assertEqual(self.keys(), [b"a", b"b", b"c", b"d", b"e\nf", b"g",
                                       b"h", b"i", b"j"])

    def test_json_lines_have_priority_and_delay(self):
        self.done("add", "--input=jsonl", "--priority=3",
                  keys=b'"a"\n{"key":"b","priority":7}\n'
                       b'{"key_base64":"/w==","after":"1h"}\n')
        self.assertEqual(self.info("a")["priority"], 3)
        self.assertEqual(self.info("b")["priority"], 7)
        self.assertEqual(self.keys("waiting"), [b"\xff"])

    def test_after_and_debounce_make_a_key_wait(self):
        self.done("add", "--after=1h", "a")
        self.done("add", "--debounce=2h", "b")
        self.assertEqual(self.counts(), (0, 0, 2, 0))
        self.assertAlmostEqual(self.info("a")["due_in"], 3600, delta=60)
        self.assertAlmostEqual(self.info("b")["due_in"], 7200, delta=60)
        self.assertEqual(self.json("add", "--debounce=3h", "b")[0]["how"],
                         "later")

    def test_many_keys_are_added_in_few_steps(self):
        keys = b"".join(b"key%d\n" % i for i in range(20000))
        ended = self.wq("add", keys=keys)
        self.assertEqual((ended.status, ended.err), (0, b""))
        self.assertEqual(self.status()["ready"], 20000)

    def test_line_of_a_slow_producer_is_added_at_once(self):
        process = self.begin("add", stdin=subprocess.PIPE)
        self.feed(process, b"a\nb", end=False)
        self.await_queue()
        self.await_counts(1, 0, 0, 0)
        self.feed(process, b"c\n")
        self.assertEqual(process.wait(TIMEOUT), 0)
        self.assertEqual(self.keys(), [b"a", b"bc"])

    def test_what_is_not_a_key_is_reported(self):
        self.assertIn("stdin:1: the key contains a NUL",
                      self.refused("add", status=123, keys=b"a\0b\nc\n"))
        self.assertIn("add: a key is empty",
                      self.refused("add", "", "d", status=123))
        self.assertIn("longer than 65536",
                      self.refused("add", "-a", "-", status=123,
                                   keys=b"x" * 65537))
        self.assertEqual(self.keys(), [b"c", b"d"])
        self.assertIn("add: cannot read no/file: No such file",
                      self.refused("add", "-a", "no/file"))

    def test_dash_is_a_key_and_reported(self):
        ended = self.wq("add", "-", keys=b"a\nb\n")
        self.assertEqual((ended.status, ended.err),
                         (0, b"wq: add: '-' is taken as a key; name no key to "
                             b"read keys from stdin\n"))
        self.assertEqual(self.keys(), [b"-"])

    def test_dead_key_is_not_added(self):
        self.done("add", "a")
        self.make_dead("a")
        self.assertEqual(
            self.refused("add", "a", status=1),
            "wq: add: a is DEAD and stays so; wq retry makes it READY")
        ended = self.wq("add", "--json", "a", "b")
        self.assertEqual([json.loads(line)["how"] for line in ended.lines()],
                         ["dead", "new"])

    def make_dead(self, key):
        self.shell_prints('wq done --bury "$(wq get)"')
        self.assertEqual(self.keys("dead"), [key.encode()])


class Look(Shared):
    def setUp(self):
        super().setUp()
        self.done("add", "a", "b")
        self.done("add", "--after=1h", "--priority=-3", "w")
        self.shell_prints('wq done --bury "$(wq get)"')  # a

    def test_status_counts_keys(self):
        server = ["server   %s, %s, primary" % (
            self.server.path, self.server.version())] if self.server else []
        self.assertEqual(self.done("status").decode().splitlines(), [
            "queue    " + self.url, *server,
            "READY           1",
            "HELD            0",
            "WAITING         1  the next in 59m59s",
            "DEAD            1  see wq list --state=dead, wq retry"])
        status = self.status()
        self.assertAlmostEqual(status.pop("next_in"), 3600, delta=60)
        if self.server:
            server = status.pop("server")
            self.assertAlmostEqual(server.pop("lease_left"), 30, delta=30)
            self.assertEqual(server, {
                "reachable": True, "reconnects": 0, "role": "primary",
                "name": self.server.path,
                "version": self.server.version()})
        self.assertEqual(status, {
            "queue": self.url, "name": "default", "ready": 1, "held": 0,
            "dirty": 0, "waiting": 1, "dead": 1, "known": 3, "holders": 0})

    def test_list_has_a_line_for_each_key(self):
        heading, *lines = self.done("list").decode().splitlines()
        self.assertEqual(heading.split(), ["STATE", "NOTE", "PRIORITY",
                                           "FAILURES", "SINCE", "DUE", "KEY"])
        rows = {line.split()[-1]: line.split() for line in lines}
        self.assertEqual(rows["a"], ["DEAD", "0", "1", "a"])
        self.assertEqual(rows["b"][:3], ["READY", "0", "0"])
        self.assertEqual(rows["w"], ["WAITING", "-3", "0", "59m59s", "w"])
        ends = {line.rindex(line.split()[-1]) for line in lines}
        self.assertEqual(ends, {heading.index("KEY")})  # aligned

    def test_list_is_sorted_for_people(self):
        """A store visits keys in any order."""
        for key in ("c", "d", "e"):
            self.done("add", key)
        self.done("add", "--priority=2", "first")
        self.done("add", "--after=50m", "v")
        self.done("add", "--after=90m", "x")
        lines = self.done("list").decode().splitlines()[1:]
        self.assertEqual([line.split()[-1] for line in lines],
                         ["first", "b", "c", "d", "e", "v", "w", "x", "a"])

    def test_list_selects_states(self):
        self.assertEqual(self.keys("ready"), [b"b"])
        self.assertEqual(self.keys("dead", "waiting"), [b"a", b"w"])
        self.assertEqual(self.keys("held"), [])
        self.assertIn("--state: 'reddy' is not a list of states; accepted: "
                      "ready, held", self.refused("list", "--state=reddy"))
        self.assertEqual({each["key"]: each["states"]
                          for each in self.json("list")},
                         {"a": ["DEAD"], "b": ["READY"], "w": ["WAITING"]})

    def test_show_tells_all_about_a_key(self):
        lines = self.done("show", "w").decode().splitlines()
        self.assertEqual(lines, ["key        w", "states     WAITING",
                                 "priority   -3", "failures   0",
                                 "due in     59m59s"])
        self.assertEqual(self.info("b")["states"], ["READY"])

    def test_show_tells_how_many_holders_died(self):
        self.set_short_lease()
        self.set_option("max_expiries=1")
        self.shell("wq get; kill -9 $$").wait(TIMEOUT)
        self.await_counts(0, 0, 1, 2)  # a failed, b killed its holder
        self.assertEqual(self.done("show", "b").decode().splitlines(), [
            "key        b", "states     DEAD", "priority   0",
            "failures   0", "expiries   1"])
        self.assertEqual(self.info("b")["expiries"], 1)
        self.assertNotIn("expiries", self.info("a"))

    def test_unknown_key_has_status_1(self):
        self.assertEqual(self.refused("show", "x", status=1),
                         "wq: show: no such key: x")
        self.assertEqual(self.refused("remove", "x", status=1),
                         "wq: remove: no such key: x")
        self.assertEqual(self.refused("retry", "x", status=1),
                         "wq: retry: not a DEAD key: x")
        self.assertEqual(self.refused("retry", "b", status=1),
                         "wq: retry: not a DEAD key: b")

    def test_known_keys_are_shown_beside_an_unknown_one(self):
        ended = self.wq("show", "x", "a", "y", "b")
        self.assertEqual(ended.status, 1)
        self.assertEqual(ended.err, b"wq: show: no such key: x\n"
                                    b"wq: show: no such key: y\n")
        blocks = ended.out.split(b"\n\n")
        self.assertEqual([block.split(b"\n")[0] for block in blocks],
                         [b"key        a", b"key        b"])

    def test_fsck_finds_no_problems(self):
        self.assertEqual(self.done("fsck"), b"no problems\n")
        self.assertEqual(self.done("fsck", "--json"), b"")


class Change(Shared):
    def test_remove_removes_keys(self):
        self.done("add", "a", "b", "c", "d")
        self.assertEqual(self.done("remove", "a"), b"")
        self.assertEqual(self.done("remove", "-v", "b"), b"removed  b\n")
        self.assertEqual(self.done("remove", "-0", "-a", "-", keys=b"c\0"), b"")
        self.assertEqual(self.keys(), [b"d"])

    def test_many_keys_are_removed_in_their_order(self):
        keys = [b"%d" % i for i in range(3000)]
        self.done("add", keys=b"\n".join(keys))
        ended = self.wq("remove", "-v", "-a", "-", keys=b"\n".join(keys[:2000] + [b"x"]))
        self.assertEqual(ended.status, 1)
        self.assertEqual(ended.err, b"wq: remove: no such key: x\n")
        self.assertEqual(ended.out.split(b"\n")[:-1],
                         [b"removed  " + key for key in keys[:2000]])
        self.assertEqual(self.counts(), (1000, 0, 0, 0))

    def test_other_keys_are_removed_if_one_is_missing(self):
        self.done("add", "a", "b")
        ended = self.wq("remove", "a", "x", "b")
        self.assertEqual(ended.status, 1)
        self.assertEqual(self.keys(), [])

    def test_retry_revives_dead_keys(self):
        self.done("add", "a", "b", "c")
        self.shell_prints("for key in $(wq get -n 3); do "
                          'wq done --bury "$key"; done')
        self.assertEqual(self.counts(), (0, 0, 0, 3))
        self.done("retry", "b")
        self.assertEqual(self.keys("ready"), [b"b"])
        self.assertEqual(sorted(self.done("retry", "-v", "--all").split()),
                         [b"a", b"c", b"ready", b"ready"])
        self.assertEqual(self.counts(), (3, 0, 0, 0))
        self.assertEqual(self.done("retry", "--all"), b"")

    def test_what_list_prints_can_be_removed(self):
        self.done("add", "-0", keys=HOSTILE + b"\0x\0")
        out = self.done("list", "-0", "--state=ready")
        self.done("remove", "-0", "-a", "-", keys=out)
        self.assertEqual(self.keys(), [])


class Drain(Shared):
    def test_drain_of_an_idle_queue_ends_at_once(self):
        self.done("add", "--after=1h", "a")
        self.done("drain")

    def test_drain_times_out(self):
        self.done("add", "a", "b")
        self.assertEqual(
            self.refused("drain", "--timeout=50ms", status=124),
            "wq: drain: timed out: 2 READY, 0 HELD")

    def test_drain_waits_for_workers(self):
        self.done("add", "a")
        gate = self.fifo("gate")
        worker = self.worker(script="echo begin >>log; read x <gate")
        until(self.log, "the run")
        drain = self.begin("drain")
        self.assertEqual(self.wq("drain", "--timeout=0").status, 124)
        self.assertIsNone(drain.poll())
        os.write(gate, b"\n")
        self.assertEqual(drain.wait(TIMEOUT), 0)
        worker.terminate()


class Hostile(Shared):
    def test_hostile_keys_are_printable_for_people(self):
        self.done("add", "-0", keys=HOSTILE + b"\0")
        for verb in (("list",), ("show", HOSTILE), ("add", "-v", HOSTILE),
                     ("remove", "-v", HOSTILE)):
            out = self.done(*verb)
            self.assertNotRegex(out, rb"[\x00-\x09\x0b-\x1f\x7f]|\xff|\x80\xae")
            self.assertIn(b"new\\nline \\x1b[31mred\\x07 \\xff\\xfe \\u202e ",
                          out)
        self.assertNotRegex(self.wq("show", HOSTILE).err.rstrip(b"\n"),
                            rb"[\x00-\x1f\x7f]|\xff")

    def test_hostile_keys_are_exact_for_programs(self):
        self.done("add", "-0", keys=HOSTILE + b"\0")
        self.assertEqual(self.keys(), [HOSTILE])
        line, = self.done("list", "--json").splitlines()
        self.done("remove", HOSTILE)
        self.done("add", "--input=jsonl", keys=line)
        self.assertEqual(self.keys(), [HOSTILE])
        self.assertIn("key_base64", json.loads(line))

    def colors(self, **env):
        """What `wq list` writes to a terminal."""
        self.done("add", "a\x1b[1m")
        ours, theirs = open_terminal()
        with open(theirs, "wb") as stdout:
            subprocess.run([PROGRAM, "list"], stdout=stdout, check=True,
                           env=self.environment({"TERM": "xterm",
                                                 "NO_COLOR": "", **env}))
        out = b""
        try:
            while True:
                out += os.read(ours, 65536)
        except OSError:  # no writer is left
            pass
        os.close(ours)
        self.assertNotIn(b"\x1b[1m", out)
        return b"\x1b[" in out

    def test_colors_are_for_terminals_that_have_them(self):
        self.assertTrue(self.colors())
        self.assertFalse(self.colors(NO_COLOR="1"))
        self.assertFalse(self.colors(TERM="dumb"))
        self.assertNotIn(b"\x1b", self.done("list"))


class Queues(Shared):
    def test_queues_of_one_file_are_separate(self):
        self.done("add", "a")
        self.done("add", "--queue=%s?queue=other" % self.url, "b")
        self.assertEqual(self.keys(), [b"a"])
        self.set_option("queue=other")
        self.assertEqual(self.keys(), [b"b"])
        self.assertEqual(self.status()["name"], "other")

    @of_sqlite
    def test_missing_queue_is_reported_with_those_that_exist(self):
        for name in ("mail", "images"):
            self.done("add", "--queue=%s?queue=%s" % (self.url, name), "a")
        for verb in ("fsck", "status", "list"):
            self.assertIn("there is no queue 'default' in '%s'; it has "
                          "'images', 'mail'" % self.path("queue.db"),
                          self.refused(verb))

    def test_option_overrides_the_variable(self):
        self.done("add", "--queue=sqlite:mine.db", "a")
        self.assertTrue(os.path.exists(self.path("mine.db")))
        self.assertEqual(self.wq("get", "--timeout=0").status, 1)

    def test_path_with_unusual_characters(self):
        os.mkdir(self.path("50% ?#"))
        self.install()
        self.assertEqual(self.shell_prints(
            "cd '50% ?#' && WQ_QUEUE=sqlite:q.db && wq add a && "
            "wq list -0 && ls q.db"), ["a\0q.db"])

    @of_sqlite
    def test_verbs_that_look_make_no_file(self):
        for verb in ("status", "list", "show", "remove", "retry", "drain",
                     "fsck", "done"):
            with self.subTest(verb):
                self.assertEqual(
                    self.refused(verb, *VERBS[verb]),
                    "wq: %s: cannot open %s: sqlite: there is no file '%s'; "
                    "the first add to the queue makes it"
                    % (verb, self.url, self.path("queue.db")))
        self.assertEqual(os.listdir(self.dir), [])


@of_sqlite
class Restored(Shared):
    def test_file_that_was_restored_is_counted_anew(self):
        self.done("add", "a", "b", "c")
        path = self.path("queue.db")
        with open(path, "rb") as file:
            copy = file.read()
        self.done("remove", "a", "b", "c")
        with open(path, "r+b") as file:  # as cp does: the same inode
            file.write(copy)
            file.truncate(len(copy))
        self.assertEqual(self.counts(), (3, 0, 0, 0))
        self.assertEqual(self.done("get", "--timeout=0"), b"a\n")


class Refused(Shared):
    def each(self, said, **rest):
        for verb, operands in VERBS.items():
            with self.subTest(verb):
                line = self.refused(verb, *operands, **rest)
                self.assertTrue(line.startswith("wq: %s: " % verb), line)
                self.assertIn(said, line)

    def test_no_queue(self):
        self.each("no queue given; use --queue=URL, or set WQ_QUEUE: for "
                  "example WQ_QUEUE=sqlite:/var/lib/me/queue.db, or "
                  "redis://HOST/0?queue=NAME for several machines",
                  env={"WQ_QUEUE": ""})

    def test_queue_in_memory(self):
        self.each("mem: is the memory of one process",
                  env={"WQ_QUEUE": "mem:"})

    def test_bad_url(self):
        self.each("WQ_QUEUE is not the URL of a queue",
                  env={"WQ_QUEUE": "/var/lib/queue"})
        self.assertIn("--queue: 'queue.db' is not the URL of a queue; "
                      "accepted: sqlite:PATH",
                      self.refused("add", "--queue=queue.db", "a"))
        self.assertIn("there is no option 'what'",
                      self.refused("add", "--queue=%s?what=1" % self.url, "a"))
        self.assertIn("option 'queue' is twice in the URL",
                      self.refused("add", "--queue=%s?queue=a&queue=b"
                                   % self.url, "a"))
        self.assertIn("use sqlite:PATH",
                      self.refused("add", "--queue=sqlite://x.db", "a"))
        for option in ("lease=", "lease=1x"):
            self.assertIn("%s in the URL: use a duration such as 200ms, 5s, "
                          "1h30m, or a number of seconds" % option,
                          self.refused("add", "--queue=%s?%s" %
                                       (self.url, option), "a"))

    def test_duration_in_the_url_may_be_a_sum_or_seconds(self):
        for duration in ("5", "1.5s", "1h30m", "1d"):
            with self.subTest(duration):
                self.done("add", "--queue=%s?lease=%s" % (self.url, duration),
                          "a")

    def test_unknown_backend(self):
        for verb, operands in VERBS.items():
            if verb not in ("get", "done"):
                with self.subTest(verb):
                    self.assertIn(
                        "wq: %s: cannot open kafka://h/: " % verb,
                        self.refused(verb, "--queue=kafka://h/", *operands))

    def test_passwords_are_not_shown(self):
        for verb, operands in VERBS.items():
            for url in ("kafka://me:geheim@h/", "redis://:geheim@[::1]:1",
                        "postgres://me:ge@heim@h/x", "redis://h?password=geheim",
                        "redis://h/?x=1&password=geheim&y=2",
                        "rediss://me:geheim@127.0.0.1:1", "Redis://me:geheim@h/",
                        "redis://me:geheim", "redis://me:ge/heim?queue=q",
                        "redis+sentinel://h:1,[::1]:2,me:geheim/x"):
                with self.subTest(verb + " " + url):
                    line = self.refused(verb, "--queue=" + url, *operands)
                    self.assertNotIn("heim", line)
                    self.assertIn("***", line)

    def test_every_form_of_a_password_is_hidden(self):
        for url, shown in (
                ("redis://me:geheim@localhost:1/0?password=geheim",
                 "redis://me:***@localhost:1/0?password=***"),
                ("redis://h/0?sentinel_password=geheim",
                 "redis://h/0?sentinel_password=***"),
                ("redis+unix:///tmp/x?user=a&password=b&password=geheim&db=1",
                 "redis+unix:///tmp/x?user=a&password=***&password=***&db=1"),
                ("redis://h?Password=geheim", "redis://h?Password=***"),
                ("redis://h?pasword=geheim", "redis://h?pasword=***"),
                ("redis://h?PASSWD=geheim&queue=q",
                 "redis://h?PASSWD=***&queue=q"),
                ("redis://h?password=ge&heim", "redis://h?password=***&***"),
                ("redis://h:1?password=ge@heim", "redis://***: "),
                ("redis://me:ge?heim@h/0", "redis://***: "),
                ("redis://h?password=%zzgeheim", "redis://h?password=***"),
                ("redis://h?p%61ssword=geheim", "redis://h?***"),
                ("redis://h?password:geheim", "redis://h?***"),
                ("redis://h?geheim", "redis://h?***"),
                ("redis://h?auth=geheim&pwd=geheim&queue=q",
                 "redis://h?auth=***&pwd=***&queue=q"),
                ("redis://h?queue=q?password=geheim", "redis://h?queue=***"),
                ("redis://h?queue=q,password=geheim", "redis://h?queue=***"),
                ("redis://h?queue=q password=geheim", "redis://h?queue=***"),
                ("redis://h?lease=3;pwd=geheim", "redis://h?lease=***"),
                ("redis://h?password_file=/no/a;password=geheim",
                 "redis://h?password_file=***"),
                ("redis://h?password_file=/no/a,password=geheim",
                 "redis://h?password_file=***"),
                ("redis://h?user=me:geheim", "redis://h?user=***"),
                ("redis://h/0&password=geheim", "redis://h/***: "),
                ("redis://h&password=geheim", "redis://***: "),
                ("redis://h:6379,password=geheim,ssl=True",
                 "redis://h:6379,***,***: "),
                ("redis://me:geheim:h:1/0", "redis://***/0"),
                ("redis://me:geheim", "redis://***: "),
                ("redis:///me:geheim", "redis:///***: "),
                ("redis://localhost:1/:geheim", "redis://localhost:1/***: "),
                ("redis://localhost:1/0:geheim", "redis://localhost:1/***: "),
                ("redis+sentinel://h.invalid/main:geheim",
                 "redis+sentinel://h.invalid/***: "),
                ("redis+sentinel://h.invalid/main/geheim",
                 "redis+sentinel://h.invalid/***: "),
                ("redis+unix:///no/socket&password=geheim",
                 "redis+unix:///***: "),
                ("redis+unix:///no/socket;password=geheim",
                 "redis+unix:///***: "),
                ("redis+unix://me:geheim@/no/socket",
                 "redis+unix://me:***@/no/socket"),
                ("redis:me:geheim@h.invalid/0", "redis:***: "),
                ("redis:/me:geheim@h.invalid/0", "redis:***: "),
                ("redis:me:geheim", "redis:***: "),
                ("redis//me:geheim@h.invalid", "redis//me:***"),
                (" redis://me:geheim@h.invalid", "'***'"),
                ("me:geheim@h", "me:***: "),
                ("geheim@h", "'***'"),
                ("ge!heim@h", "'***'"),
                ("geheim&3@h", "'***'"),
                ("redis://me:123456", "redis://***: "),
                ("Me:geheim@h", "'Me:***'"),
                ("//me:ge://heim@h/0", "'//me:***'"),
                ("kafka:me:geheim@h/a", "kafka:***: "),
                ("kafka://me:geheim@h/a", "kafka://me:***@h/***: "),
                ("redis://h/?" + 2000 * "&", "redis://h/?&&"),
                ("redis://h/?" + 2000 * "a&", "redis://h/?***&***"),
                ("redis://me:geheim" + 3000 * "x" + "@h/0",
                 "redis://me:***@h/0"),
                ("mem:?password=geheim", None),
                ("sqlite:/no/a?pass=geheim", "sqlite:/no/a?pass=***")):
            for option in ("--queue=", "--queues="):
                with self.subTest(option + url):
                    line = self.refused("status", option + url)
                    self.assertNotIn("heim", line)
                    if shown and option == "--queue=":
                        self.assertIn(shown, line)

    def test_word_before_the_verb_is_not_shown(self):
        for words in (("--queue=redis://me:geheim@h", "status"),
                      ("redis://me:geheim@h",), ("help", "redis://me:geheim@h"),
                      ("status", "--json=redis://me:geheim@h"),
                      ("status", "--queuedredis://me:geheim@h")):
            with self.subTest(words):
                ended = subprocess.run([PROGRAM, *words], timeout=TIMEOUT,
                                       capture_output=True, check=False)
                self.assertEqual(ended.returncode, 125)
                self.assertNotIn(b"heim", ended.stdout + ended.stderr)

    def test_url_without_a_password_is_shown_as_it_is(self):
        for url in ("redis+unix:///tmp/no/c?queue=q&password_file=/no",
                    "sqlite:/no/a:b@c/d.db", "sqlite:/no:a@b/&pass=c.db",
                    "redis://agent@h.invalid:1/1?queue=q",
                    "redis://[::1]:1/1?user=a", "kafka://h:1,i:2/",
                    "redis+sentinel://h.invalid,[::1]:1/main/3?sentinel_user=a",
                    "redis://h.invalid?lease=1h30m&timeout=1.5&max_expiries=2"
                    "&replicas=1&replicas_timeout=1ms&partitions=2&user=me"
                    "&ca_file=/no/a&cert_file=/no/b&key_file=/no/c&db=1"
                    "&sentinel_user=b&sentinel_password_file=/no/~d"):
            with self.subTest(url):
                self.assertIn("cannot open %s: " % url,
                              self.refused("status", "--queue=" + url))

    def test_scheme_alone_is_no_url(self):
        for url in ("redis+", "rediss", "sqlite", ""):
            with self.subTest(url):
                self.assertIn("'%s' is not the URL of a queue" % url if url
                              else "--queue",
                              self.refused("status", "--queue=" + url))

    def test_get_and_done_need_a_store_that_holds_keys(self):
        for verb in ("get", "done"):
            self.assertIn(
                "only queues in SQLite (sqlite:PATH) and Redis (redis://HOST) "
                "can hold a key for",
                self.refused(verb, "--queue=kafka://h/", *VERBS[verb]))

    @of_sqlite
    def test_not_a_database(self):
        self.write("queue.db", b"This is a letter to my mother.\n" * 100)
        self.each("cannot open %s: " % self.url)
        self.assertEqual(self.read("queue.db")[:16], b"This is a letter")

    @of_sqlite
    def test_directory_that_does_not_exist(self):
        self.url = "sqlite:" + self.path("no/queue.db")
        self.each("cannot open %s: " % self.url)

    def test_wrong_operands(self):
        for arguments, said in (
                (("status", "a"), "takes no operands"),
                (("list", "a"), "takes no operands"),
                (("show",), "no KEY given"), (("done",), "no KEY given"),
                (("remove",), "no KEY given"), (("retry",), "no KEY given"),
                (("retry", "--all", "a"), "cannot be combined with keys"),
                (("done", "--retry", "--after=1s", "a"), "--after is for"),
                (("add", "--after=1s", "--debounce=1s", "a"),
                 "cannot be combined"),
                (("work",), "no COMMAND given"),
                (("get", "--count=0"), "is not a count"),
                (("get", "--holder=me"), "is not a process id"),
                (("work", "--pending-file=x", "true"), "unknown option"),
                (("work", "--dry-run", "true"), "unknown option"),
                (("run", "--queue=" + self.url, "--pending-file=x", "true"),
                 "keys that are left stay in the queue"),
                (("run", "--queue=" + self.url, "--dry-run", "true"),
                 "it would take the keys"),
                (("run", "--until-empty", "true"), "needs --queue=URL")):
            with self.subTest(arguments):
                self.assertIn(said, self.refused(*arguments))
        if STORE == "sqlite":
            self.assertFalse(os.path.exists(self.path("queue.db")))

    def test_full_disk_is_reported(self):
        self.done("add", "a")
        with open("/dev/full", "wb") as full:
            self.assertIn(b"list: cannot write to stdout: No space",
                          self.cannot_print(full, "list"))


if __name__ == "__main__":
    main()
