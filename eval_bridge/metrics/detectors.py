"""What finds things in pictures, and what looks at whole pictures: Grounding DINO, CSD, Inception v3.

Models that may not be shipped or used commercially (face recognition, the AGPL aesthetic predictor) are plug-ins: any
class with `encode_images` (`ImageEncoder`) or with `find` (`Detector`), named `package.module:Class` or by an entry
point in `katha.encoders` or `katha.detectors`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from katha.border import spec_of
from katha.errors import InputFileError, UsageError
from katha.eval_bridge.metrics.features import Features, ImageEncoder, Vectors
from katha.jsonio import sha256_hex
from katha.models.checkpoints import find_folder, folder_revision, need
from katha.pictures import decode
from katha.registry import default_registry

MOST_BOXES = 64
"""More boxes of one picture are dropped, the least sure ones."""

DETECTOR = "grounding-dino:IDEA-Research/grounding-dino-tiny"
"""Grounding DINO with the Swin-T backbone, as ViStoryBench uses it (Apache-2.0)."""


@dataclass(frozen=True)
class Box:
    """One thing that was found: left, top, right and bottom in pixels, and how sure the detector is, 0 to 1."""

    left: float
    top: float
    right: float
    bottom: float
    score: float


@runtime_checkable
class Detector(Protocol):
    """Pictures to boxes."""

    def spec(self) -> Mapping[str, Any]:
        """Return name, weights, thresholds and packages: everything that can change a box."""
        ...

    def find(self, image: bytes, what: str) -> Sequence[Box]:
        """Return the boxes of `what` ("character") in a picture, the surest first."""
        ...


class GroundingDino:
    """Grounding DINO through transformers; boxes at the thresholds of ViStoryBench (0.25 each). Loads on first use."""

    def __init__(
        self, argument: str | None = None, *, box_threshold: float = 0.25, text_threshold: float = 0.25
    ) -> None:
        """Find the model's folder; nothing is loaded or fetched.

        Raises:
            UsageError: no model is named. ModelError, InputFileError: it is not on this machine, or broken.
        """
        if not argument:
            raise UsageError("grounding-dino needs a model.", hint=f"Write {DETECTOR}, or a folder.")
        need("transformers", "The detector grounding-dino", "local")
        self._name, self._folder = argument, find_folder(argument)
        self._box, self._text = box_threshold, text_threshold

    def spec(self) -> Mapping[str, Any]:
        """Name, revision of the files, thresholds and package version."""
        version = str(need("transformers", "The detector grounding-dino", "local").__version__)
        return {
            "name": "grounding-dino",
            "version": 1,
            "model": self._name,
            "revision": folder_revision(self._folder),
            "thresholds": [self._box, self._text],
            "transformers": version,
        }

    def find(self, image: bytes, what: str) -> list[Box]:
        """Return the boxes of `what`, the surest first."""
        import torch

        model, processor = self._loaded
        picture = decode(image)
        inputs = processor(images=picture, text=f"{what.lower().rstrip('.')}.", return_tensors="pt")
        with torch.inference_mode():
            found = processor.post_process_grounded_object_detection(
                model(**inputs),
                inputs["input_ids"],
                threshold=self._box,
                text_threshold=self._text,
                target_sizes=[picture.size[::-1]],
            )[0]
        rows = zip(found["boxes"].tolist(), found["scores"].tolist(), strict=True)
        boxes = [Box(box[0], box[1], box[2], box[3], score) for box, score in rows]
        return sorted(boxes, key=lambda box: -box.score)

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        transformers = need("transformers", "The detector grounding-dino", "local")
        try:
            load = transformers.AutoModelForZeroShotObjectDetection.from_pretrained
            model = load(self._folder, local_files_only=True, use_safetensors=True)
            processor = transformers.AutoProcessor.from_pretrained(self._folder, local_files_only=True)
        except Exception as error:
            raise UsageError(
                f"The detector {self._name!r} cannot be loaded: {type(error).__name__}: {error}",
                hint="Name a Grounding DINO folder with safetensors weights and its processor.",
            ) from error
        return model.eval(), processor


class _BoxRows:
    """A detector as an encoder, so that its boxes are kept by content like every feature: a padded row a picture."""

    def __init__(self, detector: Detector, what: str) -> None:
        self._detector, self._what = detector, what

    def spec(self) -> Mapping[str, Any]:
        inner = spec_of(self._detector, f"detector {type(self._detector).__name__}")
        return {"name": "boxes", "version": 1, "what": self._what, "detector": inner}

    def encode_images(self, images: Sequence[bytes]) -> Vectors:
        rows = np.full((len(images), MOST_BOXES, 5), np.nan)
        for row, image in zip(rows, images, strict=True):
            for at, box in enumerate(list(self._detector.find(image, self._what))[:MOST_BOXES]):
                row[at] = (box.left, box.top, box.right, box.bottom, box.score)
        return rows.reshape(len(images), -1)


class Finder:
    """Boxes of one kind of thing, found once a picture and kept with the features."""

    def __init__(self, detector: Detector, what: str = "character") -> None:
        self._rows = _BoxRows(detector, what)

    def spec(self) -> Mapping[str, Any]:
        """What is found, and the detector."""
        return self._rows.spec()

    def boxes(self, features: Features, images: Sequence[bytes]) -> list[list[Box]]:
        """Return each picture's boxes, the surest first."""
        if not images:
            return []
        rows = features.images(self._rows, images).reshape(len(images), MOST_BOXES, 5)
        return [[Box(*(float(each) for each in box)) for box in row if not np.isnan(box[0])] for row in rows]


