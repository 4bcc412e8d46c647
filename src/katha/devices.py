"""Whose models are in a device's memory, so that one that does not fit beside them can have them let go.

Renderers, judges and planners know nothing of each other; each says here that it has moved in, and how it moves out.
"""

from __future__ import annotations

import threading
import weakref
from functools import cache
from typing import Protocol

__all__ = ["Tenant", "Tenants", "process_tenants"]


class Tenant(Protocol):
    """Something that holds a model in memory."""

    def close(self) -> None:
        """Let go of the model once nobody uses it; it is loaded again when it is next needed."""
        ...


class Tenants:
    """The models in memory, by device type (`cuda`, `mps`, `cpu`). A tenant that is gone is forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, weakref.WeakSet[Tenant]] = {}

    def move_in(self, device: str, tenant: Tenant) -> None:
        """Say that `tenant` has a model in the memory of `device`."""
        with self._lock:
            self._known.setdefault(_kind(device), weakref.WeakSet()).add(tenant)

    def move_out(self, tenant: Tenant) -> None:
        """Say that `tenant` has none any more."""
        with self._lock:
            for known in self._known.values():
                known.discard(tenant)

    def make_room(self, device: str, newcomer: Tenant) -> bool:
        """Have all others of `device` let go of their models; whether there was any."""
        with self._lock:
            others = [tenant for tenant in self._known.get(_kind(device), ()) if tenant is not newcomer]
        for tenant in others:
            tenant.close()
            self.move_out(tenant)
        return bool(others)


@cache
def process_tenants() -> Tenants:
    """The tenants of this process."""
    return Tenants()


def _kind(device: str) -> str:
    return device.split(":")[0]
