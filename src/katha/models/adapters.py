"""LoRA adapters (peft): which base model they belong to, and how they are put on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    if not _fits(model, folder):
        config = read_json(folder / "adapter_config.json")
        raise _other(folder, str(config.get("base_model_name_or_path")), name)
    return PeftModel.from_pretrained(model, str(folder), local_files_only=True)


def _fits(model: Any, folder: Path) -> bool:
    """Whether every matrix of the adapter has a layer of its shape; peft itself passes over names that it misses."""
    from safetensors import SafetensorError, safe_open

    layers = dict(model.named_modules())
    try:
        for path in folder.glob("*.safetensors"):
            with safe_open(path, framework="pt") as file:
                shapes = {key: file.get_slice(key).get_shape() for key in file.keys()}  # noqa: SIM118
            if not all(_fits_layer(layers, key, shape) for key, shape in shapes.items()):
                return False
    except SafetensorError as error:
        raise InputFileError(f"The adapter {str(folder)!r} cannot be read: {error}.", hint="Train it again.") from error
    return True


def _fits_layer(layers: Mapping[str, Any], key: str, shape: Sequence[int]) -> bool:
    """A key is `base_model.model.LAYER.lora_A.weight` (rank x inputs) or `...lora_B.weight` (outputs x rank)."""
    name, _, matrix = key.removeprefix("base_model.model.").removesuffix(".weight").rpartition(".lora_")
    weight = getattr(layers.get(name), "weight", None)
    if weight is None:
        return False
    return bool(shape[1] == weight.shape[1] if matrix == "A" else shape[0] == weight.shape[0])


def _other(folder: Path, wanted: str, name: str) -> InputFileError:
    return InputFileError(
        f"The adapter {str(folder)!r} belongs to the base model {wanted!r}, not to {name!r}.",
        hint="Give the base model that it was trained on, or train it again.",
    )
