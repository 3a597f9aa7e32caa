# SPDX-License-Identifier: MIT
"""What if the API server misbehaves? After each the world converges, and no
object is ever written by two workers at once (controlled.py checks that)."""

import random
import time

from controlled import Controlled, main, until


class Watches(Controlled):
    def test_watch_that_is_cut_goes_on_after_its_last_event(self):
        self.started()
        self.server.create("late", 7)
        self.converge()
        until(lambda: self.metric("widgets_watch_events_total") >= 7,
              "the events of the write")
        watches = self.server.count("watch")
        version = str(self.server.version)
        self.server.cut()
        until(lambda: self.server.count("watch") > watches, "a new watch")
        self.assertEqual(
            self.server.queries("watch")[watches]["resourceVersion"], version)
        self.change_all()
        self.converge()
        self.assertEqual(self.server.count("list"), 1)

    def test_changes_made_while_the_watch_is_away_are_seen(self):
        self.started()
        self.server.refuse("watch", 503, times=3)
        self.server.cut()
        self.change_all()
        self.converge()
        self.assertEqual(self.server.count("list"), 1)

    def test_watch_of_a_forgotten_version_lists_again(self):
        self.started()
        for as_event in (False, True):
            with self.subTest(as_event=as_event):
                lists = self.server.count("list")
                self.server.gone_as_event = as_event
                self.server.forget()
                self.server.cut()
                until(lambda n=lists: self.server.count("list") > n, "a list")
                self.change_all()
                self.converge()

    def test_deletes_missed_while_away_are_found_by_the_list(self):
        self.started(30, "--page=7")
        self.server.refuse("watch", 500, times=5)
        self.server.cut()
        for i in range(0, 30, 3):
            self.server.delete("w%d" % i)
        self.server.create("new", 3)
        self.server.forget()
        until(lambda: self.metric("widgets_objects") == 21,
              "the store to forget ten objects")
        self.converge()

    def test_half_an_event_is_read_again_whole(self):
        self.started()
        self.server.spoil_next("half")
        self.server.resize("w1", 77)
        self.converge()
        self.assertGreaterEqual(self.server.count("watch"), 2)
        self.assertEqual(self.server.count("list"), 1)

    def test_event_sent_twice_runs_once(self):
        self.started()
        before = self.runs()
        self.server.spoil_next("twice")
        self.server.resize("w1", 77)
        self.converge()
        until(lambda: self.metric("widgets_watch_events_total") == 8,
              "two events, one of them twice")
        self.assertLessEqual(self.runs() - before, 2)
        self.assertEqual(self.server.writes["default/w1"], 2)

    def test_old_event_does_not_bring_a_deleted_object_back(self):
        self.started()
        self.server.delete("w0")  # its creation is the first event of the log
        until(lambda: self.metric("widgets_objects") == 4, "the delete")
        self.server.spoil_next("old")
        self.server.resize("w1", 77)
        self.converge()
        self.server.resize("w2", 78)
        self.converge()
        self.assertEqual(self.metric("widgets_objects"), 4)

    def test_garbage_and_errors_in_the_watch_end_it(self):
        self.started()
        for spoil in ("garbage", "error"):
            with self.subTest(spoil):
                watches = self.server.count("watch")
                self.server.spoil_next(spoil)
                self.change_all()
                self.converge()
                self.assertGreater(self.server.count("watch"), watches)

    def test_silent_watch_is_replaced(self):
        self.started(5, "--silence=0.3")
        self.server.silent = True
        self.server.cut()
        self.watching()
        self.change_all()
        watches = self.server.count("watch")
        until(lambda: self.server.count("watch") > watches + 1,
              "watches that are given up")
        self.assertFalse(self.server.converged())
        self.server.silent = False
        self.converge()
        self.assertIn("the server was silent for too long", self.log())

    def test_watch_goes_on_after_a_bookmark(self):
        self.started()
        events = self.metric("widgets_watch_events_total")
        self.server.bookmark()
        until(lambda: self.metric("widgets_watch_events_total") > events,
              "the bookmark")
        until(lambda: self.metric("widgets_watch_events_total") >= 6, "all")
        watches = self.server.count("watch")
        with self.server.changed:
            version = str(self.server.log[-1][0])
        self.server.cut()
        until(lambda: self.server.count("watch") > watches, "a new watch")
        self.assertEqual(
            self.server.queries("watch")[watches]["resourceVersion"], version)

    def test_watch_that_the_server_ends_begins_again(self):
        self.started(5, "--watch-timeout=0.001")  # the server gets 1 second
        until(lambda: self.server.count("watch") >= 3, "three watches")
        self.change_all()
        self.converge()
        self.assertEqual(self.server.count("list"), 1)

    def test_events_arrive_in_any_pieces(self):
        self.serve()
        self.server.pieces = True
        self.start()
        self.watching()
        for i in range(20):
            self.server.create("w%d" % i, i)
        self.server.create("long", 1, annotations={"text": "x" * 100000})
        self.converge()

    def test_very_long_event_is_read(self):
        self.started()
        self.server.create("long", 1, annotations={"text": "x" * 3000000})
        self.converge()
        self.assertEqual(self.server.count("list"), 1)
        self.assertEqual(self.server.count("watch"), 1)


