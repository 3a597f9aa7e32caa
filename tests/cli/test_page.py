# SPDX-License-Identifier: MIT
"""Does the live page show the state of the program, to all users? In a real
browser."""

import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
from collections import Counter

import browser
from browser import ESCAPE, LEFT, TAB, Browser
from program import PROGRAM, exit_skipped, main, until
from watched import Watched, get, metrics

# The number of events that the page has processed.
EVENTS = "return Number(document.body.dataset.events || 0)"

KEYS = """return [...document.querySelectorAll("#rows tr")].map(
    (row) => [...row.cells].map((cell) => cell.textContent))"""


def power_of_ten(seconds):
    """The exponent of the next one; the page does not go below 10 us."""
    return max(-5, math.ceil(math.log10(seconds) - 1e-9)) \
        if seconds < math.inf else seconds


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.open("about:blank")  # the last page has lost its program

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
            "-P2", "--retries=1", "--backoff=9999h,9999h", "--input=jsonl",
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

    def until_tile(self, name, text):
        self.browser.wait("""return document.querySelector(
            `[data-count="${arguments[0]}"]`).textContent === arguments[1]""",
            name, text)

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
        self.until_tile("running", "2")
        tiles = self.browser.run("""return [...document.querySelectorAll(
            "[data-metric]:not([data-unit])")].map(
            (tile) => [tile.dataset.metric, tile.textContent])""")
        values = metrics(url)
        self.assertGreaterEqual(len(tiles), 6)
        for name, text in tiles:
            with self.subTest(name=name):
                self.assertEqual(float(text.replace(",", "")), values[name])

    def test_numbers_have_the_names_of_the_terminal(self):
        _, url = self.busy()
        self.look(url)
        self.until_tile("running", "2")
        self.assertEqual(self.browser.run("""return [...document
            .querySelectorAll("#tiles dt")].map((dt) => [dt.textContent,
            dt.nextElementSibling.dataset.count]).filter((t) => t[1])"""),
            [[name, name] for name in ("done", "failed", "running", "ready",
                                       "waiting", "retrying", "dead")])
        self.assertEqual(self.browser.run("""return Object.fromEntries(
            [...document.querySelectorAll("[data-count]")].map(
            (dd) => [dd.dataset.count, dd.textContent]))"""),
            {"done": "2", "failed": "1", "running": "2", "ready": "2",
             "waiting": "1", "retrying": "1", "dead": "\u2013"})

    def test_large_numbers_fit_their_tile(self):
        _, url = self.busy()
        self.addCleanup(self.browser.unshape)
        for width in (320, 380, 1400):
            self.browser.shape(width, 900)
            self.look(url)
            for value, text in ((999999, "999,999"), (1234567, "1.23M"),
                                (999999999, "1.00G"), (12345678901, "12.3G")):
                with self.subTest(width=width, value=value):
                    self.assertEqual(self.browser.run(
                        "return number(arguments[0])", value), text)
                    self.assertEqual(self.browser.run(
                        """return [...document.querySelectorAll("#tiles dd")]
                        .filter((dd) => !dd.parentElement.hidden && (
                            dd.textContent = arguments[0],
                            dd.scrollWidth > dd.clientWidth)).length""", text), 0)

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
            buckets, before = Counter(), 0
            for le, n in re.findall(
                    name + r'_bucket\{.*le="([^"]*)"\} (\d+)', text):
                buckets[power_of_ten(float(le))] += int(n) - before
                before = int(n)
            drawn = Counter()
            for le, n in columns:
                drawn[power_of_ten(float(le))] += n
            self.assertTrue(drawn)
            self.assertEqual(+drawn, +buckets)
            self.assertIn("%d in all" % before, self.browser.text(
                "#%s-read" % id_))

    def test_numbers_follow_the_run_to_its_end(self):
        program = self.start("-P1", "--retries=0", end=False,
                             keys=["a", "b", "c"])
        url = program.url()
        self.look(url)
        program.gate.open(0)
        self.until_tile("done", "1")
        program.gate.open(1, 0)
        program.end()
        self.browser.wait(
            "return document.getElementById('phase').textContent === 'finished'")
        self.assertEqual(program.wait(), 123)
        self.assertEqual(self.browser.run(
            """return ["done", "failed"].map((name) => document.querySelector(
            `[data-count="${name}"]`).textContent)"""), ["2", "1"])

    def test_end_with_keys_left_is_not_called_finished(self):
        program = self.start("-P1", end=False, keys=["a", "b", "c"])
        self.look(program.url())
        program.process.send_signal(signal.SIGTERM)
        self.browser.wait("return document.getElementById('phase')"
                          ".textContent === 'draining'")
        program.gate.open(0)
        self.browser.wait("return document.getElementById('phase')"
                          ".textContent === 'stopped, 2 keys left'")

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
            "Now: ready 2, running 2, waiting 1, retrying 1")

    def test_failures_have_the_colour_of_failures(self):
        _, url = self.busy()
        self.look(url)
        colours = self.browser.run("""
            const colour = (e, what) => getComputedStyle(
                document.querySelector(e))[what];
            return [colour("#flow .line.failed", "stroke"),
                    colour("#flow-legend .failed", "stroke"),
                    colour('[data-count="failed"]', "color"),
                    colour("#failed-rows .why", "color"),
                    colour('[data-count="done"]', "color")]""")
        self.assertEqual(len(set(colours[:4])), 1)
        self.assertNotEqual(colours[0], colours[4])

    def test_labels_of_the_axes_are_inside_their_card(self):
        program = self.start("-P1", "--follow", end=False)
        program.add("\n".join(map(str, range(123456))))
        url = program.url()
        until(lambda: metrics(url)["workqueue_depth"] == 123455, "all")
        self.addCleanup(self.browser.unshape)
        for width in (380, 1400):
            self.browser.shape(width, 900)
            self.look(url)
            self.browser.wait("""return [...document.querySelectorAll(
                "#depth text")].some((t) => t.textContent === "200k")""")
            self.assertEqual(self.browser.run("""
                return [...document.querySelectorAll(".plot text")].filter(
                    (text) => {
                        const card = text.closest(".plot")
                            .getBoundingClientRect();
                        const box = text.getBoundingClientRect();
                        return box.left < card.left || box.right > card.right;
                    }).map((text) => text.textContent)"""), [])


