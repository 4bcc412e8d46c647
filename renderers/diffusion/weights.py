"""Weight files looked at without loading them, and single files as shared for other programs."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from katha.config import cache_folder
from katha.errors import InputFileError, KathaError, MissingExtraError, UsageError, unreadable
from katha.jsonio import digest, read_json, write_json

if TYPE_CHECKING:
    from torch import Tensor

# ---
# Weight files looked at without loading them: names, shapes and hashes of their tensors.


_LONGEST_HEADER = 100 << 20


@dataclass(frozen=True)
class Header:
    """The tensors of one safetensors file: name to shape."""

    shapes: Mapping[str, tuple[int, ...]]

    @property
    def numbers(self) -> int:
        """How many numbers the file holds."""
        return sum(map(math.prod, self.shapes.values()))

    @property
    def largest(self) -> int:
        """How many numbers its largest tensor holds."""
        return max(map(math.prod, self.shapes.values()), default=0)


def read_header(file: Path) -> Header:
    """The header of a safetensors file; no tensor is read.

    Raises:
        InputFileError: it is no whole safetensors file.
    """
    broken = InputFileError(f"{str(file)!r} is no whole safetensors file.", hint="Download it again.")
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 0 < length < _LONGEST_HEADER:
                raise broken
            rows = json.loads(stream.read(length))
            rows.pop("__metadata__", None)
            shapes = {name: tuple(map(int, row["shape"])) for name, row in rows.items()}
            end = max((row["data_offsets"][1] for row in rows.values()), default=0)
    except OSError as error:
        raise unreadable(file, error) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise broken from error
    if file.stat().st_size < 8 + length + end:
        raise InputFileError(f"{str(file)!r} is cut off.", hint="Download it again.")
    return Header(shapes)


def weight_files(folder: Path, variant: str | None) -> list[Path]:
    """The safetensors files of one component: those of `variant` (`fp16`), or those of none."""
    found = sorted(folder.glob("*.safetensors"))
    if variant is not None:
        return [file for file in found if f".{variant}" in file.name]
    return [file for file in found if file.name.count(".") == 1]


def files_sha256(files: Mapping[str, Path]) -> str:
    """One hash of several files, by their names and bytes. A file's hash is remembered until its size or time changes.

    Raises:
        InputFileError: a file cannot be read.
    """
    memory = cache_folder() / "checkpoints.json"
    known = _remembered(memory)
    hashes: dict[str, str] = {}
    fresh: dict[str, str] = {}
    for name, path in sorted(files.items()):
        key = _key(path)
        hashes[name] = known.get(key) or _sha256(path)
        if key not in known:
            fresh[key] = hashes[name]
    if fresh:
        memory.parent.mkdir(parents=True, exist_ok=True)
        write_json(memory, {**_remembered(memory), **fresh})
    return digest(hashes)


def _key(path: Path) -> str:
    state = path.stat()
    return f"{path.resolve()}|{state.st_size}|{state.st_mtime_ns}"


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from error


def _remembered(memory: Path) -> dict[str, str]:
    try:
        value = read_json(memory)
    except KathaError:  # no such file yet, or a broken one: hash again
        return {}
    return value if isinstance(value, dict) else {}


def total_numbers(files: Sequence[Path]) -> int:
    """How many numbers several files hold."""
    return sum(read_header(file).numbers for file in files)


# ---
# What the diffusion renderers know about their model families, read from `configs/diffusion.yaml`.


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


# ---
# One file instead of a folder, as shared for other programs: what it holds, and whether it goes with its base.


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
