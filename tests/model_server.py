"""A server on this machine that speaks both vendors' protocols: real SDKs call it, and it answers what a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["ModelServer", "Reply", "serving"]

Reply = dict[str, Any]
"""text, and where wanted: status, message, stop, refusal."""


class ModelServer(ThreadingHTTPServer):
    """Answers request N with `rule(N, body)`; keeps the bodies that came."""

    daemon_threads = True

    def __init__(self, provider: str, rule: Callable[[int, dict[str, Any]], Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.provider, self.rule = provider, rule
        self.bodies: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}" + ("/v1" if self.provider == "openai" else "")

    def said(self, number: int) -> list[str]:
        """The texts of request `number`'s messages."""
        return [str(message["content"]) for message in self.bodies[number]["messages"]]


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.bodies.append(body)
        reply = self.server.rule(len(self.server.bodies) - 1, body)
        status = reply.get("status", 200)
        error = {"error": {"type": "bad", "message": reply.get("message", "no"), "code": reply.get("code")}}
        data = json.dumps(_body(self.server.provider, reply) if status == 200 else error).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True


def _body(provider: str, reply: Reply) -> dict[str, Any]:
    if provider == "anthropic":
        return {
            "id": "m", "type": "message", "role": "assistant", "model": "served",
            "content": [{"type": "text", "text": reply["text"]}], "stop_reason": reply.get("stop", "end_turn"),
            "usage": {"input_tokens": 10, "output_tokens": 20},
        }  # fmt: skip
    message = {"role": "assistant", "content": reply["text"], "refusal": reply.get("refusal")}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": "served",
        "choices": [{"index": 0, "finish_reason": reply.get("stop", "stop"), "message": message}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30},
    }  # fmt: skip


@contextmanager
def serving(provider: str, rule: Callable[[int, dict[str, Any]], Reply]) -> Iterator[ModelServer]:
    """A server that runs while the block does."""
    server = ModelServer(provider, rule)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
