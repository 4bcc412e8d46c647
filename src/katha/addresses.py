"""Addresses of servers: what can be one, told before anything is called."""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from urllib.parse import urlsplit

NO_URL = "an address is http://HOST/PATH or https://HOST/PATH"
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