class Refusals(Controlled):
    def test_conflict_is_tried_again(self):
        self.started()
        self.server.refuse("write", 409, times=7)
        self.change_all()
        self.converge()

    def test_server_errors_are_tried_again(self):
        self.serve()
        for i in range(9):
            self.server.create("w%d" % i, i)
        for kind in ("list", "watch", "write"):
            for status in (500, 503, "cut"):
                self.server.refuse(kind, status, times=2)
        self.start("--page=4")
        self.converge()
        self.watching()
        self.change_all()
        self.converge()

    def test_retry_after_is_waited_for(self):
        for kind in ("list", "watch", "write"):
            with self.subTest(kind):
                self.serve()
                self.server.create("w", 1)
                self.server.refuse(kind, 429, Retry_After="1")
                begin = time.monotonic()
                self.start()
                self.converge()
                if kind == "watch":
                    until(lambda: self.server.count("watch") >= 2, "a watch")
                self.assertGreaterEqual(time.monotonic() - begin, 1)
                self.assertEqual(self.server.count(kind), 2)
                self.stop()
                self.server.stop()

    def test_object_that_is_gone_is_forgotten(self):
        self.started()
        self.server.refuse("write", 404)
        before = self.server.count("write")
        self.server.resize("w1", 99)
        until(lambda: self.server.count("write") > before, "the write")
        time.sleep(0.3)  # three times the longest pause before a retry
        self.assertEqual(self.server.count("write"), before + 1)
        self.assertEqual(
            self.metric('workqueue_retries_total{name="widgets"}'), 0)
        self.server.resize("w1", 100)
        self.converge()

    def test_list_whose_next_page_is_gone_begins_again(self):
        self.serve()
        for i in range(25):
            self.server.create("w%02d" % i, i)
        self.server.refuse("list", 410, after=1)
        self.start("--page=10")
        self.converge()
        self.assertEqual(
            ["continue" in query for query in self.server.queries("list")],
            [False, True, False, True, True])

    def test_server_that_is_away_is_waited_for(self):
        self.started()
        for _ in range(2):
            self.server.stop()
            self.change_all()
            time.sleep(0.1)
            self.server.start()
            self.converge()
            self.watching()
        self.assertEqual(self.server.count("list"), 1)


class Storm(Controlled):
    def test_everything_at_once(self):
        seed = random.randrange(1 << 30)
        print("seed", seed)
        dice = random.Random(seed)
        self.started(40, "--workers=8", "--page=9", "--resync=0.2",
                     "--silence=1")
        server = self.server
        server.write_seconds = 0.002
        faults = [
            server.cut, server.forget, server.bookmark,
            lambda: server.refuse("write", 409, times=3),
            lambda: server.refuse("write", 500, times=3),
            lambda: server.refuse("write", "cut", times=2),
            lambda: server.refuse("list", 500),
            lambda: server.refuse("watch", 500),
            lambda: server.spoil_next("half"),
            lambda: server.spoil_next("twice"),
            lambda: server.spoil_next("old"),
            lambda: server.spoil_next("garbage"),
            lambda: setattr(server, "gone_as_event", dice.random() < 0.5),
            lambda: setattr(server, "pieces", dice.random() < 0.3),
        ]
        made = 0
        for _ in range(300):
            if dice.random() < 0.2:
                dice.choice(faults)()
            key = dice.choice(sorted(server.objects))
            name = key.split("/")[1]
            chance = dice.random()
            if chance < 0.7:
                server.resize(name, dice.randrange(1000))
            elif chance < 0.85:
                server.delete(name)
            else:
                server.create("n%d" % made, dice.randrange(1000))
                made += 1
            time.sleep(dice.random() * 0.005)
        self.converge()
        until(lambda: self.metric("widgets_objects") == len(server.objects),
              "the store to have what the server has")
        self.stop()


if __name__ == "__main__":
    main()
