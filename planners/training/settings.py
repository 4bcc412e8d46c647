"""How an adapter is trained: the settings, and the presets of `configs/train/`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from katha.errors import UnknownPluginError, UsageError

__all__ = ["TrainSettings", "load_settings", "preset_names"]


class TrainSettings(BaseModel):
    """Everything that decides the adapter's weights, apart from base model and data.

    max_length: tokens of prompt and plan together; longer examples are left out and counted. batch and accumulation:
    examples on the device at once, and batches per step. rank, alpha, dropout: of the LoRA matrices, on every linear
    layer of the language model. steps: None trains `epochs` times through the data.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_length: int = Field(default=4096, ge=64)
    batch: int = Field(default=1, ge=1)
    accumulation: int = Field(default=16, ge=1)
    rank: int = Field(default=16, ge=1)
    alpha: int = Field(default=32, ge=1)
    dropout: float = Field(default=0.05, ge=0, lt=1)
    learning_rate: float = Field(default=2e-4, gt=0)
    warmup: float = Field(default=0.03, ge=0, lt=1)
    epochs: float = Field(default=2.0, gt=0)
    steps: int | None = Field(default=None, ge=1)
    save_every: int = Field(default=50, ge=1)
    seed: int = Field(default=42, ge=0)
    dtype: Literal["float32", "bfloat16"] | None = None
    gradient_checkpointing: bool = False


def preset_names() -> list[str]:
    """The presets that ship with katha, sorted."""
    folder = files("katha.configs").joinpath("train")
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def load_settings(preset: str | None, changes: Mapping[str, Any]) -> TrainSettings:
    """The settings of a preset with `changes` on top; a change that is None was not given.

    Raises:
        UnknownPluginError: no such preset. UsageError: a setting is unknown or has a value it cannot have.
    """
    values: dict[str, Any] = {}
    if preset is not None:
        if preset not in preset_names():
            raise UnknownPluginError(f"No preset is called {preset!r}.", hint=f"Known: {', '.join(preset_names())}.")
        text = files("katha.configs").joinpath("train", f"{preset}.yaml").read_text(encoding="utf-8")
        values.update(yaml.safe_load(text))
    values.update({name: value for name, value in changes.items() if value is not None})
    try:
        return TrainSettings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"Setting {'.'.join(map(str, first['loc']))!r}: {first['msg']}.") from error