class Table(Page):
    def test_table_has_the_state_of_each_key(self):
        _, url = self.busy()
        self.look(url)
        self.until_keys(self.ALL)
        rows = {row[0]: row for row in self.browser.run(KEYS)}
        self.assertEqual(rows["run-1"][1:3], ["running", "1"])
        self.assertEqual(rows["flaky"][1:3], ["retrying", "2"])
        self.assertRegex(rows["flaky"][4],
                         r"^(\d+d \d\dh|\d+h \d\dm|\d+m \d\ds|\d+(\.\d)?s)$")
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
            b"y" * 10000 + b"z" * 10000: "y" * 120 + "\u2026" + "z" * 80,
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


    def test_end_of_a_long_key_is_visible(self):
        program = self.start("-P1", "--follow", end=False)
        program.add("begin/" + "a/long/path/" * 12 + "file.txt")
        self.addCleanup(self.browser.unshape)
        for width in (380, 700, 1400):
            self.browser.shape(width, 900)
            self.look(program.url())
            self.browser.wait("return document.querySelector('#rows th')")
            self.assertTrue(self.browser.run("""
                const [head, tail] = document.querySelectorAll("#rows th span");
                return tail.textContent.endsWith("/file.txt") &&
                    tail.scrollWidth <= tail.clientWidth + 1 &&
                    head.getBoundingClientRect().width > 60 &&
                    tail.getBoundingClientRect().right <= innerWidth"""), width)


FAILED = """return [...document.querySelectorAll("#failed-rows tr")].map(
    (row) => [...row.cells].map((cell) => cell.textContent))"""


