"""Models on this machine: where their files lie, what they are, the extras they need, and whose weights are on which
device."""

from __future__ import annotations

import gc
import importlib
import re
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from katha.errors import InputFileError, KathaError, MissingExtraError, ModelError, UsageError, first_line
from katha.installing import install_line
from katha.jsonio import digest, file_sha256, read_json

_COMMIT = re.compile(r"[0-9a-f]{40}")
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
WIDTHS: Mapping[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of one weight, by dtype."""
_FOUR_BITS = 0.53
"""Bytes of a weight in nf4 with its share of the constants (bitsandbytes, blocks of 64)."""
_TABLES = re.compile(r"embed|lm_head|norm|position")
_HASHED = (".json", ".safetensors", ".jinja", ".txt", ".model")
_NEEDED = ("torch", "transformers", "xgrammar", "peft", "accelerate")
_AGAIN = "Download it again."
ADAPTER_NOTE = "katha_adapter.json"
"""What `katha train planner` writes beside an adapter: the base model's name and revision, and how it was trained."""


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

    @property
    def stored_dtype(self) -> str:
        """The dtype that the weights are stored in, as `config.json` names it."""
        stored = [part.get(name) for part in (self.config, self.text_config) for name in ("dtype", "torch_dtype")]
        return str(next((name for name in stored if name), "float32"))

    def default_dtype(self, device: str) -> str:
        """Return the dtype to load in: float32 on a processor, else as stored, but float32 as bfloat16.

        Several checkpoints that were trained in bfloat16 are published in float32, which on an accelerator takes twice
        the memory and several times as long for digits that were never there. Who wants them names dtype float32.
        """
        if device.startswith("cpu"):
            return "float32"
        return "bfloat16" if self.stored_dtype == "float32" else self.stored_dtype

    def bytes_in(self, dtype: str, quantize: str | None = None) -> int:
        """Return what the weights take in memory: their files' size, for the width of `dtype`.

        quantize: `nf4` holds the linear layers in 4 bits, and what belongs to them in half a bit.
        """
        stored = sum(path.stat().st_size for path in self.folder.glob("*.safetensors"))
        whole = stored * WIDTHS.get(dtype, 4) // WIDTHS.get(self.stored_dtype, 4)
        if quantize is None:
            return whole
        linear = sum(rows * columns for rows, columns in self.linear_shapes())
        return whole - int(linear * (WIDTHS.get(dtype, 4) - _FOUR_BITS))

    def linear_shapes(self) -> Iterator[tuple[int, int]]:
        """Yield rows and columns of each linear layer, by the files' headers: matrices without the tables of words."""
        from safetensors import safe_open

        for path in self.folder.glob("*.safetensors"):
            with safe_open(path, framework="numpy") as file:
                for name in file.keys():  # noqa: SIM118 - not a mapping
                    shape = file.get_slice(name).get_shape()
                    if len(shape) == 2 and name.endswith(".weight") and not _TABLES.search(name):
                        yield shape[0], shape[1]


def find_folder(argument: str, *, revision: str | None = None, local_files_only: bool = True) -> Path:
    """Return the folder of `MODEL_OR_PATH`, whatever kind of model it holds.

    Raises:
        UsageError: a folder with a revision. InputFileError: no such folder. ModelError: not on this machine.
    """
    path = Path(argument).expanduser()
    if path.is_dir():
        if revision is not None:
            raise UsageError(f"A folder has no revision: {argument!r}.", hint="Leave the revision out.")
        return path.resolve()
    if path.is_absolute() or argument.startswith((".", "~")) or not HUB_NAME.fullmatch(argument):
        raise InputFileError(
            f"There is no model folder {argument!r}.", hint="Give a folder with config.json, or OWNER/NAME."
        )
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(argument, revision=revision, local_files_only=local_files_only))
    except (OSError, ValueError, RuntimeError) as error:
        wanted = f"{argument} --revision {revision}" if revision else argument
        reason = "is not on this machine" if local_files_only else f"cannot be fetched: {first_line(error)}"
        raise ModelError(
            f"The model {argument!r} {reason}.",
            hint=f"Run `hf download {wanted}` where there is a network, or give the folder that it lies in.",
        ) from error


def read_config(name: str, folder: Path) -> Mapping[str, Any]:
    """Return a model's `config.json`, with an architecture named in it and weights beside it.

    Raises:
        InputFileError: there is none, or no weights in safetensors.
    """
    path, again = folder / "config.json", "Download the whole model again."
    if not path.is_file():
        raise InputFileError(f"{name!r} holds no config.json.", hint=again)
    try:
        config = read_json(path)
    except InputFileError as error:
        raise InputFileError(error.message, hint=again) from error
    config = config if isinstance(config, dict) else {}
    kinds = config.get("architectures")
    named = isinstance(kinds, list) and bool(kinds) and all(isinstance(kind, str) for kind in kinds)
    if not (named and isinstance(config.get("model_type"), str)):
        raise InputFileError(f"{str(path)!r} names no architecture.", hint=again)
    if not any(folder.glob("*.safetensors")):
        raise InputFileError(
            f"{name!r} holds no weights (*.safetensors).", hint="Download the whole model again; pickles are not read."
        )
    return config


