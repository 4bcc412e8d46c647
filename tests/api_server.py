"""Servers on this machine that speak the vendors' protocols and fail in every way we know."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["GOOD", "KEY", "Server", "Step", "serving"]

KEY = "sk-very-secret"
GOOD = '{"answer": "a fox", "confidence": "high"}'
Step = dict[str, Any]


def body_of(provider: str, step: Step) -> dict[str, Any]:
    text = step.get("text", GOOD)
    if provider == "anthropic":
        usage = {"input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 100}
        return {
            "id": "m", "type": "message", "role": "assistant", "model": "served",
            "content": [{"type": "text", "text": text}],
            "stop_reason": step.get("stop", "end_turn"), "usage": {**usage, "output_tokens": 20},
        }  # fmt: skip
    details = {"cached_tokens": 100}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": "served",
        "choices": [{"index": 0, "finish_reason": step.get("stop", "stop"),
                     "message": {"role": "assistant", "content": text, "refusal": step.get("refusal")}}],
        "usage": {"prompt_tokens": 110, "completion_tokens": 20, "total_tokens": 130, "prompt_tokens_details": details},
    }  # fmt: skip


class Server(ThreadingHTTPServer):
    """Answers each request with what `rule` says; keeps the bodies and headers that came."""

    daemon_threads = True

    def __init__(self, provider: str, rule: Callable[[int, dict[str, Any]], Step]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.provider, self.rule, self.lock = provider, rule, threading.Lock()
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.release = threading.Event()

    @property
    def number(self) -> int:
        """How many requests have come."""
        return len(self.bodies)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}" + ("/v1" if self.provider == "openai" else "")


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        with self.server.lock:
            number = len(self.server.bodies)
            self.server.bodies.append(raw)
            self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
            step = self.server.rule(number, json.loads(raw))
        if step.get("before"):
            step["before"]()
        if step.get("hang"):
            self.server.release.wait(20)
            return
        status = step.get("status", 200)
        error = {"error": {"type": "bad", "message": step.get("message", "no"), "code": step.get("code")}}
        data = json.dumps(body_of(self.server.provider, step) if status == 200 else error).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in step.get("headers", {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if step.get("cut") else data)
        self.close_connection = True


@contextmanager
def serving(provider: str, rule: Callable[[int, dict[str, Any]], Step]) -> Iterator[Server]:
    """A server that runs until the block ends."""
    server = Server(provider, rule)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.release.set()
        server.shutdown()
        server.server_close()
