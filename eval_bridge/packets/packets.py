"""Evidence packets (Table 34): what a judge may see under each condition, and the guard that nothing else gets in.

A whole board and an adjacent pair are packets alike: the pictures differ, the rules do not. Every picture is decoded
and encoded anew before a judge sees it. What survives is an 8-bit RGB raster: transparency is laid on white, the EXIF
orientation is applied, and every text chunk, profile, comment and thumbnail is gone."""

from __future__ import annotations

import io
import re
import struct
import threading
import warnings
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from katha.errors import InputFileError, RecordError
from katha.eval_bridge.matching.lemmas import read_words
from katha.eval_bridge.matching.match import normalise
from katha.jsonio import digest, sha256_hex
from katha.models.checkpoints import need
from katha.protocols import Evidence
from katha.schema import Condition, Packet, StoryRecord

_PNG = b"\x89PNG\r\n\x1a\n"

# Pixels without their history.

MAX_PIXELS = 40_000_000
"""Larger pictures are refused before they are decoded."""

PREPROCESSING = "rgb8-png/1"
"""Name and version of what `clean_image` does; part of every cache key."""

_UP = 2
"""PNG's filter type of a line that is told by its difference to the line above."""

_GREY_16 = ("I;16", "I;16L", "I;16B", "I;16N", "I")


@dataclass(frozen=True)
class CleanImage:
    """One picture as a judge sees it: PNG bytes with pixels only, the hash of those pixels, width and height."""

    png: bytes
    sha256: str
    width: int
    height: int


def _flatten(image: Image.Image) -> Image.Image:
    """`image` as 8-bit RGB; transparency on white, 16-bit grey scaled down."""
    if image.mode in _GREY_16:
        high = 255.0 / 65535.0
        image = image.convert("F").point(lambda value: value * high).convert("L")
    if image.mode == "RGBA" and image.getchannel("A").getextrema() == (255, 255):
        return image.convert("RGB")  # opaque, as most renderers write: nothing to lay on white
    if "A" in image.getbands() or "transparency" in image.info:
        layer = image.convert("RGBA")
        paper = Image.new("RGBA", layer.size, (255, 255, 255, 255))
        return Image.alpha_composite(paper, layer).convert("RGB")
    return image.convert("RGB")


def _open(data: bytes) -> Image.Image:
    if not data:
        raise InputFileError("The picture is empty (0 bytes).", hint="Give a PNG, JPEG or WebP picture.")
    try:
        image = Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF"))
    except Image.DecompressionBombError as error:
        raise InputFileError(f"The picture is too large: {error}.", hint="Scale it down.") from error
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        message = "The picture is not a picture that can be read."
        raise InputFileError(message, hint="Give a PNG, JPEG or WebP.") from error
    width, height = image.size
    if width * height > MAX_PIXELS:
        message = f"The picture has {width} x {height} pixels; at most {MAX_PIXELS:,} are read."
        raise InputFileError(message, hint="Scale it down.")
    if getattr(image, "n_frames", 1) > 1:
        raise InputFileError("The picture is animated or has several pages.", hint="Give one still picture.")
    return image


@lru_cache(maxsize=128)
def _clean(data: bytes) -> CleanImage:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns of large and odd files; size is checked here, damage raises.
        with _open(data) as image:
            try:
                image.load()
                flat = _flatten(ImageOps.exif_transpose(image))
            except (Image.DecompressionBombError, OSError, ValueError, SyntaxError, EOFError) as error:
                message = f"The picture is damaged or cut short: {error}."
                raise InputFileError(message, hint="Export it again.") from error
    (width, height), pixels = flat.size, flat.tobytes()
    sha256 = sha256_hex(f"RGB {width}x{height}\0".encode() + pixels)
    return CleanImage(_png(pixels, width, height), sha256, width, height)


def _png(pixels: bytes, width: int, height: int) -> bytes:
    """8-bit RGB pixels as a PNG of three chunks. Every line is told by its difference to the line above: half of the
    time of choosing a filter for each line, for as many bytes."""
    lines = np.frombuffer(pixels, np.uint8).reshape(height, 3 * width)
    filtered = np.empty((height, 1 + 3 * width), np.uint8)
    filtered[:, 0] = _UP
    filtered[0, 1:] = lines[0]
    np.subtract(lines[1:], lines[:-1], out=filtered[1:, 1:])
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(filtered.tobytes(), 1)), (b"IEND", b""))
    return _PNG + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def clean_image(data: bytes, name: str = "The picture") -> CleanImage:
    """`data` (any common picture file) as pixels alone.

    Raises:
        InputFileError: empty, damaged, animated or larger than `MAX_PIXELS`; the sentence begins with `name`.
    """
    try:
        return _clean(bytes(data))
    except InputFileError as error:
        raise InputFileError(error.message.replace("The picture", name, 1), hint=error.hint) from error


