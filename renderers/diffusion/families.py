"""What the diffusion renderers know about their model families, read from `configs/diffusion.yaml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import yaml

from katha.errors import MissingExtraError

__all__ = ["Family", "Variant", "family_named", "name_single_file", "require_packages", "schedulers"]


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


def schedulers() -> Mapping[str, str]:
    """Schedulers that may replace a checkpoint's own: name to diffusers class."""
    found: Mapping[str, str] = _data()["schedulers"]
    return found


def name_single_file(tensors: Sequence[str]) -> tuple[str | None, str]:
    """The family that a single file belongs to (None: none that is drawn with here), and what it is in words."""
    for row in _data()["single_files"]:
        if any(name.startswith(row["starts"]) for name in tensors):
            return row["family"], row["what"]
    return None, "no checkpoint that is known here"


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
