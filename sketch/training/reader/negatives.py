"""Pictures that are not sketches: procedural textures and scenes, filtered sketches, photographs, blanks."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import cache
from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageOps

from katha_sketch.reader.network import HEIGHT, WIDTH

__all__ = ["TEST_PHOTOS", "TRAIN_PHOTOS", "jpeg", "negative", "photographs", "softened"]

Pixels = NDArray[np.uint8]
TRAIN_PHOTOS = ("astronaut", "coffee", "rocket", "camera", "page", "text", "immunohistochemistry")
TEST_PHOTOS = ("chelsea", "coins", "hubble_deep_field", "moon", "china", "flower")
"""Sample photographs that scikit-image and scikit-learn ship; the two lists never mix."""


@cache
def photographs(names: tuple[str, ...]) -> tuple[Image.Image, ...]:
    """The named sample photographs that can be loaded without a network."""
    from skimage import data
    from sklearn.datasets import load_sample_image

    pictures: list[Image.Image] = []
    for name in names:
        try:
            array = load_sample_image(f"{name}.jpg") if name in ("china", "flower") else getattr(data, name)()
        except (OSError, ValueError, ModuleNotFoundError):
            continue
        pictures.append(Image.fromarray(np.asarray(array, dtype=np.uint8)).convert("RGB"))
    return tuple(pictures)


def _spectrum(rng: np.random.Generator) -> Pixels:
    """Noise with the 1/f spectrum of natural pictures, in correlated colours."""
    fy, fx = np.fft.fftfreq(HEIGHT)[:, None], np.fft.fftfreq(WIDTH)[None, :]
    power = 1.0 / np.maximum(np.hypot(fy, fx), 1.0 / WIDTH) ** rng.uniform(0.7, 1.8)
    base = np.real(np.fft.ifft2(np.fft.fft2(rng.standard_normal((HEIGHT, WIDTH))) * power))
    tint = np.real(np.fft.ifft2(np.fft.fft2(rng.standard_normal((HEIGHT, WIDTH))) * power))
    layers = [base + rng.uniform(-0.6, 0.6) * tint for _ in range(3)]
    stacked = np.stack([(layer - layer.mean()) / (layer.std() + 1e-9) for layer in layers], axis=-1)
    scaled = 128 + rng.uniform(25, 75) * stacked + rng.uniform(-50, 50, size=3)
    return np.clip(scaled, 0, 255).astype(np.uint8)


def _shapes(rng: np.random.Generator) -> Pixels:
    """Flat shapes without outlines in any colours, as in user interfaces and clip art of other styles."""
    image = Image.new("RGB", (WIDTH, HEIGHT), tuple(int(v) for v in rng.integers(0, 256, 3)))
    draw = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(3, 30))):
        x, y = int(rng.integers(-20, WIDTH)), int(rng.integers(-20, HEIGHT))
        w, h = int(rng.integers(6, 140)), int(rng.integers(6, 120))
        fill = tuple(int(v) for v in rng.integers(0, 256, 3))
        outline = tuple(int(v) for v in rng.integers(0, 256, 3)) if rng.random() < 0.3 else None
        shape: Callable[..., None] = draw.ellipse if rng.random() < 0.5 else draw.rectangle
        shape((x, y, x + w, y + h), fill=fill, outline=outline)
    return np.asarray(image)


def _gradient(rng: np.random.Generator) -> Pixels:
    """Smooth blobs of light, blurred."""
    small = rng.integers(0, 256, (int(rng.integers(2, 12)), int(rng.integers(2, 16)), 3)).astype(np.uint8)
    image = Image.fromarray(small).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
    grain = rng.normal(0, rng.uniform(0, 18), (HEIGHT, WIDTH, 1))
    return np.clip(np.asarray(image, dtype=np.float64) + grain, 0, 255).astype(np.uint8)


def _plain(rng: np.random.Generator) -> Pixels:
    """One colour, or white noise."""
    colour = rng.integers(0, 256, 3).astype(np.float64)
    grain = rng.normal(0, rng.choice([0.0, 0.0, 3.0, 60.0]), (HEIGHT, WIDTH, 3))
    return np.clip(np.broadcast_to(colour, (HEIGHT, WIDTH, 3)) + grain, 0, 255).astype(np.uint8)


def _filtered(rng: np.random.Generator, sketch: Pixels) -> Pixels:
    """A sketch turned into another style: edges, negative, embossed, oil, false colours, painted over, heavy grain."""
    image = Image.fromarray(sketch)
    choice = int(rng.integers(0, 8))
    if choice == 0:
        image = ImageOps.invert(image.convert("L").filter(ImageFilter.FIND_EDGES)).convert("RGB")
    elif choice == 1:
        image = ImageOps.invert(image)
    elif choice == 2:
        image = image.filter(ImageFilter.EMBOSS)
    elif choice == 3:
        image = image.filter(ImageFilter.ModeFilter(11)).filter(ImageFilter.GaussianBlur(3))
    elif choice == 4:
        hue, saturation, value = image.convert("HSV").split()
        shift = int(rng.integers(70, 190))
        image = Image.merge(
            "HSV", (hue.point(lambda v: (v + shift) % 256), saturation.point(lambda v: min(255, 2 * v)), value)
        ).convert("RGB")
    elif choice == 5:
        image = Image.blend(image, Image.fromarray(_spectrum(rng)), float(rng.uniform(0.4, 0.8)))
    elif choice == 6:
        image = image.convert("L").point(lambda v: 255 if v > 128 else 0).convert("RGB")
    else:
        noise = rng.normal(0, rng.uniform(35, 70), sketch.shape)
        return np.clip(sketch + noise, 0, 255).astype(np.uint8)
    return np.asarray(image)


def _crop(rng: np.random.Generator, photo: Image.Image) -> Pixels:
    side = rng.uniform(0.3, 1.0)
    w, h = max(8, int(photo.width * side)), max(8, int(photo.height * side))
    x, y = int(rng.integers(0, photo.width - w + 1)), int(rng.integers(0, photo.height - h + 1))
    image = photo.crop((x, y, x + w, y + h)).resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR)
    return np.asarray(ImageOps.mirror(image) if rng.random() < 0.5 else image)


def negative(seed: int, sketch: Pixels, photos: Sequence[Image.Image]) -> Pixels:
    """One picture of shape (HEIGHT, WIDTH, 3) that is no sketch; a sketch and photographs are raw material."""
    rng = np.random.default_rng(seed)
    kind = Random(seed).choices(("photo", "filtered", "spectrum", "shapes", "gradient", "plain"), (4, 4, 2, 2, 1, 1))[0]
    makers: dict[str, Callable[[], Pixels]] = {
        "photo": lambda: _crop(rng, photos[int(rng.integers(0, len(photos)))]) if photos else _spectrum(rng),
        "filtered": lambda: _filtered(rng, sketch),
        "spectrum": lambda: _spectrum(rng),
        "shapes": lambda: _shapes(rng),
        "gradient": lambda: _gradient(rng),
        "plain": lambda: _plain(rng),
    }
    return makers[kind]()


def jpeg(pixels: Pixels, quality: int) -> Pixels:
    """`pixels` after one JPEG round trip."""
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=quality)
    return np.asarray(Image.open(io.BytesIO(out.getvalue())).convert("RGB"))


def softened(pixels: Pixels, step: float) -> Pixels:
    """`pixels` after being made `step` times as large and enlarged again."""
    image = Image.fromarray(pixels)
    small = image.resize((int(image.width * step), int(image.height * step)), Image.Resampling.BILINEAR)
    return np.asarray(small.resize(image.size, Image.Resampling.BILINEAR))
