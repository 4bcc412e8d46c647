"""One file instead of a folder, as shared for other programs: what it holds, and whether it goes with its base."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.errors import UsageError
from katha.renderers.diffusion.families import Family, Kind, name_single_file, packed_tensor
from katha.renderers.diffusion.weights import read_header

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["check_base", "find_kind", "part_numbers", "read_part"]

_PREFIX = "model.diffusion_model."
"""What whole checkpoints of other programs put before the denoiser's names."""


def find_kind(family: Family, named: str, file: Path) -> Kind:
    """What `file` holds.

    Raises:
        UsageError: nothing that `family` draws with, or weights packed for another program.
    """
    tensors = read_header(file).shapes
    kind = name_single_file(name.removeprefix(_PREFIX) for name in tensors)
    if family.name not in kind.families:
        raise UsageError(
            f"{named!r} holds {kind.what}, which {family.name!r} cannot draw with.",
            hint=f"Give a checkpoint such as {family.model}.",
        )
    if (packed := packed_tensor(tensors)) is not None:
        raise UsageError(
            f"{named!r} is packed for another program: it holds {packed!r}.",
            hint="Give the file of plain 16-bit or 8-bit floats; --memory quantized keeps it small in memory.",
        )
    return kind


def check_base(
    kind: Kind, named: str, file: Path, base: str, components: Mapping[str, str], config: Mapping[str, Any]
) -> None:
    """Refuse a base of another model than the file's; `config` is that of its transformer.

    Raises:
        UsageError: the classes, the guidance or the width differ.
    """
    if kind.part is None:
        return
    theirs = components.get("transformer")
    if theirs != kind.part:
        raise UsageError(
            f"{named!r} holds {kind.what}, and the base {base!r} has a {theirs}.",
            hint="Give base=FOLDER of the same model.",
        )
    shapes = {name.removeprefix(_PREFIX): shape for name, shape in read_header(file).shapes.items()}
    guided = any(name.startswith("guidance_in.") for name in shapes)
    if guided != config.get("guidance_embeds", False):
        has, lacks = ("file", "base") if guided else ("base", "file")
        raise UsageError(
            f"{named!r} is no model of the base {base!r}: the {has} has a guidance embedding, the {lacks} has none.",
            hint="Give base=FOLDER of the same model (schnell has none, dev has one).",
        )
    width = next(iter(shapes.get("img_in.weight", ())), None)
    if kind.width is not None and width != kind.width:
        raise UsageError(
            f"{named!r} holds {kind.what} {width} wide; diffusers reads such files at a width of {kind.width} only.",
            hint="Give the diffusers folder.",
        )


def part_numbers(file: Path) -> int:
    """How many numbers the denoiser's tensors hold; none is read."""
    shapes = read_header(file).shapes
    return sum(math.prod(shapes[name]) for name in _part(shapes))


def read_part(file: Path) -> dict[str, Tensor]:
    """The denoiser's tensors, under the names that diffusers' readers expect."""
    from safetensors.torch import load_file

    tensors: dict[str, Tensor] = load_file(file)
    return {name.removeprefix(_PREFIX): tensors[name] for name in _part(tensors)}


def _part(names: Iterable[str]) -> list[str]:
    """The denoiser's names: those with the prefix of whole checkpoints, else all."""
    every = list(names)
    return [name for name in every if name.startswith(_PREFIX)] or every
