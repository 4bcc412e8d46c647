"""The one configuration of a run and its one precedence: flag, then file (preset), then environment, then default.

The default is the installed preset that says `default: true`; what it leaves open is the fields' own default. Without
one nobody plans, draws or judges unless told (`require_chosen`).

Environment variables are `KATHA_` and the field's name in capitals (`KATHA_RENDERER=flux`, `KATHA_SEEDS=1,2,3`,
`KATHA_RENDERER_OPTIONS="steps=4 guidance=3.5"`); `KATHA_CACHE` names the cache folder.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from platformdirs import user_cache_path
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_serializer,
    field_validator,
    model_validator,
)

from katha.addresses import NO_URL, is_loopback, private_folder, url_problem
from katha.configs import load_chosen
from katha.errors import KathaError, UsageError
from katha.installing import stand_in_line
from katha.protocols import Span
from katha.registry import Family, default_registry, offered, read_options
from katha.schema import CompassSettings
from katha.usual import matching_note, usual_answers, usual_matching

_DRAWERS = ("renderer", "bridge_renderer", "guide")
_WITH_OPTIONS = ("planner", *_DRAWERS)
_WHO: Mapping[str, str] = {"planner": "planner", "renderer": "renderer", "judges": "judge"}
"""Settings without which nobody plans, draws or judges, and what one of them is called."""
_FOLLOWS = ("answers", "matching")
"""Settings whose default follows from who judges."""
_NOBODY = "none"
"""The judge that judges nothing: a run with it draws one board, unless a mode is named."""
UNMEASURED = "none"
"""The similarity that measures nothing but whether two pictures are the same one."""
MOST_PANELS = 60
"""Panels that a plain text may be told in: twice as many as `rule` gives a long one by itself."""


class Flag:
    """How a field is given on the command line, where its name does not already say so.

    names: the flags; `--` and the field's name where there are none. many: it may be given several times. hidden: the
    command line has not got it; files, presets and locks have. text: the field itself reads what was given.
    """

    def __init__(self, *names: str, many: bool = False, hidden: bool = False, text: bool = False) -> None:
        self.names, self.many, self.hidden, self.text = names, many, hidden, text


Options = dict[str, Any]
"""Options of a plug-in, which is the one that knows their names and types (see `katha.registry.fit_options`)."""


Choose = Callable[[str, Sequence[Any]], Any]
"""Given the name of a setting and what a preset proposes for it (`first_of`), returns one of the proposals; None leaves
it to the default."""


class Settings(BaseModel):
    """Everything that decides what a run draws, asks and accepts (paths of input and output are not part of it).

    The command line is made from these fields: their types, their descriptions, and the `Flag` beside some of them.
    `memory` goes to every renderer that has an option of that name and was given none by its own options.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    planner: str = Field(default="", description="Who plans: see `katha planners`.")
    planner_options: Annotated[Options, Flag("--planner-option", many=True)] = Field(
        default={}, description="KEY=VALUE for the planner; may be given several times."
    )
    renderer: str = Field(default="", description="Who draws: see `katha renderers`.")
    renderer_options: Annotated[Options, Flag("--renderer-option", many=True)] = Field(
        default={}, description="KEY=VALUE for the renderer; `katha renderers` lists the keys."
    )
    bridge_renderer: str | None = Field(
        default=None, description="Who draws inserted frames, if not the board's renderer."
    )
    bridge_renderer_options: Annotated[Options, Flag("--bridge-option", many=True)] = Field(
        default={}, description="KEY=VALUE for --bridge-renderer."
    )
    guide: str | None = Field(
        default=None, description="Who draws each frame's layout first, for a renderer that follows it: vector:MODEL."
    )
    guide_options: Annotated[Options, Flag("--guide-option", many=True)] = Field(
        default={}, description="KEY=VALUE for --guide."
    )
    memory: str | None = Field(
        default=None, description="For renderers on this machine: full, model-offload, quantized, sequential-offload."
    )
    judges: Annotated[tuple[str, ...], Flag("--judge", many=True)] = Field(
        default=(), description="Who judges: see `katha judges`. Several make an ensemble."
    )
    steering_judges: Annotated[tuple[str, ...], Flag("--steering-judge", many=True)] = Field(
        default=(),
        description="Judges that choose boards, if not --judge: a judge that chose does not judge its choice fairly.",
    )
    judge_options: Annotated[Options, Flag("--judge-option", many=True)] = Field(
        default={}, description="KEY=VALUE for the judges; `katha judges` lists the keys."
    )
    mode: str = Field(default="full", description="The repair mode: full, base, rerank_only, bridge_only, ...")
    seeds: tuple[int, ...] = Field(
        default=(42, 123, 2026), description="One candidate board a seed, for example 42,123,2026."
    )
    writer: str | None = Field(
        default=None, description="Which model proposes repairs: anthropic:MODEL, openai:MODEL, ...; the planner's."
    )
    moves: int = Field(
        default=4, ge=1, le=16, description="How many frames a repair by moves may draw with each seed, in all."
    )
    panels: Annotated[int | None, Flag(text=True)] = Field(
        default=None,
        ge=2,
        le=MOST_PANELS,
        description="How many scenes a plain text is told in, 6 or 4-8; as many as it calls for.",
    )
    size: tuple[int, int] | None = Field(default=None, description="Pixels of a frame, for example 768x512.")
    style: str = Field(default="", description="A look that the renderer knows, or a style phrase.")
    base_url: str | None = Field(
        default=None,
        description="Where each language model named `openai:`, `anthropic:` or `gemini:` is called, whatever it does.",
    )
    answers: Literal["choice", "free"] = Field(
        default_factory=lambda told: usual_answers(_asked(told)),
        description="How questions are asked: free, or choice, as judges are that cannot write.",
    )
    ask: Literal["together", "singly"] = Field(
        default="together",
        description="API judges report on a board's questions together (one call), or singly, to the paper's letter.",
    )
    matching: str = Field(
        default_factory=lambda told: usual_matching(_asked(told), told["base_url"]),
        description="How free answers are matched: llm:JUDGE, nli:MODEL, exact-set, ...; another model than the judge.",
    )
    variant: str = Field(
        default="strict", description="How judges are instructed: strict (unless told), uncertain, neutral or paper."
    )
    patience: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="Seconds that a server may refuse or fail without one answer before it is given up; 120.",
    )
    keep_going: bool = Field(
        default=False, description="Go on asking a judge of whom 20 replies in a row could not be read."
    )
    verify_reuse: float | None = Field(
        default=None, ge=0, le=1, description="`local:` asks this share (0 to 1) again without a shared prefix."
    )
    review: bool = Field(default=False, description="Stop before the repair is decided and ask you.")
    characters: Path | None = Field(
        default=None,
        description="A folder with a picture of each character, NAME.png, for renderers that draw from them.",
    )
    mapping: Path | None = Field(
        default=None, description="A YAML file of keys and values: how your story records name things."
    )
    similarity: str = Field(
        default=UNMEASURED, description="What coverage and copies are measured with: open-clip:MODEL, none."
    )
    candidates: Annotated[int | None, Flag(hidden=True)] = Field(
        default=None, ge=1, description="How many of the seeds' boards are candidates; all unless told."
    )
    compass: Annotated[CompassSettings, Flag(hidden=True)] = Field(
        default=CompassSettings(), description="Weights and thresholds (see `katha tune`)."
    )
    lock: Annotated[str | None, Flag(hidden=True)] = Field(
        default=None, description="The sha256 of the lock that these settings are frozen by."
    )

    @model_validator(mode="before")
    @classmethod
    def _over_the_default(cls, given: object) -> object:
        """Lay what was given over the default preset. Whoever is named comes without the options of the default."""
        if not isinstance(given, Mapping):
            return given
        usual = {name: value for name, value in usual_preset()[1].items() if name.removesuffix("_options") not in given}
        return {**usual, **given}

    @field_validator(*(f"{name}_options" for name in (*_WITH_OPTIONS, "judge")), mode="before")
    @classmethod
    def _read_options(cls, value: object) -> object:
        return read_options(value) if isinstance(value, (str, list, tuple)) else value

    @field_validator("judges", "seeds", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return [part for part in re.split(r"[,\s]+", value) if part] if isinstance(value, str) else value

    @field_validator("judges", "seeds")
    @classmethod
    def _each_once(cls, value: tuple[Any, ...], info: ValidationInfo) -> tuple[Any, ...]:
        nobody = info.field_name == "judges" and not usual_preset()[1].get("judges")
        if not (value or nobody) or len(set(value)) != len(value):
            raise ValueError(f"give at least one {str(info.field_name).removesuffix('s')}, each once")
        if info.field_name == "seeds" and any(not 0 <= seed < 2**32 for seed in value):
            raise ValueError("a seed is a whole number from 0 to 4294967295")
        return value

    @field_validator("panels", mode="wrap")
    @classmethod
    def _read_panels(cls, value: object, read: ValidatorFunctionWrapHandler) -> int | None:
        found = re.fullmatch(r"\s*(\d{1,4})\s*[-\u2013]\s*(\d{1,4})\s*", str(value))
        if found is None:
            panels: int | None = read(value)
            return panels
        fewest, most = read(found[1]), read(found[2])
        if fewest > most:
            raise ValueError(f"a range goes from fewer panels to more, {most}-{fewest}")
        return int(fewest) if fewest == most else Span(fewest, most)

    @field_serializer("panels")
    def _told_panels(self, panels: int | None) -> int | str | None:
        return str(panels) if isinstance(panels, Span) else panels

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, value: str | None) -> str | None:
        try:
            parts = urlsplit(value or "http://none")
        except ValueError:
            raise ValueError(NO_URL) from None
        if parts.username or parts.password or parts.query:
            raise ValueError("an address is written into files: leave names, passwords and queries out of it")
        problem = url_problem(value) if value is not None else None
        if problem is not None:
            raise ValueError(problem)
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

    @property
    def matching_note(self) -> str:
        """Return what a reader has to know of who matches free answers; "" where another model than the judges does."""
        return matching_note(_asked(dict(self)), self.answers, self.matching, self.base_url)

    def with_plugins(self, **names: Any) -> Settings:
        """Return these settings with other plug-ins (`renderer="flux"`, `renderer_options={"steps": 4}`).

        Options stay with the plug-in that they were given for.

        Raises:
            ValidationError: a value cannot be.
        """
        merged = _said(self)
        _lay_over(merged, names)
        return type(self).model_validate(merged)


