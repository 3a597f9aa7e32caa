# SPDX-License-Identifier: MIT
"""Does the live page show the state of the program, to all users? In a real
browser."""

import re
import unittest

import browser
from browser import ESCAPE, LEFT, TAB, Browser
from program import exit_skipped, main, until
from watched import Watched, get, metrics

# The number of events that the page has processed.
EVENTS = "return Number(document.body.dataset.events || 0)"

KEYS = """return [...document.querySelectorAll("#rows tr")].map(
    (row) => [...row.cells].map((cell) => cell.textContent))"""


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def start(self, *options, **rest):
        program = Watched("--listen=127.0.0.1:0", *options, **rest)
        self.addCleanup(program.close)
        return program

    def look(self, url):
        """Opens the page."""
        self.browser.open(url + "/")
        self.browser.wait(EVENTS)

    def busy(self):
        """A queue with keys in every state, which does not change."""
        program = self.start(
            "-P2", "--retries=1", "--backoff=1h,1h", "--input=jsonl",
            "--no-retry-codes=3", "--follow", end=False)
        url = program.url()
        for key, code, name in (("good-1", 0, "done_total"),
                                ("good-2", 0, "done_total"),
                                ("bad", 3, "failed_total"),
                                ("flaky", 1, "retrying")):
            wanted = metrics(url)["wq_run_" + name] + 1
            program.add('"%s"' % key)
            program.gate.open(code)
            until(lambda n=name, w=wanted:
                  metrics(url)["wq_run_" + n] == w, name)
        for line in ('"run-1"', '"run-2"', '"Ready-1"', '"ready-2"',
                     '"ready-2"', '{"key":"later","after":"2h"}'):
            program.add(line)
        until(lambda: metrics(url)["workqueue_depth"] == 2 and
              metrics(url)["workqueue_waiting_keys"] == 2, "all is there")
        return program, url

    def until_keys(self, expected):
        """Waits until the table has these keys, in any order."""
        script = """return [...document.querySelectorAll("#rows th")].map(
            (cell) => cell.textContent)"""
        wanted, shown = sorted(expected), None

        def right():
            nonlocal shown
            shown = sorted(self.browser.run(script))
            return shown == wanted
        try:
            until(right, "keys")
        except AssertionError:
            self.assertEqual(shown, wanted)

    ALL = ["run-1", "run-2", "flaky", "later", "Ready-1", "ready-2"]


class Numbers(Page):
    def test_numbers_are_those_of_metrics(self):
        _, url = self.busy()
        self.look(url)
        self.browser.wait("""return document.querySelector(
            '[data-metric="wq_run_running"]').textContent === "2" """)
        tiles = self.browser.run("""return [...document.querySelectorAll(
            "[data-metric]:not([data-unit])")].map(
            (tile) => [tile.dataset.metric, tile.textContent])""")
        values = metrics(url)
        self.assertGreaterEqual(len(tiles), 12)
        for name, text in tiles:
            with self.subTest(name=name):
                self.assertEqual(float(text.replace(",", "")), values[name])
        self.assertEqual(dict(tiles)["wq_run_done_total"], "2")
        self.assertEqual(dict(tiles)["wq_run_failed_total"], "1")

    def test_histograms_are_those_of_metrics(self):
        _, url = self.busy()
        self.look(url)
        text = get(url + "/metrics")[2].decode()
        for id_, name in (("queued", "workqueue_queue_duration_seconds"),
                          ("worked", "workqueue_work_duration_seconds")):
            columns = self.browser.run(
                """return [...document.querySelectorAll(arguments[0])].map(
                (c) => [c.dataset.le, Number(c.dataset.n)])""",
                "#%s .column" % id_)
            buckets, before = {}, 0
            for le, n in re.findall(
                    name + r'_bucket\{.*le="([^"]*)"\} (\d+)', text):
                buckets[float(le)] = int(n) - before
                before = int(n)
            drawn = {float(le.replace("Infinity", "inf")): n
                     for le, n in columns}
            self.assertTrue(drawn)
            self.assertEqual({le: n for le, n in drawn.items() if n},
                             {le: n for le, n in buckets.items() if n})
            self.assertIn("%d in all" % before, self.browser.text(
                "#%s-read" % id_))

    def test_numbers_follow_the_run_to_its_end(self):
        program = self.start("-P1", "--retries=0", end=False,
                             keys=["a", "b", "c"])
        url = program.url()
        self.look(url)
        program.gate.open(0)
        self.browser.wait("""return document.querySelector(
            '[data-metric="wq_run_done_total"]').textContent === "1" """)
        program.gate.open(1, 0)
        program.end()
        self.browser.wait(
            "return document.getElementById('phase').textContent === 'finished'")
        self.assertEqual(program.wait(), 123)
        self.assertEqual(self.browser.run(
            """return ["done", "failed"].map((name) => document.querySelector(
            `[data-metric="wq_run_${name}_total"]`).textContent)"""), ["2", "1"])

    def test_lost_connection_is_shown(self):
        program, url = self.busy()
        self.look(url)
        program.close()  # by SIGKILL
        self.browser.wait("return document.getElementById('phase')"
                          ".textContent === 'connection lost'")

    def test_charts_show_the_history(self):
        _, url = self.busy()
        self.look(url)
        self.browser.wait("""return [...document.querySelectorAll(
            "#depth polyline")].every((line) =>
            line.getAttribute("points").split(" ").length >= 2)""")
        self.assertRegex(self.browser.run(
            "return document.getElementById('depth').ariaLabel"),
            "Now: ready 2, running 2, waiting 2")


