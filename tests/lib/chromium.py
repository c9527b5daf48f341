# SPDX-License-Identifier: MIT
"""Chromium without a window, by the DevTools protocol on two pipes. Nothing but Python's own modules is needed.
https://chromedevtools.github.io/devtools-protocol/ has the methods and the events."""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from read_png import decode

SECONDS = 120  # what takes longer never comes
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
         "--remote-debugging-pipe"]


def find():
    """The path of the program, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """A browser with one page. `complaints` has what the console and the scripts of that complained about, `requests`
    the addresses that it read."""

    def __init__(self, width=1400, height=900):
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.complaints, self.requests, self.buffer, self.number, self.session = [], [], b"", 0, None
        self.log = open(os.path.join(self.home.name, "log"), "w+b")
        # The browser reads from descriptor 3 and writes to 4, which may be taken here: ours are above them.
        pipes = [*os.pipe(), *os.pipe()]
        theirs_in, self.into, self.out, theirs_out = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in pipes)
        self.process = subprocess.Popen(
            [find(), *FLAGS, f"--user-data-dir={self.home.name}/data", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env={**os.environ, "HOME": self.home.name},
            preexec_fn=lambda: (os.dup2(theirs_in, 3), os.dup2(theirs_out, 4)), pass_fds=(3, 4))
        for fd in (*pipes, theirs_in, theirs_out):
            os.close(fd)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for fd in (self.into, self.out):
            os.close(fd)  # it ends
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.home.cleanup()

    def message(self):
        """The next message; all end in a NUL."""
        end = time.monotonic() + SECONDS
        while b"\0" not in self.buffer:
            ready = select.select([self.out], [], [], max(0, end - time.monotonic()))[0]
            more = os.read(self.out, 1 << 20) if ready else b""
            if not more:
                self.log.seek(0)
                raise RuntimeError(f"the browser says no more\n{self.log.read().decode(errors='replace')[-2000:]}")
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def note(self, message):
        """Keep what an event says."""
        method, values = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(values["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(f"{values['entry']['text']} {values['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])

    def call(self, method, **values):
        """Call a method, and return its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": values}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.into, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.note(answer)

    def open(self, address):
        """Open a page, and wait until it is there. Returns the seconds that this took."""
        start = time.monotonic()
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")
        return time.monotonic() - start

    def get(self, script):
        """The value of a script in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def wait(self, script):
        """Wait until a script's value is true."""
        end = time.monotonic() + SECONDS
        while not self.get(script):
            if time.monotonic() > end:
                raise RuntimeError(f"never true: {script}")
            self.get("new Promise(requestAnimationFrame)")

    def key(self, name):
        text = {"text": name} if len(name) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name)

    def mouse(self, *places):
        """Press the button at the first place, drag to the others, and release it."""
        for i, (x, y) in enumerate([*places, places[-1]]):
            kind = "mousePressed" if i == 0 else "mouseReleased" if i == len(places) else "mouseMoved"
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def prefer(self, **features):
        """Set media features, such as prefers_color_scheme="dark"."""
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": name.replace("_", "-"), "value": value} for name, value in features.items()])

    def screenshot(self, **clip):
        """The page, or a part of it, as a PNG."""
        part = {"clip": {**clip, "scale": 1}} if clip else {}
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", **part)["data"])

    def colour(self, x, y):
        """Red, green and blue at a place of the page."""
        return decode(self.screenshot(x=x, y=y, width=1, height=1))[3][0][0][:3]
