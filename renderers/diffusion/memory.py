"""A pipeline in memory: read by diffusers' own loaders (local files only, safetensors only), with adapters on it,
and one a process."""

from __future__ import annotations

import gc
import os
import re
import tempfile
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from katha.errors import InputFileError, KathaError, UsageError, first_line
from katha.models.checkpoints import check_device, device_models
from katha.renderers.diffusion.checkpoint import Checkpoint, files_sha256, part_numbers, read_header, read_part
from katha.renderers.diffusion.options import diffusion_data
from katha.renderers.diffusion.placement import Parking
from katha.sqlite_index import LockTaken, file_lock

if TYPE_CHECKING:
    from torch import Tensor

Encoded = Mapping[str, "Tensor"]
"""A pipeline's arguments for the prompts of a frame, each of shape (1, ...)."""

_HUB_FILE = re.compile(r"([\w.-]+/[\w.-]+)/(\S+\.safetensors)")
_DOWN = ("lora_A.", "lora_down.", "lora.down.", "lora_linear_layer.down.", "lora.down_layer.")
_PIECE = re.compile(r"\._(weight|bias)_\w+$")
"""What torchao calls the tensors that one packed tensor is kept as."""
# A suite draws the same prompts with every seed: their embeddings are kept, and only so many.
_PROMPTS = 512


@dataclass(frozen=True)
class Lora:
    """One adapter's file, its weight (1: as trained), and the hash of its bytes."""

    name: str
    file: Path
    weight: float
    sha256: str

    def spec(self) -> Mapping[str, Any]:
        """Return what of it can change the pixels."""
        return {"sha256": self.sha256, "weight": self.weight}


def find_loras(given: Sequence[str]) -> tuple[Lora, ...]:
    """Find the adapters behind `FILE`, `FILE@WEIGHT` or `OWNER/NAME/FILE.safetensors@WEIGHT` (of the hub's cache);
    a file that is none, a weight that is not a number, or the same adapter twice is a UsageError."""
    found = [_find(item) for item in given]
    twice = next((item for at, item in enumerate(found) if item.sha256 in {other.sha256 for other in found[:at]}), None)
    if twice is not None:
        raise UsageError(f"The LoRA {twice.name!r} is given twice.", hint="Give it once, with the weight you want.")
    return tuple(found)


def _find(given: str) -> Lora:
    named, at, number = given.rpartition("@")
    if not at or not re.fullmatch(r"-?\d*\.?\d+", number):
        if at and not Path(given).exists():
            raise UsageError(f"The weight of the LoRA {given!r} is not a number.", hint="Write FILE@0.8.")
        named, number = given, "1"
    path = Path(named).expanduser()
    if not path.is_file() and (match := _HUB_FILE.fullmatch(named)):
        from huggingface_hub import hf_hub_download

        try:
            path = Path(hf_hub_download(match[1], match[2], local_files_only=True))
        except (OSError, ValueError) as error:
            raise UsageError(
                f"The LoRA {named} is not on this machine.", hint=f"Run `hf download {match[1]} {match[2]}`."
            ) from error
    if not path.is_file():
        raise InputFileError(f"There is no LoRA {named!r}.", hint="Give a .safetensors file, with @WEIGHT if you like.")
    if not any("lora" in key for key in read_header(path)):
        raise UsageError(f"{named!r} holds no LoRA.", hint="Its tensors would have 'lora' in their names.")
    return Lora(named, path.resolve(), float(number), files_sha256({"lora": path.resolve()}))


def apply_loras(pipe: Any, loras: Sequence[Lora]) -> None:
    """Put every adapter on `pipe` with its weight, or refuse one that was trained for another model: a layer of its is
    missing here, or has another shape (UsageError)."""
    if not loras:
        return
    import torch
    from peft.tuners.tuners_utils import BaseTunerLayer

    def misfit(lora: Lora, reason: str) -> UsageError:
        return UsageError(
            f"The LoRA {lora.name!r} does not fit {type(pipe).__name__}: {reason}.",
            hint="Use one that was trained on the same base model.",
        )

    names = [f"lora{number}" for number in range(len(loras))]
    for name, lora in zip(names, loras, strict=True):
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Already found a `peft_config`")  # several are meant
                place = {"weight_name": lora.file.name, "local_files_only": True, "use_safetensors": True}
                pipe.load_lora_weights(lora.file.parent, adapter_name=name, **place)
        except Exception as error:  # the loaders raise many kinds, all meaning that it does not fit
            reason = " ".join(str(error).split()) or type(error).__name__
            raise misfit(lora, reason[:200]) from error
        wanted = sum(any(mark in key for mark in _DOWN) for key in read_header(lora.file))
        models = [part for part in pipe.components.values() if isinstance(part, torch.nn.Module)]
        layers = [layer for model in models for layer in model.modules() if isinstance(layer, BaseTunerLayer)]
        fitted = sum(name in getattr(layer, "lora_A", {}) for layer in layers)
        if fitted < wanted or not fitted:
            raise misfit(lora, f"only {fitted} of its {wanted} layers are there")
    pipe.set_adapters(names, [lora.weight for lora in loras])


