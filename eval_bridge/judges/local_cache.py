"""A key-value cache whose beginning all rows of a batch share, and attention over it.

transformers' own batch holds and reads the beginning once a row, which for a long one costs more than the model's
arithmetic. Here it is there once: the queries of all rows meet it in one product, and each row's own ids separately.
Imported only where transformers is loaded already.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache
from transformers.cache_utils import DynamicLayer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

__all__ = ["SharedLayer", "SharedStates", "attend", "extend", "follow", "use_shared_attention"]

_NAME = "katha_shared_prefix"


class SharedStates(NamedTuple):
    """Keys or values. shared: of shape (1, heads, prefix, size); own: of shape (rows, heads, own ids, size)."""

    shared: torch.Tensor
    own: torch.Tensor


class SharedLayer(DynamicLayer):  # type: ignore[misc]
    """What the rows of a batch write behind the keys and values of `shared`, a layer of one row that is only read."""

    def __init__(self, shared: Any) -> None:
        super().__init__()
        self.shared = shared

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Append what is new; the attention gets both parts."""
        keys, values = super().update(key_states, value_states)
        return SharedStates(self.shared.keys, keys), SharedStates(self.shared.values, values)

    def get_seq_length(self) -> int:
        """Ids so far, shared and own."""
        own: int = super().get_seq_length()
        return own + int(self.shared.keys.shape[-2])


def extend(cache: DynamicCache) -> DynamicCache:
    """A cache of one row that goes on from `cache`, which stays as it is."""
    extended = copy.copy(cache)
    extended.layers = [copy.copy(layer) for layer in cache.layers]  # a layer replaces its tensors, never writes in them
    return extended


def follow(cache: DynamicCache) -> DynamicCache:
    """A cache for any number of rows that all begin with `cache`; needs `use_shared_attention`."""
    following = copy.copy(cache)
    following.layers = [SharedLayer(layer) for layer in cache.layers]
    return following


def use_shared_attention(model: Any) -> None:
    """Let the language model attend over `follow`'s caches; over every other it attends as before (`sdpa`)."""
    AttentionInterface.register(_NAME, attend)
    AttentionMaskInterface.register(_NAME, sdpa_mask)
    model.set_attn_implementation({"text_config": _NAME})


def attend(
    module: Any, query: torch.Tensor, key: Any, value: Any, attention_mask: torch.Tensor | None, **options: Any
) -> tuple[torch.Tensor, None]:
    """transformers' attention interface. query: of shape (rows, heads, ids, size); the result (rows, ids, heads, size).

    Every id sees the whole shared part. Scores and their sum are in float32, and one softmax goes over both parts.
    """
    if not isinstance(key, SharedStates):
        result: tuple[torch.Tensor, None] = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return result
    rows, heads, count, size = query.shape
    few = key.own.shape[1]  # several query heads share one head of keys and values
    asked = (query.float() * options["scaling"]).reshape(rows, few, -1, size)
    shared = _together(asked) @ key.shared[0].float().mT
    own = (asked @ key.own.float().mT).view(rows, few, heads // few, count, -1)
    if attention_mask is not None:
        own = own.masked_fill(~attention_mask[:, :, None, :, -own.shape[-1] :], -torch.inf)
    own = _together(own.reshape(rows, few, -1, own.shape[-1]))
    top = torch.maximum(shared.amax(-1, keepdim=True), own.amax(-1, keepdim=True))
    shared, own = shared.sub_(top).exp_(), own.sub_(top).exp_()
    total = shared.sum(-1, keepdim=True) + own.sum(-1, keepdim=True)
    found = _apart(shared @ value.shared[0].float(), rows) + _apart(own, rows) @ value.own.float()
    found = found / _apart(total, rows)
    return found.reshape(rows, heads, count, size).transpose(1, 2).to(query.dtype).contiguous(), None


def _together(tensor: torch.Tensor) -> torch.Tensor:
    """From (rows, heads, n, size) to (heads, rows * n, size)."""
    return tensor.transpose(0, 1).flatten(1, 2)


def _apart(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    """Back from `_together`."""
    return tensor.reshape(tensor.shape[0], rows, -1, tensor.shape[-1]).transpose(0, 1)
