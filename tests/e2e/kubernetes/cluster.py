# SPDX-License-Identifier: MIT
"""What does the end-to-end test run against? Debian's etcd, Kubernetes' own API
machinery in front of it (server/), a client for what users do, and the
controllers as processes that are measured."""

import concurrent.futures
import datetime
import http.client
import json
import os
import queue
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
WIDGETS = "/apis/wq.example.com/v1/widgets"
DEFAULT = "/apis/wq.example.com/v1/namespaces/default/widgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATIENCE = 300  # seconds


def until(condition, what, pause=0.05):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(pause)
    raise SystemExit("timed out waiting for " + what)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """etcd and the API server, with their files in `directory`."""

    def __init__(self, program, directory):
        self.program, self.directory = program, directory
        self.etcd_port, self.port = free_port(), free_port()
        self.processes = []
        url = "http://127.0.0.1:%d" % self.etcd_port
        peer = "http://127.0.0.1:%d" % free_port()
        self.run("etcd", "--data-dir", self.path("data"),
                 "--listen-client-urls", url, "--advertise-client-urls", url,
                 "--listen-peer-urls", peer,
                 "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", "default=" + peer)
        self.start()

    def path(self, name):
        return os.path.join(self.directory, name)

    def run(self, *command):
        with open(self.path(os.path.basename(command[0]) + ".log"),
                  "ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def start(self):
        """Starts the API server, and waits until it serves."""
        def ready():
            if self.server.poll() is not None:
                raise SystemExit("the API server ended: see " +
                                 self.path("server.log"))
            with open(self.path("server.log"), "rb") as log:
                return log.read().count(b"\nready\n") > before
        before = 0
        if os.path.exists(self.path("server.log")):
            with open(self.path("server.log"), "rb") as log:
                before = log.read().count(b"\nready\n")
        self.server = self.run(
            self.program, "--etcd", "http://127.0.0.1:%d" % self.etcd_port,
            "--listen", "127.0.0.1:%d" % self.port,
            "--directory", self.directory)
        until(ready, "the API server")

    def kill(self):
        self.server.kill()
        self.server.wait()

    def cut(self):
        """Closes the connections of the watches."""
        self.server.send_signal(signal.SIGUSR1)

    def stop(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.kill()
            process.wait()

    def url(self):
        return "https://127.0.0.1:%d" % self.port


class Client:
    """What users do, by several threads, each with its own connection. Requests
    are repeated until the server has answered."""

    def __init__(self, cluster, threads=4):
        self.cluster = cluster
        self.local = threading.local()
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)

    def connect(self):
        context = ssl.create_default_context(
            cafile=self.cluster.path("ca.crt"))
        return http.client.HTTPSConnection("127.0.0.1", self.cluster.port,
                                           timeout=30, context=context)

    def token(self):
        with open(self.cluster.path("token"), encoding="ascii") as file:
            return file.read().strip()

    def call(self, method, path, body=None, kind="application/json"):
        """The answer: status and value."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if not getattr(self.local, "connection", None):
                    self.local.connection = self.connect()
                self.local.connection.request(
                    method, path, json.dumps(body) if body else None,
                    {"Authorization": "Bearer " + self.token(),
                     "Content-Type": kind})
                answer = self.local.connection.getresponse()
                text = answer.read()
                if answer.status < 500 and answer.status not in (401, 429):
                    return answer.status, json.loads(text)
                why = "status %d: %r" % (answer.status, text[:200])
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.local.connection = None
                why = str(error)
            if time.monotonic() > end:
                raise SystemExit("%s %s: %s" % (method, path, why))
            time.sleep(0.05)

    def define(self):
        """The CustomResourceDefinition of the example."""
        with open(os.path.join(ROOT, "examples", "kubernetes", "crd.json"),
                  encoding="ascii") as file:
            self.call("POST", CRDS, json.load(file))
        until(lambda: self.call_once_defined() == 200, "the resource")

    def call_once_defined(self):
        try:
            return self.call("GET", WIDGETS + "?limit=1")[0]
        except ValueError:  # "404 page not found" is no JSON
            return 404

    def each(self, function, arguments):
        """Calls function(argument) for all, by the threads."""
        return list(self.pool.map(function, arguments))

    def create(self, name, size):
        status, value = self.call("POST", DEFAULT, {
            "apiVersion": "wq.example.com/v1", "kind": "Widget",
            "metadata": {"name": name}, "spec": {"size": size}})
        if status not in (201, 409):  # 409: an earlier attempt succeeded
            raise SystemExit("create: %d %r" % (status, value))

    def resize(self, name, size):
        status, value = self.call(
            "PATCH", DEFAULT + "/" + name, {"spec": {"size": size}},
            "application/merge-patch+json")
        if status != 200:
            raise SystemExit("resize: %d %r" % (status, value))

    def delete(self, name):
        self.call("DELETE", DEFAULT + "/" + name)

    def widgets(self):
        return self.call("GET", WIDGETS)[1]

    def differing(self):
        """How many objects have a status that is not their spec."""
        return sum(thing["spec"]["size"] !=
                   thing.get("status", {}).get("size")
                   for thing in self.widgets()["items"])


class Convergence:
    """When have all objects converged? Counts with a watch, which does not
    disturb as lists would."""

    def __init__(self, client):
        self.client = client
        found = client.widgets()
        self.differs = {thing["metadata"]["name"]
                        for thing in found["items"] if self.is_behind(thing)}
        self.ended = queue.Queue()
        self.connection = client.connect()
        self.connection.request(
            "GET", "%s?watch=1&resourceVersion=%s&timeoutSeconds=600" % (
                WIDGETS, found["metadata"]["resourceVersion"]),
            headers={"Authorization": "Bearer " + client.token()})
        self.answer = self.connection.getresponse()
        threading.Thread(target=self.follow, daemon=True).start()

    @staticmethod
    def is_behind(thing):
        return thing["spec"]["size"] != thing.get("status", {}).get("size")

    def follow(self):
        changed = 0
        for line in self.answer:
            event = json.loads(line)
            thing = event["object"]
            name = thing["metadata"]["name"]
            if self.is_behind(thing):
                self.differs.add(name)
                changed += 1
            else:
                self.differs.discard(name)
            if not self.differs:
                self.ended.put((time.monotonic(), changed))

    def wait(self, changes=0):
        """The moment when nothing differs, after so many events of users."""
        while True:
            moment, changed = self.ended.get(timeout=PATIENCE)
            if changed >= changes:
                return moment


class Controller:
    """A controller: the process, and what it has used."""

    def __init__(self, cluster, command, name):
        self.port = free_port()
        self.log_name = cluster.path(name + ".log")
        self.begin = time.monotonic()
        with open(self.log_name, "ab") as log:
            self.process = subprocess.Popen(
                [*command, "--server=" + cluster.url(),
                 "--ca-file=" + cluster.path("ca.crt"),
                 "--token-file=" + cluster.path("token"),
                 "--port=%d" % self.port], stderr=log, stdout=log)
        cluster.processes.append(self.process)

    def metric(self, name):
        url = "http://127.0.0.1:%d/metrics" % self.port
        try:
            with urllib.request.urlopen(url, timeout=30) as page:
                found = re.search("^%s (.*)$" % re.escape(name),
                                  page.read().decode(), re.MULTILINE)
        except OSError:
            return 0
        return int(float(found[1])) if found else 0

    def is_ready(self):
        url = "http://127.0.0.1:%d/readyz" % self.port
        try:
            with urllib.request.urlopen(url, timeout=30):
                return True
        except OSError:  # and HTTPError: 503
            return False

    def reconciles(self):
        return self.metric("widgets_reconciles_total") or self.metric(
            'workqueue_work_duration_seconds_count{name="widgets"}')

    def cpu_seconds(self):
        with open("/proc/%d/stat" % self.process.pid,
                  encoding="latin-1") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mib(self):
        with open("/proc/%d/status" % self.process.pid,
                  encoding="latin-1") as file:
            return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) / 1024

    def anonymous_mib(self):
        """Without the pages of files (code), which processes share."""
        with open("/proc/%d/status" % self.process.pid,
                  encoding="latin-1") as file:
            return int(re.search(r"RssAnon:\s+(\d+)", file.read())[1]) / 1024

    def stop(self):
        """SIGTERM; returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def audit(cluster):
    """The API server's own log: for each write of a status that it has answered
    the object, begin, end, status, and who sent it."""
    writes = []
    with open(cluster.path("audit"), encoding="utf-8") as file:
        for line in file:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # the line that a kill cut off
            writes.append((
                event["objectRef"]["name"],
                datetime.datetime.fromisoformat(
                    event["requestReceivedTimestamp"]),
                datetime.datetime.fromisoformat(event["stageTimestamp"]),
                event["responseStatus"]["code"], event["userAgent"]))
    return writes


def overlaps(writes):
    """Pairs of writes of one object that overlap in time."""
    last, found = {}, []
    for name, begin, end, *_ in sorted(writes, key=lambda w: w[1]):
        if name in last and begin < last[name]:
            found.append((name, begin, last[name]))
        last[name] = max(end, last.get(name, end))
    return found