@contextmanager
def unwarned(library: Literal["diffusers", "transformers"]) -> Iterator[None]:
    """Context manager: the library's warnings off, and then as they were; they would write across the live view."""
    logging = import_module(f"{library}.utils.logging")
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)


def sibling(pipe: Any, kind: str) -> Any:
    """Return a pipeline of the class called `kind` with the components (and so the place in memory) of `pipe`."""
    import diffusers

    wanted = getattr(diffusers, kind)
    names, _ = wanted._get_signature_keys(wanted)
    sibling = wanted(**{name: getattr(pipe, name) for name in names})
    sibling.set_progress_bar_config(disable=True)
    sibling.watermark = getattr(pipe, "watermark", None)  # none, too, where it would put one of its own
    return sibling


def load_tokenizer(kind: Any, checkpoint: Checkpoint, part: str) -> Any:
    """Return the tokenizer of a component, read by the class `kind` of transformers; no weights are read.

    Raises:
        InputFileError: its files are damaged.
    """
    try:
        return kind.from_pretrained(checkpoint.folder / part, local_files_only=True)
    except Exception as error:  # of many kinds, all meaning that these files are no tokenizer
        raise InputFileError(
            f"{checkpoint.name!r}, {part}, cannot be read: {first_line(error)}.",
            hint="Download the whole checkpoint again.",
        ) from error


def load_pipeline(checkpoint: Checkpoint, *, dtype: str, scheduler: str | None = None) -> Any:
    """Load the diffusers pipeline of `checkpoint`, on the CPU, in evaluation mode.

    Raises:
        InputFileError: weights are missing, damaged or of another shape. UsageError: there is not enough memory.
    """
    import diffusers
    import torch

    try:
        with _quiet():
            pipe = _read(checkpoint, getattr(torch, dtype))
    except KathaError:
        raise
    except MemoryError as error:
        raise UsageError(f"{checkpoint.name!r} does not fit into memory.", hint="Use a smaller dtype.") from error
    except Exception as error:  # the loaders raise many kinds, all meaning that these files are no such model
        hint = "Download the whole checkpoint again."
        if checkpoint.packing:
            hint = f"Give one of plain floats if {' or '.join(checkpoint.packing.values())} does not run here. {hint}"
        raise InputFileError(f"{checkpoint.name!r} cannot be loaded: {first_line(error)}", hint=hint) from error
    _check_weights(checkpoint, pipe)
    pipe.set_progress_bar_config(disable=True)
    if scheduler is not None:
        row = diffusion_data().schedulers[scheduler]
        pipe.scheduler = getattr(diffusers, row.kind).from_config(pipe.scheduler.config, **row.settings)
    return pipe


def _read(checkpoint: Checkpoint, dtype: Any) -> Any:
    """Read a folder, or a single file: the whole pipeline or its transformer; what that lacks comes from the folder."""
    import diffusers

    kind, file = getattr(diffusers, checkpoint.pipeline), checkpoint.file
    options: dict[str, object] = {"dtype": dtype, "local_files_only": True}
    if checkpoint.pipeline.startswith("StableDiffusionXL"):
        options["add_watermarker"] = False
    if file is not None and "transformer" not in checkpoint.components:
        return kind.from_single_file(str(file), config=str(checkpoint.folder), **options)
    if file is not None:
        options["transformer"] = _transformer(checkpoint, file, dtype)
    return kind.from_pretrained(checkpoint.folder, variant=checkpoint.variant, use_safetensors=True, **options)


def _transformer(checkpoint: Checkpoint, file: Path, dtype: Any) -> Any:
    import diffusers
    import torch

    part, place = getattr(diffusers, checkpoint.components["transformer"]), str(checkpoint.folder)
    with torch.device("meta"):
        empty = part.from_config(part.load_config(place, subfolder="transformer", local_files_only=True))
    stored, wanted = part_numbers(file), sum(value.numel() for value in empty.state_dict().values())
    if stored != wanted:  # diffusers leaves out what it has no place for, and says so in a log only
        raise InputFileError(
            f"{checkpoint.name!r} holds {stored:,} numbers; the transformer of its base has {wanted:,}.",
            hint="Give base=FOLDER of the same model, or download the whole file again.",
        )
    options = {"dtype": dtype, "local_files_only": True}
    if file.suffix == ".gguf":
        options["quantization_config"] = diffusers.GGUFQuantizationConfig(compute_dtype=dtype)
    with unwarned("diffusers"):  # about a list of modules that is empty
        return part.from_single_file(read_part(file), config=place, subfolder="transformer", **options)


