"""Networks that go on from the reader that ships, so that drawings that change cost minutes and not an hour.

The shipped file has its norms folded into the convolutions. They are unfolded again: the folded network is run on a few
batches, and each norm is set to the mean and spread that it sees there, so that the network computes what it did
before. Of the outputs those classes keep their rows that both readers have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from katha.jsonio import loads
from katha_sketch.reader.network import Concepts, Gallery, read_gallery
from training.reader.net import FinderNet, NamerNet

__all__ = ["resumed_finder", "resumed_namer"]

_OLDER = {"stand": "none", "dawn": "morning", "dusk": "evening"}
"""Classes by the names that they had before."""


def resumed_finder(model: FinderNet, start: Path, concepts: Concepts, batches: Sequence[Tensor]) -> None:
    """Give `model` the weights of the finder in the folder `start`; `batches` (B, 3, H, W) set its norms."""
    held, old = _weights(start / "finder.onnx"), _classes(start)
    _convolutions(model, held)
    _same(model.scene[0], held, "scene.0")
    rows = [*old["settings"], *old["times"], "is-sketch"]
    _rows(model.scene[2], held, "scene.2", rows, [*concepts.settings, *concepts.times, "is-sketch"])
    _unfold(model, [(batch,) for batch in batches])


def resumed_namer(
    model: NamerNet,
    start: Path,
    concepts: Concepts,
    props: Sequence[str],
    batches: Sequence[tuple[Tensor, Tensor, Tensor]],
) -> None:
    """Give `model` the weights of the namer in the folder `start`; `batches` (heads, bodies, props) set its norms. What
    it learns each of `props` by is where the gallery has it."""
    held, old = _weights(start / "namer.onnx"), _classes(start)
    _convolutions(model, held)
    for name in ("head.join", "body.join", "thing.join", "figure_places", "prop_places", "looks"):
        if f"{name}.weight" in held:
            _same(model.get_submodule(name), held, name)
    for kind in ("characters", "actions", "emotions"):
        _rows(model.get_submodule(kind), held, kind, old[kind], getattr(concepts, kind))
    _proxies(model, read_gallery((start / "gallery.npz").read_bytes()), props)
    _unfold(model, batches)
    _keep(*(part for closer in (model.head, model.body, model.thing) for part in closer.grid[:2]))


@torch.no_grad()
def _proxies(model: NamerNet, gallery: Gallery, props: Sequence[str]) -> None:
    """Begin with the mean of a pictogram's rows in the gallery, as long as what a network begins with from nothing."""
    for nth, name in enumerate(props):
        rows = [row for row, one in enumerate(gallery.names) if one == name]
        if rows:
            mean = torch.from_numpy(gallery.vectors[rows].mean(axis=0))
            model.proxies[nth] = mean / mean.norm() * len(mean) ** 0.5


def _keep(*parts: nn.Module) -> None:
    """Leave the first layers as they are: edges and colours are what they were, and most of the work is in them."""
    for part in parts:
        part.requires_grad_(requires_grad=False)
        part.eval()
        part.train = lambda mode=True, own=part: own  # type: ignore[method-assign,assignment,misc]


def _classes(start: Path) -> Mapping[str, Sequence[str]]:
    found: Mapping[str, Sequence[str]] = loads((start / "concepts.json").read_text(encoding="utf-8"))
    return found


def _weights(path: Path) -> dict[str, Any]:
    """A file's weights by name in single precision, and under "" its convolutions' (weight, bias) in order."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load_model_from_string(path.read_bytes()).graph
    found: dict[str, Any] = {
        tensor.name.removesuffix("_half"): torch.from_numpy(numpy_helper.to_array(tensor).astype(np.float32).copy())
        for tensor in graph.initializer
    }
    found[""] = [tuple(found[name] for name in node.input[1:3]) for node in graph.node if node.op_type == "Conv"]
    return found


@torch.no_grad()
def _convolutions(model: nn.Module, held: Mapping[str, Any]) -> None:
    """Convolutions in the order of their definition, which is that of the graph; a folded bias is the norm's."""
    modules = [module for module in model.modules() if isinstance(module, nn.Conv2d | nn.BatchNorm2d)]
    pairs = iter(held[""])
    for nth, module in enumerate(modules):
        if not isinstance(module, nn.Conv2d):
            continue
        weight, bias = next(pairs)
        module.weight.copy_(weight)
        after = modules[nth + 1] if module.bias is None else module
        assert after.bias is not None
        after.bias.copy_(bias)


@torch.no_grad()
def _same(module: nn.Module, held: Mapping[str, Any], name: str) -> None:
    for part, value in module.named_parameters():
        value.copy_(held[f"{name}.{part}"])


@torch.no_grad()
def _rows(module: nn.Module, held: Mapping[str, Any], name: str, old: Sequence[str], new: Sequence[str]) -> None:
    """Rows of the classes that both know."""
    places = {one: nth for nth, one in enumerate(old)}
    for part, value in module.named_parameters():
        for nth, one in enumerate(new):
            at = places.get(one, places.get(_OLDER.get(one, "")))
            if at is not None:
                value[nth] = held[f"{name}.{part}"][at]


@torch.no_grad()
def _unfold(model: nn.Module, batches: Sequence[tuple[Tensor, ...]]) -> None:
    """Set each norm to what it sees of the folded network, without changing what the network computes."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    sums = {norm: torch.zeros(3, len(norm.bias)) for norm in norms}

    def look(norm: nn.Module, inputs: tuple[Tensor, ...], _: Tensor) -> None:
        x = inputs[0].float()
        count = torch.full((x.shape[1],), x.numel() / x.shape[1])
        sums[norm] += torch.stack([count, x.sum((0, 2, 3)), x.square().sum((0, 2, 3))])  # type: ignore[index]

    hooks = [norm.register_forward_hook(look) for norm in norms]
    for norm in norms:
        norm.running_var.fill_(1 - norm.eps)  # type: ignore[union-attr]
    model.eval()
    for batch in batches:
        model(*batch)
    for hook in hooks:
        hook.remove()
    for norm, (count, total, squares) in sums.items():
        mean = total / count
        spread = (squares / count - mean.square()).clamp(min=1e-6)
        norm.running_mean.copy_(mean)  # type: ignore[union-attr]
        norm.running_var.copy_(spread)  # type: ignore[union-attr]
        norm.weight.copy_((spread + norm.eps).sqrt())
        norm.bias.add_(mean)
    model.train()
