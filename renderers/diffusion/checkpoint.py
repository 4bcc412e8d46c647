"""The files of a checkpoint, looked at without loading them: a diffusers folder, a hub's snapshot, or a single file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.config import cache_folder
from katha.errors import (
    AbsentModelError,
    InputFileError,
    KathaError,
    MissingExtraError,
    UsageError,
    first_line,
    unreadable,
)
from katha.installing import install_line
from katha.jsonio import digest, file_sha256, open_input, read_json, read_text, write_json
from katha.models.checkpoints import HUB_NAME, hub_commit, need
from katha.renderers.diffusion.options import CheckpointFamily, DiffusionOptions, FileKind, Packing, diffusion_data

if TYPE_CHECKING:
    from torch import Tensor

_VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "spiece.model", "tokenizer.model")
_TEXTS = (".json", ".txt", ".model")
# About safetensors' own limit of a header.
_LONGEST_HEADER = 100 << 20
_PREFIX = "model.diffusion_model."
"""What whole checkpoints of other programs put before the denoiser's names."""
Shapes = Mapping[str, tuple[int, ...]]
"""The tensors of one file, by name."""
_SINGLE = (".safetensors", ".gguf")
_EXTRA = "packed"
_YES = frozenset(("1", "on", "yes", "true"))
"""What diffusers takes for yes in an environment variable."""


def read_header(file: Path) -> Shapes:
    """Return the shapes of the tensors of a safetensors or GGUF file, unpacked; none is read.

    Raises:
        InputFileError: it is not a whole file of its kind. MissingExtraError: GGUF without the package that reads it.
    """
    if file.suffix == ".gguf":
        return _gguf_header(file)
    broken = InputFileError(f"{str(file)!r} is not a whole safetensors file.", hint="Download it again.")
    try:
        with open_input(file) as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 0 < length < _LONGEST_HEADER:
                raise broken
            rows = json.loads(stream.read(length))
            rows.pop("__metadata__", None)
            shapes = {name: tuple(map(int, row["shape"])) for name, row in rows.items()}
            end = max((int(row["data_offsets"][1]) for row in rows.values()), default=0)
    except OSError as error:
        raise unreadable(file, error) from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise broken from error
    if file.stat().st_size < 8 + length + end:
        raise InputFileError(f"{str(file)!r} is cut off.", hint="Download it again.")
    return shapes


def _gguf_header(file: Path) -> Shapes:
    reader = need("gguf", "Reading a GGUF file", _EXTRA).GGUFReader
    try:
        return {row.name: tuple(int(size) for size in reversed(row.shape)) for row in reader(file).tensors}
    except OSError as error:
        raise unreadable(file, error) from error
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise InputFileError(f"{str(file)!r} is not a whole GGUF file.", hint="Download it again.") from error


def weight_files(folder: Path, variant: str | None) -> list[Path]:
    """Return the safetensors files of one component: those of `variant` (`fp16`), or those of none."""
    found = sorted(folder.glob("*.safetensors"))
    if variant is not None:
        return [file for file in found if f".{variant}" in file.name]
    return [file for file in found if file.name.count(".") == 1]


def files_sha256(files: Mapping[str, Path]) -> str:
    """Return one hash of several files, by names and bytes; a file's is remembered until its size or time changes.

    Raises:
        InputFileError: a file cannot be read.
    """
    memory = cache_folder() / "checkpoints.json"
    states = {name: path.stat() for name, path in files.items()}
    keys = {name: f"{files[name].resolve()}|{at.st_size}|{at.st_mtime_ns}" for name, at in states.items()}
    known = _remembered(memory)
    try:
        fresh = {keys[name]: file_sha256(path) for name, path in files.items() if keys[name] not in known}
    except OSError as error:
        raise unreadable(Path(str(error.filename)), error) from error
    if fresh:
        memory.parent.mkdir(parents=True, exist_ok=True)
        write_json(memory, {**_remembered(memory), **fresh})  # read again: another process may have added some
    return digest({name: {**known, **fresh}[key] for name, key in keys.items()})