def _check_weights(checkpoint: Checkpoint, pipe: Any) -> None:
    """Refuse a parameter that came from no file: the loaders fill it with random numbers, and say so in a log only."""
    import torch

    parts = [(name, part) for name, part in pipe.components.items() if isinstance(part, torch.nn.Module)]
    for name, files in checkpoint.weights().items() if checkpoint.file is None else ():
        model = getattr(pipe, name)
        stored = {_PIECE.sub(r".\1", tensor) for file in files for tensor in read_header(file)}
        wanted = dict(model.named_parameters())
        missing = sorted(set(wanted) - stored) if hasattr(model, "register_to_config") else []
        if missing or len(stored) < len(wanted):
            first = f", the first {missing[0]!r}" if missing else ""
            count = len(missing) or len(wanted) - len(stored)
            raise InputFileError(
                f"{checkpoint.name!r}, {name}, lacks {count} weights{first}.",
                hint="Download the whole checkpoint again.",
            )
    empty = next((name for name, part in parts if any(weight.is_meta for weight in part.parameters())), None)
    if empty is not None:
        raise InputFileError(
            f"{checkpoint.name!r} lacks weights of the {empty}.", hint="Download the whole file again."
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Context manager: the libraries' progress bars, which would write across the live view, off; then as they were."""
    from diffusers.utils import logging as diffusers_logging
    from transformers.utils import logging as transformers_logging

    shown = [library for library in (diffusers_logging, transformers_logging) if library.is_progress_bar_enabled()]
    for library in shown:
        library.disable_progress_bar()
    try:
        yield
    finally:
        for library in shown:
            library.enable_progress_bar()


@dataclass
class Loaded:
    """A pipeline in memory, what moves its components (None where none is moved), the prompts that it has read last (on
    the CPU), and the frames that were found to fit beside it: pixels at once and bytes of work, at most."""

    pipe: Any
    parking: Parking | None = None
    prompts: OrderedDict[str, Encoded] = field(default_factory=OrderedDict)
    checked: tuple[int, int] | None = None

    def encoded(self, key: str, encode: Callable[[], Encoded]) -> Encoded:
        """Return what was encoded under `key`, from `encode` the first time."""
        if key not in self.prompts:
            self.prompts[key] = {name: value.cpu() for name, value in encode().items()}
            while len(self.prompts) > _PROMPTS:
                self.prompts.popitem(last=False)
        self.prompts.move_to_end(key)
        return self.prompts[key]


class PipelinePool:
    """At most one pipeline a process: seeds and modes share it. `loads` counts how often one was loaded."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._key: str | None = None
        self._loaded: Loaded | None = None
        self._held = ExitStack()
        self.loads = 0

    @contextmanager
    def use(self, key: str, device: str, load: Callable[[], Loaded]) -> Iterator[Loaded]:
        """Context manager: the pipeline of `key`, loaded by `load` unless it is the one in memory, for nobody else
        meanwhile (UsageError where there is no `device`, or another process draws on it)."""
        with self._lock:
            if self._loaded is None or self._key != key:
                self.release()
                check_device(device)
                with ExitStack() as held:
                    held.enter_context(hold_device(device))
                    self._loaded, self._key = load(), key
                    device_models().register(device, self)
                    self._held = held.pop_all()
                self.loads += 1
            yield self._loaded

    def interrupt(self) -> None:
        """Have a drawing that is under way skip its remaining steps: nobody waits for it any more."""
        if (loaded := self._loaded) is not None:
            loaded.pipe._interrupt = True

    def release(self) -> None:
        """Let go of the pipeline, its memory and its device."""
        with self._lock:
            if self._loaded is None:
                return
            self._key = self._loaded = None
            device_models().release(self)
            gc.collect()
            import torch

            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            elif torch.backends.mps.is_available():
                torch.mps.empty_cache()
            self._held.close()  # last: who waits for the device finds its memory free

    close = release
    """What `DeviceModels` calls when another model needs the device."""


@cache
def process_pool() -> PipelinePool:
    """Return the pool that all renderers of this process share."""
    return PipelinePool()


def _own_folder() -> Path:
    """Return a folder for this user's locks in the machine's temporary folder, where anybody may have made its name.

    Raises:
        UsageError: it is a link, or belongs to another user.
    """
    user = os.getuid() if hasattr(os, "getuid") else None
    folder = Path(tempfile.gettempdir()) / f"katha-{'user' if user is None else user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or (user is not None and folder.lstat().st_uid != user):
        raise UsageError(f"{str(folder)!r} is not this user's own folder.", hint="Remove it, or set TMPDIR.")
    return folder


@contextmanager
def hold_device(device: str) -> Iterator[None]:
    """Keep other processes of this user off an accelerator (UsageError where one has it); a CPU is not held."""
    if device.startswith("cpu"):
        yield
        return
    import torch

    name = device.replace(":", "-")
    if device.startswith("cuda") and torch.cuda.is_available():  # the same in every process, whatever is hidden from it
        index = torch.device(device).index
        name = f"cuda-{torch.cuda.get_device_properties(torch.cuda.current_device() if index is None else index).uuid}"
    with ExitStack() as stack:
        try:
            stack.enter_context(file_lock(_own_folder() / f"{name}.lock", wait=False))
        except LockTaken as error:
            raise UsageError(
                f"Another katha run draws on {device!r}.",
                hint="Wait until it is done, or give --renderer-option device=",
            ) from error
        yield
