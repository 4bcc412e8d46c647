"""psi of Eqs. 25 and 26 by any open_clip model, SigLIP included; features are kept by the hash of what they are of.

`open-clip:NAME@WEIGHTS`: a model of open_clip's list with its weights' tag, or with a checkpoint's path.
`hf-hub:ORG/REPO` and `local-dir:FOLDER` name model and weights at once (`open-clip:hf-hub:timm/ViT-B-16-SigLIP`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from katha.artifacts import Index
from katha.config import cache_folder
from katha.errors import UsageError
from katha.jsonio import digest, sha256_hex
from katha.models.checkpoints import need
from katha.pictures import decode

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WHOLE = ("hf-hub:", "local-dir:")
Vector = NDArray[np.float64]


class OpenClipSimilarity:
    """`Similarity` by a model that sees pictures and text in one space. Safe between threads; loads on first use.

    A text that is longer than the model's context is encoded sentence by sentence, and the mean is taken.
    """

    def __init__(self, argument: str | None = None, *, device: str = "cpu", cache: Path | None = None) -> None:
        if not argument:
            raise UsageError(
                "open-clip needs a model.",
                hint="Write open-clip:ViT-B-32@laion2b_s34b_b79k, or open-clip:hf-hub:timm/ViT-B-16-SigLIP.",
            )
        whole = argument.startswith(_WHOLE)
        self._name, _, weights = (argument, "", "") if whole else argument.partition("@")
        if not whole and not weights:
            hint = f"Write open-clip:{argument}@TAG (`open_clip.list_pretrained()` lists them) or ...@CHECKPOINT."
            raise UsageError(f"open-clip:{argument} names no weights.", hint=hint)
        self._weights: str | None = weights or None
        self._device, self._cache = device, cache
        self._lock = threading.Lock()
        self._kept: dict[str, Vector] = {}

    def spec(self) -> Mapping[str, Any]:
        """Name, weights (by the hash of their values), package version and device."""
        return {
            "name": "open-clip",
            "version": 1,
            "model": self._name,
            "weights": self._weights_sha256,
            "open_clip": str(need("open_clip", "The similarity open-clip", "local").__version__),
        }

    def encode_image(self, png: bytes) -> Vector:
        """Return a unit vector of shape (D,) for one frame."""
        return self._once("image", sha256_hex(png), lambda: self._image(png))

    def encode_text(self, text: str) -> Vector:
        """Return a unit vector of shape (D,) for a transition's text."""
        return self._once("text", sha256_hex(text.encode("utf-8")), lambda: self._text(text))

    @cached_property
    def _loaded(self) -> tuple[Any, Any, Any]:
        """The model, what prepares a picture for it, and its tokenizer."""
        open_clip = need("open_clip", "The similarity open-clip", "local")
        try:
            model, _, prepare = open_clip.create_model_and_transforms(
                self._name, pretrained=self._weights, device=self._device
            )
            tokenizer = open_clip.get_tokenizer(self._name)
        except Exception as error:
            kind = type(error).__name__
            raise UsageError(
                f"The open_clip model {self._name!r} with weights {self._weights!r} cannot be loaded: {kind}: {error}",
                hint="Fetch the weights first, or name a checkpoint on this machine after '@'.",
            ) from error
        model.eval()
        return model, prepare, tokenizer

    @cached_property
    def _weights_sha256(self) -> str:
        return digest({name: sha256_hex(_bytes(value)) for name, value in self._loaded[0].state_dict().items()})

    @cached_property
    def _index(self) -> Index:
        folder = self._cache or cache_folder()
        return Index(folder / "features.sqlite", folder / "quarantine")

    @cached_property
    def _prefix(self) -> str:
        return digest(dict(self.spec()))

    def _once(self, kind: str, content: str, make: Callable[[], Vector]) -> Vector:
        """Return the vector of that content, computed once: kept in memory, and on the disk where there is a cache."""
        with self._lock:
            key = f"{self._prefix}:{kind}:{content}"
            if key not in self._kept:
                stored = self._index.get("feature", key)
                vector = np.frombuffer(stored, np.float32).astype(np.float64) if stored is not None else make()
                if stored is None:
                    self._index.put("feature", key, vector.astype(np.float32).tobytes())
                self._kept[key] = vector / (float(np.linalg.norm(vector)) or 1.0)
            return self._kept[key]

    def _image(self, png: bytes) -> Vector:
        import torch

        model, prepare, _ = self._loaded
        batch = prepare(decode(png)).unsqueeze(0).to(self._device)
        with torch.inference_mode():
            return _vector(model.encode_image(batch, normalize=True))

    def _text(self, text: str) -> Vector:
        parts = _SENTENCE.split(text) if self._overflows(text) else [text]
        found = np.mean([self._tokens(part) for part in parts], axis=0)
        return np.asarray(found, dtype=np.float64)

    def _overflows(self, text: str) -> bool:
        """Whether the context ends before the text does: more of it changes nothing but the last place."""
        tokenizer = self._loaded[2]
        row, more = (tokenizer([words])[0].tolist() for words in (text, f"{text} and more"))
        return bool(row[:-1] == more[:-1])

    def _tokens(self, text: str) -> Vector:
        import torch

        model, _, tokenizer = self._loaded
        with torch.inference_mode():
            return _vector(model.encode_text(tokenizer([text]).to(self._device), normalize=True))


def _vector(batch: Any) -> Vector:
    """Return the one row of a batch of shape (1, D)."""
    return np.asarray(batch[0].float().cpu().numpy(), dtype=np.float64)


def _bytes(value: Any) -> bytes:
    import torch

    data: bytes = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return data
