"""Chromium without a window, steered through a pipe (the DevTools protocol), with the standard library alone."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional


def find_chromium() -> Optional[str]:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """One page. Keeps what the page says on the console, its errors, and every request that it makes."""

    def __init__(self, program: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hone-browser-", ignore_cleanup_errors=True)
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def pipes() -> None:  # where the browser looks for them
            low, high = os.dup(to_browser), os.dup(from_browser)
            os.dup2(low, 3)
            os.dup2(high, 4)

        arguments = [
            program,
            "--headless=new",
            "--remote-debugging-pipe",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--hide-scrollbars",
            "--font-render-hinting=none",
            f"--user-data-dir={self._folder.name}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            arguments, preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_browser)
        os.close(from_browser)
        self._received = b""
        self._last_id = 0
        self.console: List[str] = []
        self.errors: List[str] = []
        self.requests: List[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        try:
            self._call("Browser.close")
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)
        self._folder.cleanup()

    def call(self, method: str, **parameters: Any) -> Dict[str, Any]:
        return self._call(method, self._session, **parameters)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, or of the promise that it is."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression[:200]}: {json.dumps(answer['exceptionDetails'])[:1000]}")
        return answer["result"].get("value")

    def wait_for(self, expression: str, limit_s: float = 60) -> None:
        end = time.monotonic() + limit_s
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise AssertionError(
                    f"not within {limit_s} s: {expression}; console: {self.console}; errors: {self.errors}"
                )
            time.sleep(0.02)

    def size(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, colours: str) -> None:
        """ "light" or "dark", as the system would say."""
        self.call(
            "Emulation.setEmulatedMedia",
            features=[
                {"name": "prefers-color-scheme", "value": colours},
                {"name": "prefers-reduced-motion", "value": "reduce"},
            ],
        )

    def press(self, key: str) -> None:
        code = {"Tab": 9, "Enter": 13, " ": 32}.get(key, 0)
        text = {"Enter": "\r", " ": " "}.get(key, "")
        common = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def screenshot(self, file: Path) -> None:
        data = self.call("Page.captureScreenshot", format="png")["data"]
        file.write_bytes(base64.b64decode(data))

    def _call(self, method: str, session: str = "", **parameters: Any) -> Dict[str, Any]:
        self._last_id += 1
        message: Dict[str, Any] = {"id": self._last_id, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self._send(json.dumps(message).encode() + b"\0")
        return self._answer(self._last_id, method)

    def _send(self, text: bytes) -> None:
        while text:
            text = text[os.write(self._out, text) :]

    def _answer(self, wanted: int, method: str) -> Dict[str, Any]:
        end = time.monotonic() + 60
        while True:
            message = self._next(end)
            if message.get("id") == wanted:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _next(self, end: float) -> Dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._in], [], [], max(0, end - time.monotonic()))
            block = os.read(self._in, 1 << 20) if ready else b""
            if not block:
                raise AssertionError("the browser does not answer")
            self._received += block
        text, self._received = self._received.split(b"\0", 1)
        return json.loads(text)

    def _note(self, message: Dict[str, Any]) -> None:
        handlers: Dict[str, Callable[[Dict[str, Any]], None]] = {
            "Runtime.consoleAPICalled": lambda said: self.console.append(f"{said['type']}: {said['args']}"),
            "Runtime.exceptionThrown": lambda thrown: self.errors.append(
                json.dumps(thrown["exceptionDetails"])[:2000]
            ),
            "Log.entryAdded": lambda entry: self.errors.append(
                f"{entry['entry']['level']}: {entry['entry']['text']}"
            ),
            "Network.requestWillBeSent": lambda sent: self.requests.append(sent["request"]["url"]),
        }
        handlers.get(message.get("method", ""), lambda _: None)(message.get("params", {}))