@contextmanager
def sound_configuration(name: str) -> Iterator[None]:
    """Context manager: what is made of the files beside a model's weights alone, which may hold anything.

    Raises:
        InputFileError: a value is of a type, or a size, that it cannot be, or a template is none.
    """
    try:
        yield
    except (KathaError, MemoryError):
        raise
    except Exception as error:  # the libraries raise many kinds, some of them plain `Exception`
        if type(error).__name__ == "OutOfMemoryError":  # torch's, which need not be imported here
            raise
        raise InputFileError(
            f"A configuration file of {name!r} holds what cannot be: {first_line(error).rstrip('.')}.",
            hint="Download the whole model again.",
        ) from error


def _object(path: Path) -> dict[str, Any]:
    """Return the object that a JSON file holds (InputFileError where it holds none)."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise InputFileError(f"{str(path)!r} holds no JSON object.", hint=_AGAIN)
    return value


def hub_commit(folder: Path) -> str | None:
    """Return the commit of a snapshot in the hub's cache, None for any other folder."""
    return folder.name if folder.parent.name == "snapshots" and _COMMIT.fullmatch(folder.name) else None


def folder_revision(folder: Path) -> str:
    """Return the commit of a hub snapshot, else the hash of the files' names and bytes."""
    hashed = (path for path in sorted(folder.iterdir()) if path.suffix in _HASHED)
    return hub_commit(folder) or f"sha256:{digest({path.name: file_sha256(path) for path in hashed})}"


def load_pretrained(
    model: Any,
    companion: Any,
    folder: Path,
    name: str,
    *,
    spare: str | None = None,
    untrained: str = _AGAIN,
    **options: Any,
) -> tuple[Any, Any]:
    """Return the model and its tokenizer or processor, both read by transformers' classes from `folder`.

    Weights are safetensors only; nothing is fetched and no code of the model's is run. spare: weights with this in
    their name may be missing. untrained: what to do where others are. options: further ones of the model's
    `from_pretrained`.

    Raises:
        InputFileError: weights or the companion are missing, damaged or of another shape. MemoryError: no room.
    """
    try:
        beside = companion.from_pretrained(folder, local_files_only=True)
        loaded, report = model.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, output_loading_info=True, **options
        )
    except MemoryError:
        raise
    except Exception as error:  # from_pretrained raises many kinds, all meaning that these files are no model
        raise InputFileError(f"{name!r} cannot be loaded: {first_line(error)}", hint=_AGAIN) from error
    missing = sorted(key for key in report["missing_keys"] if spare is None or spare not in key)
    if missing:
        raise InputFileError(f"{name!r} lacks {len(missing)} weights, the first {missing[0]!r}.", hint=untrained)
    return loaded, beside


def check_adapter(folder: Path, source: ModelSource) -> Path:
    """Return the adapter's folder, if it is a LoRA adapter of that base model.

    Raises:
        InputFileError: it is not an adapter, or one of another base model.
    """
    path = folder.expanduser()
    if not (path / "adapter_config.json").is_file() or not any(path.glob("*.safetensors")):
        raise InputFileError(
            f"{str(folder)!r} holds no adapter (adapter_config.json and weights in safetensors).",
            hint="Train one with `katha train planner`.",
        )
    config = _object(path / "adapter_config.json")
    note = adapter_note(path)
    if note and note.get("base_revision") != source.revision:
        raise _other(path, str(note.get("base", config.get("base_model_name_or_path"))), source.name)
    return path


def adapter_note(folder: Path) -> dict[str, Any]:
    """Return what was written beside the adapter when it was trained; empty for an adapter from elsewhere."""
    path = folder.expanduser() / ADAPTER_NOTE
    return _object(path) if path.is_file() else {}


def adapter_base(folder: Path) -> str:
    """Return the base model that an adapter says it belongs to.

    Raises:
        InputFileError: it is not an adapter, or names none.
    """
    path = folder.expanduser() / "adapter_config.json"
    config = _object(path) if path.is_file() else {}
    base = adapter_note(folder).get("base") or config.get("base_model_name_or_path")
    if not base:
        raise InputFileError(f"{str(folder)!r} names no base model.", hint="Give --base, or a folder with an adapter.")
    return str(base)


