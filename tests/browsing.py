"""A page as a person sees it: headless Chromium, spoken to over its debugging pipe.

Pages of MLflow fill themselves after they have loaded, so they are looked at again and again until
they show what is waited for.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """The path of a browser; empty where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), "")


class Page:
    """One tab. `ask` carries out a command of the DevTools protocol."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, os.fdopen(from_browser, "rb")
        self._number, self._session = 0, ""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        call = {"id": self._number, "method": method, "params": params}
        if self._session:
            call["sessionId"] = self._session
        os.write(self._to, json.dumps(call).encode() + b"\0")
        while True:
            reply = json.loads(self._message())
            if reply.get("id") == self._number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']['message']}")
                return dict(reply["result"])

    def shows(self, url: str, texts: Collection[str], seconds: float) -> str:
        """The text of the page when it shows all of `texts`, or what it shows in the end."""
        self.ask("Page.navigate", url=url)
        until = time.monotonic() + seconds
        seen = ""
        while time.monotonic() < until and not all(text in seen for text in texts):
            time.sleep(0.3)
            script = "document.body ? document.body.innerText : ''"
            seen = self.ask("Runtime.evaluate", expression=script)["result"].get("value", "")
        return seen

    def picture(self, path: Path) -> None:
        """A screenshot as PNG."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))

    def _message(self) -> bytes:
        parts = bytearray()
        while (byte := self._from.read(1)) != b"\0":
            if not byte:
                raise RuntimeError("the browser ended")
            parts += byte
        return bytes(parts)


@contextmanager
def browsing(program: str, profile: Path) -> Iterator[Page]:
    """A tab of a browser of its own."""
    read_by_browser, to_browser = os.pipe()
    from_browser, written_by_browser = os.pipe()
    # The protocol's file numbers are 3 and 4; a shell puts them there.
    script = f'exec "$0" "$@" 3<&{read_by_browser} 4>&{written_by_browser}'
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
    flags += [f"--user-data-dir={profile}", "--window-size=1500,1300", "--no-first-run"]
    process = subprocess.Popen(
        ["bash", "-c", script, program, *flags],
        pass_fds=(read_by_browser, written_by_browser),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(read_by_browser)
    os.close(written_by_browser)
    try:
        yield Page(to_browser, from_browser)
    finally:
        os.close(to_browser)
        os.killpg(process.pid, 15)
        process.wait(20)
