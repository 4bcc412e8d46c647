"""Encoders of pictures and texts: any open_clip model, and any vision model of transformers (DINOv2 for one).

`NAME@WEIGHTS` is a model of open_clip's list with its weights' tag, or with a checkpoint's path; `hf-hub:ORG/REPO` and
`local-dir:FOLDER` name model and weights at once. A transformers model is a name or a folder. Nothing is fetched by
transformers unless its files are on this machine; open_clip fetches what its list names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from katha.errors import AbsentModelError, UsageError
from katha.eval_bridge.metrics.features import Vectors
from katha.jsonio import digest, file_sha256, sha256_hex
from katha.models.checkpoints import find_folder, folder_revision, need
from katha.pictures import decode

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WHOLE = ("hf-hub:", "local-dir:")


class OpenClipEncoder:
    """Pictures and texts in one space by a model of open_clip; rows of length 1. Loads on first use.

    A text that is longer than the model's context is encoded sentence by sentence, and the mean is taken, unless
    `cut`: then it ends where the context does, as CLIP's own tokenizer has it.
    """

    def __init__(self, argument: str | None, *, device: str = "cpu", cut: bool = False) -> None:
        """Read the model's name; nothing is loaded yet.

        Raises:
            UsageError: no model is named, or no weights.
        """
        if not argument:
            raise UsageError(
                "open-clip needs a model.",
                hint="Write open-clip:ViT-B-32@laion2b_s34b_b79k, or open-clip:hf-hub:timm/ViT-B-16-SigLIP.",
            )
        self.argument = argument
        whole = argument.startswith(_WHOLE)
        self._name, _, weights = (argument, "", "") if whole else argument.partition("@")
        if not whole and not weights:
            hint = f"Write open-clip:{argument}@TAG (`open_clip.list_pretrained()` lists them) or ...@CHECKPOINT."
            raise UsageError(f"open-clip:{argument} names no weights.", hint=hint)
        self._weights: str | None = weights or None
        self._device, self._cut = device, cut

    def spec(self) -> Mapping[str, Any]:
        """Name, weights (by the hash of their values), package version and device."""
        spec = {
            "name": "open-clip",
            "version": 1,
            "model": self._name,
            "weights": self._weights_sha256,
            "open_clip": str(need("open_clip", "An open_clip model", "local").__version__),
        }
        return {**spec, "cut": True} if self._cut else spec

    def encode_images(self, images: Sequence[bytes]) -> Vectors:
        """Return rows of length 1, shape (N, D)."""
        import torch

        model, prepare, _ = self._loaded
        batch = torch.stack([prepare(decode(data)) for data in images]).to(self._device)
        with torch.inference_mode():
            return _rows(model.encode_image(batch, normalize=True))

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return rows, shape (N, D); of length 1 where the text fits into the context."""
        return np.stack([self._text(text) for text in texts])

    @cached_property
    def _loaded(self) -> tuple[Any, Any, Any]:
        """The model, what prepares a picture for it, and its tokenizer."""
        open_clip = need("open_clip", "An open_clip model", "local")
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
        return _state_sha256(self._loaded[0])

    def _text(self, text: str) -> Vectors:
        parts = [text] if self._cut or not self._overflows(text) else _SENTENCE.split(text)
        found = np.mean([self._tokens(part) for part in parts], axis=0)
        return np.asarray(found, dtype=np.float64)

    def _overflows(self, text: str) -> bool:
        """Whether the context ends before the text does: more of it changes nothing but the last place."""
        tokenizer = self._loaded[2]
        row, more = (tokenizer([words])[0].tolist() for words in (text, f"{text} and more"))
        return bool(row[:-1] == more[:-1])

    def _tokens(self, text: str) -> Vectors:
        import torch

        model, _, tokenizer = self._loaded
        with torch.inference_mode():
            row: Vectors = _rows(model.encode_text(tokenizer([text]).to(self._device), normalize=True))[0]
            return row


class VisionEncoder:
    """Pictures by a vision model of transformers: the class token of its last layer, as DINO's similarity takes it."""

    def __init__(self, argument: str | None, *, device: str = "cpu") -> None:
        """Find the model's folder; nothing is loaded yet.

        Raises:
            UsageError: no model is named. ModelError, InputFileError: it is not on this machine, or broken.
        """
        if not argument:
            raise UsageError("The vision model has no name.", hint="Write facebook/dinov2-base, or a folder.")
        need("transformers", "A vision model", "local")
        self._name, self._device = argument, device
        self._folder = find_folder(argument)

    def spec(self) -> Mapping[str, Any]:
        """Name, revision of the files and package version."""
        version = str(need("transformers", "A vision model", "local").__version__)
        return {
            "name": "vision",
            "version": 1,
            "model": self._name,
            "revision": self._revision,
            "transformers": version,
        }

    @cached_property
    def _revision(self) -> str:
        return folder_revision(self._folder)

    def encode_images(self, images: Sequence[bytes]) -> Vectors:
        """Return class tokens, shape (N, D), as they come."""
        import torch

        model, processor = self._loaded
        batch = processor(images=[decode(data) for data in images], return_tensors="pt").to(self._device)
        with torch.inference_mode():
            return _rows(model(**batch).last_hidden_state[:, 0])

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        transformers = need("transformers", "A vision model", "local")
        try:
            model = transformers.AutoModel.from_pretrained(self._folder, local_files_only=True, use_safetensors=True)
            processor = transformers.AutoImageProcessor.from_pretrained(self._folder, local_files_only=True)
        except Exception as error:
            raise UsageError(
                f"The vision model {self._name!r} cannot be loaded: {type(error).__name__}: {error}",
                hint="Name a model with safetensors weights and an image processor.",
            ) from error
        return model.to(self._device).eval(), processor


