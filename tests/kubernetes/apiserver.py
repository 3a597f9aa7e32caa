# SPDX-License-Identifier: MIT
"""What does the controller see of Kubernetes? A stand-in for its API server: it
lists Widgets in pages, watches them, and writes their status, as the real one
does; and it misbehaves when a test says so. It lives in threads of the test.

Every change of an object gets the next resource version and goes into a log,
which watches read. The server also checks its clients: it counts the writes of
one object that overlap in time."""

import base64
import copy
import http.server
import json
import random
import socket
import ssl
import threading
import time
import urllib.parse

GROUP = "wq.example.com"
PREFIX = "/apis/%s/v1" % GROUP


class Cut(Exception):
    """The connection ends here, without an end of the answer."""


class Server:
    """The objects, the log, and what goes wrong next."""

    def __init__(self, certificate=None, token=None):
        self.changed = threading.Condition()  # guards all below
        self.version = 95       # so that versions soon have a digit more
        self.objects = {}       # by "namespace/name"
        self.log = []           # (version, type, object)
        self.oldest = 0         # a watch from before it gets 410
        self.requests = []      # (kind, query), kind: list, watch, write
        self.writes = {}        # by key: how many were accepted
        self.writing = {}       # by key: how many are being handled now
        self.overlaps = []      # keys that had two at once: there must be none
        self.watching = 0       # watches that are open now

        self.token = token      # what clients must send; None: anything
        self.refusals = []      # [kind, after, times, status, headers]
        self.gone_as_event = False  # 410 within the watch
        self.spoil = []         # what happens to the next events: see Watch
        self.silent = False     # watches that begin now send nothing
        self.pieces = False     # events are sent in small pieces
        self.write_seconds = 0  # how long a write takes
        self.epoch = 0          # watches of an earlier one are cut
        self.ended = False

        self.certificate = certificate
        self.port = 0
        self.start()

    # ---- life ----

    def start(self):
        self.ended = False
        self.http = HTTP(("127.0.0.1", self.port), Handler)
        self.http.world = self
        self.port = self.http.server_address[1]
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            self.http.socket = context.wrap_socket(
                self.http.socket, server_side=True,
                do_handshake_on_connect=False)
        threading.Thread(target=self.http.serve_forever, args=(0.02,),
                         daemon=True).start()

    def stop(self):
        """Refuses connections from now on, and ends those it has."""
        self.http.shutdown()
        self.http.server_close()
        with self.changed:
            self.ended = True
            self.changed.notify_all()
        self.http.end_connections()

    def url(self):
        return "%s://127.0.0.1:%d" % ("https" if self.certificate else "http",
                                      self.port)

    # ---- what users do ----

    def record(self, type, key):
        """The object of `key` has changed. Called with the lock."""
        self.version += 1
        thing = self.objects[key]
        thing["metadata"]["resourceVersion"] = str(self.version)
        self.log.append((self.version, type, copy.deepcopy(thing)))
        self.changed.notify_all()

    def create(self, name, size, namespace="default", **metadata):
        with self.changed:
            key = namespace + "/" + name
            self.objects[key] = {
                "apiVersion": GROUP + "/v1", "kind": "Widget",
                "metadata": {
                    "name": name, "namespace": namespace, "generation": 1,
                    "uid": "uid-%d" % (self.version + 1),
                    "managedFields": [{"manager": "test", "fieldsV1": {}}],
                    **metadata},
                "spec": {"size": size}}
            self.record("ADDED", key)

    def resize(self, name, size, namespace="default"):
        with self.changed:
            key = namespace + "/" + name
            self.objects[key]["spec"]["size"] = size
            self.objects[key]["metadata"]["generation"] += 1
            self.record("MODIFIED", key)

    def delete(self, name, namespace="default"):
        with self.changed:
            key = namespace + "/" + name
            self.record("DELETED", key)
            del self.objects[key]

    # ---- what goes wrong ----

    def refuse(self, kind, status, times=1, after=0, **headers):
        """Answers the next requests of this kind with this status, after so
        many that are not refused; "cut" ends the connection instead."""
        with self.changed:
            self.refusals.append([kind, after, times, status, headers])

    def cut(self):
        """Ends all watches, without an end of the answer."""
        with self.changed:
            self.epoch += 1
            self.changed.notify_all()

    def forget(self):
        """Watches must begin at the present: all others get 410."""
        with self.changed:
            self.version += 1
            self.oldest = self.version

    def bookmark(self):
        """Sends a bookmark, with a version that no object has."""
        with self.changed:
            self.version += 10
            self.log.append((self.version, "BOOKMARK", {
                "apiVersion": GROUP + "/v1", "kind": "Widget",
                "metadata": {"resourceVersion": str(self.version)}}))
            self.changed.notify_all()

    def spoil_next(self, how):
        with self.changed:
            self.spoil.append(how)

    # ---- what tests ask ----

    def converged(self):
        """Does every status agree with its spec?"""
        with self.changed:
            return all(thing["spec"]["size"] ==
                       thing.get("status", {}).get("size")
                       for thing in self.objects.values())

    def count(self, kind):
        with self.changed:
            return sum(1 for done, _ in self.requests if done == kind)

    def queries(self, kind):
        with self.changed:
            return [query for done, query in self.requests if done == kind]


