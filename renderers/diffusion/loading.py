"""Checkpoints into memory: diffusers' own loaders, local files only, safetensors only, and what came out checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from katha.errors import InputFileError, KathaError, UsageError, first_line
from katha.renderers.diffusion.checkpoint import Checkpoint
from katha.renderers.diffusion.families import schedulers
from katha.renderers.diffusion.logs import unwarned
from katha.renderers.diffusion.single_file import part_numbers, read_part
from katha.renderers.diffusion.weights import read_header

__all__ = ["best_device", "default_dtype", "load_pipeline"]


def best_device() -> str:
    """The accelerator if there is one, else `cpu`."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def default_dtype(device: str, family: str) -> str:
    """float32 on a CPU; elsewhere bfloat16, and float16 for SDXL, which was published in it."""
    if device.startswith("cpu"):
        return "float32"
    return "float16" if family == "sdxl" else "bfloat16"


def load_pipeline(checkpoint: Checkpoint, *, dtype: str, scheduler: str | None = None) -> Any:
    """The diffusers pipeline of `checkpoint`, on the CPU, in evaluation mode.

    Raises:
        InputFileError: weights are missing, damaged or of another shape. UsageError: there is not enough memory.
    """
    import diffusers
    import torch

    kind = getattr(diffusers, checkpoint.pipeline)
    extra = {"add_watermarker": False} if checkpoint.pipeline.startswith("StableDiffusionXL") else {}
    try:
        with _quiet():
            if checkpoint.file is None:
                pipe = kind.from_pretrained(
                    checkpoint.folder, dtype=getattr(torch, dtype), variant=checkpoint.variant,
                    local_files_only=True, use_safetensors=True, **extra,
                )  # fmt: skip
            else:
                pipe = _from_file(kind, checkpoint, getattr(torch, dtype), extra)
    except KathaError:
        raise
    except MemoryError as error:
        raise UsageError(f"{checkpoint.name!r} does not fit into memory.", hint="Use a smaller dtype.") from error
    except Exception as error:  # the loaders raise many kinds, all meaning that these files are no such model
        reason = first_line(error)
        raise InputFileError(
            f"{checkpoint.name!r} cannot be loaded: {reason}", hint="Download the whole checkpoint again."
        ) from error
    _check_weights(checkpoint, pipe)
    pipe.set_progress_bar_config(disable=True)
    if scheduler is not None:
        pipe.scheduler = _scheduler(scheduler, pipe.scheduler.config)
    return pipe


def _from_file(kind: Any, checkpoint: Checkpoint, dtype: Any, extra: Mapping[str, Any]) -> Any:
    """A whole pipeline from a single file, or the transformer; what it lacks comes from the folder."""
    if checkpoint.file is not None and "transformer" in checkpoint.components:
        return _with_transformer(kind, checkpoint, checkpoint.file, dtype)
    return kind.from_single_file(
        str(checkpoint.file), config=str(checkpoint.folder), dtype=dtype, local_files_only=True, **extra
    )


def _with_transformer(kind: Any, checkpoint: Checkpoint, file: Path, dtype: Any) -> Any:
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
    with unwarned("diffusers"):  # about a list of modules that is empty
        transformer = part.from_single_file(
            read_part(file), config=place, subfolder="transformer", dtype=dtype, local_files_only=True
        )
    return kind.from_pretrained(
        checkpoint.folder, transformer=transformer, dtype=dtype, variant=checkpoint.variant, local_files_only=True,
        use_safetensors=True,
    )  # fmt: skip


def _scheduler(name: str, config: Any) -> Any:
    import diffusers

    return getattr(diffusers, schedulers()[name]).from_config(config)


def _check_weights(checkpoint: Checkpoint, pipe: Any) -> None:
    """Every parameter came from a file: the loaders fill a missing one with random numbers and say so in a log only."""
    import torch

    parts = [(name, part) for name, part in pipe.components.items() if isinstance(part, torch.nn.Module)]
    for name, files in checkpoint.weights().items() if checkpoint.file is None else ():
        model = getattr(pipe, name)
        stored = {tensor for file in files for tensor in read_header(file).shapes}
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
    """The libraries' progress bars off, and then as they were: they would write across the live view."""
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
