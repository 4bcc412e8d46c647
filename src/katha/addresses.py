"""Addresses of servers and of the shared store: what can be one, told before anything is called."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from katha.errors import UsageError

NO_URL = "an address is http://HOST/PATH or https://HOST/PATH"
# What browsers and servers take.
_LONGEST = 2_000
_UNFIT = re.compile(r"[\s\x00-\x1f\x7f\\]")


def url_problem(url: str) -> str | None:
    """Return why `url` cannot be the address of a server, or None where it can."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return f"{NO_URL}, its port a number from 1 to 65535"
    host = parts.hostname or ""
    if parts.scheme not in {"http", "https"} or not host or len(url) > _LONGEST or _UNFIT.search(url):
        return NO_URL
    if port == 0:
        return "a port is a number from 1 to 65535"
    if parts.fragment:
        return "an address has no part after '#'"
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return None
    try:
        host.encode("idna")
    except UnicodeError:
        return f"{host[:60]!r} cannot be the name of a host"
    return None


def is_loopback(url: str) -> bool:
    """Return whether `url` names this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_DATABASE = "postgresql://USER@HOST:PORT/DATABASE"


@dataclass(frozen=True)
class StoreAddress:
    """Where records, claims and pictures are kept; nothing told is the cache folder of this machine.

    index: a PostgreSQL database, as libpq reads its URI. objects: a folder, or a URL that fsspec knows. lease: seconds
    after which the claim of a worker that gave no sign of life may be taken over. patience: seconds that either place
    may fail before it is given up.
    """

    index: str = ""
    objects: str = ""
    lease: float = 60.0
    patience: float = 30.0

    def __post_init__(self) -> None:
        if self.index and not self.index.startswith(("postgresql://", "postgres://")):
            raise UsageError(
                f"KATHA_STORE cannot be {shown(self.index)!r}.", hint=f"Name a PostgreSQL database: {_DATABASE}."
            )
        if self.index and not self.objects:
            raise UsageError(
                "KATHA_STORE names an index that machines share, and nothing says where they share the pictures.",
                hint="Name a folder that all of them see, s3://BUCKET/FOLDER or gs://BUCKET/FOLDER in KATHA_OBJECTS.",
            )

    @property
    def folder(self) -> Path | None:
        """The folder of the pictures, where they are in one that is named."""
        if "://" in self.objects and not self.objects.startswith("file://"):
            return None
        path = unquote(urlsplit(self.objects).path) if "://" in self.objects else self.objects
        return Path(path).expanduser().absolute() if self.objects else None


_PRIVATE: ContextVar[Path | None] = ContextVar("katha_private_cache", default=None)


@contextmanager
def private_cache(folder: Path) -> Iterator[None]:
    """Have the block's cache in `folder`, whatever the environment names; threads do not see it."""
    token = _PRIVATE.set(folder)
    try:
        yield
    finally:
        _PRIVATE.reset(token)


def private_folder() -> Path | None:
    """Return the folder of `private_cache`; None outside of it."""
    return _PRIVATE.get()


def store_address(environment: Mapping[str, str] | None = None) -> StoreAddress:
    """Return what `KATHA_STORE`, `KATHA_OBJECTS`, `KATHA_STORE_LEASE` and `KATHA_STORE_PATIENCE` name.

    They are no settings of a run: a run's folder keeps its settings, and an address may hold a password.

    Raises:
        UsageError: one cannot be.
    """
    if environment is None and _PRIVATE.get() is not None:
        return StoreAddress()
    given = os.environ if environment is None else environment
    seconds: dict[str, float] = {}
    for field, least in (("lease", 0.2), ("patience", 0.0)):
        name = f"KATHA_STORE_{field.upper()}"
        if given.get(name):
            with suppress(ValueError):
                seconds[field] = float(given[name])
            if not least <= seconds.get(field, -1.0) <= 86_400:
                raise UsageError(f"{name} cannot be {given[name]!r}.", hint=f"Give seconds, {least:g} to 86400.")
    return StoreAddress(given.get("KATHA_STORE", ""), given.get("KATHA_OBJECTS", ""), **seconds)


def shown(address: str) -> str:
    """Return an address without what may be secret in it: name, password and options."""
    head, mark, rest = address.partition("://")
    return f"{head}{mark}{rest.split('?')[0].rpartition('@')[2]}" if mark else address
