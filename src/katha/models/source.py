"""Where a local model lies: a folder, or a snapshot in the Hugging Face cache; what it is, by its own files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from katha.errors import InputFileError, ModelError, UsageError, first_line
from katha.jsonio import digest, read_json

__all__ = ["ModelSource", "find_folder", "folder_revision", "read_config"]

_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_HASHED = (".json", ".safetensors", ".jinja", ".txt", ".model")


@dataclass(frozen=True)
class ModelSource:
    """A model's files. revision: the hub's commit, or `sha256:` of the folder's files."""

    name: str
    folder: Path
    revision: str
    config: Mapping[str, Any]

    @property
    def architecture(self) -> str:
        """The class that the weights belong to, as `config.json` names it."""
        return str(self.config["architectures"][0])

    @property
    def text_config(self) -> Mapping[str, Any]:
        """The language model's part of `config.json` (old files keep it at the top)."""
        part = self.config.get("text_config")
        return part if isinstance(part, dict) else self.config


def find_folder(argument: str, *, revision: str | None = None, local_files_only: bool = True) -> Path:
    """The folder of `MODEL_OR_PATH`, whatever kind of model it holds.

    Raises:
        UsageError: a folder with a revision. InputFileError: no such folder. ModelError: not on this machine.
    """
    path = Path(argument).expanduser()
    if path.is_dir():
        if revision is not None:
            raise UsageError(f"A folder has no revision: {argument!r}.", hint="Leave the revision out.")
        return path.resolve()
    if path.is_absolute() or argument.startswith((".", "~")) or not _HUB_NAME.fullmatch(argument):
        raise InputFileError(
            f"There is no model folder {argument!r}.", hint="Give a folder with config.json, or OWNER/NAME."
        )
    return _snapshot(argument, revision, local_files_only=local_files_only)


def _snapshot(name: str, revision: str | None, *, local_files_only: bool) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, revision=revision, local_files_only=local_files_only))
    except (OSError, ValueError, RuntimeError) as error:
        wanted = f"{name} --revision {revision}" if revision else name
        reason = "is not on this machine" if local_files_only else f"cannot be fetched: {first_line(error)}"
        raise ModelError(
            f"The model {name!r} {reason}.",
            hint=f"Run `hf download {wanted}` where there is a network, or give the folder that it lies in.",
        ) from error


def read_config(name: str, folder: Path) -> Mapping[str, Any]:
    """A model's `config.json`, with an architecture named in it and weights beside it.

    Raises:
        InputFileError: there is none, or no weights in safetensors.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise InputFileError(f"{name!r} holds no config.json.", hint="Download the whole model again.")
    try:
        config = read_json(path)
    except InputFileError as error:
        raise InputFileError(error.message, hint="Download the whole model again.") from error
    known = isinstance(config, dict) and config.get("architectures") and config.get("model_type")
    if not known:
        raise InputFileError(f"{str(path)!r} names no architecture.", hint="Download the whole model again.")
    if not any(folder.glob("*.safetensors")):
        raise InputFileError(
            f"{name!r} holds no weights (*.safetensors).", hint="Download the whole model again; pickles are not read."
        )
    checked: Mapping[str, Any] = config
    return checked


def folder_revision(folder: Path) -> str:
    """The commit of a hub snapshot, else the hash of the files' names and bytes."""
    if folder.parent.name == "snapshots" and _COMMIT.fullmatch(folder.name):
        return folder.name
    hashes: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix in _HASHED:
            with path.open("rb") as file:
                hashes[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return f"sha256:{digest(hashes)}"
