"""Services without an SDK: their plain HTTP, with the pacing, the tries and the typed faults of every vendor.

A key goes to the service's own hosts and to nobody else: addresses that a reply names may be of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from katha.addresses import is_loopback, url_problem
from katha.models.client import Fault, ProviderClient

if TYPE_CHECKING:
    from httpx import Client, Response

_LARGEST = 64 * 1024 * 1024
"""Bytes of a picture that is fetched, at most."""


class HttpError(Exception):
    """A reply that is none. code: the service's own word for it, where it means more than the status."""

    def __init__(self, response: Response, words: str, code: str | None = None) -> None:
        super().__init__(words)
        self.response, self.status_code, self.code = response, response.status_code, code


class HttpClient(ProviderClient):
    """A service over plain HTTP. `KEY_HEADER` is the header that its key goes into; "" where it has none."""

    KEY_HEADER: ClassVar[str] = ""

    @cached_property
    def sdk(self) -> Client:
        """The HTTP client."""
        from httpx import Client, Limits

        # A picture takes seconds, a connection none: nothing stays open between two calls.
        return Client(base_url=self.vendor.url, timeout=self.timeout, limits=Limits(max_keepalive_connections=0))

    def offered(self) -> dict[str, str | None]:
        """Return nothing: these services list no models."""
        return {}

    def call(self, method: str, address: str, **body: Any) -> Response:
        """Return the good answer to one call of the service's own; `json=` or `files=`, as httpx takes them.

        Raises:
            HttpError: it is another than good. Fault: the address is not the service's own.
        """
        if not self._owns(address):
            raise Fault("broken", "the service named an address that is not its own")
        headers = {self.KEY_HEADER: self.vendor.key} if self.KEY_HEADER else {}
        response = self.sdk.request(method, address, headers=headers, **body)
        if not response.is_success:
            raise self.failure(response)
        return response

    def failure(self, response: Response) -> HttpError:
        """Return what an answer that is none means."""
        return HttpError(response, words_of(response))

    def picture_at(self, address: str) -> bytes:
        """Return the picture at an address that a reply named, which is asked without the key.

        Raises:
            HttpError: it is not there. Fault: the address cannot be one, or there is too much at it.
        """
        own = is_loopback(self.vendor.url)
        if url_problem(address) is not None or not (address.startswith("https://") or (own and is_loopback(address))):
            raise Fault("broken", "the service named an address that cannot be a picture's")
        found = bytearray()
        with self.sdk.stream("GET", address) as response:
            if not response.is_success:
                response.read()
                raise HttpError(response, words_of(response))
            for part in response.iter_bytes():
                found += part
                if len(found) > _LARGEST:
                    raise Fault("broken", f"the picture has more than {_LARGEST:,} bytes")
        return bytes(found)

    def _owns(self, address: str) -> bool:
        """Return whether an address is a path, or on the service's host or its domain (`domain` of its data)."""
        here, there = urlsplit(self.vendor.url), urlsplit(address)
        name, domain = there.hostname or "", self.vendor.card.get("domain")
        if name in ("", here.hostname):
            return there.scheme in ("", here.scheme)
        return there.scheme == "https" and domain is not None and name.endswith(f".{domain}")


def words_of(response: Response) -> str:
    """Return what an answer says of its reason, in the service's words."""
    try:
        told = response.json()
    except ValueError:
        return response.text[:200] or "no reason given"
    if isinstance(told, Mapping):
        for name in ("error", "detail", "message", "title"):
            said = told.get(name)
            if said:
                return str(said.get("message", said) if isinstance(said, Mapping) else said)[:400]
    return str(told)[:400]