def _remembered(memory: Path) -> dict[str, str]:
    try:
        value = read_json(memory)
    except KathaError:  # no such file yet, or a broken one: hash again
        return {}
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint's files; what packs its weights, if anything does, it says itself.

    folder: the diffusers folder; for a single file the one that brings its configuration and what the file lacks.
    file: the single file, or None. revision: the hub's commit, or `sha256:` of the files. components: component name to
    the name of its class.
    """

    name: str
    folder: Path
    file: Path | None
    revision: str
    pipeline: str
    components: Mapping[str, str]
    variant: str | None

    def facts(self, denoiser: str) -> dict[str, object]:
        """Return what tells variants of a family apart."""
        index: Mapping[str, Any] = read_json(self.folder / "model_index.json")
        return {
            "name": Path(self.file or self.name).name,
            "trailing": self.config("scheduler").get("timestep_spacing") == "trailing",
            "pipeline": self.pipeline,
            "guidance_embeds": self.config(denoiser).get("guidance_embeds"),
            "is_distilled": index.get("is_distilled", False),
        }

    def config(self, component: str) -> Mapping[str, Any]:
        """Return the configuration of one component; empty where it has none."""
        for name in ("config.json", "scheduler_config.json"):
            path = self.folder / component / name
            if path.is_file():
                value = _read_config(path)
                return value if isinstance(value, dict) else {}
        return {}

    @cached_property
    def packing(self) -> Mapping[str, str]:
        """Return what packs a component's weights into fewer bits, by component; empty for plain floats."""
        said = {name: self.config(name).get("quantization_config") for name in self.components}
        found = {name: str(row.get("quant_method")) for name, row in said.items() if isinstance(row, dict)}
        if self.file is not None:
            found.pop("transformer", None)
            found |= {"transformer": "gguf"} if self.file.suffix == ".gguf" else {}
        return found

    @property
    def latent_halvings(self) -> int:
        """Return how often the decoder doubles the sides of a latent."""
        return len(self.config("vae").get("block_out_channels", [0] * 4)) - 1

    def weights(self) -> dict[str, list[Path]]:
        """Return the safetensors files that are read, by component; a whole pipeline in one file is its denoiser's."""
        found = {name: weight_files(self.folder / name, self.variant) for name in self.components}
        if self.file is not None and "transformer" in self.components:
            found["transformer"] = [self.file]
        elif self.file is not None:
            found = {"unet": [self.file]}
        return {name: files for name, files in found.items() if files}


def _read_config(path: Path) -> Any:
    """Return what a component's configuration holds; diffusers writes numbers without bound into them, which JSON does
    not have (`-Infinity`, of a scheduler).

    Raises:
        InputFileError: the file cannot be read or holds something else.
    """
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError):
        return read_json(path)  # which says where


def find_checkpoint(family: CheckpointFamily, argument: str | None, options: DiffusionOptions) -> Checkpoint:
    """Return the files behind `NAME:ARGUMENT` (a diffusers folder, a single file, or OWNER/NAME of the hub).

    Raises:
        UsageError: not a checkpoint of `family`. AbsentModelError: not on this machine; the hint is the command that
            fetches it.
        InputFileError: a file is missing or broken.
    """
    named = argument or family.model
    path = Path(named).expanduser()
    if path.is_file():
        return _single_file(family, named, path.resolve(), options)
    folder = _folder(family, named, options)
    found = Checkpoint(named, folder, None, "", *_read_index(family, named, folder, options), options.variant)
    if not found.weights():
        wanted = f"weights of the variant {options.variant!r}" if options.variant else "weights (*.safetensors)"
        raise InputFileError(
            f"{named!r} holds no {wanted}.", hint="Download the whole checkpoint; pickles are not read."
        )
    return replace(found, revision=hub_commit(folder) or _hashed(found))


def packings_of(checkpoint: Checkpoint, options: DiffusionOptions) -> tuple[Packing, ...]:
    """Return what packs the weights of `checkpoint`, looked up in the data.

    Raises:
        UsageError: something that is not read here, or that cannot be moved or changed as the options ask.
        MissingExtraError: its package is missing.
    """
    named, known, found = checkpoint.name, diffusion_data().packings, []
    for part, method in checkpoint.packing.items():
        if method not in known:
            raise UsageError(
                f"{named!r} holds a {part} that is packed by {method!r}, which is not read here.",
                hint=f"Give one of plain floats, or one packed by {', '.join(known)}.",
            )
        packing = known[method]
        if find_spec(packing.package) is None:
            raise MissingExtraError(
                f"{named!r} holds a {part} that is packed by {method!r}: that needs {packing.package}.",
                hint=f"Install it with: {install_line('packed')}.",
            )
        if options.memory not in packing.rungs:
            raise UsageError(
                f"{named!r} is packed by {method!r}: it is kept small already.",
                hint=f"Give --memory {' or '.join(packing.rungs)}.",
            )
        if options.lora and not packing.adapters:
            raise UsageError(
                f"Adapters are not put on weights that are packed by {method!r}.",
                hint="Give the checkpoint of plain floats, or its GGUF file.",
            )
        found.append(packing)
    return tuple(found)


