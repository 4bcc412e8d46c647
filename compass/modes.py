"""The ablation modes (Tables 43, 55, 75) as typed data, read from `configs/modes.yaml`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from katha.errors import UnknownPluginError

__all__ = ["Mode", "load_mode", "load_modes"]

Content = Literal["neighbour_scene", "establishing", "captions", "transition"]


class Mode(BaseModel):
    """What one mode selects, inserts and accepts. The fields are explained at the top of `configs/modes.yaml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    about: str
    replan: Literal["none", "weakest", "random"] = "none"
    select: Literal["first", "best", "path", "random_path"]
    insert: Literal["none", "extra", "bridge"]
    content: Content | None = None
    at: Literal["random", "weakest"] | None = None
    when: Literal["always", "weak"] | None = None
    draws: Literal["single", "every"] | None = None
    accept: Literal["always", "improvement"] | None = None
    place: Literal["between", "instead"] = "between"
    budget: int = Field(default=1, ge=1, le=8)
    report: Literal["selected", "mean_over_seeds"]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        given = [value is not None for value in (self.content, self.at, self.when, self.draws, self.accept)]
        if any(given) != all(given) or all(given) == (self.insert == "none"):
            raise ValueError(f"mode {self.name!r}: content, at, when, draws and accept belong to an insertion")
        return self

    def candidate_seeds(self, seeds: tuple[int, ...]) -> tuple[int, ...]:
        """The seeds whose boards are drawn: all when there is a choice among them, else the first."""
        return seeds[:1] if self.select == "first" else seeds


@cache
def load_modes() -> dict[str, Mode]:
    """Every mode by its name, in the file's order."""
    text = files("katha.configs").joinpath("modes.yaml").read_text(encoding="utf-8")
    return {name: Mode(name=name, **fields) for name, fields in yaml.safe_load(text).items()}


def load_mode(name: str) -> Mode:
    """The mode of that name.

    Raises:
        UnknownPluginError: there is none.
    """
    modes = load_modes()
    if name not in modes:
        raise UnknownPluginError(f"No mode is called {name!r}.", hint=f"Known: {', '.join(modes)}.")
    return modes[name]
