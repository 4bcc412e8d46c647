"""A server on this machine that speaks the Chat Completions protocol and fails in every way that we know.

A fault is drawn by the hash of the request and how often it came, so that a run can be made again. `served` holds how
many sound answers were sent whole: nothing else may ever count as an answer.
"""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from asked import asked_in

Body = dict[str, Any]


def completion(text: Any, **changes: Any) -> Body:
    """A whole reply whose message is `text`."""
    message = {"role": "assistant", "content": text, "refusal": changes.pop("refusal", None)}
    choice = {"index": 0, "finish_reason": changes.pop("finish", "stop"), "message": message}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    } | changes


def good(request: Body, **changes: Any) -> str:
    """A sound answer: the first of what the schema allows for each field, and of each question's own options. changes:
    other fields of it; of each row where several questions are asked in one call."""
    fields = request["response_format"]["json_schema"]["schema"]["properties"]
    if "answers" not in fields:
        return json.dumps(_first(fields) | changes)
    fields = fields["answers"]["items"]["properties"]
    chosen = "final_answer" if "final_answer" in fields else "answer"
    rows = []
    for number, (_, options) in enumerate(asked_in(request).questions, 1):
        own = {chosen: options[0]} if options else {}
        rows.append({**_first(fields), **own, **changes, "number": number})
    return json.dumps({"answers": rows})


def _first(fields: Body) -> Body:
    return {name: rule.get("enum", ["a fox"])[0] for name, rule in fields.items()}


Reply = tuple[int, bytes, dict[str, str]]
"""Status, body, headers."""


def _json(value: Any, status: int = 200, **headers: str) -> Reply:
    return status, json.dumps(value).encode(), {name.replace("_", "-"): text for name, text in headers.items()}


def _error(status: int, code: str = "bad", **headers: str) -> Reply:
    return _json({"error": {"type": "bad", "message": "no", "code": code}}, status, **headers)


REPLIES: dict[str, Callable[[Body], Reply]] = {
    **{
        f"status {status}": lambda _, status=status: _error(status)
        for status in (400, 408, 409, 413, 422, 500, 502, 503, 504)
    },
    "busy": lambda _: _error(429, retry_after_ms="1"),
    "busy without a word": lambda _: (429, b"", {}),
    "overloaded": lambda _: _error(529),
    "html": lambda _: (200, b"<html>busy</html>", {"content-type": "text/html"}),
    "html error": lambda _: (502, b"<html>bad gateway</html>", {"content-type": "text/html"}),
    "nothing": lambda _: (200, b"", {}),
    "null": lambda _: (200, b"null", {}),
    "a list": lambda _: (200, b"[]", {}),
    "a number": lambda _: (200, b"7", {}),
    "no choices": lambda request: _json(completion("x", choices=[])),
    "choices null": lambda request: _json(completion("x", choices=None)),
    "no message": lambda request: _json(completion("x", choices=[{"index": 0, "finish_reason": "stop"}])),
    "message of numbers": lambda request: _json(completion(7)),
    "no text": lambda request: _json(completion(None)),
    "blank text": lambda request: _json(completion("  \n")),
    "prose": lambda request: _json(completion("I think the fox is happy.")),
    "half of the answer": lambda request: _json(completion(good(request)[:-7])),
    "another field": lambda request: _json(completion(good(request, extra="x"))),
    "a field missing": lambda request: _json(completion("{}")),
    "a value of another type": lambda request: _json(completion(good(request, confidence=3))),
    "an option that is none": lambda request: _json(
        completion(good(request, answer="\u0000", final_answer="none of them"))
    ),
    "half a surrogate pair": lambda request: _json(completion('{"answer": "\\ud800 hello"}')),
    "a very long text": lambda request: _json(completion("x" * 300_000)),
    "nested without end": lambda request: _json(completion("[" * 30_000)),
    "cut by its length": lambda request: _json(completion(good(request), finish="length")),
    "filtered": lambda request: _json(completion(good(request), finish="content_filter")),
    "refused": lambda request: _json(completion(None, refusal="I will not.")),
    "not utf-8": lambda _: (200, b'{"id": "\xff\xfe"}', {}),
    "a redirect that goes round": lambda _: (307, b"", {"location": "/v1/chat/completions"}),
}
"""Faults that are a whole reply."""

BREAKS = (
    "reset",
    "cut in the body",
    "cut in the headers",
    "closed at once",
    "no protocol at all",
    "a length that is a lie",
)
"""Faults of the connection."""
KINDS = (*REPLIES, *BREAKS)


class FaultServer(ThreadingHTTPServer):
    """rate: how many of the requests fail, 0 to 1."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, rate: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.rate, self.lock = rate, threading.Lock()
        self.came, self.kinds, self.served = Counter[bytes](), Counter[str](), 0

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def kind_of(self, raw: bytes) -> str | None:
        """The fault of a request, or None."""
        with self.lock:
            self.came[raw] += 1
            dice = random.Random(raw + bytes([self.came[raw] % 256]))
            kind = dice.choice(KINDS) if dice.random() < self.rate else None
            self.kinds[kind or "answered"] += 1
        return kind

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that was cut is what we are here for."""


class _Handler(BaseHTTPRequestHandler):
    server: FaultServer

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        kind = self.server.kind_of(raw)
        self.close_connection = True
        request = json.loads(raw)
        if "response_format" not in request:  # asked in words: the schema is at the end of the prompt
            kind = kind or "prose"
        if kind in BREAKS:
            self._break(str(kind))
        elif kind is not None:
            self._send(*REPLIES[kind](request))
        else:
            self._send(*_json(completion(good(request))))
            with self.server.lock:
                self.server.served += 1

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, text in {"content-type": "application/json", **headers, "content-length": str(len(body))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def _break(self, kind: str) -> None:
        head, body = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n", b'{"id": "c", "choices": ['
        if kind == "cut in the body":
            self.wfile.write(head + b"content-length: 500\r\n\r\n" + body)
        elif kind == "a length that is a lie":
            self.wfile.write(head + b"content-length: 5\r\n\r\n" + body)
        elif kind == "cut in the headers":
            self.wfile.write(head[:30])
        elif kind == "no protocol at all":
            self.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        elif kind == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR) if kind != "reset" else self.connection.close()


@contextmanager
def failing(rate: float) -> Iterator[FaultServer]:
    """A server that runs until the block ends."""
    server = FaultServer(rate)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