class Table(Page):
    def test_table_has_the_state_of_each_key(self):
        _, url = self.busy()
        self.look(url)
        self.until_keys(self.ALL)
        rows = {row[0]: row for row in self.browser.run(KEYS)}
        self.assertEqual(rows["run-1"][1:3], ["running", "1"])
        self.assertEqual(rows["flaky"][1:3], ["retrying", "2"])
        self.assertRegex(rows["flaky"][4], r"^(\d+m \d\ds|\d+(\.\d)?s|\d+ms)$")
        self.assertEqual(rows["later"][1], "waiting")
        self.assertRegex(rows["later"][4], r"^(2h 00m|1h 59m)$")
        self.assertEqual(rows["Ready-1"][1], "ready")
        self.assertEqual({rows["run-1"][6], rows["run-2"][6]}, {"1", "2"})

    def test_table_can_be_filtered_and_searched(self):
        _, url = self.busy()
        self.look(url)
        for name, keys in (("running", ["run-1", "run-2"]),
                           ("retrying", ["flaky"]), ("waiting", ["later"]),
                           ("ready", ["Ready-1", "ready-2"]),
                           ("all", self.ALL)):
            self.browser.click('#filters button[aria-keyshortcuts="%d"]' % (
                ["all", "running", "retrying", "waiting", "ready"]
                .index(name) + 1))
            self.until_keys(keys)
            self.assertEqual(self.browser.text(
                '#filters [aria-pressed="true"]'), name)
        self.browser.click("#search")
        self.browser.press(*"READY")
        self.until_keys(["Ready-1", "ready-2"])
        self.browser.press("x")
        self.until_keys([])
        self.assertEqual(self.browser.text("#note"), "No key matches.")

    def test_page_can_be_paused(self):
        program, url = self.busy()
        self.look(url)
        self.until_keys(self.ALL)
        self.browser.click("#pause")
        self.assertEqual(self.browser.text("#phase"), "paused")
        before = self.browser.run(EVENTS)
        program.add('"more"')
        until(lambda: metrics(url)["workqueue_depth"] == 3, "one more")
        self.assertEqual(self.browser.run(EVENTS), before)
        self.browser.click("#pause")
        self.until_keys(self.ALL + ["more"])

    def test_table_has_the_first_of_many_keys(self):
        program = self.start("-P1", "--follow", end=False)
        program.add("\n".join("key-%05d" % i for i in range(20000)))
        url = program.url()
        until(lambda: metrics(url)["workqueue_depth"] == 19999, "all")
        self.look(url)
        self.browser.wait("""return document.getElementById("note").textContent
            .startsWith("The first 500 of 20,000 keys are shown")""")
        self.assertEqual(len(self.browser.run(KEYS)), 500)
        self.browser.press("/", *"-19999")
        self.until_keys(["key-19999"])

    def test_keys_are_shown_as_text(self):
        program = self.start("-0", "-P9", "--follow", end=False)
        keys = {
            b"<img src=x onerror='window.hacked=1'>": None,
            b"</script><script>window.hacked=1</script>": None,
            b"&lt;b&gt;": None,
            b"two\nlines\x1b[31m": "two\\nlines\\u001b[31m",
            "\u202eturned".encode(): "\\u202eturned",
            b"bad\xff": "bad\ufffd",
            "\u4e2d\u6587 \U0001f600".encode(): None,
            b"z" * 65536: "z" * 200 + "\u2026 (65,536 bytes)",
        }
        for key in keys:
            program.add(key, b"\0")
        self.browser.log("browser")
        self.look(program.url())
        self.until_keys([shown or key.decode() for key, shown in keys.items()])
        self.assertIsNone(self.browser.run("return window.hacked || null"))
        self.assertEqual(self.browser.run(
            "return document.querySelectorAll('img, main script').length"), 0)
        self.assertEqual(self.browser.log("browser"), [])


