"""What stands before every request: the token in the address, this machine's own name, this page's own origin, a limit.

A page of another site that runs in the same browser can send requests here, but it knows no token, its `Origin` is
another, and a name that it makes point to this machine is not one of ours (DNS rebinding).
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from types import MappingProxyType
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

MOST_BODY = 1_000_000
"""Bytes of a request; a story is at most a fifth of it."""
MOST_DRAWING = 1_000_000
"""Letters of a drawing (SVG) that comes back from the page."""
MOST_REPLY = 1_000_000
"""Letters of a reply from a chat window."""
MOST_FILES: Mapping[str, int] = MappingProxyType(
    {
        "api/picture": 20_000_000,
        "api/own": 60_000_000,
        "api/import": 60_000_000,
        "api/drawing": 6 * MOST_DRAWING,
        "api/export": 10_000_000,
        "api/reply": 6 * MOST_REPLY,
    }
)
"""Bytes of those that bring files: pictures of characters and frames, a board that is drawn already, a drawing as
JSON."""

_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "style-src 'self' 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
)


class TooLargeError(Exception):
    """A request's body is over its limit."""


class Guard:
    """An ASGI application in front of another one, which sees only what may pass, its path without the token."""

    def __init__(self, app: App, token: str, port: int) -> None:
        """port: the one that the server listens to on loopback."""
        self._app, self._token = app, token.encode("ascii")
        self._hosts = frozenset(f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost"))
        self._origins = frozenset(b"http://" + host for host in self._hosts)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with 403 (413: its body is too large)."""
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        refused = self._refusal(scope, headers)
        limit = MOST_FILES.get(scope["path"].removeprefix("/").partition("/")[2], MOST_BODY)
        length = headers.get(b"content-length", b"0")
        if refused:
            await _answer(send, 403, refused)
        elif not length.isdigit() or len(length) > 15 or int(length) > limit:
            await _answer(send, 413, f"At most {limit:,} bytes are taken.")
        else:
            await self._pass(scope, _limited(receive, limit), send)

    def _refusal(self, scope: Message, headers: MutableMapping[bytes, bytes]) -> str:
        """Return why a request may not pass, or nothing."""
        first, slash, _ = scope["path"].removeprefix("/").partition("/")
        if not hmac.compare_digest(first.encode("utf-8", "replace"), self._token) or not slash:
            return "This address has no valid token. Open the address that `katha desk` has printed."
        if headers.get(b"host") not in self._hosts:
            return "This desk answers to 127.0.0.1 and localhost only."
        if headers.get(b"origin", next(iter(self._origins))) not in self._origins:
            return "This desk answers to its own page only."
        if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            return "This desk answers to its own page only."
        return ""

    async def _pass(self, scope: Message, receive: Receive, send: Send) -> None:
        path = "/" + scope["path"].removeprefix("/").partition("/")[2]
        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                own = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *_missing(own)]
            await send(message)

        try:
            await self._app({**scope, "path": path, "raw_path": path.encode("utf-8")}, receive, guarded)
        except TooLargeError as error:
            if not begun:
                await _answer(send, 413, str(error))


def _missing(own: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    known = set(own)
    return [(name.encode(), value.encode()) for name, value in _HEADERS if name.encode() not in known]


def _limited(receive: Receive, limit: int) -> Receive:
    """Count what comes in, so that a body without a length is held to the limit as well."""
    taken = 0

    async def counted() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > limit:
            raise TooLargeError(f"At most {limit:,} bytes are taken.")
        return message

    return counted


async def _answer(send: Send, status: int, words: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close"), *_missing(())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": words.encode("utf-8")})
