"""A desk as a person starts it: a process of its own, its address, and requests to it as a page or a stranger sends."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, unquote, urlsplit

CHILD = Path(__file__).parent / "cli_child.py"
_LIMIT = 90.0


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)


class DeskProcess:
    """`with DeskProcess(folder, "--judge", "pixel") as desk: desk.post("open", name="fox")`."""

    def __init__(self, folder: Path, *words: object, doubles: bool = True, **environment: str) -> None:
        """Start it; `doubles`: with those of the tests beside the real plug-ins, else as it is installed."""
        known = {**os.environ, "KATHA_CACHE": str(folder / "cache"), **environment}
        katha = [sys.executable, str(CHILD)] if doubles else [str(Path(sys.executable).with_name("katha"))]
        command = [*katha, "desk", *map(str, words), "--no-browser"]
        if not any(str(word).startswith("/") for word in words[:1]):
            command += ["--home", str(folder / "home")]
        self.home = folder / "home"
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=known, cwd=folder
        )
        line = self.process.stdout.readline() if self.process.stdout is not None else ""
        found = re.search(r"http://\S+", line)
        assert found is not None, (line, self.process.stderr.read() if self.process.stderr is not None else "")
        self.address = found[0]
        parts = urlsplit(self.address)
        self.port, self.path = int(parts.port or 0), parts.path
        self.run = unquote(parts.fragment.removeprefix("/board/"))
        """The board that requests are about; the one whose work was begun last."""

    def __enter__(self) -> DeskProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def end(self, number: int = signal.SIGINT) -> int:
        """Stop it, and give its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(timeout=_LIMIT)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                stream.close()
        return code

    def ask(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Reply:
        """Send a request about the board `run`, if there is one; a path that begins with a slash has no token."""
        if self.run and not path.startswith("/"):
            path += f"{'&' if '?' in path else '?'}run={quote(self.run)}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_LIMIT)
        try:
            connection.request(method, path if path.startswith("/") else self.path + path, body, headers or {})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())
        finally:
            connection.close()

    def post(self, action: str, /, **body: object) -> Reply:
        """Do an action as the page does it."""
        headers = {"content-type": "application/json", "origin": f"http://127.0.0.1:{self.port}"}
        reply = self.ask("POST", f"api/{action}", json.dumps(body).encode(), headers)
        if action in ("draw", "import") and reply.status == 200 and reply.json["run"]:
            self.run = reply.json["run"]
        return reply

    def page(self) -> Any:
        """What the page shows."""
        reply = self.ask("GET", "api/board")
        assert reply.status == 200, reply.body
        return reply.json

    def until(self, wanted: str) -> Any:
        """Wait for the progress to be `idle`, to ask (`asks`), or to be idle or wait for a chat window's reply
        (`exchange`), as the page waits; gives it."""
        known, end = "", time.monotonic() + _LIMIT
        while time.monotonic() < end:
            now = self.ask("GET", f"api/progress?known={known}").json
            if now["asks"] if wanted == "asks" else not now["running"] or (wanted == "exchange" and now["exchange"]):
                return now
            assert wanted != "asks" or now["running"], now
            known = now["ticks"]
        raise AssertionError(f"{wanted} never came: {now}")

    def done(self, action: str, /, **body: object) -> Any:
        """Do an action and wait for the work that it begins; gives how it ended."""
        reply = self.post(action, **body)
        assert reply.status == 200, reply.body
        return self.until("idle")
