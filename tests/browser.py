"""Chromium without a window, spoken to by the DevTools protocol: enough to open a page, ask it things and look at it."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60.0
"""Seconds for the browser to start, and for each answer."""


def chromium() -> str:
    """The browser's program. Where none is the test is skipped, unless DMSIM_REQUIRE_CHROMIUM forbids it."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        missing = "no Chromium is installed"
        if os.environ.get("DMSIM_REQUIRE_CHROMIUM") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    return found


class Browser:
    """A browser with one page."""

    def __init__(self, folder: Path) -> None:
        command = [chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        command += [f"--user-data-dir={folder}", "--remote-debugging-port=0", "--no-first-run", "about:blank"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._loop = asyncio.new_event_loop()
        self._numbers = itertools.count(1)
        self.errors: list[str] = []
        """What the page's script has thrown, and what it wanted to fetch and could not."""
        try:
            self._loop.run_until_complete(self._connect(self._port(folder / "DevToolsActivePort")))
        except BaseException:
            self._stop()
            raise

    def _port(self, file: Path) -> str:
        until = time.monotonic() + PATIENCE
        while not file.exists() or "\n" not in file.read_text():
            assert self._process.poll() is None, f"chromium ended with {self._process.returncode}"
            assert time.monotonic() < until, "chromium does not answer"
            time.sleep(0.05)
        return file.read_text().split("\n")[0]

    async def _connect(self, port: str) -> None:
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{port}/json") as answer:
            page = next(target for target in await answer.json() if target["type"] == "page")
        self._socket = await self._session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self._call(f"{domain}.enable")

    async def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            said = await asyncio.wait_for(self._socket.receive_json(), PATIENCE)
            if said.get("id") == number:
                assert "error" not in said, said
                return said["result"]
            self._note(said)

    def _note(self, said: dict[str, Any]) -> None:
        match said.get("method"), said.get("params"):
            case "Runtime.exceptionThrown", parameters:
                self.errors.append(str(parameters["exceptionDetails"]))
            case "Log.entryAdded", {"entry": {"level": "error", "text": text}}:
                self.errors.append(text)
            case "Network.requestWillBeSent", {"request": {"url": url}} if url.startswith(("http:", "https:", "ws:", "wss:")):
                self.errors.append(f"wants {url}")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the protocol."""
        return self._loop.run_until_complete(self._call(method, **parameters))

    def open(self, url: str, width: int = 1280, height: int = 900) -> None:
        """Open a page in a window of this size, and wait until it has drawn itself."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.wait('document.readyState === "complete" && location.href !== "about:blank"')

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, expression: str) -> None:
        """Until an expression is true."""
        until = time.monotonic() + PATIENCE
        while not self.ask(expression):
            assert time.monotonic() < until, expression
            time.sleep(0.05)

    def type(self, selector: str, text: str) -> None:
        """Put a text into a field as if it were typed."""
        self.ask(f"document.querySelector({selector!r}).focus(); document.querySelector({selector!r}).select()")
        self.call("Input.insertText", text=text)

    def picture(self, path: Path) -> None:
        """What the window shows."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        """End the browser."""

        async def leave() -> None:
            await self._socket.close()
            await self._session.close()

        self._loop.run_until_complete(leave())
        self._stop()

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._loop.close()