class Failed(Page):
    def test_table_has_the_reason_of_each_failed_key(self):
        program = self.start(
            "-P1", "--retries=0", "--timeout=500ms", "--follow", end=False,
            keys=["code", "kill", "slow"], command=[
                "sh", "-c", 'case "$1" in code) echo "$1: oops" >&2; exit 7;; '
                'kill) kill -SEGV $$;; slow) sleep 60;; esac', "sh", "{}"])
        self.look(program.url())
        self.browser.wait("return document.querySelectorAll("
                          "'#failed-rows tr').length === 3")
        rows = self.browser.run(FAILED)
        self.assertEqual([row[:3] + row[4:] for row in rows], [
            ["slow", "timed out", "1", ""],
            ["kill", "killed by SIGSEGV", "1", ""],
            ["code", "exit 7", "1", "code: oops"]])
        for row in rows:
            self.assertRegex(row[3], r"^\S+s ago$")

    def test_no_table_without_failures(self):
        program = self.start("-P1", "--follow", end=False, keys=["a"])
        self.look(program.url())
        self.until_keys(["a"])
        self.assertTrue(self.browser.run(
            "return document.getElementById('failed').hidden"))

    def test_retrying_key_has_its_last_failure(self):
        _, url = self.busy()
        self.look(url)
        self.until_keys(self.ALL)
        rows = {row[0]: row for row in self.browser.run(KEYS)}
        self.assertEqual(rows["flaky"][7], "exit 1")
        self.assertEqual(rows["later"][7], "")

    def test_lines_are_shown_as_text(self):
        program = self.start("--retries=0", "--follow", end=False, command=[
            "sh", "-c", 'printf %s "$1" >&2; exit 1', "sh", "{}"])
        texts = ["<img src=x onerror='window.hacked=1'>",
                 "</script><script>window.hacked=1</script>",
                 "red\x1b[31m", "\u202eturned"]
        self.browser.log("browser")
        for text in texts:
            program.add(text)
        self.look(program.url())
        self.browser.wait("return document.querySelectorAll("
                          "'#failed-rows tr').length === 4")
        shown = texts[:2] + ["red\\u001b[31m", "\\u202eturned"]
        rows = self.browser.run(FAILED)[::-1]
        self.assertEqual([row[0] for row in rows], shown)
        self.assertEqual([row[4] for row in rows], shown)
        self.assertIsNone(self.browser.run("return window.hacked || null"))
        self.assertEqual(self.browser.run(
            "return document.querySelectorAll('img, main script').length"), 0)
        self.assertEqual(self.browser.log("browser"), [])

    def test_last_hundred_failures_are_shown(self):
        program = self.start("-P2", "--retries=0", "--follow", end=False,
                             command=["false"],
                             keys=["%03d" % i for i in range(90)])
        self.look(program.url())
        self.until_tile("failed", "90")
        program.add("\n".join("%03d" % i for i in range(90, 150)))
        self.until_tile("failed", "150")
        self.browser.wait("""return document.getElementById("failed-note")
            .textContent.startsWith("The last 100 of 150 are shown")""")
        rows = self.browser.run(FAILED)
        self.assertEqual(len(rows), 100)
        self.assertEqual(len({row[0] for row in rows}), 100)

    def test_dead_keys_of_a_shared_queue_are_shown(self):
        folder = tempfile.mkdtemp(prefix="wq-test-")
        self.addCleanup(shutil.rmtree, folder)
        queue = "--queue=sqlite:" + os.path.join(folder, "queue.db")
        added = subprocess.run([PROGRAM, "add", queue, "old-1", "old-2"],
                               capture_output=True, check=False)
        if added.returncode == 125:
            self.skipTest("wq was built without SQLite")
        subprocess.run([PROGRAM, "work", queue, "-q", "--until-empty",
                        "--retries=0", "false"], check=False)
        program = self.start(queue, "-a-", "-P1", "--retries=0", end=False,
                             keys=["new"])
        self.look(program.url())
        self.until_tile("dead", "2")
        self.until_keys(["new", "old-1", "old-2"])
        program.gate.open(4)
        self.until_tile("dead", "3")
        self.browser.press("6")
        self.until_keys(["new", "old-1", "old-2"])
        rows = {row[0]: row for row in self.browser.run(KEYS)}
        self.assertEqual([rows[key][1] for key in rows], ["dead"] * 3)
        self.assertEqual((rows["new"][7], rows["old-1"][7]), ("exit 4", ""))
        self.assertEqual([row[0] for row in self.browser.run(FAILED)], ["new"])


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
                         r"ago: ready \d, running \d, waiting \d, "
                         r"retrying \d$")

    def test_every_control_has_a_label(self):
        _, url = self.busy()
        self.look(url)
        nameless = []
        for selector in ("#pause", "#theme", "#span", "#search", "#depth",
                         "#flow", "#queued", "#worked", "#keys .scroll",
                         "#failed .scroll", "#filters", "#keys", "#failed", "#filters button", "a.skip"):
            if not self.browser.label(selector):
                nameless.append(selector)
        self.assertEqual(nameless, [])
        self.assertEqual(self.browser.label("#search"), "Search the keys")
        self.assertEqual(self.browser.run("""return [...document
            .querySelectorAll("thead th")].map((th) => th.scope)"""),
            ["col"] * 13)
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
                    "mark", "good", "bad", "warn", "s1", "s2", "s3", "s4"].map(
                    (name) => [name, style.getPropertyValue("--" + name)]))""",
                theme)
            for name in set(colours) - {"back", "card"}:
                for behind in ("back", "card"):
                    with self.subTest(theme=theme, name=name, behind=behind):
                        self.assertGreaterEqual(
                            contrast(colours[name], colours[behind]), 4.5)

    def test_narrow_window_does_not_scroll_sideways(self):
        _, url = self.busy()
        self.addCleanup(self.browser.unshape)
        for width in (320, 380, 500, 700):
            self.browser.shape(width, 900)
            self.look(url)
            self.until_keys(self.ALL)
            self.assertTrue(self.browser.run("""
                const e = document.documentElement;
                return e.scrollWidth <= e.clientWidth"""), width)

    def test_keys_have_room_on_a_phone(self):
        _, url = self.busy()
        self.addCleanup(self.browser.unshape)
        self.browser.shape(380, 900)
        self.look(url)
        self.until_keys(self.ALL)
        widths = self.browser.run("""return [...document.querySelectorAll(
            "#rows th, #failed-rows th")].map((th) => th.clientWidth)""")
        self.assertEqual(len(widths), 7)
        self.assertGreater(min(widths), 250)
        self.assertEqual(self.browser.run("""return [...document
            .querySelectorAll("#rows th span:first-child")].filter(
            (span) => span.scrollWidth > span.clientWidth).length"""), 0)
        # Blocks are still a table to a screen reader.
        for selector, role in (("#keys table", "table"), ("#rows tr", "row"),
                               ("#rows th", "rowheader"), ("#rows td", "cell")):
            self.assertEqual(self.browser.role(selector), role)


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
        exit_skipped(browser.missing())
    main()
