"""Families of models by how they read a prompt, and the words of the composer (`configs/composing.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from pydantic import TypeAdapter

from katha.configs import load_config
from katha.errors import UsageError


@dataclass(frozen=True)
class PromptFamily:
    """How one family of models is told what to draw; the fields are explained in the data file."""

    name: str
    order: tuple[str, ...]
    joins: Literal["sentences", "phrases"] = "sentences"
    budget: int | None = None
    pieces: int = 1
    names: bool = True
    references: bool = False


@dataclass(frozen=True)
class Words:
    """The words of the composer; the fields are explained in the data file."""

    ranks: tuple[str, ...]
    essential: frozenset[str]
    about: Mapping[str, str]
    families: Mapping[str, PromptFamily]
    determiners: frozenset[str]
    verbs: Mapping[str, str]
    ways: frozenset[str]
    manners: frozenset[str]
    several: frozenset[str]
    nearer: Mapping[str, str]
    bare: Mapping[str, tuple[str, ...]]
    he: frozenset[str]
    she: frozenset[str]
    unknown: frozenset[str]


@cache
def composing_data() -> Words:
    """Return the content of `configs/composing.yaml`."""
    read = load_config("composing.yaml")
    families = {name: {"name": name, **row} for name, row in read["families"].items()}
    return TypeAdapter(Words).validate_python({**read, "families": families})


def load_family(name: str) -> PromptFamily:
    """Return the family of that name.

    Raises:
        UsageError: there is none.
    """
    known = composing_data().families
    if name not in known:
        raise UsageError(f"There is no family of prompts {name!r}.", hint=f"Known: {', '.join(known)}.")
    return known[name]
