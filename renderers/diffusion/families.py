"""What the diffusion renderers know about their model families, read from `configs/diffusion.yaml`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, Literal

import yaml

from katha.errors import MissingExtraError

__all__ = [
    "Calling",
    "Family",
    "Kind",
    "Variant",
    "calling_of",
    "family_named",
    "name_single_file",
    "packed_tensor",
    "require_packages",
    "schedulers",
]


@dataclass(frozen=True)
class Variant:
    """Settings of one kind of checkpoint: default steps and guidance, and its prompt limit in tokens."""

    steps: int
    guidance: float
    prompt_tokens: int


@dataclass(frozen=True)
class Family:
    """One family of checkpoints; the fields are explained in the data file."""

    name: str
    pipelines: tuple[str, ...]
    model: str
    denoiser: str
    native: int | None
    size_multiple: int
    pixels: tuple[float, float]
    aspect: float
    variants: tuple[Mapping[str, Any], ...]

    def variant(self, facts: Mapping[str, Any]) -> Variant:
        """The settings for a checkpoint with `facts` (pipeline class, guidance embedding)."""
        row = next(row for row in self.variants if all(facts.get(key) == want for key, want in row["when"].items()))
        return Variant(row["steps"], row["guidance"], row["prompt_tokens"])


@dataclass(frozen=True)
class Calling:
    """How one pipeline class is called; the fields are explained in the data file."""

    away: Literal["true_cfg", "guidance", "never"]
    pictures: int = 0
    scale: str = "guidance_scale"
    blank: str = ""
    unseeing: str | None = None


@dataclass(frozen=True)
class Kind:
    """What a single file holds; the fields are explained in the data file."""

    starts: str
    what: str
    families: tuple[str, ...] = ()
    part: str | None = None
    width: int | None = None


@cache
def _data() -> Mapping[str, Any]:
    text = files("katha.configs").joinpath("diffusion.yaml").read_text(encoding="utf-8")
    data: Mapping[str, Any] = yaml.safe_load(text)
    return data


def family_named(name: str) -> Family:
    """The family called `name`."""
    row: dict[str, Any] = _data()["families"][name]
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return Family(name, **fields)


def calling_of(pipeline: str) -> Calling:
    """How the pipeline class called `pipeline` is called."""
    return Calling(**_data()["calls"][pipeline])


def schedulers() -> Mapping[str, str]:
    """Schedulers that may replace a checkpoint's own: name to diffusers class."""
    found: Mapping[str, str] = _data()["schedulers"]
    return found


def name_single_file(tensors: Iterable[str]) -> Kind:
    """What a single file with tensors of these names holds."""
    names = list(tensors)
    for row in _data()["single_files"]:
        if any(name.startswith(row["starts"]) for name in names):
            return Kind(**{**row, "families": tuple(row.get("families", ()))})
    return Kind("", "no checkpoint that is known here")


def packed_tensor(tensors: Iterable[str]) -> str | None:
    """The first name that says that a file is packed for another program."""
    ends = tuple(_data()["packed"])
    return next((name for name in tensors if name.endswith(ends)), None)


def require_packages(who: str) -> None:
    """Check that everything the diffusion renderers need is installed; nothing is imported.

    Raises:
        MissingExtraError: with the names of the packages and the command.
    """
    missing = [name for name in _data()["packages"] if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"The renderer {who!r} needs {', '.join(missing)}.", hint="Install it with: pip install 'katha[local]'."
        )
