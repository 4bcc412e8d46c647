"""The one configuration of a run and its one precedence: flag, then file (preset), then environment, then default.

Environment variables are `KATHA_` and the field's name in capitals (`KATHA_RENDERER=sketch`, `KATHA_SEEDS=1,2,3`,
`KATHA_RENDERER_OPTIONS="steps=4 guidance=3.5"`); `KATHA_CACHE` names the cache folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from katha.errors import UnknownPluginError, UsageError
from katha.jsonio import read_text
from katha.registry import read_options
from katha.schema import CompassSettings

_WITH_OPTIONS = ("planner", "renderer", "bridge_renderer")
_DRAWERS = ("renderer", "bridge_renderer")
_IN_SPECS = frozenset(("memory", "judge_options", *(f"{name}_options" for name in _WITH_OPTIONS)))
"""Settings whose effect on a result is in the plug-ins' own specifications."""


class RunConfig(BaseModel):
    """Everything that decides what a run draws, asks and accepts (paths of input and output are not part of it).

    `memory` goes to every renderer that has an option of that name and was given none by its own options.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    planner: str = "rule"
    planner_options: dict[str, Any] = {}
    renderer: str = "sketch"
    renderer_options: dict[str, Any] = {}
    bridge_renderer: str | None = None
    bridge_renderer_options: dict[str, Any] = {}
    memory: str | None = None
    judges: tuple[str, ...] = ("sketch-reader",)
    judge_options: dict[str, Any] = {}
    mode: str = "full"
    seeds: tuple[int, ...] = (42, 123, 2026)
    panels: int = Field(default=5, ge=2, le=24)
    size: tuple[int, int] | None = None
    style: str = ""
    answers: Literal["choice", "free"] = "choice"
    matching: str = "lemma-set"
    variant: str = "strict"
    base_url: str | None = None
    verify_reuse: float | None = Field(default=None, ge=0, le=1)
    review: bool = False
    similarity: str = "reader"
    candidates: int | None = Field(default=None, ge=1)
    compass: CompassSettings = CompassSettings()
    lock: str | None = None

    @field_validator("planner_options", "renderer_options", "bridge_renderer_options", "judge_options", mode="before")
    @classmethod
    def _read_options(cls, value: object) -> object:
        return read_options(value) if isinstance(value, (str, list, tuple)) else value

    @field_validator("judges", "seeds", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return [part for part in re.split(r"[,\s]+", value) if part] if isinstance(value, str) else value

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or len(set(value)) != len(value):
            raise ValueError("give at least one seed, each once")
        if any(not 0 <= seed < 2**32 for seed in value):
            raise ValueError("a seed is a whole number from 0 to 4294967295")
        return value

    @field_validator("judges")
    @classmethod
    def _some_judge(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or len(set(value)) != len(value):
            raise ValueError("give at least one judge, each once")
        return value

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, value: str | None) -> str | None:
        parts = urlsplit(value or "http://none")
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("an address is http://HOST/PATH or https://HOST/PATH")
        if parts.username or parts.password or parts.query:
            raise ValueError("an address is written into files: leave names, passwords and queries out of it")
        return value

    @field_validator("size", mode="before")
    @classmethod
    def _parse_size(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        match = re.fullmatch(r"\s*(\d{2,5})\s*[xX\u00d7]\s*(\d{2,5})\s*", value)
        if match is None:
            raise ValueError("a size is WIDTHxHEIGHT in pixels, for example 768x512")
        return (int(match[1]), int(match[2]))

    def with_plugins(self, **names: Any) -> RunConfig:
        """The same settings with other plug-ins (`renderer="flux"`, `renderer_options={"steps": 4}`); options stay with
        the plug-in that they were given for.

        Raises:
            ValidationError: a value cannot be.
        """
        merged: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        _lay_over(merged, names)
        return type(self).model_validate(merged)


def identity_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What of a dumped `RunConfig` makes two runs the same, beside the specifications of their plug-ins: where a model
    is kept in memory or how long a service is waited for changes no result, and a run may go on with another value."""
    return {name: value for name, value in settings.items() if name not in _IN_SPECS}


def preset_names() -> list[str]:
    """The presets that ship with katha, sorted."""
    folder = files("katha.configs").joinpath("presets")
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def load_preset(name: str) -> dict[str, Any]:
    """The settings of preset `name`, or of the YAML file at that path.

    Raises:
        UnknownPluginError: no such preset or file. UsageError: it is not a mapping of settings.
    """
    if name in preset_names():
        text = files("katha.configs").joinpath("presets", f"{name}.yaml").read_text(encoding="utf-8")
    elif name.endswith((".yaml", ".yml")) and Path(name).is_file():
        text = read_text(Path(name))
    else:
        raise UnknownPluginError(
            f"No preset is called {name!r}.", hint=f"Known: {', '.join(preset_names())}; or name a YAML file."
        )
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"Preset {name!r} is not YAML: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError(f"Preset {name!r} must be a mapping of settings.")
    return value


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    names = {f"KATHA_{field.upper()}": field for field in RunConfig.model_fields if field != "compass"}
    return {names[key]: value for key, value in environment.items() if key in names and value}


def _lay_over(merged: dict[str, Any], layer: Mapping[str, Any]) -> None:
    """Put `layer` over `merged`. Options are put over one by one, unless the layer names another plug-in.

    A `memory` of the layer goes over the renderers' own of the layers below.
    """
    for name in _DRAWERS if layer.get("memory") is not None else ():
        below = _options_of(merged.get(f"{name}_options"))
        merged[f"{name}_options"] = {key: value for key, value in below.items() if key != "memory"}
    for name in _WITH_OPTIONS:
        options, before = f"{name}_options", str(merged.get(name, RunConfig.model_fields[name].default))
        if name in layer and str(layer[name]).split(":")[0] != before.split(":")[0]:
            merged.pop(options, None)
        if isinstance(layer.get(options), (dict, str, list, tuple)):
            layer = {**layer, options: {**_options_of(merged.get(options)), **_options_of(layer[options])}}
    merged.update(layer)


def _options_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else read_options(value or ())


def resolve(
    flags: Mapping[str, Any],
    *,
    preset: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> RunConfig:
    """The configuration of a run; a flag that is None was not given.

    Raises:
        UsageError: a setting is unknown or has a value it cannot have (the setting and the reason are named).
    """
    merged: dict[str, Any] = dict(_from_environment(os.environ if environment is None else environment))
    if preset is not None:
        _lay_over(merged, load_preset(preset))
    _lay_over(merged, {key: value for key, value in flags.items() if value is not None})
    try:
        return RunConfig.model_validate(merged)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "settings"
        raise UsageError(f"Setting {where!r}: {first['msg'].removeprefix('Value error, ')}.") from error


def cache_folder(environment: Mapping[str, str] | None = None) -> Path:
    """`KATHA_CACHE`, else the user's cache directory for katha."""
    env = os.environ if environment is None else environment
    if env.get("KATHA_CACHE"):
        return Path(env["KATHA_CACHE"]).expanduser()
    base = Path(env["XDG_CACHE_HOME"]) if env.get("XDG_CACHE_HOME") else Path.home() / ".cache"
    return base / "katha"
