"""Evidence packets (Table 34): what a judge may see under each condition, and the guard that nothing else gets in.

A whole board and an adjacent pair are packets alike: the pictures differ, the rules do not. Every picture is decoded
and encoded anew before a judge sees it. What survives is an 8-bit RGB raster: transparency is laid on white, the EXIF
orientation is applied, and every text chunk, profile, comment and thumbnail is gone."""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from katha.errors import InputFileError, RecordError
from katha.eval_bridge.matching.match import content_words, normalise
from katha.jsonio import digest
from katha.lettering import WordScanner
from katha.pictures import ByteCache, decoded, keep_decoded
from katha.protocols import Evidence
from katha.schema import Condition, Packet, StoryRecord

_PNG = b"\x89PNG\r\n\x1a\n"

# Pixels without their history.

PREPROCESSING = "rgb8-png/1"
"""Name and version of what `clean_image` does; part of every cache key."""

_UP = 2
"""PNG's filter type of a line that is told by its difference to the line above."""


@dataclass(frozen=True)
class CleanImage:
    """One picture as a judge sees it: PNG bytes with pixels only, the hash of those pixels, width and height."""

    png: bytes
    sha256: str
    width: int
    height: int

    @property
    def weight(self) -> int:
        """Bytes that it takes."""
        return len(self.png)


# A frame is cleaned once for all of its questions.
_KEPT_BYTES = 256_000_000


def _clean(data: bytes) -> CleanImage:
    flat = decoded(data)
    (width, height), pixels = flat.size, flat.tobytes()
    hashed = hashlib.sha256(f"RGB {width}x{height}\0".encode())
    hashed.update(pixels)
    png = _png(pixels, width, height)
    keep_decoded(png, flat)  # who looks at it next need not decode it
    return CleanImage(png, hashed.hexdigest(), width, height)


def _png(pixels: bytes, width: int, height: int) -> bytes:
    """8-bit RGB pixels as a PNG of three chunks. Every line is told by its difference to the line above: half of the
    time of choosing a filter for each line, for as many bytes."""
    lines = np.frombuffer(pixels, np.uint8).reshape(height, 3 * width)
    filtered = np.empty((height, 1 + 3 * width), np.uint8)
    filtered[:, 0] = _UP
    filtered[0, 1:] = lines[0]
    np.subtract(lines[1:], lines[:-1], out=filtered[1:, 1:])
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(filtered.data, 1)), (b"IEND", b""))
    return _PNG + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


@cache
def cleaned_pictures() -> ByteCache[CleanImage]:
    """Return the pictures as judges see them: a board is looked at under several conditions and by several judges."""
    return ByteCache(_KEPT_BYTES, _clean)


def clean_image(data: bytes, name: str = "The picture") -> CleanImage:
    """`data` (any common picture file) as pixels alone.

    Raises:
        InputFileError: empty, damaged, animated or over a limit of `katha.pictures`; the sentence begins with `name`.
    """
    try:
        return cleaned_pictures().get(bytes(data))
    except InputFileError as error:
        raise InputFileError(error.message.replace("The picture", name, 1), hint=error.hint) from error


# What a judge sees.


def make_packet(
    story_id: str, condition: Condition, images: Sequence[bytes] = (), text: str | None = None
) -> tuple[Packet, Evidence]:
    """The evidence of one condition, from pictures in order (any common file format) and the story's text.

    Pictures are left out of a text packet, text out of an image packet and both under `none`, so that a caller cannot
    leak by mistake.

    Raises:
        RecordError: the condition needs pictures or text that were not given.
        InputFileError: a picture cannot be used (it is named by its number).
    """
    wants_images, wants_text = "image" in condition, "text" in condition
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


# Words drawn into a picture: a caption in the pixels tells a judge what no metadata scan can see. A reading that shares
# a word with the story's texts is a leak; any other, a shop sign for one, is only reported.

# Shorter words stand in every picture by chance ("no", "if") and give nothing away.
_SHORTEST = 3


def _words(text: str) -> set[str]:
    return {word for word in content_words(text) if len(word) >= _SHORTEST}


def leaked_words(drawn: Sequence[str], secrets: Iterable[str]) -> list[str]:
    """The lines of `drawn` that share a content word of three letters or more with one of `secrets`."""
    texts = " ".join(secrets)
    known = _words(texts)
    run_together = "".join(normalise(texts).split())

    def tells(line: str) -> bool:
        words = _words(line)
        joined = "".join(normalise(line).split())
        return bool(words & known) or (len(joined) >= 2 * _SHORTEST and joined in run_together)

    return [line for line in drawn if tells(line)]


# The guard.

_PIXEL_CHUNKS = frozenset((b"IHDR", b"IDAT", b"IEND"))
_HASH = re.compile(r"[0-9a-f]{64}")
# Three letters are found in the bytes of any PNG by chance.
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

    A packet with the story's text has nothing to hide and is reported clean. The guard is about form as
    well as content: a text field that is not empty, a field that packets do not have, an image name that is not a
    hash, and an image chunk that is not pixels are findings whatever they say. scanner: reads words in the pictures.
    """
    fields = packet.model_dump()
    if "text" in packet.condition:
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
