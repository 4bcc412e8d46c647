"""What finds things in pictures, and what is cut out of them: Grounding DINO, boxes kept with the features, crops.

A detector of the user's is any class with `find` (`Detector`), named `package.module:Class` or by an entry point in
`katha.detectors`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from katha.errors import UsageError
from katha.eval_bridge.metrics.features import Features, Vectors
from katha.models.checkpoints import find_folder, folder_revision, need
from katha.pictures import as_png, decode
from katha.plugin_boundary import spec_of
from katha.registry import default_registry

MOST_BOXES = 64
"""More boxes of one picture are dropped, the least sure ones."""

DETECTOR = "grounding-dino:IDEA-Research/grounding-dino-tiny"
"""Grounding DINO with the Swin-T backbone, as ViStoryBench uses it (Apache-2.0)."""


@dataclass(frozen=True)
class DetectedBox:
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

    def find(self, image: bytes, what: str) -> Sequence[DetectedBox]:
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

    def find(self, image: bytes, what: str) -> list[DetectedBox]:
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
        boxes = [DetectedBox(box[0], box[1], box[2], box[3], score) for box, score in rows]
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
        """Return what is found, and the detector."""
        return self._rows.spec()

    def boxes(self, features: Features, images: Sequence[bytes]) -> list[list[DetectedBox]]:
        """Return each picture's boxes, the surest first."""
        if not images:
            return []
        rows = features.images(self._rows, images).reshape(len(images), MOST_BOXES, 5)
        return [[DetectedBox(*(float(each) for each in box)) for box in row if not np.isnan(box[0])] for row in rows]


def crop(image: bytes, box: DetectedBox) -> bytes | None:
    """Return the PNG of what a box holds, clipped to the picture; None for a box of no area."""
    picture = decode(image)
    width, height = picture.size
    left, right = (max(0, min(int(side), width)) for side in (box.left, box.right))
    top, bottom = (max(0, min(int(side), height)) for side in (box.top, box.bottom))
    if right <= left or bottom <= top:
        return None
    return as_png(picture.crop((left, top, right, bottom)))


def mirrored(image: bytes) -> bytes:
    """Return the PNG of a picture's mirror image."""
    from PIL import ImageOps

    return as_png(ImageOps.mirror(decode(image)))


def resized(image: bytes, height: int) -> bytes:
    """Return the PNG of a picture at `height` pixels, its width in proportion."""
    picture = decode(image)
    width = max(1, round(picture.width * height / picture.height))
    return as_png(picture.resize((width, height)))


def make_detector(spec: str) -> Detector:
    """Return the detector that `spec` names: `grounding-dino:MODEL`, or a plug-in.

    Raises:
        UnknownPluginError: there is none. UsageError, InputFileError, MissingExtraError: it cannot be made.
    """
    made = default_registry("detectors").create(spec)
    if not isinstance(made, Detector):
        raise UsageError(f"The detector {spec!r} has no method `find`.", hint="See docs/metrics.md.")
    return made