def crop(image: bytes, box: Box) -> bytes | None:
    """Return the PNG of what a box holds, clipped to the picture; None for a box of no area."""
    picture = decode(image)
    width, height = picture.size
    left, right = (max(0, min(int(side), width)) for side in (box.left, box.right))
    top, bottom = (max(0, min(int(side), height)) for side in (box.top, box.bottom))
    if right <= left or bottom <= top:
        return None
    return _png(picture.crop((left, top, right, bottom)))


def mirrored(image: bytes) -> bytes:
    """Return the PNG of a picture's mirror image."""
    from PIL import ImageOps

    return _png(ImageOps.mirror(decode(image)))


def resized(image: bytes, height: int) -> bytes:
    """Return the PNG of a picture at `height` pixels, its width in proportion."""
    picture = decode(image)
    width = max(1, round(picture.width * height / picture.height))
    return _png(picture.resize((width, height)))


def _png(picture: Any) -> bytes:
    held = io.BytesIO()
    picture.save(held, "PNG", compress_level=1)
    return held.getvalue()


class InceptionEncoder:
    """Class probabilities by torchvision's Inception v3, as the inception score wants them: rows of 1,000.

    `inception` is torchvision's own ImageNet checkpoint (fetched on first use), `inception:FILE` a state dict.
    """

    def __init__(self, argument: str | None = None) -> None:
        """Check the file's place; nothing is loaded yet.

        Raises:
            InputFileError: there is no such file.
        """
        self._file = Path(argument) if argument else None
        if self._file is not None and not self._file.is_file():
            raise InputFileError(f"inception: there is no file {argument!r}.", hint="Name a state dict (.pth).")

    def spec(self) -> Mapping[str, Any]:
        """Name, weights (by hash where a file holds them) and package version."""
        version = str(need("torchvision", "Inception v3", "local").__version__)
        weights = sha256_hex(self._file.read_bytes()) if self._file is not None else "IMAGENET1K_V1"
        return {"name": "inception", "version": 1, "weights": weights, "torchvision": version}

    def encode_images(self, images: Sequence[bytes]) -> Vectors:
        """Return softmax probabilities, shape (N, 1000)."""
        import torch

        model, prepare = self._loaded
        batch = torch.stack([prepare(decode(data)) for data in images])
        with torch.inference_mode():
            return np.asarray(model(batch).softmax(dim=1).numpy(), dtype=np.float64)

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        models = need("torchvision.models", "Inception v3", "local")
        transforms = need("torchvision.transforms", "Inception v3", "local")
        import torch

        weights = models.Inception_V3_Weights.IMAGENET1K_V1 if self._file is None else None
        model = models.inception_v3(weights=weights, init_weights=False, transform_input=False, aux_logits=True)
        if self._file is not None:
            model.load_state_dict(torch.load(self._file, map_location="cpu", weights_only=True))
        means, deviations = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        steps = [transforms.Resize(299), transforms.CenterCrop(299), transforms.ToTensor()]
        return model.eval(), transforms.Compose([*steps, transforms.Normalize(means, deviations)])


