"""Evidence packets (Table 34): what a judge may see under each condition, and the guard that nothing else gets in.

A whole board and an adjacent pair are packets alike: the pictures differ, the rules do not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from katha.errors import RecordError
from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.packets.images import clean_image
from katha.jsonio import digest
from katha.protocols import Evidence
from katha.schema import Condition, Packet, StoryRecord

_PIXEL_CHUNKS = frozenset((b"IHDR", b"IDAT", b"IEND"))
_PNG = b"\x89PNG\r\n\x1a\n"
_HASH = re.compile(r"[0-9a-f]{64}")
_SHORTEST_SECRET = 4


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


@dataclass(frozen=True)
class LeakageReport:
    """The outcome of a scan: how many fields, image chunks and secrets were looked at, and what was found."""

    fields: int
    chunks: int
    secrets: int
    found: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
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
    """What an image-only packet must not hold: the story's text, its annotations, answers and image prompts."""
    texts = [record.title, record.story_text, record.moral_label or "", *prompts]
    for scene in record.scenes:
        texts += [scene.scene_text, scene.generation_prompt, scene.visual_evidence or "", scene.action, scene.state]
    for step in record.transitions:
        texts += [step.action, step.causality, step.intention or "", step.emotion or "", step.consequence]
    for question in record.recoverability_questions:
        texts += [question.gold_answer, *question.accepted_answers]
    return sorted({text for text in texts if len(normalise(text)) >= _SHORTEST_SECRET})


def scan_packet(packet: Packet, evidence: Evidence, secrets: Sequence[str] = ()) -> LeakageReport:
    """Look for source text, prompts, captions, labels and metadata in every field and image chunk (Table 72).

    A packet of another condition than image-only has nothing to hide and is reported clean. The guard is about form as
    well as content: a text field that is not empty, a field that packets do not have, an image name that is not a
    hash, and an image chunk that is not pixels are findings whatever they say.
    """
    fields = packet.model_dump()
    if packet.condition != "image":
        return LeakageReport(len(fields), 0, len(secrets), ())
    found = [f"field {name!r} is not part of a packet" for name in sorted(packet.model_extra or {})]
    found += [f"{name} holds text" for name, text in (("packet", packet.text), ("evidence", evidence.text)) if text]
    if evidence.condition != packet.condition:
        found.append(f"the evidence is of condition {evidence.condition!r}")
    found += [f"picture name {name!r} is not a hash" for name in packet.images if not _HASH.fullmatch(name)]
    chunks = 0
    needles = [secret.casefold().encode() for secret in secrets if len(secret) >= _SHORTEST_SECRET]
    for number, png in enumerate(evidence.images, 1):
        for kind, data in _png_chunks(png):
            chunks += 1
            if kind not in _PIXEL_CHUNKS:
                found.append(f"picture {number} has a {kind.decode('latin-1')!r} chunk")
                folded = data.lower()
                found += [f"picture {number} holds source text" for needle in needles if needle in folded]
    return LeakageReport(len(fields), chunks, len(secrets), tuple(found))