def _asked(told: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the judges whose answers count: those that steer where the board is drawn without a judge."""
    judges, steering = tuple(told["judges"]), tuple(told["steering_judges"])
    return steering if judges == (UNMEASURED,) and steering else judges


def _said(settings: Settings) -> dict[str, Any]:
    """Return settings without what follows from who judges, where nobody said it: it is found again."""
    return {name: value for name, value in settings if name not in _FOLLOWS or name in settings.model_fields_set}


def identity_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a dumped `Settings` makes two runs the same, beside the specifications of their plug-ins.

    Where a model is kept in memory or how long a service is waited for changes no result, and a run may go on with
    another value. What a mapping reads is in the stories themselves, and pictures of characters are in the renderers'
    specifications.
    """
    loose = ("memory", "patience", "keep_going", "mapping", "characters")
    told = {name: value for name, value in settings.items() if name not in loose and not name.endswith("_options")}
    for name in ("steering_judges", "guide"):  # nobody apart: what was made before there was a choice is the same
        if not told.get(name, True):
            told.pop(name)
    return told


def load_preset(name: str) -> dict[str, Any]:
    """Return the settings of preset `name`, or of the YAML file at that path.

    Raises:
        UnknownPluginError: no such preset or file. UsageError: it is not a mapping of settings.
    """
    value = load_chosen("presets", name, "Preset")
    if not isinstance(value, dict):
        raise UsageError(f"Preset {name!r} must be a mapping of settings.")
    if "lock" in value:
        raise UsageError(f"Preset {name!r} names a lock.", hint="Give the lock on the command line: --lock FILE.")
    return {key: item for key, item in value.items() if key != "default"}


def usual_preset() -> tuple[str, Mapping[str, Any]]:
    """Return the default, the first installed preset that says `default: true`, and its settings.

    Where no installed package offers one its name is "", and it says nothing.
    """
    return _usual_preset(*sys.path)


@lru_cache(maxsize=1)
def _usual_preset(*path: str) -> tuple[str, Mapping[str, Any]]:
    for name in sorted({entry.name for entry in offered("presets")}):
        with suppress(KathaError):  # one that is broken is no default, and stops no command
            value = load_chosen("presets", name, "Preset")
            if isinstance(value, dict) and value.get("default") is True:
                return name, _chosen(load_preset(name), set(), None)
    return "", {}


def require_chosen(settings: Settings, names: Collection[str] = tuple(_WHO)) -> None:
    """Refuse settings in which nobody is who a command needs: `planner`, `renderer`, `judges`.

    Raises:
        UsageError: nobody was named, and there is no default.
    """
    missing = [_WHO[name] for name in names if not getattr(settings, name)]
    if missing:
        flags = " and ".join(f"--{what}" for what in missing)
        raise UsageError(
            f"No {' and no '.join(missing)} is chosen, and none is installed that works without a model.",
            hint=f"Set a key (see `katha doctor`), name one with {flags}, or install the stand-in: {stand_in_line()}.",
        )


_FAMILIES: tuple[tuple[str, Family], ...] = (
    *(("planner", "planners"), ("renderer", "renderers"), ("bridge_renderer", "renderers"), ("guide", "renderers")),
    *(("judges", "judges"), ("steering_judges", "judges"), ("similarity", "similarities")),
)


def refuse_code(values: Mapping[str, Any], where: str, *, received: bool = False) -> None:
    """Refuse settings from a file that name code; `received`: the file may be a stranger's, so no server either.

    A key would go to a server that a file names. This machine's own servers, and what KATHA_BASE_URL names, are fine.

    Raises:
        UsageError: a plug-in is named by its class path, or a server is; `where` names the file.
    """
    for name, family in _FAMILIES:
        for given in _proposed(values.get(name)) or (values.get(name),):
            for spec in re.split(r"[,\s]+", given) if isinstance(given, str) and family == "judges" else _listed(given):
                # The one plug-in whose argument names another plug-in.
                default_registry(family).refuse_code(spec.removeprefix("constrained:"), where)
    for given in _proposed(values.get("matching")) or (values.get("matching"),):
        rule, _, argument = str(given).partition(":")
        if rule == "llm":
            default_registry("judges").refuse_code(argument, where)
    options = [_options_of(values.get(f"{name}_options")) for name in (*_WITH_OPTIONS, "judge")]
    told = [(key, url) for item in options for key, value in item.items() for url in _listed(value)]
    urls = [values.get("base_url"), *(url for key, url in told if key == "base_url" or "://" in url)]
    for url in filter(None, urls) if received else ():
        if str(url) != os.environ.get("KATHA_BASE_URL") and not (
            url_problem(str(url)) is None and is_loopback(str(url))
        ):
            raise UsageError(
                f"{where} names the server {str(url)[:200]!r}: no key is sent because a file names a server.",
                hint="If you trust it, set KATHA_BASE_URL to this address.",
            )


def _proposed(value: object) -> list[Any]:
    """Return what a preset proposes with `first_of`; empty where it says one value."""
    given = value.get("first_of") if isinstance(value, dict) and set(value) == {"first_of"} else None
    return given if isinstance(given, list) else []


def _listed(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else [str(value)] if value else []


def _lay_over(merged: dict[str, Any], layer: Mapping[str, Any]) -> None:
    """Put `layer` over `merged`. Options are put over one by one, unless the layer names another plug-in.

    A `memory` of the layer goes over the renderers' own of the layers below.
    """
    for name in _DRAWERS if layer.get("memory") is not None else ():
        below = _options_of(merged.get(f"{name}_options"))
        merged[f"{name}_options"] = {key: value for key, value in below.items() if key != "memory"}
    for name in _WITH_OPTIONS:
        options, before = f"{name}_options", str(merged.get(name, _usual(name)))
        if name in layer and str(layer[name]).split(":")[0] != before.split(":")[0]:
            merged.pop(options, None)
        if isinstance(layer.get(options), (dict, str, list, tuple)):
            layer = {**layer, options: {**_options_of(merged.get(options)), **_options_of(layer[options])}}
    merged.update(layer)


def _usual(name: str) -> object:
    return usual_preset()[1].get(name, Settings.model_fields[name].default)


def _options_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else read_options(value or ())


def resolve(
    flags: Mapping[str, Any],
    *,
    preset: str | None = None,
    environment: Mapping[str, str] | None = None,
    base: Settings | None = None,
    recorded: Mapping[str, Any] | None = None,
    choose: Choose | None = None,
) -> Settings:
    """Return the settings of flags, preset, environment and defaults; a flag that is None was not given.

    base: settings to lay the flags over, instead of the environment's and the defaults. recorded: those of a recording
    that is replayed, over the environment's. choose: takes one of what a preset proposes (`judges: {first_of: [...]}`)
    where neither a flag nor the environment names one; the first unless told.

    Where nobody judges and no mode is named, the mode is `base`: one board is drawn.

    Raises:
        UsageError: a setting is unknown or has a value it cannot have (the setting and the reason are named).
    """
    merged: dict[str, Any] = _said(base) if base is not None else {}
    told: dict[str, Any] = {}
    if base is None:
        given = os.environ if environment is None else environment
        if given.get("KATHA_LOCK"):
            raise UsageError("KATHA_LOCK freezes nothing.", hint="Give the lock on the command line: --lock FILE.")
        names = {name: f"KATHA_{name.upper()}" for name in Settings.model_fields if name not in ("compass", "lock")}
        merged = {name: given[variable] for name, variable in names.items() if given.get(variable)}
        told = dict(merged)
        _lay_over(merged, recorded or {})
    if preset is not None:
        layer = load_preset(preset)
        refuse_code({name: value for name, value in layer.items() if flags.get(name) is None}, f"Preset {preset!r}")
        layer = _chosen(layer, {*merged, *(name for name, value in flags.items() if value is not None)}, choose)
        _lay_over(merged, layer)
    _lay_over(merged, {key: value for key, value in flags.items() if value is not None})
    variables = {name for name, value in told.items() if merged[name] is value}
    config = read_settings(Settings, merged, variables)
    if config.judges == (_NOBODY,) and not config.steering_judges and "mode" not in merged:
        return read_settings(Settings, {**merged, "mode": "base"}, variables)  # nothing could choose a second board
    return config


def _chosen(layer: Mapping[str, Any], named: set[str], choose: Choose | None) -> dict[str, Any]:
    """Return a preset's values with one of what it proposes; what a flag or the environment names is left to them, and
    what it leaves to the default (None) to that."""
    found: dict[str, Any] = {}
    for name, value in layer.items():
        proposed = _proposed(value)
        if not proposed:
            found[name] = value
        elif name not in named and (one := choose(name, proposed) if choose is not None else proposed[0]) is not None:
            found[name] = one
    return found


M = TypeVar("M", bound=BaseModel)


def read_settings(model: type[M], values: Mapping[str, Any], variables: Collection[str] = ()) -> M:
    """Return `values` as a record of settings; `variables` are those that stand in environment variables.

    Raises:
        UsageError: one is unknown or has a value it cannot have (the setting and the reason are named).
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = repr(".".join(str(part) for part in first["loc"]) or "settings")
        if first["loc"] and first["loc"][0] in variables:
            where += f" (KATHA_{str(first['loc'][0]).upper()})"
        raise UsageError(f"Setting {where}: {first['msg'].removeprefix('Value error, ')}.") from error


def split_settings(model: type[M], changes: Mapping[str, Any]) -> tuple[M, dict[str, Any]]:
    """Return what of `changes` belongs to `model`, as a record of settings, and the rest.

    Raises:
        UsageError: one has a value that it cannot have.
    """
    own = {name: value for name, value in changes.items() if name in model.model_fields and value is not None}
    return read_settings(model, own), {name: changes[name] for name in changes if name not in model.model_fields}


def cache_folder() -> Path:
    """Return the folder named by `KATHA_CACHE`, else the system's place for the user's caches (`~/.cache/katha`)."""
    private = private_folder()
    if private is not None:
        return private
    named = os.environ.get("KATHA_CACHE")
    return Path(named).expanduser() if named else user_cache_path("katha", appauthor=False)


def katha_version() -> str:
    """Return the version of katha that is installed, as folders and locks record it."""
    return version("katha")
