"""Where a local model lies: a folder, or a snapshot in the Hugging Face cache; what it is, by its own files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from katha.errors import InputFileError, JudgeError, MissingExtraError, UsageError
from katha.jsonio import digest, read_json

__all__ = ["ModelSource", "find_folder", "find_model", "folder_revision", "read_config", "require_extra", "reusable"]

_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_HASHED = (".json", ".safetensors", ".jinja", ".txt", ".model")
_FULL = frozenset(("full_attention",))


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


@cache
def _data() -> Mapping[str, Any]:
    text = files("katha.configs").joinpath("local.yaml").read_text(encoding="utf-8")
    data: Mapping[str, Any] = yaml.safe_load(text)
    return data


def require_extra() -> None:
    """Check that everything a local model needs is installed; nothing is imported.

    Raises:
        MissingExtraError: with the names of the packages and the command.
    """
    missing = [name for name in _data()["packages"] if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"The judge 'local' needs {', '.join(missing)}.", hint="Install it with: pip install 'katha[local]'."
        )


def reusable(source: ModelSource) -> tuple[bool, str | None]:
    """Whether the model's cache may be shared between questions, and the name of its position state."""
    entry = _data()["reusable"].get(source.architecture)
    text = source.text_config
    windowed = bool(text.get("use_sliding_window")) or not _FULL.issuperset(text.get("layer_types") or ())
    return (entry is not None and not windowed, (entry or {}).get("position_state"))


def find_model(argument: str | None, *, revision: str | None = None, local_files_only: bool = True) -> ModelSource:
    """The files behind `MODEL_OR_PATH`. Only with `local_files_only=False` is anything downloaded.

    Raises:
        UsageError: no model is named, or it is not a vision-language model. InputFileError: no such folder, or a broken
        one. JudgeError: the model is not on this machine; the hint is the command that fetches it.
    """
    if not argument:
        raise UsageError("The judge 'local' needs a model.", hint="Write local:MODEL or local:FOLDER.")
    folder = find_folder(argument, revision=revision, local_files_only=local_files_only)
    config = read_config(argument, folder)
    _require_vision(argument, config)
    return ModelSource(argument, folder, folder_revision(folder), config)


def find_folder(argument: str, *, revision: str | None = None, local_files_only: bool = True) -> Path:
    """The folder of `MODEL_OR_PATH`, whatever kind of model it holds.

    Raises:
        UsageError: a folder with a revision. InputFileError: no such folder. JudgeError: not on this machine.
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
        reason = "is not on this machine" if local_files_only else f"cannot be fetched: {error}".splitlines()[0]
        raise JudgeError(
            f"The model {name!r} {reason}.",
            hint=f"Run `hf download {wanted}` where there is a network, or give its folder: local:/path/to/model.",
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


def _require_vision(name: str, config: Mapping[str, Any]) -> None:
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as readable

    if config["model_type"] not in readable:
        raise UsageError(
            f"{name!r} is a {config['architectures'][0]}, not a vision-language model.",
            hint="Use a model of the Qwen2.5-VL, SmolVLM2 or Idefics3 family.",
        )


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