# What a judge sees.


def make_packet(
    story_id: str, condition: Condition, images: Sequence[bytes] = (), text: str | None = None
) -> tuple[Packet, Evidence]:
    """The evidence of one condition, from pictures in order (any common file format) and the story's text.

    Pictures are left out of a text packet and text out of an image packet, so that a caller cannot leak by mistake.

    Raises:
        RecordError: the condition needs pictures or text that were not given.
        InputFileError: a picture cannot be used (it is named by its number).
    """
    wants_images, wants_text = condition != "text", condition != "image"
    if wants_images and not images:
        raise RecordError(f"Story {story_id!r}: a packet of condition {condition!r} needs at least one picture.")
    if wants_text and not (text or "").strip():
        raise RecordError(f"Story {story_id!r}: a packet of condition {condition!r} needs the story's text.")
    clean = [clean_image(data, f"Picture {number}") for number, data in enumerate(images, 1)] if wants_images else []
    shown = text if wants_text else None
    packet = Packet(
        story_id=story_id, condition=condition, images=tuple(picture.sha256 for picture in clean), text=shown
    )
    evidence = Evidence(condition=condition, images=tuple(picture.png for picture in clean), text=shown)
    return packet, evidence


def packet_sha256(packet: Packet) -> str:
    """The hash of what a judge sees: condition, ordered pixel hashes and text (the story's id is not seen)."""
    return digest({"condition": packet.condition, "images": list(packet.images), "text": packet.text})


def evidence_sha256(evidence: Evidence) -> str:
    """`packet_sha256` computed from the evidence itself."""
    hashes = tuple(clean_image(png).sha256 for png in evidence.images)
    return packet_sha256(Packet(story_id="", condition=evidence.condition, images=hashes, text=evidence.text))


# Words drawn into a picture: a caption in the pixels tells a judge what no metadata scan can see.
#
# Read by RapidOCR (`katha[ocr]`; its models come with the package, nothing is fetched). A reading that shares a word
# with the story's texts is a leak; any other, a shop sign for one, is only reported.

_SURE = 0.6
_SHORTEST = 3


class WordScanner:
    """Reads words in pictures, each distinct picture once. Safe to use from several threads."""

    def __init__(self) -> None:
        """Check that the package is there; its models are loaded at the first picture.

        Raises:
            MissingExtraError: RapidOCR is not installed; the hint is the command.
        """
        self._package = need("rapidocr", "Looking for words drawn into pictures (--scan-words)", "ocr")
        self._engine: Any = None
        self._known: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()

    def words(self, png: bytes) -> tuple[str, ...]:
        """Return what is written in the picture, line by line; only lines that were read surely and hold letters."""
        key = sha256_hex(png)
        with self._lock:
            if key not in self._known:
                self._known[key] = self._read(png)
            return self._known[key]

    def _read(self, png: bytes) -> tuple[str, ...]:
        if self._engine is None:
            self._engine = self._package.RapidOCR(params={"Global.log_level": "error"})
        with Image.open(io.BytesIO(png)) as image:
            pixels = np.asarray(image.convert("RGB"))[:, :, ::-1]
        found = self._engine(pixels)
        lines = zip(found.txts or (), found.scores or (), strict=True)
        return tuple(text for text, score in lines if score >= _SURE and sum(map(str.isalpha, text)) >= _SHORTEST)


def leaked_words(drawn: Sequence[str], secrets: Iterable[str]) -> list[str]:
    """The lines of `drawn` that share a content word of three letters or more with one of `secrets`."""
    texts = " ".join(secrets)
    known = {word.surface for word in read_words(texts) if word.content and len(word.surface) >= _SHORTEST}
    run_together = "".join(normalise(texts).split())

    def tells(line: str) -> bool:
        words = {word.surface for word in read_words(line) if word.content and len(word.surface) >= _SHORTEST}
        joined = "".join(normalise(line).split())
        return bool(words & known) or (len(joined) >= 2 * _SHORTEST and joined in run_together)

    return [line for line in drawn if tells(line)]