def load_adapter(model: Any, folder: Path, name: str) -> Any:
    """Return the model with the adapter on it.

    Raises:
        InputFileError: its weights have other shapes than the model's, or other names, which peft would pass over; or
            its configuration is none.
    """
    from peft import PeftModel
    from safetensors import SafetensorError, safe_open

    layers = dict(model.named_modules())
    for path in folder.glob("*.safetensors"):
        try:
            with safe_open(path, framework="pt") as file:
                shapes = {key: file.get_slice(key).get_shape() for key in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise InputFileError(
                f"The adapter {str(folder)!r} cannot be read: {error}.", hint="Train it again."
            ) from error
        if not all(_fits_layer(layers, key, shape) for key, shape in shapes.items()):
            config = _object(folder / "adapter_config.json")
            raise _other(folder, str(config.get("base_model_name_or_path")), name)
    try:
        return PeftModel.from_pretrained(model, str(folder), local_files_only=True)
    except MemoryError:
        raise
    except Exception as error:  # of many kinds, all meaning that its configuration is none for this model
        raise InputFileError(
            f"The adapter {str(folder)!r} cannot be put on {name!r}: {first_line(error)}", hint="Train it again."
        ) from error


def _fits_layer(layers: Mapping[str, Any], key: str, shape: Sequence[int]) -> bool:
    """Return whether there is a layer of the shape of matrix `key`.

    It is `base_model.model.LAYER.lora_A.weight` (rank x inputs) or `...lora_B.weight` (outputs x rank).
    """
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


@runtime_checkable
class HoldsModel(Protocol):
    """Something that holds a model in memory: a renderer's pipeline, a judge, a planner."""

    def close(self) -> None:
        """Let go of the model once nobody uses it; it is loaded again when it is next needed."""


class DeviceModels:
    """The models in memory, by device (`cuda` is `cuda:0`), so that one that does not fit beside the others can have
    them let go. Renderers, judges and planners know nothing of each other; each registers its model here."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, weakref.WeakSet[HoldsModel]] = {}

    def register(self, device: str, holder: HoldsModel) -> None:
        """Note that `holder` has a model in the memory of `device`. A holder that is gone is forgotten."""
        with self._lock:
            self._known.setdefault(_numbered(device), weakref.WeakSet()).add(holder)

    def release(self, holder: HoldsModel) -> None:
        """Note that `holder` has none any more."""
        with self._lock:
            for known in self._known.values():
                known.discard(holder)

    def make_room(self, device: str, newcomer: HoldsModel) -> bool:
        """Have all others of `device` let go of their models; return whether there was any."""
        with self._lock:
            others = [holder for holder in self._known.get(_numbered(device), ()) if holder is not newcomer]
        for holder in others:
            holder.close()
            self.release(holder)
        return bool(others)


def _numbered(device: str) -> str:
    """Return the device with its index: what is on `cuda:1` leaves no room on `cuda:0`, and takes none there."""
    return device if ":" in device else f"{device}:0"


@cache
def device_models() -> DeviceModels:
    """Return the models of this process."""
    return DeviceModels()


def best_device() -> str:
    """Return the accelerator if there is one, else `cpu`."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def check_device(device: str) -> None:
    """Refuse a device that is not here or holds no values, before weights are read for it (UsageError)."""
    import torch

    try:
        torch.empty(1, device=device).cpu()
    except (RuntimeError, AssertionError) as error:
        here = ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]
        here += ["mps"] if torch.backends.mps.is_available() else []
        raise UsageError(
            f"The model cannot be put on {device!r}: {first_line(error)}", hint=f"Choose one of {', '.join(here)}."
        ) from error


def let_go(holder: HoldsModel) -> None:
    """Give back the memory of a model that `holder` has just forgotten, and its place on the device."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
    device_models().release(holder)


def free_bytes(device: str) -> int | None:
    """Return the free memory of a device, torch's own reserve included; None where there is no such device."""
    if not device.startswith("cuda"):
        import psutil

        return int(psutil.virtual_memory().available)
    import torch

    if not torch.cuda.is_available():
        return None
    there = torch.device(device)
    reserve = torch.cuda.memory_reserved(there) - torch.cuda.memory_allocated(there)
    return int(torch.cuda.mem_get_info(there)[0]) + reserve


def whole_bytes(device: str) -> int | None:
    """Return the memory that a device has in all; None where there is no such device."""
    if not device.startswith("cuda"):
        import psutil

        return int(psutil.virtual_memory().total)
    import torch

    return int(torch.cuda.mem_get_info(torch.device(device))[1]) if torch.cuda.is_available() else None


def require_local(what: str, packages: Sequence[str] = _NEEDED) -> None:
    """Check that `packages` of the extra `local` are there; nothing is imported.

    Raises:
        MissingExtraError: with the names of those that are missing and the command.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"{what} needs {', '.join(missing)}.", hint=f"Install it with: {install_line('local')}."
        )


def need(module: str, what: str, extra: str = "stats") -> Any:
    """Return the module, imported now; `what` says what it is needed for.

    Raises:
        MissingExtraError: it is not installed; the hint is the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(f"{what} needs {package}.", hint=install_line(extra)) from error