def _folder(family: CheckpointFamily, named: str, options: DiffusionOptions) -> Path:
    """Return the folder, or the hub's snapshot in the cache of this machine, fetched first if it may be."""
    path = Path(named).expanduser()
    if path.is_dir():
        if options.revision is not None:
            raise UsageError(f"A folder has no revision: {named!r}.", hint="Leave the revision out.")
        return path.resolve()
    if path.is_absolute() or named.startswith((".", "~")) or not HUB_NAME.fullmatch(named):
        raise InputFileError(
            f"There is no checkpoint {named!r}.",
            hint="Give a diffusers folder (with model_index.json), a .safetensors or .gguf file, or OWNER/NAME.",
        )
    from huggingface_hub import snapshot_download

    revision = options.revision
    command, needed = _fetching(family, named, options)
    try:
        if options.download:
            import diffusers

            pipeline = getattr(diffusers, family.pipelines[0] if family.pipelines else "DiffusionPipeline")
            return Path(pipeline.download(named, revision=revision, variant=options.variant, use_safetensors=True))
        return Path(snapshot_download(named, revision=revision, local_files_only=True))
    except (OSError, ValueError, RuntimeError) as error:
        if not options.download:
            raise AbsentModelError(
                f"The checkpoint {named!r} is not on this machine.",
                hint=f"Run `{command}` where there is a network{needed}, or give its folder.",
            ) from error
        raise UsageError(
            f"The checkpoint {named!r} cannot be fetched: {first_line(error)}.",
            hint=f"Try again, or run `{command}`: what is there already is kept.",
        ) from error


def _fetching(family: CheckpointFamily, named: str, options: DiffusionOptions) -> tuple[str, str]:
    """Return the command that fetches a checkpoint, and what else is to be given then: of the family's own model its
    16-bit files alone, because a whole repository holds every format there is."""
    command = f"hf download {named}" + (f" --revision {options.revision}" if options.revision else "")
    variant = options.variant or (family.published if named == family.model else None)
    if variant is None:
        return command, ""
    files = " ".join(f'--include "{name}"' for name in ("*.json", "*.txt", f"*.{variant}.safetensors"))
    return f"{command} {files}", "" if options.variant else f" and give --renderer-option variant={variant}"


def _read_index(
    family: CheckpointFamily, named: str, folder: Path, options: DiffusionOptions
) -> tuple[str, dict[str, str]]:
    """Return the pipeline's class and its components, checked."""
    path = folder / "model_index.json"
    if not path.is_file():
        raise InputFileError(f"{named!r} holds no model_index.json.", hint="Give a whole diffusers folder.")
    index = read_json(path)
    if not isinstance(index, dict) or not isinstance(index.get("_class_name"), str):
        raise InputFileError(f"{str(path)!r} names no pipeline.", hint="Download the checkpoint again.")
    if family.pipelines and index["_class_name"] not in family.pipelines:
        raise UsageError(
            f"{named!r} is a {index['_class_name']}, and {family.name!r} draws with {' or '.join(family.pipelines)}.",
            hint=f"Give a checkpoint such as {family.model}.",
        )
    pairs = {name: row for name, row in index.items() if isinstance(row, list) and len(row) == 2}
    rows = {name: row for name, row in pairs.items() if isinstance(row[1], str) and row[1]}
    missing = next((name for name, row in rows.items() if not _is_there(folder / name, str(row[1]))), None)
    if missing is not None:
        hub = HUB_NAME.fullmatch(named) and not Path(named).exists()
        again = (
            f"Run `{_fetching(family, named, options)[0]}` again." if hub else "Download the whole checkpoint again."
        )
        raise InputFileError(f"{named!r} lacks its {missing!r}.", hint=again)
    return index["_class_name"], {name: str(row[1]) for name, row in rows.items()}


def _is_there(folder: Path, kind: str) -> bool:
    """Return whether a component's files are there. Without a vocabulary the loaders would make an empty tokenizer."""
    reads = "Tokenizer" in kind or ("Processor" in kind and "ImageProcessor" not in kind)
    return folder.is_dir() and (not reads or any((folder / name).is_file() for name in _VOCABULARIES))


