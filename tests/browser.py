"""A headless Chromium driven over a pipe with the DevTools protocol: only the standard library is needed."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]
PATIENCE = 60.0  # seconds for one answer; a browser that is silent longer is broken


def program() -> str | None:
    """Chromium or Chrome: $CHROMIUM, or what the search path has."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One browser process with an empty profile."""

    def __init__(self, executable: str, profile: Path) -> None:
        # Chromium listens on descriptor 3 and answers on 4.
        move = 'exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1'
        words = ["sh", "-c", move, executable, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}  # under sanitizers
        self.process = subprocess.Popen(words, env=clean, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.numbers = itertools.count(1)
        self.buffer = b""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *problem: object) -> None:
        self.process.kill()
        self.process.communicate()

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Ask, and wait for the answer; events that come meanwhile are kept."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def _receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(self.process.stdout.fileno(), 1 << 20) if ready else b""
            if not piece:
                raise RuntimeError("the browser is silent" if not ready else "the browser has gone")
            self.buffer += piece
        text, _, self.buffer = self.buffer.partition(b"\0")
        return dict(json.loads(text))


class Tab:
    """A page in a browser: what it shows, what it says on its console, and what it asks of the network."""

    def __init__(self, browser: Browser, address: str, *, scripts: bool = True) -> None:
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(1200, 900)
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Page.navigate", url=address)
        deadline = time.monotonic() + PATIENCE
        while not self.events("Page.loadEventFired"):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{address} does not load")
            self.call("Page.getFrameTree")  # events come with answers

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def events(self, *methods: str) -> list[dict[str, Any]]:
        mine = [event for event in self.browser.events if event.get("sessionId") == self.session]
        return [event["params"] for event in mine if event["method"] in methods]

    def complaints(self) -> list[str]:
        """Errors and words on the console."""
        self.run("0")  # whatever was said before has arrived when this is answered
        thrown = [event["exceptionDetails"] for event in self.events("Runtime.exceptionThrown")]
        said = self.events("Runtime.consoleAPICalled", "Log.entryAdded")
        return [str(details["exception"]["description"]) for details in thrown] + [str(event) for event in said]

    def requests(self) -> list[str]:
        """Addresses the page asked for, its own first."""
        return [event["request"]["url"] for event in self.events("Network.requestWillBeSent")]

    def run(self, script: str) -> Any:
        """The value of an expression of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]["exception"].get("description", answer)))
        return answer["result"].get("value")

    def resize(self, width: int, height: int, *, scale: float = 1.0) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )

    def media(self, kind: str = "", **features: str) -> None:
        """As if printed (kind="print"), or as another user sees it (prefers_color_scheme="dark")."""
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", media=kind, features=named)

    def place(self, selector: str, across: float = 0.5, down: float = 0.5) -> tuple[float, float]:
        """A point of an element, in shares of its width and height, after scrolling it into view."""
        words = json.dumps(selector)
        box = self.run(
            f"(e => {{ e.scrollIntoView({{block: 'center', behavior: 'instant'}}); "
            f"const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; }})"
            f"(document.querySelector({words}))"
        )
        return box[0] + across * box[2], box[1] + down * box[3]

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def hover(self, selector: str, across: float = 0.5, down: float = 0.5) -> None:
        self.mouse("mouseMoved", *self.place(selector, across, down))

    def click(self, selector: str, *, shift: bool = False) -> None:
        x, y = self.place(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1, modifiers=8 * shift)

    def key(self, key: str, *, text: str = "", shift: bool = False) -> None:
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, modifiers=8 * shift, **more)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Save what is seen as PNG."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def printed(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])
