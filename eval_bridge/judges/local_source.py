"""What the judge `local` needs of a model: packages, a vision-language architecture, whether it shares a cache."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import yaml

from katha.errors import MissingExtraError, UsageError
from katha.models.source import ModelSource, find_folder, folder_revision, read_config

__all__ = ["find_model", "require_extra", "reusable"]

_FULL = frozenset(("full_attention",))


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
        one. ModelError: the model is not on this machine; the hint is the command that fetches it.
    """
    if not argument:
        raise UsageError("The judge 'local' needs a model.", hint="Write local:MODEL or local:FOLDER.")
    folder = find_folder(argument, revision=revision, local_files_only=local_files_only)
    config = read_config(argument, folder)
    _require_vision(argument, config)
    return ModelSource(argument, folder, folder_revision(folder), config)


def _require_vision(name: str, config: Mapping[str, Any]) -> None:
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as readable

    if config["model_type"] not in readable:
        raise UsageError(
            f"{name!r} is a {config['architectures'][0]}, not a vision-language model.",
            hint="Use a model of the Qwen2.5-VL, SmolVLM2 or Idefics3 family.",
        )