def _single_file(family: CheckpointFamily, named: str, file: Path, options: DiffusionOptions) -> Checkpoint:
    if file.suffix not in _SINGLE:
        raise InputFileError(f"{named!r} is no {' or '.join(_SINGLE)} file.", hint="Pickled checkpoints are not read.")
    kind, base = _find_kind(family, named, file), options.base or family.model
    try:
        folder = _folder(family, base, replace(options, revision=None))
    except UsageError as error:
        raise UsageError(
            f"The file {named!r} needs the configuration of {base!r}, which is not here.",
            hint="Give base=FOLDER with the same family's model_index.json and tokenizers, or " + (error.hint or ""),
        ) from error
    found = Checkpoint(named, folder, file, "", *_read_index(family, base, folder, options), options.variant)
    _check_base(kind, found, file, base)
    return replace(found, revision=_hashed(found))


def _hashed(found: Checkpoint) -> str:
    """Return the hash of the names and bytes of the files that are read."""
    texts = [path for path in (*found.folder.glob("*.json"), *found.folder.glob("*/*")) if path.suffix in _TEXTS]
    read = {str(path.relative_to(found.folder)): path for path in texts if path.is_file()}
    weights = {f"{name}/{path.name}": path for name, paths in found.weights().items() for path in paths}
    return f"sha256:{files_sha256({**read, **weights})}"


def _find_kind(family: CheckpointFamily, named: str, file: Path) -> FileKind:
    """Return what `file` holds, by the names of its tensors; UsageError where that is nothing that `family` draws with,
    or weights packed for another program."""
    tensors, data = read_header(file), diffusion_data()
    if (packed := next((name for name in tensors if name.endswith(data.packed)), None)) is not None:
        raise UsageError(
            f"{named!r} is packed for another program: it holds {packed!r}.",
            hint="Give the file of plain 16-bit or 8-bit floats (--memory quantized keeps it small), or a GGUF file.",
        )
    names = [name.removeprefix(_PREFIX) for name in tensors]
    unknown = FileKind("", "no checkpoint that is known here")
    kind = next((kind for kind in data.single_files if any(name.startswith(kind.starts) for name in names)), unknown)
    if family.name not in kind.families:
        raise UsageError(
            f"{named!r} holds {kind.what}, which {family.name!r} cannot draw with.",
            hint=f"Give a checkpoint such as {family.model}.",
        )
    return kind


def _check_base(kind: FileKind, found: Checkpoint, file: Path, base: str) -> None:
    """Refuse a base of another model than the file's: another class, guidance or width (UsageError)."""
    if kind.part is None:
        return
    named, theirs = found.name, found.components.get("transformer")
    if theirs != kind.part:
        raise UsageError(
            f"{named!r} holds {kind.what}, and the base {base!r} has a {theirs}.",
            hint="Give base=FOLDER of the same model.",
        )
    shapes = {name.removeprefix(_PREFIX): shape for name, shape in read_header(file).items()}
    guided = any(name.startswith("guidance_in.") for name in shapes)
    if guided != found.config("transformer").get("guidance_embeds", False):
        has, lacks = ("file", "base") if guided else ("base", "file")
        raise UsageError(
            f"{named!r} is not a model of the base {base!r}: the {has} has a guidance embedding, the {lacks} has none.",
            hint="Give base=FOLDER of the same model (schnell has none, dev has one).",
        )
    width = next(iter(shapes.get("img_in.weight", ())), None)
    if kind.width is not None and width != kind.width:
        raise UsageError(
            f"{named!r} holds {kind.what} {width} wide; diffusers reads such files at a width of {kind.width} only.",
            hint="Give the diffusers folder.",
        )


def part_numbers(file: Path) -> int:
    """Return how many numbers the denoiser's tensors hold; none is read."""
    shapes = read_header(file)
    return sum(math.prod(shapes[name]) for name in _part(shapes))


def read_part(file: Path) -> dict[str, Tensor]:
    """Return the denoiser's tensors, packed ones as they are, under the names that diffusers' readers expect."""
    if file.suffix == ".gguf":
        from diffusers.models.model_loading_utils import load_gguf_checkpoint as load_file
    else:
        from safetensors.torch import load_file

    tensors: dict[str, Tensor] = load_file(file)
    return {name.removeprefix(_PREFIX): tensors[name] for name in _part(tensors)}


def _part(names: Iterable[str]) -> list[str]:
    """Return the denoiser's names: those with the prefix of whole checkpoints, else all."""
    every = list(names)
    return [name for name in every if name.startswith(_PREFIX)] or every