class HTTP(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *args):
        self.connections = set()
        self.lock = threading.Lock()  # guards it
        super().__init__(*args)

    def process_request(self, request, address):
        with self.lock:
            self.connections.add(request)
        super().process_request(request, address)

    def shutdown_request(self, request):
        with self.lock:
            self.connections.discard(request)
        super().shutdown_request(request)

    def end_connections(self):
        with self.lock:
            open_now = list(self.connections)
        for connection in open_now:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def handle_error(self, request, address):
        pass  # clients that leave, or refuse our certificate


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format, *args):
        pass

    # ---- requests ----

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        path = url.path.split("/")  # "", apis, GROUP, v1, [namespaces, N,] ...
        namespace = path[5] if "namespaces" in path else None
        if not url.path.startswith(PREFIX) or path[-1] != "widgets":
            return self.answer(404, {})
        kind = "watch" if "watch" in query else "list"
        refusal = self.refusal(kind, query)
        if refusal:
            return self.answer_refusal(refusal)
        return getattr(self, kind)(query, namespace)

    def do_PUT(self):
        path = self.path.split("/")  # ... namespaces N widgets NAME status
        key = path[-4] + "/" + path[-2]
        body = json.loads(
            self.rfile.read(int(self.headers["Content-Length"])))
        world = self.server.world
        with world.changed:
            world.writing[key] = world.writing.get(key, 0) + 1
            if world.writing[key] > 1:
                world.overlaps.append(key)
        time.sleep(world.write_seconds)
        refusal = self.refusal("write", {"key": key})
        with world.changed:
            if not refusal:
                status = self.write(world, key, body)
                thing = copy.deepcopy(world.objects.get(key, {}))
            # Before the answer: after it the next write may come.
            world.writing[key] -= 1
        if refusal:
            return self.answer_refusal(refusal)
        return self.answer(status, thing if status == 200 else
                           {"kind": "Status", "code": status})

    def refusal(self, kind, query):
        """Writes down the request. Returns status and headers if it is to be
        refused, else None."""
        world = self.server.world
        with world.changed:
            world.requests.append((kind, query))
            if world.token and self.headers["Authorization"] != (
                    "Bearer " + world.token):
                return 401, {}
            for refusal in world.refusals:
                if refusal[0] != kind or refusal[2] == 0:
                    continue
                if refusal[1] > 0:
                    refusal[1] -= 1
                    return None
                refusal[2] -= 1
                return refusal[3:]
        return None

    def answer_refusal(self, refusal):
        status, headers = refusal
        if status == "cut":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self.answer(status, {"kind": "Status", "code": status}, **headers)

    def answer(self, status, value, **headers):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(body)

    # ---- list ----

    def list(self, query, namespace):
        """A page; the token for the next one names the last key and the version
        of the first page."""
        world = self.server.world
        limit = int(query.get("limit", 1 << 30))
        with world.changed:
            version, after = world.version, ""
            if "continue" in query:
                token = base64.b64decode(query["continue"]).decode()
                version, after = token.split("+", 1)
                if int(version) < world.oldest:
                    return self.answer(410, {"kind": "Status", "code": 410})
            keys = sorted(key for key in world.objects if key > after and
                          (not namespace or key.split("/")[0] == namespace))
            metadata = {"resourceVersion": str(version)}
            if len(keys) > limit:
                keys = keys[:limit]
                metadata["continue"] = base64.b64encode(
                    ("%s+%s" % (version, keys[-1])).encode()).decode()
            items = [copy.deepcopy(world.objects[key]) for key in keys]
        return self.answer(200, {"kind": "WidgetList", "metadata": metadata,
                                 "items": items})

    # ---- write ----

    def write(self, world, key, body):
        """Called with the lock. Only the status counts."""
        thing = world.objects.get(key)
        if not thing:
            return 404
        for field in ("resourceVersion", "uid"):
            if body["metadata"].get(field) != thing["metadata"][field]:
                return 409
        world.writes[key] = world.writes.get(key, 0) + 1
        if thing.get("status") != body["status"]:
            thing["status"] = body["status"]
            world.record("MODIFIED", key)
        return 200

    # ---- watch ----

    def watch(self, query, namespace):
        world = self.server.world
        with world.changed:
            version = int(query["resourceVersion"])
            gone = version < world.oldest
            silent, epoch = world.silent, world.epoch
            as_event = world.gone_as_event
        if gone and not as_event:
            return self.answer(410, {"kind": "Status", "code": 410})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        end = time.monotonic() + int(query["timeoutSeconds"])
        with world.changed:
            world.watching += 1
        try:
            if gone:
                self.send_event("ERROR", {"kind": "Status", "code": 410})
            else:
                self.send_log(world, version, namespace, end, silent, epoch)
            self.wfile.write(b"0\r\n\r\n")
        except (Cut, OSError):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        finally:
            with world.changed:
                world.watching -= 1

    def send_log(self, world, version, namespace, end, silent, epoch):
        sent = 0  # entries of the log that were looked at
        while True:
            with world.changed:
                while sent == len(world.log) or silent:
                    if world.epoch != epoch or world.ended:
                        raise Cut
                    left = end - time.monotonic()
                    if left <= 0:
                        return
                    world.changed.wait(left)
                if world.epoch != epoch or world.ended:
                    raise Cut
                number, type, thing = world.log[sent]
                sent += 1
                wanted = number > version and (
                    not namespace or type == "BOOKMARK" or
                    thing["metadata"]["namespace"] == namespace)
                spoil = world.spoil.pop(0) if wanted and world.spoil else None
                first = world.log[0]
            if wanted:
                self.send_spoilt(type, thing, spoil, first)

    def send_spoilt(self, type, thing, spoil, first):
        """Sends an event as it is (None), twice, in halves, ..."""
        line = self.line(type, thing)
        if spoil == "half":
            self.send(line[:len(line) // 2])
            raise Cut
        if spoil == "garbage":
            self.send(b'{"type": "MODIFIED", "object": [}\n')
        elif spoil == "error":
            self.send_event("ERROR", {"kind": "Status", "code": 500})
        else:
            self.send(line)
        if spoil == "twice":
            self.send(line)
        if spoil == "old":  # the first of all once more
            self.send_event(first[1], first[2])

    @staticmethod
    def line(type, thing):
        return json.dumps({"type": type, "object": thing}).encode() + b"\n"

    def send_event(self, type, thing):
        self.send(self.line(type, thing))

    def send(self, data):
        if not self.server.world.pieces:
            return self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        while data:  # chunks that end anywhere, in writes that end anywhere
            n = random.randrange(1, 40)
            chunk = b"%x\r\n%s\r\n" % (len(data[:n]), data[:n])
            data = data[n:]
            half = random.randrange(len(chunk))
            self.wfile.write(chunk[:half])
            self.wfile.write(chunk[half:])
        return None
