"""Where a checkpoint comes from, what family it is of, and what is known of that family (`configs/diffusion.yaml`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from katha.errors import AbsentModelError, InputFileError, UsageError, first_line
from katha.jsonio import read_json
from katha.renderers.diffusion.weights import Family, check_base, files_sha256, find_kind, weight_files

_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "spiece.model", "tokenizer.model")
_TEXTS = (".json", ".txt", ".model")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint's files.

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

    @property
    def settings(self) -> Mapping[str, Any]:
        """What `model_index.json` says of the pipeline."""
        value: Mapping[str, Any] = read_json(self.folder / "model_index.json")
        return value

    def config(self, component: str) -> Mapping[str, Any]:
        """The configuration of one component; empty where it has none."""
        for name in ("config.json", "scheduler_config.json"):
            path = self.folder / component / name
            if path.is_file():
                value = read_json(path)
                return value if isinstance(value, dict) else {}
        return {}

    def weights(self) -> dict[str, list[Path]]:
        """The safetensors files that are read, by component; a whole pipeline in one file counts as its denoiser."""
        found = {name: weight_files(self.folder / name, self.variant) for name in self.components}
        if self.file is not None and "transformer" in self.components:
            found["transformer"] = [self.file]
        elif self.file is not None:
            found = {"unet": [self.file]}
        return {name: files for name, files in found.items() if files}


def find_checkpoint(
    family: Family,
    argument: str | None,
    *,
    revision: str | None = None,
    variant: str | None = None,
    base: str | None = None,
    download: bool = False,
) -> Checkpoint:
    """The files behind `NAME:ARGUMENT` (a diffusers folder, a single file, or OWNER/NAME of the hub).

    base: for a single file, the folder or hub name that brings configuration, tokenizers and missing components.

    Raises:
        UsageError: not a checkpoint of `family`. AbsentModelError: not on this machine; the hint is the command that
            fetches it.
        InputFileError: a file is missing or broken.
    """
    named = argument or family.model
    path = Path(named).expanduser()
    if path.is_file():
        return _single_file(family, named, path.resolve(), base or family.model, variant, download)
    folder = _folder(family, named, revision, variant, download)
    return _from_folder(family, named, folder, variant)


def _folder(family: Family, named: str, revision: str | None, variant: str | None, download: bool) -> Path:
    path = Path(named).expanduser()
    if path.is_dir():
        if revision is not None:
            raise UsageError(f"A folder has no revision: {named!r}.", hint="Leave the revision out.")
        return path.resolve()
    if path.is_absolute() or named.startswith((".", "~")) or not _HUB_NAME.fullmatch(named):
        raise InputFileError(
            f"There is no checkpoint {named!r}.",
            hint="Give a diffusers folder (with model_index.json), a .safetensors file, or OWNER/NAME of the hub.",
        )
    return _snapshot(family, named, revision, variant, download)


def _snapshot(family: Family, name: str, revision: str | None, variant: str | None, download: bool) -> Path:
    """The hub's snapshot in the cache of this machine, fetched first if `download`."""
    from huggingface_hub import snapshot_download

    wanted = f"{name} --revision {revision}" if revision else name
    try:
        if download:
            import diffusers

            pipeline = getattr(diffusers, family.pipelines[0])
            return Path(pipeline.download(name, revision=revision, variant=variant, use_safetensors=True))
        return Path(snapshot_download(name, revision=revision, local_files_only=True))
    except (OSError, ValueError, RuntimeError) as error:
        if not download:
            raise AbsentModelError(
                f"The checkpoint {name!r} is not on this machine.",
                hint=f"Run `hf download {wanted}` where there is a network, or give its folder.",
            ) from error
        reason = first_line(error)
        raise UsageError(
            f"The checkpoint {name!r} cannot be fetched: {reason}.",
            hint=f"Try again, or run `hf download {wanted}`: what is there already is kept.",
        ) from error


