# SPDX-License-Identifier: MIT
"""How does a test run the controller? Against a server of its own, with short
pauses, until the world has converged."""

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))

from apiserver import Server  # noqa: E402
from program import InDirectory, main, need_command, until  # noqa: E402,F401

PROGRAM = os.environ.get("WIDGETS_PROGRAM", "widgets")
QUICK = ("--port=0", "--retry=0.01", "--retry-max=0.1", "--drain=30")


class Controlled(InDirectory):
    def write(self, name, text):
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(text)
        return self.path(name)

    def serve(self, **rest):
        """A server, which is checked at the end: no object may have been
        written twice at once."""
        self.server = Server(**rest)
        self.addCleanup(self.check_and_stop, self.server)
        return self.server

    def check_and_stop(self, server):
        if not server.ended:
            server.stop()
        self.assertEqual(server.overlaps, [], "written twice at once")

    # ---- the controller ----

    def launch(self, *arguments, env=None):
        """Any command line of the program."""
        log = open(self.path("log"), "ab")
        self.addCleanup(log.close)
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith("KUBERNETES_")}
        # A process that leaves at once joins no threads.
        clean["TSAN_OPTIONS"] = (clean.get("TSAN_OPTIONS", "") +
                                 ":report_thread_leaks=0")
        process = subprocess.Popen([PROGRAM, *arguments], stderr=log,
                                   stdout=subprocess.DEVNULL,
                                   env={**clean, **(env or {})})
        self.addCleanup(self.kill, process)
        return process

    @staticmethod
    def kill(process):
        if process.poll() is None:
            process.kill()
        process.wait()

    def start(self, *arguments, **rest):
        """The controller, once its ports are open."""
        before = len(self.ports())
        self.process = self.launch("--server=" + self.server.url(), *QUICK,
                                   *arguments, **rest)
        until(lambda: len(self.ports()) > before or
              self.process.poll() is not None, "the start")
        return self.process

    def log(self):
        with open(self.path("log"), encoding="utf-8") as file:
            return file.read()

    def ports(self):
        if not os.path.exists(self.path("log")):
            return []
        return re.findall(r"/metrics at port (\d+)", self.log())

    def get(self, path):
        """Status and text of a page of the controller."""
        url = "http://127.0.0.1:%s%s" % (self.ports()[-1], path)
        try:
            with urllib.request.urlopen(url, timeout=30) as page:
                return page.status, page.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name):
        """The value of a metric without labels, or with these."""
        found = re.search("^%s (.*)$" % re.escape(name),
                          self.get("/metrics")[1], re.MULTILINE)
        return float(found[1]) if found else 0.0

    def runs(self):
        return self.metric(
            'workqueue_work_duration_seconds_count{name="widgets"}')

    # ---- steps ----

    def converge(self):
        until(self.server.converged, "the world to converge; log:\n" +
              self.log()[-2000:])

    def started(self, count=5, *arguments, **rest):
        """Start with so many Widgets, which have converged, and a watch that
        has seen all of it: each has run twice, for the list and for the event
        of its own write."""
        self.serve(**rest)
        for i in range(count):
            self.server.create("w%d" % i, i + 1)
        self.start(*arguments)
        self.converge()
        self.watching()
        until(lambda: self.metric("widgets_watch_events_total") >= count and
              self.runs() >= 2 * count, "the events of the writes")

    def watching(self):
        until(lambda: self.server.watching > 0, "a watch")

    def change_all(self):
        """Every Widget gets another size."""
        with self.server.changed:
            sizes = [(thing["metadata"]["name"],
                      thing["metadata"]["namespace"], thing["spec"]["size"])
                     for thing in self.server.objects.values()]
        for name, namespace, size in sizes:
            self.server.resize(name, size + 1000, namespace)

    def stop(self, status=0):
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(60), status, self.log()[-2000:])
