"""What the reader's outputs mean: class order, thresholds, and what it was trained on (`concepts.json`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import Any

from katha.errors import KathaError
from katha.jsonio import loads

__all__ = ["Concepts", "load_concepts"]


@dataclass(frozen=True)
class Concepts:
    """Class names in output order, and the peak that a character or a prop needs to count as present.

    `actions` and `emotions` begin with "none"; `settings` ends with "none". `trained_on` names the drawings' version.
    """

    characters: tuple[str, ...]
    props: tuple[str, ...]
    actions: tuple[str, ...]
    emotions: tuple[str, ...]
    settings: tuple[str, ...]
    times: tuple[str, ...]
    thresholds: Mapping[str, float] = field(default_factory=dict)
    sketch_threshold: float = 0.5
    version: str = "untrained"
    trained_on: Mapping[str, Any] = field(default_factory=dict)

    @property
    def named(self) -> tuple[tuple[str, ...], ...]:
        """The classes of what is looked at closely, in the order of the namer's outputs."""
        return (self.characters, self.actions, self.emotions, self.props)

    @cached_property
    def index(self) -> Mapping[str, Mapping[str, int]]:
        """Class numbers by kind and name."""
        kinds = {
            "character": self.characters,
            "prop": self.props,
            "action": self.actions,
            "emotion": self.emotions,
            "setting": self.settings,
            "time": self.times,
        }
        return {kind: {name: nth for nth, name in enumerate(names)} for kind, names in kinds.items()}

    def threshold(self, kind: str) -> float:
        """The peak from which a concept of `kind` ("character" or "prop") counts as present."""
        return self.thresholds.get(kind, 0.35)


def load_concepts() -> Concepts:
    """The class list that ships with the reader's weights.

    Raises:
        KathaError: it is missing from the installation.
    """
    try:
        text = files("katha.eval_bridge.reader").joinpath("concepts.json").read_text(encoding="utf-8")
    except OSError as error:
        raise KathaError(
            "The reader's concepts.json is missing.", hint="Install katha again, or run `make reader`."
        ) from error
    value: dict[str, Any] = loads(text)
    fields: dict[str, Any] = {key: tuple(item) if isinstance(item, list) else item for key, item in value.items()}
    return Concepts(**fields)
