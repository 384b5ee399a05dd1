"""A headless Chromium, driven over a pipe by the DevTools protocol: no package is needed."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from time import monotonic
from typing import Any, Self

import pytest

from tests.tables import ROOT

NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
)
_SECONDS = 300.0


class Browser:
    """One Chromium with one page; what the page logs and asks for is kept."""

    def __init__(self, process: subprocess.Popen[bytes], into: int, out: int) -> None:
        self.process, self._into, self._out = process, into, out
        self._count, self._session, self._rest = 0, "", b""
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._into, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _receive(self) -> dict[str, Any]:
        end = monotonic() + _SECONDS
        while b"\0" not in self._rest:
            ready, _, _ = select([self._out], [], [], max(end - monotonic(), 0.0))
            assert ready, "the browser does not answer"
            piece = os.read(self._out, 2**20)
            assert piece, "the browser ended"
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def open(self, path: Path) -> Self:
        """Load a file and wait until it is there; what was kept is forgotten."""
        self.events.clear()
        self.ask("Page.navigate", url=path.resolve().as_uri())
        while not any(each.get("method") == "Page.loadEventFired" for each in self.events):
            self.events.append(self._receive())
        return self

    def run(self, script: str) -> Any:
        """The value of an expression in the page, waited for where it is a promise."""
        answer = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """One key, down and up, by its name and Windows' number."""
        for kind in ("keyDown", "keyUp"):
            self.ask(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )

    def look(self, *, width: int = 1400, dark: bool = False, media: str = "") -> None:
        """How wide the window is, and which colours the reader prefers."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def picture(self, *, top: float = 0.0, height: float = 900.0) -> bytes:
        """A part of the page as PNG, as wide as the window."""
        width = self.run("document.documentElement.clientWidth")
        clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
        taken = self.ask(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
        )
        return base64.b64decode(taken["data"])

    def pdf(self) -> bytes:
        """The page as it is printed."""
        made = self.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        return base64.b64decode(made["data"])

    def complaints(self) -> list[str]:
        """Whatever the page logged: messages, errors, and refusals of the policy."""
        self.run("0")
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(each["params"]) for each in self.events if each.get("method") in kinds]

    def requests(self) -> list[str]:
        """Every address that the page asked for, itself included."""
        return [
            each["params"]["request"]["url"]
            for each in self.events
            if each.get("method") == "Network.requestWillBeSent"
        ]


def find_browser() -> str:
    """The program; without one the test is skipped, which in CI is a failure."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    return pytest.skip("no Chromium on this machine. Install it (Debian: apt install chromium).")


@contextmanager
def start_browser() -> Iterator[Browser]:
    """A browser with a profile of its own, gone afterwards."""
    program = find_browser()
    child_in, into = os.pipe()
    out, child_out = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The protocol wants descriptors 3 and 4; a shell gives them those numbers.
        words = [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{child_in} 4>&{child_out}', "bash", *words],
            pass_fds=(child_in, child_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(child_in)
        os.close(child_out)
        try:
            yield Browser(process, into, out)
        finally:
            os.close(into)
            os.close(out)
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def find_axe() -> Path:
    """The rules of axe-core; without them the test is skipped, which in CI is a failure."""
    path = ROOT / ".axe" / "node_modules" / "axe-core" / "axe.min.js"
    if not path.exists():
        pytest.skip("axe-core is not here. Install it: npm install --prefix .axe axe-core")
    return path