class CsdEncoder:
    """Style vectors by CSD: a CLIP picture tower without its projection, times the style layer of the checkpoint.

    `csd:FILE`: the published checkpoint (ViT-L/14; `backbone.*` and `last_layer_style`). `csd:MODEL@FILE` names another
    picture tower of open_clip. Pictures are resized to a square without a crop (App. J).
    """

    def __init__(self, argument: str | None = None) -> None:
        """Check the file's place; nothing is loaded yet.

        Raises:
            UsageError: no checkpoint is named. InputFileError: there is none at that place.
        """
        if not argument:
            raise UsageError("csd needs its checkpoint.", hint="Write csd:FILE, fetched from its authors.")
        model, _, file = argument.rpartition("@")
        self._model, self._file = model or "ViT-L-14-quickgelu", Path(file)
        if not self._file.is_file():
            raise InputFileError(f"csd: there is no file {file!r}.", hint="Name the checkpoint (.pth).")

    def spec(self) -> Mapping[str, Any]:
        """Name, tower, the checkpoint's hash and package version."""
        version = str(need("open_clip", "CSD", "local").__version__)
        weights = sha256_hex(self._file.read_bytes())
        return {"name": "csd", "version": 1, "model": self._model, "weights": weights, "open_clip": version}

    def encode_images(self, images: Sequence[bytes]) -> Vectors:
        """Return style vectors of length 1, shape (N, D)."""
        import torch

        tower, style, prepare = self._loaded
        batch = torch.stack([prepare(decode(data)) for data in images])
        with torch.inference_mode():
            rows = tower(batch) @ style
            return np.asarray(torch.nn.functional.normalize(rows, dim=1).numpy(), dtype=np.float64)

    @cached_property
    def _loaded(self) -> tuple[Any, Any, Any]:
        open_clip = need("open_clip", "CSD", "local")
        transforms = need("torchvision.transforms", "CSD", "local")
        import torch

        kept = torch.load(self._file, map_location="cpu", weights_only=True)
        state = {name.removeprefix("module."): value for name, value in kept.get("model_state_dict", kept).items()}
        try:
            tower = open_clip.create_model(self._model, pretrained=None).visual
            tower.proj = None
            backbone = {name.removeprefix("backbone."): value for name, value in state.items() if "backbone." in name}
            tower.load_state_dict(backbone)
            style = state["last_layer_style"].float()
        except (RuntimeError, KeyError, AttributeError) as error:
            first = str(error).strip().splitlines()[0]
            raise InputFileError(
                f"{str(self._file)!r} is no CSD checkpoint for {self._model}: {first}",
                hint="It holds backbone.* and last_layer_style.",
            ) from error
        size = tower.image_size if isinstance(tower.image_size, tuple) else (tower.image_size, tower.image_size)
        bicubic = transforms.InterpolationMode.BICUBIC
        steps = [transforms.Resize(size, interpolation=bicubic), transforms.ToTensor()]
        normal = transforms.Normalize(open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD)
        return tower.float().eval(), style, transforms.Compose([*steps, normal])


def make_encoder(spec: str) -> ImageEncoder:
    """Return the encoder that `spec` names: `open-clip:...`, `vision:...`, `csd:...`, `inception`, or a plug-in.

    Raises:
        UnknownPluginError: there is none. UsageError, InputFileError, MissingExtraError: it cannot be made.
    """
    made = default_registry("encoders").create(spec)
    if not isinstance(made, ImageEncoder):
        raise UsageError(f"The encoder {spec!r} has no encode_images.", hint="See docs/metrics.md.")
    return made


def make_detector(spec: str) -> Detector:
    """Return the detector that `spec` names: `grounding-dino:MODEL`, or a plug-in; errors as for `make_encoder`."""
    made = default_registry("detectors").create(spec)
    if not isinstance(made, Detector):
        raise UsageError(f"The detector {spec!r} has no method `find`.", hint="See docs/metrics.md.")
    return made
