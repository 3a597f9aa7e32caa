# SPDX-License-Identifier: MIT
"""How does a test use a real browser? Chromium without a window, controlled by
chromedriver over WebDriver's HTTP; this needs only Python's own library."""

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from program import need_localhost

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic",
    "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--disable-default-apps", "--disable-extensions", "--mute-audio",
    "--window-size=1200,1000",
]

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the name WebDriver gives it

# WebDriver's codes for keys that are not characters.
TAB, ENTER, ESCAPE = "\ue004", "\ue007", "\ue00c"
LEFT, RIGHT, SHIFT = "\ue012", "\ue014", "\ue008"


def missing():
    """Why there is no browser; None: there is one. chromedriver finds the
    browser by the name localhost."""
    for name in ("chromium", "chromedriver"):
        if not shutil.which(name):
            return name + " is not installed"
    try:
        need_localhost()
    except unittest.SkipTest as why:
        return str(why)
    return None


class Browser:
    """One window, with a profile of its own that close() removes."""

    def __init__(self, flags=()):
        self.home = tempfile.mkdtemp(prefix="wq-browser-")
        environment = dict(os.environ, HOME=self.home)
        for name in list(environment):  # without a proxy
            if name.lower().endswith("_proxy"):
                del environment[name]
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=environment,
            start_new_session=True)
        self.session = None
        try:
            self.url = "http://127.0.0.1:%s" % self._read_port()
            answer = self._call("POST", "/session", {"capabilities": {
                "alwaysMatch": {
                    "goog:chromeOptions": {
                        "args": FLAGS + list(flags) +
                                ["--user-data-dir=" + self.home + "/profile"],
                        "binary": shutil.which("chromium")},
                    "goog:loggingPrefs": {"browser": "ALL",
                                          "performance": "ALL"}}}})
            self.session = "/session/" + answer["sessionId"]
        except BaseException:
            self.close()
            raise

    def _read_port(self):
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                return line.rsplit(None, 1)[1].rstrip(".\n")
        raise RuntimeError("chromedriver did not start")

    def _call(self, method, path, body=None):
        request = urllib.request.Request(
            self.url + path, method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()[:500]) from error

    def close(self):
        try:
            if self.session:
                self._call("DELETE", self.session)
        except (RuntimeError, OSError):
            pass
        try:
            os.killpg(self.driver.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.driver.wait()
        self.driver.stdout.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def open(self, url):
        self._call("POST", self.session + "/url", {"url": url})

    def run(self, script, *arguments):
        """Returns the value of a function with this body."""
        return self._call("POST", self.session + "/execute/sync",
                          {"script": script, "args": list(arguments)})

    def find(self, selector):
        return self._call("POST", self.session + "/element",
                          {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self._call("POST", "%s/element/%s/click" %
                   (self.session, self.find(selector)), {})

    def text(self, selector):
        return self.run(
            "return document.querySelector(arguments[0]).textContent", selector)

    def label(self, selector):
        """The label that a screen reader reads."""
        return self._call("GET", "%s/element/%s/computedlabel" %
                          (self.session, self.find(selector)))

    def role(self, selector):
        """The role that a screen reader reads."""
        return self._call("GET", "%s/element/%s/computedrole" %
                          (self.session, self.find(selector)))

    def prefer(self, feature, value):
        """Sets a preference, like a setting of the system."""
        self._devtools("Emulation.setEmulatedMedia", {
            "features": [{"name": feature, "value": value}]})

    def narrow(self, width):
        """Makes the page narrower than a window can be, without scroll bars
        beside it, as on a telephone."""
        self._devtools("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 800, "deviceScaleFactor": 1,
            "mobile": False})

    def _devtools(self, command, parameters):
        self._call("POST", self.session + "/goog/cdp/execute",
                   {"cmd": command, "params": parameters})

    def press(self, *keys):
        """Presses keys, for the element that has the focus."""
        steps = []
        for key in keys:
            steps += [{"type": "keyDown", "value": key},
                      {"type": "keyUp", "value": key}]
        self._call("POST", self.session + "/actions", {"actions": [
            {"type": "key", "id": "keyboard", "actions": steps}]})

    def wait(self, script, *arguments, seconds=20):
        """Waits until the script returns a true value, and returns it."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(script, *arguments)
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError("timed out waiting for: " + script)
            time.sleep(0.03)

    def log(self, kind):
        return self._call("POST", self.session + "/se/log", {"type": kind})

    def requests(self):
        """The URLs requested since the last call."""
        urls = []
        for entry in self.log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                urls.append(message["params"]["request"]["url"])
        return urls

    def resize(self, width, height):
        self._call("POST", self.session + "/window/rect",
                   {"width": width, "height": height})

    def shape(self, width, height):
        """As resize(), also below the least width of a window (500)."""
        self._call("POST", self.session + "/goog/cdp/execute", {
            "cmd": "Emulation.setDeviceMetricsOverride", "params": {
                "width": width, "height": height, "deviceScaleFactor": 1,
                "mobile": False}})

    def unshape(self):
        """The window has its own size again."""
        self._call("POST", self.session + "/goog/cdp/execute", {
            "cmd": "Emulation.clearDeviceMetricsOverride", "params": {}})

    def picture(self):
        """The content of the window as the bytes of a PNG."""
        return base64.b64decode(self._call("GET", self.session + "/screenshot"))
