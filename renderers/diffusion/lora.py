"""LoRA adapters: several at once, each with its weight, checked to fit the model that they are put on."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from katha.errors import InputFileError, UsageError
from katha.renderers.diffusion.weights import files_sha256, read_header

__all__ = ["Lora", "apply_loras", "find_loras"]

_HUB_FILE = re.compile(r"([\w.-]+/[\w.-]+)/(\S+\.safetensors)")
_DOWN = ("lora_A.", "lora_down.", "lora.down.", "lora_linear_layer.down.", "lora.down_layer.")


@dataclass(frozen=True)
class Lora:
    """One adapter's file, its weight (1: as trained), and the hash of its bytes."""

    name: str
    file: Path
    weight: float
    sha256: str

    def spec(self) -> Mapping[str, Any]:
        """What of it can change the pixels."""
        return {"sha256": self.sha256, "weight": self.weight}


def find_loras(given: Sequence[str]) -> tuple[Lora, ...]:
    """The adapters behind `FILE`, `FILE@WEIGHT` or `OWNER/NAME/FILE.safetensors@WEIGHT` (of the hub's cache).

    Raises:
        UsageError: no such file, a broken one, a weight that is no number, or the same adapter twice.
    """
    found = [_find(item) for item in given]
    twice = next((item for at, item in enumerate(found) if item.sha256 in {other.sha256 for other in found[:at]}), None)
    if twice is not None:
        raise UsageError(f"The LoRA {twice.name!r} is given twice.", hint="Give it once, with the weight you want.")
    return tuple(found)


def _find(given: str) -> Lora:
    named, at, number = given.rpartition("@")
    if not at or not re.fullmatch(r"-?\d*\.?\d+", number):
        if at and not Path(given).exists():
            raise UsageError(f"The weight of the LoRA {given!r} is no number.", hint="Write FILE@0.8.")
        named, number = given, "1"
    path = Path(named).expanduser()
    if not path.is_file() and (match := _HUB_FILE.fullmatch(named)):
        path = _from_hub(match[1], match[2])
    if not path.is_file():
        raise InputFileError(f"There is no LoRA {named!r}.", hint="Give a .safetensors file, with @WEIGHT if you like.")
    if not any(key for key in read_header(path).shapes if "lora" in key):
        raise UsageError(f"{named!r} holds no LoRA.", hint="Its tensors would have 'lora' in their names.")
    return Lora(named, path.resolve(), float(number), files_sha256({"lora": path.resolve()}))


def _from_hub(name: str, file: str) -> Path:
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(name, file, local_files_only=True))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"The LoRA {name}/{file} is not on this machine.", hint=f"Run `hf download {name} {file}`."
        ) from error


def apply_loras(pipe: Any, loras: Sequence[Lora]) -> None:
    """Put every adapter on `pipe` with its weight.

    Raises:
        UsageError: one was trained for another model (a layer of its is missing here, or has another shape).
    """
    names = [f"lora{number}" for number in range(len(loras))]
    for name, lora in zip(names, loras, strict=True):
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Already found a `peft_config`")  # several are meant
                pipe.load_lora_weights(
                    lora.file.parent, weight_name=lora.file.name, adapter_name=name, local_files_only=True,
                    use_safetensors=True,
                )  # fmt: skip
        except Exception as error:  # the loaders raise many kinds, all meaning that it does not fit
            reason = " ".join(str(error).split()) or type(error).__name__
            raise _misfit(pipe, lora, reason[:200]) from error
        wanted = sum(any(mark in key for mark in _DOWN) for key in read_header(lora.file).shapes)
        fitted = _layers(pipe, name)
        if fitted < wanted or not fitted:
            raise _misfit(pipe, lora, f"only {fitted} of its {wanted} layers are there")
    if names:
        pipe.set_adapters(names, [lora.weight for lora in loras])


def _misfit(pipe: Any, lora: Lora, reason: str) -> UsageError:
    return UsageError(
        f"The LoRA {lora.name!r} does not fit {type(pipe).__name__}: {reason}.",
        hint="Use one that was trained on the same base model.",
    )


def _layers(pipe: Any, name: str) -> int:
    """How many layers of the pipeline carry the adapter."""
    import torch
    from peft.tuners.tuners_utils import BaseTunerLayer

    models = [part for part in pipe.components.values() if isinstance(part, torch.nn.Module)]
    return sum(
        isinstance(module, BaseTunerLayer) and name in getattr(module, "lora_A", {})
        for model in models
        for module in model.modules()
    )