# The guard.

_PIXEL_CHUNKS = frozenset((b"IHDR", b"IDAT", b"IEND"))
_HASH = re.compile(r"[0-9a-f]{64}")
_SHORTEST_SECRET = 4


@dataclass(frozen=True)
class LeakageReport:
    """The outcome of a scan: how many fields, image chunks and secrets were looked at, and what was found.

    words: what was read in each picture, line by line, where words were looked for.
    """

    fields: int
    chunks: int
    secrets: int
    found: tuple[str, ...]
    words: tuple[tuple[str, ...], ...] = ()

    @property
    def clean(self) -> bool:
        """Return whether nothing was found."""
        return not self.found

    def require(self, story_id: str) -> None:
        """Refuse the packet when anything leaked.

        Raises:
            RecordError: with the first finding.
        """
        if self.found:
            raise RecordError(
                f"Story {story_id!r}: the image-only packet leaks: {self.found[0]}.",
                hint="Nothing was asked; report how the packet was made.",
            )


def _png_chunks(png: bytes) -> list[tuple[bytes, bytes]]:
    """Type and data of each chunk; bytes that do not parse, or follow the end, are one chunk named `????`."""
    if not png.startswith(_PNG):
        return [(b"????", png)]
    chunks, position = [], len(_PNG)
    while position + 12 <= len(png):
        length = int.from_bytes(png[position : position + 4], "big")
        kind, end = png[position + 4 : position + 8], position + 12 + length
        if end > len(png):
            break
        chunks.append((kind, png[position + 8 : position + 8 + length]))
        position = end
        if kind == b"IEND":
            break
    if position < len(png):
        chunks.append((b"????", png[position:]))
    return chunks


def secrets_of(record: StoryRecord, prompts: Sequence[str] = ()) -> list[str]:
    """Return what an image-only packet must not hold: the story's text, annotations, answers and image prompts."""
    texts = [record.title, record.story_text, record.moral_label or "", *prompts]
    for scene in record.scenes:
        texts += [scene.scene_text, scene.generation_prompt, scene.visual_evidence or "", scene.action, scene.state]
    for step in record.transitions:
        texts += [step.action, step.causality, step.intention or "", step.emotion or "", step.consequence]
    for question in record.recoverability_questions:
        texts += [question.gold_answer, *question.accepted_answers]
    return sorted({text for text in texts if len(normalise(text)) >= _SHORTEST_SECRET})


def scan_packet(
    packet: Packet, evidence: Evidence, secrets: Sequence[str] = (), scanner: WordScanner | None = None
) -> LeakageReport:
    """Look for source text, prompts, captions, labels and metadata in every field and image chunk (Table 72).

    A packet of another condition than image-only has nothing to hide and is reported clean. The guard is about form as
    well as content: a text field that is not empty, a field that packets do not have, an image name that is not a
    hash, and an image chunk that is not pixels are findings whatever they say. scanner: reads words in the pictures.
    """
    fields = packet.model_dump()
    if packet.condition != "image":
        return LeakageReport(len(fields), 0, len(secrets), ())
    found = [f"field {name!r} is not part of a packet" for name in sorted(packet.model_extra or {})]
    found += [f"{name} holds text" for name, text in (("packet", packet.text), ("evidence", evidence.text)) if text]
    if evidence.condition != packet.condition:
        found.append(f"the evidence is of condition {evidence.condition!r}")
    found += [f"picture name {name!r} is not a hash" for name in packet.images if not _HASH.fullmatch(name)]
    needles = [secret.casefold().encode() for secret in secrets if len(secret) >= _SHORTEST_SECRET]
    chunks = [(number, *chunk) for number, png in enumerate(evidence.images, 1) for chunk in _png_chunks(png)]
    for number, kind, data in chunks:
        if kind not in _PIXEL_CHUNKS:
            found.append(f"picture {number} has a {kind.decode('latin-1')!r} chunk")
            found += [f"picture {number} holds source text" for needle in needles if needle in data.lower()]
    words = tuple(map(scanner.words, evidence.images)) if scanner is not None else ()
    for number, lines in enumerate(words, 1):
        told = leaked_words(lines, secrets)
        found += [f"frame {number} has words of the story drawn into it, {text!r}" for text in told]
    return LeakageReport(len(fields), len(chunks), len(secrets), tuple(found), words)
