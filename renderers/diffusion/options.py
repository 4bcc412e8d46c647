"""What the diffusion renderers can be told, and what is known of their model families (`configs/diffusion.yaml`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Literal, get_args

from pydantic import TypeAdapter

from katha.configs import load_config
from katha.errors import UsageError

Rung = Literal["full", "model-offload", "sequential-offload", "quantized"]
"""Where a model is kept while it draws: everything on the device; one component, or one layer, at a time on the device
and the rest in host memory; or denoiser and text encoders as 8-bit floats, computed in the run's dtype."""
DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2}
"""What can be computed in, with its bytes."""


@dataclass(frozen=True)
class Variant:
    """Settings of one kind of checkpoint: the facts that tell it (`when`), steps, guidance, prompt limit in tokens, the
    family of prompts that it reads, and the scheduler that it was trained with, where its files bring another."""

    when: Mapping[str, str | bool]
    steps: int
    guidance: float
    prompt_tokens: int
    prompt_family: str = "paragraph"
    scheduler: str | None = None

    def fits(self, facts: Mapping[str, object]) -> bool:
        """Return whether a checkpoint's facts are these; `name` is a pattern of its file's or folder's name."""
        named = re.search(str(self.when.get("name", "")), str(facts.get("name", "")), re.IGNORECASE)
        return named is not None and all(facts.get(key) == want for key, want in self.when.items() if key != "name")


@dataclass(frozen=True)
class CheckpointFamily:
    """One family of checkpoints; the fields are explained in the data file."""

    name: str
    pipelines: tuple[str, ...]
    model: str
    denoiser: str
    native: int | None
    size_multiple: int
    pixels: tuple[float, float]
    aspect: float
    variants: tuple[Variant, ...]
    published: str | None = None

    def variant(self, facts: Mapping[str, object]) -> Variant:
        """Return the settings for a checkpoint with `facts` (pipeline class, guidance embedding)."""
        return next(row for row in self.variants if row.fits(facts))


@dataclass(frozen=True)
class Calling:
    """How one pipeline class is called; the fields are explained in the data file."""

    away: Literal["true_cfg", "guidance", "never"]
    pictures: int = 0
    between: tuple[str, ...] = ()
    scale: str = "guidance_scale"
    blank: str = ""
    unseeing: str | None = None
    listed: bool = False
    first_block: bool = False
    layout: str = ""
    strength: float = 0.0
    fewer: bool = False

    def begun(self, steps: int, strength: float | None) -> tuple[int, float]:
        """Return how many of so many steps are drawn over a layout, at least one and never all, and what the class is
        told so that it draws these."""
        drawn = min(max(1, round(steps * (self.strength if strength is None else strength))), steps - 1)
        return drawn, (drawn + (0.25 if self.fewer else -0.25)) / steps


@dataclass(frozen=True)
class FileKind:
    """What a single file holds; the fields are explained in the data file."""

    starts: str
    what: str
    families: tuple[str, ...] = ()
    part: str | None = None
    width: int | None = None


@dataclass(frozen=True)
class Packing:
    """How weights are packed into fewer bits; the fields are explained in the data file."""

    package: str
    rungs: tuple[Rung, ...]
    device: str | None = None
    dtype: str | None = None
    adapters: bool = False


@dataclass(frozen=True)
class Scheduler:
    """A scheduler that may replace the checkpoint's own: its class, and what differs from the checkpoint's settings."""

    kind: str
    settings: Mapping[str, str | float | bool] = field(default_factory=dict)


@dataclass(frozen=True)
class DiffusionData:
    """What is known of model families; the fields are explained in the data file."""

    packages: tuple[str, ...]
    families: Mapping[str, CheckpointFamily]
    calls: Mapping[str, Calling]
    single_files: tuple[FileKind, ...]
    packed: tuple[str, ...]
    packings: Mapping[str, Packing]
    schedulers: Mapping[str, Scheduler]


@cache
def diffusion_data() -> DiffusionData:
    """Return the content of `configs/diffusion.yaml`."""
    read = load_config("diffusion.yaml")
    families = {name: {"name": name, **row} for name, row in read["families"].items()}
    return TypeAdapter(DiffusionData).validate_python({**read, "families": families})


def one_of(name: str, value: str, known: Iterable[str]) -> None:
    """Refuse a `value` that is none of `known` (UsageError); `name` is what it is called in the sentence."""
    if value not in known:
        raise UsageError(f"There is no {name} {value!r}.", hint=f"Use {', '.join(known)}.")


def at_least(least: int, **values: float | None) -> None:
    """Refuse an option below `least` (UsageError); None is the model's own default."""
    for name, value in values.items():
        if value is not None and value < least:
            raise UsageError(f"{name} is at least {least}, not {value}.")


def between(**values: float | None) -> None:
    """Refuse an option that is not between 0 and 1 (UsageError); None is the model's own default."""
    for name, value in values.items():
        if value is not None and not 0 < value < 1:
            raise UsageError(f"{name} is more than 0 and less than 1, not {value:g}.")


@dataclass(frozen=True, kw_only=True)
class DiffusionOptions:
    """What every diffusion renderer can be told. None means the model's own default.

    A family that has no use for one of these declares it anew with `init=False`: then it cannot be given.

    Raises:
        UsageError: a value that cannot be.
    """

    revision: str | None = None
    """The hub's branch, tag or commit."""
    variant: str | None = None
    """Which weights are read where a folder holds several: `fp16`."""
    base: str | None = None
    """For a single file: the folder or hub name that brings configuration, tokenizers and missing components."""
    download: bool = False
    """Fetch a checkpoint that is not on this machine."""
    device: str | None = None
    """Where it draws; the accelerator if there is one, else `cpu`."""
    dtype: str | None = None
    """What it computes in; float32 on a CPU, else what the weights were published in."""
    memory: Rung = "full"
    """Where the model is kept while it draws."""
    vae_tiling: bool = False
    """Decode in tiles: less memory for large frames."""
    steps: int | None = None
    """Denoising steps."""
    guidance: float | None = None
    """The scale of classifier-free (or distilled) guidance."""
    scheduler: str | None = None
    """`ddim`, `euler`, ... instead of the checkpoint's own."""
    lora: tuple[str, ...] = ()
    """Adapters, each `FILE@WEIGHT`."""
    batch: int = 1
    """How many frames are drawn at once."""
    any_size: bool = False
    """Draw sizes that the weights were not trained for."""
    negative: str = ""
    """What no frame shall show, added to the plan's own. FLUX.1 uses it with `true_cfg` above 1 only; distilled FLUX.2
    models know none."""

    def __post_init__(self) -> None:
        one_of("memory rung", self.memory, get_args(Rung))
        if self.dtype is not None:
            one_of("dtype", self.dtype, DTYPES)
        known = diffusion_data().schedulers
        if self.scheduler is not None and self.scheduler not in known:
            raise UsageError(f"There is no scheduler {self.scheduler!r}.", hint=f"Known: {', '.join(known)}.")
        at_least(1, steps=self.steps, batch=self.batch)

    def of_the_family(self) -> dict[str, object]:
        """Return what a family adds to these options, by name, but for what changes no pixel of a frame without a
        layout."""
        left_out = {item.name for item in fields(DiffusionOptions)} | {"keep_gib", "strength"}
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name not in left_out}