class Usability(Page):
    def test_page_makes_no_request_to_other_hosts(self):
        self.browser.requests()
        self.browser.log("browser")
        _, url = self.busy()
        self.look(url)
        self.browser.click("#theme")
        self.browser.press("/", *"ready")
        self.until_keys(["Ready-1", "ready-2"])
        requested = [u for u in self.browser.requests()
                     if not u.startswith(("data:", "chrome"))]
        self.assertIn(url + "/", requested)
        self.assertEqual([u for u in requested
                          if not u.startswith(url + "/")], [])
        self.assertEqual(self.browser.log("browser"), [])

    def test_page_can_be_used_with_the_keyboard(self):
        _, url = self.busy()
        self.look(url)
        reached = set()
        for _ in range(30):
            self.browser.press(TAB)
            reached.add(self.browser.run("""const e = document.activeElement;
                return e.id || e.className || e.textContent"""))
        for name in ("skip", "pause", "theme", "span", "depth", "flow",
                     "queued", "worked", "all", "running", "retrying",
                     "waiting", "ready", "search", "scroll"):
            self.assertIn(name, reached)
        self.browser.run("document.activeElement.blur()")
        for key, keys in (("2", ["run-1", "run-2"]), ("3", ["flaky"]),
                          ("1", self.ALL)):
            self.browser.press(key)
            self.until_keys(keys)
        self.browser.press("/", *"later")
        self.until_keys(["later"])
        self.browser.press(ESCAPE)
        self.until_keys(self.ALL)
        self.browser.press("p")
        self.assertEqual(self.browser.text("#phase"), "paused")
        self.browser.run("document.getElementById('depth').focus()")
        self.browser.press(LEFT)
        self.assertRegex(self.browser.text("#depth-read"),
                         r"ago: ready \d, running \d, waiting \d$")

    def test_every_control_has_a_label(self):
        _, url = self.busy()
        self.look(url)
        nameless = []
        for selector in ("#pause", "#theme", "#span", "#search", "#depth",
                         "#flow", "#queued", "#worked", ".scroll", "#filters",
                         "#keys", "#filters button", "a.skip"):
            if not self.browser.label(selector):
                nameless.append(selector)
        self.assertEqual(nameless, [])
        self.assertEqual(self.browser.label("#search"), "Search the keys")
        self.assertEqual(self.browser.run("""return [...document
            .querySelectorAll("thead th")].map((th) => th.scope)"""),
            ["col"] * 7)
        self.assertTrue(self.browser.run(
            "return document.documentElement.lang === 'en'"))

    def test_theme_follows_the_system_or_a_click(self):
        _, url = self.busy()
        theme = "return document.documentElement.dataset.theme"
        for value in ("dark", "light"):
            self.browser.prefer("prefers-color-scheme", value)
            self.browser.open(url + "/")
            self.browser.run("localStorage.clear()")
            self.look(url)
            self.assertEqual(self.browser.run(theme), value)
        back = "return getComputedStyle(document.body).backgroundColor"
        light = self.browser.run(back)
        self.browser.click("#theme")  # light
        self.browser.click("#theme")  # dark
        self.assertEqual(self.browser.run(theme), "dark")
        self.assertNotEqual(self.browser.run(back), light)
        self.look(url)
        self.assertEqual(self.browser.run(theme), "dark")
        self.browser.run("localStorage.clear()")

    def test_text_has_enough_contrast(self):
        _, url = self.busy()
        self.look(url)
        for theme in ("light", "dark"):
            colours = self.browser.run("""
                document.documentElement.dataset.theme = arguments[0];
                const style = getComputedStyle(document.documentElement);
                return Object.fromEntries(["back", "card", "ink", "soft",
                    "mark", "good", "bad", "warn", "s1", "s2", "s3"].map(
                    (name) => [name, style.getPropertyValue("--" + name)]))""",
                theme)
            for name in set(colours) - {"back", "card"}:
                for behind in ("back", "card"):
                    with self.subTest(theme=theme, name=name, behind=behind):
                        self.assertGreaterEqual(
                            contrast(colours[name], colours[behind]), 4.5)

    def test_narrow_window_does_not_scroll_sideways(self):
        _, url = self.busy()
        self.addCleanup(self.browser.resize, 1200, 1000)
        self.browser.resize(500, 900)
        self.look(url)
        self.until_keys(self.ALL)
        self.assertTrue(self.browser.run("""const e = document.documentElement;
            return e.scrollWidth <= e.clientWidth"""))


def contrast(one, other):
    """As WCAG 2 defines it; text needs 4.5."""
    def luminance(colour):
        parts = [int(colour.strip()[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4
                  for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


if __name__ == "__main__":
    if browser.missing():
        exit_skipped(browser.missing() + " is not installed")
    main()