def _from_folder(family: Family, named: str, folder: Path, variant: str | None) -> Checkpoint:
    pipeline, components = _read_index(family, named, folder)
    found = {name: weight_files(folder / name, variant) for name in components}
    if not any(found.values()):
        wanted = f"weights of the variant {variant!r}" if variant else "weights (*.safetensors)"
        raise InputFileError(
            f"{named!r} holds no {wanted}.", hint="Download the whole checkpoint; pickles are not read."
        )
    weights = {f"{name}/{file.name}": file for name, files in found.items() for file in files}
    return Checkpoint(named, folder, None, _revision(folder, weights), pipeline, components, variant)


def _read_index(family: Family, named: str, folder: Path) -> tuple[str, dict[str, str]]:
    """The pipeline's class and its components, checked."""
    path = folder / "model_index.json"
    if not path.is_file():
        raise InputFileError(f"{named!r} holds no model_index.json.", hint="Give a whole diffusers folder.")
    index = read_json(path)
    if not isinstance(index, dict) or not isinstance(index.get("_class_name"), str):
        raise InputFileError(f"{str(path)!r} names no pipeline.", hint="Download the checkpoint again.")
    if index["_class_name"] not in family.pipelines:
        raise UsageError(
            f"{named!r} is a {index['_class_name']}, and {family.name!r} draws with {' or '.join(family.pipelines)}.",
            hint=f"Give a checkpoint such as {family.model}.",
        )
    rows = {name: row for name, row in index.items() if isinstance(row, list) and len(row) == 2 and row[1]}
    missing = next((name for name, row in rows.items() if not _is_there(folder / name, str(row[1]))), None)
    if missing is not None:
        raise InputFileError(f"{named!r} lacks its {missing!r}.", hint=_again(named))
    return index["_class_name"], {name: str(row[1]) for name, row in rows.items()}


def _is_there(folder: Path, kind: str) -> bool:
    """Whether a component's files are there. Without a vocabulary the loaders would make an empty tokenizer."""
    reads = "Tokenizer" in kind or "Processor" in kind
    return folder.is_dir() and (not reads or any((folder / name).is_file() for name in _VOCABULARIES))


def _again(named: str) -> str:
    hub = _HUB_NAME.fullmatch(named) and not Path(named).exists()
    return f"Run `hf download {named}` again." if hub else "Download the whole checkpoint again."


def _revision(folder: Path, weights: Mapping[str, Path]) -> str:
    """The commit of a hub snapshot, else the hash of the files' names and bytes."""
    if folder.parent.name == "snapshots" and _COMMIT.fullmatch(folder.name):
        return folder.name
    return f"sha256:{files_sha256({**_texts(folder), **weights})}"


def _single_file(family: Family, named: str, file: Path, base: str, variant: str | None, download: bool) -> Checkpoint:
    if file.suffix != ".safetensors":
        raise InputFileError(f"{named!r} is no .safetensors file.", hint="Pickled checkpoints are not read.")
    kind = find_kind(family, named, file)
    try:
        folder = _folder(family, base, None, variant, download)
    except UsageError as error:
        raise UsageError(
            f"The file {named!r} needs the configuration of {base!r}, which is not here.",
            hint="Give base=FOLDER with the same family's model_index.json and tokenizers, or " + (error.hint or ""),
        ) from error
    pipeline, components = _read_index(family, base, folder)
    found = Checkpoint(named, folder, file, "", pipeline, components, variant)
    check_base(kind, named, file, base, components, found.config("transformer"))
    weights = {f"{name}/{path.name}": path for name, paths in found.weights().items() for path in paths}
    return replace(found, revision=f"sha256:{files_sha256({**_texts(folder), **weights})}")


def _texts(folder: Path) -> dict[str, Path]:
    return {
        str(path.relative_to(folder)): path
        for path in [*folder.glob("*.json"), *folder.glob("*/*")]
        if path.suffix in _TEXTS and path.is_file()
    }
