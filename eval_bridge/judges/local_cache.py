"""A key-value cache with room to write in; imported only where transformers is loaded already."""

from __future__ import annotations

import copy
from typing import Any

from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

__all__ = ["RoomyLayer", "fork"]


class RoomyLayer(DynamicLayer):  # type: ignore[misc]
    """`rows` equal copies of a layer of one row, of shape (rows, heads, length, size), with room for `room` more ids.

    transformers' own layer is copied whole for every id that is written, which costs more than the model's arithmetic
    when the prefix is long; here an id is written into its place.
    """

    def __init__(self, layer: Any, rows: int, room: int) -> None:
        super().__init__()
        self.dtype, self.device, self.is_initialized = layer.keys.dtype, layer.keys.device, True
        self._all_keys, self.keys = _roomy(layer.keys, rows, room)
        self._all_values, self.values = _roomy(layer.values, rows, room)

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Write what is new and return all keys and values so far."""
        start = self.keys.shape[-2]
        end = start + key_states.shape[-2]
        self._all_keys[:, :, start:end] = key_states
        self._all_values[:, :, start:end] = value_states
        self.keys, self.values = self._all_keys[:, :, :end], self._all_values[:, :, :end]
        return self.keys, self.values


def _roomy(tensor: Any, rows: int, room: int) -> tuple[Any, Any]:
    """A buffer with `tensor` in every row, and the part of it that is written."""
    _, heads, length, size = tensor.shape
    buffer = tensor.new_empty((rows, heads, length + room, size))
    buffer[:, :, :length] = tensor
    return buffer, buffer[:, :, :length]


def fork(cache: DynamicCache, rows: int, room: int) -> DynamicCache:
    """A cache of `rows` equal rows that shares nothing with `cache`, with room for `room` more ids."""
    forked = copy.copy(cache)
    forked.layers = [RoomyLayer(layer, rows, room) for layer in cache.layers]
    return forked
