"""A browser without a window, driven through chromedriver's W3C protocol with the standard library alone."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowRight": "\ue014", "ArrowDown": "\ue015",
        "ArrowUp": "\ue013", "Tab": "\ue004"}  # fmt: skip


class Browser:
    """One window of a headless Chromium; a context manager that ends what it started."""

    def __init__(self, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.root = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [str(DRIVER), f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--force-prefers-reduced-motion",
                     f"--window-size={width},{height}"]  # fmt: skip
        if dark:
            arguments.append("--blink-settings=preferredColorScheme=0")
        options = {"binary": CHROMIUM, "args": arguments}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        try:
            self._wait()
            session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except BaseException:
            self.process.kill()
            raise
        self.session = f"/session/{session['sessionId']}"
        self._call("POST", f"{self.session}/timeouts", {"script": 60_000, "pageLoad": 60_000})
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                      mobile=False)  # fmt: skip

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._call("DELETE", self.session)
        finally:
            self.process.terminate()
            self.process.wait(10)

    def _wait(self) -> None:
        for _ in range(300):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError("chromedriver did not come up")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if method in ("GET", "DELETE") else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.root + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()[:1500]) from error

    def devtools(self, command: str, **params: Any) -> Any:
        return self._call("POST", f"{self.session}/goog/cdp/execute", {"cmd": command, "params": params})

    def open(self, page: Path) -> None:
        self._call("POST", f"{self.session}/url", {"url": page.resolve().as_uri()})

    def run(self, script: str, *args: Any) -> Any:
        """What a piece of JavaScript returns."""
        return self._call("POST", f"{self.session}/execute/sync", {"script": script, "args": list(args)})

    def until(self, script: str, *args: Any) -> None:
        """Wait for a piece of JavaScript to return something true; ten seconds at most."""
        for _ in range(200):
            if self.run(script, *args):
                return
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}")

    def find(self, css: str) -> str:
        found = self._call("POST", f"{self.session}/element", {"using": "css selector", "value": css})
        return str(found[ELEMENT])

    def click(self, css: str) -> None:
        self._call("POST", f"{self.session}/element/{self.find(css)}/click")

    def type(self, *keys: str) -> None:
        """Keys to whatever has the focus: names of `KEYS`, or characters."""
        actions = [
            {"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")
        ]  # fmt: skip
        keyboard = [{"type": "key", "id": "keyboard", "actions": actions}]
        self._call("POST", f"{self.session}/actions", {"actions": keyboard})

    def log(self) -> list[str]:
        """What the console says of errors and warnings."""
        entries = self._call("POST", f"{self.session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, file: Path, *, whole: bool = False) -> None:
        if whole:
            taken = self.devtools("Page.captureScreenshot", captureBeyondViewport=True, format="png")["data"]
        else:
            taken = self._call("GET", f"{self.session}/screenshot")
        file.write_bytes(base64.b64decode(taken))