_LPIPS_FILES = {
    "alex": "alexnet-owt-7be5be79.pth",
    "squeeze": "squeezenet1_1-b8a52dc0.pth",
    "vgg": "vgg16-397923af.pth",
}
_SIDE = 256


class PerceptualDistance:
    """LPIPS of two pictures by torchmetrics over a network of torchvision, both resized to 256 by 256."""

    def __init__(self, net: str = "alex", *, device: str = "cpu") -> None:
        """net: alex, vgg or squeeze.

        Raises:
            UsageError: there is no such network.
        """
        if net not in _LPIPS_FILES:
            raise UsageError(f"LPIPS has no network {net!r}.", hint=f"Known: {', '.join(_LPIPS_FILES)}.")
        self._net, self._device = net, device

    def spec(self) -> Mapping[str, Any]:
        """Network, the file of its weights, size and package version."""
        version = str(need("torchmetrics", "LPIPS", "metrics").__version__)
        return {
            "name": "lpips",
            "net": self._net,
            "weights": self._weights_sha256,
            "side": _SIDE,
            "torchmetrics": version,
        }

    def compare(self, pairs: Sequence[tuple[bytes, bytes]]) -> Vectors:
        """Return LPIPS of each pair, shape (N,)."""
        import torch

        with torch.inference_mode():
            made = [float(self._loaded(self._tensor(first), self._tensor(second))) for first, second in pairs]
            self._loaded.reset()  # it would keep a mean of everything that it has seen
        return np.array(made)

    def _tensor(self, data: bytes) -> Any:
        """Return a picture as values from 0 to 1, shape (1, 3, 256, 256)."""
        import torch

        pixels = np.asarray(decode(data).resize((_SIDE, _SIDE)), np.float32) / 255.0
        return torch.from_numpy(pixels).permute(2, 0, 1).unsqueeze(0).to(self._device)

    @cached_property
    def _weights_sha256(self) -> str:
        return file_sha256(self._weights)

    @cached_property
    def _weights(self) -> Path:
        """The file of the network's weights, where torch keeps what it fetches; nothing is fetched here."""
        import torch

        path = Path(torch.hub.get_dir()) / "checkpoints" / _LPIPS_FILES[self._net]
        if not path.is_file():
            raise AbsentModelError(
                f"The weights of LPIPS are not on this machine: {str(path)!r} is missing.",
                hint=f"Fetch https://download.pytorch.org/models/{path.name} into that folder.",
            )
        return path

    @cached_property
    def _loaded(self) -> Any:
        lpips = need("torchmetrics.image.lpip", "LPIPS", "metrics")
        self._weights.stat()  # raises where they are missing: torchmetrics would fetch them
        return lpips.LearnedPerceptualImagePatchSimilarity(net_type=self._net, normalize=True).to(self._device)


class StructuralSimilarity:
    """SSIM of two pictures by scikit-image: grey values from 0 to 1 at 256 by 256, a Gaussian window."""

    def spec(self) -> Mapping[str, Any]:
        """Size and package version."""
        version = str(need("skimage", "SSIM", "metrics").__version__)
        return {"name": "ssim", "side": _SIDE, "skimage": version}

    def compare(self, pairs: Sequence[tuple[bytes, bytes]]) -> Vectors:
        """Return SSIM of each pair, shape (N,), with the paper's window and constants."""
        ssim = need("skimage.metrics", "SSIM", "metrics").structural_similarity
        ways = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 1.0}
        return np.array([float(ssim(_grey(first), _grey(second), **ways)) for first, second in pairs])


def _grey(data: bytes) -> Vectors:
    return np.asarray(decode(data).convert("L").resize((_SIDE, _SIDE)), np.float64) / 255.0


def _rows(batch: Any) -> Vectors:
    return np.asarray(batch.float().cpu().numpy(), dtype=np.float64)


def _state_sha256(model: Any) -> str:
    import torch

    def data(value: Any) -> bytes:
        raw: bytes = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return raw

    return digest({name: sha256_hex(data(value)) for name, value in model.state_dict().items()})
