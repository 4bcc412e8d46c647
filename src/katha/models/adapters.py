"""LoRA adapters (peft): which base model they belong to, and how they are put on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from katha.errors import InputFileError
from katha.jsonio import read_json
from katha.models.source import ModelSource

__all__ = ["ADAPTER_NOTE", "adapter_note", "check_adapter", "load_adapter"]

ADAPTER_NOTE = "katha_adapter.json"
"""What `katha train planner` writes beside an adapter: the base model's name and revision, and how it was trained."""


def check_adapter(folder: Path, source: ModelSource) -> Path:
    """The adapter's folder, if it is a LoRA adapter of that base model.

    Raises:
        InputFileError: it is no adapter, or one of another base model.
    """
    path = folder.expanduser()
    if not (path / "adapter_config.json").is_file() or not any(path.glob("*.safetensors")):
        raise InputFileError(
            f"{str(folder)!r} holds no adapter (adapter_config.json and weights in safetensors).",
            hint="Train one with `katha train planner`.",
        )
    config = read_json(path / "adapter_config.json")
    note = adapter_note(path)
    if note and note.get("base_revision") != source.revision:
        raise _other(path, str(note.get("base", config.get("base_model_name_or_path"))), source.name)
    return path


def adapter_note(folder: Path) -> dict[str, Any]:
    """What was written beside the adapter when it was trained; empty for an adapter from elsewhere."""
    path = folder.expanduser() / ADAPTER_NOTE
    return dict(read_json(path)) if path.is_file() else {}


def load_adapter(model: Any, folder: Path, name: str) -> Any:
    """The model with the adapter on it.

    Raises:
        InputFileError: its weights have other shapes than the model's, or other names.
    """
    from peft import PeftModel

    config = read_json(folder / "adapter_config.json")
    try:
        made = PeftModel.from_pretrained(model, str(folder), local_files_only=True)
    except (RuntimeError, ValueError, KeyError) as error:
        raise _other(folder, str(config.get("base_model_name_or_path")), name) from error
    return made


def _other(folder: Path, wanted: str, name: str) -> InputFileError:
    return InputFileError(
        f"The adapter {str(folder)!r} belongs to the base model {wanted!r}, not to {name!r}.",
        hint="Give the base model that it was trained on, or train it again.",
    )
