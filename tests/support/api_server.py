"""Servers on this machine that speak the vendors' protocols and fail in every way we know.

`serving` answers single calls. `batching` keeps batches that end after some looks, in part, or lose the answer to a
call; Gemini's speak its own protocol, with files that are uploaded in two calls.
"""

from __future__ import annotations

import email
import email.policy
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

KEY = "sk-very-secret"
GOOD = '{"answer": "a fox", "confidence": "high"}'
Step = dict[str, Any]
_NOW = "2026-11-21T12:00:00Z"


def body_of(provider: str, step: Step) -> dict[str, Any]:
    if "body" in step:
        whole: dict[str, Any] = step["body"]
        return whole
    text = step.get("text", GOOD)
    if provider == "anthropic":
        usage = {"input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 100}
        return {
            "id": "m", "type": "message", "role": "assistant", "model": "served",
            "content": [{"type": "text", "text": text}],
            "stop_reason": step.get("stop", "end_turn"), "usage": {**usage, "output_tokens": 20},
        }  # fmt: skip
    details = {"cached_tokens": 100}
    words = [{"token": token, "logprob": value, "bytes": None} for token, value in step.get("words", {}).items()]
    more = {"refusal": step.get("refusal"), **step.get("message", {})}
    logprobs = {"logprobs": {"content": [{**words[0], "top_logprobs": words}], "refusal": None}} if words else {}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": "served",
        "choices": [{"index": 0, "finish_reason": step.get("stop", "stop"),
                     "message": {"role": "assistant", "content": text, **more}, **logprobs}],
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

    def body(self, number: int) -> dict[str, Any]:
        """Request `number` as it was sent."""
        sent: dict[str, Any] = json.loads(self.bodies[number])
        return sent

    def said(self, number: int) -> list[str]:
        """The texts of request `number`'s messages."""
        return [str(message["content"]) for message in self.body(number)["messages"]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        size = int(self.headers["content-length"])
        raw = self.rfile.read(size)
        if len(raw) < size:  # who asked was killed in the middle of it
            self.close_connection = True
            return
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


@dataclass
class Made:
    """One batch that was made: its requests by key, and how many looks until it has ended."""

    id: str
    requests: list[tuple[str, dict[str, Any]]]
    file_id: str | None = None
    looks: int = 2
    endpoint: str = "/v1/chat/completions"
    outcomes: dict[str, Step] = field(default_factory=dict)


class BatchServer(ThreadingHTTPServer):
    """`rule` answers a request; a step may be `{"failed": "expired"}`. `lose` cuts the answer to the next creations."""

    daemon_threads = True

    def __init__(self, provider: str, rule: Callable[[dict[str, Any]], Step]) -> None:
        super().__init__(("127.0.0.1", 0), _BatchHandler)
        self.provider, self.rule, self.lock = provider, rule, threading.Lock()
        self.files: dict[str, bytes] = {}
        self.made: list[Made] = []
        self.single_calls, self.lose, self.busy, self.looks = 0, 0, 0, 2
        self.on_create: Callable[[], None] = lambda: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}" + ("/v1" if self.provider == "openai" else "")

    @property
    def asked(self) -> int:
        """Requests that were paid for."""
        return sum(len(batch.requests) for batch in self.made)

    def make(self, requests: list[tuple[str, dict[str, Any]]], file_id: str | None = None) -> Made:
        batch = Made(f"batch_{len(self.made) + 1}", requests, file_id, self.looks)
        batch.outcomes = {key: self.rule(body) for key, body in requests}
        self.made.append(batch)
        return batch

    def state(self, batch: Made) -> dict[str, Any]:
        """A batch as Gemini's API shows it."""
        ended = batch.looks <= 0
        told: dict[str, Any] = {"state": "BATCH_STATE_SUCCEEDED" if ended else "BATCH_STATE_RUNNING"}
        told |= {"displayName": batch.file_id, "output": {"responsesFile": f"files/{batch.id}-out"} if ended else {}}
        return {"name": f"batches/{batch.id}", "metadata": told, "done": ended}

    def shown(self, batch: Made) -> dict[str, Any]:
        """A batch as the vendor's API shows it."""
        ended = batch.looks <= 0
        if self.provider == "anthropic":
            bad = sum("failed" in step for step in batch.outcomes.values())
            counts = {"processing": 0 if ended else len(batch.requests), "errored": bad if ended else 0,
                      "succeeded": len(batch.requests) - bad if ended else 0, "canceled": 0, "expired": 0}  # fmt: skip
            return {"id": batch.id, "type": "message_batch", "processing_status": "ended" if ended else "in_progress",
                    "request_counts": counts, "created_at": "2099-01-01T00:00:00Z", "expires_at": _NOW,
                    "ended_at": _NOW if ended else None, "archived_at": None, "cancel_initiated_at": None,
                    "results_url": f"{self.url}/v1/messages/batches/{batch.id}/results" if ended else None}  # fmt: skip
        bad = any("failed" in step for step in batch.outcomes.values())
        status = ("expired" if bad else "completed") if ended else "in_progress"
        return {"id": batch.id, "object": "batch", "endpoint": batch.endpoint, "input_file_id": batch.file_id,
                "completion_window": "24h", "status": status, "created_at": 1,
                "output_file_id": f"{batch.id}-out" if ended else None,
                "error_file_id": f"{batch.id}-err" if ended and bad else None}  # fmt: skip

    def lines(self, batch: Made, *, failed: bool | None) -> bytes:
        """The results, in another order than the requests."""
        rows = []
        for key, step in reversed(batch.outcomes.items()):
            bad = step.get("failed")
            if failed is not None and failed != (bad is not None):
                continue
            if self.provider == "anthropic":
                error = {"type": "error", "error": {"type": "invalid_request_error", "message": "too odd"}}
                outcome: dict[str, Any] = {"type": bad} | ({"error": error} if bad == "errored" else {})
                if bad is None:
                    outcome = {"type": "succeeded", "message": body_of("anthropic", step)}
                rows.append({"custom_id": key, "result": outcome})
            elif self.provider == "gemini":
                failed_so = {"error": {"code": 4, "message": f"{bad}: too late"}}
                rows.append({"key": key, **({"response": body_of("gemini", step)} if bad is None else failed_so)})
            elif bad is None:
                response = {"status_code": 200, "request_id": "r", "body": body_of("openai", step)}
                rows.append({"id": "x", "custom_id": key, "response": response, "error": None})
            else:
                error = {"code": f"batch_{bad}", "message": "too late"}
                rows.append({"id": "x", "custom_id": key, "response": None, "error": error})
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


class _BatchHandler(BaseHTTPRequestHandler):
    server: BatchServer

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        path, server = urlsplit(self.path).path, self.server
        with server.lock:
            if server.busy:
                server.busy -= 1
                self._say({"error": {"message": "busy"}}, status=429)
            elif path == "/v1/files":
                self._say(self._keep_file(raw))
            elif path.startswith("/upload/"):
                self._upload(path, raw)
            elif path.endswith(":batchGenerateContent"):
                self._create_named(json.loads(raw)["batch"])
            elif path in {"/v1/messages/batches", "/v1/batches"}:
                self._create(json.loads(raw))
            else:
                server.single_calls += 1
                self._say(body_of(server.provider, server.rule(json.loads(raw))))

    def _keep_file(self, raw: bytes) -> dict[str, Any]:
        head = f"content-type: {self.headers['content-type']}\r\n\r\n".encode()
        message = email.message_from_bytes(head + raw, policy=email.policy.HTTP)
        parts = {part.get_param("name", header="content-disposition"): part for part in message.iter_parts()}
        file_id = f"file_{len(self.server.files) + 1}"
        self.server.files[file_id] = parts["file"].get_payload(decode=True)
        return {"id": file_id, "object": "file", "bytes": 1, "created_at": 1, "filename": "r", "purpose": "batch",
                "status": "processed"}  # fmt: skip

    def _upload(self, path: str, raw: bytes) -> None:
        """Give an address for a file, then take it there."""
        server, name = self.server, f"files/{len(self.server.files) + 1}"
        if path.endswith("/files"):
            self._say({}, **{"x-goog-upload-url": f"{server.url}/upload/{name}", "x-goog-upload-status": "active"})
        else:
            server.files[name] = raw
            self._say({"file": {"name": name}}, **{"x-goog-upload-status": "final"})

    def _create_named(self, batch: dict[str, Any]) -> None:
        server, place = self.server, batch["inputConfig"]["fileName"]
        rows = [json.loads(line) for line in server.files[place].splitlines()]
        made = server.make([(row["key"], row["request"]) for row in rows], batch["displayName"])
        self._made(server.state(made))

    def _create(self, body: dict[str, Any]) -> None:
        server = self.server
        if server.provider == "anthropic":
            made = server.make([(row["custom_id"], row["params"]) for row in body["requests"]])
        else:
            rows = [json.loads(line) for line in server.files[body["input_file_id"]].splitlines()]
            made = server.make([(row["custom_id"], row["body"]) for row in rows], body["input_file_id"])
            made.endpoint = body["endpoint"]
            assert {row["url"] for row in rows} == {made.endpoint}
        self._made(server.shown(made))

    def _made(self, told: dict[str, Any]) -> None:
        server = self.server
        server.on_create()
        if server.lose:
            server.lose -= 1
            self.close_connection = True
            self.connection.shutdown(2)
            return
        self._say(told)

    def do_GET(self) -> None:
        path, server = urlsplit(self.path).path, self.server
        with server.lock:
            named = next((batch for batch in server.made if batch.id in path), None)
            if server.provider == "gemini" and ":download" not in path:
                if named is not None:
                    named.looks -= 1
                told = {"operations": [server.state(batch) for batch in reversed(server.made)]}
                self._say(server.state(named) if named is not None else told)
            elif named is None:
                newest = [server.shown(batch) for batch in reversed(server.made)]
                self._say({"object": "list", "data": newest, "has_more": False, "first_id": None, "last_id": None})
            elif path.endswith("/results"):
                self._send(server.lines(named, failed=None), "application/x-jsonl")
            elif ":download" in path:
                self._send(server.lines(named, failed=None), "application/octet-stream")
            elif path.endswith("/content"):
                self._send(server.lines(named, failed="-err" in path), "application/jsonl")
            else:
                named.looks -= 1
                self._say(server.shown(named))

    def _say(self, value: dict[str, Any], status: int = 200, **headers: str) -> None:
        self._send(json.dumps(value).encode(), "application/json", status, headers)

    def _send(self, data: bytes, kind: str, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True


@contextmanager
def batching(provider: str, rule: Callable[[dict[str, Any]], Step]) -> Iterator[BatchServer]:
    """A server that runs until the block ends."""
    server = BatchServer(provider, rule)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
