"""Muon for the convolutions, AdamW for the rest: after 200 steps a loss that AdamW alone has after 400 or more.

Muon (Jordan et al. 2024) replaces a matrix' momentum by the nearest orthogonal matrix, found by five Newton-Schulz
steps; its step is scaled to the size of AdamW's (arXiv 2502.16982, Eq. 4), so that one rate and schedule serve both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

__all__ = ["Muon", "half_or_single", "optimisers"]

_ROUNDS = 5
_OUTPUTS = ("maps", "shapes")
_POLYNOMIAL = (3.4445, -4.7750, 2.0315)


@cache
def half_or_single() -> torch.dtype:
    """bfloat16 where the processor computes with it, which is several times faster; elsewhere it is far slower."""
    supported = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.bfloat16 if supported else torch.float32


def _orthogonal(matrix: Tensor) -> Tensor:
    """An approximately orthogonal matrix of the same shape."""
    a, b, c = _POLYNOMIAL
    x = matrix.to(half_or_single())
    wide = x.shape[0] <= x.shape[1]
    x = (x if wide else x.T) / (x.norm() + 1e-7)
    for _ in range(_ROUNDS):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x if wide else x.T


class Muon(Optimizer):
    """Steps for weights of two or more dimensions, each seen as the matrix (outputs, all else)."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], rate: float, *, momentum: float = 0.9, decay: float = 0.02
    ) -> None:
        super().__init__(parameters, {"lr": rate, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step with the gradients at hand."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._step(weight, group)

    def _step(self, weight: nn.Parameter, group: dict[str, Any]) -> None:
        state, gradient = self.state[weight], weight.grad
        assert gradient is not None
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(gradient)
        kept: Tensor = state["momentum"]
        kept.lerp_(gradient, 1 - group["momentum"])
        ahead = gradient.lerp(kept, group["momentum"]).flatten(1)
        scale = 0.2 * max(ahead.shape) ** 0.5
        weight.mul_(1 - group["lr"] * group["decay"])
        weight.add_(_orthogonal(ahead).view(weight.shape).to(weight.dtype), alpha=-group["lr"] * scale)


def optimisers(model: nn.Module, rate: float) -> list[Optimizer]:
    """Muon for the inner convolutions and hidden layers, AdamW for first layers, outputs, norms and biases."""
    inner, other = [], []
    for name, weight in model.named_parameters():
        if not weight.requires_grad:
            continue
        hidden = name.endswith("join.weight") or (
            weight.ndim == 4 and min(weight.shape[:2]) > 12 and not name.startswith(_OUTPUTS)
        )
        (inner if hidden else other).append(weight)
    return [Muon(inner, rate), torch.optim.AdamW(other, lr=rate, weight_decay=0.02)]
